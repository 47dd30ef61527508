"""Measures of windows of a time series, as PromQL's functions of ranges.

The extrapolation of rate, increase and delta is Prometheus' (`extrapolatedRate` in
`promql/functions.go`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from olapdb.records import dataclass


@dataclass(frozen=True)
class Windows:
    """Samples in the order of groups and times, and the windows of all points of all groups.

    Window i holds the samples from `low[i]` to before `high[i]`; its point is `times[i]`. Times are
    ticks, `scale` in a second."""

    ticks: np.ndarray
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    times: np.ndarray
    width: int
    scale: int
    offset: float

    @property
    def sizes(self) -> np.ndarray:
        """The number of samples in each window."""
        return np.asarray(self.high - self.low)

    def reduced(self, function: np.ufunc, values: np.ndarray) -> np.ndarray:
        """Reduce the values of each window by the ufunc; `values` has one value for each element of `places`. 0 for
        empty windows."""
        sizes = self.sizes
        out = np.zeros(len(sizes), values.dtype)
        some = sizes > 0
        if some.any():
            starts = (np.cumsum(sizes) - sizes)[some]
            out[some] = function.reduceat(values, starts)
        return out

    @property
    def owners(self) -> np.ndarray:
        """Return the window number of each element of `places`."""
        return np.repeat(np.arange(len(self.low)), self.sizes)

    @property
    def places(self) -> np.ndarray:
        """Return the sample numbers of all windows, window after window; windows may overlap, so samples may repeat."""
        sizes = self.sizes
        return np.repeat(self.low - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())

    def steps(self, changed: np.ndarray) -> np.ndarray:
        """Return for each window the sum of `changed` over the steps inside it. `changed[i]` belongs to the step from
        sample i - 1 to sample i."""
        running = np.concatenate((np.zeros(1, changed.dtype), np.cumsum(changed)))
        first = np.minimum(self.low + 1, self.high)
        return np.asarray(running[self.high] - running[first])


Measured = tuple[np.ndarray, np.ndarray]
"""The value of each window, and whether it has one."""


def _before(values: np.ndarray) -> np.ndarray:
    """Return for each sample the value of the sample before it; for the first sample its own value."""
    return np.concatenate((values[:1], values[:-1]))


def _reducing(function: np.ufunc) -> Callable[[Windows], Measured]:
    """Return the measure that reduces the values of each window by the ufunc, such as add or maximum."""

    def measure(windows: Windows) -> Measured:
        """Return the reduction of each window's values, and whether the window has samples."""
        return windows.reduced(function, windows.values[windows.places]), windows.sizes > 0

    return measure


def _count(windows: Windows) -> Measured:
    """Return the number of samples of each window."""
    return windows.sizes.astype(np.float64), windows.sizes > 0


def _average(windows: Windows) -> Measured:
    """Return the mean of each window's values."""
    total, some = _reducing(np.add)(windows)
    return total / np.maximum(windows.sizes, 1), some


def _time_of(function: np.ufunc) -> Callable[[Windows], Measured]:
    """Return the measure of the last time, in seconds, at which a window has its minimum or maximum (`function`)."""

    def measure(windows: Windows) -> Measured:
        """Return the time of the last sample in each window that has the extreme value."""
        places = windows.places
        values = windows.values[places]
        best = windows.reduced(function, values)
        at = windows.reduced(np.maximum, np.where(values == best[windows.owners], places, -1))
        times = windows.ticks[at] if len(windows.ticks) else np.zeros(len(at))
        return times / windows.scale, (windows.sizes > 0) & (at >= 0)

    return measure


def _last(windows: Windows) -> Measured:
    """Return the last value of each window."""
    some = windows.sizes > 0
    return _taken(windows.values, windows.high - 1, some), some


