"""Aggregates of events in time: retention, windowFunnel and deltaSum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, BadGet, IllegalTypeOfArgument, NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates.group_kernels import drop_null_rows, element_groups, sum_floats
from olapdb.functions.aggregates.group_kernels import sum_integers as sum_of_integers
from olapdb.functions.aggregates.signatures import (
    illegal_argument,
    require_count,
    require_no_parameters,
    state_type_of,
)
from olapdb.functions.aggregates.strict_funnels import FunnelModes, StrictFunnel
from olapdb.functions.aggregates.wide_delta_sums import WideDeltaSum
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import order_by
from olapdb.records import dataclass
from olapdb.types import (
    INT64,
    UINT8,
    UINT32,
    Array,
    Boolean,
    DataType,
    Date,
    DateTime,
    Float,
    Integer,
    Tuple,
    WideNumber,
    plain,
)

_CONDITIONS_MAX = 32
_MODES = {
    "strict_deduplication": "deduplication",
    "strict_order": "order",
    "strict_increase": "increase",
    "strict_once": "once",
    "allow_reentry": "reentry",
}
"""The modes of windowFunnel, and their names in FunnelModes."""
_WINDOW_MAX = 2**62


def _check_conditions(name: str, types: Sequence[DataType]) -> None:
    """Check the conditions. Raises IllegalTypeOfArgument unless all are UInt8 or Bool, NumberOfArgumentsDoesntMatch
    unless there are 1 to 32."""
    if not 1 <= len(types) <= _CONDITIONS_MAX:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name} takes 1 to {_CONDITIONS_MAX} conditions."
        )
    for data_type in types:
        kind = plain(data_type)
        if kind != UINT8 and not isinstance(kind, Boolean):
            raise illegal_argument(name, data_type, "a condition (UInt8)")


def _is_true(array: pa.Array) -> np.ndarray:
    """Return which rows of a condition are true; NULL is false."""
    if array.null_count:
        array = array.fill_null(pa.scalar(0).cast(array.type))
    return np.asarray(columns.numpy_values(array) != 0)


@dataclass(frozen=True)
class Retention(Aggregate):
    """retention(c1, c2, …): whether c1 held in any row, and c1 and each other condition did.

    State: Tuple of one UInt8 for each condition, whether it held."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return which conditions held in any row of each group."""
        held = [
            columns.from_values(
                np.bincount(groups.codes[_is_true(a)], minlength=groups.count) > 0, pa.uint8()
            )
            for a in arguments
        ]
        return columns.structs_from(held, self.state_type.arrow)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return which conditions held in any state of each group."""
        return self.state(columns.struct_fields(states), groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return for each group an Array(UInt8): whether c1 held, then for each other condition whether it and c1
        both held."""
        held = np.stack([columns.numpy_values(f) for f in columns.struct_fields(states)], axis=1)
        held = held & held[:, :1]
        offsets = np.arange(len(held) + 1, dtype=np.int64) * held.shape[1]
        return columns.lists_from(offsets, columns.from_values(held.reshape(-1), pa.uint8()))


