"""Kernels over rows assigned to groups: sums, extremes, ranks and distinct values.

Sums and extremes are one pass of a compiled kernel over the rows (`native/accumulate.py`), or one of
numpy where there is none; others sort only where a scatter does not do.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.base import Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.decimal_width import is_short, lengthened, with_precision
from olapdb.functions.kernels.integer_order import rank_integers, sortable_bits
from olapdb.native import accumulate, distinct
from olapdb.native import texts as native_texts
from olapdb.native.library import library
from olapdb.native.values import values_of, values_of_numbers
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy

_BITMAP_CELLS_MAX = 1 << 23
_NO_ROW = -1
_GROUP_ROWS_MIN = 64
LONG_DIGITS = 18
"""The digits of a decimal that fits into 64 bits, the low half of a Decimal128."""


def drop_null_rows(arguments: Sequence[pa.Array], groups: Groups) -> tuple[list[pa.Array], Groups]:
    """Return the arguments and groups of the rows in which no argument is null."""
    valid = columns.all_valid(arguments, len(groups.codes))
    return filter_rows(arguments, groups, valid)


def filter_rows(
    arguments: Sequence[pa.Array], groups: Groups, keep: np.ndarray | None
) -> tuple[list[pa.Array], Groups]:
    """Return the arguments and groups of the rows that `keep` marks; of all rows if it is None."""
    if keep is None or bool(keep.all()):
        return list(arguments), groups
    return take_group_rows(arguments, groups, np.flatnonzero(keep))


def take_group_rows(
    arguments: Sequence[pa.Array], groups: Groups, rows: np.ndarray
) -> tuple[list[pa.Array], Groups]:
    """Return the arguments and groups of these rows."""
    positions = pa.array(rows)
    # All codes of a single group are 0.
    codes = groups.codes[: len(rows)] if groups.count == 1 else groups.codes.take(rows)
    return [a.take(positions) for a in arguments], Groups(codes, groups.count)


def count_values(arguments: Sequence[pa.Array], groups: Groups) -> np.ndarray:
    """Return the number of rows of each group in which no argument is null; int64."""
    nullable = [array for array in arguments if array.null_count]
    has_bitmap = len(nullable) == 1 and not pa.types.is_null(nullable[0].type)
    if has_bitmap and library() is not None:
        return accumulate.count(nullable[0], len(groups.codes), groups.kernel_codes, groups.count)
    _, groups = drop_null_rows(nullable, groups)
    return groups.sizes


def sum_values(array: pa.Array, groups: Groups, dtype: np.dtype) -> np.ndarray:
    """Return the sum of each group's numbers that are not null as `dtype`: integers, which wrap, or
    Float64, added up in row order."""
    values = values_of(array) if library() is not None else None
    if values is not None and dtype.kind == "f":
        return accumulate.sum_floats(values, groups.kernel_codes, groups.count)
    if values is not None and values.is_integer:
        sums = accumulate.sum_integers(values, groups.kernel_codes, groups.count)
        return sums.astype(dtype, copy=False)
    (array,), groups = drop_null_rows([array], groups)
    numbers = columns.numpy_values(array)
    return (
        sum_floats(numbers, groups) if dtype.kind == "f" else sum_integers(numbers, groups, dtype)
    )


def sum_integers(values: np.ndarray, groups: Groups, dtype: np.dtype) -> np.ndarray:
    """Return the integer sum of each group as `dtype`, shape (groups.count,). Sums wrap."""
    if library() is not None:
        numbers = values_of_numbers(values)
        sums = accumulate.sum_integers(numbers, groups.kernel_codes, groups.count)
        return sums.astype(dtype, copy=False)
    if groups.count == 1:
        return np.add.reduce(values.astype(dtype, copy=False), dtype=dtype, keepdims=True)
    out = np.zeros(groups.count, dtype)
    with np.errstate(over="ignore"):
        np.add.at(out, groups.codes, values.astype(dtype, copy=False))
    return out


def sum_floats(values: np.ndarray, groups: Groups) -> np.ndarray:
    """Return the Float64 sum of each group, shape (groups.count,), added up in row order."""
    if library() is not None:
        numbers = values_of_numbers(values.astype(np.float64, copy=False))
        return accumulate.sum_floats(numbers, groups.kernel_codes, groups.count)
    sums = np.bincount(groups.codes, values.astype(np.float64, copy=False), groups.count)
    return sums.astype(np.float64, copy=False)  # without rows they are integers


def sum_decimals(array: pa.Array, groups: Groups) -> pa.Array:
    """Return the exact sum of each group as decimals of the array's type, modulo its width; 64-bit decimals give
    Decimal128 of 38 digits. Nulls are skipped. Without the compiled kernel it adds limbs of 32 bits and propagates
    the carries."""
    if is_short(array.type):
        arrow = pa.decimal128(38, array.type.scale)
        short = None
        if library() is not None:
            short = accumulate.sum_short_decimals(array, groups.kernel_codes, groups.count)
        if short is not None:
            return pa.Array.from_buffers(arrow, groups.count, [None, pa.py_buffer(short)])
        array = with_precision(lengthened(array), arrow)
    if library() is not None and pa.types.is_decimal128(array.type):
        sums = accumulate.sum_decimals128(array, groups.kernel_codes, groups.count)
        return pa.Array.from_buffers(array.type, groups.count, [None, pa.py_buffer(sums)])
    (array,), groups = drop_null_rows([array], groups)
    words = 2 if pa.types.is_decimal128(array.type) else 4
    limbs = decimal_limbs(array, 2 * words)
    carry = np.zeros(groups.count, np.int64)
    out = np.zeros((groups.count, 2 * words), np.uint32)
    for limb in range(2 * words):
        totals = np.zeros(groups.count, np.int64)
        np.add.at(totals, groups.codes, limbs[:, limb].astype(np.int64))
        totals += carry
        out[:, limb] = (totals & 0xFFFFFFFF).astype(np.uint32)
        carry = totals >> 32
    return pa.Array.from_buffers(array.type, groups.count, [None, pa.py_buffer(out)])


def decimal_limbs(array: pa.Array, count: int) -> np.ndarray:
    """Return decimals as `count` limbs of 32 bits, two's complement, the lowest limb first; uint32,
    shape (rows, count)."""
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros((len(array), count), np.uint32)
    limbs = np.frombuffer(buffer, np.uint32, len(array) * count, array.offset * 4 * count)
    return limbs.reshape(len(array), count)


def extreme_rows(keys: np.ndarray, groups: Groups, *, largest: bool) -> np.ndarray:
    """Return for each group a row that has its smallest (largest) key; -1 for an empty group.

    Of several rows it is the last."""
    if library() is not None and keys.dtype == np.int64:
        return accumulate.extreme_rows(
            np.ascontiguousarray(keys), groups.kernel_codes, groups.count, largest=largest
        )
    best = extreme_keys(keys, groups, largest=largest)
    rows = np.full(groups.count, _NO_ROW, np.int64)
    matching_rows = np.flatnonzero(keys == best[groups.codes])
    rows[groups.codes[matching_rows]] = matching_rows
    return rows


def extreme_keys(keys: np.ndarray, groups: Groups, *, largest: bool) -> np.ndarray:
    """Return the smallest (largest) integer key of each group.

    An empty group gets the largest (smallest) value of the keys' dtype."""
    if library() is not None:
        values = values_of_numbers(keys)
        return accumulate.extremes(values, groups.kernel_codes, groups.count, largest=largest)[0]
    limits = np.iinfo(keys.dtype)
    if groups.count == 1 and len(keys):
        return (np.maximum if largest else np.minimum).reduce(keys, keepdims=True)
    out = np.full(groups.count, limits.min if largest else limits.max, keys.dtype)
    (np.maximum if largest else np.minimum).at(out, groups.codes, keys)
    return out


