"""Stable sorting of rows: NULL and NaN last unless `nulls_first`, strings bytewise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.group_codes import lists_as_bytes
from olapdb.compute.sort_numbers import sort_numbers
from olapdb.config import tuning
from olapdb.functions.kernels.columns import single, true_positions
from olapdb.native.library import library
from olapdb.native.selection import positions_within
from olapdb.native.sorting import SortColumn, sort_order
from olapdb.records import dataclass
from olapdb.types.arrow_values import FALSE, TRUE, from_numpy, to_numpy


@dataclass(frozen=True)
class OrderColumn:
    """A column to sort by, and its direction."""

    values: pa.Array
    descending: bool = False
    nulls_first: bool = False


def sort_indices(columns: Sequence[OrderColumn], rows: int) -> pa.Array:
    """Return the positions of the rows in sorted order, stable; UInt64, shape (rows,).

    Within the NULL-and-NaN end of a key, NaN lies next to the values, as in ClickHouse.
    """
    leaves = [
        SortColumn(leaf, column.descending, column.nulls_first)
        for column in columns
        for leaf in _sortable(column.values, nulls_low=column.nulls_first != column.descending)
    ]
    if not leaves or rows <= 1:
        return from_numpy(np.arange(rows, dtype=np.uint64))
    if rows >= tuning.RADIX_SORT_ROWS_MIN and library() is not None:
        leaves = [replace(leaf, values=sort_numbers(leaf.values)) for leaf in leaves]
        order = sort_order(leaves, rows)
        if order is not None:
            return from_numpy(order)
    return _sort_by_arrow(leaves)


def _sort_by_arrow(columns: Sequence[SortColumn]) -> pa.Array:
    """Return the positions of the rows in sorted order, stable; UInt64."""
    names = [str(at) for at in range(len(columns))]
    keys = [
        (
            name,
            "descending" if column.descending else "ascending",
            "at_start" if column.nulls_first else "at_end",
        )
        for name, column in zip(names, columns, strict=True)
    ]
    batch = pa.RecordBatch.from_arrays([column.values for column in columns], names=names)
    return pc.sort_indices(batch, sort_keys=keys)


def rows_within(column: OrderColumn, bound: pa.Scalar) -> np.ndarray:
    """Return the positions of the rows that do not sort after the bound, ascending; int64.

    The bound is a value other than NULL and NaN, of a type that is not nested."""
    values = column.values
    if library() is not None:
        positions = positions_within(
            values, single(bound), descending=column.descending, nulls_first=column.nulls_first
        )
        if positions is not None:
            return positions
    keep = (pc.greater_equal if column.descending else pc.less_equal)(values, bound)
    if column.nulls_first:
        keep = pc.fill_null(keep, TRUE)
        if pa.types.is_floating(bound.type):
            keep = pc.or_(keep, pc.fill_null(pc.is_nan(values), FALSE))
    return true_positions(keep)


def is_sorted(columns: Sequence[OrderColumn], rows: int) -> bool:
    """Return whether columns of numbers, times, texts and Decimals are in order already.

    False means "not known". The check is cheap: a few rows tell most often that they are not in order,
    and it is often true: rows arrive by time, or come from a table of the same key."""
    if rows <= 1:
        return True
    if not columns or not all(_can_be_compared(column.values.type) for column in columns):
        return False
    if rows > tuning.ORDERED_ROWS_TRIED:
        first = [replace(c, values=c.values.slice(0, tuning.ORDERED_ROWS_TRIED)) for c in columns]
        if not _are_ordered(first):
            return False
    return _are_ordered(columns)


def _can_be_compared(arrow: pa.DataType) -> bool:
    """Return whether `_ends_and_values` knows a type."""
    return bool(
        pa.types.is_integer(arrow)
        or pa.types.is_float32(arrow)
        or pa.types.is_float64(arrow)
        or pa.types.is_boolean(arrow)
        or pa.types.is_date(arrow)
        or pa.types.is_timestamp(arrow)
        or pa.types.is_decimal(arrow)
        or pa.types.is_string(arrow)
        or pa.types.is_binary(arrow)
    )


def _ends_and_values(column: OrderColumn) -> list[OrderColumn]:
    """Return columns without NULL and NaN that sort as this one does: where needed one of the end to which NULL and NaN
    go, then the values."""
    values = column.values
    is_nan = pc.is_nan(values) if pa.types.is_floating(values.type) else None
    if is_nan is not None and not pc.any(is_nan).as_py():
        is_nan = None
    if not values.null_count and is_nan is None:
        return [column]
    ends = np.zeros(len(values), np.int8)
    filler = _filler(values.type)
    if is_nan is not None:
        ends[to_numpy(pc.fill_null(is_nan, FALSE))] = 1
        values = pc.if_else(is_nan, filler, values)
    if values.null_count:
        ends[to_numpy(values.is_null())] = 2
        values = pc.fill_null(values, filler)
    return [OrderColumn(from_numpy(ends), column.nulls_first), replace(column, values=values)]


def _filler(arrow: pa.DataType) -> pa.Scalar:
    """Return some value of a type."""
    if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        return pa.scalar("", arrow)
    return pa.scalar(False if pa.types.is_boolean(arrow) else 0, arrow)


def _are_ordered(columns: Sequence[OrderColumn]) -> bool:
    """Return whether no row sorts before the one before it. At least one column."""
    columns = [part for column in columns for part in _ends_and_values(column)]
    equal: np.ndarray | None = None  # whether a row equals the one before it in the columns so far
    for at, column in enumerate(columns, 1):
        values = column.values
        before, after = values.slice(0, len(values) - 1), values.slice(1)
        if column.descending:
            before, after = after, before
        is_wrong = to_numpy(pc.less(after, before))
        if (is_wrong if equal is None else is_wrong & equal).any():
            return False
        if at == len(columns):
            return True
        is_equal = to_numpy(pc.equal(before, after))
        equal = is_equal if equal is None else is_equal & equal
        if not equal.any():
            return True
    return True


def _sortable(column: pa.Array, *, nulls_low: bool = False) -> list[pa.Array]:
    """Return flat columns that Arrow can sort; sorting by them in turn sorts by the column.

    NULL and NaN within arrays and maps are below all other values with `nulls_low`, else above them."""
    arrow = column.type
    if pa.types.is_null(arrow):
        return []
    if pa.types.is_struct(arrow):
        fields = column.flatten()
        leaves = [leaf for field in fields for leaf in _sortable(field, nulls_low=nulls_low)]
        return [_nulls_of(column), *leaves] if column.null_count else leaves
    if pa.types.is_list(arrow) or pa.types.is_map(arrow) or pa.types.is_large_list(arrow):

        def ranks_of(elements: pa.Array) -> np.ndarray:
            """Return the ranks of the elements of all arrays."""
            return dense_ranks([OrderColumn(elements, nulls_first=nulls_low)], len(elements))

        return [lists_as_bytes(column, ranks_of)]
    return [column]


def _nulls_of(column: pa.Array) -> pa.Array:
    """Return a boolean column that is NULL where the given one is and true elsewhere. Sorting by it puts the NULLs
    where the order wants them."""
    return pc.if_else(column.is_valid(), TRUE, pa.scalar(None, pa.bool_()))


def dense_ranks(columns: Sequence[OrderColumn], rows: int) -> np.ndarray:
    """Return the rank of each row: 0 for the smallest, equal for equal rows, without gaps; int64,
    shape (rows,)."""
    order = sort_indices(columns, rows)
    is_new_rank = ~equal_to_previous([column.values.take(order) for column in columns], rows)
    ranks = np.empty(rows, np.int64)
    ranks[to_numpy(order)] = np.cumsum(is_new_rank) - 1
    return ranks


def equal_to_previous(columns: Sequence[pa.Array], rows: int) -> np.ndarray:
    """Return whether each row equals the previous one; false for the first. Bool, shape (rows,).

    NULL equals NULL, NaN equals NaN."""
    equal = np.ones(rows, bool)
    if not rows:
        return equal
    equal[0] = False
    for column in columns:
        for leaf in _sortable(column):
            equal[1:] &= equal_values(leaf.slice(1), leaf.slice(0, len(leaf) - 1))
    return equal


def equal_values(left: pa.Array, right: pa.Array) -> np.ndarray:
    """Return whether the values of two flat columns are equal, row by row; bool.

    NULL equals NULL, NaN equals NaN."""
    equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        both_nan = pc.and_(pc.is_nan(left), pc.is_nan(right))
        equal = pc.or_(equal, both_nan)
    if left.null_count or right.null_count:
        both_null = pc.and_(left.is_null(), right.is_null())
        equal = pc.or_(pc.fill_null(equal, FALSE), both_null)
    mask: np.ndarray = to_numpy(equal)
    return mask
