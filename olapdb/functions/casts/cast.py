"""CAST: conversion of one column from one type to another, with nulls and nested types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.functions.base import Column, Environment
from olapdb.functions.casts import (
    clocks,
    enums,
    parse_dates,
    parse_timestamps,
    parsing,
    wide_numbers,
)
from olapdb.functions.kernels import brain_floats, columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.strings import rendering
from olapdb.lazy import LazyModule
from olapdb.records import dataclass
from olapdb.types.arrow_values import to_numpy

if TYPE_CHECKING:
    from olapdb.functions.casts import addresses, lossless, nested, overflow, to_scalars
    from olapdb.functions.dynamic import casts as dynamic_casts
    from olapdb.functions.variants import casts as variant_casts
else:
    addresses = LazyModule("olapdb.functions.casts.addresses")
    lossless = LazyModule("olapdb.functions.casts.lossless")
    nested = LazyModule("olapdb.functions.casts.nested")
    overflow = LazyModule("olapdb.functions.casts.overflow")
    to_scalars = LazyModule("olapdb.functions.casts.to_scalars")
    dynamic_casts = LazyModule("olapdb.functions.dynamic.casts")
    variant_casts = LazyModule("olapdb.functions.variants.casts")


@dataclass(frozen=True, slots=True)
class _Rule:
    """The strictness of a conversion.

    `strict`: a text that does not parse is an error for a Nullable target too, where a plain CAST gives NULL.
    `lossless`: a value that the conversion would change is an error (see `olapdb.functions.casts.lossless`), and so
    is NULL where the target has none. `fills_nulls`: even then NULL of a Dynamic becomes the target's default."""

    strict: bool
    lossless: bool = False
    fills_nulls: bool = False


_STRICT = _Rule(strict=True)
_BY_ROW = (types.Dynamic, types.Json)
"""Types whose values have types of their own: `functions.dynamic` casts them."""


def cast_column(
    column: Column,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    *,
    strict: bool,
) -> Column:
    """Return the column as values of `target`: integers wrap, floats truncate, texts are parsed.

    A value that cannot be converted raises a DataError with its `row`.  NULL in a target that is
    not Nullable raises CannotInsertNull.  `strict`: a text that does not parse is an error for a
    Nullable target too, where a plain CAST returns NULL.
    """
    return _cast_column(column, source, target, environment, _Rule(strict))


def store_column(
    column: Column, source: types.DataType, target: types.DataType, environment: Environment
) -> Column:
    """Convert as a strict `cast_column`, but refuse values that would change with a DataError.

    INSERTs, views and UPDATEs store values this way. The error has the `row`.
    """
    return _cast_column(column, source, target, environment, _Rule(strict=True, lossless=True))


def store_default(
    column: Column, source: types.DataType, target: types.DataType, environment: Environment
) -> Column:
    """Convert values of a DEFAULT expression as `store_column` does; but NULL of a Dynamic becomes the target's
    default, as in ClickHouse."""
    rule = _Rule(strict=True, lossless=True, fills_nulls=True)
    return _cast_column(column, source, target, environment, rule)


def _cast_column(
    column: Column,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    rule: _Rule,
) -> Column:
    """Convert a column or constant to `target` by `rule`. NULLs stay NULL.

    Raises a DataError with its `row` for a value that cannot be converted, CannotInsertNull for
    NULL in a target that is not Nullable.
    """
    if isinstance(column, pa.Scalar):
        return _cast_column(columns.single(column), source, target, environment, rule)[0]
    if source == target or (
        types.plain(source) == types.plain(target) and types.is_nullable(target)
    ):
        return column
    inner, outer = types.plain(source), types.plain(target)
    if isinstance(inner, _BY_ROW) or isinstance(outer, _BY_ROW):
        return _cast_dynamic(column, source, target, environment, rule)
    if isinstance(inner, types.Variant) or isinstance(outer, types.Variant):
        return _cast_variant(column, source, target, environment, rule)
    _check_nulls(column, source, target)
    if isinstance(inner, types.Nothing):
        return pa.nulls(len(column), target.arrow)
    if inner == outer:
        return column
    valid = columns.validity(column)
    valid_rows = column if valid is None else column.filter(pa.array(valid))
    lenient = (
        not rule.strict
        and types.is_nullable(target)
        and isinstance(inner, types.String | types.FixedString)
        and not isinstance(outer, types.Enum)
    )
    if lenient:  # the same for each text whatever the others are
        converted = _cast_or_null(valid_rows, inner, outer, environment)
    else:
        try:
            converted = _cast(valid_rows, inner, outer, environment, rule)
        except errors.DataError as error:
            raise _on_row(error, valid) from None
    return converted if valid is None else columns.scatter(converted, valid)


