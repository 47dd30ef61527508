"""Functions of an integer's bits and bytes: bitRotateLeft, bitRotateRight, byteSwap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import NotSupportedError
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns, wide_numbers
from olapdb.functions.numeric.bits import bit_rule
from olapdb.functions.scalar import Invocation, Kernel, ScalarDefinition, define, require
from olapdb.types import DataType, Float, Integer, WideNumber


def _first_type(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type of the first argument; raise IllegalTypeOfArgument unless all are integers."""
    if isinstance(types[0], Float):
        raise NotSupportedError(f"{name} is not there for {types[0]}, only for integers.")
    require(name, types, (Integer, WideNumber), "an integer")
    return types[0]


def _rotated_type(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return the wider type of both; raise IllegalTypeOfArgument unless both are integers."""
    if any(isinstance(t, WideNumber) for t in types):
        raise NotSupportedError(f"{name} is not there for integers of 128 or 256 bits.")
    require(name, types, Integer, "an integer")
    return bit_rule(name, types, arguments)


def _rotated(*, left: bool) -> Kernel:
    """Return the kernel of bitRotateLeft, or without `left` of bitRotateRight: the second argument says by how many
    bits."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Rotate the bits of each integer; a number of bits beyond the width counts modulo the width."""
        values = columns.numpy_values(arrays[0].cast(call.result.arrow, safe=False))
        unsigned = np.dtype(f"u{values.itemsize}")
        bits = values.itemsize * 8
        places = (columns.numpy_values(arrays[1]).astype(np.int64) % bits).astype(unsigned)
        back = ((bits - places.astype(np.int64)) % bits).astype(unsigned)
        whole = values.view(unsigned)
        up, down = (places, back) if left else (back, places)
        rotated = np.where(places == 0, whole, (whole << up) | (whole >> down))
        return columns.from_values(rotated.astype(unsigned).view(values.dtype), call.result.arrow)

    return kernel


def _swapped(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return integers with their bytes in reverse order. Raises DecimalOverflow for a UInt256 that no column can
    hold."""
    if isinstance(call.result, WideNumber):
        words = wide_numbers.limbs_of(arrays[0])[:, : call.result.bits // 64]
        reversed_words = np.ascontiguousarray(words[:, ::-1]).byteswap()
        return wide_numbers.column_of(wide_numbers.extended(reversed_words), call.result)
    return columns.from_values(columns.numpy_values(arrays[0]).byteswap(), call.result.arrow)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("bitRotateLeft", _rotated_type, _rotated(left=True), count=2),
    define("bitRotateRight", _rotated_type, _rotated(left=False), count=2),
    define("byteSwap", _first_type, _swapped, insensitive=True),
)
