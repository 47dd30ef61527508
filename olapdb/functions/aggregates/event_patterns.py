"""sequenceMatch, sequenceCount and sequenceMatchEvents: patterns of events in time.

What may follow an event across a gap of the pattern lies in one range of positions, so a search goes
over the events of the pattern, from the last one to the first, each in one pass of vector
operations over all groups. The match is the one that ClickHouse's search, which goes back over
positions step by step, comes to first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    BadArguments,
    BadGet,
    NumberOfArgumentsDoesntMatch,
    SyntaxError,
    TooFewArguments,
    TooManyArguments,
)
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.signatures import illegal_argument, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import order_by
from olapdb.records import dataclass
from olapdb.types import (
    UINT8,
    UINT32,
    UINT64,
    Array,
    Boolean,
    DataType,
    Date,
    DateTime,
    Integer,
    Tuple,
    plain,
)

_CONDITIONS_MAX = 32

_TOKEN = re.compile(r"\(\?(\d+)\)|\(\?t(<=|>=|==|<|>)(\d+)\)|(\.\*)|(\.)")
_ANY = ".*"
Step = tuple[str, int]
"""What is between two events: ".*", any events, or a comparison of times and its seconds, which any
events that it does not fit may precede. `.*` measures the time anew from where it ends."""


@dataclass(frozen=True)
class Pattern:
    """A parsed pattern: its events and the time and gap steps before each. `events` holds condition numbers from 1,
    or 0 for any event (`.`). `gaps` has one element more: the steps after the last event."""

    events: tuple[int, ...]
    gaps: tuple[tuple[Step, ...], ...]

    @property
    def may_end(self) -> bool:
        """Return whether the steps after the last event can match when no further event follows."""
        return all(step[0] in (_ANY, "<", "<=") or step == (">=", 0) for step in self.gaps[-1])


def parse_pattern(name: str, text: str, conditions: int) -> Pattern:
    """Return the pattern in a text, which a search may find anywhere in a group's events.

    Raises SyntaxError, and BadArguments for an event without a condition and for a comparison of
    times behind another one."""
    events: list[int] = []
    gaps: list[list[Step]] = [[(_ANY, 0)]]
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise SyntaxError(f"{name} cannot parse its pattern {text!r} at position {at}.")
        number, operator, seconds, star, _ = token.groups()
        if operator:
            if gaps[-1] and gaps[-1][-1][0] != _ANY:
                raise BadArguments(f"A condition on the time in {text!r} needs an event before it.")
            gaps[-1].append((operator, min(int(seconds), 2**63)))
        elif star:
            gaps[-1].append((_ANY, 0))
        else:
            event = int(number or 0)
            if number and not 1 <= event <= conditions:
                raise BadArguments(f"Event {event} of the pattern {text!r} does not exist.")
            events.append(event)
            gaps.append([])
        at = token.end()
    return Pattern(tuple(events), tuple(tuple(gap) for gap in gaps))


class Events:
    """The events of all groups, sorted by group and time. `held` has one bit for each condition; `limits` holds for
    each event the position at which its group ends."""

    def __init__(self, offsets: np.ndarray, times: np.ndarray, held: np.ndarray) -> None:
        """Flatten the groups' events; `offsets` says where each group begins and ends."""
        self._codes = columns.parents_of(offsets)
        order = order_by(self._codes, times)
        self.times, self._held = times[order], held[order]
        self.count = len(order)
        self.limits = offsets[1:][self._codes]
        self._distinct, ranks = np.unique(self.times, return_inverse=True)
        self._keys = self._codes * (len(self._distinct) + 1) + ranks.reshape(-1)

    def matching(self, event: int) -> np.ndarray:
        """Return a mask of the positions at which condition `event` holds; event 0 matches at every position."""
        if not event:
            return np.ones(self.count, bool)
        return np.asarray((self._held >> np.uint32(event - 1)) & np.uint32(1) != 0)

    def following(
        self, gap: Sequence[Step], firsts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the candidates for the next event across `gap`; `firsts` are the next positions. The candidates are
        the positions in the ranges [low, high) at which the mask, the third result, is True."""
        lows, highs = firsts, np.minimum(firsts + 1, self.limits)
        mask = np.ones(self.count, bool)
        bases = np.arange(self.count)
        free = False
        for operator, seconds in gap:
            if operator == _ANY:
                lows = _nearest(mask)[lows]
                highs = np.where(lows < highs, self.limits, lows)
                mask = np.ones(self.count, bool)
                bases, free = np.minimum(lows, max(self.count - 1, 0)), True
                continue
            filled = lows < (highs if free else self.limits)
            highs = np.where(filled, self.limits, lows)
            if operator in ("<", "<="):
                if not free:
                    side: Literal["left", "right"] = "left" if operator == "<" else "right"
                    highs = np.minimum(highs, self._places(bases, seconds, side))
                elif operator == "<" and not seconds:
                    highs = lows
                continue
            least = self._places(bases, seconds, "right" if operator == ">" else "left")
            lows = np.where(filled, np.maximum(lows, least), lows)
            if operator == "==" and free:
                mask = self._has_earlier(seconds)
            elif operator == "==":
                highs = np.minimum(highs, self._places(bases, seconds, "right"))
        return lows, highs, mask

    def _places(
        self, bases: np.ndarray, seconds: int, side: Literal["left", "right"]
    ) -> np.ndarray:
        """Return the position at which an event `seconds` after the one at each base would be inserted into its
        group."""
        wanted = np.searchsorted(self._distinct, self.times[bases] + np.uint64(seconds), side)
        return np.asarray(
            np.searchsorted(self._keys, self._codes[bases] * (len(self._distinct) + 1) + wanted)
        )

    def _has_earlier(self, seconds: int) -> np.ndarray:
        """Return a mask of the events whose group has another event exactly `seconds` before."""
        places = self._places(np.arange(self.count), seconds, "left")
        inside = np.minimum(places, max(self.count - 1, 0))
        exact = (places < self.limits) & (self.times[inside] == self.times + np.uint64(seconds))
        later = np.isin(self._keys, self._keys[inside[exact]])
        return np.asarray(later)


def _nearest(mask: np.ndarray) -> np.ndarray:
    """Return for each position, and for the one after the last, the first position from there on where the mask is
    True. Without one it is the number of positions."""
    count = len(mask)
    marked = np.where(mask, np.arange(count), count)
    return np.append(np.minimum.accumulate(marked[::-1])[::-1], count)


def next_searches(pattern: Pattern, events: Events) -> np.ndarray:
    """Return for each event where the search goes on after the first match from it on; -1 if there
    is none. A match that consumes nothing goes on one event later."""
    return search(pattern, events)[0]


def search(pattern: Pattern, events: Events) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the result of `next_searches`, and for each event of the pattern the positions where it is found. These
    are indexed by the position of the previous event; for the first event, by the position where the search begins."""
    found_at: list[np.ndarray] = []
    positions = np.arange(events.count)
    *gaps, last = pattern.gaps
    firsts = positions + 1 if pattern.events else positions
    lows, highs, mask = events.following(last, firsts)
    reached = _nearest(mask)[lows]
    is_reached = reached < highs
    if last and pattern.events:
        ends = np.where(is_reached, reached, firsts)
        valid = is_reached | (pattern.may_end & (firsts == events.limits))
    elif last:
        ends = np.where(is_reached, reached, events.limits)
        valid = is_reached | pattern.may_end
    else:
        ends, valid = firsts, np.ones(events.count, bool)
    for place in range(len(gaps) - 1, -1, -1):
        matches = events.matching(pattern.events[place]) & valid
        firsts = positions + 1 if place else positions
        lows, highs, mask = events.following(gaps[place], firsts)
        reached = _nearest(matches & mask)[lows]
        valid = reached < highs
        ends = np.append(ends, 0)[reached]
        found_at.append(reached)
    return np.where(valid, np.maximum(ends, positions + 1), -1), found_at[::-1]


def longest_chains(
    pattern: Pattern, events: Events, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the events in the first match from each start, concatenated, and the length of each
    match. Events `.` are left out. Without a full match, the longest matching prefix of the pattern is taken."""
    sizes = np.zeros(len(starts), np.int64)
    chains = np.zeros((len(starts), max(len(pattern.events), 1)), np.int64)
    open_ = np.ones(len(starts), bool)
    prefixes = [
        Pattern(pattern.events[:count], (*pattern.gaps[:count], ()))
        for count in range(len(pattern.events), 0, -1)
    ]
    for part in (pattern, *prefixes):
        if not part.events or not open_.any():
            continue
        searches, found_at = search(part, events)
        matched = np.flatnonzero(open_ & (searches[starts] >= 0))
        places = starts[matched]
        for at, reached in enumerate(found_at):
            places = reached[places]
            chains[matched, at] = places
        sizes[matched] = len(part.events)
        open_[matched] = False
    named = np.zeros(chains.shape[1], bool)
    named[: len(pattern.events)] = [event > 0 for event in pattern.events]
    shown = (np.arange(chains.shape[1]) < sizes[:, None]) & named
    return chains[shown], shown.sum(axis=1)


def count_matches(searches: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Return the number of consecutive non-overlapping matches from each event on, given `next_searches` as
    `searches`. Doubles the number of counted matches in each round of vector operations."""
    count = len(searches)
    counts = np.append((searches >= 0).astype(np.int64), 0)
    inside = (searches >= 0) & (searches < limits)
    targets = np.append(np.where(inside, searches, count), count)
    while (targets[:-1] < count).any():
        counts = counts + counts[targets]
        targets = targets[targets]
    return counts[:-1]


@dataclass(frozen=True)
class SequenceMatch(Aggregate):
    """sequenceMatch(pattern)(time, c1, c2, …): whether the events of the rows match the pattern, and
    sequenceCount: how often they do, without overlaps.

    Rows in which no condition holds are left out. State: Array(Tuple(time UInt64, held UInt32)),
    the events in row order; `held` has a bit for each condition."""

    pattern: Pattern

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's events; rows with a NULL in any argument are left out."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        held = np.zeros(len(groups.codes), np.uint32)
        for bit, condition in enumerate(arguments[1:]):
            held |= (columns.numpy_values(condition) != 0).astype(np.uint32) << np.uint32(bit)
        times = columns.numpy_values(arguments[0]).astype(np.uint64)
        rows = np.flatnonzero(held)
        return self._state(times[rows], held[rows], Groups(groups.codes[rows], groups.count))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Join the events of each group's states, in the order of the states."""
        offsets, pairs = columns.elements_of(states)
        times, held = (columns.numpy_values(field) for field in columns.struct_fields(pairs))
        return self._state(times, held, group_kernels.element_groups(offsets, groups))

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return for each group whether it matches (UInt8), or the number of matches (UInt64); sequenceMatchEvents
        gives the times of the longest chain."""
        offsets, pairs = columns.elements_of(states)
        times, held = (columns.numpy_values(field) for field in columns.struct_fields(pairs))
        events = Events(offsets, times, held)
        filled = np.flatnonzero(np.diff(offsets) > 0)
        starts = offsets[:-1][filled]
        if self.name.startswith("sequenceMatchEvents"):
            return self._chains(events, starts, filled, len(states))
        searches = next_searches(self.pattern, events)
        answers = np.zeros(len(states), np.int64)
        if self.name.startswith("sequenceCount"):
            answers[filled] = count_matches(searches, events.limits)[starts]
        else:
            answers[:] = not self.pattern.events and self.pattern.may_end
            answers[filled] = searches[starts] >= 0
        return columns.from_values(answers, self.result_type.arrow)

    def _chains(
        self, events: Events, starts: np.ndarray, filled: np.ndarray, count: int
    ) -> pa.Array:
        """Return the times of the longest chain of events of each of `count` groups. `filled` are the groups with
        events, `starts` the positions of their first events."""
        places, chain_sizes = longest_chains(self.pattern, events, starts)
        sizes = np.zeros(count, np.int64)
        sizes[filled] = chain_sizes
        inner = self.result_type.arrow.value_type
        times = events.times[places]
        if pa.types.is_temporal(inner):
            ticks = pa.int64() if inner.bit_width == 64 else pa.int32()
            values = columns.from_values(times.astype(np.int64), ticks).view(inner)
        else:
            values = columns.from_values(times, inner)
        return columns.lists_from(columns.offsets_from_counts(sizes), values)

    def _state(self, times: np.ndarray, held: np.ndarray, groups: Groups) -> pa.Array:
        """Build the states from the times and condition bits of events, in row order."""
        order = groups.order
        fields = [
            columns.from_values(times[order], pa.uint64()),
            columns.from_values(held[order], pa.uint32()),
        ]
        pairs = columns.structs_from(fields, self.state_type.arrow.value_type)
        return columns.lists_from(columns.offsets_from_counts(groups.sizes), pairs)


def sequence_match(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve sequenceMatch, sequenceCount or sequenceMatchEvents(pattern)(time, c1, c2, …).

    Raises NumberOfArgumentsDoesntMatch, TooFewArguments, TooManyArguments,
    IllegalTypeOfArgument and BadGet."""
    if len(parameters) != 1:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name} takes one parameter, its pattern."
        )
    if len(types) < 3:
        raise TooFewArguments(
            f"Aggregate function {name} takes a time and at least two conditions."
        )
    if len(types) > _CONDITIONS_MAX + 1:
        raise TooManyArguments(f"{name} takes up to {_CONDITIONS_MAX} conditions.")
    time = plain(types[0])
    if not isinstance(time, Date | DateTime) and not (
        isinstance(time, Integer) and not time.signed
    ):
        raise illegal_argument(name, types[0], "a Date, DateTime or unsigned integer")
    for data_type in types[1:]:
        if plain(data_type) != UINT8 and not isinstance(plain(data_type), Boolean):
            raise illegal_argument(name, data_type, "a condition (UInt8)")
    if not isinstance(parameters[0], str):
        raise BadGet(f"The pattern of {name} is a String, not {parameters[0]!r}.")
    pattern = parse_pattern(name, parameters[0], len(types) - 1)
    state = Array(Tuple((UINT64, UINT32), ("time", "held")))
    result: DataType = UINT8 if name == "sequenceMatch" else UINT64
    if name == "sequenceMatchEvents":
        result = Array(time)
    made = state_type_of(name, parameters, types, state)
    return SequenceMatch(
        name, parameters, types, result, made, merge_class="ordered", pattern=pattern
    )
