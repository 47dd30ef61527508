"""Runs a plan: one operator a node, batches pulled from the root.

run(plan, context)       -> Result, its first batch made, the rest while it is read
run_node(node, context)  -> the batches of a node of the plan
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.compute.batches import checked
from olapdb.compute.context import ExecutionContext
from olapdb.errors import InternalError
from olapdb.execute.operators.aggregate import aggregate_batches, coded_keys
from olapdb.execute.operators.array_join import array_join_batches
from olapdb.execute.operators.distinct import distinct_batches, set_difference_batches
from olapdb.execute.operators.filter import filter_batches
from olapdb.execute.operators.join import join_batches
from olapdb.execute.operators.limit import limit_batches, limit_by_batches
from olapdb.execute.operators.project import project_batches
from olapdb.execute.operators.scan import counted_batch, scan_batches
from olapdb.execute.operators.sort import sort_batches
from olapdb.execute.operators.sources import numbers_batches, system_batches, values_batches
from olapdb.execute.operators.subqueries import answer_subqueries
from olapdb.execute.operators.union import union_batches
from olapdb.execute.operators.window import window_batches
from olapdb.plan import nodes
from olapdb.plan.tree import subqueries_of
from olapdb.result import Result


def run(plan: nodes.Plan, context: ExecutionContext) -> Result:
    """The plan's rows under the user's column names.

    Subqueries are run and the first batch is made before this returns, so most errors surface
    here; later ones while the result is read.  The result ends the context's threads.
    """
    try:
        answer_subqueries(plan.root, context, run_node)
        batches = run_node(plan.root, context)
        first = next(batches, None)
    except BaseException:
        context.close()
        raise
    result = Result(plan.names, plan.types, _output(plan, first, batches), context.statistics)
    result.on_close(context.close)
    return result


def is_plain(plan: nodes.Plan) -> bool:
    """Whether `run_plain` runs the plan: projections, filters and one GROUP BY over a scan, without
    subqueries."""
    node = plan.root
    while not isinstance(node, nodes.Scan):
        if not isinstance(node, nodes.Project | nodes.Filter | nodes.Aggregate):
            return False
        if any(True for _ in subqueries_of(node)):
            return False
        node = node.children()[0]
    return not any(True for _ in subqueries_of(node))


def run_plain(plan: nodes.Plan, context: ExecutionContext) -> pa.Table:
    """All rows of a plan that is plain, as `run` gives them: for small inputs, of which the way
    through the operators would take most of the time. Ends the context's threads."""
    fields = [field for field, _ in plan.output]
    try:
        batches = [_chosen(batch, fields) for batch in _plain_batches(plan.root, context)]
    finally:
        context.close()
    schema = pa.schema([(f, t.arrow) for f, t in zip(fields, plan.types, strict=True)])
    return pa.Table.from_batches(batches, schema)


def _plain_batches(node: nodes.Node, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    match node:
        case nodes.Scan():
            return scan_batches(node, context)
        case nodes.Filter(child=child):
            return filter_batches(node, _plain_batches(child, context), context)
        case nodes.Project(child=child):
            return project_batches(node, _plain_batches(child, context), context)
        case nodes.Aggregate(child=child):
            return aggregate_batches(node, _plain_batches(child, context), context)
        case _:
            raise InternalError(f"A plain plan with {type(node).__name__}.")


def run_node(node: nodes.Node, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    """The node's batches, each of its schema and of at most a batch's rows. Subqueries of its
    expressions must have been answered (`answer_subqueries`)."""
    return checked(_operator(node, context), node)


def _operator(node: nodes.Node, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    match node:
        case nodes.Scan():
            return scan_batches(node, context)
        case nodes.SystemScan():
            return system_batches(node, context)
        case nodes.Values():
            return values_batches(node, context)
        case nodes.Numbers():
            return numbers_batches(node, context)
        case nodes.Filter(child=child):
            return filter_batches(node, run_node(child, context), context)
        case nodes.Project(child=child):
            return project_batches(node, run_node(child, context), context)
        case nodes.ArrayJoin(child=child):
            return array_join_batches(node, run_node(child, context), context)
        case nodes.Aggregate(child=child):
            return aggregate_batches(node, _aggregated(node, child, context), context)
        case nodes.Join(left=left, right=right):
            return join_batches(node, run_node(left, context), run_node(right, context), context)
        case nodes.Sort(child=child):
            return sort_batches(node, run_node(child, context), context)
        case nodes.Window(child=child):
            return window_batches(node, run_node(child, context), context)
        case nodes.Limit(child=child):
            return limit_batches(node, run_node(child, context), context)
        case nodes.LimitBy(child=child):
            return limit_by_batches(node, run_node(child, context), context)
        case nodes.Distinct(child=child):
            return distinct_batches(node, run_node(child, context), context)
        case nodes.Union(inputs=inputs):
            return union_batches(node, [run_node(child, context) for child in inputs], context)
        case nodes.SetDifference(left=left, right=right):
            return set_difference_batches(
                node, run_node(left, context), run_node(right, context), context
            )
        case _:
            raise InternalError(f"The executor does not know {type(node).__name__}.")


def _aggregated(
    node: nodes.Aggregate, child: nodes.Node, context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """The input of an aggregation; one batch where only the number of rows matters.  Text that
    it only groups by comes as dictionaries, which the child's schema does not say."""
    if not isinstance(child, nodes.Scan):
        return run_node(child, context)
    counted = counted_batch(child, context)
    if counted is not None:
        return iter((counted,))
    coded = coded_keys(node, child)
    return scan_batches(child, context, coded) if coded else run_node(child, context)


def _output(
    plan: nodes.Plan, first: pa.RecordBatch | None, rest: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Batches of the output's columns, in its order; names may repeat from here on."""
    fields = [field for field, _ in plan.output]
    try:
        if first is not None:
            yield _chosen(first, fields)
        for batch in rest:
            yield _chosen(batch, fields)
    finally:
        close = getattr(rest, "close", None)
        if close is not None:
            close()


def _chosen(batch: pa.RecordBatch, fields: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([batch.column(name) for name in fields], names=fields)
