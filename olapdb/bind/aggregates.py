"""Aggregate calls inside expressions, and expressions after grouping."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from olapdb import functions
from olapdb.bind.contracts import BindContext
from olapdb.bind.grouping_sets import GroupingRef, NullableKey, grouping_value, refuse_grouping
from olapdb.bind.names import NameAllocator
from olapdb.errors import (
    BadArguments,
    Error,
    IllegalAggregation,
    NotAnAggregate,
    Position,
    UnknownAggregateFunction,
)
from olapdb.functions.base import Aggregate, Environment
from olapdb.plan import expressions
from olapdb.records import dataclass
from olapdb.sql import nodes as sql
from olapdb.types import UINT64, is_nullable


@dataclass(frozen=True, slots=True)
class AggregateRef(expressions.Expression):
    """An aggregate inside a bound expression, until grouping gives it a column.

    Its arguments are not its children: they read the rows, not the groups."""

    call: expressions.AggregateCall


def aggregate_refs(expression: expressions.Expression) -> list[AggregateRef]:
    """Return the aggregates in an expression, outermost first."""
    return [e for e in expressions.walk(expression) if isinstance(e, AggregateRef)]


def needs_groups(expression: expressions.Expression) -> bool:
    """Return whether the expression has an aggregate, a grouping() call or a nullable group key."""
    return any(
        isinstance(e, AggregateRef | GroupingRef | NullableKey)
        for e in expressions.walk(expression)
    )


def refuse_aggregates(
    expression: expressions.Expression, clause: str, position: Position | None
) -> expressions.Expression:
    """Return the expression; raise IllegalAggregation if it contains an aggregate or grouping().

    `clause` names the place in the message."""
    for reference in aggregate_refs(expression):
        hint = "Use HAVING to filter by the result of an aggregate." if clause == "WHERE" else ""
        raise IllegalAggregation(
            f"The aggregate function {reference.call.name} is not allowed in {clause}.",
            hint=hint,
            position=position,
        )
    refuse_grouping(expression, f"in {clause}", position)
    return expression


_KEEPS_DEFAULT = re.compile(r"(?i)^count|^uniq|Merge|OrNull")
"""Names of aggregates that aggregate_functions_null_for_empty does not change."""


def refuse_previews(name: str, context: BindContext, position: Position | None) -> None:
    """Raise UnknownAggregateFunction for an aggregate of time series that its setting does not allow."""
    setting = "enable_time_series_aggregate_functions"
    if name.startswith("timeSeries") and not context.flag(setting):
        raise UnknownAggregateFunction(
            f"Aggregate function {name} is in private preview.",
            hint=f"SET {setting} = 1 allows it.",
            position=position,
        )


def resolve_aggregate_call(
    name: str,
    parameters: Sequence[expressions.Expression],
    arguments: tuple[expressions.Expression, ...],
    *,
    null_for_empty: bool = False,
) -> AggregateRef:
    """Return an aggregate call resolved for the types of its arguments, with `null_for_empty` its
    form -OrNull where it has one.

    Raises BadArguments for parameters that are not constant, IllegalAggregation for an aggregate
    or grouping() in an argument."""
    values: list[object] = []
    for parameter in parameters:
        if not isinstance(parameter, expressions.Constant):
            raise BadArguments(f"The parameters of {name} must be constants.")
        values.append(parameter.value.as_py())
    for argument in arguments:
        if nested := aggregate_refs(argument):
            raise IllegalAggregation(
                f"The aggregate function {nested[0].call.name} is found inside another, {name}.",
                hint="Aggregate in a subquery first.",
            )
        refuse_grouping(argument, f"in the aggregate function {name}", None)
    aggregate = functions.resolve_aggregate(name, values, [a.type for a in arguments])
    if null_for_empty:
        name, aggregate = null_for_empty_form(name, aggregate, values, arguments)
    shown = f"{name}({', '.join(_literal(v) for v in values)})" if values else name
    return AggregateRef(
        aggregate.result_type, expressions.AggregateCall(aggregate, shown, arguments)
    )


def null_for_empty_form(
    name: str,
    aggregate: Aggregate,
    values: Sequence[object],
    arguments: Sequence[expressions.Expression],
) -> tuple[str, Aggregate]:
    """Return the -OrNull of an aggregate, below -State, as aggregate_functions_null_for_empty wants
    it; the aggregate itself where its result cannot be NULL, and for counts."""
    if _KEEPS_DEFAULT.search(name):
        return name, aggregate
    state = "State" if name.endswith("State") else ""
    nullable_name = f"{name.removesuffix('State')}OrNull{state}"
    try:
        nullable = functions.resolve_aggregate(nullable_name, values, [a.type for a in arguments])
    except Error:
        return name, aggregate
    if not state and not is_nullable(nullable.result_type):
        return name, aggregate
    return nullable_name, nullable


def texts_to_join(
    name: str, parameters: tuple[sql.Expression, ...], arguments: tuple[sql.Expression, ...]
) -> tuple[tuple[sql.Expression, ...], tuple[sql.Expression, ...]]:
    """Return parameters and arguments of groupConcat, of the name `name`, as its factory takes them.

    The value becomes a text by toString; a delimiter among the arguments becomes the first parameter, in place of
    the one that is there."""
    if len(arguments) == (3 if name.endswith("If") else 2):
        parameters, arguments = (arguments[1], *parameters[1:]), (arguments[0], *arguments[2:])
    if not arguments:
        return parameters, arguments
    first = arguments[0]
    text = sql.Function("toString", (first,), position=first.position)
    return parameters, (text, *arguments[1:])


def _literal(value: object) -> str:
    """Return a parameter of an aggregate as SQL text: a string quoted, else `str(value)`."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return str(value)


