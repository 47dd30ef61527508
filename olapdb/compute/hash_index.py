"""Many rows told apart by 64-bit hashes of their values: sorted by hash, in buckets by its upper
bits, so that a row is found by a few reads.

hashes of the rows      70 12 95 12
order                   1 3 0 2       groups by their hash, the rows of a group in their order
starts                  0 2 3 4
hashes of the groups    12 70 95
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from olapdb.compute.ordering import equal_values
from olapdb.compute.row_hash import is_told_by_hash, row_hashes, rows_at_once
from olapdb.config import tuning
from olapdb.threads import ThreadPool

BUCKETED_GROUPS = 1 << 20


@dataclass(frozen=True)
class GroupedRows:
    """Equal rows in groups: `order` has the rows of each group, ascending, one group after the
    other; `starts` where each begins in it, and its end, None where each group is one row. `hashes`
    are the groups', ascending, where that is how they are ordered."""

    order: np.ndarray
    starts: np.ndarray | None
    hashes: np.ndarray | None

    @property
    def count(self) -> int:
        return len(self.order) if self.starts is None else len(self.starts) - 1

    @property
    def firsts(self) -> np.ndarray:
        """The first row of each group."""
        return self.order if self.starts is None else self.order[self.starts[:-1]]


def group_by_hash(
    leaves: Sequence[pa.Array], rows: int, threads: int, only: np.ndarray | None = None
) -> GroupedRows | None:
    """All rows, or those in `only`, ascending, in which no leaf is NULL, grouped; None where two
    that differ have one hash."""
    hashes = row_hashes(leaves, rows)
    if only is not None:
        hashes = hashes[only]
    order = sort_by_hash(hashes, threads)
    if only is not None:
        order = only.astype(order.dtype)[order]
    begins = hashes[1:] != hashes[:-1]
    if begins.all():
        return GroupedRows(order, None, hashes)
    is_exact = _are_told_by_hash(leaves, without_null=only is not None)
    if not is_exact and not _all_equal(leaves, order, np.flatnonzero(~begins)):
        return None
    starts = _starts(begins, order.dtype)
    return GroupedRows(order, starts, hashes[starts[:-1]])


def group_by_code(codes: np.ndarray, count: int) -> GroupedRows:
    """By codes below `count`, of which each occurs."""
    numbers = row_number_type(len(codes))
    if count == len(codes):
        order = np.empty(count, numbers)
        order[codes] = np.arange(count)
        return GroupedRows(order, None, None)
    narrow = codes.astype(np.uint16) if count <= 1 << 16 else codes  # sorted by counting
    order = np.argsort(narrow, kind="stable").astype(numbers)
    starts = np.zeros(count + 1, numbers)
    np.cumsum(np.bincount(codes, minlength=count), out=starts[1:])
    return GroupedRows(order, starts, None)


