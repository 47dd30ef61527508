"""Functions of the length and of parts of a string: length, empty, substring, left, right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns, slices
from olapdb.functions.strings import rendering
from olapdb.functions.strings.arguments import (
    TEXT_TYPES,
    TO_THE_END,
    integers,
    text_kernel,
    text_rule,
)
from olapdb.types import (
    INT64,
    STRING,
    UINT8,
    UINT64,
    UUID,
    Array,
    DataType,
    FixedString,
    Float,
    IPv4,
    IPv6,
    Map,
)


def _length_rule(
    result: DataType, *fixed: type[DataType]
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    """Return a type rule: `result`, for a string, array or map, and for the types in `fixed`."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the type `result`; raise IllegalTypeOfArgument unless the argument is a string, array, map or of a
        type in `fixed`."""
        scalar.require(name, types, (*TEXT_TYPES, Array, Map, *fixed), "a String, Array or Map")
        return result

    return rule


def _sizes(array: pa.Array) -> np.ndarray:
    """Return the number of bytes of strings, or of elements of arrays and maps; shape (rows,)."""
    if pa.types.is_list(array.type) or pa.types.is_map(array.type):
        return np.diff(columns.offsets_of(array))
    return slices.lengths_of(array)


def _length(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the number of bytes or elements as UInt64: the kernel of length."""
    return columns.from_values(_sizes(arrays[0]), pa.uint64())


def _emptiness(*, empty: bool) -> scalar.Kernel:
    """Return the kernel of empty, or without `empty` of notEmpty.

    A FixedString, UUID or address that holds only zero bytes is empty.
    """

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return 1 where the value is empty, or not empty, else 0."""
        if isinstance(call.types[0], IPv4):
            filled = columns.numpy_values(arrays[0]) != 0
        elif isinstance(call.types[0], FixedString | UUID | IPv6):
            filled = rendering.fixed_bytes(arrays[0]).any(axis=1)
        else:
            filled = _sizes(arrays[0]) != 0
        return columns.from_values(filled != empty, pa.uint8())

    return kernel


def _slice_bounds(
    start: np.ndarray, size: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the start, from 0, and the length of each slice of substring(s, start, count).

    `start` counts from 1, or from the end if negative; a negative `count` drops characters from the end. `size` is
    the length of each string."""
    start, count = (
        np.maximum(start, -TO_THE_END // 2),
        np.minimum(count, TO_THE_END),
    )  # sums stay in 64 bits
    begin = np.where(start > 0, start - 1, np.where(start < 0, size + start, size))
    before = np.minimum(begin, 0)
    count = np.where(count < 0, np.maximum(size - begin + count, 0), count)
    return np.maximum(begin, 0), np.maximum(count + before, 0)


def _substring_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless (text, number[, number]).

    Digits behind the point do not count."""
    numbers = tuple(INT64 if isinstance(t, Float) else t for t in types[1:])
    return _ONE_TEXT(name, (types[0], *numbers), arguments)


def _substring(*, utf8: bool) -> scalar.Kernel:
    """Return the kernel of substring(s, start[, count]), in bytes or characters."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Cut each row's substring out of its string."""
        array = columns.text(arrays[0])
        size = slices.lengths_of(array, utf8=utf8)
        count = integers(arrays[2]) if len(arrays) > 2 else np.full(len(array), TO_THE_END)
        begin, length = _slice_bounds(integers(arrays[1]), size, count)
        return slices.pieces(array, begin, length, utf8=utf8)

    return kernel


def _left(*, utf8: bool) -> scalar.Kernel:
    """Return the kernel of left(s, n), in bytes or with `utf8` characters; a negative n drops the
    last -n.
    """

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Take the first n bytes or characters of each string."""
        array, count = columns.text(arrays[0]), integers(arrays[1])
        size = slices.lengths_of(array, utf8=utf8)
        length = np.where(count < 0, np.maximum(size + count, 0), count)
        return slices.pieces(array, np.zeros(len(array), np.int64), length, utf8=utf8)

    return kernel


def _right(*, utf8: bool) -> scalar.Kernel:
    """Return the kernel of right(s, n), in bytes or with `utf8` characters; a negative n drops the
    first -n.
    """

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Take the last n bytes or characters of each string."""
        array, count = columns.text(arrays[0]), integers(arrays[1])
        size = slices.lengths_of(array, utf8=utf8)
        length = np.where(count < 0, np.maximum(size + count, 0), np.minimum(count, size))
        return slices.pieces(array, size - length, length, utf8=utf8)

    return kernel


_ONE_TEXT, _TWO = text_rule(STRING), text_rule(STRING, 2)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define(
        "length",
        _length_rule(UINT64),
        _length,
        aliases=("OCTET_LENGTH", "CARDINALITY"),
        insensitive=True,
    ),
    scalar.define(
        "lengthUTF8",
        text_rule(UINT64),
        text_kernel(lambda a: pc.utf8_length(a).cast(pa.uint64())),
        aliases=("CHAR_LENGTH", "CHARACTER_LENGTH"),
        insensitive=True,
    ),
    scalar.define("empty", _length_rule(UINT8, UUID, IPv4, IPv6), _emptiness(empty=True)),
    scalar.define("notEmpty", _length_rule(UINT8, UUID, IPv4, IPv6), _emptiness(empty=False)),
    scalar.define(
        "substring",
        _substring_rule,
        _substring(utf8=False),
        count=(2, 3),
        aliases=("substr", "mid", "byteSlice"),
        insensitive=True,
    ),
    scalar.define("substringUTF8", _substring_rule, _substring(utf8=True), count=(2, 3)),
    scalar.define("left", _ONE_TEXT, _left(utf8=False), count=2, insensitive=True),
    scalar.define("right", _ONE_TEXT, _right(utf8=False), count=2, insensitive=True),
    scalar.define("leftUTF8", _ONE_TEXT, _left(utf8=True), count=2),
    scalar.define("rightUTF8", _ONE_TEXT, _right(utf8=True), count=2),
)
