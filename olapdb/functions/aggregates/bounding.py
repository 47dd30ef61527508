"""boundingRatio and deltaSumTimestamp: what happens between the first and the last point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.gathered import Gathered, rows_type
from olapdb.functions.aggregates.signatures import (
    illegal_argument,
    require_count,
    require_no_parameters,
    state_type_of,
)
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import order_by, sortable_bits
from olapdb.records import dataclass
from olapdb.types import (
    FLOAT64,
    UINT8,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Float,
    Integer,
    Time,
    Time64,
    Tuple,
    plain,
)

_FIELDS = ("seen", "left_x", "left_y", "right_x", "right_y")


_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _floats(array: pa.Array) -> np.ndarray:
    """Return numbers, decimals, dates (in days) or times (in seconds) as Float64."""
    if pa.types.is_decimal(array.type):
        return columns.numpy_values(array.cast(pa.float64()))
    numbers = columns.numpy_values(array).astype(np.float64)
    return numbers / _TICKS[array.type.unit] if pa.types.is_timestamp(array.type) else numbers


@dataclass(frozen=True)
class BoundingRatio(Aggregate):
    """boundingRatio(x, y): (y2 - y1) / (x2 - x1) of the leftmost and the rightmost point.

    Of points of one x the first row counts; a NaN is an x only if all are. In ClickHouse a NaN in
    the first row that is read stays. State: Tuple(seen, left x, left y, right x, right y)."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the leftmost and the rightmost point of each group; skip points with a NULL."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        x, y = (_floats(argument) for argument in arguments)
        return self._state((x, y), (x, y), groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return for each group the leftmost and the rightmost point of its states."""
        seen, *bounds = (columns.numpy_values(field) for field in columns.struct_fields(states))
        rows = np.flatnonzero(seen)
        lx, ly, rx, ry = (bound[rows] for bound in bounds)
        return self._state((lx, ly), (rx, ry), Groups(groups.codes[rows], groups.count))

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return (y2 - y1) / (x2 - x1) of each group; NaN for a group without points or whose points all have one x."""
        _, lx, ly, rx, ry = (columns.numpy_values(f) for f in columns.struct_fields(states))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return columns.from_values((ry - ly) / (rx - lx), pa.float64())

    def _state(
        self, left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray], g: Groups
    ) -> pa.Array:
        """Build the state of each group in `g` from its leftmost and its rightmost point, each given as arrays (x,
        y)."""
        present = g.sizes > 0
        fields = [columns.from_values(present, pa.uint8())]
        for (x, y), largest in ((left, False), (right, True)):
            rows = self._extreme_rows(x, g, largest=largest)
            for values in (x, y):
                numbers = np.zeros(g.count)
                numbers[present] = values[rows[present]]
                fields.append(columns.from_values(numbers, pa.float64()))
        return columns.structs_from(fields, self.state_type.arrow)

    def _extreme_rows(self, x: np.ndarray, groups: Groups, *, largest: bool) -> np.ndarray:
        """Return for each group the first row with its smallest (largest) x; an arbitrary row for an empty group."""
        worst = np.iinfo(np.int64).min if largest else np.iinfo(np.int64).max
        keys = np.where(np.isnan(x), worst, sortable_bits(x + 0.0))
        backwards = Groups(groups.codes[::-1], groups.count)  # the last of them is chosen
        rows = group_kernels.extreme_rows(keys[::-1], backwards, largest=largest)
        return np.asarray(len(x) - 1 - rows)


def bounding_ratio(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve boundingRatio(x, y) of numbers and times. Raises BadArguments."""
    require_no_parameters(name, parameters)
    require_count(name, types, 2)
    numeric = Integer | Float | Boolean | Decimal
    for data_type in types:
        if not isinstance(
            plain(data_type), numeric | Date | Date32 | DateTime | DateTime64 | Time | Time64
        ):
            raise BadArguments(f"The arguments of {name} are numbers or times, not {data_type}.")
    state = Tuple((UINT8, *[FLOAT64] * 4), _FIELDS)
    ordered = state_type_of(name, (), types, state)
    return BoundingRatio(name, (), types, FLOAT64, ordered, merge_class="ordered")


@dataclass(frozen=True)
class DeltaSumTimestamp(Gathered):
    """deltaSumTimestamp(value, time): the sum of the rises between rows that follow in time.

    Rows of one time keep their order. ClickHouse orders blocks by their times, but not the rows in
    a block, so that its result depends on how rows were cut into blocks."""

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Return for each group, in order of time, the sum of the positive differences of consecutive values; 0 if
        none."""
        values, times = arguments
        codes = columns.parents_of(offsets)
        order = order_by(codes, times)
        values = values[order]
        rises = np.zeros_like(values)
        if len(values) > 1:
            up = (codes[1:] == codes[:-1]) & (values[1:] > values[:-1])
            rises[1:][up] = values[1:][up] - values[:-1][up]
        groups = Groups(codes, len(offsets) - 1)
        arrow = plain(self.result_type).arrow
        dtype = columns.dtype_of(arrow)
        if dtype.kind == "f":
            return columns.from_values(group_kernels.sum_floats(rises, groups), arrow)
        return columns.from_values(group_kernels.sum_integers(rises, groups, dtype), arrow)


def delta_sum_timestamp(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve deltaSumTimestamp(value, time) of numbers and times. Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 2)
    for data_type, kinds in zip(
        types, (Integer | Float | Boolean, Integer | Float | Date | DateTime), strict=True
    ):
        if not isinstance(plain(data_type), kinds) or plain(data_type).arrow.bit_width > 64:
            raise illegal_argument(name, data_type, "a number or time of up to 64 bits")
    value = UINT8 if isinstance(plain(types[0]), Boolean) else plain(types[0])
    state = state_type_of(name, (), types, rows_type((value, types[1])))
    return DeltaSumTimestamp(name, (), types, value, state, merge_class="ordered")
