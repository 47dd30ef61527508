"""Group codes of rows, for GROUP BY, JOIN, DISTINCT and IN.

NULL equals NULL here, NaN equals NaN; 0.0 and -0.0 differ, as in ClickHouse's hash tables.  Compiled
kernels number the rows (`native/grouping.py`), Arrow and numpy where there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.row_hash import can_be_hashed, row_hashes
from olapdb.config import tuning
from olapdb.functions.base import Groups
from olapdb.functions.kernels.arrow_buffers import empty, progression
from olapdb.functions.kernels.columns import from_values
from olapdb.native import grouping
from olapdb.native.library import library
from olapdb.native.values import is_integer_type
from olapdb.records import dataclass
from olapdb.threads import ThreadPool, cores, in_threads
from olapdb.types.arrow_values import from_numpy, to_numpy

RADIX_MAX = 1 << 62
"""Codes of several columns are packed into one integer below this bound."""
GOLDEN_RATIO_64 = np.uint64(0x9E3779B97F4A7C15)
_ROWS_PER_SAMPLE = 4
"""With so many rows for each of the sample no two of it are the same: n multiples of the golden ratio lie
1 / (√5 n) apart or more."""


@dataclass(frozen=True)
class Factorised:
    """Groups of equal rows, numbered by first appearance.

    `codes[i]` is the group of row i, `first[g]` the first row of group g; both int64."""

    codes: np.ndarray
    first: np.ndarray

    @property
    def count(self) -> int:
        """Return the number of groups."""
        return len(self.first)

    @cached_property
    def groups(self) -> Groups:
        """Return the groups as aggregate functions take them."""
        return Groups(self.codes, self.count, are_checked=True)


def factorise(columns: Sequence[pa.Array], rows: int, *, threads: int = 0) -> Factorised:
    """Group equal rows. Without columns all rows are one group; zero rows make zero groups.

    `threads` is for many rows; 0 means the number of cores, and one thread for kernels."""
    if rows == 1:
        return Factorised(np.zeros(1, np.int64), np.zeros(1, np.int64))
    flat = [leaf for column in columns for leaf in leaves_of(column)]
    if not flat:
        # One zero for all rows: their number may be that of a table, which no array should have.
        return Factorised(
            np.broadcast_to(np.zeros(1, np.int64), rows), np.zeros(min(rows, 1), np.int64)
        )
    radix_max = max(rows, tuning.DENSE_RADIX_MIN)
    if library() is not None:
        return _by_kernels(flat, radix_max, threads or 1)
    dense = _dense(flat, radix_max)
    if dense is not None:
        return number_by_table(*dense)
    if rows >= tuning.SLICED_ROWS_MIN and can_be_hashed(flat) and is_mostly_distinct(flat, rows):
        return _by_slices(flat, rows, threads or cores())
    return _by_hashing(flat)


def grouped(keys: Sequence[pa.Array], rows: int) -> tuple[Groups, list[pa.Array]]:
    """Group rows by their keys; return the groups, and the keys of each. Without keys all rows are one
    group, also no rows."""
    if not keys:
        return Groups(np.zeros(rows, np.int64), 1), []
    codes = factorise(keys, rows)
    first = from_numpy(codes.first)
    return codes.groups, [key.take(first) for key in keys]


def _by_kernels(flat: Sequence[pa.Array], radix_max: int, threads: int) -> Factorised:
    """Group the rows of flat columns: through a table of at most `radix_max` places, by a hash of packed
    integers, or column by column."""
    numbered = _packed(flat, radix_max)
    if numbered is not None:
        return numbered
    threads = threads if len(flat[0]) >= tuning.MERGED_ROWS_MIN else 1
    if len(flat) == 1:
        return _by_hashing(flat, threads)
    wide = grouping.number_rows(flat)
    if wide is not None:
        return Factorised(*wide)
    codes = _codes_of(flat, [not is_integer_type(leaf.type) for leaf in flat], threads)
    coded = [leaf if at not in codes else from_numpy(codes[at][0]) for at, leaf in enumerate(flat)]
    numbered = _packed(coded, radix_max)
    if numbered is not None:
        return numbered
    codes |= _codes_of(flat, [at not in codes for at in range(len(flat))], threads)
    return _combined([codes[at] for at in range(len(flat))])


def _packed(flat: Sequence[pa.Array], radix_max: int) -> Factorised | None:
    """Group the rows of integers, dates or times by one number for each row: through a table of at most `radix_max`
    places, or, of several columns, by its hash. Returns None for other types, and where the numbers would not fit."""
    numbered = grouping.number_integers(flat, radix_max)
    if numbered is not None:
        return Factorised(*numbered)
    packed = grouping.pack(flat, RADIX_MAX) if len(flat) > 1 else None
    if packed is None:
        return None
    return Factorised(*grouping.number_keys(packed[0].view(np.uint64)))


def _codes_of(
    flat: Sequence[pa.Array], wanted: Sequence[bool], threads: int
) -> dict[int, tuple[np.ndarray, int]]:
    """Return, by its position, what `encode` makes of each column that is wanted; several columns at a time."""
    positions = [at for at, is_wanted in enumerate(wanted) if is_wanted]
    encoded = in_threads(encode, [(flat[at],) for at in positions], threads)
    return dict(zip(positions, encoded, strict=True))


def _by_hashing(flat: Sequence[pa.Array], threads: int = 1) -> Factorised:
    """Group the rows of flat columns: number each column, several at a time, then combine the codes."""
    if len(flat) == 1:
        return number(flat[0])
    return _combined(in_threads(encode, [(leaf,) for leaf in flat], threads))


def _combined(encoded: Sequence[tuple[np.ndarray, int]]) -> Factorised:
    """Group rows by the codes of each column, and the number of its codes."""
    (codes, count), *others = encoded
    for leaf_codes, leaf_count in others:
        codes, count = _combine(codes, count, leaf_codes, leaf_count)
    if count <= max(len(codes), tuning.DENSE_RADIX_MIN):
        return number_by_table(codes, count)
    return number(from_numpy(codes))


def is_mostly_distinct(leaves: Sequence[pa.Array], rows: int) -> bool:
    """Return whether more than half of the rows are distinct, by a sample from all over them.

    The sample is at the fractions of multiples of the golden ratio, which spread evenly and without
    a period (Weyl); every n-th row might all be equal."""
    fractions = np.arange(min(rows, tuning.SAMPLE_ROWS), dtype=np.uint64) * GOLDEN_RATIO_64
    positions = (fractions >> np.uint64(32)) * np.uint64(rows) >> np.uint64(32)
    positions.sort()
    if rows < _ROWS_PER_SAMPLE * len(positions):
        positions = positions[np.append(True, positions[1:] != positions[:-1])]
    sample = from_values(positions, pa.int64())
    return 2 * _by_hashing([leaf.take(sample) for leaf in leaves]).count > len(sample)


def _by_slices(leaves: Sequence[pa.Array], rows: int, threads: int) -> Factorised:
    """Group the rows of flat columns slice by slice, on `threads` threads; equal rows have equal
    hashes, hence one slice. The groups are numbered by first row.

    This is a radix partition (Manegold, Boncz, Kersten 2002)."""
    slice_of = _slice_numbers(leaves, rows)
    order = np.argsort(slice_of, kind="stable")
    ends = np.cumsum(np.bincount(slice_of))
    partitioned = [leaf.take(from_numpy(order)) for leaf in leaves]

    def group(start: int, stop: int) -> Factorised:
        """Group the rows of one slice. The first row of each group is given by its number among all rows."""
        groups = _by_hashing([leaf.slice(start, stop - start) for leaf in partitioned])
        return Factorised(groups.codes, order[start:stop][groups.first])

    starts = [0, *ends[:-1]]
    if threads == 1:
        slices = list(map(group, starts, ends))
    else:
        with ThreadPool(threads, "olapdb-group") as pool:
            slices = list(pool.map(group, starts, ends))
    is_first = np.zeros(rows, bool)
    for groups in slices:
        is_first[groups.first] = True
    rank = np.cumsum(is_first)
    codes = empty(rows, np.int64)
    for groups, start, stop in zip(slices, starts, ends, strict=True):
        codes[order[start:stop]] = (rank[groups.first] - 1)[groups.codes]
    return Factorised(codes, np.flatnonzero(is_first))


def _slice_numbers(leaves: Sequence[pa.Array], rows: int) -> np.ndarray:
    """Return the slice of each row, by the upper bits of its hash; uint16, which sort quickly."""
    bits = min(max(1, (rows // tuning.SLICE_ROWS).bit_length()), 16)
    numbers = np.empty(rows, np.uint16)
    for start in range(0, rows, tuning.SLICE_ROWS):
        count = min(tuning.SLICE_ROWS, rows - start)
        hashes = row_hashes([leaf.slice(start, count) for leaf in leaves], count)
        numbers[start : start + count] = hashes >> np.uint64(64 - bits)
    return numbers


def first_rows(codes: np.ndarray) -> np.ndarray:
    """Return the first row of each code; codes must be numbered by first appearance."""
    if not len(codes):
        return np.zeros(0, np.int64)
    highest_before = np.maximum.accumulate(codes)[:-1]
    return np.concatenate(([0], np.flatnonzero(codes[1:] > highest_before) + 1))


def number_by_table(codes: np.ndarray, radix: int) -> Factorised:
    """Number codes below `radix` (int64) by first appearance, through a table of that size."""
    rows = len(codes)
    if library() is not None:
        return Factorised(*grouping.number_codes(codes, radix))
    first_row_of_code = np.full(radix, rows, np.int64)
    np.minimum.at(first_row_of_code, codes, progression(0, 1, rows, np.int64))
    firsts = np.sort(first_row_of_code[first_row_of_code < rows])
    order = codes[firsts]
    if len(order) == radix and (order[1:] > order[:-1]).all():
        return Factorised(codes, firsts)
    rank = np.empty(radix, np.int64)
    rank[order] = np.arange(len(order))
    return Factorised(np.take(rank, codes, out=empty(rows, np.int64), mode="clip"), firsts)


def _dense(leaves: Sequence[pa.Array], radix_max: int) -> tuple[np.ndarray, int] | None:
    """Pack each row's values into one number; return the numbers and their bound.

    Returns None unless all columns are integers, dates or times without NULLs, and the bound is at
    most `radix_max`."""
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
    """Return the distances of integers from the least of them, int64. They must fit."""
    if values.dtype == np.uint64:  # int64 wraps around to the same differences
        values = values.view(np.int64)
        low -= 1 << 64 if low >= 1 << 63 else 0
    offsets = empty(len(values), np.int64)
    np.subtract(values, np.int64(low), out=offsets, dtype=np.int64)
    return offsets


def _whole_numbers(leaf: pa.Array) -> np.ndarray | None:
    """Return integers, days or ticks; None for other types and for a column with NULLs."""
    if leaf.null_count:
        return None
    arrow = leaf.type
    if pa.types.is_date32(arrow):
        leaf = leaf.view(pa.int32())
    elif pa.types.is_timestamp(arrow):
        leaf = leaf.view(pa.int64())
    elif not pa.types.is_integer(arrow):
        return None
    numbers: np.ndarray = to_numpy(leaf)
    return numbers


def number(column: pa.Array) -> Factorised:
    """Group the equal values of a flat column."""
    numbered = grouping.number(column) if library() is not None else None
    if numbered is not None:
        return Factorised(*numbered)
    codes, _ = _encode_by_arrow(column)
    return Factorised(codes, first_rows(codes))


def encode(column: pa.Array) -> tuple[np.ndarray, int]:
    """Return the code of each value by first appearance, int64, and the number of codes."""
    if library() is None:
        return _encode_by_arrow(column)
    numbered = grouping.number_integers([column], max(len(column), tuning.DENSE_RADIX_MIN))
    groups = number(column) if numbered is None else Factorised(*numbered)
    return groups.codes, groups.count


def _encode_by_arrow(column: pa.Array) -> tuple[np.ndarray, int]:
    """Return the code of each value by first appearance, int64, and the number of codes, by Arrow's hash table."""
    encoded = column.dictionary_encode("encode")
    codes = to_numpy(encoded.indices).astype(np.int64)
    return codes, len(encoded.dictionary)


