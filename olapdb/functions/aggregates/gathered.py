"""Aggregates whose state is the rows themselves: moving sums, overlaps of intervals, rank correlation.

Each computes its result from all the rows of a group, so a state is as large as the group.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, IllegalTypeOfArgument
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.signatures import illegal_argument, require_count, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns, wide_numbers
from olapdb.functions.kernels.integer_order import order_by
from olapdb.records import dataclass
from olapdb.types import (
    FLOAT64,
    INT64,
    UINT64,
    Array,
    DataType,
    Date,
    DateTime,
    Decimal,
    Float,
    Integer,
    Tuple,
    WideNumber,
    plain,
)


@dataclass(frozen=True)
class Gathered(Aggregate):
    """An aggregate of all rows of a group. State: Array(Tuple of the arguments), in row order."""

    @property
    def keeps_unordered_rows(self) -> bool:
        """Whether the result is the same for any order of the rows."""
        return self.merge_class != "ordered"

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's rows without NULL, in their order."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        rows = pa.array(groups.order)
        element = self.state_type.arrow.value_type
        tuples = columns.structs_from([a.take(rows) for a in arguments], element)
        return columns.lists_from(columns.offsets_from_counts(groups.sizes), tuples)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Join the rows of each group's states, in the order of the states."""
        offsets, tuples = columns.elements_of(states)
        owners = group_kernels.element_groups(offsets, groups)
        return self.state(columns.struct_fields(tuples), owners)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the result of each group, which `_result` computes from the group's rows."""
        offsets, tuples = columns.elements_of(states)
        arguments = [self._argument(field) for field in columns.struct_fields(tuples)]
        return self._result(offsets, arguments)

    def _argument(self, field: pa.Array) -> np.ndarray:
        """Return the values of an argument as `_result` takes them."""
        return columns.numpy_values(field)

    @abstractmethod
    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Return one result for each group. The rows of group g are those from offsets[g] up to offsets[g + 1],
        excluded."""


def rows_type(types: Sequence[DataType]) -> Array:
    """Return the state type of rows of these arguments."""
    return Array(Tuple(tuple(plain(t) for t in types)))


# --- moving sums


@dataclass(frozen=True)
class MovingSum(Gathered):
    """groupArrayMovingSum and groupArrayMovingAvg([window]): for each row the sum of the row and the ones before it,
    at most `window` rows in all. The average divides by the window, or without one by the number of rows of the
    group."""

    window: int | None = None

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Return for each group an array of as many sums as it has rows."""
        assert isinstance(self.result_type, Array)
        inner = self.result_type.inner.arrow
        averages = self.name.startswith("groupArrayMovingAvg")
        dtype = np.dtype(np.float64) if averages else columns.dtype_of(inner)
        values = arguments[0].astype(dtype)
        owners = columns.parents_of(offsets)
        with np.errstate(over="ignore", invalid="ignore"):
            running = np.concatenate((np.zeros(1, dtype), np.cumsum(values, dtype=dtype)))
            ends = np.arange(1, len(values) + 1)
            starts = offsets[:-1][owners]
            if self.window is not None:
                starts = np.maximum(starts, ends - min(self.window, len(values)))
            sums = running[ends] - running[starts]
            if averages:
                sums = sums / (float(self.window or 0) or np.diff(offsets)[owners])
        return columns.lists_from(offsets, columns.from_values(sums, inner))


