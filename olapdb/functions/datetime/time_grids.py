"""timeSeriesRange and timeSeriesFromGrid: the points of a grid of times, and values at them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments
from olapdb.functions import scalar
from olapdb.functions.arrays.resizing import require_list_size
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import calendar, columns
from olapdb.types import (
    UINT32,
    Array,
    DataType,
    DateTime,
    DateTime64,
    Decimal,
    Integer,
    Tuple,
    plain,
)
from olapdb.types.arrow_values import from_numpy


def _scale(data_type: DataType) -> int:
    """Return the number of digits of a second that a time or a step has."""
    if isinstance(data_type, DateTime64):
        return data_type.precision
    return data_type.scale if isinstance(data_type, Decimal) else 0


def _grid_type(name: str, types: Sequence[DataType]) -> DataType:
    """Return the type of a grid's points: the finest of the types of start, end and step. Raises
    IllegalTypeOfArgument."""
    for data_type in types[:2]:
        if not isinstance(data_type, DateTime | DateTime64) and data_type != UINT32:
            raise scalar.illegal(name, data_type, "a DateTime64, DateTime or UInt32")
    if not _is_narrow(types[2]):
        raise scalar.illegal(name, types[2], "an integer of 64 bits or a Decimal of 18 digits")
    scale = max(_scale(data_type) for data_type in types[:3])
    times = [t for t in types[:2] if isinstance(t, DateTime | DateTime64)]
    if not times and not scale:
        return UINT32
    zone = times[0].zone if times else None
    fine = scale or any(isinstance(t, DateTime64) for t in times)
    return DateTime64(scale, zone) if fine else DateTime(zone)


def _is_narrow(step: DataType) -> bool:
    """Return whether the step's type is one that a grid takes: a number of at most 64 bits."""
    if isinstance(step, Integer):
        return step.bits <= 64
    return isinstance(step, DateTime64) or (isinstance(step, Decimal) and step.precision <= 18)


def _ticks(array: pa.Array, data_type: DataType, scale: int) -> np.ndarray:
    """Return times, or a step, in units of 10^-scale seconds; int64."""
    if isinstance(data_type, Integer):
        values, most = columns.numpy_values(array), np.iinfo(np.int64).max // 10**scale
        bounded = np.minimum(values, values.dtype.type(min(most, np.iinfo(values.dtype).max)))
        return np.asarray(np.maximum(bounded.astype(np.int64), -1) * 10**scale)
    if isinstance(data_type, Decimal):
        wide = array.cast(pa.decimal128(38, scale))
        halves = np.frombuffer(wide.buffers()[1], "<i8").reshape(-1, 2)
        return np.asarray(halves[wide.offset : wide.offset + len(wide), 0])
    digits = 3 * -(-_scale(data_type) // 3)
    ticks = columns.numpy_values(array).astype(np.int64)
    return calendar.rescaled(ticks, 10**digits, 10**scale)


def _points(
    name: str, arrays: Sequence[pa.Array], types: Sequence[DataType]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of each row's points, and the points in units of the finest type. Raises BadArguments if an
    end is before its start or a step is not positive."""
    scale = max(_scale(data_type) for data_type in types[:3])
    start, end, step = (_ticks(a, t, scale) for a, t in zip(arrays[:3], types[:3], strict=True))
    if (end < start).any():
        raise BadArguments(f"The end of a grid of {name} is before its start.")
    if ((step <= 0) & (end > start)).any():
        raise BadArguments(f"The step of {name} must be above 0.")
    # Spans need 64 bits without a sign; points of a wrapped start and a larger step would overflow.
    spans = end.view(np.uint64) - start.view(np.uint64)
    step = np.minimum(np.maximum(step, 1).astype(np.uint64), spans + np.uint64(1)).astype(np.int64)
    counts = (
        np.minimum(spans // step.view(np.uint64), np.iinfo(np.int64).max - 1).astype(np.int64) + 1
    )
    require_list_size(name, counts)
    offsets = columns.offsets_from_counts(counts)
    owners = columns.parents_of(offsets)
    return offsets, start[owners] + (np.arange(len(owners)) - offsets[owners]) * step[owners]


def _column(points: np.ndarray, data_type: DataType) -> pa.Array:
    """Return points as a column of this type."""
    if isinstance(data_type, DateTime64):
        points = points * 10 ** (3 * -(-data_type.precision // 3) - data_type.precision)
    return columns.from_values(points, data_type.arrow)


def _range(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve timeSeriesRange(start, end, step): an array of times, both ends included."""
    types = [plain(a.type) for a in arguments]

    def rule(spelt: str, plain_types: tuple[DataType, ...], given: Sequence[Argument]) -> DataType:
        """Return an array of the finest type."""
        return Array(_grid_type(spelt, plain_types))

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Generate each row's times."""
        assert isinstance(call.result, Array)
        offsets, points = _points(name, arrays, types)
        return columns.lists_from(offsets, _column(points, call.result.inner))

    return scalar.standard_call(name, arguments, rule, kernel)


def _from_grid(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve timeSeriesFromGrid(start, end, step, values): an array of pairs (time, value); NULL values are left
    out."""
    types = [plain(a.type) for a in arguments]

    def rule(spelt: str, plain_types: tuple[DataType, ...], given: Sequence[Argument]) -> DataType:
        """Return an array of pairs."""
        values = plain_types[3]
        if not isinstance(values, Array):
            raise scalar.illegal(spelt, values, "an Array")
        return Array(Tuple((_grid_type(spelt, plain_types), plain(values.inner))))

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Pair each row's times with its values. Raises BadArguments if there are not as many values as points."""
        assert isinstance(call.result, Array)
        pair = call.result.inner
        assert isinstance(pair, Tuple)
        offsets, points = _points(name, arrays, types)
        value_offsets, values = columns.elements_of(arrays[3])
        if not np.array_equal(offsets, value_offsets):
            raise BadArguments(f"{name} takes as many values as its grid has points.")
        times = _column(points, pair.elements[0])
        if values.null_count:
            kept = columns.validity(values)
            assert kept is not None
            counts = np.bincount(columns.parents_of(offsets)[kept], minlength=len(offsets) - 1)
            offsets = columns.offsets_from_counts(counts)
            mask = from_numpy(kept)
            times, values = times.filter(mask), values.filter(mask)
        return columns.lists_from(offsets, columns.structs_from([times, values], pair.arrow))

    return scalar.standard_call(name, arguments, rule, kernel)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("timeSeriesRange", _range, count=3),
    scalar.custom("timeSeriesFromGrid", _from_grid, count=4),
)
