"""Casts from and to Int128, UInt128, Int256 and UInt256."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import (
    AttemptToReadAfterEof,
    CannotConvertType,
    CannotParse,
    CannotParseNumber,
    DataError,
    DecimalOverflow,
    TypeMismatch,
)
from olapdb.functions.casts import clocks, numbers, temporal
from olapdb.functions.casts.numbers import conversion_error, decimal_rescaled, first_bad
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.decimal_width import floats_of_decimals
from olapdb.functions.kernels.wide_numbers import (
    LIMBS,
    added,
    column_of,
    fits,
    is_negative,
    limbs_of,
    multiplied,
    negated,
)
from olapdb.types.arrow_values import to_numpy

_CHUNK = 18
"""Digits of a chunk of a text: as many as an Int64 surely holds."""


def parse(array: pa.Array, target: types.WideNumber, *, wrap: bool = True) -> pa.Array:
    """Parse texts of digits with an optional sign as wide integers, which wrap at the type's width.

    Without `wrap` a number out of range raises CannotParse. Raises CannotParse for another text, CannotParseNumber
    for a minus sign before an unsigned number."""
    pattern = r"^[+-]?\d+$" if target.signed else r"^\+?\d+$"
    bad = first_bad(~to_numpy(pc.match_substring_regex(array, pattern)))
    if bad is not None:
        text = columns.binary(array)[bad].as_py()
        error: type[DataError] = CannotParse
        if not text:
            error = AttemptToReadAfterEof
        elif text in (b"-", b"+") or (not target.signed and text.startswith(b"-")):
            error = CannotParseNumber
        raise conversion_error(error, array, bad, target, "it is no whole number")
    negative = to_numpy(pc.starts_with(array, "-"))
    digits = pc.ascii_ltrim(pc.ascii_ltrim(array, characters="+-"), characters="0")
    longest = int(pc.max(pc.binary_length(digits)).as_py() or 0)
    if not wrap and longest > 78:
        row = int(np.argmax(to_numpy(pc.binary_length(digits))))
        raise conversion_error(CannotParse, array, row, target, "it is out of range")
    chunks = max(-(-longest // _CHUNK), 1)
    padded = pc.utf8_lpad(digits, width=chunks * _CHUNK, padding="0")
    limbs = np.zeros((len(array), LIMBS), np.uint64)
    shift = np.array([[10**_CHUNK, 0, 0, 0]], np.uint64)
    for at in range(chunks):
        piece = pc.utf8_slice_codeunits(padded, at * _CHUNK, (at + 1) * _CHUNK)
        limbs = added(multiplied(limbs, shift), limbs_of(piece.cast(pa.int64())))
    overflown = np.zeros(len(array), bool)
    if not wrap:
        # 78 digits may wrap at 256 bits: such texts are compared by their sign and length
        overflown = to_numpy(pc.greater(digits, str(2**255)))
        overflown &= to_numpy(pc.greater_equal(pc.binary_length(digits), 77))
        overflown |= to_numpy(pc.greater(pc.binary_length(digits), 77))
    limbs = np.where(negative[:, None], negated(limbs), limbs)
    if not wrap:
        overflown |= (is_negative(limbs) != negative) & limbs.any(axis=1)
        bad = first_bad(overflown | ~fits(limbs, target))
        if bad is not None:
            raise conversion_error(CannotParse, array, bad, target, "it is out of range")
    return column_of(limbs, target)


def to_wide(array: pa.Array, source: types.DataType, target: types.WideNumber) -> pa.Array:
    """Cast numbers, dates and times to a wide integer; integers wrap, fractions are cut off.

    Raises CannotConvertType for NaN and infinity, TypeMismatch for types without a cast.
    """
    match source:
        case types.Float():
            return column_of(_limbs_of_floats(array, target), target)
        case types.Decimal():
            whole = decimal_rescaled(array, 0) if source.scale else array
            return column_of(limbs_of(whole), target)
        case types.Integer() | types.Interval():
            return column_of(limbs_of(array), target)
        case types.Boolean():
            return column_of(limbs_of(array.cast(pa.uint8())), target)
        case types.Date() | types.Date32() | types.DateTime() | types.DateTime64():
            return column_of(limbs_of(temporal.from_time(array, source, types.INT64)), target)
        case types.Time() | types.Time64():
            return column_of(limbs_of(clocks.from_clock(array, source, types.INT64)), target)
        case _:
            raise TypeMismatch(f"Conversion from {source} to {target} is not supported.")


def _limbs_of_floats(array: pa.Array, target: types.WideNumber) -> np.ndarray:
    """Return floats as limbs (64-bit words), truncated; raise CannotConvertType for NaN and infinity.

    A float so large that none of its 53 bits is among the low 256 bits gives 0."""
    floats = np.trunc(columns.numpy_values(array).astype(np.float64))
    bad = first_bad(~np.isfinite(floats))
    if bad is not None:
        raise conversion_error(CannotConvertType, array, bad, target, "it is no finite number")
    fraction, exponent = np.frexp(np.abs(floats))
    shift = exponent - 53
    mantissa = np.ldexp(fraction, 53).astype(np.uint64)
    mantissa = np.where(shift < 0, mantissa >> np.clip(-shift, 0, 63).astype(np.uint64), mantissa)
    shift = np.clip(shift, 0, 64 * LIMBS)
    limbs = np.zeros((len(floats), LIMBS + 2), np.uint64)
    rows, word = np.arange(len(floats)), np.minimum(shift // 64, LIMBS)
    bits = (shift % 64).astype(np.uint64)
    limbs[rows, word] = mantissa << bits
    limbs[rows, word + 1] = np.where(bits > 0, mantissa >> (np.uint64(64) - np.maximum(bits, 1)), 0)
    whole = np.ascontiguousarray(limbs[:, :LIMBS])
    return np.where((floats < 0)[:, None], negated(whole), whole)


def from_wide(
    array: pa.Array, source: types.WideNumber, target: types.DataType, zone: str
) -> pa.Array:
    """Cast wide integers to numbers, dates and times; integers wrap.

    Raises DecimalOverflow for one that a Decimal does not hold, TypeMismatch for types without a
    cast.
    """
    match target:
        case types.Integer():
            low = np.ascontiguousarray(limbs_of(array)[:, 0])
            return columns.from_values(low, target.arrow)
        case types.Boolean():
            return columns.from_values(np.asarray(limbs_of(array).any(axis=1)), target.arrow)
        case types.Float():
            return floats_of_decimals(array).cast(target.arrow, safe=False)
        case types.Decimal():
            if source.precision < numbers.DIGITS_MAX:  # Int128 has numbers of one digit more
                wider = types.wide_number(256, signed=True)
                array, source = to_wide(array, source, wider), wider
            bad = first_bad(~_has_few_digits(array))
            if bad is not None:
                raise conversion_error(DecimalOverflow, array, bad, target, "it is too large")
            return numbers.to_decimal(array, types.Decimal(source.precision, 0), target)
        case types.Date() | types.Date32() | types.DateTime() | types.DateTime64():
            low = np.ascontiguousarray(limbs_of(array)[:, 0]).view(np.int64)
            whole = columns.from_values(low, pa.int64())
            return temporal.to_time(whole, types.INT64, target, zone)
        case types.Time() | types.Time64():
            seconds = np.clip(columns.numpy_values(floats_of_decimals(array)), -1e7, 1e7)
            whole = columns.from_values(seconds.astype(np.int64), pa.int64())
            return clocks.to_clock(whole, types.INT64, target, zone)
        case _:
            raise TypeMismatch(f"Conversion from {source} to {target} is not supported.")


def _has_few_digits(array: pa.Array) -> np.ndarray:
    """Return a mask of the numbers that have at most as many digits as their decimal type's precision."""
    digits = pc.utf8_ltrim(array.cast(pa.string()), characters="-")
    return to_numpy(pc.less_equal(pc.binary_length(digits), array.type.precision))
