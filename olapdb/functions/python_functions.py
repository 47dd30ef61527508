"""Functions whose kernel is Python code of a user.

A function sees one value of each argument at a time, as Python's classes, or with `vectorized` whole
Arrow arrays of equal length. NULL is None. The class of an aggregate is used as

    accumulator = SumSquared()
    accumulator.accumulate(value)     once for each row of the group
    accumulator.finish()              the group's result
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from olapdb import errors
from olapdb.functions.base import Argument, Column, Environment, ScalarCall, Volatility
from olapdb.functions.scalar import ScalarDefinition
from olapdb.records import dataclass
from olapdb.types import DataType, is_nullable


@dataclass(frozen=True)
class PythonFunction:
    """A function that a user wrote in Python: its code, its result type, and how it is called."""

    name: str
    handler: Callable[..., Any]
    returns: DataType
    parameters: int
    vectorized: bool = False
    aggregate: bool = False
    pure: bool = False

    def definition(self) -> ScalarDefinition:
        """Return the ScalarDefinition with which the binder calls the function. An aggregate takes one argument: the
        array of a group's values."""
        count = 1 if self.aggregate else self.parameters
        return ScalarDefinition(self.name, self._resolve, count, count)

    def _resolve(self, name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Return the call for these arguments. Unless the function is pure, its volatility keeps the optimizer from
        computing it once."""
        volatility: Volatility = "pure" if self.pure else "row"
        return ScalarCall(name, self.returns, self._kernel, volatility)

    def _kernel(self, arguments: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Call the code for a block of rows; return an array of `returns.arrow`.

        Raises PythonFunctionFailed if the code raises, returns another number of values than rows, or a value that
        does not fit the type."""
        try:
            if self.vectorized:
                values = self.handler(*(_array(a, rows) for a in arguments))
            elif self.aggregate:
                values = [self._aggregate(group) for group in _values(arguments[0], rows)]
            elif arguments:
                columns = [_values(a, rows) for a in arguments]
                values = list(map(self.handler, *columns))
            else:
                values = [self.handler() for _ in range(rows)]
        except Exception as error:
            raise self._failed(f"{type(error).__name__}: {error}") from error
        return self._result(values, rows)

    def _aggregate(self, group: Iterable[Any] | None) -> Any:
        """Return the result of one group's values, which a new object of the code's class accumulates; several
        parameters arrive as tuples. None stands for no values."""
        accumulator = self.handler()
        for value in group or ():
            if self.parameters > 1:
                accumulator.accumulate(*_elements(value))
            else:
                accumulator.accumulate(value)
        return accumulator.finish()

    def _result(self, values: Any, rows: int) -> pa.Array:
        """Return the values that the code returned as an array of the declared type. Raises PythonFunctionFailed for
        values that do not fit, or another number than `rows`."""
        kind = self.returns.arrow
        try:
            if isinstance(values, pa.ChunkedArray):
                values = values.combine_chunks()
            if not isinstance(values, pa.Array):
                values = pa.array(values, type=kind, from_pandas=True)
            array = values.cast(kind)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise self._failed(f"its result is no {self.returns}: {error}") from error
        if len(array) != rows:
            raise self._failed(f"it returned {len(array)} values for {rows} rows")
        if array.null_count and not is_nullable(self.returns):
            raise self._failed(f"it returned None, but RETURNS {self.returns} is not Nullable")
        return array

    def _failed(self, reason: str) -> errors.PythonFunctionFailed:
        """Return the PythonFunctionFailed error that names the function and the reason."""
        return errors.PythonFunctionFailed(f"The Python function {self.name} failed: {reason}.")


def _array(column: Column, rows: int) -> pa.Array:
    """Return a column as an array of `rows` values."""
    if isinstance(column, pa.Scalar):
        return pa.repeat(column, rows)
    return column


def _values(column: Column, rows: int) -> Sequence[Any]:
    """Return a column as `rows` Python values."""
    if isinstance(column, pa.Scalar):
        return [column.as_py()] * rows
    values: list[Any] = column.to_pylist()
    return values


def _elements(value: Any) -> Iterator[Any]:
    """Yield the elements of a tuple, which Arrow gives as a dictionary."""
    yield from value.values() if isinstance(value, dict) else value
