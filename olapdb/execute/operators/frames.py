"""The frame of each row: positions among rows that are sorted by partition and order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from olapdb.compute.ordering import OrderColumn, equal_to_previous
from olapdb.errors import InternalError
from olapdb.functions.kernels import columns
from olapdb.functions.window_definitions import Frames
from olapdb.plan.expressions import FrameBound, WindowFrame


def partitions_and_peers(
    partition: Sequence[pa.Array], order: Sequence[OrderColumn], rows: int
) -> Frames:
    """Return the partitions and peers of sorted rows; each frame is the whole partition."""
    new_partition = ~equal_to_previous(partition, rows)
    new_peers = new_partition | ~equal_to_previous([o.values for o in order], rows)
    starts, ends = _spans(new_partition)
    peer_starts, peer_ends = _spans(new_peers)
    return Frames(starts, ends, peer_starts, peer_ends, starts, ends)


def _spans(begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the start and the end of each row's run; `begins` is true at the first row of a run."""
    firsts = np.flatnonzero(begins)
    lengths = np.diff(np.append(firsts, len(begins)))
    return np.repeat(firsts, lengths), np.repeat(firsts + lengths, lengths)


def with_frame(frames: Frames, frame: WindowFrame, order: Sequence[OrderColumn]) -> Frames:
    """Return the partitions and peers with the positions of this frame for each row."""
    edges: _Edges
    if frame.unit == "RANGE" and (frame.start.offset or frame.end.offset):
        edges = _Distances(frames, order[0])
    elif frame.unit == "ROWS":
        edges = _Rows(frames)
    else:
        edges = _Peers(frames)
    starts = np.clip(edges.start(frame.start), frames.partition_starts, frames.partition_ends)
    ends = np.clip(edges.end(frame.end), starts, frames.partition_ends)
    return replace(frames, starts=starts, ends=ends)


class _Edges:
    """The positions of a frame's bounds for each row; they may be outside the partition."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames

    def start(self, bound: FrameBound) -> np.ndarray:
        """Return the first position of each row's frame."""
        if bound.kind == "CURRENT":
            return self.current_start()
        if bound.offset is None:
            return self.frames.partition_starts
        return self.moved(bound, end=False)

    def end(self, bound: FrameBound) -> np.ndarray:
        """Return the position after each row's frame."""
        if bound.kind == "CURRENT":
            return self.current_end()
        if bound.offset is None:
            return self.frames.partition_ends
        return self.moved(bound, end=True)

    def current_start(self) -> np.ndarray:
        """Return the start of CURRENT ROW for each row: the first of its peers."""
        return self.frames.peer_starts

    def current_end(self) -> np.ndarray:
        """Return the end of CURRENT ROW for each row: the position after its last peer."""
        return self.frames.peer_ends

    def moved(self, bound: FrameBound, *, end: bool) -> np.ndarray:
        """Raise InternalError: this base has no offsets.

        Subclasses return, for each row, the position of the bound; `end` selects the frame's end.
        """
        raise InternalError("A frame of this unit has no offsets.")


class _Rows(_Edges):
    """ROWS: offsets count rows."""

    def current_start(self) -> np.ndarray:
        """Return each row's own position."""
        return self.frames.positions

    def current_end(self) -> np.ndarray:
        """Return the position after each row."""
        return self.frames.positions + 1

    def moved(self, bound: FrameBound, *, end: bool) -> np.ndarray:
        """Return for each row the position `offset` rows away, or for `end` the one after it."""
        return self.frames.positions + _signed_integer(bound) + (1 if end else 0)


class _Peers(_Edges):
    """RANGE without distances, and GROUPS, whose offsets count groups of peers."""

    def moved(self, bound: FrameBound, *, end: bool) -> np.ndarray:
        """Return for each row the start of the group of peers that is `offset` groups away; for
        `end` the position after it. Offsets that leave the partition give the partition's edge."""
        frames = self.frames
        begins = frames.peer_starts == frames.positions
        group = np.cumsum(begins) - 1
        firsts = np.append(np.flatnonzero(begins), frames.rows)
        target = group + _signed_integer(bound)
        low = group[frames.partition_starts] if frames.rows else group
        high = group[frames.partition_ends - 1] if frames.rows else group
        if end:
            at = firsts[np.clip(target, low, high) + 1]
            return np.where(target < low, frames.partition_starts, at)
        at = firsts[np.clip(target, low, high)]
        return np.where(target > high, frames.partition_ends, at)


