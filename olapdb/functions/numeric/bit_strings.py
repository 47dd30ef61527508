"""Bits of texts: bitSlice, and bitNot, bitAnd, bitOr, bitXor and shifts of texts.

A text is one number, its first byte the highest. Python is called once for each distinct row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import ArgumentOutOfBound
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.by_value import values_by_row
from olapdb.functions.scalar import Invocation, Kernel, illegal, require
from olapdb.types import STRING, DataType, FixedString, Integer, String


def slice_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless a text, then integers."""
    require(name, types[:1], (String, FixedString), "a String")
    require(name, types[1:], Integer, "an integer")
    return STRING


def slice_of(text: bytes, offset: int, length: int | None = None) -> bytes:
    """Return `length` bits of a text from bit `offset` on, which counts from 1, or from the end if negative.

    Without `length` all bits to the end; a negative one leaves bits out at the end. The last byte is filled up with
    zero bits. An offset of 0 gives b""."""
    size = 8 * len(text)
    start = offset - 1 if offset > 0 else size + offset
    stop = size if length is None else size + length if length < 0 else start + length
    start, stop = max(start, 0), min(stop, size)
    if offset == 0 or stop <= start:
        return b""
    width = stop - start
    number = (int.from_bytes(text, "big") >> (size - stop)) & ((1 << width) - 1)
    return (number << (-width % 8)).to_bytes((width + 7) // 8, "big")


def _with_bytes(array: pa.Array, data: np.ndarray) -> pa.Array:
    """Return texts with the lengths of `array` and the bytes of `data`."""
    arrow = array.type
    if pa.types.is_fixed_size_binary(arrow):
        return pa.Array.from_buffers(arrow, len(array), [None, pa.py_buffer(data.tobytes())])
    return columns.strings_from(columns.bytes_of(array)[0], data)


def _bytes(array: pa.Array) -> np.ndarray:
    """Return the bytes of all texts, one text after the other."""
    return columns.bytes_of(columns.text(array))[1]


def inverted(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return texts with all bits inverted: the kernel of bitNot."""
    return _with_bytes(arrays[0], ~_bytes(arrays[0]))


def combined(function: np.ufunc) -> Kernel:
    """Return the kernel of bitAnd, bitOr or bitXor of two FixedStrings of one length; `function` combines their
    bytes."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Combine the bytes at the same place of both texts by `function`."""
        return _with_bytes(arrays[0], function(_bytes(arrays[0]), _bytes(arrays[1])))

    return kernel


def differing_bits(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return in how many bits two texts differ, compared byte by byte from the first; the set bits of the longer
    text's rest count too."""
    (left, left_data), (right, right_data) = (columns.bytes_of(columns.text(a)) for a in arrays)
    sizes = np.maximum(np.diff(left), np.diff(right))
    offsets = columns.offsets_from_counts(sizes)
    both = np.zeros(int(offsets[-1]), np.uint8)
    for side, data in ((left, left_data), (right, right_data)):
        rows = columns.parents_of(side)
        both[np.arange(len(data)) + (offsets[:-1] - side[:-1])[rows]] ^= data
    total = columns.offsets_from_counts(np.bitwise_count(both))
    return columns.from_values(np.diff(total[offsets]), call.result.arrow)


def shift_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the text's type; raise IllegalTypeOfArgument unless the positions are an integer."""
    if not isinstance(types[1], Integer):
        raise illegal(name, types[1], "an integer")
    return types[0]


def shifted(arrays: list[pa.Array], call: Invocation, *, left: bool) -> pa.Array:
    """Return texts with their bits moved; raise ArgumentOutOfBound for negative positions.

    A String gets longer by a shift to the left and shorter by one to the right; a FixedString keeps
    its length. When all bits are out, a String is empty.
    """
    fixed = isinstance(call.result, FixedString)

    def move(text: bytes, positions: int) -> bytes:
        """Shift one text, read as a big-endian number, by `positions` bits; a FixedString keeps its length.

        Raises ArgumentOutOfBound for a negative number of positions."""
        if positions < 0:
            raise ArgumentOutOfBound("The number of shift positions is not negative.")
        size = len(text)
        if positions >= 8 * size:
            return b"\0" * size if fixed else b""
        number = int.from_bytes(text, "big")
        number = number << positions if left else number >> positions
        if fixed:
            return (number & ((1 << 8 * size) - 1)).to_bytes(size, "big")
        return number.to_bytes(size + -(-positions // 8) if left else size - positions // 8, "big")

    return values_by_row(arrays, move, call.result.arrow)
