"""Codes of 8 bits for numbers that are normally distributed: quantizeBFloat16ToInt8 and dequantizeInt8ToBFloat16.

The codes are the cells of Lloyd's and Max's quantizer of 256 levels for the standard normal distribution (S. Lloyd,
"Least squares quantization in PCM", 1982; J. Max, "Quantizing for minimum distortion", 1960). A cell below 0 is the
mirror of one above it, whose code is -1 less the other's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.base import Argument, Column
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.brain_floats import of_words, words_of
from olapdb.functions.scalar import Invocation, ScalarDefinition, TypeRule, define, illegal
from olapdb.types import BFLOAT16, INT8, Array, DataType

_SIGN, _INFINITY = np.uint16(0x8000), np.uint16(0x7F80)


def _words(text: str) -> np.ndarray:
    """Return words of 16 bits that are written as four hexadecimal digits each."""
    return np.frombuffer(bytes.fromhex(text), ">u2").astype(np.uint16)


_FIRST_WORDS = _words(
    "3c223ca23cf23d223d4a3d723d8e3da23db63dca3ddf3df33e043e0e3e183e223e2d3e373e413e4b3e563e60"
    "3e6a3e753e7f3e853e8a3e8f3e953e9a3e9f3ea53eaa3eaf3eb53eba3ebf3ec53eca3ed03ed53edb3ee03ee6"
    "3eeb3ef13ef73efc3f013f043f073f0a3f0d3f103f133f163f193f1c3f1f3f223f253f283f2b3f2f3f323f35"
    "3f383f3c3f3f3f423f463f493f4d3f503f543f573f5b3f5f3f623f663f6a3f6e3f723f763f7a3f7e3f823f84"
    "3f863f883f8b3f8d3f903f923f953f973f9a3f9d3fa03fa33fa73faa3fae3fb23fb63fba3fbf3fc33fc93fce"
    "3fd43fdb3fe13fe93ff13ffa40024007400d4013401a4022402c403640434054406e"
)
"""The least BFloat16 of the cells 1 to 127; cell 0 begins at 0."""

_LEVELS = _words(
    "3ba13c713cc93d0d3d353d5d3d833d973dab3dbf3dd33de83dfc3e083e123e1c3e273e313e3b3e453e503e5a"
    "3e643e6e3e793e813e873e8c3e913e963e9c3ea13ea63eac3eb13eb63ebc3ec13ec63ecc3ed13ed73edc3ee2"
    "3ee83eed3ef33ef83efe3f023f053f073f0a3f0d3f103f133f163f193f1c3f1f3f233f263f293f2c3f2f3f32"
    "3f363f393f3c3f403f433f463f4a3f4d3f513f543f583f5c3f603f633f673f6b3f6f3f733f773f7b3f803f82"
    "3f843f863f883f8b3f8d3f903f923f953f983f9b3f9e3fa13fa43fa73fab3faf3fb33fb73fbb3fc03fc53fca"
    "3fd03fd63fdd3fe43fec3ff43ffd40034009400f4016401d4026402f403b404a405d407c"
)
"""The BFloat16 that stands for the numbers of each cell from 0 to 127."""


def _codes(array: pa.Array) -> pa.Array:
    """Return the 8-bit code of the cell in which each number lies; 0 for NaN."""
    words = words_of(array)
    sizes = words & ~_SIGN
    cells = np.searchsorted(_FIRST_WORDS, sizes, side="right").astype(np.int8)
    codes = np.where(words & _SIGN, -1 - cells, cells)
    return columns.from_values(np.where(sizes > _INFINITY, 0, codes).astype(np.int8), pa.int8())


def _numbers(array: pa.Array) -> pa.Array:
    """Return the number, a BFloat16, that represents each 8-bit code's cell."""
    codes = columns.numpy_values(array)
    is_negative = codes < 0
    cells = np.where(is_negative, -1 - codes, codes)
    return of_words(_LEVELS[cells] | np.where(is_negative, _SIGN, np.uint16(0)))


def _rule(source: DataType, target: DataType) -> TypeRule:
    """Return the type rule of a function from `source` to `target`, and from arrays of the one to arrays of the
    other."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the target, or an array of it. Raises IllegalTypeOfArgument."""
        if types[0] == source:
            return target
        if types[0] == Array(source):
            return Array(target)
        raise illegal(name, types[0], f"{source} or Array({source})")

    return rule


def _over_elements(change: Callable[[pa.Array], pa.Array]) -> Callable[..., pa.Array]:
    """Return a kernel that applies `change` to a column of numbers, or to the elements of a column of arrays."""

    def kernel(values: list[Column], call: Invocation) -> pa.Array:
        """Apply `change` to the values of the only argument, within arrays too."""
        array = columns.as_array(values[0], call.rows)
        if not isinstance(call.types[0], Array):
            return change(array)
        offsets, elements = columns.elements_of(array)
        return columns.lists_from(offsets, change(elements))

    return kernel


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("quantizeBFloat16ToInt8", _rule(BFLOAT16, INT8), _over_elements(_codes)),
    define("dequantizeInt8ToBFloat16", _rule(INT8, BFLOAT16), _over_elements(_numbers)),
)