def extreme_values(array: pa.Array, groups: Groups, *, largest: bool) -> pa.Array:
    """Return the smallest (largest) value of each group of a column of integers or times; null for a
    group without values."""
    values = values_of(array) if library() is not None else None
    if values is None:
        (array,), groups = drop_null_rows([array], groups)
        best = extreme_keys(columns.numpy_values(array), groups, largest=largest)
        has_values = np.zeros(groups.count, bool)
        has_values[groups.codes] = True
    else:
        best, has_values = accumulate.extremes(
            values, groups.kernel_codes, groups.count, largest=largest
        )
    return columns.from_values(best, array.type, has_values)


def extreme_texts(
    column: pa.Array | pa.DictionaryArray, groups: Groups, *, largest: bool
) -> pa.Array:
    """Return the least or greatest text of each group of a text column, or of a dictionary of texts;
    null for a group without texts."""
    values, indices = column, None
    if isinstance(column, pa.DictionaryArray):
        values = column.dictionary
        indices = columns.numpy_values(column.indices).astype(np.int32, copy=False)
    if library() is not None and not (indices is not None and values.null_count):
        best = native_texts.extreme_texts(
            values, column, indices, groups.kernel_codes, groups.count, largest=largest
        )
        return take_rows(values, best)
    (column,), groups = drop_null_rows([column], groups)
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    return take_rows(column, extreme_rows(order_keys(column), groups, largest=largest))


def take_rows(array: pa.Array, rows: np.ndarray) -> pa.Array:
    """Return the values of these rows; null where the row is -1."""
    return array.take(columns.from_values(rows, pa.int64(), rows != _NO_ROW))


