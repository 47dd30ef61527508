"""Window functions of series in time: values that decay, and the rate at which a value grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, CannotConvertType, IllegalTypeOfArgument
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.window_definitions import Frames, WindowDefinition, WindowFunction
from olapdb.types import (
    FLOAT64,
    Boolean,
    DataType,
    DateTime,
    DateTime64,
    Decimal,
    Float,
    Integer,
    Interval,
)

_NUMBERS = Integer | Float | Decimal | Boolean
_TIMES = DateTime | DateTime64
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS = {
    "Nanosecond": 1e-9,
    "Microsecond": 1e-6,
    "Millisecond": 1e-3,
    "Second": 1.0,
    "Minute": 60.0,
    "Hour": 3600.0,
    "Day": 86400.0,
    "Week": 604800.0,
}


def _require(place: int, data_type: DataType, *, time: bool, number: bool) -> None:
    """Raise BadArguments unless argument number `place` is of a type that the flags allow: a time, a number, or
    either."""
    fits = (time and isinstance(data_type, _TIMES)) or (number and isinstance(data_type, _NUMBERS))
    if not fits:
        kinds = ["DateTime or DateTime64"] * time + ["a number"] * number
        raise BadArguments(f"Argument {place} must be {' or '.join(kinds)}, not {data_type}.")


def _floats(array: pa.Array) -> np.ndarray:
    """Convert numbers to float64, times to seconds since 1970 as float64."""
    if pa.types.is_timestamp(array.type):
        ticks = columns.numpy_values(array.cast(pa.int64())).astype(np.float64)
        return ticks / _TICKS[array.type.unit]
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    return columns.numpy_values(array).astype(np.float64)


# --- decay


class _Decay:
    """The exponential decay of values over time: by the factor e for each `length` of time."""

    def __init__(self, times: np.ndarray, length: float) -> None:
        """Keep the times of the rows and the length, both in seconds or in the unit of the numbers."""
        self._times, self._length = times, np.float64(length)

    def factors(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        """Return the share, 0 to 1, that is left of the weight of the rows `earlier` at the rows `later`."""
        return np.asarray(np.exp((self._times[earlier] - self._times[later]) / self._length))

    def combined(
        self, values: np.ndarray, frames: Frames, join: Callable[..., np.ndarray], empty: float
    ) -> np.ndarray:
        """Return for each frame its values, decayed until the frame's last row, joined by a ufunc such as np.add;
        `empty` for an empty frame.

        A table holds for each row the join of the 2^k rows that end there, decayed until that row. Each frame is the
        join of such runs, one for each bit of its number of rows. No product can overflow, as prefix sums of growing
        exponentials would."""
        lengths = np.maximum(frames.ends - frames.starts, 0)
        last = np.maximum(frames.ends - 1, 0)
        places, result = last.copy(), np.full(len(values), empty)
        filled = np.zeros(len(values), bool)
        run, rows = 1, np.arange(len(values))
        while run <= int(lengths.max(initial=0)):
            chosen = np.flatnonzero(lengths & run)
            part = values[places[chosen]] * self.factors(places[chosen], last[chosen])
            result[chosen] = np.where(filled[chosen], join(result[chosen], part), part)
            filled[chosen] = True
            places[chosen] -= run
            before = np.maximum(rows - run, 0)
            joined = join(values, values[before] * self.factors(before, rows))
            values = np.where(rows >= run, joined, values)
            run *= 2
        return result


def _decayed(name: str, *, has_value: bool) -> WindowDefinition:
    """Define an exponentialTimeDecayed… function of (length)(value, time), or without `has_value` of (length)(time)."""

    def resolve(spelt: str, arguments: Sequence[Argument]) -> WindowFunction:
        """Resolve the function; raise CannotConvertType for a length that is no number."""
        constant = arguments[0].constant
        length = constant.as_py() if constant is not None else None
        if length is None or isinstance(length, str):
            raise CannotConvertType(f"The parameter of {spelt} is a number, not {length!r}.")
        types = [argument.type for argument in arguments[1:]]
        if has_value:
            _require(0, types[0], time=False, number=True)
        _require(len(types) - 1, types[-1], time=True, number=True)

        def kernel(values: Sequence[pa.Array], frames: Frames) -> pa.Array:
            """Return the decayed sum, count, average or maximum of each row's frame."""
            decay = _Decay(_floats(values[-1]), float(length))
            numbers = _floats(values[0]) if has_value else np.ones(frames.rows)
            with np.errstate(all="ignore"):
                if spelt.endswith("Max"):
                    result = decay.combined(numbers, frames, np.maximum, np.nan)
                else:
                    result = decay.combined(numbers, frames, np.add, 0.0)
                if spelt.endswith("Avg"):
                    ones = np.ones(frames.rows)
                    result = result / decay.combined(ones, frames, np.add, 0.0)
            return columns.from_values(result, pa.float64())

        return WindowFunction(spelt, FLOAT64, kernel)

    count = 2 if has_value else 1
    return WindowDefinition(name, resolve, count, count, parameters=1)


# --- rates


def _derivative(name: str, arguments: Sequence[Argument]) -> WindowFunction:
    """Resolve nonNegativeDerivative(value, time[, interval]): the growth of the value since the partition's previous
    row, per interval (a second by default).

    It is 0 for the first row, and where the value fell or time did not pass."""
    _require(0, arguments[0].type, time=False, number=True)
    _require(1, arguments[1].type, time=True, number=False)
    seconds = _seconds(name, arguments[2]) if len(arguments) > 2 else 1.0

    def kernel(values: Sequence[pa.Array], frames: Frames) -> pa.Array:
        """Return the rate of each row; 0 for the first one of a partition."""
        numbers, times = _floats(values[0]), _floats(values[1])
        before = np.maximum(frames.positions - 1, frames.partition_starts)
        passed = times - times[before]
        with np.errstate(all="ignore"):
            rates = (numbers - numbers[before]) * seconds / passed
        return columns.from_values(np.where((passed > 0) & (rates > 0), rates, 0.0), pa.float64())

    return WindowFunction(name, FLOAT64, kernel)


def _seconds(name: str, interval: Argument) -> float:
    """Return the length in seconds of a constant interval whose unit is a week or shorter. Raises BadArguments and
    IllegalTypeOfArgument."""
    if not isinstance(interval.type, Interval):
        raise BadArguments(f"Argument 2 of {name} must be an INTERVAL, not {interval.type}.")
    if interval.type.unit not in _SECONDS:
        raise IllegalTypeOfArgument(
            f"The INTERVAL of {name} is of weeks or shorter units, not {interval.type}."
        )
    if interval.constant is None:
        raise BadArguments(f"The INTERVAL of {name} must be constant.")
    return float(interval.constant.as_py()) * _SECONDS[interval.type.unit]


SERIES: tuple[WindowDefinition, ...] = (
    _decayed("exponentialTimeDecayedSum", has_value=True),
    _decayed("exponentialTimeDecayedAvg", has_value=True),
    _decayed("exponentialTimeDecayedMax", has_value=True),
    _decayed("exponentialTimeDecayedCount", has_value=False),
    WindowDefinition("nonNegativeDerivative", _derivative, 2, 3),
)
