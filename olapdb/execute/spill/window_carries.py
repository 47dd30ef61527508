"""What some rows of a window partition leave for the frames of others: the state of an aggregate, or the first or last
value, as an array of one; of nth_value(x, n) the first n values, or all if there are fewer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import InternalError
from olapdb.execute.operators.frame_aggregates import frame_states
from olapdb.execute.spill.window_ways import nth_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.window_definitions import Frames, WindowFunction
from olapdb.plan.expressions import WindowCall
from olapdb.types.arrow_values import from_numpy


def carry_of(call: WindowCall, arguments: Sequence[pa.Array], rows: int) -> pa.Array:
    """Return what `rows` rows, at least one, with these arguments of the call leave."""
    function = call.function
    if isinstance(function, Aggregate):
        return function.state(arguments, Groups(np.zeros(rows, np.int64), 1))
    nth = nth_of(call)
    if nth is not None:
        return _copied(arguments[0], 0, min(nth, rows))
    return _edge(function, arguments[0], np.zeros(1, np.int64), np.full(1, rows))


def joined_carry(call: WindowCall, first: pa.Array | None, second: pa.Array | None) -> pa.Array:
    """Return what two runs of rows leave together, the `second` behind the `first`. None is no rows; one is given."""
    if first is None or second is None:
        return second if first is None else first
    both, function = pa.concat_arrays([first, second]), call.function
    if isinstance(function, Aggregate):
        return function.merge(both, Groups(np.zeros(2, np.int64), 1))
    nth = nth_of(call)
    if nth is not None:
        return both.slice(0, nth)
    return _edge(function, both, np.zeros(1, np.int64), np.full(1, 2))


def value_of(call: WindowCall, carry: pa.Array, rows: int) -> pa.Array:
    """Return the call's value over the rows that left the carry, for so many rows."""
    function = call.function
    value = function.finalize(carry) if isinstance(function, Aggregate) else carry
    if (nth := nth_of(call)) is not None:
        value = _nth(function, nth, carry, np.zeros(1, np.int64), np.full(1, len(carry)))
    return value.take(from_numpy(np.zeros(rows, np.int64)))


def values_and_carry(
    call: WindowCall,
    arguments: Sequence[pa.Array],
    rows: int,
    spans: tuple[np.ndarray, np.ndarray],
    before: pa.Array | None = None,
    behind: pa.Array | None = None,
) -> tuple[pa.Array, pa.Array]:
    """Return the call's value over each of the spans (starts, ends) of `rows` rows, and what the last of them leaves.

    Rows that left `before` are in front of the rows of each span, those that left `behind` are behind them; not both."""
    function, (starts, ends) = call.function, spans
    count = len(starts)
    if isinstance(function, Aggregate):
        states = frame_states(function, arguments, _frames(starts, ends), rows)
        for carry, is_first in ((before, True), (behind, False)):
            if carry is not None:
                repeated = carry.take(from_numpy(np.zeros(count, np.int64)))
                pair = [repeated, states] if is_first else [states, repeated]
                codes = np.tile(np.arange(count), 2)
                states = function.merge(pa.concat_arrays(pair), Groups(codes, count))
        return function.finalize(states), states.take(from_numpy(np.array([count - 1])))
    values, nth = arguments[0], nth_of(call)
    if nth is not None:
        if before is not None:
            first, ends = int(starts[0]), ends + (len(before) - starts)
            values, starts = (
                pa.concat_arrays([before, values.slice(first)]),
                np.zeros(count, np.int64),
            )
        if behind is not None:
            values = pa.concat_arrays([values, behind])
            ends = np.full(count, len(values))
        left = _copied(values, int(starts[-1]), min(nth, int(ends[-1] - starts[-1])))
        return _nth(function, nth, values, starts, ends), left
    if before is not None:
        values = pa.concat_arrays([before, values])
        starts, ends = np.zeros(count, np.int64), ends + 1
    if behind is not None:
        values = pa.concat_arrays([values, behind])
        ends = np.full(count, len(values))
    result = _edge(function, values, starts, ends)
    return result, result.take(from_numpy(np.array([count - 1])))


def _edge(
    function: WindowFunction | Aggregate, values: pa.Array, starts: np.ndarray, ends: np.ndarray
) -> pa.Array:
    """Return the first or last value of each span of values."""
    if not isinstance(function, WindowFunction):
        raise InternalError(f"{function} is no window function.")
    return function.kernel([values], _frames(starts, ends))


def _nth(
    function: WindowFunction | Aggregate,
    nth: int,
    values: pa.Array,
    starts: np.ndarray,
    ends: np.ndarray,
) -> pa.Array:
    """Return the n-th value of each span of values, the type's default if it has fewer."""
    if not isinstance(function, WindowFunction):
        raise InternalError(f"{function} is no window function.")
    return function.kernel([values, from_numpy(np.full(len(starts), nth))], _frames(starts, ends))


def _copied(values: pa.Array, start: int, count: int) -> pa.Array:
    """Return `count` values from `start` on in memory of their own: a slice would hold that of all values."""
    return values.take(from_numpy(np.arange(start, start + count)))


def _frames(starts: np.ndarray, ends: np.ndarray) -> Frames:
    """Return frames of these bounds; the functions that read them look at nothing else."""
    return Frames(starts, ends, starts, ends, starts, ends)
