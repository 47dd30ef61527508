"""Subqueries as values: `(SELECT …)`, EXISTS, and queries converted to given column types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from olapdb import functions
from olapdb.bind import constants
from olapdb.bind.contracts import BindContext, BoundQuery, QueryBinder
from olapdb.bind.correlations import correlated
from olapdb.bind.names import NameAllocator
from olapdb.lazy import LazyModule
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import AggregateCall, Call, Cast, ColumnRef, Expression, ScalarSubquery
from olapdb.sql import nodes as sql
from olapdb.types import (
    UINT8,
    UINT64,
    DataType,
    LowCardinality,
    String,
    Tuple,
    Variant,
    make_nullable,
    plain,
)

if TYPE_CHECKING:
    from olapdb.functions.variants import calls as variant_calls
else:
    variant_calls = LazyModule("olapdb.functions.variants.calls")


def scalar_subquery(queries: QueryBinder, query: sql.Query, context: BindContext) -> Expression:
    """Bind `(SELECT …)` as a value.

    One column gives Nullable of its type, but a LowCardinality as it is; several columns a tuple with their names."""
    bound = queries.subquery(query, context)
    if len(bound.columns) == 1:
        (column,) = bound.columns
        node = with_types(bound, [column.type], queries.names)
        data_type = make_nullable(column.type)
        own_type = column.type if isinstance(column.type, LowCardinality) else data_type
        return correlated(queries, "scalar", data_type, node, context) or ScalarSubquery(
            own_type, node
        )
    environment = queries.scope.environment
    packed = constants.call("tuple", tuple(c.reference for c in bound.columns), environment)
    names = tuple(c.name for c in bound.columns)
    if isinstance(packed.type, Tuple) and len(set(names)) == len(names):
        packed = Cast(Tuple(packed.type.elements, names), packed)
    name = queries.names.unique("tuple")
    node = plan.Project(bound.node, ((name, packed),))
    subquery = correlated(queries, "scalar", packed.type, node, context)
    return subquery or ScalarSubquery(packed.type, node)


def _converted(value: Expression, target: DataType) -> Expression:
    """Return a value cast to a wider type. In a Variant it keeps its own type, except that a text is parsed, as in
    ClickHouse: '1' beside integers is a number."""
    if isinstance(plain(target), Variant) and not isinstance(plain(value.type), String):
        return Call(target, "_asVariant", (value,), variant_calls.widening(value.type, target))
    return Cast(target, value)


def exists(queries: QueryBinder, query: sql.Query, context: BindContext) -> Expression:
    """Bind `EXISTS (SELECT …)` as a UInt8: a count over at most one row."""
    bound = queries.subquery(query, context)
    subquery = correlated(queries, "exists", UINT8, bound.node, context)
    if subquery is not None:
        return subquery
    count = functions.resolve_aggregate("count", (), ())
    name = queries.names.unique("count()")
    counted = plan.Aggregate(
        plan.Limit(bound.node, 1), (), ((name, AggregateCall(count, "count", ())),)
    )
    flag = constants.call(
        "notEquals",
        (ColumnRef(UINT64, name), constants.unsigned_byte(0)),
        queries.scope.environment,
    )
    project = plan.Project(counted, ((queries.names.unique("exists"), flag),))
    return ScalarSubquery(UINT8, project)


def with_types(query: BoundQuery, types: Sequence[DataType], names: NameAllocator) -> plan.Node:
    """Return a node with exactly the query's columns, in order, cast to these types.

    A column that is cast, or that comes a second time, gets a new unique name. So callers find the
    columns by position. The query's own node is returned if it fits already."""
    schema = query.node.schema
    targets = list(zip(query.columns, types, strict=True))
    if [(f.name, f.type) for f in schema] == [(c.unique, t) for c, t in targets]:
        return query.node
    expressions: list[tuple[str, Expression]] = []
    taken: set[str] = set()
    for column, data_type in targets:
        reference = column.reference
        same = column.type == data_type
        keeps_name = same and column.unique not in taken
        name = column.unique if keeps_name else names.unique(column.name)
        taken.add(name)
        expressions.append((name, reference if same else _converted(reference, data_type)))
    return plan.Project(query.node, tuple(expressions))
