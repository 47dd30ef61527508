"""The magnitude of what a view adds up: its query with the absolute values of the summands.

Sums of floats depend on the order of addition. The error of a sum is in proportion to the sum of
its summands' magnitudes, not to its own, which may be much smaller:

    1e16 + 1 - 1e16     0 or 1, by the order; the magnitudes add up to 2e16

The summands of a subquery from which a column comes count too: of FROM, WITH, or a scalar one.
So a comparison that finds other floats computes this query too, and takes them for equal if they
differ by less than the tolerance times the magnitude. Where all summands have one sign, that is the
tolerance of the sum itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from olapdb.bind.syntax import is_not_query, rewrite, walk
from olapdb.model.schema import MaterializedView, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query
from olapdb.types import (
    AggregateFunction,
    DataType,
    Float,
    SimpleAggregateFunction,
    any_part,
    plain,
)

_COMBINED = r"(?P<combinators>(If|OrNull|OrDefault|Distinct|ArgMin|ArgMax|Array|ForEach|Map|State|SimpleState)*)"
_ADDS = re.compile(rf"(sum|avg)(WithOverflow|Kahan|Count)?{_COMBINED}")
"""Aggregates that add up their first argument."""
_MULTIPLIES = re.compile(rf"(covar(Pop|Samp)(Stable)?|avgWeighted){_COMBINED}")
"""Aggregates of their first two arguments, see `moments_scale`."""
_ADDS_BY_KEY = re.compile(
    r"(sumMap(WithOverflow)?|sumMappedArrays)(If|OrNull|OrDefault|State|SimpleState)*"
)
"""Aggregates that add up arrays of values, by the keys in their first argument."""
_NESTED = re.compile("Array|ForEach|Map")
"""Combinators that aggregate the elements of an argument."""


def magnitude_view(
    view: MaterializedView,
    target: Table,
    snapshot: Snapshot | None = None,
    only: Collection[str] | None = None,
) -> MaterializedView | None:
    """Return the view with the query of magnitudes, None if it gives its target no sums of floats. The plain views
    that it reads are written out, as they are at the `snapshot`; without one they stay. With `only`, other columns
    stay as they are."""
    names = {column.name for column in target.stored_columns if _adds_floats(column.type)}
    names &= {column.name for column in view.columns}
    names &= names if only is None else set(only)
    if not names:
        return None
    query = parse_query(view.query)
    if snapshot is not None:
        query = _with_plain_views(query, view.database, snapshot)
    changed = _with_magnitudes(query, names)
    if not _is_grouped(query):
        changed = _with_absolute_columns(view, target, changed, names)
    return replace(view, query=to_sql(changed))


def _with_plain_views(query: nodes.Query, database: str, snapshot: Snapshot) -> nodes.Query:
    """Return the query with subqueries in place of the plain views that it names, and of those that these name."""

    def plain_view(of_database: str, name: str) -> View | None:
        """Return the plain view of this name, None for anything else."""
        view = snapshot.find(of_database, name)
        if not isinstance(view, View) or view.merges or view.dictionary or not view.columns:
            return None
        return view

    def written_out(node: nodes.Node) -> nodes.Node | None:
        """Return a subquery for the name of a plain view, whose columns lose the name of the database; None for all
        else."""
        if isinstance(node, nodes.Identifier) and len(node.parts) > 2:
            return replace(node, parts=node.parts[1:]) if plain_view(*node.parts[:2]) else None
        if not isinstance(node, nodes.TableReference) or node.final or node.sample is not None:
            return None
        if not node.table.database and node.table.name in own_names:
            return None  # a query of WITH, which hides a plain view of its name
        view = plain_view(node.table.database or database, node.table.name)
        if view is None:
            return None
        inner = _with_plain_views(parse_query(view.query), view.database, snapshot)
        return nodes.SubqueryRelation(inner, node.alias or view.name)

    own_names = {
        item.name
        for node in walk(query)
        if isinstance(node, nodes.Select)
        for item in node.with_items
        if item.query is not None
    }
    changed = rewrite(query, written_out)
    assert isinstance(changed, nodes.Query)
    return changed


def _adds_floats(data_type: DataType) -> bool:
    """Return whether a column of the type may hold sums of floats, or states of these."""
    if isinstance(data_type, AggregateFunction):
        return any(_adds_floats(argument) for argument in data_type.arguments)
    if isinstance(data_type, SimpleAggregateFunction):
        data_type = data_type.inner
    return any_part(plain(data_type), (Float,))


def _is_grouped(query: nodes.Query) -> bool:
    """Return whether the query, or the first branch of a UNION, has a GROUP BY or aggregates of its own."""
    while isinstance(query, nodes.SetOperation):
        query = query.left
    if not isinstance(query, nodes.Select):
        return False
    return query.group_by is not None or any(
        isinstance(node, nodes.Function) and _absolute(node) is not None
        for part in (*query.columns, *query.with_items)
        for node in walk(part, is_not_query)
    )


def _with_magnitudes(query: nodes.Query, names: set[str]) -> nodes.Query:
    """Return the query with abs(…) around what these columns add up: in each branch of a UNION, and in the
    subqueries from which the columns come."""
    if isinstance(query, nodes.SetOperation):
        outputs = _output_names(query.left)
        left = _with_magnitudes(query.left, names)
        at = [place for place, name in enumerate(outputs) if name in names]
        of_right = _output_names(query.right)
        names_right = {of_right[place] for place in at if place < len(of_right)}
        right = _with_magnitudes(query.right, names_right)
        return replace(query, left=left, right=right)
    if not isinstance(query, nodes.Select):
        return query
    needed = _needed_names(query, names)
    columns = tuple(
        rewrite(column, _absolute) if _name_of(column) in needed else column
        for column in query.columns
    )
    with_items = tuple(
        replace(
            item,
            expression=item.expression
            if item.expression is None or item.name not in needed
            else rewrite(item.expression, _absolute),
            query=None if item.query is None else _with_magnitudes(item.query, needed),
        )
        for item in query.with_items
    )
    source = None if query.source is None else _relation_with_magnitudes(query.source, needed)
    return replace(query, columns=columns, with_items=with_items, source=source)


def _relation_with_magnitudes(relation: nodes.Relation, names: set[str]) -> nodes.Relation:
    """Return the relation with abs(…) around what the columns `names` add up in its subqueries, see `_with_magnitudes`."""
    match relation:
        case nodes.SubqueryRelation(query=query, column_aliases=aliases):
            outputs = zip(aliases, _output_names(query), strict=False)
            wanted = {own for alias, own in outputs if alias in names} if aliases else names
            return replace(relation, query=_with_magnitudes(query, wanted))
        case nodes.Join(left=left, right=right):
            return replace(
                relation,
                left=_relation_with_magnitudes(left, names),
                right=_relation_with_magnitudes(right, names),
            )
        case nodes.ArrayJoin(source=source):
            return replace(relation, source=_relation_with_magnitudes(source, names))
        case _:
            return relation


def _needed_names(query: nodes.Select, names: set[str]) -> set[str]:
    """Return the names that these columns are computed from, through aliases too, without those by which the query
    chooses or groups rows: other values of these would give other rows."""
    definitions: dict[str, nodes.Expression] = {
        item.name: item.expression for item in query.with_items if item.expression is not None
    }
    definitions.update((_name_of(column), column) for column in query.columns)
    needed, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        expression = definitions.get(name)
        waiting += () if expression is None else _identifiers((expression,))
    deciding = (query.where, query.prewhere, query.having, query.qualify, query.limit_by)
    keys = query.group_by if isinstance(query.group_by, tuple) else ()
    order = query.order_by if isinstance(query.order_by, tuple) else ()
    conditions = [node for node in (*deciding, *keys, *order) if node is not None]
    return needed - _identifiers(conditions) - _join_names(query.source)


def _join_names(relation: nodes.Relation | None) -> set[str]:
    """Return the names in conditions of joins."""
    if not isinstance(relation, nodes.Join):
        return set()
    on = () if relation.on is None else (relation.on,)
    below = _join_names(relation.left) | _join_names(relation.right)
    return {*relation.using, *_identifiers(on), *below}


def _identifiers(parts: Iterable[nodes.Node]) -> set[str]:
    """Return the names of columns in the expressions, without their tables and not those of subqueries."""
    return {
        node.parts[-1]
        for part in parts
        for node in walk(part, is_not_query)
        if isinstance(node, nodes.Identifier)
    }


def _name_of(column: nodes.Expression) -> str:
    """Return the name of a column of a query, "" for one without a simple name."""
    match column:
        case nodes.Alias(name=name):
            return name
        case nodes.Identifier(parts=parts):
            return parts[-1]
        case _:
            return ""


def _output_names(query: nodes.Query) -> list[str]:
    """Return the names of the query's columns."""
    while isinstance(query, nodes.SetOperation):
        query = query.left
    return [_name_of(column) for column in query.columns] if isinstance(query, nodes.Select) else []


