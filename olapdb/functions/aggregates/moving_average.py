"""exponentialMovingAverage: values that count half as much after each half-life."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import CannotConvertType, NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.signatures import illegal_argument, require_count, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import FLOAT64, UINT8, Boolean, DataType, Decimal, Float, Integer, Tuple, plain


@dataclass(frozen=True)
class ExponentialMovingAverage(Aggregate):
    """exponentialMovingAverage(half-life)(value, time): the sum of v * 2^((t - T) / half-life), where T
    is the latest time, times 1 - 2^(-1 / half-life).

    State: Tuple(seen, sum, T)."""

    half_life: float = 1.0

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the decayed sums of each group's rows without NULL."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        values, times = (
            columns.numpy_values(a.cast(pa.float64()) if pa.types.is_decimal(a.type) else a).astype(
                np.float64
            )
            for a in arguments
        )
        return self._summed(values, times, groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Add up the sums of each group's states as of the latest time."""
        seen, sums, times = (columns.numpy_values(f) for f in columns.struct_fields(states))
        rows = np.flatnonzero(seen)
        return self._summed(sums[rows], times[rows], Groups(groups.codes[rows], groups.count))

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the averages; 0 for a group without rows."""
        _, sums, _ = (columns.numpy_values(field) for field in columns.struct_fields(states))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            weights = 1 / (1 - np.exp2(-1 / np.float64(self.half_life)))
            return columns.from_values(sums / weights, pa.float64())

    def _summed(self, values: np.ndarray, times: np.ndarray, groups: Groups) -> pa.Array:
        """Decay values from their times to the group's latest time, add them up and return the states. Like
        ClickHouse's, sums begin at time 0."""
        latest = np.zeros(groups.count)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            np.maximum.at(latest, groups.codes, times)
            ages = times - latest[groups.codes]
            decay = np.where(ages == 0, 1.0, np.exp2(ages / np.float64(self.half_life)))
            sums = group_kernels.sum_floats(values * decay, groups)
        fields = [
            columns.from_values(groups.sizes > 0, pa.uint8()),
            columns.from_values(sums, pa.float64()),
            columns.from_values(latest, pa.float64()),
        ]
        return columns.structs_from(fields, self.state_type.arrow)


def exponential_moving_average(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve exponentialMovingAverage of two numbers, the value and its time.

    Raises NumberOfArgumentsDoesntMatch, CannotConvertType and IllegalTypeOfArgument."""
    if len(parameters) != 1:
        raise NumberOfArgumentsDoesntMatch(f"{name} takes one parameter, the half-life.")
    (half_life,) = parameters
    if not isinstance(half_life, int | float):
        raise CannotConvertType(f"The half-life of {name} is a number, not {half_life!r}.")
    require_count(name, types, 2)
    for data_type in types:
        if not isinstance(plain(data_type), Integer | Float | Decimal | Boolean):
            raise illegal_argument(name, data_type, "a number")
    state = Tuple((UINT8, FLOAT64, FLOAT64), ("seen", "sum", "time"))
    return ExponentialMovingAverage(
        name,
        parameters,
        types,
        FLOAT64,
        state_type_of(name, parameters, types, state),
        merge_class="float",
        half_life=float(half_life),
    )
