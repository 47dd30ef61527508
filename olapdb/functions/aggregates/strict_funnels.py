"""windowFunnel with the modes strict_order, strict_deduplication, strict_once and allow_reentry.

Chains are found for all groups at once, level by level, as if no event ended a search. The first
event that a mode forbids then cuts them: only what was reached before it counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import TooLargeArray
from olapdb.functions.aggregates.group_kernels import drop_null_rows, element_groups
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import order_by
from olapdb.records import dataclass

_NEVER = np.iinfo(np.int64).max
_SHARED_ROWS_MAX = 63
_PAIRS_MAX = 1 << 24


@dataclass(frozen=True)
class FunnelModes:
    """The window of windowFunnel and which of its modes are on."""

    window: int
    order: bool = False
    deduplication: bool = False
    increase: bool = False
    once: bool = False
    reentry: bool = False


class _Events:
    """The events of all groups, sorted by group, time and number; a row without any true condition has number 0.
    `ties` numbers the distinct pairs of group and time, `rows` the rows that the events came from."""

    def __init__(self, offsets: np.ndarray, times: np.ndarray, held: np.ndarray, levels: int):
        """Make the events from the rows' times and condition bits (`held`), for conditions 1 to `levels`."""
        parents = columns.parents_of(offsets)
        # One pair (row, number) for each condition that held; number 0 where none did.
        bits = (held[:, None] >> np.arange(levels, dtype=np.uint32)) & np.uint32(1) != 0
        rows, numbers = np.nonzero(np.concatenate([(held == 0)[:, None], bits], axis=1))
        order = order_by(parents[rows], times[rows], numbers)
        self.rows, self.numbers = rows[order], numbers[order]
        self.groups, self.times = parents[self.rows], times[self.rows]
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(self.groups) != 0) | (np.diff(self.times) != 0)
        self.ties = np.cumsum(new) - 1
        self.tie_times, self.tie_groups = self.times[new], self.groups[new]
        self.count = len(offsets) - 1

    def positions(self, number: int) -> np.ndarray:
        """Return the positions of the events of condition `number`."""
        return np.flatnonzero(self.numbers == number)

    def firsts(self, positions: np.ndarray) -> np.ndarray:
        """Return the first of these positions in each group; `_NEVER` for a group that has none."""
        first_positions = np.full(self.count, _NEVER)
        np.minimum.at(first_positions, self.groups[positions], positions)
        return first_positions


def _latest_chains(events: _Events, levels: int, modes: FunnelModes) -> list[np.ndarray]:
    """Return for each level where each group reaches it first, if each event continues only the chain that reached
    the level below last."""
    positions = np.arange(len(events.numbers))
    begins = np.searchsorted(events.groups, events.groups)
    reached, starts = events.numbers == 1, events.times
    firsts_of_levels = [events.firsts(np.flatnonzero(reached))]
    for number in range(2, levels + 1):
        last = np.maximum.accumulate(np.where(reached, positions, -1))
        previous = np.maximum(last, 0)
        reached = (events.numbers == number) & (last >= begins)
        reached &= events.times - starts[previous] <= modes.window
        if modes.increase:
            reached &= events.times > events.times[previous]
        starts = np.where(reached, starts[previous], starts)
        firsts_of_levels.append(events.firsts(np.flatnonzero(reached)))
    return firsts_of_levels


@dataclass(frozen=True)
class _Chains:
    """All chains of one level that can be continued: the tie (group and time) of their last and of their first event,
    and bits of the rows with several conditions that they took at their last time."""

    ties: np.ndarray
    starts: np.ndarray
    taken: np.ndarray

    def distinct(self) -> _Chains:
        """Keep, of the chains with the same end, the one that starts last."""
        order = np.lexsort((-self.starts, self.taken, self.ties))
        ties, taken = self.ties[order], self.taken[order]
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(ties) != 0) | (taken[1:] != taken[:-1])
        kept = order[new]
        return _Chains(self.ties[kept], self.starts[kept], self.taken[kept])