def store_literals(
    column: Column, source: types.DataType, target: types.DataType, environment: Environment
) -> Column:
    """Return constants of an INSERT as values of a Variant or a Dynamic: a quoted text is no number, and a number takes
    the smallest type that holds it.

    Raises IncorrectData with its row."""
    variant = types.plain(target)
    if isinstance(variant, types.Dynamic):
        parsed = dynamic_casts.of_literals(columns.single(column), source, environment)
        return parsed[0] if isinstance(column, pa.Scalar) else parsed
    assert isinstance(variant, types.Variant)
    parse = partial(parse_or_null, environment=environment)
    stored = variant_casts.of_literals(columns.single(column), source, variant, parse)
    return stored[0] if isinstance(column, pa.Scalar) else stored


def _cast_variant(
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    rule: _Rule,
) -> pa.Array:
    """Convert from or to a Variant. NULL becomes the default of a target that is not Nullable; under a lossless rule
    it is an error."""
    if rule.lossless:
        _check_nulls(array, source, target)

    def cast(values: pa.Array, inner: types.DataType, outer: types.DataType) -> pa.Array:
        """Convert the values of one alternative."""
        return columns.single(_cast_column(values, inner, outer, environment, rule))

    return variant_casts.convert(
        array,
        types.plain(source) if isinstance(types.plain(source), types.Variant) else source,
        types.plain(target) if isinstance(types.plain(target), types.Variant) else target,
        cast,
        _parser(environment),
        keeps_null=rule.lossless,
    )


def _cast_dynamic(
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    rule: _Rule,
) -> pa.Array:
    """Convert from or to a Dynamic or a JSON. NULL becomes the default of a target that is not Nullable; under a
    lossless rule it is an error."""
    if rule.lossless and not rule.fills_nulls:
        _check_nulls(array, source, target)

    def cast(values: pa.Array, inner: types.DataType, outer: types.DataType) -> pa.Array:
        """Convert the values of one type."""
        return columns.single(_cast_column(values, inner, outer, environment, rule))

    return dynamic_casts.convert(array, source, target, cast, environment)


def _parser(environment: Environment) -> Callable[[pa.Array, types.DataType], pa.Array] | None:
    """Return the function that parses texts when they are cast to a Variant; None if they stay Strings."""
    if "cast_string_to_variant_use_inference" in environment.changed:
        return None
    return partial(parse_or_null, environment=environment)


def parse_or_null(texts: pa.Array, target: types.DataType, environment: Environment) -> pa.Array:
    """Return texts, none of them NULL, as values of `target`, NULL for each that is none. The target is no Nullable
    and no LowCardinality, but may be an array, tuple or map."""
    if isinstance(target, types.Array | types.Tuple | types.Map):
        rule = _Rule(strict=True, lossless=True)
        return _by_halves(
            texts, target, lambda half: _cast(half, types.STRING, target, environment, rule)
        )
    return _cast_or_null(texts, types.STRING, target, environment)


