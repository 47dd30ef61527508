"""Runs a plan: one operator a node, batches pulled from the root.

run(plan, context)         -> Result: its first batch is computed, the rest while it is read
run_node(node, context)    -> the batches of one node
run_simple(plan, context)  -> all rows of a small plan of a view, at the least cost
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.compute.stages import checked
from olapdb.config import Settings, tuning
from olapdb.errors import InternalError
from olapdb.execute.operators.aggregate import aggregate_batches, coded_keys, totals_batches
from olapdb.execute.operators.before_limit import counted_input, counting, prepare_counts
from olapdb.execute.operators.coded_inputs import coded_numbers, shared_texts, short_decimals
from olapdb.execute.operators.filter import filter_batches
from olapdb.execute.operators.join_outputs import EVERYTHING, Wanted, wanted_by
from olapdb.execute.operators.known_extremes import known_extremes
from olapdb.execute.operators.late_rows import late_limit_batches, late_top_batches
from olapdb.execute.operators.limit import limit_batches, limit_by_batches
from olapdb.execute.operators.project import project_batches
from olapdb.execute.operators.projected_groups import projected_groups
from olapdb.execute.operators.scan import counted_batch, scan_batches
from olapdb.execute.operators.sort import RowsOfGroups, sort_batches
from olapdb.execute.operators.sources import (
    loop_batches,
    numbers_batches,
    system_batches,
    values_batches,
)
from olapdb.execute.operators.subqueries import RunNode, answer_subqueries, with_large_sets_joined
from olapdb.functions.kernels.decimal_width import has_short_form
from olapdb.lazy import lazy_modules
from olapdb.plan import nodes
from olapdb.plan.expressions import columns_of
from olapdb.plan.totals import totals_plan
from olapdb.plan.tree import expressions_of, subqueries_of, walk_nodes
from olapdb.result import Result, close_iterator
from olapdb.types import String, plain

if TYPE_CHECKING:
    from olapdb.execute.operators import (
        array_join,
        distinct,
        files,
        fill,
        first_groups,
        join,
        paste,
        primes,
        recursion,
        relative_limit,
        shared,
        union,
        window,
    )
else:
    (
        array_join,
        distinct,
        files,
        fill,
        first_groups,
        join,
        paste,
        primes,
        recursion,
        relative_limit,
        shared,
        union,
        window,
    ) = lazy_modules(
        "olapdb.execute.operators",
        "array_join",
        "distinct",
        "files",
        "fill",
        "first_groups",
        "join",
        "paste",
        "primes",
        "recursion",
        "relative_limit",
        "shared",
        "union",
        "window",
    )


def run(plan: nodes.Plan, context: ExecutionContext) -> Result:
    """Return the plan's rows under the user's column names.

    Subqueries run and the first batch is computed before this returns, so most errors surface here,
    the others while the result is read.  The end of the result ends the context's threads.
    """
    try:
        answer_subqueries(plan.root, context, run_node)
        plan = _with_large_sets_joined(plan, context)
        batches = run_node(plan.root, context)
        first = next(batches, None)
        context.check()  # a slow first batch is checked here, the others before each next one
        totals = _totals(plan, context)
    except BaseException:
        context.close()
        raise
    result = Result(
        plan.names, plan.types, _output(plan, first, batches), context.statistics, totals=totals
    )
    result.on_close(context.close)
    return result


def _with_large_sets_joined(plan: nodes.Plan, context: ExecutionContext) -> nodes.Plan:
    """Return the plan with joins in place of the sets of IN that did not fit the memory."""
    root = with_large_sets_joined(plan.root, context)
    if root is plan.root:
        return plan
    if context.counted_limits:
        prepare_counts(root, context)
    return replace(plan, root=root)


def _totals(plan: nodes.Plan, context: ExecutionContext) -> pa.RecordBatch | None:
    """Return the row of WITH TOTALS with the output's columns, None for a query without it."""
    totals = totals_plan(plan.root)
    if totals is None:
        return None
    rows = pa.Table.from_batches(list(run_node(totals, context)), totals.arrow_schema)
    return _select(rows.combine_chunks().to_batches()[0], [field for field, _ in plan.output])


