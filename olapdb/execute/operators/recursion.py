"""WITH RECURSIVE: the first step, then the repeated one over the rows of the step before."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.compute.row_buffer import RowBuffer
from olapdb.errors import TooDeepRecursion
from olapdb.execute.operators.subqueries import RunNode, answer_subqueries, forget_answers
from olapdb.plan import nodes
from olapdb.plan.tree import all_nodes


def recursive_batches(
    node: nodes.RecursiveUnion, context: ExecutionContext, run_child: RunNode
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each step as it is made, until a step makes none.

    Only the rows of two steps are held. Raises TooDeepRecursion beyond `node.depth_max` steps."""
    with context.memory.account("WITH RECURSIVE") as account:
        buffer = RowBuffer(node.schema, account)
        for batch in run_child(node.first, context):
            batch = _named(batch, node)
            buffer.add(batch)
            yield batch
        depth = 0
        while buffer.rows:
            context.check()
            depth += 1
            if depth > node.depth_max:
                raise TooDeepRecursion(
                    f"{node.key}: more than max_recursive_cte_evaluation_depth ="
                    f" {node.depth_max} steps.",
                    hint="Add a condition that ends it, a LIMIT, or raise the setting.",
                )
            context.working[node.key] = buffer.concatenate()
            account.set(context.working[node.key].nbytes)
            forget_answers(node.repeated, context, _reads(node.key))
            answer_subqueries(node.repeated, context, run_child)
            buffer = RowBuffer(node.schema, account)
            for batch in run_child(node.repeated, context):
                batch = _named(batch, node)
                buffer.add(batch)
                yield batch


def working_batches(
    node: nodes.WorkingTable, context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the last step under the node's names."""
    rows = context.working[node.key]
    for start in range(0, rows.num_rows, context.batch_rows):
        part = rows.slice(start, context.batch_rows)
        yield pa.RecordBatch.from_arrays(part.columns, schema=node.arrow_schema)


def _named(batch: pa.RecordBatch, node: nodes.RecursiveUnion) -> pa.RecordBatch:
    """Return the batch with its columns, by position, under the names of the recursion's result."""
    return pa.RecordBatch.from_arrays(batch.columns, schema=node.arrow_schema)


def _reads(key: str) -> Callable[[nodes.Node], bool]:
    """Return a function that says whether a plan, or a subquery of it, reads the rows of the last step of the recursion
    `key`."""

    def reads(root: nodes.Node) -> bool:
        """Return whether the plan reads the rows of the last step."""
        return any(isinstance(n, nodes.WorkingTable) and n.key == key for n in all_nodes(root))

    return reads