def retention(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve retention of 2 to 32 conditions."""
    require_no_parameters(name, parameters)
    if len(types) < 2:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} takes 2 conditions or more.")
    _check_conditions(name, types)
    state = state_type_of(name, (), types, Tuple((UINT8,) * len(types)))
    return Retention(name, (), types, Array(UINT8), state)


@dataclass(frozen=True)
class WindowFunnel(Aggregate):
    """windowFunnel(window[, 'strict_increase'])(time, c1, c2, …): how many of the conditions hold
    one after the other within `window` of the first.

    State: Array(Tuple(time Int64, event UInt8)), the distinct events sorted by time and number."""

    window: int = 0
    strict_increase: bool = False

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return for each group its distinct events as (time, event), sorted.

        A row gives an event n if condition n holds, counted from 1. Rows with a NULL in any
        argument are left out."""
        arguments, groups = drop_null_rows(arguments, groups)
        times = columns.numpy_values(arguments[0]).astype(np.int64)
        held = [np.flatnonzero(_is_true(condition)) for condition in arguments[1:]]
        rows = np.concatenate(held)
        events = np.repeat(np.arange(1, len(held) + 1), [len(r) for r in held])
        return self._sorted(groups.codes[rows], times[rows], events, groups.count)

    def _sorted(
        self, codes: np.ndarray, times: np.ndarray, events: np.ndarray, count: int
    ) -> pa.Array:
        """Return the states of events: sorted by time and number, without repetitions."""
        order = order_by(codes, times, events)
        codes, times, events = codes[order], times[order], events[order]
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(codes) != 0) | (np.diff(times) != 0) | (np.diff(events) != 0)
        fields = [
            columns.from_values(times[new], pa.int64()),
            columns.from_values(events[new], pa.uint8()),
        ]
        element = self.state_type.arrow.value_type
        pairs = columns.structs_from(fields, element)
        counts = np.bincount(codes[new], minlength=count)
        return columns.lists_from(columns.offsets_from_counts(counts), pairs)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Join the events of each group's states."""
        offsets, pairs = columns.elements_of(states)
        times, events = (columns.numpy_values(f) for f in columns.struct_fields(pairs))
        owners = element_groups(offsets, groups)
        return self._sorted(owners.codes, times, events, groups.count)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the length of the longest chain of each group, level by level.

        An event of level n continues the chain whose level n - 1 was reached last before it, if it
        is within the window of that chain's first event.
        """
        offsets, pairs = columns.elements_of(states)
        times, events = (columns.numpy_values(f) for f in columns.struct_fields(pairs))
        owners = columns.parents_of(offsets)
        begins = offsets[:-1][owners] if len(owners) else owners
        positions = np.arange(len(times))
        levels = np.zeros(len(states), np.uint8)
        reached, starts = events == 1, times
        for level in range(1, len(self.argument_types)):
            if level > 1:
                last = np.maximum.accumulate(np.where(reached, positions, -1))
                previous = np.maximum(last, 0)
                following = (events == level) & (last >= begins)
                following &= times - starts[previous] <= self.window
                if self.strict_increase:
                    following &= times > times[previous]
                starts = np.where(following, starts[previous], starts)
                reached = following
            if not reached.any():
                break
            levels[owners[reached]] = level
        return columns.from_values(levels, pa.uint8())


def window_funnel(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve windowFunnel(window[, mode])(time, condition, …).

    Raises BadGet, BadArguments, NumberOfArgumentsDoesntMatch and IllegalTypeOfArgument."""
    if not parameters:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name} has a window: {name}(3600)(time, c1, c2)."
        )
    modes = _modes(name, parameters)
    if len(types) < 2:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name} takes a time and conditions."
        )
    if len(types) > _CONDITIONS_MAX + 1:
        raise NumberOfArgumentsDoesntMatch(f"{name} takes up to {_CONDITIONS_MAX} conditions.")
    _check_conditions(name, types[1:])
    time = plain(types[0])
    if not isinstance(time, Integer | Date | DateTime) or (
        isinstance(time, Integer) and time.signed
    ):
        raise illegal_argument(name, types[0], "a Date, DateTime or unsigned integer")
    if modes.order or modes.deduplication or modes.once:
        rows = Array(Tuple((INT64, UINT32), ("time", "held")))
        state = state_type_of(name, parameters, types, rows)
        return StrictFunnel(name, parameters, types, UINT8, state, modes=modes)
    events = Array(Tuple((INT64, UINT8), ("time", "event")))
    state = state_type_of(name, parameters, types, events)
    return WindowFunnel(
        name, parameters, types, UINT8, state, window=modes.window, strict_increase=modes.increase
    )


