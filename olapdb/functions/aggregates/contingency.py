"""cramersV, cramersVBiasCorrected, contingency and theilsU: how much two columns depend on each other.

All are computed from how often each pair of values occurs, so a state is as large as the set of
pairs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.counted_values import CountedValues
from olapdb.functions.aggregates.signatures import (
    distinct_set_type,
    illegal_argument,
    require_count,
    require_no_parameters,
    state_type_of,
)
from olapdb.functions.base import Aggregate
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import FLOAT64, UINT64, AggregateFunction, Array, DataType, Map, Tuple, plain

DEPENDENCES = ("cramersV", "cramersVBiasCorrected", "contingency", "theilsU")


@dataclass(frozen=True)
class Dependence(CountedValues):
    """An aggregate that measures how much two columns depend on each other: one of DEPENDENCES. A group of fewer than
    two rows gives NaN."""

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the measure of each group; Float64."""
        pairs, weights = columns.struct_fields(states)
        offsets, elements = columns.elements_of(pairs)
        owners = columns.parents_of(offsets)
        counts = columns.numpy_values(columns.elements_of(weights)[1]).astype(np.float64)
        totals = np.bincount(owners, counts, len(states))
        sides = [_margins(side, owners, counts) for side in columns.struct_fields(elements)]
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.state_type.function == "theilsU":
                result = _uncertainty(owners, counts, sides, totals)
            else:
                terms = counts / sides[0][0] * (counts / sides[1][0])
                squared = np.maximum(np.bincount(owners, terms, len(states)) - 1, 0)
                sizes = [np.bincount(owners, 1 / times, len(states)) for _, times in sides]
                rows, lines = (np.rint(size) for size in sizes)
                result = self._association(squared, totals, rows, lines)
        return columns.from_values(np.where(totals < 2, np.nan, result), pa.float64())

    def _association(
        self, squared: np.ndarray, totals: np.ndarray, rows: np.ndarray, lines: np.ndarray
    ) -> np.ndarray:
        """Return the measure of each group from phi squared, its number of rows (`totals`) and the
        numbers of distinct values on the left (`rows`) and on the right (`lines`)."""
        match self.state_type.function:
            case "contingency":
                return np.asarray(np.sqrt(squared / (1 + squared)))
            case "cramersVBiasCorrected":  # Bergsma 2013
                free = totals - 1
                squared = np.maximum(squared - (rows - 1) * (lines - 1) / free, 0)
                rows, lines = rows - (rows - 1) ** 2 / free, lines - (lines - 1) ** 2 / free
        return np.asarray(np.sqrt(squared / (np.minimum(rows, lines) - 1)))


def _margins(
    side: pa.Array, owners: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each distinct pair of values how many rows have the pair's value on this side, and how many distinct
    pairs have it. `owners` is the group and `counts` the number of rows of each pair."""
    ranking = group_kernels.rank_rows([side])
    _, inverse = np.unique(owners * max(ranking.count, 1) + ranking.ranks, return_inverse=True)
    inverse = inverse.reshape(-1)
    return np.bincount(inverse, counts)[inverse], np.bincount(inverse)[inverse].astype(np.float64)


def _uncertainty(
    owners: np.ndarray,
    counts: np.ndarray,
    sides: list[tuple[np.ndarray, np.ndarray]],
    totals: np.ndarray,
) -> np.ndarray:
    """Return Theil's coefficients: the share of the left entropy that the right value explains."""
    (left, _), (right, _) = sides
    shares = counts / totals[owners]
    entropy = np.bincount(owners, shares * np.log(left / totals[owners]), len(totals))
    rest = np.bincount(owners, shares * np.log(counts / right), len(totals))
    return np.where(entropy == 0, 0.0, (entropy - rest) / entropy)


def dependence(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve one of DEPENDENCES of two values; maps and states are refused."""
    require_no_parameters(name, parameters)
    require_count(name, types, 2)
    for data_type in types:
        if isinstance(plain(data_type), Map | AggregateFunction):
            raise illegal_argument(name, data_type, "a value that can be compared")
    state = Tuple((distinct_set_type(types), Array(UINT64)), ("values", "weights"))
    return Dependence(name, (), types, FLOAT64, state_type_of(name, (), types, state))
