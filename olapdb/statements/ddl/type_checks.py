"""Types that the parser accepts and no column may have; ClickHouse refuses them too."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from olapdb import types
from olapdb.config import Settings
from olapdb.errors import ArgumentOutOfBound, BadArguments, Error, IllegalTypeOfArgument
from olapdb.functions import check_combinators, resolve_aggregate
from olapdb.functions.variants import suspicious

_NOT_IN_NULLABLE = (
    types.Array,
    types.Map,
    types.Nullable,
    types.LowCardinality,
    types.AggregateFunction,
    types.Variant,
)
_IN_LOW_CARDINALITY = (
    types.Integer,
    types.Float,
    types.Boolean,
    types.String,
    types.FixedString,
    types.Date,
    types.Date32,
    types.DateTime,
    types.UUID,
    types.IPv4,
    types.IPv6,
)

_SIMPLE_AGGREGATES = (
    "any",
    "anyLast",
    "first_value",
    "last_value",
    "any_respect_nulls",
    "anyLast_respect_nulls",
    "min",
    "max",
    "sum",
    "sumWithOverflow",
    "groupBitAnd",
    "groupBitOr",
    "groupBitXor",
    "groupUniqArrayArray",
    "groupArrayArray",
    "sumMap",
    "minMap",
    "maxMap",
)
"""Functions allowed in SimpleAggregateFunction: f(f(a), f(b)) equals f of all rows of a and b."""


def check_type(data_type: types.DataType, column: str) -> None:
    """Raise IllegalTypeOfArgument or BadArguments if a column cannot have the type, or a type
    nested in it."""
    _check_outer_type(data_type, column)
    for inner in suspicious.inner_types(data_type):
        check_type(inner, column)


def refuse_suspicious(data_type: types.DataType | None, column: str, settings: Settings) -> None:
    """Raise as `suspicious.refuse_suspicious` for the type of a column; None has none."""
    if data_type is not None:
        suspicious.refuse_suspicious(data_type, f"Column {column}", settings.boolean)


def _check_outer_type(data_type: types.DataType, column: str) -> None:
    """Check the type without those inside it."""
    match data_type:
        case types.Nullable(inner) if isinstance(inner, _NOT_IN_NULLABLE):
            raise IllegalTypeOfArgument(
                f"Column {column}: {inner} cannot be inside Nullable.",
                hint="An empty array or map says as much."
                if isinstance(inner, types.Array | types.Map)
                else "Write LowCardinality(Nullable(T)).",
            )
        case types.LowCardinality(inner):
            element = inner.inner if isinstance(inner, types.Nullable) else inner
            if not isinstance(element, _IN_LOW_CARDINALITY):
                raise IllegalTypeOfArgument(
                    f"Column {column}: LowCardinality is for numbers, strings, Date and DateTime,"
                    f" not {inner}.",
                    hint=f"Write {inner}.",
                )
        case types.Map(key, _) if types.is_nullable(key):
            raise BadArguments(f"Column {column}: a Map cannot have a key of type {key}.")
        case types.FixedString(length) if not 1 <= length <= types.FIXED_STRING_BYTES_MAX:
            raise ArgumentOutOfBound(
                f"Column {column}: FixedString has 1 to {types.FIXED_STRING_BYTES_MAX} bytes, not {length}."
            )
        case types.SimpleAggregateFunction(function, inner) if function not in _SIMPLE_AGGREGATES:
            resolve_aggregate(function, (), (inner,))
            raise BadArguments(
                f"Column {column}: {function} of values of {inner} is no SimpleAggregateFunction:"
                " what it makes of two rows is not what it makes of their results.",
                hint=f"There are {', '.join(_SIMPLE_AGGREGATES)}; of other functions keep the state,"
                f" AggregateFunction({function}, …).",
            )
        case types.SimpleAggregateFunction(function, inner):
            _check_simple(function, inner, column)
        case types.AggregateFunction(function):
            check_combinators(function)
        case types.DateTime(zone) | types.DateTime64(zone=zone) if zone is not None:
            _check_zone(zone, column)


def _check_simple(function: str, inner: types.DataType, column: str) -> None:
    """Raise BadArguments if the function turns two values of the type into a value of another
    type."""
    result_type = resolve_aggregate(function, (), (inner,)).result_type
    if types.plain(result_type) != types.plain(inner):
        raise BadArguments(
            f"Column {column}: {function} makes {result_type} of {inner}, and so it cannot be kept.",
            hint=f"Write SimpleAggregateFunction({function}, {result_type}).",
        )


def _check_zone(zone: str, column: str) -> None:
    """Raise BadArguments for an unknown time zone."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _unknown_zone(zone, column) from error


def _unknown_zone(zone: str, column: str) -> Error:
    """Return the error for an unknown time zone."""
    return BadArguments(
        f"Column {column}: there is no time zone {zone!r}.", hint="For example 'Europe/Berlin'."
    )
