"""Sets of constants on the right of IN: each element as a value of the left side's type."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb import functions, types
from olapdb.bind import constants
from olapdb.errors import (
    DataError,
    IllegalTypeOfArgument,
    IncorrectElementOfSet,
    TypeMismatch,
    UnknownElementOfEnum,
)
from olapdb.functions.base import Environment
from olapdb.functions.kernels.columns import (
    from_scalars,
    lists_from,
    maps_from,
    single,
    structs_from,
    text,
)
from olapdb.plan.expressions import Constant


def key_of(value: pa.Scalar) -> object:
    """Return a hashable key of a value, by which equal values are one.

    -0.0 differs from 0.0 and NaN equals NaN, in tuples and arrays too."""
    if not value.is_valid:
        return None
    if pa.types.is_floating(value.type):
        return str(value)
    if pa.types.is_struct(value.type):
        return tuple(key_of(element) for element in value.values())
    if pa.types.is_list(value.type) or pa.types.is_map(value.type):
        return tuple(key_of(element) for element in value.values)
    return value


def element_as(
    element: Constant, target: types.DataType, environment: Environment, *, inner: bool = False
) -> pa.Scalar | None:
    """Return the element as the argument's type, None where no value of that type equals it. A tuple with a NULL
    equals none, but as an `inner` value, of an array, a map or a tuple, it may.

    Raises TypeMismatch for types that cannot be compared, DataError for unparsable text."""
    source = types.plain(element.type)
    if source == target and isinstance(target, types.Array | types.Map):
        return element.value
    if isinstance(target, types.Tuple) and isinstance(source, types.Tuple):
        return _convert_tuple(element, source, target, environment, inner)
    if isinstance(target, types.Array) and isinstance(source, types.Array):
        return _convert_array(element, source, target, environment)
    if isinstance(target, types.Map) and isinstance(source, types.Map):
        return _convert_map(element, source, target, environment)
    if isinstance(source, types.Nothing) or isinstance(target, types.Nothing):
        return None
    if isinstance(source, types.Tuple) and types.is_number(target):
        raise IllegalTypeOfArgument(f"IN compares a {target} with a {source}.")
    if isinstance(target, types.String) and isinstance(source, types.FixedString):
        return text(single(element.value))[0]
    if (
        isinstance(target, types.String)
        and not isinstance(source, types.String)
        and not types.is_number(source)
    ):
        raise TypeMismatch(
            f"IN compares {target} with a list that holds a {source}.",
            hint="Quote the values, or cast the left side.",
        )
    if isinstance(source, types.String) and constants.is_beyond(element, target):
        return None
    if isinstance(target, types.Variant):
        try:
            return functions.store_literals(element.value, element.type, target, environment)
        except DataError:
            return None
    try:
        converted = constants.cast(element, target, environment, eager=True)
    except UnknownElementOfEnum:
        return None
    except DataError as error:
        if types.is_number(target) and types.is_number(source):
            return None
        if types.is_number(target):
            raise constants.unparsable_number(element, target) from error
        raise
    assert isinstance(converted, Constant)
    if (
        types.is_number(target)
        and types.is_number(source)
        and not _equal_numbers(element, converted)
    ):
        return None
    return converted.value


def _convert_tuple(
    element: Constant,
    source: types.Tuple,
    target: types.Tuple,
    environment: Environment,
    inner: bool,
) -> pa.Scalar | None:
    """Return a constant tuple as the left side's type, None if an element is no match, or is NULL outside of an `inner`
    tuple.

    Raises IncorrectElementOfSet for tuples of different lengths, TypeMismatch where the left side's
    has one element."""
    if len(source.elements) != len(target.elements):
        wrong = TypeMismatch if len(target.elements) == 1 else IncorrectElementOfSet
        raise wrong(
            f"IN compares tuples of {len(target.elements)} with a tuple of {len(source.elements)}."
        )
    if not target.elements:
        return element.value
    parts: list[pa.Array] = []
    for part, part_type, target_type in zip(
        element.value.values(), source.elements, target.elements, strict=True
    ):
        plain_type = types.plain(target_type)
        if inner and not part.is_valid and types.is_nullable(target_type):
            parts.append(pa.nulls(1, plain_type.arrow))
            continue
        if not part.is_valid:
            return None
        converted = element_as(Constant(part_type, part), plain_type, environment, inner=True)
        if converted is None:
            return None
        parts.append(from_scalars([converted], plain_type.arrow))
    return structs_from(parts, target.arrow)[0]


def _convert_array(
    element: Constant, source: types.Array, target: types.Array, environment: Environment
) -> pa.Scalar | None:
    """Return a constant array as the left side's type, None if no array of that type equals it."""
    values = _convert_values(element.value.values, source.inner, target.inner, environment)
    return None if values is None else lists_from(np.array([0, len(values)]), values)[0]


def _convert_map(
    element: Constant, source: types.Map, target: types.Map, environment: Environment
) -> pa.Scalar | None:
    """Return a constant map as the left side's type, None if no map of that type equals it."""
    entries = element.value.values
    keys, values = (
        _convert_values(entries.field(at), given, wanted, environment)
        for at, (given, wanted) in enumerate(
            ((source.key, target.key), (source.value, target.value))
        )
    )
    if keys is None or values is None:
        return None
    return maps_from(np.array([0, len(keys)]), keys, values, target.arrow)[0]


def _convert_values(
    values: pa.Array, source: types.DataType, target: types.DataType, environment: Environment
) -> pa.Array | None:
    """Return the values of an array or a map as another type, None if one of them equals no value of that type."""
    parts: list[pa.Scalar] = []
    for part in values:
        if part.is_valid:
            plain_target = types.plain(target)
            converted = element_as(Constant(source, part), plain_target, environment, inner=True)
        else:
            converted = part if types.is_nullable(target) else None
        if converted is None:
            return None
        parts.append(converted)
    return from_scalars(parts, target.arrow)


def _equal_numbers(element: Constant, converted: Constant) -> bool:
    """Return whether a conversion kept the number: 300 is no UInt8, 1.5 no Int32."""
    left, right = element.value.as_py(), converted.value.as_py()
    source, target = types.plain(element.type), types.plain(converted.type)
    if isinstance(source, types.Boolean):
        return True
    if isinstance(target, types.Boolean):
        return bool(left == int(right))
    if isinstance(target, types.Float):
        both_nan = left != left and right != right
        return isinstance(source, types.Decimal) or both_nan or bool(left == right)
    if isinstance(target, types.Decimal) and isinstance(left, float):
        return float(right) == left
    assert isinstance(target, types.Integer | types.Decimal)
    return bool(left == right)
