"""The shape of a model: its keys, the states that a trigger keeps, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from olapdb.bind.syntax import is_not_query, rewrite, walk
from olapdb.sql import nodes
from olapdb.sql.format import to_sql

from .aggregates import Meaning, Storage, is_call, storage_of
from .errors import refuse
from .inputs import output_name

STATES = "states"
"""Alias of the target in the read view, so that no column is taken for an alias of the same name."""


@dataclass(frozen=True)
class Key:
    """A group key; `name` is its column in the target, hidden where the model does not show it."""

    name: str
    expression: nodes.Expression


@dataclass(frozen=True)
class State:
    """A stored aggregate. Hidden columns, which only expressions use, have names that begin with
    two underscores."""

    name: str
    storage: Storage


@dataclass(frozen=True)
class Shape:
    """`trigger` is the SELECT of the materialized view; `outputs` are the model's columns in their
    order, each as an expression over the target named `STATES`.  Without `keys` and `states` the
    model is row-wise."""

    keys: tuple[Key, ...]
    states: tuple[State, ...]
    outputs: tuple[nodes.Alias, ...]
    trigger: nodes.Select
    aggregated: bool

    def meanings(self) -> dict[str, tuple[Meaning | str, str]]:
        """What a chained model may do with each column: ("key", ""), ("sum", ""),
        ("state", "uniq"), ("expression", "")."""
        return dict(self._meanings())

    def _meanings(self) -> list[tuple[str, tuple[str, str]]]:
        if not self.aggregated:
            return [(o.name, ("column", "")) for o in self.outputs]
        stored: dict[str, tuple[str, str]] = {k.name: ("key", "") for k in self.keys}
        for state in self.states:
            read = state.storage.read.removesuffix("State").removesuffix("Merge")
            function = read if state.storage.meaning == "state" else ""
            stored[state.name] = (state.storage.meaning, function)
        return [(o.name, stored.get(o.name, ("expression", ""))) for o in self.outputs]


def shape_of(select: nodes.Select) -> Shape:
    """The shape of a SELECT whose clauses have been checked."""
    items = _expanded(select)
    aggregated = select.group_by is not None or any(_has_call(e) for e in items.values())
    if not aggregated:
        return _row_wise(select)
    return _Aggregation(select, items).shape()


def _has_call(expression: nodes.Expression) -> bool:
    return any(is_call(n) for n in walk(expression, is_not_query))


# --- row by row


def _row_wise(select: nodes.Select) -> Shape:
    columns = tuple(_named(c) for c in select.columns)
    outputs = tuple(
        nodes.Alias(nodes.Identifier((output_name(c),)), output_name(c))
        for c in columns
        if not isinstance(c, nodes.Star)
    )
    return Shape((), (), outputs, replace(select, columns=columns), aggregated=False)


def _named(column: nodes.Expression) -> nodes.Expression:
    """With its name spelt out, where that is not plain already."""
    if isinstance(column, nodes.Star | nodes.Alias):
        return column
    if isinstance(column, nodes.Identifier) and len(column.parts) == 1:
        return column
    return nodes.Alias(column, output_name(column))


# --- aggregations


def _expanded(select: nodes.Select) -> dict[str, nodes.Expression]:
    """The columns by name, with aliases of other columns (and of WITH) replaced by what they mean,
    as in ClickHouse; inside its own definition a name is the column's."""
    aliases = {i.name: i.expression for i in select.with_items if i.expression is not None}
    named: dict[str, nodes.Expression] = {}
    for column in select.columns:
        name = output_name(column)
        if name in named:
            raise refuse(f"two columns are called {name},", "but a table has one.", "Rename one.")
        named[name] = column.expression if isinstance(column, nodes.Alias) else column
        if isinstance(column, nodes.Alias):
            aliases[name] = column.expression
    return {n: _without_aliases(e, aliases, frozenset({n})) for n, e in named.items()}


def _without_aliases(
    expression: nodes.Expression, aliases: Mapping[str, nodes.Expression], open_: frozenset[str]
) -> nodes.Expression:
    def change(node: nodes.Node) -> nodes.Node | None:
        if isinstance(node, nodes.Query):
            return node
        if isinstance(node, nodes.Alias):
            return rewrite(node.expression, change)
        if isinstance(node, nodes.Identifier) and len(node.parts) == 1:
            name = node.parts[0]
            if name in aliases and name not in open_:
                return _without_aliases(aliases[name], aliases, open_ | {name})
        return None

    return rewrite(expression, change)


