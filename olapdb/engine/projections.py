"""Projections of a table: what their queries mean, and their rows of a part.

A normal projection has columns of the table in another order. An aggregating one has a row for each
group, with the keys and the states of its aggregates; its finished results are never stored, so that
groups of several parts can be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb.bind import NO_SNAPSHOT, BindScope, bind_expression, bind_query
from olapdb.compute.batches import single_chunk
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.group_codes import grouped
from olapdb.compute.ordering import OrderColumn, sort_indices
from olapdb.errors import BadArguments, IllegalProjection, InternalError
from olapdb.functions.base import Environment
from olapdb.lazy import LazyModule
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.schema import Column, Engine, KeyItem, Projection, Table
from olapdb.optimize.optimizer import optimize
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import (
    AggregateCall,
    ColumnRef,
    Expression,
    columns_of,
    impure_calls,
    substitute,
)
from olapdb.plan.tree import subqueries_of, walk_nodes
from olapdb.records import dataclass
from olapdb.sql import nodes
from olapdb.sql.parser import parse
from olapdb.storage.part_plan import ProjectedRows
from olapdb.storage.projections import column_types
from olapdb.types import DataType

if TYPE_CHECKING:
    from olapdb.sql import format as sql_format
else:
    sql_format = LazyModule("olapdb.sql.format")

KEY, STATE = "key", "state"
"""How the columns of an aggregating projection are named: key0, key1, …, state0, …"""


@dataclass(frozen=True)
class BoundProjection:
    """A projection over the present columns of its table.

    `keys` order or group the rows; `calls` are the aggregates, () of a normal projection. `shape`
    is a table with the projection's columns, sorted by the keys."""

    definition: Projection
    table: Table
    keys: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]
    shape: Table

    @property
    def columns(self) -> tuple[str, ...]:
        """The table's columns that the keys and aggregates read."""
        read = [*self.keys, *(argument for call in self.calls for argument in call.arguments)]
        return tuple(sorted(frozenset().union(*(columns_of(e) for e in read))))

    @property
    def column_types(self) -> tuple[tuple[int, str], ...]:
        """The ids and types of `columns`."""
        return column_types(self.table, self.columns)

    def rows_of(self, rows: pa.Table, environment: Environment) -> ProjectedRows:
        """Return the projection's rows of the rows of a part, which has at least one."""
        names = [name for name in rows.column_names if name in self.columns] or [
            rows.column_names[0]
        ]
        batch = pa.RecordBatch.from_arrays(
            [single_chunk(rows.column(name)) for name in names], names=names
        )
        keys = [single_chunk(evaluate_array(key, batch, environment)) for key in self.keys]
        if self.definition.kind == "Normal":
            shaped = rows.select([column.name for column in self.shape.columns])
        else:
            shaped, keys = self._groups(batch, keys, environment)
        if keys:
            order = sort_indices([OrderColumn(key, False) for key in keys], shaped.num_rows)
            shaped = shaped.take(order)
        return ProjectedRows(
            self.shape, shaped.combine_chunks(), self.definition.query, self.column_types
        )

    def _groups(
        self, batch: pa.RecordBatch, keys: list[pa.Array], environment: Environment
    ) -> tuple[pa.Table, list[pa.Array]]:
        """Return the groups of a batch as rows of the shape, and their keys."""
        groups, keys = grouped(keys, batch.num_rows)
        states = [
            single_chunk(
                call.aggregate.state(
                    [single_chunk(evaluate_array(a, batch, environment)) for a in call.arguments],
                    groups,
                )
            )
            for call in self.calls
        ]
        columns = [
            values.cast(column.type.arrow) if values.type != column.type.arrow else values
            for values, column in zip([*keys, *states], self.shape.columns, strict=True)
        ]
        return pa.table(columns, names=[column.name for column in self.shape.columns]), keys