def order_keys(array: pa.Array) -> np.ndarray:
    """Return integers that compare as the values of a column without nulls do.

    Integers, times, booleans and decimals of up to 18 digits keep their value. Floats give their
    sortable bits, other types the ranks of the values within the column.
    """
    arrow = array.type
    if pa.types.is_floating(arrow):
        return sortable_bits(columns.numpy_values(array))
    if pa.types.is_integer(arrow) or pa.types.is_temporal(arrow) or pa.types.is_boolean(arrow):
        return columns.numpy_values(array)
    if pa.types.is_decimal128(arrow) and arrow.precision <= LONG_DIGITS:
        return _low_halves(array)
    return rank_rows([array]).ranks


def _low_halves(array: pa.Array) -> np.ndarray:
    """Return the low 64 bits of each value of a Decimal128 column without nulls, as int64."""
    if not len(array):
        return np.zeros(0, np.int64)
    halves = np.frombuffer(array.buffers()[1], np.int64, 2 * len(array), 16 * array.offset)
    return np.ascontiguousarray(halves[::2])


@dataclass(frozen=True)
class Ranking:
    """The ranks of a column's values.

    `ranks[i]` is the position of row i's value among the sorted distinct values. `rows[r]` is a row
    with the value of rank r. `count` is the number of distinct values."""

    ranks: np.ndarray
    rows: np.ndarray

    @property
    def count(self) -> int:
        """The number of distinct values."""
        return len(self.rows)


def rank_rows(arguments: Sequence[pa.Array]) -> Ranking:
    """Rank rows by the values of all columns, compared from left to right. The columns hold no
    nulls, but their elements may."""
    ranking = _rank_column(arguments[0])
    for array in arguments[1:]:
        ranking = _rank_pair(ranking, _rank_column(array))
    return ranking


def _rank_column(array: pa.Array) -> Ranking:
    """Rank the rows of one column. Nulls, which occur in elements of tuples, rank highest."""
    if pa.types.is_null(array.type) or (
        pa.types.is_struct(array.type) and not array.type.num_fields
    ):
        return Ranking(np.zeros(len(array), np.int64), np.arange(min(len(array), 1)))
    if array.null_count:
        valid = np.asarray(array.is_valid())
        ranking = _rank_column(array.filter(from_numpy(valid)))
        ranks = np.full(len(array), ranking.count)
        ranks[valid] = ranking.ranks
        return Ranking(ranks, np.append(np.flatnonzero(valid)[ranking.rows], np.argmin(valid)))
    if pa.types.is_floating(array.type):
        array = pa.array(sortable_bits(columns.numpy_values(array)))
    elif pa.types.is_struct(array.type):
        return rank_rows(columns.struct_fields(array))
    elif pa.types.is_list(array.type):
        array = _list_keys(array)
    elif pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    elif pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    if pa.types.is_integer(array.type):
        ranked = rank_integers(columns.numpy_values(array))
        if ranked is not None:
            return Ranking(*ranked)
    encoded = array.dictionary_encode()
    codes = columns.numpy_values(encoded.indices).astype(np.int64)
    order = np.asarray(pc.sort_indices(encoded.dictionary)).astype(np.int64)
    rank_of_code = np.empty(len(order), np.int64)
    rank_of_code[order] = np.arange(len(order))
    row_of_code = np.empty(len(order), np.int64)
    row_of_code[codes] = np.arange(len(codes))
    return Ranking(rank_of_code[codes], row_of_code[order])


def _rank_pair(left: Ranking, right: Ranking) -> Ranking:
    """Return the ranking of pairs of values, compared from left to right."""
    combined = left.ranks * max(right.count, 1) + right.ranks
    _, rows, ranks = np.unique(combined, return_index=True, return_inverse=True)
    return Ranking(ranks.reshape(-1), rows)


def _list_keys(array: pa.Array) -> pa.Array:
    """Return lists as binary keys made of their elements' ranks.

    Equal lists of a column have equal keys. Keys have a fixed order within a column."""
    offsets, elements = columns.elements_of(array)
    valid = columns.validity(elements)
    inner = _rank_column(elements if valid is None else elements.filter(from_numpy(valid)))
    ranks = np.zeros(len(elements), np.int64)
    ranks[slice(None) if valid is None else valid] = inner.ranks + 1
    data = np.frombuffer(ranks.astype(">i8").tobytes(), np.uint8)
    return columns.binary(columns.strings_from(offsets * 8, data))


