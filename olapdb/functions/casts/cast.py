"""CAST: one column from one type to another, nulls and nesting included."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.functions.base import Column, Environment
from olapdb.functions.casts import (
    lossless,
    numbers,
    parse_dates,
    parse_timestamps,
    parsing,
    temporal,
)
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.strings import text


@dataclass(frozen=True, slots=True)
class _Rule:
    """`strict`: a text that does not parse is an error for a Nullable target too.  `lossless`: so
    is a value that the conversion would change, see `olapdb.functions.casts.lossless`."""

    strict: bool
    lossless: bool = False


_STRICT = _Rule(strict=True)


def cast_column(
    column: Column,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    *,
    strict: bool,
) -> Column:
    """The column as values of `target`: integers wrap, floats truncate, texts are parsed.

    A value that cannot be converted raises a DataError with its `row`.  NULL in a target that is
    not Nullable raises CannotInsertNull.  `strict`: a text that does not parse is an error for a
    Nullable target too, where a plain CAST gives NULL.
    """
    return _cast_column(column, source, target, environment, _Rule(strict))


def store_column(
    column: Column, source: types.DataType, target: types.DataType, environment: Environment
) -> Column:
    """As a strict `cast_column`, but a value that would be changed is a DataError with its `row`:
    how an INSERT, a view and an UPDATE store values."""
    return _cast_column(column, source, target, environment, _Rule(strict=True, lossless=True))


def _cast_column(
    column: Column,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    rule: _Rule,
) -> Column:
    if isinstance(column, pa.Scalar):
        return _cast_column(columns.single(column), source, target, environment, rule)[0]
    if source == target or (
        types.plain(source) == types.plain(target) and types.is_nullable(target)
    ):
        return column
    _check_nulls(column, source, target)
    inner, outer = types.plain(source), types.plain(target)
    if isinstance(inner, types.Nothing):
        return pa.nulls(len(column), target.arrow)
    if inner == outer:
        return column
    valid = columns.validity(column)
    present = column if valid is None else column.filter(pa.array(valid))
    lenient = (
        not rule.strict
        and types.is_nullable(target)
        and isinstance(inner, types.String | types.FixedString)
    )
    try:
        cast = _cast(present, inner, outer, environment, rule)
    except errors.DataError as error:
        if lenient:
            cast = _cast_or_null(present, inner, outer, environment)
        else:
            raise _on_row(error, valid) from None
    return cast if valid is None else columns.scatter(cast, valid)


def cast_or_null(
    column: Column,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    *,
    basic: bool = False,
) -> Column:
    """As `cast_column` to Nullable(target), NULL where a value does not convert; texts out of an
    integer's range do not.  `basic`: of the formats of moments only those of ISO and Unix."""
    if isinstance(column, pa.Scalar):
        return cast_or_null(columns.single(column), source, target, environment, basic=basic)[0]
    inner, outer = types.plain(source), types.plain(target)
    if isinstance(inner, types.Nothing):
        return pa.nulls(len(column), target.arrow)
    if inner == outer:
        return column
    valid = columns.validity(column)
    present = column if valid is None else column.filter(pa.array(valid))
    cast = _cast_or_null(present, inner, outer, environment, basic)
    return cast if valid is None else columns.scatter(cast, valid)


def _check_nulls(column: pa.Array, source: types.DataType, target: types.DataType) -> None:
    if types.is_nullable(target) or not column.null_count:
        return
    row = int(np.argmin(np.asarray(column.is_valid())))
    if isinstance(types.plain(source), types.Nothing):
        raise errors.CannotConvertType(
            f"Cannot convert NULL to a type that is not Nullable: {target}."
        ).at_row(row)
    raise errors.CannotInsertNull(
        f"Cannot convert NULL value to non-Nullable type {target}.",
        hint=f"Use Nullable({target}) or coalesce.",
    ).at_row(row)


