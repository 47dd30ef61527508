"""Decimals whose values may have more digits than their precision, as ClickHouse's integers allow."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.base import Column
from olapdb.functions.kernels import columns


def floats_of_decimals(column: Column) -> Column:
    """Decimals as float64: the nearest to the digits, divided by the power of ten, as ClickHouse
    does; Arrow multiplies, which is another number in the last bit."""
    if isinstance(column, pa.Scalar):
        return floats_of_decimals(columns.single(column))[0]
    digits = column.type.precision
    long = pa.types.is_decimal128(column.type) and digits <= 18
    unscaled = columns.view(column, (pa.decimal128 if digits <= 38 else pa.decimal256)(digits, 0))
    numbers = unscaled.cast(pa.int64()) if long else unscaled
    return pc.divide(numbers.cast(pa.float64(), safe=False), float(10**column.type.scale))


_DECIMAL_CLASSES = (9, 18, 38, 76)


def decimal_class(arrow: pa.DataType) -> pa.DataType:
    """The decimal of the same scale and of the most digits that ClickHouse keeps in as many bits:
    what a sum in a Decimal(4, 1) may grow to."""
    digits = next(one for one in _DECIMAL_CLASSES if arrow.precision <= one)
    make = pa.decimal128 if digits <= 38 else pa.decimal256
    return make(digits, arrow.scale)


def decimal_bits(arrow: pa.DataType) -> int:
    """The width of ClickHouse's integer under such a decimal: 32, 64, 128 or 256."""
    return next(32 << at for at, one in enumerate(_DECIMAL_CLASSES) if arrow.precision <= one)


def with_precision(column: pa.Array, arrow: pa.DataType) -> pa.Array:
    """The same decimals under another precision of as many bits, unchecked: a value keeps the
    digits that are too many."""
    if column.type == arrow:
        return column
    assert column.type.bit_width == arrow.bit_width
    assert column.type.scale == arrow.scale
    return pa.Array.from_buffers(
        arrow, len(column), column.buffers(), column.null_count, column.offset
    )


def decimal_within_bits(column: pa.Array, arrow: pa.DataType) -> pa.Array | None:
    """Decimals as `arrow`, of their scale, where each fits its width in bits; None else."""
    bits = decimal_bits(arrow)
    if bits > _LONG_BITS:  # Arrow counts digits, and so do we
        within = decimal_class(arrow)
        limit = None
    else:
        within, limit = pa.decimal128(38, arrow.scale), 1 << bits - 1
    try:
        wide = column.cast(within)
    except pa.ArrowInvalid:
        return None
    if limit is not None and not all(-limit <= end < limit for end in _unscaled_ends(wide)):
        return None
    return with_precision(wide, arrow)


_LONG_BITS = 64


def _unscaled_ends(column: pa.Array) -> list[int]:
    """The smallest and the greatest value without the point; none where all are NULL."""
    ends = pc.min_max(column)
    found = []
    for end in (ends["min"].as_py(), ends["max"].as_py()):
        if end is not None:
            sign, digits, _ = end.as_tuple()
            number = int("".join(map(str, digits)))
            found.append(-number if sign else number)
    return found
