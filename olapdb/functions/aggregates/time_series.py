"""Aggregates of time series: samples in windows before the points of a grid, as in PromQL.

A window of a point t holds the samples in (t - window, t]; of samples of one time the greatest
counts. All windows of all groups are found by one search.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal as Number

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, IllegalTypeOfArgument, NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.gathered import Gathered, rows_type
from olapdb.functions.aggregates.signatures import illegal_argument, state_type_of
from olapdb.functions.aggregates.time_series_windows import MEASURES, Windows
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.calendar import ticks_per_second
from olapdb.functions.kernels.integer_order import order_by, stable_order
from olapdb.records import dataclass
from olapdb.types import (
    FLOAT64,
    UINT32,
    Array,
    DataType,
    DateTime,
    DateTime64,
    Float,
    Tuple,
    make_nullable,
    plain,
)
from olapdb.types.arrow_values import from_numpy

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SAMPLES_KEPT = 2


@dataclass(frozen=True)
class TimeSamples(Gathered):
    """timeSeriesGroupArray and timeSeriesLastTwoSamples: samples by time, as an array of tuples.

    Arguments are a time and a value, arrays of both, or an array of tuples of both."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's samples; raise BadArguments for arrays of different sizes."""
        if len(arguments) == 1 or pa.types.is_list(arguments[0].type):
            arguments, groups = group_kernels.drop_null_rows(arguments, groups)
            lists = [columns.elements_of(a) for a in arguments]
            offsets = lists[0][0]
            if any(not np.array_equal(o, offsets) for o, _ in lists[1:]):
                raise BadArguments(f"Arrays of times and values of {self.name} differ in size.")
            elements = [values for _, values in lists]
            arguments = columns.struct_fields(elements[0]) if len(elements) == 1 else elements
            groups = group_kernels.element_groups(offsets, groups)
        return super().state(arguments, groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Join the samples of each group's states."""
        offsets, tuples = columns.elements_of(states)
        owners = group_kernels.element_groups(offsets, groups)
        return super().state(columns.struct_fields(tuples), owners)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return each group's samples in order of time; of samples with equal times the greatest value.
        timeSeriesLastTwoSamples gives only the last two, the latest first."""
        offsets, tuples = columns.elements_of(states)
        times, values = columns.struct_fields(tuples)
        owners, rows = _unique(offsets, _ticks(times), _floats(values))
        if self.name == "timeSeriesLastTwoSamples":
            order = np.arange(len(rows))[::-1]
            owners, rows = owners[order], rows[order]
            first = np.concatenate(([True], owners[1:] != owners[:-1]))[: len(owners)]
            rank = np.arange(len(owners)) - np.flatnonzero(first)[np.cumsum(first) - 1]
            kept = np.flatnonzero(rank < _SAMPLES_KEPT)
            kept = kept[stable_order(owners[kept])]
            owners, rows = owners[kept], rows[kept]
        counts = np.bincount(owners, minlength=len(states))
        return columns.lists_from(
            columns.offsets_from_counts(counts),
            columns.retype(tuples.take(from_numpy(rows)), self.result_type.arrow.value_type),
        )

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Raise NotImplementedError: `finalize` keeps the types of the samples."""
        raise NotImplementedError


@dataclass(frozen=True)
class OnGrid(TimeSamples):
    """An aggregate that gives a value for each point of a grid, NULL where there are too few
    samples. `start`, `end`, `step` and `window` are in ticks of the times."""

    start: int = 0
    end: int = 0
    step: int = 1
    window: int = 0
    scale: int = 1
    offset: float = 0.0

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return for each group an array with the measure of the window that ends at each grid point; NULL where
        there are too few samples."""
        offsets, tuples = columns.elements_of(states)
        times, samples = columns.struct_fields(tuples)
        ticks, values = _ticks(times), _floats(samples)
        owners, rows = _unique(offsets, ticks, values)
        windows = self._windows(owners, ticks[rows], values[rows], len(states))
        with np.errstate(all="ignore"):
            measured, some = MEASURES[_measure_name(self.name)](windows)
        assert isinstance(self.result_type, Array)
        inner = plain(self.result_type.inner)
        points = len(windows.times) // max(len(states), 1)
        result = pa.array(measured.astype(columns.dtype_of(inner.arrow)), inner.arrow, mask=~some)
        return columns.lists_from(np.arange(len(states) + 1, dtype=np.int64) * points, result)

    def _windows(
        self, owners: np.ndarray, ticks: np.ndarray, values: np.ndarray, groups: int
    ) -> Windows:
        """Return the windows of `groups` groups; samples are sorted by group and time."""
        grid = np.arange(self.start, self.end + 1, self.step, dtype=np.int64)
        moments = np.unique(np.concatenate((ticks, grid, grid - self.window)))
        keys = owners * len(moments) + np.searchsorted(moments, ticks)
        first = np.repeat(np.arange(groups) * len(moments), len(grid))
        low, high = (
            np.searchsorted(keys, first + np.tile(np.searchsorted(moments, at), groups), "right")
            for at in (grid - self.window, grid)
        )
        times = np.tile(grid, groups)
        return Windows(ticks, values, low, high, times, self.window, self.scale, self.offset)


def _measure_name(name: str) -> str:
    """Return the key in `MEASURES` for the aggregate `name`."""
    return name.removeprefix("timeSeries").removesuffix("ToGrid")


def _ticks(array: pa.Array) -> np.ndarray:
    """Return times as int64 ticks of their type."""
    if pa.types.is_timestamp(array.type):
        return columns.numpy_values(columns.view(array, pa.int64()))
    return columns.numpy_values(array).astype(np.int64)


def _floats(array: pa.Array) -> np.ndarray:
    """Return values as float64."""
    return columns.numpy_values(array).astype(np.float64)


def _unique(
    offsets: np.ndarray, ticks: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the group and the row of each sample, sorted by group and time; of samples of equal time only the one of
    greatest value."""
    owners = columns.parents_of(offsets)
    order = order_by(owners, ticks, values)
    sorted_owners, sorted_ticks = owners[order], ticks[order]
    last = np.ones(len(order), bool)
    last[:-1] = (sorted_owners[1:] != sorted_owners[:-1]) | (sorted_ticks[1:] != sorted_ticks[:-1])
    return sorted_owners[last], order[last]


def _sample_types(name: str, types: tuple[DataType, ...]) -> tuple[DataType, DataType]:
    """Return the types of times and values. Raise IllegalTypeOfArgument for others than times and
    floats, NumberOfArgumentsDoesntMatch for more than two arguments."""
    if len(types) not in (1, 2):
        raise NumberOfArgumentsDoesntMatch(f"{name} takes times and values.")
    kinds = [plain(t) for t in types]
    if len(kinds) == 1:
        inner = plain(kinds[0].inner) if isinstance(kinds[0], Array) else kinds[0]
        if not isinstance(inner, Tuple) or inner is kinds[0] or len(inner.elements) != 2:
            raise illegal_argument(name, kinds[0], "an Array(Tuple(time, value))")
        kinds = list(inner.elements)
    elif isinstance(kinds[0], Array) and isinstance(kinds[1], Array):
        kinds = [kinds[0].inner, kinds[1].inner]
    time, value = kinds
    if not (time == UINT32 or isinstance(time, DateTime | DateTime64)):
        raise illegal_argument(name, time, "a UInt32, DateTime or DateTime64 as the time")
    if not isinstance(value, Float):
        raise illegal_argument(name, value, "a Float32 or Float64 as the value")
    return time, value


def samples(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve timeSeriesGroupArray or timeSeriesLastTwoSamples."""
    if parameters:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} takes no parameters.")
    pair = _sample_types(name, types)
    state = state_type_of(name, (), types, rows_type(pair))
    return TimeSamples(name, (), types, Array(Tuple(pair)), state, merge_class="exact")


def on_grid(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve an aggregate on a grid: (start, end, step, window[, offset])(time, value).

    Raises NumberOfArgumentsDoesntMatch, IllegalTypeOfArgument and BadArguments."""
    measure = _measure_name(name)
    count = 5 if measure == "PredictLinear" else 4
    if len(parameters) != count:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name} has {count} parameters: start, end, step, window"
            f"{', offset' if count > 4 else ''}."
        )
    pair = _sample_types(name, types)
    scale = 1 if pair[0] == UINT32 else ticks_per_second(pair[0])
    start, end, step, window = (_in_ticks(name, p, scale) for p in parameters[:4])
    if window < 0:
        raise IllegalTypeOfArgument(f"The window of {name} is not negative.")
    if step <= 0:
        raise BadArguments(f"The step of {name} is greater than 0.")
    if end < start:
        raise BadArguments(f"The end of {name} lies before its start.")
    known = [p.isoformat(" ") if isinstance(p, datetime) else p for p in parameters]
    state = state_type_of(name, known, types, rows_type(pair))
    value = FLOAT64 if measure.startswith("TimestampOf") else pair[1]
    offset = _in_ticks(name, parameters[4], 10**9) / 10**9 if count > 4 else 0.0
    return OnGrid(
        name,
        parameters,
        types,
        Array(make_nullable(value)),
        state,
        merge_class="exact",
        start=start,
        end=end,
        step=step,
        window=window,
        scale=scale,
        offset=offset,
    )


def _in_ticks(name: str, parameter: object, scale: int) -> int:
    """Convert a parameter, a time or a number of seconds, to ticks, `scale` in a second. Raises IllegalTypeOfArgument
    for other types."""
    if isinstance(parameter, datetime):
        moment = parameter if parameter.tzinfo else parameter.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1) * scale // 10**6
    if isinstance(parameter, bool) or not isinstance(parameter, int | float | Number):
        raise IllegalTypeOfArgument(f"A parameter of {name} is not {parameter!r}.")
    return int(parameter * scale)