def _combine(
    left: np.ndarray, left_count: int, right: np.ndarray, right_count: int
) -> tuple[np.ndarray, int]:
    """Return one code for each pair of codes. The left ones are renumbered first if the product
    would not fit."""
    if left_count * max(right_count, 1) >= RADIX_MAX:
        left, left_count = encode(from_numpy(left))
    return left * right_count + right, left_count * right_count


def leaves_of(column: pa.Array) -> list[pa.Array]:
    """Return flat columns that Arrow can hash; rows have equal leaves if and only if their values
    are equal."""
    arrow = column.type
    if pa.types.is_struct(arrow):
        leaves = [leaf for child in column.flatten() for leaf in leaves_of(child)]
        if column.null_count or not leaves:
            leaves.append(column.is_valid())
        return leaves
    if pa.types.is_list(arrow) or pa.types.is_map(arrow) or pa.types.is_large_list(arrow):
        return [lists_as_bytes(column, lambda values: factorise([values], len(values)).codes)]
    return [column]


def lists_as_bytes(column: pa.Array, number: Callable[[pa.Array], np.ndarray]) -> pa.Array:
    """Return lists and maps as binary values: the numbers of their elements, 8 bytes each.

    `number(elements)` numbers all elements. The bytes are big-endian: if greater elements have
    greater numbers, the bytes compare as the lists do. A list that is a prefix of another is smaller,
    as in ClickHouse."""
    if pa.types.is_map(column.type):
        entry = pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])
        column = column.cast(pa.list_(entry))
    offsets = to_numpy(column.offsets).astype(np.int64)
    start = int(offsets[0]) if len(offsets) else 0
    stop = int(offsets[-1]) if len(offsets) else 0
    elements = column.values.slice(start, stop - start)
    numbers = number(elements).astype(">u8")
    byte_offsets = (offsets - start) * 8
    values = pa.Array.from_buffers(
        pa.large_binary(),
        len(byte_offsets) - 1,
        [None, pa.py_buffer(byte_offsets), pa.py_buffer(numbers)],
    )
    valid = column.is_valid()
    return values if pc.all(valid).as_py() is not False else pc.if_else(valid, values, None)
