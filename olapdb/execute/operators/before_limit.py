"""rows_before_limit_at_least of JSON and XML: the rows that a query's outermost LIMIT is given."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.plan.nodes import (
    Distinct,
    Fill,
    Filter,
    Limit,
    LimitBy,
    Node,
    Numbers,
    Project,
    Sort,
    Union,
)

COUNTING_FORMATS = frozenset(
    {"json", "jsonstrings", "jsoncompact", "jsoncompactstrings", "jsoncolumnswithmetadata"}
    | {"template", "xml", "jsoneachrowwithprogress", "jsonstringseachrowwithprogress"}
)
"""The formats that say the number, in lower case."""


def outermost_limits(root: Node) -> frozenset[int]:
    """Return the `id` of each LIMIT of the plan that no other one, join or grouping has above it."""
    match root:
        case Limit():
            return frozenset() if root.count is None else frozenset({id(root)})
        case Project() | Filter() | Sort() | Distinct() | Fill() | LimitBy():
            return outermost_limits(root.child)
        case Union():
            return frozenset().union(*map(outermost_limits, root.inputs))
        case _:
            return frozenset()


def counted_input(node: Node, context: ExecutionContext) -> Limit | None:
    """Return the outermost LIMIT whose input the child of `node` is, where it is counted: `node` is
    that LIMIT, or the sort below it. None for other nodes."""
    if isinstance(node, Limit):
        counted = id(node) in context.counted_limits and not isinstance(node.child, Sort)
        return node if counted else None
    return context.counted_sorts.get(id(node))


def prepare_counts(root: Node, context: ExecutionContext) -> None:
    """Let the query count the rows before its outermost LIMIT, for `rows_before_limit_at_least`."""
    context.counted_limits = outermost_limits(root)
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Limit) and id(node) in context.counted_limits:
            context.statistics.count_before_limit(0)
            if isinstance(node.child, Sort):
                context.counted_sorts[id(node.child)] = node
            continue
        stack.extend(node.children())


def counting(
    limit: Limit, rows: Iterator[pa.RecordBatch], child: Node, context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the input of a LIMIT, or of the sort below it, unchanged, and count its rows in the statistics.

    Of a source of numbers only the rows that LIMIT and OFFSET take are counted, as in ClickHouse, which makes no
    others."""
    is_source = limit.child is child and isinstance(_below_projections(child), Numbers)
    most = limit.count + limit.offset if is_source and limit.count is not None else None
    passed = 0
    for batch in rows:
        counted = batch.num_rows if most is None else min(batch.num_rows, most - passed)
        passed += counted
        context.statistics.count_before_limit(counted)
        yield batch


def _below_projections(node: Node) -> Node:
    """Return the node below the projections, the given one if it is none."""
    while isinstance(node, Project):
        node = node.child
    return node
