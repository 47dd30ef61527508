"""CAST from or to arrays, tuples and maps: their elements are converted one column at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from olapdb import errors, types
from olapdb.functions.casts import nested_texts
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value

Convert = Callable[[pa.Array, types.DataType, types.DataType], pa.Array]
"""Converts the values of one element from a type to another. Raises a DataError with its `row`."""


def no_conversion(source: types.DataType, target: types.DataType) -> errors.DataError:
    """Return the error about two types without a conversion, in the class that ClickHouse raises."""
    if isinstance(target, types.AggregateFunction) and not isinstance(source, types.String):
        return errors.CannotConvertType(f"Conversion from {source} to {target} is not supported.")
    if isinstance(target, types.Enum | types.Decimal):
        return errors.CannotConvertType(f"Conversion from {source} to {target} is not supported.")
    if isinstance(target, types.FixedString):
        return errors.UnsupportedConversion(
            f"Conversion from {source} to {target} is not supported.",
            hint="Convert it to String first: toString(x).",
        )
    is_number = types.is_number(source) and not isinstance(source, types.Decimal)
    if isinstance(target, types.UUID) and (
        is_number or isinstance(source, types.Date | types.DateTime)
    ):
        return errors.UnsupportedConversion(
            f"Conversion from {source} to UUID is not supported.",
            hint="A UUID is written as a text: toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0').",
        )
    if isinstance(source, types.UUID) and isinstance(
        target, types.Integer | types.Float | types.Date | types.Date32 | types.DateTime
    ):
        return errors.UnsupportedConversion(
            f"Conversion from UUID to {target} is not supported.",
            hint="toString(x) is the text of a UUID.",
        )
    nested = isinstance(source, types.Array | types.Tuple | types.Map) and not isinstance(
        target, types.Array | types.Tuple | types.Map
    )
    kind = errors.IllegalConversion if nested else errors.TypeMismatch
    return kind(f"Conversion from {source} to {target} is not supported.")


def _differ_in_dimensions(source: types.DataType, target: types.DataType) -> bool:
    """Return whether only one of two types of elements is an Array, and the other one a number, text, date or
    time."""
    kinds = (
        types.Array
        | types.Tuple
        | types.Map
        | types.Variant
        | types.Dynamic
        | types.Json
        | types.Nothing
    )
    if isinstance(source, types.Array) == isinstance(target, types.Array):
        return False
    other = target if isinstance(source, types.Array) else source
    return not isinstance(types.plain(other), kinds)


def cast_nested(
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    convert: Convert,
    *,
    lossless: bool,
) -> pa.Array:
    """Convert a column from or to an Array, Tuple or Map by `convert`, one column of elements at a time.

    A Map also converts to an Array of pairs; an Array of pairs, or a pair of Arrays, to a Map; a text is parsed as
    the target. With `lossless` a tuple may lose no element by its name, and a text is no Map. Raises
    IllegalConversion or TypeMismatch if the types have no conversion, NotSupportedError for a text and a type that
    is not parsed, and the errors of `convert`."""
    match source, target:
        case (types.Array(), types.Array()):
            if len(array) and _differ_in_dimensions(source.inner, target.inner):
                raise no_conversion(source, target)
            offsets, elements = columns.elements_of(array)
            values = _elements(elements, offsets, source.inner, target.inner, convert)
            return columns.lists_from(offsets, values)
        case (types.String(), types.Map()) if not lossless:
            raise no_conversion(source, target)
        case (types.String(), types.Array() | types.Tuple() | types.Map()):

            def innermost(texts: pa.Array, kind: types.DataType) -> pa.Array:
                """Return texts of innermost values as values of `kind`."""
                return convert(texts, types.STRING, kind)

            values, parsed = nested_texts.parse_nested(array, target, innermost)
            return cast_nested(values, parsed, target, convert, lossless=lossless)
        case (types.Tuple(), types.Tuple()) if source.goes_by_name(target):
            return _by_names(array, source, target, convert, lossless)
        case (types.Tuple(), types.Tuple()) if len(source.elements) == len(target.elements):
            fields = map(convert, columns.struct_fields(array), source.elements, target.elements)
            return columns.structs_from(list(fields), target.arrow, rows=len(array))
        case (types.Map(), types.Map()):
            return _maps(array, source, target, convert)
        case (types.Array(types.Tuple(elements=(key, value))), types.Map()):
            offsets, pairs = columns.elements_of(array)
            keys, items = columns.struct_fields(pairs)
            keys, items = convert(keys, key, target.key), convert(items, value, target.value)
            return columns.maps_from(offsets, keys, items, target.arrow)
        case (types.Map(), types.Array(inner=types.Tuple(elements=(_, _)) as pair)):
            return _pairs_of_map(array, source, pair, convert)
        case (types.Tuple(elements=(types.Array() as keys, types.Array() as items)), types.Map()):
            return _paired(array, (keys, items), target, convert)
        case _:
            raise no_conversion(source, target)


def _by_names(
    array: pa.Array, source: types.Tuple, target: types.Tuple, convert: Convert, lossless: bool
) -> pa.Array:
    """Convert a tuple to one with other names or another order: each target element takes the element of its name, or
    its default.

    Raises TypeMismatch if `lossless` and the two sets of names differ."""
    if lossless and set(source.names) != set(target.names):
        raise errors.TypeMismatch(
            f"The names of {source} are not those of {target}.",
            hint="Name the same elements, in any order, or none.",
        )
    fields = dict(zip(source.names, columns.struct_fields(array), strict=True))
    kinds = dict(zip(source.names, source.elements, strict=True))
    converted = [
        convert(fields[name], kinds[name], kind)
        if name in fields
        else columns.as_array(default_value(kind), len(array))
        for name, kind in zip(target.names, target.elements, strict=True)
    ]
    return columns.structs_from(converted, target.arrow, rows=len(array))


def _elements(
    elements: pa.Array,
    offsets: np.ndarray,
    source: types.DataType,
    target: types.DataType,
    convert: Convert,
) -> pa.Array:
    """Convert the elements of lists; an error names the row of the list, not of the element."""
    try:
        return convert(elements, source, target)
    except errors.DataError as error:
        if error.row is not None:
            error.row = int(np.searchsorted(offsets, error.row, side="right")) - 1
        raise


def _maps(array: pa.Array, source: types.Map, target: types.Map, convert: Convert) -> pa.Array:
    """Convert keys and values of maps; an error names the row of the map."""
    offsets = columns.offsets_of(array)
    start, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    offsets = offsets - start
    keys = array.keys.slice(start, count)
    items = array.items.slice(start, count)
    keys = _elements(keys, offsets, source.key, target.key, convert)
    items = _elements(items, offsets, source.value, target.value, convert)
    return columns.maps_from(offsets, keys, items, target.arrow)


def _pairs_of_map(
    array: pa.Array, source: types.Map, pair: types.Tuple, convert: Convert
) -> pa.Array:
    """Convert maps to arrays of their pairs of key and value."""
    key, value = pair.elements
    converted = _maps(array, source, types.Map(key, value), convert)
    fields = [converted.keys, converted.items]
    pairs = columns.structs_from(fields, pair.arrow, rows=len(converted.keys))
    return columns.lists_from(columns.offsets_of(converted), pairs)


def _paired(
    array: pa.Array, sources: tuple[types.Array, types.Array], target: types.Map, convert: Convert
) -> pa.Array:
    """Convert pairs of an array of keys and an array of values to maps.

    Raises TypeMismatch for the first row in which one array is longer."""
    lists = [columns.elements_of(field) for field in columns.struct_fields(array)]
    (offsets, keys), (other, items) = lists
    differs = np.diff(offsets) != np.diff(other)
    if differs.any():
        raise errors.TypeMismatch(
            "A Map is made of as many values as keys.", hint="arrayResize makes arrays longer."
        ).at_row(int(np.argmax(differs)))
    keys = _elements(keys, offsets, sources[0].inner, target.key, convert)
    items = _elements(items, offsets, sources[1].inner, target.value, convert)
    return columns.maps_from(offsets, keys, items, target.arrow)
