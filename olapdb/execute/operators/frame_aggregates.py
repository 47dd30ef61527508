"""Aggregates over frames of sorted rows.

Whole partitions are grouped once.  Counts and sums of integers are differences of running sums.  Kernels take
sums of floats and extremes.  Without them, min and max from the first row of a partition on are running maxima
(`running_extremes.py`).  Other aggregates use a tree of states, each of which covers twice the rows of those below
it:

    rows     0 1 2 3 4 5 6 7
    states   01  23  45  67        a frame of the rows 1 to 6 merges 1, 23, 45, 6
             0123    4567

so a frame merges at most two states a level, and all frames together take a few vectorised passes
(a segment tree; Leis et al., "Efficient Processing of Window Functions in Analytical SQL Queries",
VLDB 2015).  States are merged in the order of their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from olapdb.execute.operators.running_extremes import running_extremes
from olapdb.functions.base import AceroAggregation, Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.window_definitions import Frames
from olapdb.native import frames as native_frames
from olapdb.native.group_totals import Total
from olapdb.native.library import library
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy

FRAMES_AT_ONCE = 65_536
"""The number of frames whose states are gathered at once; it bounds memory."""


@dataclass(frozen=True)
class RepeatedValues:
    """A value for all rows of a partition: row r has that at `places[r]`."""

    values: pa.Array
    places: np.ndarray

    @property
    def nbytes(self) -> int:
        """Return the bytes of the values of the partitions, and of the places."""
        return int(self.values.nbytes) + self.places.nbytes

    def of_rows(self, start: int, stop: int) -> pa.Array:
        """Return the values of the rows start…stop."""
        return self.values.take(from_numpy(self.places[start:stop]))


@dataclass(frozen=True)
class TreeValues:
    """The values of an aggregate over frames, made of a tree of states: row r has that of frame `row_frames[r]`."""

    tree: _StateTree
    starts: np.ndarray
    ends: np.ndarray
    row_frames: np.ndarray

    @property
    def nbytes(self) -> int:
        """Return the bytes of the tree's states, and of the frames."""
        bounds = (self.starts, self.ends, self.row_frames)
        return int(self.tree.states.nbytes) + sum(array.nbytes for array in bounds)

    def of_rows(self, start: int, stop: int) -> pa.Array:
        """Return the values of the rows start…stop, at least one."""
        first, last = int(self.row_frames[start]), int(self.row_frames[stop - 1]) + 1
        states = self.tree.merged(self.starts[first:last], self.ends[first:last])
        values = pa.concat_arrays([self.tree.aggregate.finalize(some) for some in states])
        return values.take(from_numpy(self.row_frames[start:stop] - first))


def aggregate_over(aggregate: Aggregate, arguments: Sequence[pa.Array], frames: Frames) -> pa.Array:
    """Return the aggregate over each row's frame, of `result_type.arrow`, shape (rows,)."""
    values = values_over(aggregate, arguments, frames)
    return values if isinstance(values, pa.Array) else values.of_rows(0, frames.rows)


def values_over(
    aggregate: Aggregate, arguments: Sequence[pa.Array], frames: Frames
) -> pa.Array | RepeatedValues | TreeValues:
    """Return the aggregate over each row's frame as an array, or as what makes it for some rows at a time."""
    rows = frames.rows
    if not rows:
        groups = Groups(np.zeros(0, np.int64), 0)
        return aggregate.finalize(aggregate.state(arguments, groups))
    whole = np.array_equal(frames.starts, frames.partition_starts) and np.array_equal(
        frames.ends, frames.partition_ends
    )
    if whole:
        codes = np.cumsum(frames.partition_starts == frames.positions) - 1
        states = aggregate.state(arguments, Groups(codes, int(codes[-1]) + 1))
        return RepeatedValues(aggregate.finalize(states), codes)
    starts, ends, row_frames = _distinct_frames(frames)
    states = _states_at_once(aggregate, arguments, starts, ends)
    if states is not None:
        values = aggregate.finalize(states)
        return values if len(starts) == rows else values.take(from_numpy(row_frames))
    extremes = running_extremes(aggregate, arguments, frames)
    if extremes is not None:
        return extremes
    return TreeValues(_StateTree.of(aggregate, arguments, rows), starts, ends, row_frames)