def _starts(begins: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`begins[i]` says whether row i + 1 is the first of a group."""
    firsts = np.flatnonzero(begins)
    starts = np.empty(len(firsts) + 2, dtype)
    starts[0], starts[-1] = 0, len(begins) + 1
    np.add(firsts, 1, out=starts[1:-1], casting="unsafe")
    return starts


def row_number_type(rows: int) -> type[np.signedinteger]:
    return np.int32 if rows < 1 << 31 else np.int64


def sort_by_hash(hashes: np.ndarray, threads: int) -> np.ndarray:
    """Sorts the hashes in place; gives the stable order that does: first by the uppermost bits,
    then slice by slice (a radix partition: Manegold, Boncz, Kersten 2002)."""
    rows = len(hashes)
    bits = min(max(1, (rows // tuning.HASHED_ROWS).bit_length()), 16)
    slice_of = np.empty(rows, np.uint16)
    np.right_shift(hashes, np.uint64(64 - bits), out=slice_of, casting="unsafe")
    ends = np.cumsum(np.bincount(slice_of, minlength=1 << bits))
    order = np.argsort(slice_of, kind="stable").astype(row_number_type(rows))
    del slice_of
    moved = hashes[order]

    next_bits = np.uint64(64 - bits - 16)

    def sort(start: int, stop: int) -> None:
        some = moved[start:stop]
        # numpy counts 16 bits; the rest then is in order but for a few, which it makes use of
        rough = np.argsort((some >> next_bits).astype(np.uint16), kind="stable")
        within = rough[np.argsort(some[rough], kind="stable")]
        np.take(some, within, out=hashes[start:stop], mode="clip")
        order[start:stop] = order[start:stop][within]

    starts = [0, *ends[:-1]]
    if threads == 1 or len(starts) <= 2:
        for start, stop in zip(starts, ends, strict=True):
            sort(start, stop)
    else:
        with ThreadPool(threads, "olapdb-index") as pool:
            list(pool.map(sort, starts, ends))
    return order


def _all_equal(leaves: Sequence[pa.Array], order: np.ndarray, places: np.ndarray) -> bool:
    """Whether the rows at these places of the order equal those at the places after them."""
    step = rows_at_once(leaves, len(leaves[0]))
    for start in range(0, len(places), step):
        some = places[start : start + step]
        if not _equal_rows(leaves, order[some], leaves, order[some + 1]).all():
            return False
    return True


def _equal_rows(
    ours: Sequence[pa.Array],
    our_rows: np.ndarray,
    theirs: Sequence[pa.Array],
    their_rows: np.ndarray,
) -> np.ndarray:
    equal = np.ones(len(our_rows), bool)
    for one, other in zip(ours, theirs, strict=True):
        equal &= equal_values(one.take(pa.array(our_rows)), other.take(pa.array(their_rows)))
    return equal


@dataclass(frozen=True)
class HashIndex:
    """Groups by their ascending `hashes`; `buckets[b]` is the first group whose upper bits are b or
    more. `rows[g]` (None: g) is a row of `leaves` that is in group g, and that a row found by its
    hash is compared with, unless hashes tell all (`is_exact`, where no row looked for has a NULL)."""

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
        """`without_null`: no group has a NULL in it, and none is looked for."""
        is_exact = _are_told_by_hash(leaves, without_null=without_null)
        return cls(hashes, _buckets(hashes), tuple(leaves), rows, is_exact)

    @property
    def nbytes(self) -> int:
        """Without the leaves and the rows."""
        return self.hashes.nbytes + self.buckets.nbytes

    def find(self, leaves: Sequence[pa.Array], rows: int, *, with_null: bool) -> np.ndarray:
        """The group of each row, -1 where it is in none; int64, shape (rows,). `with_null`: a NULL
        is looked for as well; else what is said of a row with one means nothing."""
        leaves = [
            leaf if leaf.type == ours.type else leaf.cast(ours.type)
            for leaf, ours in zip(leaves, self.leaves, strict=True)
        ]
        wanted = row_hashes(leaves, rows)
        is_exact = self.is_exact and not (with_null and leaves[0].null_count)
        bits = (len(self.buckets) - 1).bit_length() - 1
        bucket = (wanted >> np.uint64(64 - bits)).astype(np.int64)
        place, stop = np.take(self.buckets, bucket), np.take(self.buckets, bucket + 1)
        found = np.full(rows, -1, np.int64)
        searched = np.flatnonzero(place < stop)
        place, stop, wanted = place[searched], stop[searched], wanted[searched]
        while len(searched):
            hit = np.take(self.hashes, place) == wanted
            if not is_exact and hit.any():
                some = np.flatnonzero(hit)
                ours = place[some] if self.rows is None else np.take(self.rows, place[some])
                hit[some] = _equal_rows(self.leaves, ours, leaves, searched[some])
            found[searched[hit]] = place[hit]
            place = place + 1
            more = np.flatnonzero(~hit & (place < stop))
            searched, place, stop, wanted = searched[more], place[more], stop[more], wanted[more]
        return found


def _are_told_by_hash(leaves: Sequence[pa.Array], *, without_null: bool) -> bool:
    if len(leaves) != 1 or not (without_null or not leaves[0].null_count):
        return False
    return is_told_by_hash(leaves[0].type)


def _buckets(hashes: np.ndarray) -> np.ndarray:
    """About one for each hash, which ascend."""
    bits = max(len(hashes).bit_length(), 1)
    shift = np.uint64(64 - bits)
    buckets = np.zeros((1 << bits) + 1, row_number_type(len(hashes)))
    for start in range(0, len(hashes), BUCKETED_GROUPS):
        some = (hashes[start : start + BUCKETED_GROUPS] >> shift).astype(np.int64)
        low = int(some[0])
        counts = np.bincount(some - low)
        buckets[low + 1 : low + 1 + len(counts)] += counts.astype(buckets.dtype)
    np.cumsum(buckets, out=buckets)
    return buckets