def define_projection(definition: nodes.ProjectionDefinition, table: Table) -> Projection:
    """Return the projection that the definition describes. Raises IllegalProjection, BadArguments
    and the errors of the binder for one that the table cannot have."""
    query = definition.query
    for clause, is_there in _REFUSED.items():
        if is_there(query):
            raise IllegalProjection(
                f"The projection {definition.name} has {clause}.",
                hint="It is SELECT columns ORDER BY expressions, or SELECT keys and aggregates"
                " GROUP BY keys, without FROM.",
                position=definition.position,
            )
    ordered = ", ".join(map(sql_format.to_sql, _order_expressions(query)))
    text = sql_format.to_sql(replace(query, order_by=())) + (
        f" ORDER BY {ordered}" if ordered else ""
    )
    _refuse_directions(definition.name, query)
    bound = bind_projection(Projection(definition.name, text, "Normal", ()), table)
    return bound.definition


def bind_projection(projection: Projection, table: Table) -> BoundProjection:
    """Bind the query of a projection over the present columns of the table; its kind and sorting
    key are found anew. Raises IllegalProjection."""
    shell = replace(table, projections=())
    snapshot = OverlaySnapshot.of(NO_SNAPSHOT, shell)
    scope = BindScope(snapshot=snapshot, database=table.database)
    query = _parsed(projection)
    name = nodes.TableName(table.name, table.database)
    read = replace(query, source=nodes.TableReference(name), order_by=())
    bound = optimize(bind_query(read, scope), splits_groups=False)
    tree = list(walk_nodes(bound.root))
    if any(True for node in tree for _ in subqueries_of(node)):
        raise IllegalProjection(f"The projection {projection.name} has a subquery.")
    grouping = next((node for node in tree if isinstance(node, plan.Aggregate)), None)
    known = (plan.Project, plan.Aggregate, plan.Scan)
    if any(not isinstance(node, known) for node in tree):
        raise IllegalProjection(
            f"The projection {projection.name} is neither columns nor groups of the table's rows.",
            hint="It has no arrayJoin, window function, DISTINCT or condition.",
        )
    if grouping is None:
        result = _normal(projection, query, table, tree, scope)
    else:
        if query.order_by:
            raise IllegalProjection(
                f"The projection {projection.name} aggregates: its order is that of its keys.",
                hint="Leave ORDER BY out.",
            )
        result = _aggregating(projection, table, grouping)
    for expression in _expressions(result, tree):
        for call in impure_calls(expression):
            raise IllegalProjection(
                f"The projection {projection.name} calls {call.name}, which gives another value"
                " each time."
            )
    return result


def _order(query: nodes.Select) -> tuple[nodes.OrderItem, ...]:
    """Return the items of ORDER BY; none of ORDER BY ALL."""
    return () if isinstance(query.order_by, nodes.OrderByAll) else query.order_by


def _order_expressions(query: nodes.Select) -> list[nodes.Expression]:
    """Return the expressions of ORDER BY; a tuple's elements one by one."""
    items: list[nodes.Expression] = []
    for item in _order(query):
        inner = item.expression
        items += inner.elements if isinstance(inner, nodes.TupleLiteral) else [inner]
    return items


def _refuse_directions(name: str, query: nodes.Select) -> None:
    """Raise IllegalProjection if ORDER BY has DESC, NULLS FIRST or LAST, or COLLATE."""
    for item in _order(query):
        if item.descending or item.nulls_first is not None or item.collate is not None:
            raise IllegalProjection(
                f"ORDER BY of the projection {name} has DESC, NULLS or COLLATE."
            )


def _expressions(bound: BoundProjection, tree: Sequence[plan.Node]) -> list[Expression]:
    """Return all expressions of a projection."""
    calls = [argument for call in bound.calls for argument in call.arguments]
    computed = [e for node in tree if isinstance(node, plan.Project) for _, e in node.expressions]
    return [*bound.keys, *calls, *computed]


def _normal(
    projection: Projection,
    query: nodes.Select,
    table: Table,
    tree: Sequence[plan.Node],
    scope: BindScope,
) -> BoundProjection:
    """Return a projection of rows: it has all columns that its expressions read.

    Raises BadArguments and IllegalProjection."""
    if not _order(query):
        raise BadArguments(
            f"The projection {projection.name} has no ORDER BY and no GROUP BY.",
            hint="Say by which expressions its rows are sorted.",
        )
    items = _order_expressions(query)
    keys = tuple(bind_expression(item, table, scope) for item in items)
    (scan,) = [node for node in tree if isinstance(node, plan.Scan)]
    read = {name for _, name in scan.columns}.union(*(columns_of(key) for key in keys))
    for name in read:
        column = table.column(name)
        if column is None or not column.stored:
            raise IllegalProjection(
                f"The projection {projection.name} reads {name}, which no part stores."
            )
    texts = tuple(sql_format.to_sql(item) for item in items)
    shape = replace(
        table,
        columns=tuple(column for column in table.stored_columns if column.name in read),
        sorting_key=tuple(KeyItem(text) for text in texts),
        primary_key=len(texts),
        partition_key="",
        sampling_key="",
        ttl="",
        constraints=(),
        indexes=(),
        projections=(),
    )
    definition = replace(projection, kind="Normal", sorting_key=texts)
    return BoundProjection(definition, table, keys, (), shape)


