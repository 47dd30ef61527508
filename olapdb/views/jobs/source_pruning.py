"""Pruning of source parts that cannot reach a slice of the target.

A slice is a partition of the target, so its rows fulfil `partition key = value`. The condition is
put around the view's own SELECT. The optimizer pushes it down as far as allowed; where it reaches
the scan of the source, it prunes parts as in any query:

    view     SELECT day, origin, count() FROM flights GROUP BY day, origin
    target   PARTITION BY toYYYYMM(day), slice 201307
    query    SELECT * FROM (view) WHERE toYYYYMM(day) = 201307
    pruned   flights' parts whose days lie outside July 2013

If no condition reaches the scan (a computed key, a value without a literal), nothing is pruned.
That costs time but not correctness: a chunk's result is filtered by slice anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from olapdb.bind import BindScope, bind_query
from olapdb.bind.syntax import walk
from olapdb.config import Settings
from olapdb.engine.layout import TableLayout
from olapdb.execute import ExecutionContext
from olapdb.execute.pruning.granule_selection import Selector
from olapdb.functions.base import Environment
from olapdb.model.part import Part
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.optimize import optimize
from olapdb.plan.nodes import Scan
from olapdb.plan.tree import all_scans
from olapdb.runtime.services import Services
from olapdb.sql import nodes
from olapdb.sql.parser import parse_expression, parse_query
from olapdb.types import DataType, Date, Date32, Integer, String, plain
from olapdb.views.proof.coverage import covered_parts


def parts_reaching_slices(
    view: MaterializedView, snapshot: Snapshot, slices: Iterable[str] | None, services: Services
) -> tuple[Part, ...]:
    """Return the covered parts of the view's source that may have made rows of these target
    partitions, in the order of `covered_parts`. `slices` None returns all of them."""
    covered = covered_parts(view, snapshot)
    if slices is None or view.unprovable:
        return covered
    target = snapshot.by_id(view.target_id)
    if not isinstance(target, Table) or not target.partition_key:
        return covered
    environment = Environment(zone=view.zone, database=view.database)
    if not _outputs_partition_key(view, target, environment):
        return covered
    condition = _condition(target, snapshot, frozenset(slices), environment)
    scan = None if condition is None else _pruning_scan(view, snapshot, condition, environment)
    if scan is None:
        return covered
    rows = [part for part in covered if part.rows]
    kept_ids = {
        part.id for part in _unpruned_parts(scan, rows, view, snapshot, services, environment)
    }
    return tuple(part for part in covered if part.id in kept_ids)


def parts_reaching_condition(
    view: MaterializedView,
    target: Table,
    condition: nodes.Expression,
    snapshot: Snapshot,
    services: Services,
) -> tuple[Part, ...] | None:
    """Return the parts of the view's source that may have made target rows that fulfil the
    condition, which is over the target's columns. Return None if this cannot be determined."""
    environment = Environment(zone=view.zone, database=view.database)
    used = {node.parts[0] for node in walk(condition) if isinstance(node, nodes.Identifier)}
    if view.unprovable or not _outputs_columns(view, target, used):
        return None
    scan = _pruning_scan(view, snapshot, condition, environment)
    if scan is None:
        return None
    parts = [part for part in snapshot.parts(view.source_id) if part.rows]
    return _unpruned_parts(scan, parts, view, snapshot, services, environment)


def _unpruned_parts(
    scan: Scan,
    parts: Sequence[Part],
    view: MaterializedView,
    snapshot: Snapshot,
    services: Services,
    environment: Environment,
) -> tuple[Part, ...]:
    """Return the parts that the scan's predicate does not prune."""
    context = ExecutionContext(
        snapshot=snapshot,
        store=services.store,
        settings=dict(view.settings),
        environment=environment,
    )
    selector = Selector(scan, scan.predicate, TableLayout(scan.table, environment), context)
    return tuple(selector.keep_parts(parts))


def _outputs_partition_key(view: MaterializedView, target: Table, environment: Environment) -> bool:
    """Return whether the view outputs all columns of the partition key in the target's own types: a
    cast could move a row to another partition."""
    return _outputs_columns(view, target, TableLayout(target, environment).partition_columns)


def _outputs_columns(view: MaterializedView, target: Table, used: Iterable[str]) -> bool:
    """Return whether the view outputs the `used` target columns in the target's own types."""
    view_types = {column.name: plain(column.type) for column in view.columns}
    columns = [target.column(name) for name in used]
    return all(
        column is not None and view_types.get(column.name) == plain(column.type)
        for column in columns
    )


def _condition(
    target: Table, snapshot: Snapshot, slices: frozenset[str], environment: Environment
) -> nodes.Expression | None:
    """Return `partition key = value` for any of the slices, over the target's columns. Return None
    if a value has no literal, or if neither a part nor a numeric partition id gives the value."""
    key = parse_expression(target.partition_key)
    keys = key.elements if isinstance(key, nodes.TupleLiteral) else (key,)
    types = [
        expression.type for expression in TableLayout(target, environment).partition_expressions
    ]
    if len(keys) != len(types):
        return None
    values: dict[str, tuple[object, ...]] = {}
    if len(types) == 1 and isinstance(types[0], Integer):
        values = {
            slice_id: (int(slice_id),)
            for slice_id in slices
            if slice_id.removeprefix("-").isdecimal()
        }
    values |= {
        part.partition_id: part.partition_value
        for part in snapshot.parts(target.id)
        if part.partition_id in slices
    }
    if values.keys() != slices or not values:
        return None
    alternatives = []
    for value in values.values():
        literals = [
            _literal(component, data_type)
            for component, data_type in zip(value, types, strict=True)
        ]
        equalities = [
            nodes.Function("equals", (element, literal))
            for element, literal in zip(keys, literals, strict=True)
            if literal is not None
        ]
        if len(equalities) != len(keys):
            return None
        alternatives.append(_conjoined("and", equalities))
    return _conjoined("or", alternatives)


def _conjoined(name: str, conditions: Sequence[nodes.Expression]) -> nodes.Expression:
    """Combine the conditions by the function `name`; return a single one unchanged."""
    return conditions[0] if len(conditions) == 1 else nodes.Function(name, tuple(conditions))


def _literal(value: object, data_type: DataType) -> nodes.Expression | None:
    """Return the SQL literal of a partition value; None if its type has none. Dates are days since
    1970-01-01."""
    match plain(data_type), value:
        case Integer(), int():
            return nodes.Literal(value, str(value))
        case String(), str():
            return nodes.Literal(value)
        case Date() | Date32(), int():
            day = date(1970, 1, 1) + timedelta(days=value)
            return nodes.Function("toDate32", (nodes.Literal(day.isoformat()),))
        case _:
            return None


def _pruning_scan(
    view: MaterializedView,
    snapshot: Snapshot,
    condition: nodes.Expression,
    environment: Environment,
) -> Scan | None:
    """Return the view's only scan of its source, after pushing the condition down to it. Return
    None if there are several scans or the scan has no predicate."""
    query = nodes.Select(
        columns=(nodes.Star(),),
        source=nodes.SubqueryRelation(parse_query(view.query), "made"),
        where=condition,
    )
    scope = BindScope(
        snapshot=snapshot,
        database=view.database,
        settings=Settings(dict(view.settings)),
        environment=environment,
    )
    plan = optimize(bind_query(query, scope))
    scans = [scan for scan in all_scans(plan.root) if scan.table.id == view.source_id]
    if len(scans) != 1 or scans[0].predicate is None:
        return None
    return scans[0]
