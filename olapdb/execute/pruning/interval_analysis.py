"""Interval analysis of conditions, to find the parts and row groups that need not be read.

All candidates (parts, or row groups) are judged at once: the bounds of a column over N candidates are
two Arrow arrays of N values, compared by the kernels that the filter uses.  So pruning and filtering
agree on the meaning of `<` for each type.

The answer for a candidate is a pair: can the condition be true for one of its rows, can it be false.
NULL is neither.  An expression that the analysis does not know can be both.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import broadcast, single_chunk
from olapdb.compute.context import Subqueries
from olapdb.compute.hash_table import Lookup
from olapdb.config import tuning
from olapdb.errors import Error
from olapdb.functions import resolve_scalar
from olapdb.functions.base import Argument, Environment
from olapdb.functions.kernels import columns
from olapdb.model.part import ColumnBounds
from olapdb.plan.expressions import (
    Call,
    Cast,
    ColumnRef,
    Constant,
    Expression,
    InSubquery,
    InValues,
    ScalarSubquery,
)
from olapdb.records import dataclass
from olapdb.types import DataType, Float, Integer, is_nullable, plain
from olapdb.types.arrow_values import TRUE, array_of, scalar_of, to_numpy

_INCREASING = frozenset({"greater", "greaterOrEquals"})
_ORDERED = _INCREASING | {"less", "lessOrEquals"}
_OF_NUMBERS: Mapping[str, np.ufunc] = {
    "greater": np.greater,
    "greaterOrEquals": np.greater_equal,
    "less": np.less,
    "lessOrEquals": np.less_equal,
}


@dataclass(frozen=True)
class ValueInterval:
    """Bounds of an expression over the candidates, both ends included.

    `low` and `high` have the expression's Arrow type, and no meaning where `has_values` is false.
    Where `known` is false, any value is possible.  `may_be_null`: a NULL is possible.
    """

    low: pa.Array
    high: pa.Array
    known: np.ndarray
    has_values: np.ndarray
    may_be_null: np.ndarray


@dataclass(frozen=True)
class Candidates:
    """The known bounds over `count` candidates: of columns, by their name in the condition, and of
    whole expressions (a partition's value)."""

    count: int
    columns: Mapping[str, ValueInterval]
    expressions: Sequence[tuple[Expression, ValueInterval]] = ()


@dataclass(frozen=True)
class Possible:
    """Whether a condition can be true, and can be false, for a row of each candidate."""

    true: np.ndarray
    false: np.ndarray


def interval_of_bounds(
    bounds: Sequence[ColumnBounds | None], data_type: DataType
) -> ValueInterval | None:
    """Return the bounds of one column over the candidates, None if all are unknown."""
    count = len(bounds)
    known = np.array([b is not None for b in bounds], bool)
    if not known.any():
        return None
    lows = [None if b is None else b[0] for b in bounds]
    highs = [None if b is None else b[1] for b in bounds]
    has_values = np.array([low is not None for low in lows], bool)
    nulls = np.array([b is None or b[2] > 0 for b in bounds], bool)
    if isinstance(plain(data_type), Float):
        known &= has_values  # no bounds but no NULL either: NaN
    filler = next((low for low in lows if low is not None), None)
    if filler is None:
        arrow = pa.nulls(count, data_type.arrow)
        return ValueInterval(arrow, arrow, known, has_values, nulls)
    low = array_of([filler if v is None else v for v in lows], data_type.arrow)
    high = array_of([filler if v is None else v for v in highs], data_type.arrow)
    return ValueInterval(low, high, known, has_values, nulls)


def keep_candidates(
    condition: Expression,
    candidates: Candidates,
    environment: Environment,
    subqueries: Subqueries | None = None,
) -> np.ndarray:
    """Return a mask of the candidates that may have a row which the condition keeps; bool, shape
    (count,)."""
    return _Analysis(candidates, environment, subqueries or {}).possible(condition).true


def is_restricted(condition: Expression, candidates: Candidates, environment: Environment) -> bool:
    """Return whether the known bounds can decide the condition, judged by its form.

    A conjunction needs one such part, a disjunction needs all."""
    return _Analysis(candidates, environment, {}).restricts(condition)


class _Analysis:
    """A judge of conditions on candidates (parts or row groups) by the bounds of columns."""

    def __init__(
        self, candidates: Candidates, environment: Environment, subqueries: Subqueries
    ) -> None:
        self._candidates = candidates
        self._environment = environment
        self._subqueries = subqueries
        self._anything = Possible(np.ones(candidates.count, bool), np.ones(candidates.count, bool))

    def possible(self, condition: Expression) -> Possible:
        """Return whether the condition can be true, and false, for each candidate."""
        match condition:
            case Call(name="and", arguments=arguments):
                each = [self.possible(a) for a in arguments]
                return Possible(
                    np.logical_and.reduce([p.true for p in each]),
                    np.logical_or.reduce([p.false for p in each]),
                )
            case Call(name="or", arguments=arguments):
                each = [self.possible(a) for a in arguments]
                return Possible(
                    np.logical_or.reduce([p.true for p in each]),
                    np.logical_and.reduce([p.false for p in each]),
                )
            case Call(name="not", arguments=(argument,)):
                inner = self.possible(argument)
                return Possible(inner.false, inner.true)
            case Call(name="isNull", arguments=(argument,)):
                return self._is_null(argument)
            case Call(name="isNotNull", arguments=(argument,)):
                inner = self._is_null(argument)
                return Possible(inner.false, inner.true)
            case Call(name=name, arguments=(_, _)) if name in _ORDERED:
                return self._ordered(condition)
            case Call(name="equals", arguments=(_, _)):
                return self._equal(condition)
            case Call(name="notEquals", arguments=(_, _)):
                inner = self._equal(condition)
                return Possible(inner.false, inner.true)
            case Call(name="like" | "startsWith", arguments=(_, _)):
                return self._prefix(condition)
            case InValues(argument=argument, values=values, negated=negated):
                inner = self._in(argument, single_chunk(values))
                return Possible(inner.false, inner.true) if negated else inner
            case InSubquery(arguments=(argument,), number=number, negated=negated):
                members = self._subqueries.get(number)
                if not isinstance(members, Lookup):
                    return self._anything
                inner = self._in(argument, members.values(0))
                return Possible(inner.false, inner.true) if negated else inner
            case Constant() | ScalarSubquery():
                return self._constant_condition(condition)
            case _:
                return self._anything

    def restricts(self, condition: Expression) -> bool:
        """Return whether the known bounds can decide the condition, judged by its form."""
        match condition:
            case Call(name="and", arguments=arguments):
                return any(self.restricts(a) for a in arguments)
            case Call(name="or", arguments=arguments):
                return all(self.restricts(a) for a in arguments)
            case Call(name="not", arguments=(argument,)):
                return self.restricts(argument)
            case Call(name="isNull" | "isNotNull", arguments=(argument,)):
                return self._interval(argument) is not None
            case Call(name="notEquals", arguments=(_, _)):
                return self._equal(condition) is not self._anything
            case InValues(argument=argument, values=values):
                return self._in(argument, single_chunk(values)) is not self._anything
            case InSubquery(arguments=(argument,)):  # it has not run yet
                return self._interval(argument) is not None
            case Call(name=name, arguments=(left, right)) if name in _ORDERED | {"equals"} and (
                isinstance(left, ScalarSubquery) or isinstance(right, ScalarSubquery)
            ):
                return self._interval(left) is not None or self._interval(right) is not None
            case Constant() | ScalarSubquery():
                return False
            case _:
                return self.possible(condition) is not self._anything

    # --- conditions

    def _constant_condition(self, condition: Expression) -> Possible:
        """Judge a condition that reads no column; an unknown constant can be both."""
        value = self._constant(condition)
        if value is None:
            return self._anything
        answer = value.as_py()
        full = np.ones(self._candidates.count, bool)
        return Possible(full & bool(answer), full & (answer is not None and not answer))

    def _is_null(self, argument: Expression) -> Possible:
        """Judge `x IS NULL`: true where x may have NULLs, false where it has values."""
        interval = self._interval(argument)
        if interval is None:
            return self._anything
        unknown = ~interval.known
        return Possible(unknown | interval.may_be_null, unknown | interval.has_values)

    def _ordered(self, call: Call) -> Possible:
        """Judge `x < c` and other orders: they are monotonic in x, so the bounds of x decide."""
        sides = self._sides(call)
        if sides is None:
            return self._anything
        interval, constant, interval_first = sides
        grows = (call.name in _INCREASING) == interval_first
        numbers = self._as_numbers(call, interval, constant)
        if numbers is None:
            at_low = self._compared(call, interval.low, interval_first)
            at_high = self._compared(call, interval.high, interval_first)
        else:
            lows, highs, number = numbers
            compare = _OF_NUMBERS[call.name]
            at_low = compare(lows, number) if interval_first else compare(number, lows)
            at_high = compare(highs, number) if interval_first else compare(number, highs)
        if at_low is None or at_high is None:
            return self._anything
        most, least = (at_high, at_low) if grows else (at_low, at_high)
        return self._within(interval, most, ~least)

    def _equal(self, call: Call) -> Possible:
        """Judge `x = c`: true if c is within the bounds of x, false unless both bounds equal c."""
        sides = self._sides(call)
        if sides is None:
            return self._anything
        interval, constant, interval_first = sides
        numbers = self._as_numbers(call, interval, constant)
        if numbers is not None:
            lows, highs, number = numbers
            is_within = (lows <= number) & (highs >= number)
            return self._within(interval, is_within, ~((lows >= number) & (highs <= number)))
        if not interval_first:
            call = Call(call.type, call.name, (call.arguments[1], constant), call.function)
        low = self._compared(self._as("lessOrEquals", call), interval.low, True)
        high = self._compared(self._as("greaterOrEquals", call), interval.high, True)
        at_low = self._compared(self._as("greaterOrEquals", call), interval.low, True)
        at_high = self._compared(self._as("lessOrEquals", call), interval.high, True)
        if low is None or high is None or at_low is None or at_high is None:
            return self._anything
        return self._within(interval, low & high, ~(at_low & at_high))  # NaN equals nothing

    def _prefix(self, call: Call) -> Possible:
        """Judge `x LIKE 'abc%'`: x is from 'abc' to the last text that begins with it."""
        argument, pattern = call.arguments
        interval, constant = self._interval(argument), self._constant(pattern)
        if interval is None or constant is None or not pa.types.is_string(interval.low.type):
            return self._anything
        if not constant.is_valid or not pa.types.is_string(constant.type):
            return self._anything
        text = bytes(constant.as_buffer())
        prefix = text if call.name == "startsWith" else _literal_prefix(text)
        if not prefix:
            return self._anything
        starts = pc.binary_slice(columns.binary(interval.low), 0, len(prefix))
        can = pc.and_(
            pc.less_equal(starts, scalar_of(prefix, pa.binary())),
            pc.greater_equal(columns.binary(interval.high), scalar_of(prefix, pa.binary())),
        )
        return self._within(interval, _booleans(can), self._anything.false)

    def _in(self, argument: Expression, values: pa.Array) -> Possible:
        """Judge `x IN values`: true if a value is within the bounds of x.

        More than LISTED_VALUES_MAX values count as the range from the least to the greatest.
        """
        interval = self._interval(argument)
        if interval is None or pa.types.is_nested(values.type):
            return self._anything
        if values.type != interval.low.type:
            return self._anything
        values = pc.drop_null(values)
        floating = pa.types.is_floating(values.type)
        if floating and pc.any(pc.is_nan(values)).as_py():
            return self._anything
        if len(values) and _is_whole(values.type):
            return self._in_whole_numbers(interval, values)
        lows, highs = _ordinals(interval.low), _ordinals(interval.high)
        if len(values) > tuning.LISTED_VALUES_MAX:
            ends = pc.min_max(values)
            least, greatest = (_ordinals(pa.array([ends[end]]))[0] for end in ("min", "max"))
            bounds = zip(lows, highs, interval.has_values, strict=True)
            can = [has and low <= greatest and least <= high for low, high, has in bounds]
            return self._within(interval, np.array(can, bool), self._anything.false)
        keys = sorted(_ordinals(values))
        signed = floating and 0.0 in keys  # in a set -0.0 is not 0.0
        true = np.zeros(self._candidates.count, bool)
        false = np.ones(self._candidates.count, bool)
        for at, (low, high) in enumerate(zip(lows, highs, strict=True)):
            next_key = bisect.bisect_left(keys, low) if interval.has_values[at] else len(keys)
            true[at] = next_key < len(keys) and keys[next_key] <= high
            false[at] = signed or not (true[at] and low == high)
        return self._within(interval, true, false)

    def _in_whole_numbers(self, interval: ValueInterval, values: pa.Array) -> Possible:
        """Judge `x IN values` for integers, days and times, of which there is one at least."""
        keys = _whole_numbers(values)
        lows, highs = _whole_numbers(interval.low), _whole_numbers(interval.high)
        if len(keys) > tuning.LISTED_VALUES_MAX:
            true = (lows <= keys.max()) & (keys.min() <= highs)
            return self._within(interval, true, self._anything.false)
        keys = np.sort(keys)
        following = np.searchsorted(keys, lows)
        true = (following < len(keys)) & (keys[np.minimum(following, len(keys) - 1)] <= highs)
        return self._within(interval, true, ~(true & (lows == highs)))

    def _within(self, interval: ValueInterval, true: np.ndarray, false: np.ndarray) -> Possible:
        """Return the answer where the interval is known, and "can be both" elsewhere.

        Candidates without values can be neither."""
        unknown = ~interval.known
        return Possible(
            unknown | (true & interval.has_values), unknown | (false & interval.has_values)
        )

    def _as_numbers(
        self, call: Call, interval: ValueInterval, constant: Expression
    ) -> tuple[np.ndarray, np.ndarray, int] | None:
        """Return the bounds and the constant of a comparison as numbers where both are integers of at most 64 bits
        without NULL: these compare as numbers, whatever their types. None for others."""
        if not all(isinstance(plain(argument.type), Integer) for argument in call.arguments):
            return None
        value = self._constant(constant)
        if value is None or not value.is_valid or interval.low.null_count:
            return None
        if not (pa.types.is_integer(interval.low.type) and pa.types.is_integer(value.type)):
            return None
        return to_numpy(interval.low), to_numpy(interval.high), value.as_py()

    # --- operands

    def _sides(self, call: Call) -> tuple[ValueInterval, Expression, bool] | None:
        """Return the interval, the constant, and whether the interval is the first argument.

        Returns None unless one side is constant and the other has an interval."""
        left, right = call.arguments
        if self._constant(right) is not None:
            interval = self._interval(left)
            return None if interval is None else (interval, right, True)
        if self._constant(left) is not None:
            interval = self._interval(right)
            return None if interval is None else (interval, left, False)
        return None

    def _compared(self, call: Call, end: pa.Array, interval_first: bool) -> np.ndarray | None:
        """Return the comparison of each bound in `end` with the constant; None if it is unknown.

        It is unknown if the constant or a bound is NULL, or if the comparison raises.
        """
        constant = self._constant(call.arguments[1 if interval_first else 0])
        if constant is None or not constant.is_valid or end.null_count:
            return None
        arguments = [end, constant] if interval_first else [constant, end]
        try:
            value = call.function.kernel(arguments, len(end), self._environment)
        except Error:  # the filter will raise it, if a row is read
            return None
        return _booleans(broadcast(value, len(end), call.type))

    def _as(self, name: str, call: Call) -> Call:
        """Return the comparison `name` of the call's arguments."""
        arguments = [Argument(a.type, self._constant(a)) for a in call.arguments]
        function = resolve_scalar(name, arguments)
        return Call(function.type, name, call.arguments, function)

    def _constant(self, expression: Expression) -> pa.Scalar | None:
        """Return the value of a constant or of a scalar subquery that has run, else None."""
        match expression:
            case Constant(value=value):
                return value
            case ScalarSubquery(number=number):
                answer = self._subqueries.get(number)
                return None if answer is None or isinstance(answer, Lookup) else answer
            case _:
                return None

    def _interval(self, expression: Expression) -> ValueInterval | None:
        """Return the bounds of an expression over the candidates, None if they are unknown."""
        for known_expression, interval in self._candidates.expressions:
            if known_expression == expression:
                return interval
        match expression:
            case ColumnRef(name=name):
                return self._candidates.columns.get(name)
            case Cast(type=target, argument=argument) if _keeps_order(argument.type, target):
                return self._cast(argument, target)
            case Call(arguments=arguments) if self._is_monotonic(expression):
                return self._monotonic(expression, arguments)
            case _:
                return None

    def _cast(self, argument: Expression, target: DataType) -> ValueInterval | None:
        """Return the argument's interval with its bounds cast to `target`; None if it has none."""
        inner = self._interval(argument)
        if inner is None:
            return None
        low, high = inner.low.cast(target.arrow), inner.high.cast(target.arrow)
        return ValueInterval(low, high, inner.known, inner.has_values, inner.may_be_null)

    def _is_monotonic(self, call: Call) -> bool:
        """Return whether the function never decreases.

        Its definition says so; intDiv does not decrease if the divisor is a constant above 0.
        """
        if call.name == "intDiv":
            divisor = self._constant(call.arguments[1])
            return divisor is not None and divisor.is_valid and divisor.as_py() > 0
        return call.function.monotonic

    def _monotonic(self, call: Call, arguments: Sequence[Expression]) -> ValueInterval | None:
        """Return the interval f(low) to f(high) of a monotonic call with one argument not constant.

        Returns None if the argument's bounds are unknown, if the call raises or gives NULL, or if
        f(low) is above f(high).
        """
        variables = [at for at, a in enumerate(arguments) if self._constant(a) is None]
        if len(variables) != 1:
            return None
        (variable,) = variables
        inner = self._interval(arguments[variable])
        if inner is None or inner.low.null_count:
            return None
        ends = []
        for end in (inner.low, inner.high):
            values = [
                end if at == variable else self._constant(a) for at, a in enumerate(arguments)
            ]
            try:
                result = call.function.kernel(values, len(end), self._environment)
            except Error:
                return None
            ends.append(broadcast(result, len(end), call.type))
        if any(end.null_count for end in ends):
            return None
        if pc.any(pc.greater(ends[0], ends[1])).as_py():  # it wraps within the interval
            return None
        return ValueInterval(ends[0], ends[1], inner.known, inner.has_values, inner.may_be_null)


def _keeps_order(source: DataType, target: DataType) -> bool:
    """Return whether a cast never fails and never changes the order of values."""
    if is_nullable(source) and not is_nullable(target):
        return False
    ours, theirs = plain(source), plain(target)
    if ours == theirs:
        return True
    if isinstance(ours, Integer) and isinstance(theirs, Integer):
        return theirs.minimum <= ours.minimum and ours.maximum <= theirs.maximum
    if isinstance(ours, Integer) and isinstance(theirs, Float):
        return ours.bits <= 32 and theirs.bits == 64
    return isinstance(ours, Float) and isinstance(theirs, Float) and ours.bits <= theirs.bits


def _literal_prefix(pattern: bytes) -> bytes:
    """Return the start of a LIKE pattern up to its first %, _ or escape."""
    for at, character in enumerate(pattern):
        if character in b"%_\\":
            return pattern[:at]
    return pattern


def _booleans(value: pa.Array) -> np.ndarray:
    """Return a comparison's UInt8 (or Bool) as numpy booleans; NULL, which is unknown, as true."""
    if not pa.types.is_boolean(value.type):
        value = value.cast(pa.bool_())
    mask: np.ndarray = to_numpy(pc.fill_null(value, TRUE))
    return mask


def _ordinals(values: pa.Array) -> list[Any]:
    """Return Python values of the same order: days, ticks, numbers, bytes of text."""
    arrow = values.type
    if pa.types.is_string(arrow):
        values = columns.binary(values)
    elif pa.types.is_date32(arrow):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(arrow):
        values = values.view(pa.int64())
    ordinals: list[Any] = values.to_pylist()
    return ordinals


def _is_whole(arrow: pa.DataType) -> bool:
    """Return whether values of the type are integers of at most 64 bits, days or ticks."""
    return bool(
        pa.types.is_integer(arrow) or pa.types.is_date32(arrow) or pa.types.is_timestamp(arrow)
    )


def _whole_numbers(values: pa.Array) -> np.ndarray:
    """Return integers, days and ticks in the same order; 0 for NULL."""
    if pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.view(pa.int64())
    numbers: np.ndarray = to_numpy(values.fill_null(scalar_of(0, values.type)))
    return numbers