def cast_or_null(
    column: Column,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    *,
    basic: bool = False,
) -> Column:
    """Convert as `cast_column` to Nullable(target), with NULL for each value that does not convert.

    Texts outside an integer's range become NULL. `basic`: timestamps parse only in the formats of
    ISO 8601 and as Unix time.
    """
    if isinstance(column, pa.Scalar):
        return cast_or_null(columns.single(column), source, target, environment, basic=basic)[0]
    inner, outer = types.plain(source), types.plain(target)
    if isinstance(inner, types.Nothing):
        return pa.nulls(len(column), target.arrow)
    if inner == outer:
        return column
    if isinstance(inner, _BY_ROW) or isinstance(outer, _BY_ROW):
        return _by_halves(
            column,
            types.make_nullable(target),
            lambda half: _cast_dynamic(
                half, source, types.make_nullable(target), environment, _STRICT
            ),
        )
    if isinstance(inner, types.Variant) or isinstance(outer, types.Variant):
        return variant_casts.convert(
            column,
            inner,
            outer if isinstance(outer, types.Variant) else target,
            lambda values, s, t: columns.single(cast_or_null(values, s, t, environment)),
            _parser(environment),
            keeps_null=True,
        )
    valid = columns.validity(column)
    valid_rows = column if valid is None else column.filter(pa.array(valid))
    converted = _cast_or_null(valid_rows, inner, outer, environment, basic)
    return converted if valid is None else columns.scatter(converted, valid)


def _check_nulls(column: pa.Array, source: types.DataType, target: types.DataType) -> None:
    """Raise a DataError about the first NULL, if any, unless the target is Nullable.

    It is CannotConvertType for a bare NULL, else CannotInsertNull.
    """
    if types.is_nullable(target) or not column.null_count:
        return
    row = int(np.argmin(to_numpy(column.is_valid())))
    if isinstance(types.plain(source), types.Nothing):
        raise errors.CannotConvertType(
            f"Cannot convert NULL to a type that is not Nullable: {target}."
        ).at_row(row)
    raise errors.CannotInsertNull(
        f"Cannot convert NULL value to non-Nullable type {target}.",
        hint=f"Use Nullable({target}) or coalesce.",
    ).at_row(row)


def _on_row(error: errors.DataError, valid: np.ndarray | None) -> errors.DataError:
    """Return the error with its row counted among all rows, nulls included.

    `valid` marks the rows that were converted; None means all.
    """
    if valid is not None and error.row is not None:
        error.row = int(np.flatnonzero(valid)[error.row])
    return error


def _cast_or_null(
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    basic: bool = False,
) -> pa.Array:
    """Convert to Nullable(target), with NULL for values that do not convert; input without nulls.

    Tries all values at once first. Then only distinct texts that may be valid are parsed.
    """
    if isinstance(source, types.String | types.FixedString) and isinstance(
        target, types.DateTime | types.DateTime64
    ):
        texts = columns.unpadded(array)
        mode = environment.setting("cast_string_to_date_time_mode", "")
        if basic or mode == "basic":
            return parse_timestamps.basic_timestamps_or_null(texts, target, environment.zone)
        american = mode == "best_effort_us"
        return parse_timestamps.timestamps_or_null(
            texts, target, environment.zone, american=american
        )
    if isinstance(source, types.String | types.FixedString) and isinstance(
        target, types.Time | types.Time64
    ):
        return clocks.parse_or_null(columns.unpadded(array), target)
    of_text = isinstance(source, types.String | types.FixedString)
    to_date = isinstance(target, types.Date | types.Date32)
    if not (of_text and to_date) or parse_dates.look_like_dates(columns.unpadded(array)).all():
        try:
            return _cast_strictly(array, source, target, environment)
        except errors.DataError:
            if not of_text:
                return _cast_by_halves(array, source, target, environment)
    encoded = array.dictionary_encode()
    texts = columns.unpadded(encoded.dictionary)
    if to_date:
        plausible = parse_dates.may_be_dates(texts)
    else:
        plausible = parsing.may_parse(texts, target)
    converted = _cast_by_halves(
        encoded.dictionary.filter(pa.array(plausible)), source, target, environment
    )
    return columns.scatter(converted, plausible).take(encoded.indices)


def _cast_by_halves(
    array: pa.Array, source: types.DataType, target: types.DataType, environment: Environment
) -> pa.Array:
    """Convert a column without nulls strictly; NULL for each value that does not convert.

    Halves the column until each bad value is alone; a half without bad values takes one pass."""
    return _by_halves(array, target, lambda half: _cast_strictly(half, source, target, environment))


