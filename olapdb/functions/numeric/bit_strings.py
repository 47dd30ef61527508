"""Bits of texts: bitSlice, and bitShiftLeft and bitShiftRight of texts.

A text is one number, its first byte the highest. Python is called once for each distinct row.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from olapdb.errors import ArgumentOutOfBound
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import values_by_row
from olapdb.functions.scalar import Invocation, illegal, require
from olapdb.types import STRING, DataType, FixedString, Integer, String


def slice_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless a text, then integers."""
    require(name, types[:1], (String, FixedString), "a String")
    require(name, types[1:], Integer, "an integer")
    return STRING


def slice_of(text: bytes, offset: int, length: int | None = None) -> bytes:
    """Return bits from `offset`, counted from 1 or from the end, filled up with zeros behind.

    A negative `length` leaves bits out at the end.
    """
    size = 8 * len(text)
    start = offset - 1 if offset > 0 else size + offset
    stop = size if length is None else size + length if length < 0 else start + length
    start, stop = max(start, 0), min(stop, size)
    if offset == 0 or stop <= start:
        return b""
    width = stop - start
    number = (int.from_bytes(text, "big") >> (size - stop)) & ((1 << width) - 1)
    return (number << (-width % 8)).to_bytes((width + 7) // 8, "big")


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
        """Shift one text, read as a big-endian number; a FixedString keeps its length.

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
