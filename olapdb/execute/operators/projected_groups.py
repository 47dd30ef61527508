"""GROUP BY from aggregating projections: the states that parts hold are merged, not made anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

from olapdb.compute.batches import single_chunk
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.group_codes import grouped
from olapdb.engine.layout import layout_of_query
from olapdb.engine.projections import KEY, STATE, BoundProjection, over_columns
from olapdb.execute.operators.part_scan import Task, bytes_of_value, tasks_of
from olapdb.execute.operators.partials import Partial
from olapdb.execute.operators.scan import TaskReader, scan_conditions, scan_sources
from olapdb.execute.pruning.granule_selection import PartSelection, Selector, live_parts
from olapdb.execute.pruning.projections import (
    may_use_projections,
    projection_lines,
    select_projection,
)
from olapdb.plan.conditions import all_of_any
from olapdb.plan.expressions import (
    AggregateCall,
    ColumnRef,
    Expression,
    columns_of,
    is_pure,
    transform,
)
from olapdb.plan.nodes import Aggregate, Node, Project, Scan
from olapdb.records import dataclass

KnownGroups: TypeAlias = Callable[[Sequence[AggregateCall]], Iterator[Partial]]
"""Gives groups with the states of these calls."""


def projected_groups(node: Aggregate, context: ExecutionContext) -> KnownGroups | None:
    """Return the groups that projections of some parts hold; the scan then leaves these parts out.
    None if no projection serves, or the parts themselves have fewer rows to read."""
    scan = scan_below(node.child)
    if scan is None or not may_use_projections(scan, context):
        return None
    context.left_out.pop(id(scan), None)
    best = chosen_projections(node, scan, context)
    if not best:
        return None
    for line in projection_lines([selection for _, selection in best.values()]):
        context.note(scan, line)
    context.left_out[id(scan)] = frozenset(best)

    def partials(calls: Sequence[AggregateCall]) -> Iterator[Partial]:
        """Yield the groups of each piece of the projections: one projection after the other, each in the order of the
        parts that are read from it."""
        for query in dict.fromkeys(q for q, _ in best.values()):
            own = [selection for q, selection in best.values() if q is query]
            reader = TaskReader(query.scan, context)

            def groups(
                task: Task, query: _ProjectedQuery = query, reader: TaskReader = reader
            ) -> Partial:
                """Return the groups that the projection's rows of one task have, with the states of `calls`."""
                return query.partial(reader.read(task), calls, context)

            row_bytes = sum(map(bytes_of_value, query.scan.types))
            yield from context.parallel(
                groups, tasks_of([s for s in own if s.group_rows], row_bytes, context)
            )

    return partials


def chosen_projections(
    node: Aggregate, scan: Scan, context: ExecutionContext
) -> dict[str, tuple[_ProjectedQuery, PartSelection]]:
    """Return the projection to read in place of a part, by the part's id, where it has fewer rows
    to read."""
    if not scan_sources(scan) and not scan_conditions(scan):
        return {}  # the parts know their numbers of rows
    layout = layout_of_query(scan.table, context.require_store().cache, context.environment)
    queries = [
        query
        for bound in layout.projections
        if bound.definition.kind == "Aggregate"
        and (query := _ProjectedQuery.of(bound, node, scan)) is not None
    ]
    if not queries:
        return {}
    parts = live_parts(scan, context)
    condition = all_of_any(scan_conditions(scan))
    rows = {
        selection.part.id: sum(selection.group_rows)
        for selection in Selector(scan, condition, layout, context).select(parts).parts
    }
    best: dict[str, tuple[_ProjectedQuery, PartSelection]] = {}
    for query in queries:
        wanted = [part for part in parts if rows.get(part.id)]
        by_part = select_projection(query.scan, query.scan.predicate, query.bound, wanted, context)
        for part_id, selection in by_part.items():
            to_read = sum(selection.group_rows)
            if to_read < rows[part_id]:
                rows[part_id] = to_read
                best[part_id] = (query, selection)
    return best


def scan_below(node: Node) -> Scan | None:
    """Return the scan below any number of Projects, None if another node is between or below them."""
    while isinstance(node, Project):
        node = node.child
    return node if isinstance(node, Scan) else None


@dataclass(frozen=True, eq=False)
class _ProjectedQuery:
    """An aggregation over the rows of an aggregating projection: its keys as expressions over the
    projection's columns, and `scan` of these columns with the conditions over them."""

    bound: BoundProjection
    node: Aggregate
    keys: tuple[Expression, ...]
    scan: Scan

    @staticmethod
    def of(bound: BoundProjection, node: Aggregate, scan: Scan) -> _ProjectedQuery | None:
        """Return the query over the projection. None if the projection lacks one of its keys,
        aggregates or conditions."""
        child = node.child
        keys = [over_columns(key, child) for _, key in node.keys]
        conditions = [over_columns(condition, scan) for condition in scan_conditions(scan)]
        if not all(map(is_pure, (*keys, *conditions))):
            return None
        for _, call in node.aggregates:
            arguments = tuple(over_columns(argument, child) for argument in call.arguments)
            if _state_of(call, arguments, bound) is None:
                return None
        places = {key: ColumnRef(key.type, f"{KEY}{at}") for at, key in enumerate(bound.keys)}
        own_names = {column.name for column in bound.shape.columns}
        changed = [transform(e, places.get) for e in (*keys, *conditions)]
        if any(not columns_of(e) <= own_names for e in changed):
            return None
        if any(columns_of(e) & own_names for e in (*keys, *conditions)):
            return None  # a column of the table has the name of one of the projection
        columns = tuple((column.name, column.name) for column in bound.shape.columns)
        over_projection = Scan(
            bound.shape,
            columns,
            tuple(column.type for column in bound.shape.columns),
            all_of_any(changed[len(keys) :]),
        )
        return _ProjectedQuery(bound, node, tuple(changed[: len(keys)]), over_projection)

    def partial(
        self, batch: pa.RecordBatch, calls: Sequence[AggregateCall], context: ExecutionContext
    ) -> Partial:
        """Return the groups of a batch of the projection's rows, with the states of `calls`."""
        keys = [single_chunk(evaluate_array(key, batch, context.environment)) for key in self.keys]
        groups, keys = grouped(keys, batch.num_rows)
        states = []
        for call in calls:
            arguments = tuple(over_columns(a, self.node.child) for a in call.arguments)
            at = _state_of(call, arguments, self.bound)
            held = single_chunk(batch.column(f"{STATE}{at}"))
            states.append(single_chunk(call.aggregate.merge(held, groups)))
        return Partial(keys, states, groups.count)


def _state_of(
    call: AggregateCall, arguments: tuple[Expression, ...], bound: BoundProjection
) -> int | None:
    """Return the number of the projection's state that is the call's, None if it has none."""
    for at, own in enumerate(bound.calls):
        same_type = own.aggregate.state_type == call.aggregate.state_type
        if same_type and own.arguments == arguments:
            return at
    return None
