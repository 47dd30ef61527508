"""studentTTest, welchTTest and meanZTest: whether two samples have one mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from statistics import NormalDist

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, BadGet, NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.distributions import (
    normal_tail,
    student_quantile,
    student_two_sided,
)
from olapdb.functions.aggregates.signatures import require_count, state_type_of
from olapdb.functions.aggregates.variance import Variance
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import FLOAT64, UINT64, Boolean, DataType, Decimal, Float, Integer, Tuple, plain

_MOMENTS = Tuple((UINT64, FLOAT64, FLOAT64), ("count", "mean", "squares"))
_CONSTANT = 10 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Sample:
    """The count, mean and sum of squared deviations of one sample in each group; float64, shape (groups,)."""

    count: np.ndarray
    mean: np.ndarray
    squares: np.ndarray

    @property
    def variance(self) -> np.ndarray:
        """Return the unbiased estimate of the population's variance."""
        return np.asarray(self.squares / (self.count - 1))


@dataclass(frozen=True)
class MeanTest(Aggregate):
    """A test of (value, sample): rows of a sample other than 0 are the second sample.

    State: Tuple(first, second) of the samples' counts, means and sums of squared deviations, which
    merge as variances do. Parameters: the confidence of an interval of the difference; meanZTest
    has the variances of the populations before it."""

    moments: Variance
    numbers: tuple[float, ...] = field(default=())

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the moments of both samples of each group; a second argument of 0 means the first one.

        Rows with a NULL are skipped."""
        (values, marks), groups = group_kernels.drop_null_rows(arguments, groups)
        if pa.types.is_decimal(marks.type):
            marks = marks.cast(pa.float64())
        second = columns.numpy_values(marks) != 0
        parts = []
        for keep in (~second, second):
            chosen, of = group_kernels.filter_rows([values], groups, keep)
            parts.append(self.moments.state(chosen, of))
        return columns.structs_from(parts, self.state_type.arrow)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Combine the moments of each group's states."""
        parts = [self.moments.merge(part, groups) for part in columns.struct_fields(states)]
        return columns.structs_from(parts, self.state_type.arrow)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the statistic, its p-value and, with a confidence, the interval of each group."""
        x, y = (
            Sample(*(columns.numpy_values(f).astype(np.float64) for f in columns.struct_fields(s)))
            for s in columns.struct_fields(states)
        )
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.state_type.function == "meanZTest":
                results = self._z_test(x, y)
            else:
                results = self._t_test(x, y)
        fields = [columns.from_values(values, pa.float64()) for values in results]
        return columns.structs_from(fields, self.result_type.arrow)

    def _z_test(self, x: Sample, y: Sample) -> list[np.ndarray]:
        """Return statistic, p-value and bounds for known variances of the populations."""
        difference = x.mean - y.mean
        enough = (x.count > 0) & (y.count > 0)
        error = np.sqrt(self.numbers[0] / x.count + self.numbers[1] / y.count)
        error = np.where(enough, error, np.nan)
        statistic = difference / error
        p = np.where(np.isfinite(statistic), 2 * normal_tail(np.abs(statistic)), 0.0)
        reach = NormalDist().inv_cdf((1 + self.numbers[2]) / 2) * error
        return [statistic, p, difference - reach, difference + reach]

    def _t_test(self, x: Sample, y: Sample) -> list[np.ndarray]:
        """Return statistic and p-value, and the bounds if there is a confidence.

        ClickHouse has Welch's standard error in the interval of studentTTest, too, and so has this."""
        difference = x.mean - y.mean
        left, right = x.variance / x.count, y.variance / y.count
        if self.state_type.function == "studentTTest":
            freedom = x.count + y.count - 2
            pooled = (x.squares + y.squares) / freedom
            error = np.sqrt(pooled * (1 / x.count + 1 / y.count))
            enough = (x.count > 0) & (y.count > 0) & (freedom > 0)
        else:
            error = np.sqrt(left + right)
            freedom = (left + right) ** 2 / (left**2 / (x.count - 1) + right**2 / (y.count - 1))
            enough = (x.count > 1) & (y.count > 1)
        enough &= error > _CONSTANT * np.maximum(np.abs(x.mean), np.abs(y.mean))
        freedom, error = np.where(enough, freedom, np.nan), np.where(enough, error, np.nan)
        statistic = difference / error
        results = [statistic, student_two_sided(statistic, freedom)]
        if self.numbers:
            reach = student_quantile(self.numbers[0], freedom) * np.sqrt(left + right)
            results += [difference - reach, difference + reach]
        return results


def mean_test(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve studentTTest, welchTTest or meanZTest of two numbers.

    Raises NumberOfArgumentsDoesntMatch, BadGet and BadArguments."""
    require_count(name, types, 2)
    known = name == "meanZTest"
    if len(parameters) != 3 if known else len(parameters) > 1:
        expected = "three parameters" if known else "at most one parameter"
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} takes {expected}.")
    numbers = []
    for parameter in parameters:
        if not isinstance(parameter, float):
            raise BadGet(f"The parameters of {name} are Float64, not {parameter!r}.")
        numbers.append(parameter)
    if known and min(numbers[:2]) < 0:
        raise BadArguments(f"The variances of {name} are not negative.")
    if numbers and not 0 < numbers[-1] < 1:
        raise BadArguments(f"The confidence of {name} lies between 0 and 1, both excluded.")
    for data_type in types:
        if not isinstance(plain(data_type), Integer | Float | Decimal | Boolean):
            raise BadArguments(f"The arguments of {name} are numbers, not {data_type}.")
    bounds = ("confidence_interval_low", "confidence_interval_high") if numbers else ()
    names = ("z_statistic" if known else "t_statistic", "p_value", *bounds)
    of_sample = state_type_of("varSamp", (), types[:1], _MOMENTS)
    return MeanTest(
        name,
        parameters,
        types,
        Tuple((FLOAT64,) * len(names), names),
        state_type_of(name, parameters, types, Tuple((_MOMENTS, _MOMENTS), ("first", "second"))),
        merge_class="float",
        moments=Variance("varSamp", (), types[:1], FLOAT64, of_sample),
        numbers=tuple(numbers),
    )