class _Distances(_Edges):
    """RANGE of a distance: rows whose value is at most so far from the row's own value.

    NULL and NaN have no distance to any value: such a row's frame is its peers."""

    def __init__(self, frames: Frames, order: OrderColumn) -> None:
        super().__init__(frames)
        values = columns.numpy_values(order.values)
        valid = columns.validity(order.values)
        self._valid = np.ones(frames.rows, bool) if valid is None else valid.copy()
        if values.dtype.kind == "f":
            self._valid &= ~np.isnan(values)
        self._descending = order.descending
        self._values = values

    def moved(self, bound: FrameBound, *, end: bool) -> np.ndarray:
        """Return the positions where values `offset` away begin, or for `end` stop.

        A row without a value (NULL or NaN) gets the edge of its peers.
        """
        assert bound.offset is not None
        distance = bound.offset.value.as_py()
        forward = (bound.kind == "FOLLOWING") != self._descending
        keys = self._values
        if keys.dtype.kind == "f" or isinstance(distance, float) or not isinstance(distance, int):
            keys = keys.astype(np.float64)
            targets = keys + (float(distance) if forward else -float(distance))
        else:
            keys, targets = _integer_targets(keys, distance, forward)
        if self._descending:
            keys, targets = _reversed(keys), _reversed(targets)
        positions = self._search(keys, targets, after_equal=end)
        peers = self.frames.peer_ends if end else self.frames.peer_starts
        return np.where(self._valid, positions, peers)

    def _search(self, keys: np.ndarray, targets: np.ndarray, *, after_equal: bool) -> np.ndarray:
        """Return for each row the position of the first value in its partition that is not below its
        target, or with `after_equal` that is above it. Rows without a value have no meaning."""
        valid = np.flatnonzero(self._valid)
        partition = self.frames.partition_starts[valid]
        count = len(valid)
        # Keys and targets are sorted together: a target's rank is the number of keys before it.
        tie = np.repeat((0, 1) if after_equal else (1, 0), count)
        values = np.concatenate((keys[valid], targets[valid]))
        order = np.lexsort((tie, values, np.concatenate((partition, partition))))
        is_key = order < count
        keys_before = np.cumsum(is_key)
        rank = np.empty(count, np.int64)
        rank[order[~is_key] - count] = keys_before[~is_key]
        # Valid rows of a partition are one run, since NULL and NaN are at one of its ends.
        begins = np.searchsorted(partition, partition, side="left")
        positions = np.zeros(self.frames.rows, np.int64)
        positions[valid] = valid[begins] + rank - begins if count else rank
        return positions


def _reversed(values: np.ndarray) -> np.ndarray:
    """Return values in the opposite order: negated floats, complemented integers."""
    return -values if values.dtype.kind == "f" else ~values


def _integer_targets(
    values: np.ndarray, distance: int, forward: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return (values, targets) as int64 or uint64, clipped instead of wrapping.

    A target is the value plus the distance, or minus it if not `forward`.
    """
    wide = np.uint64 if values.dtype == np.uint64 else np.int64
    limits = np.iinfo(wide)
    keys = values.astype(wide)
    step = np.array(min(distance, limits.max), wide)
    with np.errstate(over="ignore"):
        if forward:
            moved = keys + step
            return keys, np.where(moved < keys, limits.max, moved).astype(wide)
        moved = keys - step
        return keys, np.where(moved > keys, limits.min, moved).astype(wide)


def _signed_integer(bound: FrameBound) -> int:
    """Return the offset as an integer, negative for PRECEDING."""
    assert bound.offset is not None
    offset = int(bound.offset.value.as_py())
    return offset if bound.kind == "FOLLOWING" else -offset