def _row_bits(events: _Events) -> np.ndarray:
    """Return a bit for each event whose row has several events, and 0 for other events. Events of one row share a
    bit; different rows of one tie have different bits. Raises TooLargeArray if a tie has more such rows than bits."""
    bits = np.zeros(len(events.rows), np.uint64)
    several = np.bincount(events.rows)[events.rows] > 1
    shared = np.flatnonzero(several)
    if not len(shared):
        return bits
    # The rows of a tie in ascending order, so that equal rows are neighbours.
    shared = shared[np.lexsort((events.rows[shared], events.ties[shared]))]
    rows, ties = events.rows[shared], events.ties[shared]
    new_row = np.append(True, np.diff(rows) != 0)
    new_tie = np.append(True, np.diff(ties) != 0)
    ranks = np.cumsum(new_row) - 1
    ranks -= np.repeat(ranks[new_tie], np.diff(np.append(np.flatnonzero(new_tie), len(ties))))
    if ranks.max() >= _SHARED_ROWS_MAX:
        raise TooLargeArray(
            f"windowFunnel with 'strict_once' takes at most {_SHARED_ROWS_MAX} rows of one time "
            "in which several conditions hold."
        )
    bits[shared] = np.uint64(1) << ranks.astype(np.uint64)
    return bits


def _all_chains(events: _Events, levels: int, modes: FunnelModes) -> list[np.ndarray]:
    """Return for each level where each group reaches it first by any chain that takes no row twice. Only rows of
    equal time can be taken twice, so a chain remembers only the rows of its last time."""
    bits = _row_bits(events)
    positions = events.positions(1)
    ties = events.ties[positions]
    chains = _Chains(ties, ties, bits[positions]).distinct()
    firsts_of_levels = [events.firsts(positions)]
    for number in range(2, levels + 1):
        positions = events.positions(number)
        later, starts = _from_earlier_times(events, chains, positions, modes)
        parts = [_Chains(events.ties[later], starts, bits[later])]
        reached = [later]
        if not modes.increase:
            same, continued = _from_the_same_time(events, chains, positions, bits, modes)
            parts.append(continued)
            reached.append(same)
        chains = _Chains(
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("ties", "starts", "taken")
            )
        ).distinct()
        firsts_of_levels.append(events.firsts(np.concatenate(reached)))
    return firsts_of_levels


def _from_earlier_times(
    events: _Events, chains: _Chains, positions: np.ndarray, modes: FunnelModes
) -> tuple[np.ndarray, np.ndarray]:
    """Return a mask of the events at `positions` that continue a chain of an earlier time, and the latest start (tie)
    of such a chain."""
    best = np.full(len(events.tie_times) + 1, -1)
    np.maximum.at(best, chains.ties + 1, chains.starts)
    # Ties ascend from group to group, so a start of an earlier group is told by its group.
    best = np.maximum.accumulate(best)
    ties = events.ties[positions]
    starts = best[ties]
    known = np.maximum(starts, 0)
    matches = (starts >= 0) & (events.tie_groups[known] == events.tie_groups[ties])
    matches &= events.tie_times[ties] - events.tie_times[known] <= modes.window
    return positions[matches], starts[matches]


def _from_the_same_time(
    events: _Events, chains: _Chains, positions: np.ndarray, bits: np.ndarray, modes: FunnelModes
) -> tuple[np.ndarray, _Chains]:
    """Return a mask of the events at `positions` that continue a chain of the same time, and the chains so made.
    Raises TooLargeArray if rows of one time and several conditions allow too many chains."""
    ties = events.ties[positions]
    lows = np.searchsorted(chains.ties, ties, "left")
    counts = np.searchsorted(chains.ties, ties, "right") - lows
    if counts.sum() > _PAIRS_MAX:
        raise TooLargeArray("windowFunnel with 'strict_once' has too many chains to follow.")
    offsets = columns.offsets_from_counts(counts)
    owners = columns.parents_of(offsets)
    others = lows[owners] + np.arange(len(owners)) - offsets[:-1][owners]
    events_of_pairs = positions[owners]
    free = chains.taken[others] & bits[events_of_pairs] == 0
    starts = chains.starts[others]
    free &= events.tie_times[ties[owners]] - events.tie_times[starts] <= modes.window
    taken = chains.taken[others] | bits[events_of_pairs]
    continued = _Chains(ties[owners][free], starts[free], taken[free])
    return events_of_pairs[free], continued