def _aggregating(projection: Projection, table: Table, grouping: plan.Aggregate) -> BoundProjection:
    """Return a projection of groups. Raises IllegalProjection."""
    if grouping.sets or grouping.totals is not None:
        raise IllegalProjection(
            f"The projection {projection.name} has ROLLUP, CUBE, GROUPING SETS or TOTALS."
        )
    keys = tuple(over_columns(key, grouping.child) for _, key in grouping.keys)
    calls: list[AggregateCall] = []
    for _, call in grouping.aggregates:
        arguments = tuple(over_columns(argument, grouping.child) for argument in call.arguments)
        calls.append(replace(call, arguments=arguments))
    for name in {
        n for e in (*keys, *(a for c in calls for a in c.arguments)) for n in columns_of(e)
    }:
        column = table.column(name)
        if column is None or not column.stored:
            raise IllegalProjection(
                f"The projection {projection.name} reads {name}, which no part stores."
            )
    types: list[DataType] = [key.type for key in keys]
    types += [call.aggregate.state_type for call in calls]
    names = [f"{KEY}{at}" for at in range(len(keys))] + [f"{STATE}{at}" for at in range(len(calls))]
    shape = Table(
        id=table.id,
        database=table.database,
        name=f"{table.name}.{projection.name}",
        engine=Engine("MergeTree"),
        columns=tuple(
            Column(number, name, kind)
            for number, (name, kind) in enumerate(zip(names, types, strict=True), 1)
        ),
        sorting_key=tuple(KeyItem(name) for name in names[: len(keys)]),
        primary_key=len(keys),
        settings=table.settings,
    )
    query = _parsed(projection)
    grouped = query.group_by if isinstance(query.group_by, tuple) else ()
    definition = replace(
        projection, kind="Aggregate", sorting_key=tuple(sql_format.to_sql(item) for item in grouped)
    )
    return BoundProjection(definition, table, keys, tuple(calls), shape)


def over_columns(expression: Expression, node: plan.Node) -> Expression:
    """Return an expression over a node's rows as one over the columns of the table that the node
    scans. Raises InternalError unless only Projects lie between."""
    while isinstance(node, plan.Project):
        computed: Mapping[str, Expression] = dict(node.expressions)
        expression = substitute(expression, computed)
        node = node.child
    if not isinstance(node, plan.Scan):
        raise InternalError(f"No scan is below: {type(node).__name__}.")
    names: dict[str, Expression] = {
        u: ColumnRef(t, c) for (u, c), t in zip(node.columns, node.types, strict=True)
    }
    names.update({u: ColumnRef(t, c) for u, c, t in node.predicate_columns})
    return substitute(expression, names)


def _parsed(projection: Projection) -> nodes.Select:
    """Parse the query of a projection."""
    (query,) = parse(projection.query)
    if not isinstance(query, nodes.Select):
        raise InternalError(f"The projection {projection.name} cannot be read: {projection.query}")
    return query


_REFUSED: Mapping[str, Callable[[nodes.Select], object]] = {
    "a FROM": lambda query: query.source is not None,
    "a WHERE": lambda query: query.where is not None or query.prewhere is not None,
    "DISTINCT": lambda query: query.distinct or query.distinct_on,
    "HAVING, QUALIFY or WINDOW": lambda query: (
        query.having is not None or query.qualify is not None or query.windows
    ),
    "LIMIT, OFFSET, SETTINGS or FORMAT": lambda query: (
        query.limit is not None
        or query.limit_by is not None
        or query.offset is not None
        or query.settings
        or query.format is not None
    ),
}
