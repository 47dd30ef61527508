"""Dropping rows before they are sorted: those that cannot be among the first rows of their group.

A row that sorts before another one of its group has no greater first key. So the rows up to the n-th least first key
of each group hold the first n rows of each, and every row that comes before one of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.compute.group_codes import factorise
from olapdb.compute.hash_table import build_bytes
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.ordering import OrderColumn
from olapdb.compute.sort_numbers import sort_numbers
from olapdb.config import tuning
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import sortable_bits
from olapdb.native.first_rows import first_of_groups
from olapdb.native.library import library
from olapdb.types.arrow_values import from_numpy

COUNT_MAX = 64
"""A kernel holds the least keys of each group in order: more of them would be moved too often."""
_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def first_rows(
    groups: Sequence[pa.Array],
    order: OrderColumn,
    count: int,
    account: MemoryAccount,
    *,
    distinct: bool = False,
    threads: int = 0,
) -> pa.Array | None:
    """Return the positions, ascending, of the rows that may be among the first `count` of their group by keys whose first
    one is `order`; with `distinct` among those that have its first `count` different keys. Without groups all rows are one.

    None means all rows: without kernels, for keys that are not numbers, times or texts that repeat, and where too few rows
    would be dropped."""
    rows = len(order.values)
    if not 0 < count <= COUNT_MAX or rows < tuning.RADIX_SORT_ROWS_MIN or library() is None:
        return None
    keys = _order_keys(order)
    if keys is None:
        return None
    codes, group_count = np.zeros(rows, np.int64), 1
    if groups:
        account.grow(build_bytes(groups, rows))
        factorised = factorise(groups, rows, threads=threads).groups
        codes, group_count = factorised.codes, factorised.count
    if 2 * count * group_count > rows:
        return None
    return from_numpy(first_of_groups(keys, codes, group_count, count, distinct=distinct))


def _order_keys(order: OrderColumn) -> np.ndarray | None:
    """Return integers of which no row has a greater one than a row that sorts after it; int64, None for other types.

    NULL and NaN have the same one, as has the greatest or the least value."""
    values = order.values
    arrow = values.type
    valid = columns.validity(values)
    is_end = None if valid is None else ~valid
    if pa.types.is_float32(arrow) or pa.types.is_float64(arrow):
        numbers = columns.numpy_values(values).astype(np.float64) + 0.0  # -0.0 equals 0.0
        is_nan = np.isnan(numbers)
        is_end = is_nan if is_end is None else is_end | is_nan
        keys = sortable_bits(numbers)
    else:
        integers = sort_numbers(values)
        arrow = integers.type
        if not (
            pa.types.is_integer(arrow) or pa.types.is_date(arrow) or pa.types.is_timestamp(arrow)
        ):
            return None
        whole = columns.numpy_values(integers)
        if whole.dtype == np.uint64:
            whole = (whole ^ np.uint64(1 << 63)).view(np.int64)
        keys = whole.astype(np.int64)
    if order.descending:
        keys = ~keys
    if is_end is not None and is_end.any():
        keys[is_end] = _LEAST if order.nulls_first else _GREATEST
    return keys
