"""Keys of rows that a table accepted, as hashes of 128 bits: what redelivered rows are known by.

`keys` are everywhere an array of shape (n, 2) of uint64: high and low half of each hash.  A key's
*ordinal* counts the keys that its table ever accepted, from 0; so a window of the newest n keys is
a range of ordinals, and one of time too, since commits have times that never go back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

KEY_BYTES = 16
SEGMENT = np.dtype([("count", "<i8"), ("accepted_ms", "<i8")])
"""Keys in a row that one commit accepted."""


def no_keys() -> np.ndarray:
    return np.zeros((0, 2), np.uint64)


def keys_to_bytes(keys: np.ndarray) -> bytes:
    return np.ascontiguousarray(keys, "<u8").tobytes()


def keys_of_bytes(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<u8").astype(np.uint64, copy=False).reshape(-1, 2)


def segments_to_bytes(segments: Iterable[tuple[int, int]]) -> bytes:
    """Of (count, accepted_ms) pairs."""
    return np.array(list(segments), SEGMENT).tobytes()


def first_of_each(keys: np.ndarray) -> np.ndarray:
    """Whether each key appears here for the first time."""
    first = np.ones(len(keys), bool)
    high = np.sort(keys[:, 0])
    if not (high[1:] == high[:-1]).any():
        return first  # the common case needs no order of rows
    order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: the first row of a key stays first
    ordered = keys[order]
    first[order[1:]] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return first


@dataclass(frozen=True)
class KeyRun:
    """Keys of neighbouring ordinals, ordered by their high half to be searched.

    Of the ordinals `first` to `end`, the latter excluded; `offsets` are ordinals less `first`; `segment_offsets` and `segment_ms` say from which offset
    on keys were accepted when, ascending in both.
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
        """Keys in the order of their ordinals, of which `first` is the first one's; `segments` of
        dtype SEGMENT."""
        order = np.argsort(keys[:, 0], kind="stable")
        ends = np.cumsum(segments["count"])
        return cls(
            first, first + len(keys), keys[order, 0], keys[order, 1], order.astype(np.uint32),
            ends - segments["count"], segments["accepted_ms"].astype(np.int64),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.high)


    def found(self, keys: np.ndarray, oldest: int = 0) -> np.ndarray:
        """Whether each key is here with an ordinal of at least `oldest`."""
        found = np.zeros(len(keys), bool)
        order = np.argsort(keys[:, 0])  # neighbours in the search are neighbours in memory
        wanted = keys[order]
        at = np.searchsorted(self.high, wanted[:, 0], "left")
        stop = np.searchsorted(self.high, wanted[:, 0], "right")
        waiting = np.flatnonzero(at < stop)
        at, stop = at[waiting], stop[waiting]
        oldest_offset = max(oldest - self.first, 0)
        # One step a key that shares the high half: nearly always one in all.
        while len(waiting):
            hit = (self.low[at] == wanted[waiting, 1]) & (self.offsets[at] >= oldest_offset)
            found[order[waiting[hit]]] = True
            at = at + 1
            more = ~hit & (at < stop)
            waiting, at, stop = waiting[more], at[more], stop[more]
        return found

    def oldest_after(self, cutoff_ms: int) -> int | None:
        """The first ordinal that was accepted later than `cutoff_ms`; None where none was."""
        at = int(np.searchsorted(self.segment_ms, cutoff_ms, "right"))
        if at == len(self.segment_ms):
            return None
        return self.first + int(self.segment_offsets[at])

    def joined(self, later: KeyRun, oldest: int) -> KeyRun:
        """With the run of the ordinals that follow; keys before `oldest` may be left out."""
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
            self.first, later.end, high[order], low[order], offsets[order], starts[skipped:],
            times[skipped:],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyLedger:
    """What a table holds of accepted keys: ordinals `oldest` to `next`, the latter excluded.

    `definition` says which columns were hashed how.  `epoch` counts how often all keys were
    forgotten.  `dropped` counts the rows that were dropped since the table was made.
    """

    definition: str = ""
    epoch: int = 0
    oldest: int = 0
    next: int = 0
    newest_ms: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class KeyBatch:
    """A stretch of accepted keys as the catalog keeps it, in the order of their ordinals."""

    first: int
    segments: bytes
    keys: bytes

    def run_since(self, since: int) -> KeyRun:
        """As a run, without the keys before the ordinal `since`."""
        keys, segments = keys_of_bytes(self.keys), np.frombuffer(self.segments, SEGMENT)
        skipped = max(since - self.first, 0)
        if skipped:
            segments = _without_first(segments, skipped)
        return KeyRun.of(self.first + skipped, keys[skipped:], segments)


def _without_first(segments: np.ndarray, skipped: int) -> np.ndarray:
    ends = np.cumsum(segments["count"])
    at = int(np.searchsorted(ends, skipped, "right"))
    rest = segments[at:].copy()
    if len(rest):
        rest["count"][0] = ends[at] - skipped
    return rest
