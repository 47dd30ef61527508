"""Arrow's durations and times of day as the ticks of a Time64, also inside lists, structs and maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import CannotConvertType, ValueOutOfBound
from olapdb.functions.kernels.clocks import SECONDS_MAX
from olapdb.types import Time64

_PRECISIONS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def clock_of(kind: pa.DataType) -> Time64 | None:
    """Return the Time64 type that holds values of an Arrow duration or time of day; None for other Arrow types."""
    return Time64(_PRECISIONS[kind.unit]) if _is_clock(kind) else None


def as_integers(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Replace durations and times of day, also nested ones, by int64."""
    narrow = _with_leaves(column.type, _own_width)
    if narrow == column.type:
        return column
    return column.cast(narrow).cast(_with_leaves(column.type, lambda kind: pa.int64()))


def ticks_of(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Replace durations and times of day, also nested ones, by ticks of Time64. Raises CannotConvertType for a
    duration beyond ±999:59:59.9…."""
    if has_durations(column.type):
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            for leaf in _durations(chunk):
                _refuse_beyond(leaf)
    return as_integers(column)


def has_durations(kind: pa.DataType) -> bool:
    """Return whether the type is a duration or contains one."""
    return bool(_with_leaves(kind, _time_of_day) != kind)


def time_of_day_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with each duration replaced by the time of day of the same unit."""
    return _with_leaves(kind, _time_of_day)


def times_of_day(array: pa.Array) -> pa.Array:
    """Replace durations, also nested ones, by times of day. Raises ValueOutOfBound for a duration below 0 or of 24
    hours or more."""
    for leaf in _durations(array):
        ends = pc.min_max(leaf.cast(pa.int64()))
        day = _DAY_SECONDS * 10 ** _PRECISIONS[leaf.type.unit]
        if ends["min"].is_valid and not 0 <= ends["min"].as_py() <= ends["max"].as_py() < day:
            raise ValueOutOfBound(
                "Arrow's times are times of day: a value below 0 or from 24:00:00 on is none.",
                hint="Write it as toString(…).",
            )
    whole = array.cast(_with_leaves(array.type, lambda kind: pa.int64()))
    narrow = _with_leaves(array.type, lambda kind: _own_width(_time_of_day(kind)))
    return whole.cast(narrow).cast(time_of_day_type(array.type))


_DAY_SECONDS = 86_400


def _time_of_day(kind: pa.DataType) -> pa.DataType:
    """Return the time-of-day type of a duration's unit; return a time of day unchanged."""
    if not pa.types.is_duration(kind):
        return kind
    return pa.time32(kind.unit) if kind.unit in ("s", "ms") else pa.time64(kind.unit)


def _is_clock(kind: pa.DataType) -> bool:
    """Return whether the type is a duration or a time of day."""
    return bool(pa.types.is_duration(kind) or pa.types.is_time(kind))


def _own_width(kind: pa.DataType) -> pa.DataType:
    """Return the integer type that is as wide as a type of times: Arrow casts between no others."""
    return pa.int32() if pa.types.is_time32(kind) else pa.int64()


def _with_leaves(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return the type with `leaf` applied to each duration and time of day in it."""
    if _is_clock(kind):
        return leaf(kind)
    if pa.types.is_map(kind):
        return pa.map_(_with_leaves(kind.key_type, leaf), _with_leaves(kind.item_type, leaf))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_leaves(kind.value_type, leaf)))
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return pa.struct([f.with_type(_with_leaves(f.type, leaf)) for f in fields])
    return kind


def _durations(array: pa.Array) -> Iterator[pa.Array]:
    """Yield all arrays of durations in an array, itself included."""
    kind = array.type
    if pa.types.is_duration(kind):
        yield array
    elif pa.types.is_map(kind):
        yield from _durations(array.keys)
        yield from _durations(array.items)
    elif pa.types.is_list(kind):
        yield from _durations(array.flatten())
    elif pa.types.is_struct(kind):
        for field in array.flatten():
            yield from _durations(field)


def _refuse_beyond(durations: pa.Array) -> None:
    """Raise CannotConvertType for the first duration that is out of Time64's range; do nothing if there is none."""
    most = (SECONDS_MAX + 1) * 10 ** _PRECISIONS[durations.type.unit] - 1
    ticks = durations.cast(pa.int64())
    ends = pc.min_max(ticks)
    if ends["max"].as_py() is None or (
        -most <= ends["min"].as_py() and ends["max"].as_py() <= most
    ):
        return
    bad = pc.greater(pc.abs_checked(pc.max_element_wise(ticks, -(2**62))), most)
    row = pc.index(bad, True).as_py()
    raise CannotConvertType(
        f"A duration of {ticks[row]} {durations.type.unit} is beyond 999:59:59, the most of a Time."
    ).at_row(row)
