"""avg of dates, moments and times: a value of the same type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates.signatures import require_no_parameters, state_type_of
from olapdb.functions.aggregates.sums import Average, average
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import (
    INT64,
    UINT64,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Time,
    Time64,
    Tuple,
    plain,
)

TIMES = (Date, Date32, DateTime, DateTime64, Time, Time64)
_EXACT = Decimal(38, 0)
_WORD = np.longdouble(2.0**64)


@dataclass(frozen=True)
class TimeAverage(Average):
    """avg of dates, moments and times. State: Tuple(sum, count) of days, seconds or ticks.

    The sum of types of 64 bits is a Decimal(38, 0), which nanoseconds do not exceed.
    """

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return Tuple(sum, count) of each group's values that are not NULL."""
        array = arguments[0]
        ticks = columns.numpy_values(array).astype(np.int64)
        numbers = columns.from_values(ticks, pa.int64(), columns.validity(array))
        return super().state([numbers], groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return sum / count of each group, rounded to the last digit of the type, halves to even; 0 for a group
        without values."""
        sums, counts = columns.struct_fields(states)
        divisors = np.maximum(columns.numpy_values(counts), 1)
        if not isinstance(self.summed, Decimal):
            totals = columns.numpy_values(sums).astype(np.longdouble)
        else:
            words = np.frombuffer(sums.buffers()[1], "<i8").reshape(-1, 2)[sums.offset :][
                : len(sums)
            ]
            low = np.ascontiguousarray(words[:, 0]).view(np.uint64)
            totals = words[:, 1].astype(np.longdouble) * _WORD + low.astype(np.longdouble)
        step = self._ticks_a_digit
        means = np.rint(totals / step / divisors) * step
        return columns.from_values(means.astype(np.int64), self.result_type.arrow)

    @property
    def _ticks_a_digit(self) -> int:
        """The ticks of the last digit of a DateTime64, whose Arrow unit may be finer; else 1."""
        kind = self.result_type
        if not isinstance(kind, DateTime64):
            return 1
        return int(10 ** (-kind.precision % 3))

    def acero(self) -> None:
        """Return None: Arrow cannot compute sums of dates and times."""
        return


def average_of_times(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve avg: TimeAverage for an argument of a type in `TIMES`, the average of numbers for any other."""
    if len(types) != 1 or not isinstance(plain(types[0]), TIMES):
        return average(name, parameters, types)
    require_no_parameters(name, parameters)
    argument = plain(types[0])
    summed = _EXACT if isinstance(argument, DateTime64 | Time64) else INT64
    state = Tuple((summed, UINT64), ("sum", "count"))
    state_type = state_type_of(name, (), types, state)
    return TimeAverage(name, (), types, argument, state_type, merge_class="exact")