def _modes(name: str, parameters: tuple[object, ...]) -> FunnelModes:
    """Return the window and the modes that the parameters name. Raises BadGet and BadArguments."""
    window = parameters[0]
    if not isinstance(window, int) or isinstance(window, bool) or window < 0:
        raise BadGet(f"Aggregate function {name} has a window: {name}(3600)(time, c1, c2).")
    modes = parameters[1:]
    for mode in modes:
        if not isinstance(mode, str):
            raise BadGet(f"A mode of {name} is a String, not {mode!r}.")
        if mode not in _MODES:
            raise BadArguments(f"{name} has no mode {mode!r}.", hint=f"It has {', '.join(_MODES)}.")
    if "allow_reentry" in modes and "strict_order" not in modes:
        raise BadArguments(f"The mode 'allow_reentry' of {name} needs 'strict_order'.")
    return FunnelModes(min(window, _WINDOW_MAX), **{_MODES[str(mode)]: True for mode in modes})


@dataclass(frozen=True)
class DeltaSum(Aggregate):
    """deltaSum(x): the sum of the differences of following values, without those below 0.

    State: Tuple(sum, first, last, seen), which merges in row order."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return for each group the sum of its positive differences, with the first and last values, in row order."""
        (values,), groups = drop_null_rows(arguments, groups)
        number = columns.numpy_values(values)
        return self._joined(np.zeros(len(number), number.dtype), number, number, groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Join the states of each group in order; between two there is one more difference."""
        sums, firsts, lasts, seen = (columns.numpy_values(f) for f in columns.struct_fields(states))
        rows = np.flatnonzero(seen)
        chosen = Groups(groups.codes[rows], groups.count)
        return self._joined(sums[rows], firsts[rows], lasts[rows], chosen)

    def _joined(
        self, sums: np.ndarray, firsts: np.ndarray, lasts: np.ndarray, groups: Groups
    ) -> pa.Array:
        """Join the pieces (sum, first, last) of each group in row order; rises between pieces count too."""
        order = groups.order
        ordered = Groups(groups.codes[order], groups.count)
        sums, firsts, lasts = sums[order], firsts[order], lasts[order]
        rises = np.zeros(len(order), sums.dtype)
        if len(order) > 1:
            follows = ordered.codes[1:] == ordered.codes[:-1]
            up = follows & (firsts[1:] > lasts[:-1])
            rises[1:][up] = firsts[1:][up] - lasts[:-1][up]
        arrow = plain(self.result_type).arrow
        dtype = columns.dtype_of(arrow)
        if np.issubdtype(dtype, np.floating):
            total = sum_floats((sums + rises).astype(np.float64), ordered)
        else:
            total = sum_of_integers(sums + rises, ordered, dtype)
        sizes = ordered.sizes
        present = sizes > 0
        first, last = np.zeros(groups.count, dtype), np.zeros(groups.count, dtype)
        starts = ordered.starts
        first[present] = firsts[starts[present]]
        last[present] = lasts[(starts + sizes - 1)[present]]
        fields = [columns.from_values(part, arrow) for part in (total, first, last)]
        seen = columns.from_values(present, pa.uint8())
        return columns.structs_from([*fields, seen], self.state_type.arrow)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the sum of each group's positive differences; 0 for a group without values."""
        return columns.struct_fields(states)[0]


def delta_sum(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve deltaSum of one number that is not a decimal.

    Raises BadArguments and IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    number = plain(types[0])
    if not isinstance(number, Integer | Float | WideNumber):
        raise IllegalTypeOfArgument(
            f"Illegal type {types[0]} of argument of aggregate function {name}: a number expected."
        )
    fields = ("sum", "first", "last", "seen")
    state = state_type_of(name, (), types, Tuple((number, number, number, UINT8), fields))
    aggregate = WideDeltaSum if isinstance(number, WideNumber) else DeltaSum
    return aggregate(name, (), types, number, state, merge_class="ordered")
