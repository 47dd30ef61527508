"""Types that the parser accepts and no column may have; ClickHouse refuses them too."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from olapdb import types
from olapdb.config import Settings
from olapdb.errors import (
    ArgumentOutOfBound,
    BadArguments,
    Error,
    IllegalColumn,
    IllegalTypeOfArgument,
    SuspiciousTypeForLowCardinality,
)
from olapdb.functions import check_combinators, resolve_aggregate
from olapdb.functions.variants.suspicious import refuse_similar

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

_REPEATED_TEXTS = (types.String, types.FixedString, types.UUID)
_USUAL_BYTES_MAX = 256

_SIMPLE_AGGREGATES = (
    "any",
    "anyLast",
    "first_value",
    "last_value",
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
    for inner in _inner_types(data_type):
        check_type(inner, column)


def refuse_suspicious(data_type: types.DataType | None, column: str, settings: Settings) -> None:
    """Raise SuspiciousTypeForLowCardinality for a type that holds LowCardinality of anything but
    texts and UUID, IllegalColumn for a FixedString of more than 256 bytes; settings allow them."""
    match data_type:
        case None:
            return
        case types.LowCardinality() if not isinstance(types.plain(data_type), _REPEATED_TEXTS):
            if not settings.boolean("allow_suspicious_low_cardinality_types"):
                raise SuspiciousTypeForLowCardinality(
                    f"Column {column}: {data_type} gains nothing over {data_type.inner}.",
                    hint="allow_suspicious_low_cardinality_types = 1 allows it.",
                )
        case types.Variant() if not settings.boolean("allow_suspicious_variant_types"):
            refuse_similar(data_type)
        case types.FixedString(length) if length > _USUAL_BYTES_MAX:
            if not settings.boolean("allow_suspicious_fixed_string_types"):
                raise IllegalColumn(
                    f"Column {column}: {data_type} has more than {_USUAL_BYTES_MAX} bytes.",
                    hint="Write String; allow_suspicious_fixed_string_types = 1 allows it.",
                )
    for inner in _inner_types(data_type):
        refuse_suspicious(inner, column, settings)


def _inner_types(data_type: types.DataType) -> tuple[types.DataType, ...]:
    """Return the types directly inside the type."""
    match data_type:
        case types.Nullable(inner) | types.LowCardinality(inner) | types.Array(inner):
            return (inner,)
        case types.SimpleAggregateFunction(inner=inner):
            return (inner,)
        case types.Map(key, value):
            return (key, value)
        case types.Tuple(elements):
            return elements
        case types.Variant(alternatives):
            return alternatives
        case types.AggregateFunction(arguments=arguments):
            return arguments
        case _:
            return ()


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
