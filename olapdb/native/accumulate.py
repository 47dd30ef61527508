"""Calls of the kernels that add rows to the states of their groups. Each needs the library.

`codes` is the group of each row, None where all rows are in one group. Rows that are NULL are skipped.
The forms in numpy are in `functions/aggregates/group_kernels.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.native.library import kernels
from olapdb.native.memory import zeros
from olapdb.native.values import ColumnValues, validity_of, values_of

_SUM_BITS_MAX = 63
"""The bits of an int64 besides its sign."""


def _check_rows(codes: np.ndarray | None, rows: int) -> None:
    """Raise ValueError unless each row has a code: kernels read as many codes as rows."""
    if codes is not None and len(codes) != rows:
        raise ValueError(f"{rows} rows have {len(codes)} codes.")


def count(array: pa.Array | None, rows: int, codes: np.ndarray | None, groups: int) -> np.ndarray:
    """Return the number of rows of each group in which `array` (None: nothing) is not NULL; int64.

    One of `array` and `codes` is given."""
    _check_rows(codes, rows)
    if array is not None:
        _check_rows(codes, len(array))
    if codes is None and array is not None:
        return np.array([rows - array.null_count], np.int64)
    counts = zeros(groups, np.int64)
    validity = (None, 0) if array is None else validity_of(array)
    kernels().olapdb_count(*validity, codes, rows, counts)
    return counts


def sum_integers(values: ColumnValues, codes: np.ndarray | None, groups: int) -> np.ndarray:
    """Return the sum of each group modulo 2^64; uint64."""
    _check_rows(codes, values.rows)
    sums = zeros(groups, np.uint64)
    kernels().olapdb_sum_integers(*values.column, codes, values.rows, sums)
    return sums


def sum_floats(values: ColumnValues, codes: np.ndarray | None, groups: int) -> np.ndarray:
    """Return the Float64 sum of each group, added up in row order."""
    _check_rows(codes, values.rows)
    sums = zeros(groups, np.float64)
    kernels().olapdb_sum_floats(*values.column, codes, values.rows, sums)
    return sums


def sum_deviations(
    factors: Sequence[tuple[np.ndarray, np.ndarray]], codes: np.ndarray | None, groups: int
) -> np.ndarray:
    """Return the sum of each group, added up in row order, of the product of one or two factors: the Float64 values of
    a column less a number for each group."""
    _check_rows(codes, len(factors[0][0]))
    sums = zeros(groups, np.float64)
    left, left_shifts = factors[0]
    right, right_shifts = factors[1] if len(factors) == 2 else (None, None)
    kernels().olapdb_sum_deviations(left, left_shifts, right, right_shifts, codes, len(left), sums)
    return sums


def sum_decimals128(array: pa.Array, codes: np.ndarray | None, groups: int) -> np.ndarray:
    """Return the sum of each group modulo 2^128; uint64, shape (groups, 2), the low half first.

    Where no sum can exceed 64 bits only the low halves are added."""
    _check_rows(codes, len(array))
    sums = np.zeros((groups, 2), np.uint64)
    data = array.buffers()[1]
    if data is None:
        return sums
    column = (data.address + 16 * array.offset, *validity_of(array))
    bits = kernels().olapdb_decimal_bits(*column, len(array))
    if bits + len(array).bit_length() <= _SUM_BITS_MAX:
        kernels().olapdb_sum_narrow_decimals(*column, codes, len(array), groups, sums)
    else:
        kernels().olapdb_sum_decimals128(*column, codes, len(array), sums)
    return sums


def sum_short_decimals(array: pa.Array, codes: np.ndarray | None, groups: int) -> np.ndarray | None:
    """Return the sum of each group of 64-bit decimals; uint64, shape (groups, 2), the low half first. None where
    a sum may exceed 64 bits."""
    values = values_of(array)
    assert values is not None
    _check_rows(codes, values.rows)
    low = zeros(groups, np.uint64)
    _, *column = values.column
    bits = kernels().olapdb_sum_short_decimals(*column, codes, values.rows, groups, low)
    if bits + values.rows.bit_length() > _SUM_BITS_MAX:
        return None
    return np.stack([low, (low.view(np.int64) >> _SUM_BITS_MAX).view(np.uint64)], axis=1)


def extremes(
    values: ColumnValues, codes: np.ndarray | None, groups: int, *, largest: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least (largest) integer of each group, and whether the group has one; bool.

    A group without a value gets the largest (least) value of the type."""
    _check_rows(codes, values.rows)
    limits = np.iinfo(values.numbers.dtype)
    best = np.full(groups, limits.min if largest else limits.max, values.numbers.dtype)
    seen = zeros(groups, np.bool_)
    kernels().olapdb_extremes(*values.column, codes, values.rows, largest, best, seen)
    return best, seen


def extreme_rows(
    keys: np.ndarray, codes: np.ndarray | None, groups: int, *, largest: bool
) -> np.ndarray:
    """Return for each group its last row with the least (largest) int64 key, -1 without rows."""
    _check_rows(codes, len(keys))
    rows = np.full(groups, -1, np.int64)
    best = np.empty(groups, np.int64)
    kernels().olapdb_extreme_rows(keys, codes, len(keys), largest, best, rows)
    return rows
