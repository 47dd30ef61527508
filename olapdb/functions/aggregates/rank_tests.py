"""mannWhitneyUTest and kolmogorovSmirnovTest: whether two samples have one distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    BadArguments,
    IllegalTypeOfArgument,
    NotSupportedError,
    NumberOfArgumentsDoesntMatch,
    TooManyArguments,
)
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.distributions import normal_tail
from olapdb.functions.aggregates.gathered import Gathered, differs_from_last, mean_ranks, rows_type
from olapdb.functions.aggregates.signatures import require_count, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import order_by
from olapdb.records import dataclass
from olapdb.types import FLOAT64, UINT8, Boolean, DataType, Decimal, Float, Integer, Tuple, plain

_ALTERNATIVES = ("two-sided", "less", "greater")
_METHODS = ("auto", "exact", "asymp", "asymptotic")
_EXACT_MAX = 10_000


@dataclass(frozen=True)
class RankTest(Gathered):
    """A test of (value, sample): rows of a sample other than 0 are the second sample.

    State: Array(Tuple(value Float64, second UInt8)), the rows in their order."""

    alternative: str = "two-sided"

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's rows without NULL: the value as Float64, and 1 if the row is of the second sample, else
        0."""
        (values, marks), groups = group_kernels.drop_null_rows(arguments, groups)
        numbers = [
            columns.numpy_values(a.cast(pa.float64()) if pa.types.is_decimal(a.type) else a)
            for a in (values, marks)
        ]
        rows = [
            columns.from_values(numbers[0].astype(np.float64), pa.float64()),
            columns.from_values(numbers[1] != 0, pa.uint8()),
        ]
        return super().state(rows, groups)

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Return the statistic and the p-value of each group.

        Raises BadArguments if a group has no row of one of the samples."""
        values, second = arguments
        owners = columns.parents_of(offsets)
        sizes = [
            np.bincount(owners[second == mark], minlength=len(offsets) - 1).astype(np.float64)
            for mark in (0, 1)
        ]
        if (np.minimum(*sizes) == 0).any():
            raise BadArguments(f"Aggregate function {self.name} needs rows of both samples.")
        results = self._tested(offsets, values, second, sizes)
        fields = [columns.from_values(result, pa.float64()) for result in results]
        return columns.structs_from(fields, self.result_type.arrow)

    def _tested(
        self, offsets: np.ndarray, values: np.ndarray, second: np.ndarray, sizes: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the statistic and the p-value of each group; `sizes` are the numbers of rows of its first and its
        second sample."""
        raise NotImplementedError


