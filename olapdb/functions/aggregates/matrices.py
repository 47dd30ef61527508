"""covarPopMatrix, covarSampMatrix and corrMatrix: the covariances of every pair of arguments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.signatures import (
    illegal_argument,
    require_no_parameters,
    state_type_of,
)
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import FLOAT64, UINT64, Array, Boolean, DataType, Float, Integer, Tuple, plain

MATRICES = ("covarPopMatrix", "covarSampMatrix", "corrMatrix")


@dataclass(frozen=True)
class CovarianceMatrix(Aggregate):
    """One of MATRICES of n numbers: an n by n array of arrays.

    State: Tuple(count, n means, n * n sums of products of deviations), row by row, which merges as
    Chan, Golub and LeVeque (1979) add variances."""

    @property
    def size(self) -> int:
        """The number of arguments."""
        return len(self.argument_types)

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's count, means and sums of products of deviations; rows with a NULL are skipped."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        rows = len(groups.codes)
        means = np.zeros((self.size, rows))
        for place, argument in enumerate(arguments):
            means[place] = columns.numpy_values(argument)
        return self._combined(np.ones(rows), means, np.zeros((self.size**2, rows)), groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Combine the moments of each group's states."""
        return self._combined(*self._split(states), groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the matrix of each group; NaN where there are too few rows."""
        counts, _, products = self._split(states)
        size, rows = self.size, len(states)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.state_type.function == "corrMatrix":
                table = products.reshape(size, size, rows)
                spread = np.einsum("iir->ir", table)
                cells = table / np.sqrt(spread[:, None, :] * spread[None, :, :])
                for place in range(size):
                    cells[place, place] = np.where(spread[place] > 0, 1.0, np.nan)
                cells = np.where(counts > 1, cells.reshape(size * size, rows), np.nan)
            else:
                divisor = counts - 1 if "Samp" in self.state_type.function else counts
                cells = np.where(divisor > 0, products / divisor, np.nan)
        values = columns.from_values(cells.T.reshape(-1), pa.float64())
        inner = columns.lists_from(np.arange(rows * size + 1) * size, values)
        return columns.lists_from(np.arange(rows + 1) * size, inner)

    def _split(self, states: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Split states into counts, means, shape (states, n), and sums of products, shape (states, n, n)."""
        counts, *fields = (
            columns.numpy_values(field).astype(np.float64)
            for field in columns.struct_fields(states)
        )
        stacked = np.stack(fields) if fields else np.zeros((0, len(states)))
        return counts, stacked[: self.size], stacked[self.size :]

    def _combined(
        self, counts: np.ndarray, means: np.ndarray, products: np.ndarray, groups: Groups
    ) -> pa.Array:
        """Return the states of the groups from the fields of the states to merge."""
        total = group_kernels.sum_floats(counts, groups)
        fields = [columns.from_values(total, pa.uint64())]
        deviations = []
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for mean in means:
                weighted = group_kernels.sum_floats(
                    np.where(counts > 0, counts * mean, 0.0), groups
                )
                middle = np.where(total > 0, weighted / total, 0.0)
                deviations.append(mean - middle[groups.codes])
                fields.append(columns.from_values(middle, pa.float64()))
            for place, product in enumerate(products):
                left, right = divmod(place, self.size)
                terms = product + counts * deviations[left] * deviations[right]
                summed = group_kernels.sum_floats(np.where(counts > 0, terms, 0.0), groups)
                fields.append(columns.from_values(summed, pa.float64()))
        return columns.structs_from(fields, self.state_type.arrow)


def covariance_matrix(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve one of MATRICES of any number of numbers that are not decimals.

    Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    for data_type in types:
        if not isinstance(plain(data_type), Integer | Float | Boolean):
            raise illegal_argument(name, data_type, "a number")
    size = len(types)
    state = state_type_of(name, (), types, Tuple((UINT64, *[FLOAT64] * (size + size * size))))
    return CovarianceMatrix(name, (), types, Array(Array(FLOAT64)), state, merge_class="float")
