"""Net present values and internal rates of return of cash flows, computed once for each distinct
row; see `by_value`.

Sources: the formulas NPV = sum of c_i / (1 + r)^t_i, and Newton's method with bisection behind it for
the rate at which it is 0.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence

from olapdb.errors import IllegalTypeOfArgument
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.scalar import ScalarDefinition, TypeRule, illegal, require
from olapdb.types import FLOAT64, Array, Boolean, DataType, Date, Date32, Float, Integer, String

_DAYS_IN_YEAR = {"ACT_365F": 365.0, "ACT_365_25": 365.25}
_ITERATIONS_MAX = 100
_PRECISION = 1e-12


def _rule(*, rate: bool, dated: bool) -> TypeRule:
    """Return the type rule of a function of cash flows (array of numbers), with a Float64 result.

    `rate`: a rate stands before the flows. `dated`: an array of dates stands behind them."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return Float64; raise IllegalTypeOfArgument unless the arguments are as `_rule` says."""
        rest = list(types)
        if rate:
            require(name, [rest.pop(0)], Float, "a Float as the rate")
        flows = rest.pop(0)
        numbers = isinstance(flows, Array) and isinstance(flows.inner, Integer | Float)
        if not numbers or (isinstance(flows, Array) and str(flows.inner) in ("UInt8", "UInt16")):
            raise illegal(name, flows, "an Array of signed numbers as the cash flow")
        if dated:
            dates = rest.pop(0)
            if not isinstance(dates, Array) or not isinstance(dates.inner, Date | Date32):
                raise illegal(name, dates, "an Array of dates")
        if not rate and rest:
            require(name, [rest.pop(0)], Float, "a Float as the guess")
        if rest:
            kinds = String if dated else (Boolean, Integer)
            require(name, [rest.pop(0)], kinds, "a day count" if dated else "a Bool")
        return FLOAT64

    return rule


def _value(rate: float, flows: Sequence[float], times: Sequence[float]) -> float:
    """Return the net present value of cash flows at times in periods; NaN at a rate of -1."""
    if rate <= -1:
        return math.nan
    total = 0.0
    for flow, time in zip(flows, times, strict=True):
        total += flow / (1 + rate) ** time
    return total


def _slope(rate: float, flows: Sequence[float], times: Sequence[float]) -> float:
    """Return the derivative of the net present value by the rate."""
    terms = zip(flows, times, strict=True)
    return math.fsum(-time * flow / (1 + rate) ** (time + 1) for flow, time in terms)


def _rate_of_return(flows: Sequence[float], times: Sequence[float], guess: float) -> float:
    """Return the rate at which the net present value is 0: by Newton's method from `guess`, else by bisection. NaN
    unless there are flows above and below 0."""
    if not any(flow > 0 for flow in flows) or not any(flow < 0 for flow in flows):
        return math.nan
    rate = guess
    for _ in range(_ITERATIONS_MAX):
        slope = _slope(rate, flows, times)
        if not slope:
            break
        step = _value(rate, flows, times) / slope
        rate -= step
        if not math.isfinite(rate) or rate <= -1:
            break
        if abs(step) < _PRECISION:
            return rate
    return _bisected(flows, times)


def _bisected(flows: Sequence[float], times: Sequence[float]) -> float:
    """Return a rate between -1 and 100 at which the net present value is 0; NaN if it has one sign."""
    low, high = -0.999999, 100.0
    at_low = _value(low, flows, times)
    if at_low * _value(high, flows, times) > 0:
        return math.nan
    for _ in range(2 * _ITERATIONS_MAX):
        middle = (low + high) / 2
        if _value(middle, flows, times) * at_low > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _periods(flows: Sequence[float]) -> list[float]:
    """Return the times 0, 1, 2 … of cash flows."""
    return [float(at) for at in range(len(flows))]


def _years(
    flows: Sequence[float], dates: Sequence[datetime.date], day_count: bytes = b"ACT_365F"
) -> list[float]:
    """Return the times of cash flows in years since the first date, by the day count convention.

    Raises IllegalTypeOfArgument for an unknown convention and for lists of different lengths."""
    days = _DAYS_IN_YEAR.get(day_count.decode("utf-8", "replace"))
    if days is None:
        raise IllegalTypeOfArgument(
            f"The day count is one of {', '.join(_DAYS_IN_YEAR)}, not {day_count.decode()!r}."
        )
    if len(flows) != len(dates):
        raise IllegalTypeOfArgument("The cash flow and its dates are of one size in each row.")
    return [(date - dates[0]).days / days for date in dates]


def _present(rate: float, flows: list[float], starts_now: object = True) -> float:
    """Return the net present value of flows one period apart; unless `starts_now` the first flow is one period away.

    Raises IllegalTypeOfArgument."""
    if not flows:
        raise IllegalTypeOfArgument("The cash flow must not be empty.")
    later = 0.0 if starts_now else 1.0
    return _value(rate, flows, [time + later for time in _periods(flows)])


def _present_dated(
    rate: float, flows: list[float], dates: list[datetime.date], *day_count: bytes
) -> float:
    """Return the net present value of cash flows at dates. Raises IllegalTypeOfArgument."""
    if not flows:
        raise IllegalTypeOfArgument("The cash flow must not be empty.")
    return _value(rate, flows, _years(flows, dates, *day_count))


def _return(flows: list[float], guess: float = 0.1) -> float:
    """Return the internal rate of return of cash flows one period apart; NaN if there is none."""
    return _rate_of_return(flows, _periods(flows), guess)


def _return_dated(
    flows: list[float], dates: list[datetime.date], guess: float = 0.1, *day_count: bytes
) -> float:
    """Return the internal rate of return of cash flows at dates; NaN if there is none."""
    return _rate_of_return(flows, _years(flows, dates, *day_count), guess)


_FUNCTIONS: tuple[tuple[str, TypeRule, Callable[..., float], tuple[int, int]], ...] = (
    ("financialNetPresentValue", _rule(rate=True, dated=False), _present, (2, 3)),
    ("financialNetPresentValueExtended", _rule(rate=True, dated=True), _present_dated, (3, 4)),
    ("financialInternalRateOfReturn", _rule(rate=False, dated=False), _return, (1, 2)),
    ("financialInternalRateOfReturnExtended", _rule(rate=False, dated=True), _return_dated, (2, 4)),
)

DEFINITIONS: tuple[ScalarDefinition, ...] = tuple(
    define_by_value(name, rule, function, count=count) for name, rule, function, count in _FUNCTIONS
)