def _taken(values: np.ndarray, places: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Return `values[places]`, and 0 where `some` is False."""
    out = np.zeros(len(places), values.dtype)
    out[some] = values[places[some]]
    return out


def _instant(windows: Windows) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return for each window the last value, the value before it, the seconds between them, and whether both exist."""
    some = windows.sizes > 1
    last = _taken(windows.values, windows.high - 1, some)
    before = _taken(windows.values, windows.high - 2, some)
    ticks = _taken(windows.ticks, windows.high - 1, some) - _taken(
        windows.ticks, windows.high - 2, some
    )
    return last, before, ticks / windows.scale, some


def _instant_delta(windows: Windows) -> Measured:
    """Return the last value minus the one before it, for each window."""
    last, before, _, some = _instant(windows)
    return last - before, some


def _instant_rate(windows: Windows) -> Measured:
    """Return the increase per second between the last two values; a fall counts as a reset of the counter to 0."""
    last, before, seconds, some = _instant(windows)
    return np.where(last < before, last, last - before) / np.where(some, seconds, 1.0), some


def _extrapolated(*, counter: bool, per_second: bool = False) -> Callable[[Windows], Measured]:
    """Return the measure of PromQL's delta, or with `counter` of increase, and with `per_second` of rate."""

    def measure(windows: Windows) -> Measured:
        """Return the change from the first to the last value of each window, extrapolated to the window's ends."""
        some = windows.sizes > 1
        first = _taken(windows.values, windows.low, some)
        change = _taken(windows.values, windows.high - 1, some) - first
        if counter:
            before = _before(windows.values)
            change = change + windows.steps(np.where(windows.values < before, before, 0.0))
        begin = _taken(windows.ticks, windows.low, some)
        end = _taken(windows.ticks, windows.high - 1, some)
        sampled = np.where(some, end - begin, 1).astype(np.float64)
        mean = sampled / np.maximum(windows.sizes - 1, 1)
        to_start = (begin - (windows.times - windows.width)).astype(np.float64)
        to_end = (windows.times - end).astype(np.float64)
        to_start = np.where(to_start >= mean * 1.1, mean / 2, to_start)
        to_end = np.where(to_end >= mean * 1.1, mean / 2, to_end)
        if counter:
            rises = (change > 0) & (first >= 0)
            to_zero = sampled * (first / np.where(rises, change, 1.0))
            to_start = np.where(rises, np.minimum(to_start, to_zero), to_start)
        factor = (sampled + to_start + to_end) / sampled
        if per_second:
            factor = factor / (windows.width / windows.scale)
        return change * factor, some

    return measure


def _line(windows: Windows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each window's least-squares line the slope per second, its value at the window's point, and whether
    the line exists."""
    some, places = windows.sizes > 1, windows.places
    count = np.maximum(windows.sizes, 1)
    x = (windows.ticks[places] - windows.times[windows.owners]) / windows.scale
    y = windows.values[places]
    sum_x, sum_y, sum_xy, sum_xx = (windows.reduced(np.add, v) for v in (x, y, x * y, x * x))
    covariance = sum_xy - sum_x * sum_y / count
    variance = sum_xx - sum_x * sum_x / count
    slope = covariance / np.where(some, variance, 1.0)
    return slope, sum_y / count - slope * sum_x / count, some


def _slope(windows: Windows) -> Measured:
    """Return the slope per second of each window's least-squares line (PromQL deriv)."""
    slope, _, some = _line(windows)
    return slope, some


def _predicted(windows: Windows) -> Measured:
    """Return the value of each window's least-squares line `offset` seconds after its point (PromQL predict_linear)."""
    slope, level, some = _line(windows)
    return slope * windows.offset + level, some


def _counted(compare: np.ufunc) -> Callable[[Windows], Measured]:
    """Return the measure of how many steps inside a window `compare` holds for: changes or counter resets."""

    def measure(windows: Windows) -> Measured:
        """Return the number of such steps in each window; a step from NaN to NaN is not one."""
        values, before = windows.values, _before(windows.values)
        changed = compare(values, before) & ~(np.isnan(values) & np.isnan(before))
        return windows.steps(changed.astype(np.float64)), windows.sizes > 0

    return measure


MEASURES: Mapping[str, Callable[[Windows], Measured]] = {
    "Avg": _average,
    "Changes": _counted(np.not_equal),
    "Count": _count,
    "Delta": _extrapolated(counter=False),
    "Deriv": _slope,
    "Increase": _extrapolated(counter=True),
    "InstantDelta": _instant_delta,
    "InstantRate": _instant_rate,
    "Last": _last,
    "Max": _reducing(np.fmax),
    "Min": _reducing(np.fmin),
    "PredictLinear": _predicted,
    "Rate": _extrapolated(counter=True, per_second=True),
    "ResampleToGridWithStaleness": _last,
    "Resets": _counted(np.less),
    "Sum": _reducing(np.add),
    "TimestampOfMax": _time_of(np.fmax),
    "TimestampOfMin": _time_of(np.fmin),
}
"""The measures by what follows `timeSeries` in a name, without `ToGrid`."""