def _absolute(node: nodes.Node) -> nodes.Node | None:
    """Return the call of a sum with the absolute value of its first argument, of a covariance with those of its first
    two, and a scalar subquery with its sums changed so; None for other nodes. The right side of IN stays."""
    match node:
        case nodes.In():
            return node
        case nodes.Query():
            return _with_magnitudes(node, set(_output_names(node)))
        case nodes.Function(name=name, arguments=(first, *others)):
            arguments = _magnitudes_of(name, first, others)
            return None if arguments is None else replace(node, arguments=arguments)
        case _:
            return None


def _magnitudes_of(
    name: str, first: nodes.Expression, others: Sequence[nodes.Expression]
) -> tuple[nodes.Expression, ...] | None:
    """Return the arguments of an aggregate with the absolute values of what it adds up, None if it adds up nothing."""
    if (adds := _ADDS.fullmatch(name)) is not None and not _is_of_arrays(name, first, others):
        return _abs(first, _NESTED.findall(adds["combinators"])), *others
    if (multiplies := _MULTIPLIES.fullmatch(name)) is not None and others:
        levels = _NESTED.findall(multiplies["combinators"])
        return _abs(first, levels), _abs(others[0], levels), *others[1:]
    if _ADDS_BY_KEY.fullmatch(name) is None:
        return None
    if isinstance(first, nodes.TupleLiteral):
        keys, *values = first.elements
        sizes = [_abs(value, ["Array"]) for value in values]
        return replace(first, elements=(keys, *sizes)), *others
    count = len(others) - name.count("If")
    return first, *(_abs(value, ["Array"]) for value in others[:count]), *others[count:]