def _on_row(error: errors.DataError, valid: np.ndarray | None) -> errors.DataError:
    """The error with the row counted among all rows, nulls included."""
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
    """All at once where nothing is bad; else each text once, without those that are none at all."""
    if isinstance(source, types.String | types.FixedString) and isinstance(
        target, types.DateTime | types.DateTime64
    ):
        texts = columns.unpadded(array)
        if basic:
            return parse_timestamps.basic_or_null(texts, target, environment.zone)
        return parse_timestamps.moments_or_null(texts, target, environment.zone)
    try:
        return _cast_strictly(array, source, target, environment)
    except errors.DataError:
        if not isinstance(source, types.String | types.FixedString):
            return _halved(array, source, target, environment)
    distinct = array.dictionary_encode()
    texts = columns.unpadded(distinct.dictionary)
    if isinstance(target, types.Date | types.Date32):
        like = parse_dates.look_like_dates(texts)
    else:
        like = parsing.look_like(texts, target)
    made = _halved(distinct.dictionary.filter(pa.array(like)), source, target, environment)
    return columns.scatter(made, like).take(distinct.indices)


def _halved(
    array: pa.Array, source: types.DataType, target: types.DataType, environment: Environment
) -> pa.Array:
    """Halves until the bad values stand alone; a good half costs one pass."""
    if not len(array):
        return pa.nulls(0, target.arrow)
    try:
        return _cast_strictly(array, source, target, environment)
    except errors.DataError:
        if len(array) == 1:
            return pa.nulls(1, target.arrow)
        middle = len(array) // 2
        halves = (array.slice(0, middle), array.slice(middle))
        return pa.concat_arrays([_halved(h, source, target, environment) for h in halves])


def _cast_strictly(
    array: pa.Array, source: types.DataType, target: types.DataType, environment: Environment
) -> pa.Array:
    if isinstance(source, types.String) and isinstance(target, types.Integer):
        return parsing.parse_integers(array, target, wrap=False)
    return _cast(array, source, target, environment, _STRICT)


def _cast(
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    rule: _Rule,
) -> pa.Array:
    """Plain types that differ; no nulls at this level."""
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
    number = types.is_number(source)
    match target:
        case types.String():
            shown = text.display_array(array, source, environment.zone)
            if isinstance(source, types.FixedString):
                return pc.ascii_rtrim(shown, characters="\0")  # bytes, be they UTF-8 or not
            return shown
        case types.Integer() | types.Float() | types.Decimal() | types.Boolean() if isinstance(
            source, types.String | types.FixedString
        ):
            return _parse(columns.unpadded(array), target)
        case types.Interval() if isinstance(source, types.Integer):
            return array.cast(pa.int64(), safe=False)
        case types.Boolean() if number:
            return pc.not_equal(array, pa.scalar(0, array.type))
        case types.Integer() if number or isinstance(source, types.Interval):
            return numbers.to_integer(array, source, target)
        case types.ExactFloat() if number:
            return numbers.to_exact_float(array, source, target)
        case types.Float() if number:
            return numbers.to_float(array, source, target)
        case types.Decimal() if isinstance(source, types.Boolean):
            return numbers.to_decimal(array.cast(pa.uint8()), source, target)
        case types.Decimal() if number:
            return numbers.to_decimal(array, source, target)
        case types.Integer() | types.Float() | types.Boolean() if isinstance(
            source, temporal.Timed
        ):
            return temporal.from_time(array, source, target)
        case types.Decimal() if isinstance(source, types.DateTime64 | types.DateTime):
            return _time_to_decimal(array, source, target)
        case types.Date() | types.Date32() if isinstance(source, types.String | types.FixedString):
            return parse_dates.parse_dates(columns.unpadded(array), target)
        case types.DateTime() | types.DateTime64() if isinstance(
            source, types.String | types.FixedString
        ):
            return parse_timestamps.parse_datetimes(
                columns.unpadded(array), target, environment.zone
            )
        case types.Date() | types.Date32() | types.DateTime() | types.DateTime64() if (
            number or isinstance(source, temporal.Timed)
        ):
            return temporal.to_time(array, source, target, environment.zone)
        case types.FixedString() if isinstance(source, types.String | types.FixedString):
            return parsing.to_fixed(array, target)
        case types.UUID() if isinstance(source, types.String | types.FixedString):
            return parsing.parse_uuids(columns.unpadded(array), target)
        case types.Array() | types.Tuple() | types.Map():
            return _cast_nested(array, source, target, environment, rule)
        case types.AggregateFunction() if isinstance(source, types.AggregateFunction):
            return _cast_state(array, source, target)
        case _:
            raise _no_conversion(source, target)


