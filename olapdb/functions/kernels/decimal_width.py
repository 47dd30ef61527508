"""Decimals with more digits than their precision, up to the width of ClickHouse's integer below them;
and their short form of 64 bits, in which the column cache and some operators have those of at most 18 digits.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.base import Column
from olapdb.functions.kernels import columns
from olapdb.native import decimals as compiled
from olapdb.native.library import library
from olapdb.native.memory import empty
from olapdb.types.arrow_values import scalar_of


def floats_of_decimals(column: Column) -> Column:
    """Return decimals as float64: the unscaled integer divided by the power of ten, as ClickHouse
    does.

    Arrow multiplies by the inverse, which differs in the last bit.
    """
    if isinstance(column, pa.Scalar):
        return floats_of_decimals(columns.single(column))[0]
    digits = column.type.precision
    fits_int64 = pa.types.is_decimal128(column.type) and digits <= 18
    unscaled = columns.view(column, (pa.decimal128 if digits <= 38 else pa.decimal256)(digits, 0))
    numbers = unscaled.cast(pa.int64()) if fits_int64 else unscaled
    divisor = scalar_of(float(10**column.type.scale), pa.float64())
    floats = pc.divide(numbers.cast(pa.float64(), safe=False), divisor)
    if fits_int64 or column.type.scale:
        return floats
    # Arrow loses the sign of the least number of all bits, which a wide integer may be
    below = pc.less(unscaled, pa.scalar(0, pa.int64()).cast(unscaled.type))
    return pc.if_else(below, pc.negate(pc.abs(floats)), floats)


def unscaled_floats(column: pa.Array) -> pa.Array:
    """Return the unscaled integers of decimals as float64: 125.0 for 1.25."""
    make = pa.decimal128 if column.type.precision <= 38 else pa.decimal256
    return columns.view(column, make(column.type.precision, 0)).cast(pa.float64(), safe=False)


def decimals_of_unscaled(numbers: np.ndarray, arrow: pa.DataType) -> pa.Array:
    """Truncate floats to integers and return the decimals of type `arrow` with these unscaled values: 125.7 gives
    1.25 with scale 2. The numbers are finite and fit the type's width, though perhaps not its precision."""
    words = 2 if pa.types.is_decimal128(arrow) else 4
    left = np.abs(np.trunc(numbers))
    data = np.empty((len(numbers), words), np.uint64)
    for word in range(words - 1, -1, -1):
        part = np.floor(left / 2.0 ** (64 * word))
        data[:, word] = part.astype(np.uint64)
        left = left - part * 2.0 ** (64 * word)
    below = numbers < 0
    data[below] = ~data[below]
    carry = below
    for word in range(words):
        data[:, word] += carry
        carry = carry & (data[:, word] == 0)
    return pa.Array.from_buffers(arrow, len(numbers), [None, pa.py_buffer(data)])


def decimals_of_integers(unscaled: np.ndarray, arrow: pa.DataType) -> pa.Array:
    """Return the decimals of the 128-bit type `arrow` whose unscaled values are these int64 numbers."""
    halves = np.stack([unscaled, unscaled >> 63], axis=1)
    return pa.Array.from_buffers(arrow, len(unscaled), [None, pa.py_buffer(halves)])


SHORT_DIGITS = 18
"""The most digits of a type that has a short form. Its values may have more, if they fit 64 bits."""


def has_short_form(arrow: pa.DataType) -> bool:
    """Return whether the type is a 128-bit decimal type whose precision fits 64 bits, so that it has a short form."""
    return bool(pa.types.is_decimal128(arrow)) and arrow.precision <= SHORT_DIGITS


def short_form(arrow: pa.DataType) -> pa.DataType:
    """Return the 64-bit decimal type that is the short form of `arrow`, for which `has_short_form` is true."""
    return pa.decimal64(arrow.precision, arrow.scale)


def is_short(arrow: pa.DataType) -> bool:
    """Return whether the type is the 64-bit short form of decimals, which only occurs inside the engine."""
    return bool(pa.types.is_decimal64(arrow))


