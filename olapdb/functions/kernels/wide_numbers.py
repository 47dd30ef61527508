"""Integers of 128 and 256 bits as limbs: uint64 of shape (rows, 4), least first, two's complement.

Columns hold them as decimals of scale 0 whose bytes are the integer, see decision 014.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.errors import DecimalOverflow
from olapdb.functions.kernels import columns
from olapdb.types import WideNumber

_U64 = np.uint64
_LOW = _U64(0xFFFFFFFF)
_HALF = _U64(32)
LIMBS = 4
"""Limbs of every number here, sign-extended: 256 bits."""


def limbs_of(array: pa.Array) -> np.ndarray:
    """Convert integers of up to 64 bits, or the unscaled values of decimals, to limbs, shape (rows, 4)."""
    if pa.types.is_decimal(array.type):
        words = array.type.byte_width // 8
        buffer = array.buffers()[1]
        if buffer is None or not len(array):
            return np.zeros((len(array), LIMBS), _U64)
        raw = np.frombuffer(buffer, "<u8")[array.offset * words :][: len(array) * words]
        return extended(raw.reshape(-1, words))
    values = columns.numpy_values(array)
    low = values.astype(_U64) if values.dtype.kind == "u" else values.astype(np.int64).view(_U64)
    if values.dtype.kind == "u":
        out = np.zeros((len(values), LIMBS), _U64)
        out[:, 0] = low
        return out
    return extended(low.reshape(-1, 1))


def extended(limbs: np.ndarray) -> np.ndarray:
    """Extend limbs of fewer than `LIMBS` words to `LIMBS`, by the sign."""
    out = np.empty((len(limbs), LIMBS), _U64)
    words = limbs.shape[1]
    out[:, :words] = limbs
    out[:, words:] = np.where(limbs[:, -1:].view(np.int64) < 0, ~_U64(0), _U64(0))
    return out


def python_integers(limbs: np.ndarray) -> np.ndarray:
    """Convert limbs to Python integers, in an array of objects."""
    whole = limbs[:, -1].view(np.int64).astype(object)
    for limb in range(LIMBS - 2, -1, -1):
        whole = (whole << 64) | limbs[:, limb].astype(object)
    return np.asarray(whole)


def limbs_from_python(values: np.ndarray) -> np.ndarray:
    """Convert Python integers to limbs, modulo 2 ** 256."""
    parts = [((values >> (64 * limb)) & 0xFFFFFFFFFFFFFFFF).astype(_U64) for limb in range(LIMBS)]
    return np.stack(parts, axis=1)


def column_of(limbs: np.ndarray, target: WideNumber) -> pa.Array:
    """Convert limbs to a column of the type; numbers wrap at its bits. Raises DecimalOverflow for a UInt256 from 2 **
    255 on, which no column can hold."""
    if target.bits == 128:
        limbs = limbs[:, :2]
        if not target.signed:
            limbs = np.concatenate([limbs, np.zeros_like(limbs)], axis=1)
    elif not target.signed:
        beyond = limbs[:, -1].view(np.int64) < 0
        if beyond.any():
            raise DecimalOverflow(
                "A UInt256 from 2 ** 255 on, or below 0, is not supported.",
                hint="Its largest value here is 2 ** 255 - 1.",
            ).at_row(int(np.argmax(beyond)))
    data = pa.py_buffer(np.ascontiguousarray(limbs).tobytes())
    return pa.Array.from_buffers(target.arrow, len(limbs), [None, data])


def added(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return left + right modulo 2 ** 256; either one may have a single row for all rows."""
    rows = max(len(left), len(right)) if min(len(left), len(right)) else 0
    out = np.empty((rows, LIMBS), _U64)
    carry = np.zeros(rows, _U64)
    for at in range(LIMBS):
        total = left[:, at] + right[:, at]
        over = (total < left[:, at]).astype(_U64)
        out[:, at] = total + carry
        carry = over | (out[:, at] < carry).astype(_U64)
    return out


def negated(limbs: np.ndarray) -> np.ndarray:
    """Return the negated numbers, modulo 2 ** 256."""
    one = np.zeros((1, LIMBS), _U64)
    one[0, 0] = 1
    return added(~limbs, one)