@dataclass(frozen=True)
class MovingDecimalSum(Gathered):
    """groupArrayMovingSum and groupArrayMovingAvg of decimals, and the sums of wide integers: as MovingSum, but
    exact; averages are cut behind the last digit."""

    window: int | None = None

    def _argument(self, field: pa.Array) -> np.ndarray:
        """Return the unscaled values as limbs."""
        return wide_numbers.limbs_of(field)

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Return for each group an array of as many sums as it has rows."""
        assert isinstance(self.result_type, Array)
        (limbs,) = arguments
        rows = len(limbs)
        running = wide_numbers.running_totals(limbs)
        owners = columns.parents_of(offsets)
        starts = offsets[:-1][owners]
        if self.window is not None:
            starts = np.maximum(starts, np.arange(1, rows + 1) - min(self.window, rows))
        sums = wide_numbers.added(running[1:], wide_numbers.negated(running[starts]))
        if self.name.startswith("groupArrayMovingAvg"):
            divisor = (
                np.diff(offsets)[owners] if self.window is None else np.full(rows, self.window)
            )
            sums, _ = wide_numbers.divided(
                sums, wide_numbers.extended(divisor.astype(np.uint64).reshape(-1, 1))
            )
        inner = self.result_type.inner
        if isinstance(inner, WideNumber):
            return columns.lists_from(offsets, wide_numbers.column_of(sums, inner))
        arrow = inner.arrow
        words = np.ascontiguousarray(sums[:, : arrow.byte_width // 8])
        elements = pa.Array.from_buffers(arrow, rows, [None, pa.py_buffer(words.tobytes())])
        return columns.lists_from(offsets, elements)


def moving_sum(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve groupArrayMovingSum or groupArrayMovingAvg of one number.

    Raises BadArguments and IllegalTypeOfArgument."""
    require_count(name, types, 1)
    window = parameters[0] if parameters else None
    if len(parameters) > 1 or (
        window is not None
        and (not isinstance(window, int) or isinstance(window, bool) or window < 1)
    ):
        raise BadArguments(f"The parameter of {name}, the window, is a positive integer.")
    number = plain(types[0])
    state = state_type_of(name, parameters, types, rows_type(types))
    size = window if isinstance(window, int) else None
    if isinstance(number, Decimal):
        exact = Decimal(76 if number.precision > 38 else 38, number.scale)
        if isinstance(number, WideNumber):
            exact = number
        return MovingDecimalSum(
            name, parameters, types, Array(exact), state, merge_class="ordered", window=size
        )
    if not isinstance(number, Integer | Float):
        raise illegal_argument(name, types[0], "a number")
    wide: DataType = FLOAT64
    if name == "groupArrayMovingSum" and isinstance(number, Integer):
        wide = INT64 if number.signed else UINT64
    return MovingSum(
        name, parameters, types, Array(wide), state, merge_class="ordered", window=size
    )


# --- overlaps of intervals


@dataclass(frozen=True)
class MaxIntersections(Gathered):
    """maxIntersections(start, end) and maxIntersectionsPosition: the most intervals that overlap, or
    the first start at which they do. An interval ends before others that start at its end."""

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Return for each group the largest number of intervals open at once, or the first start where it is reached;
        0 without intervals."""
        starts, ends = arguments
        owners = columns.parents_of(offsets)
        places = np.concatenate((starts, ends))
        steps = np.concatenate((np.ones(len(starts), np.int64), np.full(len(ends), -1)))
        codes = np.concatenate((owners, owners))
        order = order_by(codes, places, steps)
        places, steps, codes = places[order], steps[order], codes[order]
        open_now = np.cumsum(steps)  # each group opens as many as it closes
        bounds = offsets * 2
        filled = np.flatnonzero(np.diff(bounds) > 0)
        most = np.zeros(len(offsets) - 1, np.int64)
        if len(filled):
            most[filled] = np.maximum(np.maximum.reduceat(open_now, bounds[:-1][filled]), 0)
        if not self.name.startswith("maxIntersectionsPosition"):
            return columns.from_values(most, pa.uint64())
        reached = np.flatnonzero((open_now == most[codes]) & (most[codes] > 0))[::-1]
        first = np.zeros(len(most), places.dtype)
        first[codes[reached]] = places[reached]  # the first is written last
        return columns.from_values(first, plain(self.result_type).arrow)


@dataclass(frozen=True)
class IntervalLengthSum(Gathered):
    """intervalLengthSum(start, end): the length of what the intervals cover together."""

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Return the length of the union of each group's intervals; the two bounds may be in either order."""
        codes = columns.parents_of(offsets)
        starts, ends = np.minimum(*arguments), np.maximum(*arguments)
        order = order_by(codes, starts, ends)
        starts, ends, codes = starts[order], ends[order], codes[order]
        if not len(ends):
            return columns.from_values(
                np.zeros(len(offsets) - 1, np.uint64), plain(self.result_type).arrow
            )
        ranks = np.unique(ends, return_inverse=True)[1].reshape(-1)
        span = int(ranks.max(initial=0)) + 1
        furthest = np.maximum.accumulate(codes * span + ranks)  # groups follow one another
        until = np.unique(ends)[furthest % span]
        opens = np.ones(
            len(ends), bool
        )  # where a stretch begins that no interval before it reaches
        opens[1:] = (codes[1:] != codes[:-1]) | (starts[1:] > until[:-1])
        firsts = np.flatnonzero(opens)
        lasts = np.append(firsts[1:], len(ends)) - 1
        with np.errstate(invalid="ignore"):
            lengths = until[lasts] - starts[firsts]
        dtype = lengths.dtype if lengths.dtype.kind == "f" else np.dtype(np.uint64)
        totals = np.zeros(len(offsets) - 1, dtype)
        np.add.at(totals, codes[firsts], lengths.astype(dtype))
        return columns.from_values(totals, plain(self.result_type).arrow)


