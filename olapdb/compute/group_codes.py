"""Rows as group codes: what GROUP BY, JOIN, DISTINCT and IN share.

NULL is a value equal to itself here, NaN too; 0.0 and -0.0 differ, as they do in ClickHouse's
hash tables.  Everything is hashed by Arrow; nothing loops over rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.row_hash import can_be_hashed, row_hashes
from olapdb.functions.base import Groups
from olapdb.functions.kernels.arrow_buffers import empty, progression
from olapdb.threads import ThreadPool, cores

RADIX_MAX = 1 << 62
"""Codes of several columns are packed into one integer below this."""
DENSE_RADIX_MIN = 1 << 12
"""Values that lie this near to each other, or as near as there are rows, are numbered through a
table, others by hashing."""
SLICED_ROWS_MIN = 1 << 20
"""From here on rows that are mostly distinct are grouped slice by slice: a hash table of them all
would be many times their size, and no processor's cache would hold it."""
SLICE_ROWS = 1 << 15
SAMPLE_ROWS = 1 << 14
GOLDEN_RATIO_64 = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Factorised:
    """`codes[i]` is the group of row i, numbered by first appearance; `first[g]` its first row."""

    codes: np.ndarray
    first: np.ndarray

    @property
    def count(self) -> int:
        return len(self.first)

    @cached_property
    def groups(self) -> Groups:
        return Groups(self.codes, self.count)


def factorise(columns: Sequence[pa.Array], rows: int, *, threads: int = 0) -> Factorised:
    """Groups equal rows; without columns all rows are one group (none where there is no row).
    `threads` for many rows; 0 means the number of cores."""
    flat = [leaf for column in columns for leaf in leaves_of(column)]
    if not flat:
        return Factorised(np.zeros(rows, np.int64), np.zeros(min(rows, 1), np.int64))
    dense = _dense(flat, max(rows, DENSE_RADIX_MIN))
    if dense is not None:
        return renumbered(*dense)
    if rows >= SLICED_ROWS_MIN and can_be_hashed(flat) and is_mostly_distinct(flat, rows):
        return _by_slices(flat, rows, threads or cores())
    return _by_hashing(flat)


def _by_hashing(flat: Sequence[pa.Array]) -> Factorised:
    codes, count = encode(flat[0])
    for leaf in flat[1:]:
        more, more_count = encode(leaf)
        codes, count = _combine(codes, count, more, more_count)
    if len(flat) > 1:
        codes, count = encode(pa.array(codes))
    return Factorised(codes, first_rows(codes))


def is_mostly_distinct(leaves: Sequence[pa.Array], rows: int) -> bool:
    """Whether more than half of the rows are, as far as a sample tells, taken from everywhere.

    Not every n-th row, which may all be alike: fractions of multiples of the golden ratio, which
    fall evenly and without a period (Weyl)."""
    fractions = np.arange(min(rows, SAMPLE_ROWS), dtype=np.uint64) * GOLDEN_RATIO_64
    places = (fractions >> np.uint64(32)) * np.uint64(rows) >> np.uint64(32)
    sample = pa.array(np.unique(places).view(np.int64))
    return 2 * _by_hashing([leaf.take(sample) for leaf in leaves]).count > len(sample)


def _by_slices(leaves: Sequence[pa.Array], rows: int, threads: int) -> Factorised:
    """As `_by_hashing`: equal rows are in the same slice, told by a hash, and each slice is grouped
    for itself (a radix partition: Manegold, Boncz, Kersten 2002)."""
    slice_of = _slice_numbers(leaves, rows)
    order = np.argsort(slice_of, kind="stable")
    ends = np.cumsum(np.bincount(slice_of))
    moved = [leaf.take(pa.array(order)) for leaf in leaves]

    def group(start: int, stop: int) -> Factorised:
        found = _by_hashing([leaf.slice(start, stop - start) for leaf in moved])
        return Factorised(found.codes, order[start:stop][found.first])

    starts = [0, *ends[:-1]]
    if threads == 1:
        slices = list(map(group, starts, ends))
    else:
        with ThreadPool(threads, "olapdb-group") as pool:
            slices = list(pool.map(group, starts, ends))
    begins = np.zeros(rows, bool)  # where a group's first row is
    for found in slices:
        begins[found.first] = True
    rank = np.cumsum(begins)
    codes = empty(rows, np.int64)
    for found, start, stop in zip(slices, starts, ends, strict=True):
        codes[order[start:stop]] = (rank[found.first] - 1)[found.codes]
    return Factorised(codes, np.flatnonzero(begins))