def _no_conversion(
    source: types.DataType, target: types.DataType
) -> errors.IllegalConversion | errors.TypeMismatch:
    nested = isinstance(source, types.Array | types.Tuple | types.Map) and not isinstance(
        target, types.Array | types.Tuple | types.Map
    )
    kind = errors.IllegalConversion if nested else errors.TypeMismatch
    return kind(f"Conversion from {source} to {target} is not supported.")


def _parse(array: pa.Array, target: types.DataType) -> pa.Array:
    match target:
        case types.Integer():
            return parsing.parse_integers(array, target)
        case types.Float():
            return parsing.parse_floats(array, target)
        case types.Decimal():
            return parsing.parse_decimals(array, target)
        case _:
            return parsing.parse_bools(array)


def _time_to_decimal(array: pa.Array, source: types.DataType, target: types.Decimal) -> pa.Array:
    ticks = calendar.ticks_per_second(source)
    values = pa.array(columns.numpy_values(array)).cast(pa.decimal256(20, 0))
    scale = len(str(ticks)) - 1
    return numbers.to_decimal(
        columns.view(values.cast(pa.decimal256(76, 0)), pa.decimal256(76, scale)),
        types.Decimal(76, scale),
        target,
    )


def _cast_state(
    array: pa.Array, source: types.AggregateFunction, target: types.AggregateFunction
) -> pa.Array:
    """States of one aggregate whose representation is equal stand for each other."""
    if source.function == target.function and source.state.arrow == target.state.arrow:
        return array
    raise _no_conversion(source, target)


def _cast_nested(
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    rule: _Rule,
) -> pa.Array:
    match source, target:
        case (types.Array(), types.Array()):
            offsets, elements = columns.elements_of(array)
            cast = _elements(elements, offsets, source.inner, target.inner, environment, rule)
            return columns.lists_from(offsets, cast)
        case (types.String(), types.Array()):
            lists, now = parsing.parse_arrays(array, target)
            return lists if now == target else _cast_nested(lists, now, target, environment, rule)
        case (types.Tuple(), types.Tuple()) if len(source.elements) == len(target.elements):
            fields = zip(
                columns.struct_fields(array), source.elements, target.elements, strict=True
            )
            cast_fields = [_cast_column(f, s, t, environment, rule) for f, s, t in fields]
            return columns.structs_from(cast_fields, target.arrow, rows=len(array))
        case (types.Map(), types.Map()):
            return _cast_map(array, source, target, environment, rule)
        case (types.Array(types.Tuple(elements=(key, value))), types.Map()):
            offsets, pairs = columns.elements_of(array)
            keys, items = columns.struct_fields(pairs)
            keys = _cast_column(keys, key, target.key, environment, rule)
            items = _cast_column(items, value, target.value, environment, rule)
            return map_from(offsets, keys, items, target)
        case (types.String(), _):
            raise errors.NotSupportedError(
                f"Reading a {target} from text is not supported.", hint="Write it as an expression."
            )
        case _:
            raise _no_conversion(source, target)


def _elements(
    elements: pa.Array,
    offsets: np.ndarray,
    source: types.DataType,
    target: types.DataType,
    environment: Environment,
    rule: _Rule,
) -> pa.Array:
    """The elements cast; an error names the row of the list, not of the element."""
    try:
        return _cast_column(elements, source, target, environment, rule)
    except errors.DataError as error:
        if error.row is not None:
            error.row = int(np.searchsorted(offsets, error.row, side="right")) - 1
        raise


def _cast_map(
    array: pa.Array, source: types.Map, target: types.Map, environment: Environment, rule: _Rule
) -> pa.Array:
    offsets = columns.offsets_of(array)
    start, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    offsets = offsets - start
    keys = _elements(
        array.keys.slice(start, count), offsets, source.key, target.key, environment, rule
    )
    items = _elements(
        array.items.slice(start, count), offsets, source.value, target.value, environment, rule
    )
    return map_from(offsets, keys, items, target)


def map_from(offsets: np.ndarray, keys: pa.Array, items: pa.Array, target: types.Map) -> pa.Array:
    """A map array of offsets from 0."""
    made = pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items)
    return made if made.type == target.arrow else made.cast(target.arrow)