def multiplied(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return left * right modulo 2 ** 256; either one may have a single row for all rows."""
    rows = max(len(left), len(right)) if min(len(left), len(right)) else 0
    a, b = _halves(left), _halves(right)
    out = np.zeros((rows, 2 * LIMBS), _U64)
    for i in range(2 * LIMBS):
        carry = np.zeros(rows, _U64)
        for j in range(2 * LIMBS - i):
            # below 2 ** 64: (2 ** 32 - 1) ** 2 + 2 * (2 ** 32 - 1)
            total = a[:, i] * b[:, j] + out[:, i + j] + carry
            out[:, i + j] = total & _LOW
            carry = total >> _HALF
    return out[:, 0::2] | (out[:, 1::2] << _HALF)


def running_totals(limbs: np.ndarray) -> np.ndarray:
    """Return the sums of the first 0, 1, 2 … numbers, modulo 2 ** 256; one row more than `limbs`."""
    halves = np.zeros((len(limbs) + 1, 2 * LIMBS), _U64)
    np.cumsum(_halves(limbs), axis=0, out=halves[1:])  # below 2 ** 64 for 2 ** 32 rows
    for at in range(2 * LIMBS - 1):
        halves[:, at + 1] += halves[:, at] >> _HALF
    halves &= _LOW
    return halves[:, 0::2] | (halves[:, 1::2] << _HALF)


def _halves(limbs: np.ndarray) -> np.ndarray:
    """Split limbs into 32-bit halves, as uint64 of shape (rows, 8), lowest first."""
    out = np.empty((len(limbs), 2 * LIMBS), _U64)
    out[:, 0::2] = limbs & _LOW
    out[:, 1::2] = limbs >> _HALF
    return out


def is_negative(limbs: np.ndarray) -> np.ndarray:
    """Return for each number whether it is below 0."""
    return np.asarray(limbs[:, -1].view(np.int64) < 0)


def magnitudes(limbs: np.ndarray) -> np.ndarray:
    """Return the absolute values, as unsigned numbers; that of the least number is 2 ** 255."""
    return np.where(is_negative(limbs)[:, None], negated(limbs), limbs)


def divided(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (quotients truncated towards zero, remainders with the dividend's sign).

    Divides bit by bit, all rows at once, from the highest bit of any dividend. Divisors are not 0;
    both arguments have as many rows.
    """
    dividend, divisor = magnitudes(left), magnitudes(right)
    quotient = np.zeros_like(dividend)
    rest = np.zeros_like(dividend)
    minus = ~divisor
    one = np.zeros((1, LIMBS), _U64)
    one[0, 0] = 1
    minus = added(minus, one)
    for bit in range(_bits(dividend) - 1, -1, -1):
        limb, place = bit >> 6, _U64(bit & 63)
        rest = _doubled(rest)
        rest[:, 0] |= (dividend[:, limb] >> place) & _U64(1)
        fits = ~_less(rest, divisor)
        rest = np.where(fits[:, None], added(rest, minus), rest)
        quotient[:, limb] |= fits.astype(_U64) << place
    quotient = np.where(
        (is_negative(left) != is_negative(right))[:, None], negated(quotient), quotient
    )
    return quotient, np.where(is_negative(left)[:, None], negated(rest), rest)


def _bits(magnitude: np.ndarray) -> int:
    """Return the number of bits of the largest number, without sign."""
    for limb in range(LIMBS - 1, -1, -1):
        most = int(magnitude[:, limb].max(initial=0))
        if most:
            return 64 * limb + most.bit_length()
    return 0


def _doubled(limbs: np.ndarray) -> np.ndarray:
    """Return the numbers shifted left by one bit."""
    out = limbs << _U64(1)
    out[:, 1:] |= limbs[:, :-1] >> _U64(63)
    return np.asarray(out)


def _less(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return for each pair of unsigned numbers whether the left one is smaller."""
    less = np.zeros(len(left), bool)
    for limb in range(LIMBS):  # the highest limb decides last
        a, b = left[:, limb], right[:, limb]
        less = (a < b) | ((a == b) & less)
    return less


def fits(limbs: np.ndarray, target: WideNumber) -> np.ndarray:
    """Return for each signed 256-bit number whether it is in the type's range."""
    if target.bits == 256:
        return ~is_negative(limbs) if not target.signed else np.ones(len(limbs), bool)
    if not target.signed:
        return np.asarray((limbs[:, 2:] == 0).all(axis=1))
    return np.asarray((extended(np.ascontiguousarray(limbs[:, :2])) == limbs).all(axis=1))


def less(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return for each pair of signed numbers whether the left one is smaller."""
    sign = np.zeros(LIMBS, _U64)
    sign[-1] = _U64(1) << _U64(63)
    return _less(left ^ sign, right ^ sign)
