"""Functions whose answers changed between releases, and the views whose older rows have the older ones.

A view's rows stay as they were computed. Where a release gives another answer for the same arguments,
those rows differ from a recomputation, so that views which older rules judged are stale as a whole
(cause FUNCTION CHANGED) once the release opens the warehouse; a replay mends them. `changed_answers` has the
calls; here are the clauses, and what a view reads them through.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from olapdb.bind.syntax import is_not_query, walk
from olapdb.functions import registry
from olapdb.lineage.sorting_key import key_columns
from olapdb.model.schema import MaterializedView, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.plan.expressions import Call, Cast, InValues
from olapdb.plan.nodes import ArrayJoin, Node, Plan, SetDifference, Sort, SortKey, Union, Window
from olapdb.plan.tree import all_aggregate_calls, all_expressions, all_nodes
from olapdb.sql import nodes as sql
from olapdb.sql.parser import parse_expression, parse_query
from olapdb.types import (
    AggregateFunction,
    Array,
    Boolean,
    DataType,
    DateTime,
    DateTime64,
    Decimal,
    Integer,
    Map,
    SimpleAggregateFunction,
    Tuple,
    any_part,
    has_floats,
    has_types_by_row,
    plain,
)
from olapdb.views.definition.changed_answers import (
    always_changed,
    changed_aggregates,
    changed_calls,
)
from olapdb.views.provability.rounding import merges_by_adding


def changed_functions(
    view: MaterializedView, snapshot: Snapshot, plan: Plan | None
) -> tuple[str, ...]:
    """Return the functions of the view whose answers changed since the rules that judged it.

    `plan` is its bound query, None if that does not bind. Calls of constants alone are no longer in a
    plan: they count by their name if any arguments may have another answer."""
    functions: dict[str, None] = {}
    calls = () if plan is None else all_expressions(plan.root)
    aggregates = () if plan is None else all_aggregate_calls(plan.root)
    functions.update(dict.fromkeys(changed_calls(calls, view.judged_by, view.zone)))
    functions.update(dict.fromkeys(changed_aggregates(aggregates, view.judged_by)))
    if plan is not None and view.judged_by < 9 and any(map(_sorts_nested_nulls, _sort_keys(plan))):
        functions.setdefault("ORDER BY")
    if view.judged_by < 11:
        functions.update(dict.fromkeys(_changed_names(_queries(view, snapshot), plan)))
    if plan is not None and view.judged_by < 10:
        functions.update(dict.fromkeys(_changed_clauses(plan, snapshot.by_id(view.target_id))))
    written = _written_functions(view, snapshot)
    functions.update(
        dict.fromkeys(name for name in always_changed(view.judged_by) if name in written)
    )
    return tuple(functions)


def loosely_judged_columns(view: MaterializedView, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the columns of the view's target in which older rules took other values for equal.

    Until rules 10, a comparison took floats that states keep, as those of max do, for equal to 1e-9, like
    sums, and nested values of rows and keys if their texts were, as those of a Variant's 1 and '1'. An
    ALTER of a type said nothing of values that keep the type that they had, as those of a Dynamic do.
    Until rules 11, a comparison took the keys of sumMap, the values that -Distinct keeps, and means beside
    sums of deviations from them for equal to 1e-9."""
    target = snapshot.by_id(view.target_id)
    if view.judged_by >= 11 or not isinstance(target, Table):
        return ()
    compared = any(check.verdict in ("equal", "retained") for check in snapshot.checks(view.id))
    by_rules_9 = view.judged_by < 10
    keys = set(key_columns(target))
    keeps_rows = not target.engine.combines or None in keys
    return tuple(
        column.name
        for column in target.stored_columns
        if (compared and _keeps_more_than_sums(column.type))
        or (by_rules_9 and has_types_by_row(column.type))
        or (by_rules_9 and compared and _keeps_floats(column.type))
        or (
            by_rules_9
            and compared
            and (keeps_rows or column.name in keys)
            and _has_nested_times(column.type)
        )
    )


