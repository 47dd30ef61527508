"""sumKahan: sums of floats with an error of one rounding, whatever the number of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.signatures import (
    illegal_argument,
    require_count,
    require_no_parameters,
    state_type_of,
)
from olapdb.functions.aggregates.sums import Sum
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.supertypes import sum_type
from olapdb.records import dataclass
from olapdb.types import FLOAT64, Boolean, DataType, Decimal, Float, Integer, Tuple, plain


@dataclass(frozen=True)
class CompensatedSum(Aggregate):
    """sumKahan(x). State: Tuple(sum, error), whose sum is the exact one but for about 2^-100 of it.

    Neighbours are added in rounds, each sum with its rounding error (Knuth's TwoSum), so that a
    group of n rows takes log2(n) rounds of vector operations."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the sum of each group's values that are not NULL, and its error."""
        (values,), groups = group_kernels.drop_null_rows(arguments, groups)
        numbers = columns.numpy_values(values).astype(np.float64)
        return self._added(numbers, np.zeros(len(numbers)), groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Add up the sums and the errors of each group."""
        sums, errors = (columns.numpy_values(field) for field in columns.struct_fields(states))
        return self._added(sums, errors, groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return each group's sum plus its error; Float64."""
        sums, errors = (columns.numpy_values(field) for field in columns.struct_fields(states))
        with np.errstate(invalid="ignore", over="ignore"):
            return columns.from_values(sums + errors, pa.float64())

    def _added(self, sums: np.ndarray, errors: np.ndarray, groups: Groups) -> pa.Array:
        """Add up the sums and their errors by group and return the states Tuple(sum, error)."""
        order = groups.order
        sums, errors, codes = sums[order], errors[order], groups.codes[order]
        sizes = groups.sizes
        with np.errstate(invalid="ignore", over="ignore"):
            while sizes.max(initial=0) > 1:
                starts = np.cumsum(sizes) - sizes
                place = np.arange(len(codes)) - starts[codes]
                left = np.flatnonzero((place % 2 == 0) & (place + 1 < sizes[codes]))
                total = sums[left] + sums[left + 1]
                back = total - sums[left]
                lost = (sums[left] - (total - back)) + (sums[left + 1] - back)
                errors[left] += errors[left + 1] + lost
                sums[left] = total
                kept = place % 2 == 0
                sums, errors, codes = sums[kept], errors[kept], codes[kept]
                sizes = (sizes + 1) // 2
        fields = np.zeros((2, groups.count))
        fields[:, codes] = sums, errors
        parts = [columns.from_values(field, pa.float64()) for field in fields]
        return columns.structs_from(parts, self.state_type.arrow)


def kahan_sum(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve sumKahan of a number: decimals have exact sums, others are added up as Float64.

    Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    number = plain(types[0])
    if isinstance(number, Decimal):
        result = sum_type(number)
        return Sum(name, (), types, result, state_type_of(name, (), types, result))
    if not isinstance(number, Integer | Float | Boolean):
        raise illegal_argument(name, types[0], "a number")
    state = state_type_of(name, (), types, Tuple((FLOAT64, FLOAT64), ("sum", "error")))
    return CompensatedSum(name, (), types, FLOAT64, state, merge_class="float")
