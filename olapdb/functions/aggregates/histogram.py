"""histogram: an adaptive histogram (Ben-Haim and Tom-Tov 2010) of a group's numbers."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    BadArguments,
    IncorrectData,
    NumberOfArgumentsDoesntMatch,
    ParameterOutOfBound,
    UnsupportedParameter,
)
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.counted_values import CountedValues
from olapdb.functions.aggregates.signatures import illegal_argument, require_count, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import FLOAT64, UINT64, Array, Boolean, DataType, Float, Integer, Tuple, plain

_BINS_MAX = 250


@dataclass(frozen=True)
class Histogram(CountedValues):
    """histogram(bins)(x): at most `bins` bins (lower bound, upper bound, height).

    The two nearest values become one at their mean, weighted by how often they occur, until there
    are as many as bins. ClickHouse does so whenever it has twice as many values as bins, so that the
    bins of more values than that depend on the order of the rows there, and not here."""

    bins: int = 1

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's distinct numbers and how often each occurs.

        Raises IncorrectData for NaN and infinite ones."""
        (values,), groups = group_kernels.drop_null_rows(arguments, groups)
        numbers = columns.numpy_values(values).astype(np.float64) + 0.0
        if not np.isfinite(numbers).all():
            raise IncorrectData(f"{self.name} takes no NaN and no infinite number.")
        ones = np.ones(len(numbers), np.uint64)
        return self._state([columns.from_values(numbers, pa.float64())], ones, groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return each group's bins as an array of (lower bound, upper bound, height), sorted by lower bound."""
        lists, weights = columns.struct_fields(states)
        offsets, elements = columns.elements_of(lists)
        values = columns.numpy_values(elements)
        counts = columns.numpy_values(columns.elements_of(weights)[1]).astype(np.float64)
        tables = [
            _bins(values[start:end], counts[start:end], self.bins)
            for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
            if end > start
        ]
        sizes = np.zeros(len(states), np.int64)
        sizes[np.diff(offsets) > 0] = [table.shape[1] for table in tables]
        rows = np.concatenate(tables, axis=1) if tables else np.zeros((3, 0))
        fields = [columns.from_values(row, pa.float64()) for row in rows]
        made = columns.structs_from(fields, self.result_type.arrow.value_type)
        return columns.lists_from(columns.offsets_from_counts(sizes), made)


def _bins(values: np.ndarray, counts: np.ndarray, limit: int) -> np.ndarray:
    """Return lower bounds, upper bounds and heights of the bins of sorted values, shape (3, bins).

    Between two means the density is that of a trapezoid, so a height is the area around its mean."""
    means, weights = _merged(values, counts, limit)
    middles = (means[1:] + means[:-1]) / 2
    lower, upper = np.append(values[0], middles), np.append(middles, values[-1])
    halves = (weights[1:] + weights[:-1]) / 2
    heights = np.zeros(len(means))
    heights[0] += weights[0] / 2
    heights[-1] += weights[-1] / 2
    heights[:-1] += (weights[:-1] + halves) / 4
    heights[1:] += (weights[1:] + halves) / 4
    return np.stack((lower, upper, heights))


def _merged(values: np.ndarray, counts: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Merge the nearest two of sorted values until there are at most `limit`; return means and
    weights."""
    excess = len(values) - limit
    if excess <= 0:
        return values, counts
    means, weights = values.tolist(), counts.tolist()
    before, after = list(range(-1, len(means) - 1)), list(range(1, len(means) + 1))
    version = [0] * len(means)
    heap = [(means[i + 1] - means[i], i, i + 1, 0, 0) for i in range(len(means) - 1)]
    heapq.heapify(heap)
    while excess:
        _, left, right, left_version, right_version = heapq.heappop(heap)
        if version[left] != left_version or version[right] != right_version:
            continue
        total = weights[left] + weights[right]
        means[left] = (means[left] * weights[left] + means[right] * weights[right]) / total
        weights[left] = total
        version[left] += 1
        version[right] = -1
        follower = after[left] = after[right]
        if follower < len(means):
            before[follower] = left
            gap = means[follower] - means[left]
            heapq.heappush(heap, (gap, left, follower, version[left], version[follower]))
        leader = before[left]
        if leader >= 0:
            gap = means[left] - means[leader]
            heapq.heappush(heap, (gap, leader, left, version[leader], version[left]))
        excess -= 1
    kept = [i for i in range(len(means)) if version[i] >= 0]
    return np.array([means[i] for i in kept]), np.array([weights[i] for i in kept])


def histogram(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve histogram(bins) of a number that is no decimal.

    Raises NumberOfArgumentsDoesntMatch, UnsupportedParameter, BadArguments, ParameterOutOfBound
    and IllegalTypeOfArgument."""
    if len(parameters) != 1:
        raise NumberOfArgumentsDoesntMatch(f"{name} takes one parameter, the number of bins.")
    (bins,) = parameters
    if not isinstance(bins, int) or isinstance(bins, bool):
        raise UnsupportedParameter(f"The number of bins of {name} is an integer, not {bins!r}.")
    if bins < 1:
        raise BadArguments(f"The number of bins of {name} is positive, not {bins}.")
    if bins > _BINS_MAX:
        raise ParameterOutOfBound(f"The number of bins of {name} is at most {_BINS_MAX}.")
    require_count(name, types, 1)
    if not isinstance(plain(types[0]), Integer | Float | Boolean):
        raise illegal_argument(name, types[0], "a number")
    state = Tuple((Array(FLOAT64), Array(UINT64)), ("values", "weights"))
    return Histogram(
        name,
        parameters,
        types,
        Array(Tuple((FLOAT64, FLOAT64, FLOAT64))),
        state_type_of(name, parameters, types, state),
        bins=bins,
    )
