"""An index of many rows by 64-bit hashes: sorted by hash, in buckets by its upper bits, so that a
lookup takes a few reads.

hashes of the rows      70 12 95 12
order                   1 3 0 2       groups by their hash, the rows of a group in their order
starts                  0 2 3 4
hashes of the groups    12 70 95
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from olapdb.compute.ordering import equal_values
from olapdb.compute.row_hash import chunk_rows, has_distinct_hashes, row_hashes
from olapdb.config import tuning
from olapdb.native import hashes as compiled_hashes
from olapdb.native.library import library
from olapdb.records import dataclass
from olapdb.threads import ThreadPool
from olapdb.types.arrow_values import from_numpy

BUCKETED_GROUPS = 1 << 20

_MARK_BITS = 3
_MARK_BITS_MAX = 23
"""There are eight marks for each bucket, and at most 1 MiB of them."""


@dataclass(frozen=True)
class GroupedRows:
    """Groups of equal rows.

    `order` lists the rows of each group, ascending, group after group. Group g is
    `order[starts[g]:starts[g + 1]]`; `starts` None means that each group is one row. `hashes` are the
    groups' hashes, ascending; None if the groups are in another order."""

    order: np.ndarray
    starts: np.ndarray | None
    hashes: np.ndarray | None

    @property
    def count(self) -> int:
        """Return the number of groups."""
        return len(self.order) if self.starts is None else len(self.starts) - 1

    @property
    def firsts(self) -> np.ndarray:
        """Return the first row of each group."""
        return self.order if self.starts is None else self.order[self.starts[:-1]]


def group_by_hash(
    leaves: Sequence[pa.Array], rows: int, threads: int, only: np.ndarray | None = None
) -> GroupedRows | None:
    """Group equal rows by their hashes; return None if different rows have the same hash.

    Groups all rows, or those in `only` (ascending), in which no leaf may be NULL."""
    hashes = row_hashes(leaves, rows)
    if only is not None:
        hashes = hashes[only]
    order = sort_by_hash(hashes, threads)
    if only is not None:
        order = only.astype(order.dtype)[order]
    begins = hashes[1:] != hashes[:-1]
    if begins.all():
        return GroupedRows(order, None, hashes)
    is_exact = _have_distinct_hashes(leaves, without_null=only is not None)
    if not is_exact and not _all_equal(leaves, order, np.flatnonzero(~begins)):
        return None
    starts = _starts(begins, order.dtype)
    return GroupedRows(order, starts, hashes[starts[:-1]])


def group_by_code(codes: np.ndarray, count: int) -> GroupedRows:
    """Group rows by their codes; each code below `count` must occur."""
    row_number = row_number_type(len(codes))
    if count == len(codes):
        order = np.empty(count, row_number)
        order[codes] = np.arange(count)
        return GroupedRows(order, None, None)
    sort_keys = codes.astype(np.uint16) if count <= 1 << 16 else codes  # sorted by counting
    order = np.argsort(sort_keys, kind="stable").astype(row_number)
    starts = np.zeros(count + 1, row_number)
    np.cumsum(np.bincount(codes, minlength=count), out=starts[1:])
    return GroupedRows(order, starts, None)


