"""variantElement and variantType."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import Error, IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.aggregates.registry import state_representation
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.variants.values import NO_ALTERNATIVE, numbers_of
from olapdb.types import (
    Array,
    DataType,
    Enum,
    Variant,
    is_nullable,
    make_nullable,
    parse_type,
    plain,
)

_ENUM8_MAX = 127


def element_type(alternative: DataType) -> DataType:
    """Return the type of a column with the values of one alternative: Nullable, or as given for arrays and maps,
    which are empty instead."""
    return make_nullable(alternative)


def element(array: pa.Array, place: int, data_type: DataType) -> pa.Array:
    """Return the values of the alternative at `place`; in rows of another alternative NULL, or empty for arrays and
    maps."""
    values = columns.struct_fields(array)[place + 1]
    if values.null_count and not is_nullable(element_type(data_type)):
        return values.fill_null(default_value(data_type))
    return values


def _element(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve variantElement(v, 'Type'[, default]) of a Variant, or of an array of Variants.

    Without such an alternative the result is the default. Raises IllegalTypeOfArgument for other arguments, and for
    a type that is no alternative if there is no default."""
    container, depth = arguments[0].type, 0
    while isinstance(container, Array):
        container, depth = container.inner, depth + 1
    if not isinstance(container, Variant):
        raise scalar.illegal(name, arguments[0].type, "a Variant, or an Array of such,")
    text = scalar.constant_text(name, arguments, 1, "the name of a type")
    place = container.place_of(text)
    if place is None:
        place = _place_of_type(container, text)
    if place is None:
        if len(arguments) > 2:
            return ScalarCall(name, arguments[2].type, lambda v, r, e: v[2])
        raise IllegalTypeOfArgument(
            f"{container} has no type {text}.",
            hint="A third argument is what to return where there is no such type.",
        )
    alternative = container.alternatives[place]
    result = element_type(alternative)
    for _ in range(depth):
        result = Array(result)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the values of the alternative, also within arrays."""
        array = columns.single(values[0])
        values_of_alternative = _within(array, depth, place, alternative)
        return (
            values_of_alternative[0] if isinstance(values[0], pa.Scalar) else values_of_alternative
        )

    return ScalarCall(name, result, kernel)


def _place_of_type(container: Variant, text: str) -> int | None:
    """Return the place of the alternative that a text names in another way, as Decimal32(6) names Decimal(9, 6); None
    if there is none."""
    try:
        named = parse_type(text, state_representation)
    except Error:
        return None
    return container.place_of(named.name)


def _within(array: pa.Array, depth: int, place: int, alternative: DataType) -> pa.Array:
    """Return the values of the alternative at `place` of the elements within `depth` levels of arrays."""
    if not depth:
        return element(array, place, alternative)
    offsets, elements = columns.elements_of(array)
    return columns.lists_from(offsets, _within(elements, depth - 1, place, alternative))


def _type(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve variantType(v): an Enum of the names of the alternatives, 'None' for NULL."""
    variant = plain(arguments[0].type)
    if not isinstance(variant, Variant):
        raise scalar.illegal(name, arguments[0].type, "a Variant")
    names = variant.field_names
    bits = 8 if len(names) <= _ENUM8_MAX else 16
    result = Enum(bits, (("None", -1), *((text, at) for at, text in enumerate(names))))

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the Enum's number of each row's alternative."""
        numbers = numbers_of(columns.single(values[0])).astype(np.int16)
        numbers[numbers == NO_ALTERNATIVE] = -1
        own_numbers = columns.from_values(numbers, result.arrow)
        return own_numbers[0] if isinstance(values[0], pa.Scalar) else own_numbers

    return ScalarCall(name, result, kernel)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("variantElement", _element, count=(2, 3)),
    scalar.custom("variantType", _type),
)
