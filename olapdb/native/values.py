"""Arrow arrays as kernels take them: addresses of values and of the validity bitmap."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.records import dataclass

_INT32, _INT64 = 4, 6
_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_TYPES = {
    **{getattr(pa, name)().id: at for at, name in enumerate(_INTEGERS)},
    pa.date32().id: _INT32,
    pa.time32("s").id: _INT32,
    pa.date64().id: _INT64,
    pa.time64("us").id: _INT64,
    pa.timestamp("s").id: _INT64,
    pa.duration("s").id: _INT64,
    pa.decimal64(1).id: _INT64,
    pa.float32().id: 8,
    pa.float64().id: 9,
}
"""The kernels' number of each Arrow type: that of its physical values."""
_DTYPES = tuple(np.dtype(name) for name in (*_INTEGERS, "float32", "float64"))
FLOATS_FROM = 8
DECIMAL128 = 10
"""The kernels' number of 128-bit integers, which only some kernels take."""


@dataclass(frozen=True)
class ColumnValues:
    """A column of a fixed width, as numpy sees it, and the addresses that kernels take.

    `type` is the kernels' number of the type. The bit of row i in the bitmap at `validity` is `bit + i`;
    without nulls `validity` is None. The bitmap's array must live as long as a kernel reads it."""

    numbers: np.ndarray
    type: int
    validity: int | None = None
    bit: int = 0

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return len(self.numbers)

    @property
    def is_integer(self) -> bool:
        """Return whether the values are integers, dates or times."""
        return self.type < FLOATS_FROM

    @property
    def column(self) -> tuple[int, np.ndarray, int | None, int]:
        """Return the arguments that describe the column to a kernel."""
        return self.type, self.numbers, self.validity, self.bit


def values_of(array: pa.Array) -> ColumnValues | None:
    """Return the values of an array of numbers, dates, times or 64-bit decimals; None for other types."""
    number = _TYPES.get(array.type.id)
    if number is None:
        return None
    dtype, data = _DTYPES[number], array.buffers()[1]
    if data is None or not len(array):
        return ColumnValues(np.zeros(0, dtype), number) if not len(array) else None
    numbers = np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)
    return ColumnValues(numbers, number, *validity_of(array))


def number_type(arrow: pa.DataType) -> np.dtype | None:
    """Return the dtype of the physical values of numbers, dates and times; None for other types."""
    number = _TYPES.get(arrow.id)
    return None if number is None else _DTYPES[number]


def is_integer_type(arrow: pa.DataType) -> bool:
    """Return whether kernels take values of the type as integers: integers, dates, times, 64-bit decimals."""
    return _TYPES.get(arrow.id, FLOATS_FROM) < FLOATS_FROM


def as_integers(values: ColumnValues) -> ColumnValues:
    """Return floats as the integers that have their bits; integers unchanged."""
    if values.is_integer:
        return values
    numbers = values.numbers.view(f"i{values.numbers.itemsize}")
    return ColumnValues(numbers, _DTYPES.index(numbers.dtype), values.validity, values.bit)


def values_of_numbers(numbers: np.ndarray) -> ColumnValues:
    """Return numpy's integers or floats, which must be contiguous."""
    return ColumnValues(np.ascontiguousarray(numbers), _DTYPES.index(numbers.dtype))


def validity_of(array: pa.Array) -> tuple[int | None, int]:
    """Return the address of the validity bitmap, None without nulls, and the bit of row 0."""
    if not array.null_count:
        return None, 0
    bitmap = array.buffers()[0]
    return (None, 0) if bitmap is None else (bitmap.address, array.offset)