def _slice_numbers(leaves: Sequence[pa.Array], rows: int) -> np.ndarray:
    """Of each row, equal for equal ones; uint16, which are sorted in a pass or two."""
    bits = min(max(1, (rows // SLICE_ROWS).bit_length()), 16)
    numbers = np.empty(rows, np.uint16)
    for start in range(0, rows, SLICE_ROWS):
        some = min(SLICE_ROWS, rows - start)
        hashes = row_hashes([leaf.slice(start, some) for leaf in leaves], some)
        numbers[start : start + some] = hashes >> np.uint64(64 - bits)
    return numbers


def first_rows(codes: np.ndarray) -> np.ndarray:
    """Where each code appears first; codes must be numbered by first appearance."""
    if not len(codes):
        return np.zeros(0, np.int64)
    highest_before = np.maximum.accumulate(codes)[:-1]
    return np.concatenate(([0], np.flatnonzero(codes[1:] > highest_before) + 1))


def renumbered(codes: np.ndarray, radix: int) -> Factorised:
    """Codes below `radix`, int64, as groups by first appearance: through a table of that size."""
    rows = len(codes)
    first = np.full(radix, rows, np.int64)
    np.minimum.at(first, codes, progression(0, 1, rows, np.int64))
    found = np.sort(first[first < rows])
    order = codes[found]
    if len(order) == radix and (order[1:] > order[:-1]).all():
        return Factorised(codes, found)
    rank = np.empty(radix, np.int64)
    rank[order] = np.arange(len(order))
    return Factorised(np.take(rank, codes, out=empty(rows, np.int64), mode="clip"), found)


def _dense(leaves: Sequence[pa.Array], radix_max: int) -> tuple[np.ndarray, int] | None:
    """The rows' values packed into one number each, and a bound of it; None where they are not
    whole numbers (or dates, or times) that lie so near to each other."""
    packed: np.ndarray | None = None
    radix = 1
    for leaf in leaves:
        values = _whole_numbers(leaf)
        if values is None or not len(values):
            return None
        low, high = int(values.min()), int(values.max())
        radix *= high - low + 1
        if radix > radix_max:
            return None
        offsets = _offsets(values, low)
        if packed is None:
            packed = offsets
        else:
            packed *= high - low + 1
            packed += offsets
    return None if packed is None else (packed, radix)


def _offsets(values: np.ndarray, low: int) -> np.ndarray:
    """How far integers lie above the least of them, int64; that fits is known."""
    if values.dtype == np.uint64:  # wraps around, to the same
        values = values.view(np.int64)
        low -= 1 << 64 if low >= 1 << 63 else 0
    made = empty(len(values), np.int64)
    np.subtract(values, np.int64(low), out=made, dtype=np.int64)
    return made


def _whole_numbers(leaf: pa.Array) -> np.ndarray | None:
    if leaf.null_count:
        return None
    arrow = leaf.type
    if pa.types.is_date32(arrow):
        leaf = leaf.view(pa.int32())
    elif pa.types.is_timestamp(arrow):
        leaf = leaf.view(pa.int64())
    elif not pa.types.is_integer(arrow):
        return None
    made: np.ndarray = leaf.to_numpy(zero_copy_only=False)
    return made


def encode(column: pa.Array) -> tuple[np.ndarray, int]:
    """Codes by first appearance, and how many there are."""
    encoded = column.dictionary_encode("encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, len(encoded.dictionary)


def _combine(
    left: np.ndarray, left_count: int, right: np.ndarray, right_count: int
) -> tuple[np.ndarray, int]:
    """One code for each pair; renumbered first where the packed code would not fit."""
    if left_count * max(right_count, 1) >= RADIX_MAX:
        left, left_count = encode(pa.array(left))
    return left * right_count + right, left_count * right_count


def leaves_of(column: pa.Array) -> list[pa.Array]:
    """Columns that Arrow can hash and that are equal where the column's values are."""
    arrow = column.type
    if pa.types.is_struct(arrow):
        leaves = [leaf for child in column.flatten() for leaf in leaves_of(child)]
        if column.null_count or not leaves:
            leaves.append(column.is_valid())
        return leaves
    if pa.types.is_list(arrow) or pa.types.is_map(arrow) or pa.types.is_large_list(arrow):
        return [lists_as_bytes(column, lambda some: factorise([some], len(some)).codes)]
    return [column]


def lists_as_bytes(column: pa.Array, numbered: Callable[[pa.Array], np.ndarray]) -> pa.Array:
    """Lists and maps as binary values: what `numbered` makes of their elements, 8 bytes each,
    big-endian. Where a greater element has a greater number the bytes compare as the lists do: a
    list that is a prefix of another is smaller, as in ClickHouse."""
    if pa.types.is_map(column.type):
        entry = pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])
        column = column.cast(pa.list_(entry))
    offsets = column.offsets.to_numpy().astype(np.int64)
    start = int(offsets[0]) if len(offsets) else 0
    stop = int(offsets[-1]) if len(offsets) else 0
    elements = column.values.slice(start, stop - start)
    numbers = numbered(elements).astype(">u8")
    return _cut(numbers, (offsets - start) * 8, column.is_valid())


def _cut(codes: np.ndarray, byte_offsets: np.ndarray, valid: pa.Array) -> pa.Array:
    """Lists as binary values: `codes` one after the other, cut at `byte_offsets`."""
    made = pa.Array.from_buffers(
        pa.large_binary(),
        len(byte_offsets) - 1,
        [None, pa.py_buffer(byte_offsets), pa.py_buffer(codes)],
    )
    return made if pc.all(valid).as_py() is not False else pc.if_else(valid, made, None)
