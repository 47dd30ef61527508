"""The setting `extremes`: the least and the greatest value of each column of a result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import Error
from olapdb.functions.aggregates.registry import resolve_aggregate
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels.constants import default_value
from olapdb.types import DataType, plain


class Extremes:
    """The extremes of the batches that pass, one state a column and end, whatever their number."""

    def __init__(self, types: Sequence[DataType]) -> None:
        self._types = tuple(types)
        self._rows = 0
        self._ends = [[_End(name, data_type) for data_type in types] for name in ("min", "max")]

    def through(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches unchanged; count their rows, and keep the extremes of their values."""
        for batch in batches:
            self._rows += batch.num_rows
            for ends in self._ends:
                for end, column in zip(ends, batch.columns, strict=True):
                    end.add(column)
            yield batch

    def rows(self, schema: pa.Schema) -> pa.RecordBatch | None:
        """Return two rows of the schema, the least and the greatest values. None without rows."""
        if not self._rows:
            return None
        pairs = zip(*([end.value() for end in ends] for ends in self._ends), strict=True)
        arrays = [pa.concat_arrays(pair) for pair in pairs]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


class _End:
    """The least or the greatest value of one column: NULL if it has no other values, the default of
    a type that has no order."""

    def __init__(self, function: str, data_type: DataType) -> None:
        self._type = data_type
        self._aggregate: Aggregate | None = None
        try:
            self._aggregate = resolve_aggregate(function, (), [plain(data_type)])
        except Error:  # the values of this type, such as states, have no order
            return
        self._state: pa.Array | None = None

    def add(self, column: pa.Array) -> None:
        """Take the values that are not NULL into the least or the greatest value so far."""
        values = column.drop_null() if column.null_count else column
        if self._aggregate is None or not len(values):
            return
        state = self._aggregate.state([values], _one_group(len(values)))
        if self._state is not None:
            states = pa.concat_arrays([self._state, state])
            state = self._aggregate.merge(states, _one_group(2))
        self._state = state

    def value(self) -> pa.Array:
        """Return the value, of the column's type; shape (1,)."""
        arrow = self._type.arrow
        if self._aggregate is None:
            return pa.array([default_value(self._type).as_py()], arrow)
        if self._state is None:
            return pa.nulls(1, arrow)
        return self._aggregate.finalize(self._state).cast(arrow)


def _one_group(rows: int) -> Groups:
    """Return the groups of rows that are all in one."""
    return Groups(np.zeros(rows, np.int64), 1, are_checked=True)
