"""Splits a model's SELECT into keys, stored states, the trigger's query and the read view's columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dbt_common.exceptions import CompilationError

from olapdb.bind.syntax import is_not_query, rewrite, walk
from olapdb.sql import nodes
from olapdb.sql.format import to_sql

from .aggregates import Storage, is_call, storage_of
from .errors import refuse, refuse_all
from .model_sql import output_name

STATES = "states"
"""The alias of the target in the read view; qualified columns cannot be mistaken for aliases."""


@dataclass(frozen=True)
class Key:
    """A group key. `name` is its column in the target, a hidden name if the model does not select it."""

    name: str
    expression: nodes.Expression


@dataclass(frozen=True)
class StoredState:
    """A stored aggregate. Names of hidden columns, which only expressions use, begin with two
    underscores."""

    name: str
    storage: Storage


@dataclass(frozen=True)
class SplitQuery:
    """A model's SELECT, split into the stored columns and their reading.

    `trigger` is the SELECT of the materialized view. `outputs` are the model's columns in order, as
    expressions over the target, whose alias is STATES. A row-wise model has no keys and no states."""

    keys: tuple[Key, ...]
    states: tuple[StoredState, ...]
    outputs: tuple[nodes.Alias, ...]
    trigger: nodes.Select
    aggregated: bool

    def column_kinds(self) -> dict[str, tuple[str, str]]:
        """Return the kind of each column, on which its use in chained models depends.

        It is ("key", ""), ("sum", ""), ("state", "uniq"), ("expression", ""), or ("column", "") in
        a row-wise model."""
        if not self.aggregated:
            return {o.name: ("column", "") for o in self.outputs}
        stored: dict[str, tuple[str, str]] = {k.name: ("key", "") for k in self.keys}
        for state in self.states:
            read = state.storage.read.removesuffix("State").removesuffix("Merge")
            function = read if state.storage.meaning == "state" else ""
            stored[state.name] = (state.storage.meaning, function)
        return {o.name: stored.get(o.name, ("expression", "")) for o in self.outputs}

    @property
    def reads_columns(self) -> bool:
        """Return whether each output is a column of the target, or its finished state: the types of
        the trigger's query then prove the outputs."""
        return all(kind != "expression" for kind, _ in self.column_kinds().values())


def split_query(select: nodes.Select) -> SplitQuery:
    """Split a SELECT whose clauses `refuse_clauses` has accepted."""
    columns = _expanded_columns(select)
    aggregated = select.group_by is not None or any(_has_call(e) for e in columns.values())
    if not aggregated:
        return _split_row_wise(select)
    return _AggregatingSplit(select, columns).split()


def _has_call(expression: nodes.Expression) -> bool:
    """Return whether an expression calls an aggregate, subqueries apart."""
    return any(is_call(n) for n in walk(expression, is_not_query))


# --- row by row


def _split_row_wise(select: nodes.Select) -> SplitQuery:
    """Return the split of a SELECT without aggregates: its rows are stored unchanged."""
    columns = tuple(_named(c) for c in select.columns)
    outputs = tuple(
        nodes.Alias(nodes.Identifier((output_name(c),)), output_name(c))
        for c in columns
        if not isinstance(c, nodes.Star)
    )
    return SplitQuery((), (), outputs, replace(select, columns=columns), aggregated=False)


def _named(column: nodes.Expression) -> nodes.Expression:
    """Return the column with an alias of its output name; a star, alias or bare name unchanged."""
    if isinstance(column, nodes.Star | nodes.Alias):
        return column
    if isinstance(column, nodes.Identifier) and len(column.parts) == 1:
        return column
    return nodes.Alias(column, output_name(column))


# --- aggregations


def _expanded_columns(select: nodes.Select) -> dict[str, nodes.Expression]:
    """Return the columns' expressions by name, with aliases of other columns and of WITH expanded.

    Inside its own definition a name is the source column's, as in ClickHouse.

    Raises CompilationError."""
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
    expression: nodes.Expression, aliases: Mapping[str, nodes.Expression], expanding: frozenset[str]
) -> nodes.Expression:
    """Return the expression with aliases expanded, except those being expanded already."""

    def change(node: nodes.Node) -> nodes.Node | None:
        """Return the expression that an alias means; a nested query unchanged; None for other
        nodes, to rewrite their children."""
        if isinstance(node, nodes.Query):
            return node
        if isinstance(node, nodes.Alias):
            return rewrite(node.expression, change)
        if isinstance(node, nodes.Identifier) and len(node.parts) == 1:
            name = node.parts[0]
            if name in aliases and name not in expanding:
                return _without_aliases(aliases[name], aliases, expanding | {name})
        return None

    return rewrite(expression, change)