class Grouping:
    """The groups of a query: its keys and aggregates, and expressions rewritten over them.

    Constant keys need no grouping; `only_constants` is true where there are no other keys.
    """

    def __init__(
        self,
        names: NameAllocator,
        keys: Sequence[tuple[str, expressions.Expression]],
        sets: Sequence[Sequence[expressions.Expression]] = (),
        environment: Environment | None = None,
        *,
        standard: bool = True,
    ) -> None:
        """Add the keys, whose names are only proposed.

        `keys` are (proposed name, expression over the rows); `sets` has the keys of each set of
        ROLLUP, CUBE or GROUPING SETS. `standard`: see `grouping_value`."""
        self._names = names
        self._sets = sets
        self._environment = environment or Environment()
        self._standard = standard
        self._given = [e for _, e in keys]
        self.set_name = names.unique("grouping_set") if sets else ""
        self._by_key: dict[expressions.Expression, str] = {}
        self._by_aggregate: dict[AggregateRef, str] = {}
        self.keys: list[tuple[str, expressions.Expression]] = []
        self.aggregates: list[tuple[str, expressions.AggregateCall]] = []
        self.only_constants = bool(keys) and all(
            isinstance(e, expressions.Constant) for _, e in keys
        )
        for proposed_name, expression in keys:
            self._add_key(proposed_name, expression)

    def _add_key(self, proposed_name: str, expression: expressions.Expression) -> None:
        """Add an expression over the rows as a key; ignore a constant or a repeated key.

        A column keeps its own name; any other expression gets a unique one."""
        if expression in self._by_key or isinstance(expression, expressions.Constant):
            return
        is_column = isinstance(expression, expressions.ColumnRef)
        name = expression.name if is_column else self._names.unique(proposed_name)  # type: ignore[attr-defined]
        self._by_key[expression] = name
        self.keys.append((name, expression))

    def rewrite(
        self, expression: expressions.Expression, position: Position | None
    ) -> expressions.Expression:
        """Return the expression over the groups: keys and aggregates become columns.

        Raises NotAnAggregate for a column that is neither a key nor under an aggregate."""

        def change(e: expressions.Expression) -> expressions.Expression | None:
            """Return the column of a key or aggregate, None for an expression over them.

            Raises NotAnAggregate."""
            if isinstance(e, AggregateRef):
                return expressions.ColumnRef(e.type, self._aggregate_name(e))
            if isinstance(e, GroupingRef):
                return self._grouping(e)
            if isinstance(e, NullableKey):
                return expressions.ColumnRef(e.type, self._by_key[e.key])
            if isinstance(e, expressions.Constant):
                return e
            if (key := self._by_key.get(e)) is not None:
                return expressions.ColumnRef(e.type, key)
            if isinstance(e, expressions.ColumnRef):
                raise NotAnAggregate(
                    f"Column {e.name!r} is not under an aggregate function and not in GROUP BY.",
                    hint=f"Add it to GROUP BY, or choose one value: any({e.name}).",
                    position=position,
                )
            return None

        return expressions.transform(expression, change)

    @property
    def sets(self) -> tuple[tuple[str, ...], ...]:
        """The names of each set's keys, without constants."""
        return tuple(
            tuple(dict.fromkeys(self._by_key[e] for e in members if e in self._by_key))
            for members in self._sets
        )

    def _grouping(self, reference: GroupingRef) -> expressions.Expression:
        """Return the value of a GROUPING(…) call over the groups, computed from the set number."""
        column = expressions.ColumnRef(UINT64, self.set_name) if self._sets else None
        return grouping_value(
            reference, self._given, self._sets, column, self._environment, standard=self._standard
        )

    def row_expressions(self) -> Iterator[expressions.Expression]:
        """Yield the expressions over the rows: keys, and arguments of aggregates."""
        yield from (key for _, key in self.keys)
        for _, call in self.aggregates:
            yield from call.arguments

    def _aggregate_name(self, reference: AggregateRef) -> str:
        """Return the output column of an aggregate, adding the aggregate at its first use."""
        name = self._by_aggregate.get(reference)
        if name is None:
            name = self._names.unique(_column_name(reference.call))
            self._by_aggregate[reference] = name
            self.aggregates.append((name, reference.call))
        return name


def _column_name(call: expressions.AggregateCall) -> str:
    """Return a readable base for an aggregate's column: `sum(a)`, with `…` for an expression."""
    inside = ", ".join(
        a.name if isinstance(a, expressions.ColumnRef) else "…" for a in call.arguments
    )
    return f"{call.name}({inside})"


def implicit_keys(expression: expressions.Expression) -> list[expressions.Expression]:
    """Return the keys of GROUP BY ALL for one SELECT column, [] for a constant.

    A column without aggregates and window functions is a key itself. Of any other column its
    largest parts without them are keys."""
    if isinstance(expression, AggregateRef | GroupingRef | expressions.LambdaParameter):
        return []
    whole = not any(
        isinstance(e, AggregateRef | GroupingRef | expressions.WindowExpression)
        for e in expressions.walk(expression)
    )
    if whole and not expressions.free_parameters(expression):
        return [] if isinstance(expression, expressions.Constant) else [expression]
    return [key for child in expression.children() for key in implicit_keys(child)]
