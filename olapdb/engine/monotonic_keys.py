"""The values of a partition key, computed once for each value of its column where those are few.

A block has far more rows than days between its first and its last, and a partition key is mostly
a monotonic function of a time: where it is the same at both ends, it is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.evaluate import evaluate_array
from olapdb.config import tuning
from olapdb.errors import Error
from olapdb.functions.base import Environment
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression


def constant_value(
    expression: Expression, batch: pa.RecordBatch, environment: Environment
) -> pa.Array | None:
    """The one value of an expression that is the same for all rows, as its ends tell; None: not
    known."""
    found = _monotonic(expression, batch)
    if found is None:
        return None
    ends = [found.low] if found.low == found.high else [found.low, found.high]
    values = _at(expression, found, ends, environment)
    if values is None or not values[0].equals(values[-1]):
        return None
    return values.slice(0, 1)


def key_values(expression: Expression, batch: pa.RecordBatch, environment: Environment) -> pa.Array:
    """What `evaluate_array` gives, faster where it can be."""
    found = _monotonic(expression, batch)
    if found is not None and found.span * tuning.MONOTONIC_ROWS_PER_VALUE_MIN <= batch.num_rows:
        table = _at(expression, found, range(found.low, found.high + 1), environment)
        if table is not None:
            return table.take(found.positions)
    return evaluate_array(expression, batch, environment)


@dataclass(frozen=True)
class _Monotonic:
    """The one column that a monotonic expression reads: its values as integers, and their ends."""

    column: str
    arrow: pa.DataType
    ticks: pa.Array
    low: int
    high: int

    @property
    def span(self) -> int:
        return self.high - self.low + 1

    @property
    def positions(self) -> pa.Array:
        """Where each row's value stands in low, low + 1, …"""
        wide = pa.uint64() if pa.types.is_unsigned_integer(self.ticks.type) else pa.int64()
        return pc.subtract(self.ticks.cast(wide), pa.scalar(self.low, wide))


def _monotonic(expression: Expression, batch: pa.RecordBatch) -> _Monotonic | None:
    column = _monotonic_argument(expression)
    if column is None or batch.num_rows < tuning.MONOTONIC_ROWS_MIN:
        return None
    values = batch.column(column)
    ticks = _ticks(values)
    if ticks is None:
        return None
    ends = pc.min_max(ticks)
    return _Monotonic(column, values.type, ticks, ends["min"].as_py(), ends["max"].as_py())


def _monotonic_argument(expression: Expression) -> str | None:
    """The one column of a monotonic function of it and constants, None for anything else."""
    if isinstance(expression, ColumnRef):
        return expression.name
    if not isinstance(expression, Call) or not expression.function.monotonic:
        return None
    if expression.function.volatility != "pure":
        return None
    columns = [a for a in expression.arguments if not isinstance(a, Constant)]
    if len(columns) != 1 or not isinstance(columns[0], ColumnRef):
        return None
    return columns[0].name


def _ticks(values: pa.Array) -> pa.Array | None:
    """Dates, times and integers as integers; None for other types, and where there are NULLs."""
    arrow = values.type
    if values.null_count:
        return None
    if pa.types.is_date32(arrow):
        return values.view(pa.int32())
    if pa.types.is_timestamp(arrow):
        return values.view(pa.int64())
    return values if pa.types.is_integer(arrow) else None


def _at(
    expression: Expression, found: _Monotonic, ticks: Sequence[int], environment: Environment
) -> pa.Array | None:
    """The expression for these values of its column; None where it fails on one (which perhaps no
    row has)."""
    values = pa.array(ticks, found.ticks.type).view(found.arrow)
    try:
        batch = pa.RecordBatch.from_arrays([values], names=[found.column])
        return evaluate_array(expression, batch, environment)
    except Error:
        return None
