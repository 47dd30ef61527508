"""largestTriangleThreeBuckets: a few points that look like many (Steinarsson 2013)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.errors import IllegalTypeOfArgument, NotSupportedError, NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates.gathered import Gathered, rows_type
from olapdb.functions.aggregates.signatures import require_count, state_type_of
from olapdb.functions.base import Aggregate
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.decimal_width import floats_of_decimals
from olapdb.functions.kernels.integer_order import order_by
from olapdb.records import dataclass
from olapdb.types import (
    FLOAT64,
    Array,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Float,
    Integer,
    Tuple,
    plain,
)


@dataclass(frozen=True)
class LargestTriangles(Gathered):
    """largestTriangleThreeBuckets(n)(x, y): n of the points, sorted by x.

    The first and the last point stay; of each bucket between them the point that makes the largest
    triangle with the point before and the mean of the next bucket. Each bucket is one pass of vector
    operations over all groups."""

    points: int = 0

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the points of each group; all of them if there are at most n."""
        offsets, rows = columns.elements_of(states)
        fields = [
            floats_of_decimals(f) if pa.types.is_decimal(f.type) else f
            for f in columns.struct_fields(rows)
        ]
        x, y = (columns.numpy_values(field).astype(np.float64) for field in fields)
        owners = columns.parents_of(offsets)
        order = order_by(owners, x)
        sizes = np.diff(offsets)
        chosen = self._chosen(x[order], y[order], offsets)
        counts = np.bincount(owners[chosen], minlength=len(sizes))
        taken = pa.array(order[chosen])
        pairs = columns.structs_from(
            [
                field.take(taken).cast(target.type, safe=False)
                for field, target in zip(fields, self.result_type.arrow.value_type, strict=True)
            ],
            self.result_type.arrow.value_type,
        )
        return columns.lists_from(columns.offsets_from_counts(counts), pairs)

    def _chosen(self, x: np.ndarray, y: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return the positions of the chosen points, ascending."""
        sizes, starts = np.diff(offsets), offsets[:-1]
        owners = columns.parents_of(offsets)
        large = sizes > self.points
        keep = ~large[owners]
        many = np.flatnonzero(large)
        if self.points >= 1:
            keep[starts[many]] = True
        if self.points >= 2:
            keep[offsets[1:][many] - 1] = True
        if self.points <= 2 or not len(many):
            return np.flatnonzero(keep)
        width = (sizes[many] - 2) / (self.points - 2)
        begin, last = starts[many], starts[many]
        for bucket in range(self.points - 2):
            low = begin + 1 + np.floor(width * bucket).astype(np.int64)
            high = begin + 1 + np.floor(width * (bucket + 1)).astype(np.int64)
            after = begin + 1 + np.floor(width * (bucket + 2)).astype(np.int64)
            after = np.minimum(after, offsets[1:][many])
            with np.errstate(invalid="ignore", over="ignore"):
                bounds = np.column_stack((high, after)).reshape(-1)
                mean_x, mean_y = (
                    np.add.reduceat(np.append(values, 0.0), bounds)[::2] / (after - high)
                    for values in (x, y)
                )
            lengths = high - low
            places = np.repeat(low - np.append(0, np.cumsum(lengths)[:-1]), lengths)
            places = places + np.arange(len(places))
            of = np.repeat(np.arange(len(many)), lengths)
            base_x, base_y = x[last], y[last]
            with np.errstate(invalid="ignore", over="ignore"):
                areas = np.abs(
                    base_x[of] * (y[places] - mean_y[of])
                    + x[places] * (mean_y - base_y)[of]
                    + mean_x[of] * (base_y[of] - y[places])
                )
            areas = np.where(np.isnan(areas), 0.0, areas)
            best = np.lexsort((-places, areas, of))
            ends = np.cumsum(lengths) - 1
            last = places[best[ends]]
            keep[last] = True
        return np.flatnonzero(keep)

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Raise NotImplementedError: `finalize` keeps the type of the values."""
        raise NotImplementedError


def largest_triangles(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve largestTriangleThreeBuckets(n)(x, y) of numbers and times.

    Raises NumberOfArgumentsDoesntMatch, IllegalTypeOfArgument and NotSupportedError."""
    if len(parameters) != 1:
        raise NumberOfArgumentsDoesntMatch(f"{name} takes one parameter, the number of points.")
    (points,) = parameters
    if not isinstance(points, int) or isinstance(points, bool) or points < 0:
        raise IllegalTypeOfArgument(f"The number of points of {name} is not {points!r}.")
    require_count(name, types, 2)
    results: list[DataType] = []
    for data_type in types:
        kind = plain(data_type)
        if isinstance(kind, Date | Date32 | DateTime | DateTime64):
            results.append(kind)
        elif isinstance(kind, Integer | Float | Decimal | Boolean):
            results.append(FLOAT64)
        else:
            raise NotSupportedError(f"The arguments of {name} are numbers or times, not {kind}.")
    state = state_type_of(name, parameters, types, rows_type(types))
    result = Array(Tuple(tuple(results)))
    return LargestTriangles(
        name, parameters, types, result, state, merge_class="ordered", points=points
    )
