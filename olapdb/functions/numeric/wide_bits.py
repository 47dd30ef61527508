"""Bits of Int128, UInt128, Int256 and UInt256: and, or, xor, not, shifts and count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from olapdb.errors import ArgumentOutOfBound, NotSupportedError
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import columns, wide_numbers
from olapdb.functions.kernels.supertypes import as_number
from olapdb.functions.scalar import Invocation, ScalarDefinition
from olapdb.types import UINT8, UINT16, DataType, Integer, WideNumber, plain, wide_number

_TOGETHER = {"bitAnd": np.bitwise_and, "bitOr": np.bitwise_or, "bitXor": np.bitwise_xor}
_SHIFTS = ("bitShiftLeft", "bitShiftRight")
_ALL = (*_TOGETHER, *_SHIFTS, "bitNot", "bitCount", "bitTest")
_WORD = 64


def with_wide(definition: ScalarDefinition) -> ScalarDefinition:
    """Return the definition of a function of bits that takes wide integers too."""
    name = definition.name
    if name not in (*_ALL, "bitTestAll", "bitTestAny"):
        return definition

    def resolve(spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call for wide integers if an argument is one, else as the given definition does."""
        if not any(isinstance(plain(a.type), WideNumber) for a in arguments):
            return definition.resolver(spelt, arguments)
        rule, kernel = _rule, _shift if name in _SHIFTS else _bits
        return scalar.standard_call(name, arguments, rule, kernel(name))

    return replace(definition, resolver=resolve)


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the wider operand's type, signed if one is; a small integer for a count of bits.

    Raises IllegalTypeOfArgument for operands other than integers. As ClickHouse, raises NotSupportedError for tests
    of bits and for a wide number of places to shift."""
    numbers = [as_number(t) for t in types]
    for number in numbers:
        if not isinstance(number, Integer | WideNumber):
            raise scalar.illegal(name, number, "an integer")
    if name not in _ALL or name == "bitTest":
        raise NotSupportedError(f"{name} is not there for integers of 128 or 256 bits.")
    if name in _SHIFTS and isinstance(numbers[1], WideNumber):
        raise NotSupportedError(f"{name} shifts by no integer of 128 or 256 bits.")
    bits = max(n.bits for n in numbers if isinstance(n, Integer | WideNumber))
    if name == "bitCount":
        return UINT8 if bits == 128 else UINT16
    signed = any(isinstance(n, Integer | WideNumber) and n.signed for n in numbers)
    return wide_number(bits, signed)


def _limbs(array: pa.Array) -> np.ndarray:
    """Return integers or Bools as limbs: 64-bit words, the lowest first."""
    whole = array.cast(pa.uint8()) if pa.types.is_boolean(array.type) else array
    return wide_numbers.limbs_of(whole)


def _bits(name: str) -> scalar.Kernel:
    """Return the kernel of the function `name` on wide integers: an operation on all bits, or the count of set bits."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Combine, invert or count the bits."""
        limbs = [_limbs(array) for array in arrays]
        if name == "bitCount":
            source = call.types[0]
            assert isinstance(source, WideNumber)
            words = source.bits // _WORD
            counts = np.bitwise_count(limbs[0][:, :words]).sum(axis=1, dtype=np.int64)
            return columns.from_values(counts, call.result.arrow)
        assert isinstance(call.result, WideNumber)
        result = ~limbs[0] if name == "bitNot" else _TOGETHER[name](*limbs)
        return wide_numbers.column_of(result, call.result)

    return kernel


def _shift(name: str) -> scalar.Kernel:
    """Return the kernel of bitShiftLeft or bitShiftRight, by `name`, on wide integers."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Shift each number; by its width or more gives 0. Raises ArgumentOutOfBound for places
        below 0."""
        places = columns.numpy_values(arrays[1])
        if len(places) and places.min() < 0:
            raise ArgumentOutOfBound("The number of shift positions is not negative.")
        assert isinstance(call.result, WideNumber)
        source = as_number(call.types[0])
        assert isinstance(source, Integer | WideNumber)
        limbs = _limbs(arrays[0])
        gone = places >= source.bits
        count = np.where(gone, 0, places).astype(np.int64)
        shifted = _left(limbs, count) if name == "bitShiftLeft" else _right(limbs, count)
        shifted[gone] = 0
        return wide_numbers.column_of(shifted, call.result)

    return kernel


def _left(limbs: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return numbers shifted to the left by `count` bits, below 256."""
    return _gathered(limbs, -(count // _WORD) - (count % _WORD > 0), -count % _WORD)


def _right(limbs: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return numbers shifted to the right by `count` bits, below 256; the sign comes in."""
    return _gathered(limbs, count // _WORD, count % _WORD)


def _gathered(limbs: np.ndarray, words: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """Return the 256 bits that begin at bit `bits` of limb number `words`; bits above the number repeat its sign,
    bits below it are 0."""
    sign = np.where(wide_numbers.is_negative(limbs), ~np.uint64(0), np.uint64(0))
    above = np.repeat(sign[:, None], limbs.shape[1] + 1, axis=1)
    below = np.zeros_like(above)
    padded = np.concatenate([below, limbs, above], axis=1)
    first = words[:, None] + np.arange(limbs.shape[1] + 1) + below.shape[1]
    pieces = np.take_along_axis(padded, first, axis=1)
    low = bits.astype(np.uint64)[:, None]
    high = np.where(low > 0, pieces[:, 1:] << (np.uint64(_WORD) - np.maximum(low, np.uint64(1))), 0)
    return np.asarray((pieces[:, :-1] >> low) | high.astype(np.uint64))