def _by_halves(
    array: pa.Array, target: types.DataType, convert: Callable[[pa.Array], pa.Array]
) -> pa.Array:
    """Return what `convert` makes of a column without nulls; NULL for each value for which it raises."""
    if not len(array):
        return pa.nulls(0, target.arrow)
    try:
        return convert(array)
    except errors.DataError:
        if len(array) == 1:
            return pa.nulls(1, target.arrow)
        middle = len(array) // 2
        halves = (array.slice(0, middle), array.slice(middle))
        return pa.concat_arrays([_by_halves(half, target, convert) for half in halves])


def _cast_strictly(
    array: pa.Array, source: types.DataType, target: types.DataType, environment: Environment
) -> pa.Array:
    """Convert strictly; a text outside an integer's range is an error instead of wrapping."""
    if isinstance(source, types.String | types.FixedString):
        if isinstance(target, types.Integer):
            return parsing.parse_integers(columns.unpadded(array), target, wrap=False)
        if isinstance(target, types.WideNumber):
            return wide_numbers.parse(columns.unpadded(array), target, wrap=False)
    return _cast(array, source, target, environment, _STRICT)


def _cast(
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    rule: _Rule,
) -> pa.Array:
    """Convert a column without nulls between two different types, neither Nullable nor LowCardinality.

    `rule.lossless` refuses values that would change."""
    if not rule.lossless or isinstance(
        target, types.Array | types.Tuple | types.Map | types.AggregateFunction
    ):
        return _converted(array, source, target, environment, rule)
    convert = partial(_converted, environment=environment, rule=_STRICT)
    return lossless.convert(array, source, target, environment.zone, convert)


def _converted(
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    rule: _Rule,
) -> pa.Array:
    """Convert a column without nulls between two plain types; raise a conversion error if none
    fits.
    """
    converted = _by_own_rules(array, source, target, environment, rule)
    if converted is None and environment.changed:
        converted = _under_settings(array, source, target, environment, rule)
    if converted is not None:
        return converted
    of_text = isinstance(source, types.String | types.FixedString)
    match target:
        case types.String():
            shown = rendering.display_array(array, source, environment.zone)
            if isinstance(source, types.FixedString):
                return pc.ascii_rtrim(shown, characters="\0")  # bytes need not be UTF-8
            return shown
        case types.Time() | types.Time64():
            if of_text:
                return clocks.parse(columns.unpadded(array), target)
            return clocks.to_clock(array, source, target, environment.zone)
        case types.Interval():
            converted = to_scalars.to_interval(array, source, target)
        case types.Integer() | types.Float() | types.Decimal() | types.Boolean():
            converted = to_scalars.to_number(array, source, target)
        case types.Date() | types.Date32() | types.DateTime() | types.DateTime64():
            converted = to_scalars.to_timestamp(array, source, target, environment.zone)
        case types.FixedString() if of_text:
            return parsing.pad_to_fixed(array, target)
        case types.FixedString() if isinstance(source, types.Boolean):
            return parsing.pad_to_fixed(rendering.display_array(array, source), target)
        case types.UUID() if of_text:
            return parsing.parse_uuids(columns.unpadded(array), target)
        case types.IPv4():
            return addresses.to_ipv4(array, source)
        case types.IPv6():
            return addresses.to_ipv6(array, source)
        case types.Array() | types.Tuple() | types.Map():
            convert = partial(_cast_column, environment=environment, rule=rule)
            return nested.cast_nested(array, source, target, convert, lossless=rule.lossless)
        case types.AggregateFunction() if isinstance(source, types.AggregateFunction):
            return _cast_state(array, source, target)
    if converted is None:
        raise nested.no_conversion(source, target)
    return converted


