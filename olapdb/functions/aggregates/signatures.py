"""Checks of an aggregate's arguments, and the types of its states."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence

import pyarrow as pa

from olapdb.errors import (
    AggregateDoesntAllowParameters,
    BadArguments,
    CannotConvertType,
    IllegalTypeOfArgument,
    NumberOfArgumentsDoesntMatch,
    ParameterOutOfBound,
    TooFewArguments,
)
from olapdb.functions.base import Aggregate
from olapdb.functions.kernels import columns
from olapdb.types import (
    AggregateFunction,
    Array,
    DataType,
    Json,
    Map,
    Nullable,
    Tuple,
    make_nullable,
    plain,
    stored_type,
)

ResolveAggregate = Callable[[str, tuple[object, ...], tuple[DataType, ...]], Aggregate]
"""(name, parameters, argument types) -> aggregate: how a combinator gets the one that it wraps."""


def state_type_of(
    name: str, parameters: Sequence[object], arguments: Sequence[DataType], state: DataType
) -> AggregateFunction:
    """Return the type AggregateFunction(name(parameters), arguments…) whose states are `state`.

    Parameters are written as SQL. Argument types are those that a table stores, so a state that was
    stored has the type of a new one."""
    parameter_texts = tuple(sql_literal(p) for p in parameters)
    stored = tuple(stored_type(a) for a in arguments)
    return AggregateFunction(name, parameter_texts, stored, stored_type(state))


def sql_literal(value: object) -> str:
    """Return a parameter as SQL text; strings are quoted and escaped."""
    if isinstance(value, list):
        return "[" + ", ".join(sql_literal(element) for element in value) + "]"
    if isinstance(value, bool) or not isinstance(value, str):
        return str(value)
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def optional_value_type(data_type: DataType) -> Tuple:
    """Return the state type of an optional value: a Tuple of one Nullable field, `value`."""
    return Tuple((optional_type(data_type),), ("value",))


def optional_type(data_type: DataType) -> DataType:
    """Return the type of a state's field that holds a value or nothing.

    It is Nullable; an Array or a Map, which cannot be NULL, stands in a Nullable tuple."""
    kind = plain(data_type)
    if isinstance(kind, Array | Map | Json):
        return Nullable(Tuple((kind,), ("value",)))
    return make_nullable(kind)


def boxed(values: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Pack values into a state's field of Arrow type `arrow`, which `optional_type` gave. Arrays and maps go into
    structs, null where the value is null; other values stay."""
    if pa.types.is_list(values.type) or pa.types.is_map(values.type):
        return columns.structs_from([values], arrow, columns.validity(values))
    return values


def unboxed(field: pa.Array, data_type: DataType) -> pa.Array:
    """Return the values of an optional field that holds `data_type`; null where there is none."""
    if isinstance(plain(data_type), Array | Map | Json):
        (values,) = columns.struct_fields(field)
        return values
    return field


def require_no_parameters(name: str, parameters: Sequence[object]) -> None:
    """Raise AggregateDoesntAllowParameters if there are any parameters."""
    if parameters:
        raise AggregateDoesntAllowParameters(f"Aggregate function {name} takes no parameters.")


def require_count(name: str, arguments: Sequence[DataType], count: int) -> None:
    """Raise NumberOfArgumentsDoesntMatch unless the aggregate `name` has `count` arguments."""
    if len(arguments) != count:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name} takes {count} argument(s), {len(arguments)} given."
        )


def require_some(name: str, arguments: Sequence[DataType]) -> None:
    """Raise TooFewArguments if the quantile `name` has no arguments."""
    if not arguments:
        raise TooFewArguments(f"Aggregate function {name} requires at least one argument.")


def illegal_argument(name: str, data_type: DataType, expected: str) -> IllegalTypeOfArgument:
    """Return the error of an argument type that the aggregate `name` does not take; `expected`, a
    noun with its article, names what it takes."""
    return IllegalTypeOfArgument(
        f"Illegal type {data_type} of argument of aggregate function {name}: {expected} expected."
    )


def distinct_set_type(types: Sequence[DataType]) -> Array:
    """Return the state type of a set of distinct values: an Array, of Tuples for several types."""
    elements = tuple(plain(t) for t in types)
    return Array(elements[0] if len(elements) == 1 else Tuple(elements))


def quantile_levels(name: str, parameters: tuple[object, ...]) -> tuple[float, ...]:
    """Return the levels of a quantile: at most one (0.5 if absent), of quantiles… one or more.

    Raises NumberOfArgumentsDoesntMatch."""
    several = name.startswith("quantiles")
    if len(parameters) != 1 and several != bool(parameters):
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name} takes {'at least' if several else 'at most'} one level."
        )
    return tuple(_level(name, p) for p in parameters) or (0.5,)


def _level(name: str, value: object) -> float:
    """Return the level of a quantile; raise ParameterOutOfBound unless it is from 0 to 1, and
    CannotConvertType for what is no number. True is 1."""
    if not isinstance(value, int | float | decimal.Decimal):
        raise CannotConvertType(f"The level of {name} is a number from 0 to 1, not {value!r}.")
    if isinstance(value, decimal.Decimal) or not 0 <= value <= 1:
        raise ParameterOutOfBound(f"The level of {name} is a number from 0 to 1, not {value!r}.")
    return float(value)


NUMBER_OR_DATE = "a number, decimal or date"


def array_limit(name: str, parameters: tuple[object, ...]) -> tuple[object, ...]:
    """Return the parameters of groupArray, empty or one positive limit, cut to 64 bits.

    Raises NumberOfArgumentsDoesntMatch and BadArguments."""
    if len(parameters) > 1:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name} takes one parameter, its limit."
        )
    for parameter in parameters:
        if not isinstance(parameter, int) or parameter <= 0:
            raise BadArguments(f"The limit of {name} is a positive integer, not {parameter!r}.")
    return tuple(
        min(parameter, 2**63 - 1) for parameter in parameters if isinstance(parameter, int)
    )
