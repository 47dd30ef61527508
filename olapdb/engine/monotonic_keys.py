"""Partition keys of many rows, computed once for each distinct value of the key's column.

A block has far more rows than days between its first and last row, and a partition key is mostly a
monotonic function of a time. A key that is equal at both ends is equal everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.evaluate import evaluate_array
from olapdb.config import tuning
from olapdb.errors import Error
from olapdb.functions.base import Environment
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression
from olapdb.records import dataclass
from olapdb.types.arrow_values import array_of, scalar_of


def constant_value(
    expression: Expression, batch: pa.RecordBatch, environment: Environment
) -> pa.Array | None:
    """Return the value of a monotonic expression that is equal for all rows; an array of length 1.

    Returns None if this is not known."""
    column = _monotonic(expression, batch)
    if column is None:
        return None
    ends = [column.low] if column.low == column.high else [column.low, column.high]
    values = _evaluate_at(expression, column, ends, environment)
    if values is None or not values[0].equals(values[-1]):
        return None
    return values.slice(0, 1)


def key_values(expression: Expression, batch: pa.RecordBatch, environment: Environment) -> pa.Array:
    """Return the expression's value for each row of the batch.

    For a monotonic expression of a column with a narrow range it evaluates each value once.
    """
    column = _monotonic(expression, batch)
    if column is not None and column.span * tuning.MONOTONIC_ROWS_PER_VALUE_MIN <= batch.num_rows:
        ticks = range(column.low, column.high + 1)
        values = _evaluate_at(expression, column, ticks, environment)
        if values is not None:
            return values.take(column.positions)
    return evaluate_array(expression, batch, environment)


@dataclass(frozen=True)
class _MonotonicColumn:
    """The one column that a monotonic expression reads: its values as integers, and their bounds."""

    name: str
    arrow: pa.DataType
    ticks: pa.Array
    low: int
    high: int

    @property
    def span(self) -> int:
        """Return the number of integers from the lowest to the highest value."""
        return self.high - self.low + 1

    @property
    def positions(self) -> pa.Array:
        """Return each row's value minus `low`, as integers."""
        integer_type = pa.uint64() if pa.types.is_unsigned_integer(self.ticks.type) else pa.int64()
        return pc.subtract(self.ticks.cast(integer_type), scalar_of(self.low, integer_type))


def _monotonic(expression: Expression, batch: pa.RecordBatch) -> _MonotonicColumn | None:
    """Return the column that a monotonic expression reads. Return None for another expression, for
    fewer than MONOTONIC_ROWS_MIN rows, and for a column that is no integer, date or time, or has
    NULLs."""
    name = _monotonic_argument(expression)
    if name is None or batch.num_rows < tuning.MONOTONIC_ROWS_MIN:
        return None
    values = batch.column(name)
    ticks = _ticks(values)
    if ticks is None:
        return None
    ends = pc.min_max(ticks)
    return _MonotonicColumn(name, values.type, ticks, ends["min"].as_py(), ends["max"].as_py())


def _monotonic_argument(expression: Expression) -> str | None:
    """Return the only column that a monotonic function reads; None for any other expression."""
    if isinstance(expression, ColumnRef):
        return expression.name
    if not isinstance(expression, Call) or not expression.function.monotonic:
        return None
    if expression.function.volatility != "pure":
        return None
    columns = [argument for argument in expression.arguments if not isinstance(argument, Constant)]
    if len(columns) != 1 or not isinstance(columns[0], ColumnRef):
        return None
    return columns[0].name


def _ticks(values: pa.Array) -> pa.Array | None:
    """Return integers as they are, dates as days and times as ticks; None for other types and for a
    column with NULLs."""
    arrow = values.type
    if values.null_count:
        return None
    if pa.types.is_date32(arrow):
        return values.view(pa.int32())
    if pa.types.is_timestamp(arrow):
        return values.view(pa.int64())
    return values if pa.types.is_integer(arrow) else None


def _evaluate_at(
    expression: Expression, column: _MonotonicColumn, ticks: Sequence[int], environment: Environment
) -> pa.Array | None:
    """Return the expression's values for these values (`ticks`) of its column. Return None if it
    fails for any of them, since perhaps no row has that value."""
    values = array_of(ticks, column.ticks.type).view(column.arrow)
    try:
        batch = pa.RecordBatch.from_arrays([values], names=[column.name])
        return evaluate_array(expression, batch, environment)
    except Error:
        return None
