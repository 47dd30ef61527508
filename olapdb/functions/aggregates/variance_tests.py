"""analysisOfVariance and studentTTestOneSample: tests of the means of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, BadGet, NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.distributions import (
    incomplete_beta,
    student_quantile,
    student_two_sided,
)
from olapdb.functions.aggregates.gathered import Gathered, rows_type
from olapdb.functions.aggregates.signatures import (
    require_count,
    require_no_parameters,
    state_type_of,
)
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import FLOAT64, UINT64, Boolean, DataType, Decimal, Float, Integer, Tuple, plain

_CONSTANT = 10 * np.finfo(np.float64).eps


def _floats(array: pa.Array) -> pa.Array:
    """Return numbers as Float64."""
    if pa.types.is_decimal(array.type):
        return array.cast(pa.float64())
    return columns.from_values(columns.numpy_values(array).astype(np.float64), pa.float64())


@dataclass(frozen=True)
class AnalysisOfVariance(Gathered):
    """analysisOfVariance(value, sample): the one-way test whether the samples, which have numbers from
    0, have one mean. State: Array(Tuple(value Float64, sample UInt64))."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's rows without NULL."""
        (values, samples), groups = group_kernels.drop_null_rows(arguments, groups)
        numbers = columns.numpy_values(samples).astype(np.uint64)
        rows = [_floats(values), columns.from_values(numbers, pa.uint64())]
        return super().state(rows, groups)

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Return the statistic and its p-value of each group.

        Raises BadArguments for a group without one of the samples, or with no more rows than
        samples."""
        values, samples = arguments
        count = len(offsets) - 1
        owners = columns.parents_of(offsets)
        order = np.lexsort((samples, owners))
        values, samples = values[order], samples[order]
        new = np.ones(len(values), bool)
        new[1:] = (samples[1:] != samples[:-1]) | (owners[1:] != owners[:-1])
        cells = np.cumsum(new) - 1
        cell_owners = owners[new]
        totals = np.diff(offsets).astype(np.float64)
        sizes = np.bincount(cell_owners, minlength=count).astype(np.float64)
        if (totals <= sizes).any():
            raise BadArguments(f"{self.name} needs a sample of more than one row.")
        highest = np.zeros(count)
        np.maximum.at(highest, cell_owners, samples[new].astype(np.float64))
        if (highest + 1 != sizes).any():
            raise BadArguments(f"{self.name} needs rows of each sample from 0 on.")
        if (sizes < 2).any():
            raise BadArguments(f"{self.name} needs at least two samples.")
        counts = np.bincount(cells)
        means = np.bincount(cells, values) / counts
        overall = np.bincount(owners, values, count) / totals
        between = np.bincount(cell_owners, counts * (means - overall[cell_owners]) ** 2, count)
        within = np.bincount(owners, (values - means[cells]) ** 2, count)
        left, right = sizes - 1, totals - sizes
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = (between / left) / (within / right)
            p = incomplete_beta(right / 2, left / 2, right / (right + left * statistic))
        fields = [columns.from_values(result, pa.float64()) for result in (statistic, p)]
        return columns.structs_from(fields, self.result_type.arrow)


def analysis_of_variance(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve analysisOfVariance of a number and an unsigned integer, its sample.

    Raises BadArguments."""
    require_no_parameters(name, parameters)
    require_count(name, types, 2)
    if not isinstance(plain(types[0]), Integer | Float | Decimal | Boolean):
        raise BadArguments(f"The values of {name} are numbers, not {types[0]}.")
    sample = plain(types[1])
    if not isinstance(sample, Boolean) and (not isinstance(sample, Integer) or sample.signed):
        raise BadArguments(f"The samples of {name} are unsigned integers, not {types[1]}.")
    state = state_type_of(name, (), types, rows_type((FLOAT64, UINT64)))
    result = Tuple((FLOAT64, FLOAT64), ("f_statistic", "p_value"))
    return AnalysisOfVariance(name, (), types, result, state, merge_class="float")


@dataclass(frozen=True)
class OneSampleTest(Gathered):
    """studentTTestOneSample([confidence])(value, mean): whether the values have the mean of the first
    row. State: Array(Tuple(value Float64, mean Float64))."""

    confidence: float | None = None

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's rows without NULL."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        return super().state([_floats(argument) for argument in arguments], groups)

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Return the statistic, its p-value and, with a confidence, the interval of the mean."""
        values, wanted = arguments
        owners = columns.parents_of(offsets)
        counts = np.diff(offsets).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.bincount(owners, values, len(counts)) / counts
            squares = np.bincount(owners, (values - mean[owners]) ** 2, len(counts))
            error = np.sqrt(squares / (counts - 1) / counts)
            first = np.append(wanted, np.nan)[np.minimum(offsets[:-1], len(wanted))]
            enough = (counts > 1) & (error > _CONSTANT * np.abs(mean))
            error = np.where(enough, error, np.nan)
            freedom = np.where(enough, counts - 1, np.nan)
            statistic = (mean - first) / error
        results = [statistic, student_two_sided(statistic, freedom)]
        if self.confidence is not None:
            reach = student_quantile(self.confidence, freedom) * error
            results += [mean - reach, mean + reach]
        fields = [columns.from_values(result, pa.float64()) for result in results]
        return columns.structs_from(fields, self.result_type.arrow)


def one_sample_test(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve studentTTestOneSample of a number and the mean of the population.

    Raises NumberOfArgumentsDoesntMatch, BadArguments and BadGet."""
    if len(parameters) > 1:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} takes one parameter.")
    if len(types) != 2:
        raise BadArguments(f"{name} takes two arguments, the value and the mean.")
    for data_type in types:
        if not isinstance(plain(data_type), Integer | Float | Decimal | Boolean):
            raise BadArguments(f"The arguments of {name} are numbers, not {data_type}.")
    confidence = parameters[0] if parameters else None
    if confidence is not None and not isinstance(confidence, float):
        raise BadGet(f"The confidence of {name} is a Float64, not {confidence!r}.")
    if confidence is not None and not 0 < confidence < 1:
        raise BadArguments(f"The confidence of {name} lies between 0 and 1, both excluded.")
    bounds = ("confidence_interval_low", "confidence_interval_high") if parameters else ()
    names = ("t_statistic", "p_value", *bounds)
    state = state_type_of(name, parameters, types, rows_type((FLOAT64, FLOAT64)))
    result = Tuple((FLOAT64,) * len(names), names)
    return OneSampleTest(
        name, parameters, types, result, state, merge_class="ordered", confidence=confidence
    )