def frame_states(
    aggregate: Aggregate, arguments: Sequence[pa.Array], frames: Frames, rows: int
) -> pa.Array:
    """Return the aggregate's state over each frame, of `state_type.arrow`, shape (frames,); at least one. The frames are of
    some of the `rows` rows that the arguments have."""
    starts, ends, row_frames = _distinct_frames(frames)
    states = _states_at_once(aggregate, arguments, starts, ends)
    if states is None:
        tree = _StateTree.of(aggregate, arguments, rows)
        states = pa.concat_arrays(list(tree.merged(starts, ends)))
    return states if len(starts) == frames.rows else states.take(from_numpy(row_frames))


def _states_at_once(
    aggregate: Aggregate, arguments: Sequence[pa.Array], starts: np.ndarray, ends: np.ndarray
) -> pa.Array | None:
    """Return the state of each frame by running sums or a kernel, None where neither computes the aggregate."""
    states = _by_running_sums(aggregate, arguments, starts, ends)
    if states is None and library() is not None:
        states = _by_kernels(aggregate, arguments, starts, ends)
    return states


def _distinct_frames(frames: Frames) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Merge equal frames of neighbouring rows; return (starts, ends, frame number of each row)."""
    starts, ends = frames.starts, frames.ends
    changed = np.ones(frames.rows, bool)
    changed[1:] = (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1])
    return starts[changed], ends[changed], np.cumsum(changed) - 1


# --- counts, and sums of integers


def _by_running_sums(
    aggregate: Aggregate, arguments: Sequence[pa.Array], starts: np.ndarray, ends: np.ndarray
) -> pa.Array | None:
    """Return the states of the frames as differences of running sums.

    This works where each leaf of the state is a count or a sum of integers, which wraps in 64 bits.
    Returns None for other aggregates."""
    leaves = aggregate.acero()
    if leaves is None:
        return None
    totals = []
    for leaf in leaves:
        summands = _summands(leaf, arguments)
        if summands is None:
            return None
        with np.errstate(over="ignore"):
            running = np.concatenate((np.zeros(1, summands.dtype), np.cumsum(summands)))
            totals.append(from_numpy(running[ends] - running[starts]))
    return aggregate.from_acero(totals)


def _summands(leaf: AceroAggregation, arguments: Sequence[pa.Array]) -> np.ndarray | None:
    """Return the integer that each row adds to a leaf of the state, int64 or uint64: 1 or 0 for a count of values, 0
    for NULL in a sum. None for sums of other types and other functions."""
    if leaf.argument is None:
        return None
    argument = arguments[leaf.argument]
    valid = columns.validity(argument)
    if leaf.function == "hash_count":
        return np.ones(len(argument), np.int64) if valid is None else valid.astype(np.int64)
    if leaf.function != "hash_sum" or not pa.types.is_integer(argument.type):
        return None
    signed = pa.types.is_signed_integer(argument.type)
    values = columns.numpy_values(argument).astype(np.int64 if signed else np.uint64)
    return values if valid is None else np.where(valid, values, 0).astype(values.dtype)


# --- sums of floats, and extremes


def _by_kernels(
    aggregate: Aggregate, arguments: Sequence[pa.Array], starts: np.ndarray, ends: np.ndarray
) -> pa.Array | None:
    """Return the states of the frames of sums of floats, their averages, and extremes; None for other aggregates.

    The kernels walk the same tree as `_StateTree`, over plain values, and add in the same order."""

    def choose(keys: np.ndarray, valid: np.ndarray | None, largest: bool) -> np.ndarray:
        """Return for each frame the row with its least (`largest`: greatest) key among the rows that `valid` marks; -1
        for a frame without any."""
        return native_frames.extreme_rows(keys, valid, starts, ends, largest=largest)

    states = aggregate.states_of_extremes(arguments, choose)
    if states is not None:
        return states
    made_of = aggregate.totals(arguments)
    if made_of is None:
        return None
    totals = []
    for total in made_of.totals:
        values = _frame_totals(total, starts, ends)
        if values is None:
            return None
        totals.append(values)
    return made_of.states(totals)


def _frame_totals(total: Total, starts: np.ndarray, ends: np.ndarray) -> np.ndarray | None:
    """Return a count of values, or a sum of floats, of each frame; None for other totals."""
    column = total.column
    if column is None:
        return None
    valid = columns.validity(column)
    if total.kind == "count":
        if valid is None:
            return np.asarray(ends - starts)
        running = np.concatenate((np.zeros(1, np.int64), np.cumsum(valid)))
        return np.asarray(running[ends] - running[starts])
    if total.kind != "sum" or not pa.types.is_floating(column.type):
        return None
    values = columns.numpy_values(column).astype(np.float64)
    if valid is not None:
        values = np.where(valid, values, 0.0)
    return native_frames.frame_sums(values, starts, ends)


# --- all others


@dataclass(frozen=True)
class _StateTree:
    """States of runs of rows: level k has one for each 2^k rows; the levels follow one another."""

    aggregate: Aggregate
    states: pa.Array
    level_starts: tuple[int, ...]
    empty_state: int
    """The position of the state over no row."""

    @classmethod
    def of(cls, aggregate: Aggregate, arguments: Sequence[pa.Array], rows: int) -> _StateTree:
        """Return the tree of states over `rows` rows, with the state over no row at its end."""
        level = aggregate.state(arguments, Groups(np.arange(rows), rows))
        levels = [level]
        while len(level) > 1:
            count = (len(level) + 1) // 2
            level = aggregate.merge(level, Groups(np.arange(len(level)) // 2, count))
            levels.append(level)
        no_rows = [argument.slice(0, 0) for argument in arguments]
        empty = aggregate.state(no_rows, Groups(np.zeros(0, np.int64), 1))
        sizes = np.cumsum([0, *map(len, levels)])
        return cls(
            aggregate,
            pa.concat_arrays([*levels, empty]),
            tuple(map(int, sizes[:-1])),
            int(sizes[-1]),
        )

    def merged(self, starts: np.ndarray, ends: np.ndarray) -> Iterator[pa.Array]:
        """Yield the states of the frames [start, end) in their order, FRAMES_AT_ONCE at a time."""
        for at in range(0, len(starts), FRAMES_AT_ONCE):
            yield self.merge(starts[at : at + FRAMES_AT_ONCE], ends[at : at + FRAMES_AT_ONCE])

    def merge(self, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
        """Return one state for each frame [start, end)."""
        frames, positions, firsts = self._pieces(starts, ends)
        count = len(starts)
        empty_frames = np.flatnonzero(starts >= ends)
        frames = np.concatenate((frames, empty_frames))
        positions = np.concatenate((positions, np.full(len(empty_frames), self.empty_state)))
        firsts = np.concatenate((firsts, np.zeros(len(empty_frames), np.int64)))
        order = np.lexsort((firsts, frames))
        states = self.states.take(from_numpy(positions[order]))
        return self.aggregate.merge(states, Groups(frames[order], count))

    def _pieces(
        self, starts: np.ndarray, ends: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three arrays that list the states to merge for frames [start, end).

        They are the frame's number, the position of the state and the state's first row.
        """
        frames: list[np.ndarray] = []
        positions: list[np.ndarray] = []
        firsts: list[np.ndarray] = []
        numbers = np.arange(len(starts))
        low, high = starts.astype(np.int64), ends.astype(np.int64)
        for level, level_start in enumerate(self.level_starts):
            open_frames = low < high
            if not open_frames.any():
                break
            for odd, nodes in ((low & 1 == 1, low), (high & 1 == 1, high - 1)):
                chosen = np.flatnonzero(open_frames & odd & (nodes >= low) & (nodes < high))
                frames.append(numbers[chosen])
                positions.append(level_start + nodes[chosen])
                firsts.append(nodes[chosen] << level)
                if nodes is low:
                    low = low.copy()
                    low[chosen] += 1
                else:
                    high = high.copy()
                    high[chosen] -= 1
                open_frames = low < high
            low, high = low >> 1, high >> 1
        if not frames:
            none = np.zeros(0, np.int64)
            return none, none, none
        return np.concatenate(frames), np.concatenate(positions), np.concatenate(firsts)