def _by_own_rules(
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    rule: _Rule,
) -> pa.Array | None:
    """Convert from or to a type that has its own rules for all others: BFloat16, Enum, IPv4, IPv6, integers of more
    than 64 bits.

    Return None for other pairs of types."""
    if isinstance(source, types.BFloat16) or isinstance(target, types.BFloat16):
        return _brain_floats(array, source, target, environment, rule)
    if isinstance(target, types.Enum) and _has_enum_conversion(source):
        return enums.to_enum(array, source, target)
    if isinstance(source, types.Enum) and not isinstance(target, types.String):
        if isinstance(target, types.FixedString):
            return parsing.pad_to_fixed(rendering.display_array(array, source), target)
        number_type = source.number_type
        if number_type == target:
            return array
        return _converted(array, number_type, target, environment, rule)
    if isinstance(source, types.IPv4 | types.IPv6) and not isinstance(
        target, types.String | types.Array | types.Tuple | types.Map
    ):
        return addresses.from_address(array, source, target)
    if isinstance(target, types.IPv6) and isinstance(source, types.WideNumber):
        return addresses.to_ipv6(array, source)
    if isinstance(target, types.WideNumber) and not isinstance(source, types.Enum):
        if isinstance(source, types.String | types.FixedString):
            return wide_numbers.parse(columns.unpadded(array), target)
        if isinstance(source, types.UUID) and target == types.UINT128:
            return addresses.as_number(array, target)
        return wide_numbers.to_wide(array, source, target)
    if isinstance(source, types.WideNumber) and not isinstance(target, types.String):
        return wide_numbers.from_wide(array, source, target, environment.zone)
    return None


def _brain_floats(
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    rule: _Rule,
) -> pa.Array:
    """Convert from or to BFloat16 by way of Float32. Raise NotSupportedError for Decimals."""
    if isinstance(source, types.BFloat16):
        if isinstance(target, types.Decimal) and not isinstance(target, types.WideNumber):
            raise errors.NotSupportedError(
                f"Conversion from {source} to Decimal is not implemented.",
                hint="Convert it to Float32 first: toFloat32(x).",
            )
        source = types.FLOAT32
    if not isinstance(target, types.BFloat16):
        same = source == target
        return array if same else _converted(array, source, target, environment, rule)
    if source != types.FLOAT32:
        array = _converted(array, source, types.FLOAT32, environment, rule)
    return brain_floats.truncated(array)


def _under_settings(
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    rule: _Rule,
) -> pa.Array | None:
    """Convert a column without nulls as settings that are not at their defaults require; None where none of them
    concerns the conversion."""
    plain = replace(environment, changed=environment.changed - {_SATURATES, _THROWS})
    if plain.changed != environment.changed:

        def ignoring(values: pa.Array, inner: types.DataType, outer: types.DataType) -> pa.Array:
            """Convert as date_time_overflow_behavior = 'ignore' does."""
            return _converted(values, inner, outer, plain, rule)

        throws = _THROWS in environment.changed
        return overflow.converted(array, source, target, throws, ignoring, environment.zone)
    if not isinstance(source, types.String | types.FixedString):
        return None
    texts = columns.unpadded(array)
    if isinstance(target, types.DateTime | types.DateTime64):
        mode = environment.setting("cast_string_to_date_time_mode", "best_effort")
        if mode == "basic":
            return parse_timestamps.basic_timestamps(texts, target, environment.zone)
        american = mode == "best_effort_us"
        return parse_timestamps.parse_datetimes(texts, target, environment.zone, american=american)
    if (
        isinstance(target, types.IPv4 | types.IPv6)
        and "cast_ipv4_ipv6_default_on_conversion_error" in environment.changed
    ):
        converted = _cast_or_null(array, source, target, replace(environment, changed=frozenset()))
        return pc.fill_null(converted, default_value(target))
    return None


_SATURATES = "date_time_overflow_behavior=saturate"
_THROWS = "date_time_overflow_behavior=throw"


def _has_enum_conversion(source: types.DataType) -> bool:
    """Return whether values of the type convert to an Enum: texts, numbers and other Enums."""
    texts = types.String | types.FixedString | types.Enum
    return isinstance(source, texts) or types.is_number(source)


def _cast_state(
    array: pa.Array, source: types.AggregateFunction, target: types.AggregateFunction
) -> pa.Array:
    """Return states as given if both types are the same aggregate with one representation.

    Raises an error for other types."""
    same = source.function == target.function and source.state.arrow == target.state.arrow
    if "Resample" in source.function:
        same = same and source.parameters[-3:] == target.parameters[-3:]
    if same:
        return array
    raise nested.no_conversion(source, target)