def _is_of_arrays(name: str, first: nodes.Expression, others: Sequence[nodes.Expression]) -> bool:
    """Return whether the aggregate is a sumMap of an array of keys and arrays of values, not of maps."""
    is_tuple = isinstance(first, nodes.TupleLiteral)
    return name.startswith("sumMap") and (is_tuple or len(others) > name.count("If"))


def _abs(argument: nodes.Expression, levels: Sequence[str] = ()) -> nodes.Expression:
    """Return the absolute value of an argument, whose scalar subqueries are changed too. `levels` are the combinators,
    innermost first, whose elements it has: the values of its arrays, or of its maps."""
    changed = rewrite(argument, _absolute)
    if not levels:
        return nodes.Function("abs", (changed,))
    key, value = (f"__{name}_{len(levels)}" for name in ("key", "value"))
    size = _abs(nodes.Identifier((value,)), levels[:-1])
    if levels[-1] != "Map":
        return nodes.Function("arrayMap", (nodes.Lambda((value,), size), changed))
    entry = nodes.TupleLiteral((nodes.Identifier((key,)), size))
    return nodes.Function("mapApply", (nodes.Lambda((key, value), entry), changed))


def _with_absolute_columns(
    view: MaterializedView, target: Table, query: nodes.Query, names: set[str]
) -> nodes.Query:
    """Return a SELECT of the absolute values of these columns of the query, which are no keys and
    no states, and of its other columns."""
    keys = {item.expression.strip("`") for item in target.sorting_key}
    columns: list[nodes.Expression] = []
    for column in view.columns:
        value: nodes.Expression = nodes.Identifier((column.name,))
        kind = (
            column.type.inner if isinstance(column.type, SimpleAggregateFunction) else column.type
        )
        if column.name in names - keys and isinstance(plain(kind), Float):
            value = nodes.Function("abs", (value,))
        columns.append(nodes.Alias(value, column.name))
    return nodes.Select(columns=tuple(columns), source=nodes.SubqueryRelation(query))
