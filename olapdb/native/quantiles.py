"""Calls of the kernels that order the values of groups for quantiles. Each needs the library to be loaded.

`codes` is the group of each row, None where all rows are in one group.  The forms in numpy are in
`functions/aggregates/exact_quantile.py` and `functions/aggregates/quantile.py`."""

from __future__ import annotations

import numpy as np

from olapdb.native.distinct import grouped_words
from olapdb.native.grouping import bounds
from olapdb.native.library import kernels
from olapdb.native.memory import empty
from olapdb.native.values import ColumnValues

_CELLS_MIN = 1 << 12
_CELLS_MAX = 1 << 22
_SIGN = np.uint64(1 << 63)


def count_cells(
    values: ColumnValues, codes: np.ndarray | None, groups: int
) -> tuple[int, np.ndarray] | None:
    """Count how often each group has each integer: return the least integer of all, and the counts
    as int64 of shape (groups, span), where the column belongs to the least integer plus its number.

    NULL does not count. Returns None where there would be more cells than rows."""
    if codes is not None and len(codes) != values.rows:
        raise ValueError(f"{values.rows} rows have {len(codes)} codes.")
    low, high = bounds(values)
    span = high - low + 1
    if groups * span > min(max(values.rows, _CELLS_MIN), _CELLS_MAX):
        return None
    cells = np.zeros((groups, span), np.int64)
    if span:
        kernels().olapdb_count_cells(
            *values.column, codes, values.rows, low % (1 << 64), span, cells
        )
    return low, cells


def count_runs(
    values: ColumnValues, starts: np.ndarray, codes: np.ndarray | None, groups: int
) -> tuple[int, np.ndarray] | None:
    """Count the integers of lists as `count_cells` does, by the ends of their runs. List number l has `values` from
    `starts[l]` up to `starts[l + 1]`, ascending, none of them NULL, and counts for group `codes[l]`.

    Returns None where there would be more cells than values, and where a list is not ascending."""
    lists = len(starts) - 1
    if codes is not None and len(codes) != lists:
        raise ValueError(f"{lists} lists have {len(codes)} codes.")
    if not values.rows or starts[0] != 0 or starts[-1] != values.rows:
        return None
    filled = np.flatnonzero(np.diff(starts))
    low = int(values.numbers[starts[filled]].min())
    span = int(values.numbers[starts[filled + 1] - 1].max()) - low + 1
    if not 0 < groups * span <= min(max(values.rows, _CELLS_MIN), _CELLS_MAX):
        return None
    cells = np.zeros((groups, span), np.int64)
    is_counted = kernels().olapdb_count_runs(
        values.type, values.numbers, starts, lists, codes, low % (1 << 64), span, cells
    )
    return (low, cells) if is_counted else None


def repeated(low: int, cells: np.ndarray, values: ColumnValues) -> np.ndarray:
    """Return the integers that `count_cells` or `count_runs` counted in `values`, sorted by group and value, in their own
    type."""
    groups, span = cells.shape
    numbers = empty(int(cells.sum()), values.numbers.dtype)
    kernels().olapdb_repeat_cells(values.type, cells, groups, span, low % (1 << 64), numbers)
    return numbers


def buckets(values: np.ndarray) -> np.ndarray:
    """Return the bucket number of each float64, none of which is NaN; int32."""
    numbers = empty(len(values), np.int32)
    kernels().olapdb_buckets(np.ascontiguousarray(values), len(values), numbers)
    return numbers


def sorted_values(
    values: ColumnValues, codes: np.ndarray | None, groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the integers that are not NULL, sorted by group and value: the offsets of the groups,
    and the integers in their own type."""
    words, starts = grouped_words(values, codes, groups)
    workspace = empty(int(np.diff(starts).max(initial=0)), np.uint64)
    kernels().olapdb_sort_groups(words, groups, starts, workspace)
    words = words[: starts[-1]]
    dtype = values.numbers.dtype
    if dtype.kind == "i":
        np.bitwise_xor(words, _SIGN, out=words)
        return starts, words.view(np.int64).astype(dtype, copy=False)
    return starts, words.astype(dtype, copy=False)