def _ends(
    events: _Events, firsts_of_levels: Sequence[np.ndarray], modes: FunnelModes
) -> np.ndarray:
    """Return the position of the first event in each group at which a mode ends the search; `_NEVER` without one."""
    positions = np.arange(len(events.numbers))
    forbidden = np.zeros(len(positions), bool)
    begun = positions > firsts_of_levels[0][events.groups]
    if modes.order:
        forbidden |= (events.numbers == 0) & begun
    for number in range(2, len(firsts_of_levels) + 1):
        of_number = events.numbers == number
        if modes.deduplication:
            forbidden |= of_number & (positions > firsts_of_levels[number - 1][events.groups])
        if modes.order and not modes.reentry:
            forbidden |= (
                of_number & begun & (positions < firsts_of_levels[number - 2][events.groups])
            )
    return events.firsts(np.flatnonzero(forbidden))


@dataclass(frozen=True)
class StrictFunnel(Aggregate):
    """windowFunnel(window, mode, …)(time, c1, c2, …): how many of the conditions hold one after the
    other within `window` of the first, before an event that a mode forbids.

    State: Array(Tuple(time Int64, held UInt32)), the rows sorted; `held` has a bit for each
    condition. Rows without any are kept for strict_order alone."""

    modes: FunnelModes

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's rows; those with a NULL in any argument are left out."""
        arguments, groups = drop_null_rows(arguments, groups)
        held = np.zeros(len(groups.codes), np.uint32)
        for bit, condition in enumerate(arguments[1:]):
            held |= (columns.numpy_values(condition) != 0).astype(np.uint32) << np.uint32(bit)
        times = columns.numpy_values(arguments[0]).astype(np.int64)
        if self.modes.order:
            return self._sorted(groups.codes, times, held, groups.count)
        rows = np.flatnonzero(held)
        return self._sorted(groups.codes[rows], times[rows], held[rows], groups.count)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Join the rows of each group's states."""
        offsets, pairs = columns.elements_of(states)
        times, held = (columns.numpy_values(field) for field in columns.struct_fields(pairs))
        return self._sorted(element_groups(offsets, groups).codes, times, held, groups.count)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the last level that each group reaches before its search ends."""
        offsets, pairs = columns.elements_of(states)
        times, held = (columns.numpy_values(field) for field in columns.struct_fields(pairs))
        levels = len(self.argument_types) - 1
        events = _Events(offsets, times, held, levels)
        search = _all_chains if self.modes.once else _latest_chains
        firsts_of_levels = search(events, levels, self.modes)
        ends = _ends(events, firsts_of_levels, self.modes)
        reached = sum((first < ends).astype(np.uint8) for first in firsts_of_levels)
        return columns.from_values(np.asarray(reached, np.uint8), pa.uint8())

    def _sorted(
        self, codes: np.ndarray, times: np.ndarray, held: np.ndarray, count: int
    ) -> pa.Array:
        """Return the states of rows, which are sorted by time and conditions."""
        order = order_by(codes, times, held)
        fields = [
            columns.from_values(times[order], pa.int64()),
            columns.from_values(held[order], pa.uint32()),
        ]
        pairs = columns.structs_from(fields, self.state_type.arrow.value_type)
        return columns.lists_from(
            columns.offsets_from_counts(np.bincount(codes, minlength=count)), pairs
        )