def distinct_ranks(ranking: Ranking, groups: Groups) -> tuple[np.ndarray, np.ndarray]:
    """Return each group's distinct values, sorted, by their ranks in `ranking`.

    Returns the offsets of the groups, shape (groups.count + 1,), and the ranks.
    """
    if not ranking.count:
        return np.zeros(groups.count + 1, np.int64), np.zeros(0, np.int64)
    combined = groups.codes * ranking.count + ranking.ranks
    if groups.count * ranking.count <= max(_BITMAP_CELLS_MAX, 4 * len(combined)):
        seen = np.zeros(groups.count * ranking.count, bool)
        seen[combined] = True
        pairs = np.flatnonzero(seen)
    else:
        pairs = _unique(combined)
    owners, ranks = np.divmod(pairs, ranking.count)
    return columns.offsets_from_counts(np.bincount(owners, minlength=groups.count)), ranks


def distinct_integers(array: pa.Array, groups: Groups) -> tuple[np.ndarray, np.ndarray] | None:
    """Return each group's distinct integers or times, sorted: the offsets of the groups and the
    values.

    Returns None for other types and, without the kernel, where `distinct_ranks` is as fast: for
    values of a wide range in many groups."""
    if not (pa.types.is_integer(array.type) or pa.types.is_temporal(array.type)) or not len(array):
        return None
    words = values_of(array) if library() is not None else None
    if words is not None:
        return distinct.distinct_values(words, groups.kernel_codes, groups.count)
    values = columns.numpy_values(array)
    if groups.count == 1:
        ascending = np.sort(columns.numpy_values(pc.unique(array)))
        return np.array([0, len(ascending)], np.int64), ascending
    span = int(values.max()) - int(values.min()) + 1
    if groups.count * span > max(_BITMAP_CELLS_MAX, 4 * len(values)):
        few = groups.count <= min(len(values) // _GROUP_ROWS_MIN, np.iinfo(np.uint16).max)
        return _distinct_by_group(values, groups) if few else None
    seen = np.zeros(groups.count * span, bool)
    least = values.min().astype(np.int64)  # large UInt64 wrap, and wrap back
    seen[groups.codes * span + (values.astype(np.int64) - least)] = True
    owners, differences = np.divmod(np.flatnonzero(seen), span)
    ascending = (differences + least).astype(values.dtype)
    return columns.offsets_from_counts(np.bincount(owners, minlength=groups.count)), ascending


def marked_codes(column: pa.DictionaryArray, groups: Groups) -> np.ndarray | None:
    """Return bit masks of the dictionary codes that each group has, as `distinct.marked_codes` does. Returns None
    without the compiled kernel, and where the masks take more memory than the rows."""
    indices = values_of(column.indices) if library() is not None else None
    if indices is None:
        return None
    return distinct.marked_codes(indices, groups.kernel_codes, groups.count, len(column.dictionary))


def distinct_codes(column: pa.DictionaryArray, groups: Groups) -> tuple[np.ndarray, np.ndarray]:
    """Return each group's distinct codes that are not NULL, sorted: the offsets of the groups and the
    codes."""
    marks = marked_codes(column, groups)
    if marks is not None:
        return distinct.codes_of_marks(marks)
    (codes,), groups = drop_null_rows([column.indices], groups)
    numbers = distinct_integers(codes, groups)
    if numbers is None:
        texts = np.arange(len(column.dictionary))
        ranking = Ranking(columns.numpy_values(codes).astype(np.int64), texts)
        numbers = distinct_ranks(ranking, groups)
    return numbers


def _distinct_by_group(values: np.ndarray, groups: Groups) -> tuple[np.ndarray, np.ndarray]:
    """Return each group's distinct values by sorting every group by itself, which is faster than
    one sort for a few large groups.
    """
    order = np.argsort(groups.codes.astype(np.uint16), kind="stable")
    values = values[order]
    bounds = columns.offsets_from_counts(np.bincount(groups.codes, minlength=groups.count))
    for start, end in itertools.pairwise(bounds.tolist()):
        values[start:end].sort()
    is_first = np.ones(len(values), bool)
    is_first[1:] = values[1:] != values[:-1]
    is_first[bounds[:-1][np.diff(bounds) > 0]] = True
    return columns.offsets_from_counts(is_first)[bounds], values[is_first]


def _unique(values: np.ndarray) -> np.ndarray:
    """Return the distinct integers, sorted ascending; expects no order."""
    ordered = np.sort(values)
    if not len(ordered):
        return ordered
    is_first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    return ordered[is_first]


def element_groups(offsets: np.ndarray, groups: Groups) -> Groups:
    """Return the groups of list elements from the groups of their lists."""
    if groups.count == 1:  # all codes are 0, and no kernel reads them
        return Groups(np.zeros(int(offsets[-1]), np.int64), 1)
    return Groups(np.repeat(groups.codes, np.diff(offsets)), groups.count)
