"""Tuples of intervals: addInterval, addTupleOfIntervals, and what subtracts; timeSlots."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import IllegalColumn
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.composition import Term, as_call, call, literal, parts_of
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.scalar import (
    Invocation,
    ScalarDefinition,
    custom,
    illegal,
    require,
    standard_call,
)
from olapdb.types import (
    UINT8,
    UINT32,
    Array,
    DataType,
    DateTime,
    DateTime64,
    Decimal,
    Integer,
    Interval,
    Tuple,
    plain,
)


def _elements(whole: Term) -> list[Term]:
    """Compose the list of a tuple's elements."""
    kind = plain(whole.type)
    assert isinstance(kind, Tuple)
    places = range(1, len(kind.elements) + 1)
    return [call("tupleElement", whole, literal(at, UINT8)) for at in places]


def _joined(operation: str) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a resolver of addInterval or subtractInterval, by `operation` plus or minus.

    The call takes an interval or a tuple of intervals, and an interval; it gives a tuple of them."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call: the tuple's last interval grows if it has the same unit, else the interval is appended."""
        first, second = parts_of(arguments)
        require(name, [plain(second.type)], Interval, "an interval")
        kind = plain(first.type)
        if isinstance(kind, Tuple):
            require(name, kind.elements, Interval, "a Tuple of intervals")
            intervals = _elements(first)
        else:
            require(name, [kind], Interval, "an interval or a Tuple of intervals")
            intervals = [first]
        if intervals and plain(intervals[-1].type) == plain(second.type):
            intervals[-1] = call(operation, intervals[-1], second)
        else:
            intervals.append(second if operation == "plus" else call("negate", second))
        return as_call(name, call("tuple", *intervals))

    return resolve


def _moved(operation: str) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of addTupleOfIntervals or subtractTupleOfIntervals: (time, tuple of intervals)."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call: the intervals of the tuple are applied one after the other."""
        total, intervals = parts_of(arguments)
        kind = plain(intervals.type)
        require(name, [kind], Tuple, "a Tuple of intervals")
        for interval in _elements(intervals):
            require(name, [plain(interval.type)], Interval, "a Tuple of intervals")
            total = call(operation, total, interval)
        return as_call(name, total)

    return resolve


def _slots_type(name: str, arguments: Sequence[Argument]) -> DataType:
    """Return the type of the slots that timeSlots returns. Raises IllegalTypeOfArgument for arguments that it does
    not take."""
    kinds = [plain(argument.type) for argument in arguments]
    if isinstance(kinds[0], DateTime):
        if kinds[1] != UINT32:
            raise illegal(name, kinds[1], "a duration of UInt32")
        require(name, kinds[2:], Integer, "an integer as size")
        return kinds[0]
    require(name, kinds[:1], DateTime64, "a DateTime or DateTime64")
    require(name, kinds[1:], Decimal, "a Decimal64")
    assert isinstance(kinds[0], DateTime64)
    scales = [kind.scale for kind in kinds if isinstance(kind, Decimal)]
    return DateTime64(max(kinds[0].precision, *scales), kinds[0].zone)


def _time_slots(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve timeSlots(start, duration[, size]): the starts of all slots of `size` seconds that the span of time
    touches. Raises IllegalColumn."""
    slot = _slots_type(name, arguments)
    size: object = 1800
    if len(arguments) > 2:
        if arguments[2].constant is None:
            raise IllegalColumn(f"The third argument of {name} must be a constant.")
        size = arguments[2].constant.as_py()
    ticks = calendar.ticks_per_second(slot)
    step = int(float(str(size)) * ticks)
    if step <= 0:
        raise IllegalColumn(f"The third argument of {name} must be greater than zero.")

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Return for each row the array of the starts of its slots."""
        start = columns.numpy_values(arrays[0]).astype(np.int64)
        start = calendar.rescaled(start, calendar.ticks_per_second(call.types[0]), ticks)
        duration = _in_ticks(arrays[1], ticks)
        first, last = start // step, (start + duration) // step
        offsets = columns.offsets_from_counts(np.maximum(last - first + 1, 0))
        row = columns.parents_of(offsets)
        slots = (first[row] + np.arange(len(row)) - offsets[row]) * step
        return columns.lists_from(offsets, columns.from_values(slots, slot.arrow))

    return standard_call(name, arguments, Array(slot), kernel)


def _in_ticks(duration: pa.Array, ticks: int) -> np.ndarray:
    """Return seconds, integers or Decimals, as ticks, rounded to the nearest. `ticks` is how many a second has."""
    if pa.types.is_integer(duration.type):
        return columns.numpy_values(duration).astype(np.int64) * ticks
    exact = duration.cast(pa.decimal256(38, 9)).cast(pa.float64())
    return np.asarray(np.rint(columns.numpy_values(exact) * ticks), np.int64)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("addInterval", _joined("plus"), count=2),
    custom("subtractInterval", _joined("minus"), count=2),
    custom("addTupleOfIntervals", _moved("plus"), count=2),
    custom("subtractTupleOfIntervals", _moved("minus"), count=2),
    custom("timeSlots", _time_slots, count=(2, 3)),
)