class _Aggregation:
    """The shape of a SELECT with aggregates."""

    def __init__(self, select: nodes.Select, items: Mapping[str, nodes.Expression]) -> None:
        self._select = select
        self._items = items
        for name, expression in items.items():
            if isinstance(expression, nodes.Star):
                raise refuse("* beside aggregates", "has no fixed columns.", "Name the columns.")
            _refuse_nested(name, expression)
        self._keys = self._find_keys()
        self._states: list[State] = []

    def shape(self) -> Shape:
        outputs = tuple(nodes.Alias(self._reading(n, e), n) for n, e in self._items.items())
        columns = [_aliased(k.expression, k.name) for k in self._keys]
        columns += [nodes.Alias(s.storage.fired, s.name) for s in self._states]
        if not columns:
            raise refuse("the model stores nothing:", "it has neither keys nor aggregates.", "")
        trigger = replace(
            self._select,
            columns=tuple(columns),
            # by alias: inside an expression a name would be taken for the alias again
            group_by=tuple(nodes.Identifier((k.name,)) for k in self._keys) or None,
        )
        return Shape(self._keys, tuple(self._states), outputs, trigger, aggregated=True)

    def _find_keys(self) -> tuple[Key, ...]:
        keys: list[Key] = []
        names = {e: n for n, e in reversed(list(self._items.items()))}
        for expression in self._group_expressions():
            if any(k.expression == expression for k in keys):
                continue
            name = names.get(expression, f"__key_{len(keys) + 1}")
            keys.append(Key(name, expression))
        return tuple(keys)

    def _group_expressions(self) -> list[nodes.Expression]:
        group_by = self._select.group_by
        if group_by is None:
            return []
        if group_by == "ALL":
            return [e for e in self._items.values() if not _has_call(e)]
        listed = list(self._items.values())
        found: list[nodes.Expression] = []
        for element in group_by:
            assert isinstance(element, nodes.Expression)
            for one in element.elements if isinstance(element, nodes.TupleLiteral) else (element,):
                found.append(self._key_expression(one, listed))
        return found

    def _key_expression(
        self, element: nodes.Expression, listed: list[nodes.Expression]
    ) -> nodes.Expression:
        if isinstance(element, nodes.Literal) and isinstance(element.value, int):
            position = int(element.value)
            if not 1 <= position <= len(listed):
                raise refuse(
                    f"GROUP BY {position}", f"names none of the {len(listed)} columns.", ""
                )
            return listed[position - 1]
        if isinstance(element, nodes.Identifier) and len(element.parts) == 1:
            name = element.parts[0]
            if name in self._items:
                return self._items[name]
        aliases = {
            n: e
            for n, e in self._items.items()
            if not (isinstance(e, nodes.Identifier) and e.parts[-1] == n)
        }
        return _without_aliases(element, aliases, frozenset())

    def _reading(self, name: str, expression: nodes.Expression) -> nodes.Expression:
        """The column over the target: keys by name, aggregates merged and finished."""

        def change(node: nodes.Node) -> nodes.Node | None:
            if isinstance(node, nodes.Query):
                return node
            for key in self._keys:
                if node == key.expression:
                    return _stored(key.name)
            if isinstance(node, nodes.Function) and is_call(node):
                state = self._stored_state(node, name if node is expression else None)
                return state.storage.reading(_stored(state.name))
            if isinstance(node, nodes.Lambda):
                return node
            if isinstance(node, nodes.Identifier):
                raise refuse(
                    f"column {name} uses {to_sql(node)},",
                    "which is neither a key of GROUP BY nor inside an aggregate.",
                    f"Add {to_sql(node)} to GROUP BY, or aggregate it.",
                )
            return None

        return rewrite(expression, change)

    def _stored_state(self, call: nodes.Function, name: str | None) -> State:
        storage = storage_of(call, has_keys=bool(self._keys))
        for state in self._states:
            if state.storage == storage and name is None:
                return state
        made = State(name or f"__{call.name}_{len(self._states) + 1}", storage)
        self._states.append(made)
        return made


def _refuse_nested(name: str, expression: nodes.Expression) -> None:
    for node in walk(expression, is_not_query):
        if not is_call(node):
            continue
        inner = [n for n in walk(node, is_not_query) if n is not node and is_call(n)]
        if inner:
            raise refuse(
                f"column {name} has the aggregate {to_sql(inner[0])} inside another;",
                "where a column has the name of an aggregate's alias, the alias is meant.",
                "Give the alias another name than the column that it is made from.",
            )


def _stored(name: str) -> nodes.Identifier:
    return nodes.Identifier((STATES, name))


def _aliased(expression: nodes.Expression, name: str) -> nodes.Expression:
    if isinstance(expression, nodes.Identifier) and expression.parts == (name,):
        return expression
    return nodes.Alias(expression, name)
