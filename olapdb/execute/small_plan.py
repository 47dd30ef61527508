"""Plans of views over one small block, compiled once to a chain of functions over one batch.

Hundreds of views may fire on an INSERT of one row. Pipelines, threads, cursors and merges of partials would
cost each of them more than its rows do, so none is made here. Expressions, states and results are those of
the operators.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from olapdb.compute.batches import broadcast, filter_rows, make_batch, rows_only, single_chunk
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate, evaluate_predicate
from olapdb.compute.group_codes import factorise
from olapdb.execute.operators.aggregate import distinct_states
from olapdb.execute.operators.coded_inputs import state_of
from olapdb.execute.operators.partials import Partial, empty_group, finalized, first_of_groups
from olapdb.execute.operators.row_filter import RowFilter
from olapdb.execute.operators.row_limits import check_rows
from olapdb.execute.operators.scan import block_column, scan_conditions, scan_sources
from olapdb.plan import nodes
from olapdb.plan.expressions import ColumnRef, Expression
from olapdb.plan.tree import subqueries_of, walk_nodes
from olapdb.records import dataclass

Step = Callable[[pa.RecordBatch, ExecutionContext], pa.RecordBatch]


@dataclass(frozen=True)
class SmallPlan:
    """A plan of one scan, and the steps above it. Thread-safe."""

    scan: nodes.Scan
    steps: tuple[Step, ...]
    fields: tuple[str, ...]

    def run(self, block: pa.Table, context: ExecutionContext) -> tuple[list[pa.Array], int]:
        """Return the output columns of the plan over a block of its scan's table, and the number of output rows. The
        caller has checked the block by `takes`. Raises the errors of functions, and those of the context's limits."""
        try:
            context.check()
            context.count_read(block.num_rows, block.nbytes)
            batch = _scanned(self.scan, block, context)
            for step in self.steps:
                batch = step(batch, context)
            return [batch.column(name) for name in self.fields], batch.num_rows
        finally:
            context.close()


def small_plan(plan: nodes.Plan) -> SmallPlan | None:
    """Return the plan compiled; None unless it consists of projections, filters and aggregations without
    grouping sets over one scan, without subqueries."""
    steps: list[Step] = []
    node = plan.root
    if any(True for below in walk_nodes(node) for _ in subqueries_of(below)):
        return None
    while not isinstance(node, nodes.Scan):
        step = _step(node)
        if step is None or not isinstance(node, nodes.Project | nodes.Filter | nodes.Aggregate):
            return None
        steps.append(step)
        node = node.child
    return SmallPlan(node, tuple(reversed(steps)), tuple(name for name, _ in plan.output))


def takes(block: pa.Table, context: ExecutionContext) -> bool:
    """Return whether a small plan can run over the block as one batch: it has at most a batch's rows, and no column is
    a dictionary."""
    return block.num_rows <= context.batch_rows and pa.DictionaryType not in map(
        type, block.schema.types
    )


def _step(node: nodes.Node) -> Step | None:
    """Return the function (batch, context) -> batch that does a Project, a Filter, or an Aggregate without grouping
    sets and totals; None for other nodes."""
    match node:
        case nodes.Project():
            return _Projection(node).run
        case nodes.Filter(predicate=predicate):
            return lambda batch, context: filter_rows(
                batch, evaluate_predicate(predicate, batch, context.environment, context.subqueries)
            )
        case nodes.Aggregate() if not node.sets and node.totals is None:
            return _Aggregation(node).run
        case _:
            return None


def _scanned(scan: nodes.Scan, block: pa.Table, context: ExecutionContext) -> pa.RecordBatch:
    """Return the scan's columns of the block's rows that meet its conditions."""
    sources = scan_sources(scan)
    if not sources:
        return rows_only(block.num_rows)
    columns = [block_column(source, block, scan) for source in sources]
    batch = pa.RecordBatch.from_arrays(columns, names=[source.unique for source in sources])
    conditions = scan_conditions(scan)
    if not conditions:
        return batch
    keep = RowFilter(conditions, context).mask(batch)
    if not scan.columns:
        return rows_only(batch.num_rows if keep is None else keep.true_count)
    if keep is None or keep.true_count == batch.num_rows:
        return batch
    return filter_rows(batch, keep)


def _values(expression: Expression, batch: pa.RecordBatch, context: ExecutionContext) -> pa.Array:
    """Return the value of the expression for each row of the batch."""
    if isinstance(expression, ColumnRef):
        return single_chunk(batch.column(expression.name))
    value = evaluate(expression, batch, context.environment, context.subqueries)
    return broadcast(value, batch.num_rows, expression.type)


@dataclass(frozen=True)
class _Projection:
    """The expressions of a Project over one batch."""

    node: nodes.Project

    def run(self, batch: pa.RecordBatch, context: ExecutionContext) -> pa.RecordBatch:
        """Return the values of the expressions."""
        columns = [_values(expression, batch, context) for _, expression in self.node.expressions]
        if not columns:
            return rows_only(batch.num_rows)
        return pa.RecordBatch.from_arrays(columns, schema=self.node.arrow_schema)


class _Aggregation:
    """A GROUP BY over one batch, whose groups need no merge."""

    def __init__(self, node: nodes.Aggregate) -> None:
        self._node = node
        self._calls, self._positions = distinct_states([call for _, call in node.aggregates])

    def run(self, batch: pa.RecordBatch, context: ExecutionContext) -> pa.RecordBatch:
        """Return one row for each group."""
        node, rows = self._node, batch.num_rows
        if not rows:
            return self._without_rows()
        keys = [_values(expression, batch, context) for _, expression in node.keys]
        arguments = [[_values(a, batch, context) for a in call.arguments] for call in self._calls]
        groups = factorise(keys, rows)
        states = [
            state_of(call, values, groups.groups)
            for call, values in zip(self._calls, arguments, strict=True)
        ]
        partial = Partial(first_of_groups(keys, groups), states, groups.count)
        with context.memory.account("GROUP BY") as account:
            account.set(partial.nbytes)
            if node.limited:
                check_rows(groups.count, "max_rows_to_group_by", context)
            return finalized(node, partial, self._positions)

    def _without_rows(self) -> pa.RecordBatch:
        """Return the row of an aggregation without keys over no rows, or no row."""
        node = self._node
        if node.keys or node.empty_without_rows:
            return make_batch([pa.nulls(0, f.type.arrow) for f in node.schema], node.schema, 0)
        return finalized(node, empty_group(self._calls), self._positions)