class _AggregatingSplit:
    """The split of a SELECT with aggregates."""

    def __init__(self, select: nodes.Select, columns: Mapping[str, nodes.Expression]) -> None:
        self._select = select
        self._columns = columns
        for name, expression in columns.items():
            if isinstance(expression, nodes.Star):
                raise refuse("* beside aggregates", "has no fixed columns.", "Name the columns.")
            _refuse_nested(name, expression)
        self._keys = self._find_keys()
        self._states: list[StoredState] = []

    def split(self) -> SplitQuery:
        """Return the split query; raise CompilationError if nothing would be stored."""
        outputs = self._outputs()
        columns = [_aliased(k.expression, k.name) for k in self._keys]
        columns += [nodes.Alias(s.storage.trigger_call, s.name) for s in self._states]
        if not columns:
            raise refuse("the model stores nothing:", "it has neither keys nor aggregates.", "")
        trigger = replace(
            self._select,
            columns=tuple(columns),
            # By alias: inside an expression a name would be expanded as the alias again.
            group_by=tuple(nodes.Identifier((k.name,)) for k in self._keys) or None,
        )
        return SplitQuery(self._keys, tuple(self._states), outputs, trigger, aggregated=True)

    def _outputs(self) -> tuple[nodes.Alias, ...]:
        """Return the columns as the read view computes them; raise one error for all wrong ones."""
        outputs, errors = [], []
        for name, expression in self._columns.items():
            try:
                outputs.append(nodes.Alias(self._read_column(name, expression), name))
            except CompilationError as error:
                errors.append(error)
        if errors:
            raise refuse_all(errors)
        return tuple(outputs)

    def _find_keys(self) -> tuple[Key, ...]:
        """Return the keys of GROUP BY, each once and in order.

        A key that is no column of the SELECT is named `__key_n`; n is its place among all keys,
        from 1."""
        keys: list[Key] = []
        names = {e: n for n, e in reversed(list(self._columns.items()))}
        for expression in self._group_expressions():
            if any(k.expression == expression for k in keys):
                continue
            name = names.get(expression, f"__key_{len(keys) + 1}")
            keys.append(Key(name, expression))
        return tuple(keys)

    def _group_expressions(self) -> list[nodes.Expression]:
        """Return the expressions of GROUP BY, with positions and names resolved."""
        group_by = self._select.group_by
        if group_by is None:
            return []
        if group_by == "ALL":
            return [e for e in self._columns.values() if not _has_call(e)]
        listed = list(self._columns.values())
        expressions: list[nodes.Expression] = []
        for element in group_by:
            assert isinstance(element, nodes.Expression)
            keys = element.elements if isinstance(element, nodes.TupleLiteral) else (element,)
            expressions += [self._key_expression(key, listed) for key in keys]
        return expressions

    def _key_expression(
        self, element: nodes.Expression, listed: list[nodes.Expression]
    ) -> nodes.Expression:
        """Return the expression that an element of GROUP BY means.

        The element is a position from 1 in `listed`, a column's name or an expression. Raises an
        error for a position beyond the columns."""
        if isinstance(element, nodes.Literal) and isinstance(element.value, int):
            position = int(element.value)
            if not 1 <= position <= len(listed):
                raise refuse(
                    f"GROUP BY {position}", f"names none of the {len(listed)} columns.", ""
                )
            return listed[position - 1]
        if isinstance(element, nodes.Identifier) and len(element.parts) == 1:
            name = element.parts[0]
            if name in self._columns:
                return self._columns[name]
        aliases = {
            n: e
            for n, e in self._columns.items()
            if not (isinstance(e, nodes.Identifier) and e.parts[-1] == n)
        }
        return _without_aliases(element, aliases, frozenset())

    def _read_column(self, name: str, expression: nodes.Expression) -> nodes.Expression:
        """Return the column as the read view computes it from the target.

        Keys are read by name; aggregates are merged and finished. Raises CompilationError for a
        column that is neither a key nor in an aggregate."""

        def change(node: nodes.Node) -> nodes.Node | None:
            """Return the stored column of a key or aggregate, None to rewrite the children.

            Raises CompilationError."""
            if isinstance(node, nodes.Query):
                return node
            for key in self._keys:
                if node == key.expression:
                    return _stored(key.name)
            if isinstance(node, nodes.Function) and is_call(node):
                state = self._stored_state(node, name if node is expression else None)
                return state.storage.read_call(_stored(state.name))
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

    def _stored_state(self, call: nodes.Function, name: str | None) -> StoredState:
        """Return the stored state of an aggregate call, added if it is new.

        `name` is its column; None makes a hidden name, under which equal calls are stored once."""
        storage = storage_of(call, has_keys=bool(self._keys))
        for state in self._states:
            if state.storage == storage and name is None:
                return state
        added = StoredState(name or f"__{call.name}_{len(self._states) + 1}", storage)
        self._states.append(added)
        return added


def _refuse_nested(name: str, expression: nodes.Expression) -> None:
    """Raise CompilationError if the column has an aggregate inside another."""
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
    """Return the identifier of a column in the stored states."""
    return nodes.Identifier((STATES, name))


def _aliased(expression: nodes.Expression, name: str) -> nodes.Expression:
    """Return the expression under this alias, without one if it is the column of that name."""
    if isinstance(expression, nodes.Identifier) and expression.parts == (name,):
        return expression
    return nodes.Alias(expression, name)