def intervals(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve maxIntersections, maxIntersectionsPosition or intervalLengthSum(start, end).

    Raises BadArguments and IllegalTypeOfArgument."""
    if parameters:
        raise BadArguments(f"Aggregate function {name} takes no parameters.")
    require_count(name, types, 2)
    kinds = Integer | Float | Date | DateTime if name == "intervalLengthSum" else Integer | Float
    start, end = (plain(t) for t in types)
    for kind in (start, end):
        if not isinstance(kind, kinds):
            raise illegal_argument(name, kind, "a number")
    if start != end:
        raise IllegalTypeOfArgument(f"The arguments of {name} are of one type, not {start}, {end}.")
    state = state_type_of(name, (), types, rows_type(types))
    if name == "intervalLengthSum":
        length = FLOAT64 if isinstance(start, Float) else UINT64
        return IntervalLengthSum(name, (), types, length, state)
    result = UINT64 if name == "maxIntersections" else start
    return MaxIntersections(name, (), types, result, state)


# --- rank correlation


@dataclass(frozen=True)
class RankCorrelation(Gathered):
    """rankCorr(x, y): Spearman's coefficient 1 - 6 Σd² / (n³ - n); equal values share a mean rank."""

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Return each group's coefficient; NaN for fewer than two rows."""
        owners = columns.parents_of(offsets)
        first, second = (mean_ranks(values, owners, offsets) for values in arguments)
        squares = np.bincount(owners, (first - second) ** 2, minlength=len(offsets) - 1)
        count = np.diff(offsets).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            result = 1 - 6 * squares / (count * (count**2 - 1))
        return columns.from_values(result, pa.float64())


def mean_ranks(values: np.ndarray, owners: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return each value's rank in its group from 1; equal values have the mean of theirs."""
    order = order_by(owners, values)
    values, codes = values[order], owners[order]
    new = np.ones(len(order), bool)
    new[1:] = (codes[1:] != codes[:-1]) | differs_from_last(values)
    begins = np.flatnonzero(new)
    sizes = np.diff(np.append(begins, len(order)))
    means = begins - offsets[:-1][codes[begins]] + (sizes + 1) / 2
    ranks = np.empty(len(order))
    ranks[order] = np.repeat(means, sizes)
    return ranks


def differs_from_last(values: np.ndarray) -> np.ndarray:
    """Return for each value but the first whether it differs from the one before; NaN equals NaN, so
    that the answer does not depend on the order of NaNs."""
    differs: np.ndarray = values[1:] != values[:-1]
    if values.dtype.kind == "f":
        differs &= ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
    return differs


def rank_correlation(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve rankCorr of two numbers. Raises BadArguments and IllegalTypeOfArgument."""
    if parameters:
        raise BadArguments(f"Aggregate function {name} takes no parameters.")
    require_count(name, types, 2)
    for data_type in types:
        if not isinstance(plain(data_type), Integer | Float):
            raise illegal_argument(name, data_type, "a number")
    state = state_type_of(name, (), types, rows_type(types))
    return RankCorrelation(name, (), types, FLOAT64, state, merge_class="float")