def _starts(begins: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the starts of groups; `begins[i]` is true if row i + 1 is the first of a group."""
    firsts = np.flatnonzero(begins)
    starts = np.empty(len(firsts) + 2, dtype)
    starts[0], starts[-1] = 0, len(begins) + 1
    np.add(firsts, 1, out=starts[1:-1], casting="unsafe")
    return starts


def row_number_type(rows: int) -> type[np.signedinteger]:
    """Return the narrower integer type that can number the rows: int32 or int64."""
    return np.int32 if rows < 1 << 31 else np.int64


def sort_by_hash(hashes: np.ndarray, threads: int) -> np.ndarray:
    """Sort the hashes in place; return the stable order that sorts them.

    It partitions by the uppermost bits, then sorts each slice (a radix partition: Manegold, Boncz,
    Kersten 2002)."""
    rows = len(hashes)
    if library() is not None and row_number_type(rows) is np.int32:
        return compiled_hashes.sort_hashes(hashes)
    bits = min(max(1, (rows // tuning.HASHED_ROWS).bit_length()), 16)
    slice_of = np.empty(rows, np.uint16)
    np.right_shift(hashes, np.uint64(64 - bits), out=slice_of, casting="unsafe")
    ends = np.cumsum(np.bincount(slice_of, minlength=1 << bits))
    order = np.argsort(slice_of, kind="stable").astype(row_number_type(rows))
    del slice_of
    partitioned = hashes[order]

    next_bits = np.uint64(64 - bits - 16)

    def sort(start: int, stop: int) -> None:
        """Sort one slice of the hashes and of the order in place."""
        part = partitioned[start:stop]
        # numpy sorts 16 bits by counting; its stable sort then profits from nearly sorted hashes
        rough_order = np.argsort((part >> next_bits).astype(np.uint16), kind="stable")
        order_within = rough_order[np.argsort(part[rough_order], kind="stable")]
        np.take(part, order_within, out=hashes[start:stop], mode="clip")
        order[start:stop] = order[start:stop][order_within]

    starts = [0, *ends[:-1]]
    if threads == 1 or len(starts) <= 2:
        for start, stop in zip(starts, ends, strict=True):
            sort(start, stop)
    else:
        with ThreadPool(threads, "olapdb-index") as pool:
            list(pool.map(sort, starts, ends))
    return order


def _all_equal(leaves: Sequence[pa.Array], order: np.ndarray, positions: np.ndarray) -> bool:
    """Return whether the row at each of these positions of the order equals the next one."""
    step = chunk_rows(leaves, len(leaves[0]))
    for start in range(0, len(positions), step):
        chunk = positions[start : start + step]
        if not _equal_rows(leaves, order[chunk], leaves, order[chunk + 1]).all():
            return False
    return True


def _equal_rows(
    ours: Sequence[pa.Array],
    our_rows: np.ndarray,
    theirs: Sequence[pa.Array],
    their_rows: np.ndarray,
) -> np.ndarray:
    """Return whether row `our_rows[i]` of ours equals row `their_rows[i]` of theirs; bool."""
    equal = np.ones(len(our_rows), bool)
    for our_leaf, their_leaf in zip(ours, theirs, strict=True):
        equal &= equal_values(
            our_leaf.take(from_numpy(our_rows)), their_leaf.take(from_numpy(their_rows))
        )
    return equal


@dataclass(frozen=True)
class HashIndex:
    """An index of groups by their ascending `hashes`.

    `buckets[b]` is the first group whose hash has upper bits of at least b. `rows[g]` (None: g) is a
    row of `leaves` in group g: a row with the same hash is compared with it, unless equal hashes mean
    equal rows (`is_exact`, for rows without NULL)."""

    hashes: np.ndarray
    buckets: np.ndarray
    leaves: tuple[pa.Array, ...]
    rows: np.ndarray | None
    is_exact: bool

    @classmethod
    def of(
        cls,
        hashes: np.ndarray,
        leaves: Sequence[pa.Array],
        rows: np.ndarray | None,
        *,
        without_null: bool,
    ) -> HashIndex:
        """Build the index; `without_null`: neither a group nor a row to find has a NULL."""
        is_exact = _have_distinct_hashes(leaves, without_null=without_null)
        return cls(hashes, _buckets(hashes), tuple(leaves), rows, is_exact)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the index in memory, without those of the leaves and the rows."""
        return self.hashes.nbytes + self.buckets.nbytes

    def find(self, leaves: Sequence[pa.Array], rows: int, *, with_null: bool) -> np.ndarray:
        """Return the group of each row, -1 if it is in none; int64, shape (rows,).

        Without `with_null`, the result for a row with a NULL has no meaning."""
        leaves = [
            leaf if leaf.type == indexed.type else leaf.cast(indexed.type)
            for leaf, indexed in zip(leaves, self.leaves, strict=True)
        ]
        hashes = row_hashes(leaves, rows)
        is_exact = self.is_exact and not (with_null and leaves[0].null_count)
        if library() is not None:
            groups = compiled_hashes.find(hashes, self.hashes, self.buckets)
            matching_rows = np.zeros(0, np.int64) if is_exact else np.flatnonzero(groups >= 0)
            if (
                not len(matching_rows)
                or self._equal(groups[matching_rows], leaves, matching_rows).all()
            ):
                return groups
        bits = (len(self.buckets) - 1).bit_length() - 1
        bucket = (hashes >> np.uint64(64 - bits)).astype(np.int64)
        group, stop = np.take(self.buckets, bucket), np.take(self.buckets, bucket + 1)
        groups = np.full(rows, -1, np.int64)
        # `searched` are the rows whose bucket has groups left to compare, from `group` to `stop`.
        searched = np.flatnonzero(group < stop)
        group, stop, hashes = group[searched], stop[searched], hashes[searched]
        while len(searched):
            is_match = np.take(self.hashes, group) == hashes
            if not is_exact and is_match.any():
                matches = np.flatnonzero(is_match)
                is_match[matches] = self._equal(group[matches], leaves, searched[matches])
            groups[searched[is_match]] = group[is_match]
            group = group + 1
            open_rows = np.flatnonzero(~is_match & (group < stop))
            searched, group, stop, hashes = (
                searched[open_rows],
                group[open_rows],
                stop[open_rows],
                hashes[open_rows],
            )
        return groups

    def contains(self, leaf: pa.Array) -> pa.BooleanArray | None:
        """Return whether each value of an index of one column is in a group; None where `find` has to tell."""
        if not self.is_exact or leaf.null_count or self._marks is None:
            return None
        rows = len(leaf)
        hashes = row_hashes([leaf], rows)
        bits = compiled_hashes.contains(hashes, self.hashes, self.buckets, self._marks)
        return pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(bits)])

    @cached_property
    def _marks(self) -> np.ndarray | None:
        """A bit for each number of the uppermost bits of a hash: whether a group has these; in bytes. None for many
        groups, whose marks would be as far from the processor as the index, and without compiled kernels."""
        bits = (len(self.buckets) - 1).bit_length() - 1 + _MARK_BITS
        is_wide = self.buckets.dtype.itemsize > np.dtype(np.int32).itemsize
        if library() is None or is_wide or bits > _MARK_BITS_MAX or not len(self.hashes):
            return None
        marks = np.zeros(1 << bits, bool)
        marks[self.hashes >> np.uint64(64 - bits)] = True
        return np.packbits(marks, bitorder="little")

    def _equal(
        self, groups: np.ndarray, leaves: Sequence[pa.Array], rows: np.ndarray
    ) -> np.ndarray:
        """Return whether group `groups[i]` equals row `rows[i]` of the leaves; bool."""
        indexed = groups if self.rows is None else np.take(self.rows, groups)
        return _equal_rows(self.leaves, indexed, leaves, rows)


def _have_distinct_hashes(leaves: Sequence[pa.Array], *, without_null: bool) -> bool:
    """Return whether distinct rows of these columns always have distinct hashes."""
    if len(leaves) != 1 or not (without_null or not leaves[0].null_count):
        return False
    return has_distinct_hashes(leaves[0].type)


def _buckets(hashes: np.ndarray) -> np.ndarray:
    """Return the start of each bucket among the ascending hashes, and the end of the last.

    The bucket of a hash is its upper bits; there are about as many buckets as hashes.
    """
    bits = max(len(hashes).bit_length(), 1)
    if library() is not None and row_number_type(len(hashes)) is np.int32:
        return compiled_hashes.buckets(hashes, bits)
    shift = np.uint64(64 - bits)
    buckets = np.zeros((1 << bits) + 1, row_number_type(len(hashes)))
    for start in range(0, len(hashes), BUCKETED_GROUPS):
        upper = (hashes[start : start + BUCKETED_GROUPS] >> shift).astype(np.int64)
        low = int(upper[0])
        counts = np.bincount(upper - low)
        buckets[low + 1 : low + 1 + len(counts)] += counts.astype(buckets.dtype)
    np.cumsum(buckets, out=buckets)
    return buckets