_SUMS = re.compile(
    r"(sum|avg|sumCount|avgWeighted|sumWithOverflow|sumKahan)"
    r"(If|OrNull|OrDefault|State|ForEach|Array|Resample)*"
)
"""Aggregates whose states are nothing but sums and counts."""


def _keeps_more_than_sums(data_type: DataType) -> bool:
    """Return whether the type is one of sums of floats and of floats that are none: keys, distinct values, means."""
    if isinstance(data_type, SimpleAggregateFunction):
        inner = plain(data_type.inner)
        key = inner.key if isinstance(inner, Map) else getattr(inner, "elements", (inner,))[0]
        return data_type.function.startswith("sumMap") and has_floats(key)
    if not isinstance(data_type, AggregateFunction) or not merges_by_adding(data_type):
        return False
    return _SUMS.fullmatch(data_type.function) is None


def _keeps_floats(data_type: DataType) -> bool:
    """Return whether the type is that of states that keep floats and add none up."""
    if not isinstance(data_type, AggregateFunction) or merges_by_adding(data_type):
        return False
    return any(map(has_floats, data_type.arguments))


def _has_nested_times(data_type: DataType) -> bool:
    """Return whether the type has times within others: those of the hour that clocks repeat have one text."""
    is_nested = isinstance(plain(data_type), Array | Map | Tuple)
    return is_nested and any_part(data_type, (DateTime, DateTime64))


def _sort_keys(plan: Plan) -> Iterator[SortKey]:
    """Yield the keys by which the plan sorts rows, in queries and windows."""
    for node in all_nodes(plan.root):
        if isinstance(node, Sort):
            yield from node.keys
        elif isinstance(node, Window):
            yield from node.order_by


def _changed_clauses(plan: Plan, target: object) -> Iterator[str]:
    """Yield the clauses of the plan, and of the INSERT into its target, that have other answers since rules 10."""
    nodes = list(all_nodes(plan.root))
    expressions = list(all_expressions(plan.root))
    if any(map(_joins_a_part, nodes)):
        yield "ARRAY JOIN"
    if any(
        isinstance(e, InValues) and any_part(e.argument.type, (Array, Map)) for e in expressions
    ):
        yield "IN"  # an array or map of other numbers was equal where these wrapped to it
    if any(isinstance(n, Union | SetDifference) for n in nodes) and any(
        isinstance(e, Cast) and isinstance(plain(e.type), Boolean) for e in expressions
    ):
        yield "UNION"  # a Bool beside a UInt8 was a UInt8
    if isinstance(target, Table) and any(
        (column := target.column(name)) is not None
        and any_part(column.type, (Decimal,))
        and "Float32" in given.name
        for name, given in zip(plan.names, plan.types, strict=True)
    ):
        yield "INSERT"


def _joins_a_part(node: Node) -> bool:
    """Return whether the node joins an array that is a part of a column, whose name meant the whole array until rules 10."""
    return isinstance(node, ArrayJoin) and any(
        isinstance(array, Call) and array.name in ("tupleElement", "mapKeys", "mapValues")
        for _, array in node.arrays
    )


def _sorts_nested_nulls(key: SortKey) -> bool:
    """Return whether the key may have NULL or NaN within an array or map, and sorts these otherwise since rules 9."""
    data_type = key.expression.type
    has_arrays = any_part(data_type, (Array, Map))
    has_nulls = "Nullable" in data_type.name or has_floats(data_type)
    return key.descending != key.nulls_first and has_arrays and has_nulls


