"""What aggregates share: how they are made, the types of their states."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from olapdb.errors import IllegalTypeOfArgument, NumberOfArgumentsDoesntMatch
from olapdb.functions.base import Aggregate
from olapdb.types import (
    AggregateFunction,
    Array,
    DataType,
    Tuple,
    make_nullable,
    plain,
    stored_type,
)

ResolveAggregate = Callable[[str, tuple[object, ...], tuple[DataType, ...]], Aggregate]
"""(name, parameters, argument types) -> the aggregate; how a combinator gets the one it wraps."""


def state_type_of(
    name: str, parameters: Sequence[object], arguments: Sequence[DataType], state: DataType
) -> AggregateFunction:
    """The type of the states of an aggregate, its parameters spelt as SQL; of the arguments' types
    as a table holds them, so that a state that was stored is of the same type."""
    spelt = tuple(sql_literal(p) for p in parameters)
    stored = tuple(stored_type(a) for a in arguments)
    return AggregateFunction(name, spelt, stored, stored_type(state))


def sql_literal(value: object) -> str:
    """A parameter as SQL text."""
    if isinstance(value, bool) or not isinstance(value, str):
        return str(value)
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def optional_value_type(data_type: DataType) -> Tuple:
    """The state of a value that there may not be: a struct of one nullable field."""
    return Tuple((make_nullable(plain(data_type)),), ("value",))


def require_count(name: str, arguments: Sequence[DataType], count: int) -> None:
    if len(arguments) != count:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name} takes {count} argument(s), {len(arguments)} given."
        )


def illegal_argument(name: str, data_type: DataType, wanted: str) -> IllegalTypeOfArgument:
    return IllegalTypeOfArgument(
        f"Illegal type {data_type} of argument of aggregate function {name}: {wanted} expected."
    )


def distinct_set_type(types: Sequence[DataType]) -> Array:
    """The state that holds distinct values, or tuples of several."""
    elements = tuple(plain(t) for t in types)
    return Array(elements[0] if len(elements) == 1 else Tuple(elements))