@dataclass(frozen=True)
class MannWhitney(RankTest):
    """mannWhitneyUTest([alternative[, continuity]]): the U of the second sample, and the p-value of
    its normal approximation, corrected for ties and, unless it is 0, for continuity."""

    continuity: bool = True

    def _tested(
        self, offsets: np.ndarray, values: np.ndarray, second: np.ndarray, sizes: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return U and the p-value of each group."""
        owners = columns.parents_of(offsets)
        count = len(offsets) - 1
        ranks = mean_ranks(values, owners, offsets)
        first_ranks = np.bincount(owners, np.where(second == 0, ranks, 0), count)
        n, m = sizes
        u1 = n * m + n * (n + 1) / 2 - first_ranks
        u2 = n * m - u1
        total = n + m
        pairs = np.unique(np.stack((owners, ranks)), axis=1, return_counts=True)
        ties = np.bincount(pairs[0][0].astype(np.int64), pairs[1] ** 3.0 - pairs[1], count)
        correction = 1 - ties / (total**3 - total)
        spread = np.sqrt(correction * n * m * (total + 1) / 12)
        middle = n * m / 2 + 0.5 * self.continuity
        chosen = {"greater": u2, "less": u1}.get(self.alternative, np.maximum(u1, u2))
        with np.errstate(divide="ignore", invalid="ignore"):
            z = (chosen - middle) / spread
        p = 2 * normal_tail(np.abs(z)) if self.alternative == "two-sided" else normal_tail(z)
        return u2, np.where(correction == 0, 1.0, p)


@dataclass(frozen=True)
class KolmogorovSmirnov(RankTest):
    """kolmogorovSmirnovTest([alternative[, method]]): the largest distance of the distributions and
    its p-value, exact for samples of up to 10,000 rows unless the method says otherwise."""

    method: str = "auto"

    def _tested(
        self, offsets: np.ndarray, values: np.ndarray, second: np.ndarray, sizes: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the distance and the p-value of each group; one pass over the groups for p."""
        owners = columns.parents_of(offsets)
        n, m = sizes
        order = order_by(owners, values)
        values, second = values[order], second[order]
        filled = offsets[:-1]
        if not len(filled):
            return np.zeros(0), np.zeros(0)
        before = [np.cumsum(second == mark) for mark in (0, 1)]
        shares = []
        for part, size in zip(before, sizes, strict=True):
            base = np.append(0, part)[filled]
            shares.append((part - base[owners]) / size[owners])
        gaps = shares[0] - shares[1]
        last = np.ones(len(values), bool)
        last[:-1] = differs_from_last(values) | (owners[1:] != owners[:-1])
        gaps = np.where(last, gaps, 0.0)
        above = np.maximum.reduceat(gaps, filled)
        below = np.maximum.reduceat(-gaps, filled)
        distances = {"less": below, "greater": above}.get(
            self.alternative, np.maximum(above, below)
        )
        triples = zip(distances.tolist(), n.tolist(), m.tolist(), strict=True)
        return distances, np.array([self._p_value(d, int(i), int(j)) for d, i, j in triples])

    def _p_value(self, distance: float, n: int, m: int) -> float:
        """Return the p-value of `distance` for samples of n and m rows: the probability of a distance at least as
        large."""
        n, m = max(n, m), min(n, m)
        exact = self.method == "exact" or (self.method == "auto" and n <= _EXACT_MAX)
        if exact:
            return _exact(distance, n, m, two_sided=self.alternative == "two-sided")
        z = math.sqrt(n * m / (n + m)) * distance
        if self.alternative != "two-sided":
            drift = 2 * z * (n + 2 * m) / math.sqrt(n * m * (n + m)) / 3
            return min(max(math.exp(-2 * z * z - drift), 0.0), 1.0)
        if z < 1e-6:
            return 1.0
        terms = ((1 if k % 2 else -1) * math.exp(-2 * k * k * z * z) for k in range(1, 101))
        return min(max(2 * sum(terms), 0.0), 1.0)


def _exact(distance: float, n: int, m: int, *, two_sided: bool) -> float:
    """Return the exact p-value: the share of the lattice paths of n and m steps that reach the distance; n >= m.
    Counts the paths that stay below it (Kim and Jennrich 1973), with one running sum for each step of the smaller
    sample."""
    if distance <= 0:
        return 1.0
    limit = (0.5 + math.floor(distance * m * n - 1e-7)) / (m * n)
    steps = np.arange(n + 1) / n
    shares = np.where(steps <= limit, 1.0, 0.0) if two_sided else np.ones(n + 1)
    for step in range(1, m + 1):
        gaps = step / m - steps
        inside = np.flatnonzero((np.abs(gaps) if two_sided else gaps) <= limit)
        fresh = np.zeros(n + 1)
        fresh[inside] = np.cumsum(shares[inside] * (step / (step + n)))
        shares = fresh
    return min(max(1 - float(shares[-1]), 0.0), 1.0)


def rank_test(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve mannWhitneyUTest or kolmogorovSmirnovTest of two numbers.

    Raises IllegalTypeOfArgument, BadArguments and NotSupportedError."""
    require_count(name, types, 2)
    ranks = name == "mannWhitneyUTest"
    if len(parameters) > 2:
        kind = TooManyArguments if ranks else NumberOfArgumentsDoesntMatch
        raise kind(f"Aggregate function {name} takes up to two parameters.")
    alternative, other = (*parameters, None, None)[:2]
    if alternative is not None and not isinstance(alternative, str):
        raise IllegalTypeOfArgument(f"The alternative of {name} is a String, not {alternative!r}.")
    alternative = "two-sided" if alternative is None else alternative
    if alternative not in _ALTERNATIVES:
        raise BadArguments(f"The alternative of {name} is one of {', '.join(_ALTERNATIVES)}.")
    for data_type in types:
        if not isinstance(plain(data_type), Integer | Float | Decimal | Boolean):
            raise NotSupportedError(f"The arguments of {name} are numbers, not {data_type}.")
    rows = state_type_of(name, parameters, types, rows_type((FLOAT64, UINT8)))
    fields = ("u_statistic" if ranks else "d_statistic", "p_value")
    result = Tuple((FLOAT64, FLOAT64), fields)
    if ranks:
        if other is not None and (not isinstance(other, int) or other < 0):
            raise IllegalTypeOfArgument(f"The continuity of {name} is 0 or 1, not {other!r}.")
        return MannWhitney(
            name,
            parameters,
            types,
            result,
            rows,
            merge_class="float",
            alternative=alternative,
            continuity=other is None or bool(other),
        )
    method = "auto" if other is None else other
    if method not in _METHODS:
        raise BadArguments(f"The method of {name} is one of {', '.join(_METHODS)}.")
    return KolmogorovSmirnov(
        name,
        parameters,
        types,
        result,
        rows,
        merge_class="float",
        alternative=alternative,
        method=str(method),
    )