def shortened(column: pa.Array) -> pa.Array:
    """Convert 128-bit decimals, of a type for which `has_short_form` is true, to 64-bit decimals."""
    values = empty(len(column), np.int64)
    data = column.buffers()[1]
    if len(column) and data is not None:
        if library() is not None:
            compiled.shorten(data.address + 16 * column.offset, values)
        else:
            np.copyto(
                values, np.frombuffer(data, np.int64, 2 * len(column), 16 * column.offset)[::2]
            )
    return pa.Array.from_buffers(
        short_form(column.type),
        len(column),
        [_own_validity(column), pa.py_buffer(values)],
        column.null_count,
    )


def lengthened(column: pa.Array) -> pa.Array:
    """Convert 64-bit decimals to 128-bit ones; return columns of other types unchanged."""
    if not is_short(column.type):
        return column
    words = empty(2 * len(column), np.int64)
    data = column.buffers()[1]
    if len(column) and data is not None:
        values = np.frombuffer(data, np.int64, len(column), 8 * column.offset)
        if library() is not None:
            compiled.lengthen(values, words)
        else:
            np.copyto(words[::2], values)
            np.right_shift(values, 63, out=words[1::2])
    return pa.Array.from_buffers(
        pa.decimal128(column.type.precision, column.type.scale),
        len(column),
        [_own_validity(column), pa.py_buffer(words)],
        column.null_count,
    )


def _own_validity(column: pa.Array) -> pa.Buffer | None:
    """Return the validity bitmap of a column, shifted so that its first bit is row 0; None without nulls."""
    if not column.null_count:
        return None
    return (
        column.buffers()[0] if not column.offset else columns.mask_buffer(columns.validity(column))
    )


_DECIMAL_CLASSES = (9, 18, 38, 76)


def decimal_class(arrow: pa.DataType) -> pa.DataType:
    """Return the decimal type of the same scale with the most digits of the same ClickHouse width.

    A sum of Decimal(4, 1), which has 32 bits, may grow to Decimal(9, 1).
    """
    digits = next(most for most in _DECIMAL_CLASSES if arrow.precision <= most)
    make = pa.decimal128 if digits <= 38 else pa.decimal256
    return make(digits, arrow.scale)


def decimal_bits(arrow: pa.DataType) -> int:
    """Return the width of the integer in which ClickHouse stores a decimal: 32, 64, 128 or 256."""
    return next(32 << at for at, most in enumerate(_DECIMAL_CLASSES) if arrow.precision <= most)


def with_precision(column: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Return the same decimals under another precision of the same Arrow width, unchecked.

    A value may keep more digits than the new precision.
    """
    if column.type == arrow:
        return column
    assert column.type.bit_width == arrow.bit_width
    assert column.type.scale == arrow.scale
    return pa.Array.from_buffers(
        arrow, len(column), column.buffers(), column.null_count, column.offset
    )


def decimal_within_bits(column: pa.Array, arrow: pa.DataType) -> pa.Array | None:
    """Cast decimals to `arrow`, of the same scale; None if a value exceeds the type's width in bits. Beyond 64 bits
    the limit is 38 or 76 digits."""
    bits = decimal_bits(arrow)
    if bits > _LONG_BITS:  # Arrow limits digits, not bits
        widest = decimal_class(arrow)
        limit = None
    else:
        widest, limit = pa.decimal128(38, arrow.scale), 1 << bits - 1
    try:
        wide = column.cast(widest)
    except pa.ArrowInvalid:
        return None
    if limit is not None and not all(-limit <= end < limit for end in _unscaled_ends(wide)):
        return None
    return with_precision(wide, arrow)


_LONG_BITS = 64


def _unscaled_ends(column: pa.Array) -> list[int]:
    """Return [least, greatest] unscaled value of the decimals as Python integers; [] if all are NULL."""
    ends = pc.min_max(column)
    unscaled = []
    for end in (ends["min"].as_py(), ends["max"].as_py()):
        if end is not None:
            sign, digits, _ = end.as_tuple()
            number = int("".join(map(str, digits)))
            unscaled.append(-number if sign else number)
    return unscaled
