"""Keys of rows that a table accepted, as hashes of 128 bits, by which redelivered rows are
recognized.

`keys` are everywhere an array of shape (n, 2) of uint64: high and low half of each hash.  A key's
*ordinal* counts the keys that its table ever accepted, from 0; so a window of the newest n keys is
a range of ordinals, as is a window of time, since the times of commits never go back.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from olapdb.records import dataclass

KEY_BYTES = 16
SEGMENT = np.dtype([("count", "<i8"), ("accepted_ms", "<i8")])
"""A run of keys that one commit accepted."""


def no_keys() -> np.ndarray:
    """Return no keys, shape (0, 2)."""
    return np.zeros((0, 2), np.uint64)


def keys_to_bytes(keys: np.ndarray) -> bytes:
    """Return the keys as little-endian bytes."""
    return np.ascontiguousarray(keys, "<u8").tobytes()


def keys_of_bytes(data: bytes) -> np.ndarray:
    """Return the keys of `keys_to_bytes`."""
    return np.frombuffer(data, "<u8").astype(np.uint64, copy=False).reshape(-1, 2)


def segments_to_bytes(segments: Iterable[tuple[int, int]]) -> bytes:
    """Return (count, accepted_ms) pairs as bytes of dtype SEGMENT."""
    return np.array(list(segments), SEGMENT).tobytes()


@dataclass(frozen=True)
class SortedKeys:
    """Keys ordered by their high halves; `rows` are their original positions."""

    high: np.ndarray
    low: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, keys: np.ndarray, rows: np.ndarray | None = None) -> SortedKeys:
        """Sort all keys, or those at the positions `rows`. Equal keys come in no order."""
        high = keys[:, 0] if rows is None else keys[rows, 0]
        order = np.argsort(high)
        at = order if rows is None else rows[order]
        return cls(high[order], keys[at, 1], at)

    def __len__(self) -> int:
        return len(self.high)

    def where(self, mask: np.ndarray) -> SortedKeys:
        """Return the keys that the mask selects."""
        return SortedKeys(self.high[mask], self.low[mask], self.rows[mask])

    def first_of_each(self) -> np.ndarray:
        """Return for each key whether it has the smallest row among its equals; bool."""
        first = np.ones(len(self), bool)
        same = self.high[1:] == self.high[:-1]
        if not same.any():
            return first
        shared = np.flatnonzero(np.append(same, False) | np.append(False, same))
        high, low, rows = self.high[shared], self.low[shared], self.rows[shared]
        order = np.lexsort((rows, low, high))
        again = (high[order[1:]] == high[order[:-1]]) & (low[order[1:]] == low[order[:-1]])
        first[shared[order[1:][again]]] = False
        return first


@dataclass(frozen=True)
class KeyRun:
    """Keys of consecutive ordinals, ordered by their high half for binary search.

    They have the ordinals `first` to `end`, excluded; `offsets` are ordinals minus `first`.
    `segment_offsets` and `segment_ms`, both ascending, hold the offset from which on keys were
    accepted at that time.
    """

    first: int
    end: int
    high: np.ndarray
    low: np.ndarray
    offsets: np.ndarray
    segment_offsets: np.ndarray
    segment_ms: np.ndarray

    @classmethod
    def of(cls, first: int, keys: np.ndarray, segments: np.ndarray) -> KeyRun:
        """Build a run of keys given by ascending ordinal, from `first` on; `segments` of dtype
        SEGMENT."""
        ordered = SortedKeys.of(keys)
        ends = np.cumsum(segments["count"])
        return cls(
            first,
            first + len(keys),
            ordered.high,
            ordered.low,
            ordered.rows.astype(np.uint32),
            ends - segments["count"],
            segments["accepted_ms"].astype(np.int64),
        )

    def __len__(self) -> int:
        return len(self.high)

    def accepted_mask(self, keys: SortedKeys, oldest: int = 0) -> np.ndarray:
        """Return for each key, in the order of `keys`, whether the run has it with an ordinal of at
        least `oldest`."""
        is_accepted = np.zeros(len(keys), bool)
        at = np.searchsorted(self.high, keys.high)
        waiting = np.flatnonzero(at < len(self))
        at = at[waiting]
        oldest_offset = max(oldest - self.first, 0)
        # One round for each key that shares the high half: nearly always one in total.
        while len(waiting):
            same = self.high[at] == keys.high[waiting]
            waiting, at = waiting[same], at[same]
            hit = (self.low[at] == keys.low[waiting]) & (self.offsets[at] >= oldest_offset)
            is_accepted[waiting[hit]] = True
            at = at + 1
            more = ~hit & (at < len(self))
            waiting, at = waiting[more], at[more]
        return is_accepted

    def oldest_after(self, cutoff_ms: int) -> int | None:
        """Return the first ordinal accepted later than `cutoff_ms`; None without one."""
        at = int(np.searchsorted(self.segment_ms, cutoff_ms, "right"))
        if at == len(self.segment_ms):
            return None
        return self.first + int(self.segment_offsets[at])

    def joined(self, later: KeyRun, oldest: int) -> KeyRun:
        """Return this run followed by `later`, without keys whose ordinal is below `oldest`."""
        shift = np.uint32(later.first - self.first)
        high = np.concatenate((self.high, later.high))
        low = np.concatenate((self.low, later.low))
        offsets = np.concatenate((self.offsets, later.offsets + shift))
        live = offsets >= max(oldest - self.first, 0)
        if not live.all():
            high, low, offsets = high[live], low[live], offsets[live]
        order = np.argsort(high, kind="stable")
        starts = np.concatenate((self.segment_offsets, later.segment_offsets + int(shift)))
        times = np.concatenate((self.segment_ms, later.segment_ms))
        skipped = max(int(np.searchsorted(starts, oldest - self.first, "right")) - 1, 0)
        return KeyRun(
            self.first,
            later.end,
            high[order],
            low[order],
            offsets[order],
            starts[skipped:],
            times[skipped:],
        )


@dataclass(frozen=True, slots=True)
class KeyLedger:
    """The range of a table's stored keys: ordinals `oldest` to `next`, excluded.

    `definition` is which columns were hashed how.  `epoch` counts how often all keys were deleted.
    `dropped` counts the duplicate rows dropped since the table was created.
    """

    definition: str = ""
    epoch: int = 0
    oldest: int = 0
    next: int = 0
    newest_ms: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class KeyBatch:
    """A stretch of accepted keys as the catalog stores it, by ascending ordinal."""

    first: int
    segments: bytes
    keys: bytes

    def run_since(self, since: int) -> KeyRun:
        """Return the keys from the ordinal `since` on as a run."""
        keys, segments = keys_of_bytes(self.keys), np.frombuffer(self.segments, SEGMENT)
        skipped = max(since - self.first, 0)
        if skipped:
            segments = _without_first(segments, skipped)
        return KeyRun.of(self.first + skipped, keys[skipped:], segments)


def _without_first(segments: np.ndarray, skipped: int) -> np.ndarray:
    """Return the segments (count, accepted_ms) of a batch without its first `skipped` keys."""
    ends = np.cumsum(segments["count"])
    at = int(np.searchsorted(ends, skipped, "right"))
    rest = segments[at:].copy()
    if len(rest):
        rest["count"][0] = ends[at] - skipped
    return rest
