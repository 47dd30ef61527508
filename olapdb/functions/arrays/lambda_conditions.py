"""Kernels of functions with a lambda, and lambdas that are conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import IllegalTypeOfArgument
from olapdb.functions.base import Column, Environment
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.nested import count_marked
from olapdb.types import UINT8, Boolean, DataType, Nothing, plain

ListKernel = Callable[[np.ndarray, pa.Array, list[pa.Array]], pa.Array]
"""(offsets of the arrays, the body's value for each element, the arguments) -> the result."""


def scalar_kernel(kernel: ListKernel) -> Callable[[Sequence[Column], int, Environment], Column]:
    """Return the kernel of a ScalarCall that takes the body's values as lists, then the arguments."""

    def run(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Call the list kernel with the offsets and values of the first column, and the other
        columns.
        """
        lists, *arrays = (columns.single(v) for v in values)
        offsets, mapped = columns.elements_of(lists)
        return kernel(offsets, mapped, arrays)

    return run


def require_condition(name: str, body: DataType) -> None:
    """Raise IllegalTypeOfArgument unless the lambda's body is a condition."""
    kind = plain(body)
    if kind != UINT8 and not isinstance(kind, Boolean | Nothing):
        raise IllegalTypeOfArgument(
            f"The lambda of function {name} must give UInt8 or Nullable(UInt8), not {body}."
        )


def true_elements(mapped: pa.Array) -> np.ndarray:
    """Return for which elements the condition is true (neither 0 nor NULL); bool."""
    if pa.types.is_null(mapped.type):
        return np.zeros(len(mapped), bool)
    values = columns.numpy_values(mapped) != 0
    valid = columns.validity(mapped)
    return np.asarray(values if valid is None else values & valid)


def any_true(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
    """Return for each row whether the condition is true for any of its elements; UInt8."""
    return columns.from_values(count_marked(offsets, true_elements(mapped)) > 0, pa.uint8())


def all_true(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
    """Return for each row whether the condition is true for all of its elements; UInt8."""
    return columns.from_values(count_marked(offsets, ~true_elements(mapped)) == 0, pa.uint8())