def _written_functions(view: MaterializedView, snapshot: Snapshot) -> set[str]:
    """Return the names of the functions in the view's query, in the plain views that it reads through,
    and in the columns of its tables that a read computes. SQL has none of a user's functions in these:
    they are written out where they are called."""
    texts = _queries(view, snapshot)
    computed: dict[str, list[str]] = {}
    for item in _objects_read(view, snapshot):
        for column in item.columns if isinstance(item, Table) else ():
            if column.default and (not column.stored or column.since > 1):
                computed.setdefault(column.name, []).append(column.default)
    functions: set[str] = set()
    while texts:
        for node in walk(texts.pop()):
            if isinstance(node, sql.Function):
                functions.add(_canonical(node.name))
            elif isinstance(node, sql.Identifier):
                for name in node.parts:
                    texts.extend(parse_expression(d) for d in computed.pop(name, ()))
    return functions


def _objects_read(view: MaterializedView, snapshot: Snapshot) -> list[object]:
    """Return the tables and plain views that the view reads."""
    ids = dict.fromkeys((view.source_id, *view.dimension_ids, *view.references))
    return [snapshot.by_id(object_id) for object_id in ids]


def _queries(view: MaterializedView, snapshot: Snapshot) -> list[sql.Node]:
    """Return the view's query, and those of the plain views that it reads through."""
    read = _objects_read(view, snapshot)
    return [
        parse_query(view.query),
        *(parse_query(item.query) for item in read if isinstance(item, View)),
    ]


def _changed_names(queries: list[sql.Node], plan: Plan | None) -> Iterator[str]:
    """Yield the clauses in the queries whose names and texts have another meaning since rules 11."""
    if any(map(_has_alias_in_on, queries)):
        yield "JOIN ON"
    if any(map(_has_alias_of_lambda, queries)):
        yield "AS in a lambda"
    if plan is not None and _has_narrow_in(plan) and any(map(_has_text_in, queries)):
        yield "IN"


def _has_alias_in_on(query: sql.Node) -> bool:
    """Return whether a condition of ON names an alias of its SELECT that is no column of that name: where a column had
    the alias's name, ON meant the column until rules 11."""
    for select in walk(query):
        if not isinstance(select, sql.Select):
            continue
        aliases = {
            node.name
            for column in select.columns
            for node in walk(column, is_not_query)
            if isinstance(node, sql.Alias)
            and not (
                isinstance(node.expression, sql.Identifier)
                and node.expression.parts[-1] == node.name
            )
        }
        conditions = [
            join.on
            for join in (walk(select.source) if select.source is not None else ())
            if isinstance(join, sql.Join) and join.on is not None
        ]
        for condition in conditions:
            if any(
                isinstance(name, sql.Identifier) and name.parts[0] in aliases
                for name in walk(condition)
            ):
                return True
    return False


def _has_alias_of_lambda(query: sql.Node) -> bool:
    """Return whether a name outside of a lambda is that of an alias within, which it meant until rules 11."""
    named = Counter(_names_in(query))
    return any(
        named[node.name] > Counter(_names_in(function.body))[node.name]
        for function in walk(query)
        if isinstance(function, sql.Lambda)
        for node in walk(function.body)
        if isinstance(node, sql.Alias)
    )


def _names_in(node: sql.Node) -> list[str]:
    """Return the first part of each name in a node, repeats included."""
    return [part.parts[0] for part in walk(node) if isinstance(part, sql.Identifier)]


def _has_narrow_in(plan: Plan) -> bool:
    """Return whether the plan has an IN of integers of fewer than 64 bits."""
    return any(
        isinstance(e, InValues)
        and isinstance(kind := plain(e.argument.type), Integer)
        and kind.bits < 64
        for e in all_expressions(plan.root)
    )


def _has_text_in(query: sql.Node) -> bool:
    """Return whether an IN may have a text of an integer beyond 8 bits, which wrapped until rules 11."""
    return any(
        re.fullmatch(r"[+-]?[0-9]{3,}", literal.value) is not None
        for node in walk(query)
        if isinstance(node, sql.In)
        for literal in walk(node.right)
        if isinstance(literal, sql.Literal) and isinstance(literal.value, str)
    )


def _canonical(name: str) -> str:
    """Return the main name of a function, for which it may be an alias."""
    function = registry.find(name)
    return name if function is None else function.name