def is_simple(plan: nodes.Plan) -> bool:
    """Return whether `run_simple` can run the plan: projections, filters and aggregations over one
    scan, without subqueries."""
    return all(
        isinstance(node, nodes.Scan | nodes.Project | nodes.Filter | nodes.Aggregate)
        and not any(True for _ in subqueries_of(node))
        for node in walk_nodes(plan.root)
    )


def run_simple(plan: nodes.Plan, context: ExecutionContext) -> pa.Table:
    """Return all rows of a simple plan, as `run` does, and end the context's threads.

    It is for small inputs: the operators are the same, but nothing checks the schemas of their
    batches or looks for subqueries, and the rows need no `Result`."""
    fields = [field for field, _ in plan.output]
    try:
        batches = [_select(batch, fields) for batch in _operator(plan.root, context)]
    finally:
        context.close()
    schema = pa.schema([(f, t.arrow) for f, t in zip(fields, plan.types, strict=True)])
    return pa.Table.from_batches(batches, schema)


def run_node(node: nodes.Node, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    """Yield the node's batches, each of its schema and of at most a batch's rows.

    Subqueries of its expressions must have been answered (`answer_subqueries`)."""
    return context.watched(checked(_operator(node, context, run_node), node), node)


def _operator(
    node: nodes.Node, context: ExecutionContext, run_child: RunNode | None = None
) -> Iterator[pa.RecordBatch]:
    """Start the operator of a node; `run_child(child, context)` yields its input, by default
    unchecked."""
    run_child = run_child or _operator
    match node:
        case nodes.Scan():
            return scan_batches(node, context)
        case nodes.Filter(child=child):
            return filter_batches(node, run_child(child, context), context)
        case nodes.Project(child=nodes.Join() as join):
            rows = _joined(join, wanted_by(node, ()), context, run_child)
            return project_batches(node, context.watched(rows, join), context)
        case nodes.Project(child=child):
            return project_batches(node, run_child(child, context), context)
        case nodes.Aggregate():
            return _aggregated(node, context, run_child)
        case nodes.TotalsRow(aggregate=aggregate):
            return totals_batches(node, lambda: run_child(aggregate, context), context)
        case nodes.SystemScan():
            return system_batches(node, context)
        case nodes.Values():
            return values_batches(node, context)
        case nodes.FileScan():
            return files.file_batches(node, context)
        case nodes.Numbers():
            return numbers_batches(node, context)
        case nodes.Primes():
            return primes.primes_batches(node, context)
        case nodes.Loop(child=child):
            return loop_batches(lambda: run_child(child, context), context)
        case nodes.ArrayJoin(child=child):
            return array_join.array_join_batches(node, run_child(child, context), context)
        case nodes.Join():
            return _joined(node, EVERYTHING, context, run_child)
        case nodes.Sort(child=child) if limit := counted_input(node, context):
            rows = counting(limit, run_child(child, context), child, context)
            return sort_batches(node, rows, context)
        case nodes.Limit(child=child) if limit := counted_input(node, context):
            return limit_batches(
                node, counting(limit, run_child(child, context), child, context), context
            )
        case nodes.Sort(child=child):
            late = late_top_batches(node, context)
            return late or sort_batches(node, run_child(child, context), context)
        case nodes.Fill(child=child):
            return fill.fill_batches(node, run_child(child, context), context)
        case nodes.Window(child=child):
            return window.window_batches(node, run_child(child, context), context)
        case nodes.Limit(child=nodes.Aggregate() as groups, count=int(), ties=()) if (
            _may_keep_first(node, groups, context)
        ):
            rows = _aggregated(groups, context, run_child, node.offset + (node.count or 0))
            rows = context.watched(checked(rows, groups), groups)
            return limit_batches(node, rows, context)
        case nodes.Limit(
            child=nodes.LimitBy(child=nodes.Sort(limit=None) as sort) as limit_by, count=int()
        ):
            rows = _sorted_for(sort, limit_by, node, context, run_child)
            rows = context.watched(
                checked(limit_by_batches(limit_by, rows, context), limit_by), limit_by
            )
            return limit_batches(node, rows, context)
        case nodes.Limit(child=child):
            late = late_limit_batches(node, context)
            return late or limit_batches(node, run_child(child, context), context)
        case nodes.RelativeLimit(child=child):
            return relative_limit.relative_limit_batches(node, run_child(child, context), context)
        case nodes.Paste(left=left, right=right):
            return paste.paste_batches(
                node, run_child(left, context), run_child(right, context), context
            )
        case nodes.LimitBy(child=nodes.Sort(limit=None) as sort):
            rows = _sorted_for(sort, node, None, context, run_child)
            return limit_by_batches(node, rows, context)
        case nodes.LimitBy(child=child):
            return limit_by_batches(node, run_child(child, context), context)
        case nodes.Distinct(child=child):
            rows = _distinct_input(node, child, context, run_child)
            return distinct.distinct_batches(node, rows, context)
        case nodes.RecursiveUnion():
            return recursion.recursive_batches(node, context, run_child)
        case nodes.WorkingTable():
            return recursion.working_batches(node, context)
        case nodes.Shared():
            return shared.shared_batches(node, context, run_child)
        case nodes.Union(inputs=inputs):
            return union.union_batches(
                node, [run_child(child, context) for child in inputs], context
            )
        case nodes.SetDifference(left=left, right=right):
            return distinct.set_difference_batches(
                node, run_child(left, context), run_child(right, context), context
            )
        case _:
            raise InternalError(f"The executor does not know {type(node).__name__}.")


def _sorted_for(
    node: nodes.Sort,
    limit_by: nodes.LimitBy,
    limit: nodes.Limit | None,
    context: ExecutionContext,
    run_child: RunNode,
) -> Iterator[pa.RecordBatch]:
    """Yield the sorted rows of which a LIMIT BY, and a LIMIT above it, keep some; others may be left out."""
    wanted = RowsOfGroups(limit_by, limit)
    rows = sort_batches(node, run_child(node.child, context), context, wanted)
    return context.watched(checked(rows, node), node)


def _aggregated(
    node: nodes.Aggregate, context: ExecutionContext, run_child: RunNode, groups_max: int = 0
) -> Iterator[pa.RecordBatch]:
    """Yield the groups of an aggregation. If `groups_max` is not 0, yield that many of them at least;
    the others may be left out."""
    extremes = known_extremes(node, context)
    if extremes is not None:
        return aggregate_batches(node, iter(()), context, extremes)
    projected = projected_groups(node, context)
    rows = _input(node, node.child, context, run_child)
    if not groups_max or projected is not None:
        return aggregate_batches(node, rows, context, projected)
    context.note(node, "First groups: rows of others are dropped before they are grouped")
    first = first_groups.FirstGroups(node, groups_max)
    return aggregate_batches(node, rows, context, first=first)


def _may_keep_first(node: nodes.Limit, groups: nodes.Aggregate, context: ExecutionContext) -> bool:
    """Return whether only the first groups need be made: no other clause or limit counts the groups, and they are
    not those of a view's block."""
    settings = Settings.of(context.settings)
    count = node.offset + (node.count or 0)
    return (
        0 < count <= tuning.LATE_ROWS_MAX
        and bool(groups.keys)
        and not groups.sets
        and groups.totals is None
        and not context.blocks
        and not settings.integer("max_rows_to_group_by")
    )


def _input(
    node: nodes.Aggregate, child: nodes.Node, context: ExecutionContext, run_child: RunNode
) -> Iterator[pa.RecordBatch]:
    """Yield the input of an aggregation.

    It is one batch without columns if only the number of rows matters. Text columns that are only
    keys come as dictionaries if they are stored so, others that the aggregation can take so if the
    column cache or a join has them so; both differ from the child's schema.
    """
    match child:
        case nodes.Scan():
            pass
        case nodes.Join():
            read = frozenset().union(*map(columns_of, expressions_of(node)))
            wanted = Wanted(read, _compact(node))
            return context.watched(_joined(child, wanted, context, run_child), child)
        case nodes.Project(child=nodes.Join() as join):
            wanted = wanted_by(child, _compact(node))
            rows = context.watched(_joined(join, wanted, context, run_child), join)
            return context.watched(project_batches(child, rows, context, wanted.compact), child)
        case _:
            return run_child(child, context)
    if (block := context.blocks.get(child.table.id)) is not None:
        if pa.DictionaryType not in map(type, block.schema.types):
            return run_child(child, context)
    elif (counted := counted_batch(child, context)) is not None:
        return context.watched(iter((counted,)), child)
    coded = coded_keys(node)
    shared = shared_texts(node) | short_decimals(node) | coded_numbers(node)
    if not coded and not shared:
        return run_child(child, context)
    if coded:
        context.note(child, "Codes: text keys come as the parts' dictionaries have them")
    return context.watched(scan_batches(child, context, coded, shared), child)


def _compact(node: nodes.Aggregate) -> frozenset[str]:
    """Return the columns of its input that an aggregation takes in a compact form."""
    return coded_keys(node) | shared_texts(node) | short_decimals(node)


def _distinct_input(
    node: nodes.Distinct, child: nodes.Node, context: ExecutionContext, run_child: RunNode
) -> Iterator[pa.RecordBatch]:
    """Yield the input of a DISTINCT over all columns. Texts of a stored table come as dictionaries where
    the column cache has them so, which differs from the child's schema."""
    project = child if isinstance(child, nodes.Project) else None
    scan = child if project is None else project.child
    if node.keys or not isinstance(scan, nodes.Scan):
        return run_child(child, context)
    texts = frozenset(field.name for field in scan.schema if isinstance(plain(field.type), String))
    if project is None:
        return context.watched(scan_batches(scan, context, (), texts), scan)
    wanted = wanted_by(project, frozenset(name for name, _ in project.expressions))
    coded = wanted.compact & texts
    rows = context.watched(scan_batches(scan, context, (), coded), scan)
    return context.watched(project_batches(project, rows, context, coded), project)


def _joined(
    node: nodes.Join, wanted: Wanted, context: ExecutionContext, run_child: RunNode
) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of a join. They may lack columns that are not wanted, and so may the rows of
    joins on its left side that neither the join nor anything above reads."""
    left_names = {field.name for field in node.left.schema}
    below = wanted.of_left(node)

    def start(plan: nodes.Node) -> Iterator[pa.RecordBatch]:
        """Run the left side of the join, or a plan that replaces a side; of the left side columns that nothing reads
        may be missing."""
        is_left = left_names == {field.name for field in plan.schema}
        if below.columns is None or not is_left:
            return run_child(plan, context)
        if isinstance(plan, nodes.Join):
            return context.watched(_joined(plan, below, context, run_child), plan)
        fields = {f.name for f in plan.schema if has_short_form(f.type.arrow)}
        if isinstance(plan, nodes.Scan) and below.compact & fields:
            rows = scan_batches(plan, context, (), below.compact & fields)
            return context.watched(rows, plan)
        return run_child(plan, context)

    return join.join_batches(node, start, run_child(node.right, context), context, wanted)


def _output(
    plan: nodes.Plan, first: pa.RecordBatch | None, rest: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield batches of the output's columns, in their order; names may repeat from here on."""
    fields = [field for field, _ in plan.output]
    try:
        if first is not None:
            yield _select(first, fields)
        for batch in rest:
            yield _select(batch, fields)
    finally:
        close_iterator(rest)


def _select(batch: pa.RecordBatch, fields: list[str]) -> pa.RecordBatch:
    """Return the named columns of the batch, in that order."""
    return pa.RecordBatch.from_arrays([batch.column(name) for name in fields], names=fields)
