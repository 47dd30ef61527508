"""The contract of functions that take a lambda, such as `arrayMap(x -> x + 1, a)`.

The binder resolves the function for the types of the arrays and of the lambda's body.  The executor
evaluates the body once over the elements of many rows, side by side:

    a = [[1, 2], [], [3]]      elements 1, 2, 3 of the rows 0, 0, 2

So a lambda costs one pass of its kernels, not one call for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.errors import SizesOfArraysDoNotMatch
from olapdb.functions.base import Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import DataType

Body: TypeAlias = Callable[[Sequence[pa.Array], np.ndarray], pa.Array]
"""Evaluate the lambda's body.

Takes the values of the lambda's parameters, all of one length, and for each of them the row that it
belongs to, ascending; returns as many values of the body's type."""

ELEMENTS_MAX = 1 << 20
"""The most elements of one evaluation of a body; bounds the memory of its intermediate columns."""


@dataclass(frozen=True)
class LambdaCall:
    """A function with a lambda, resolved for the types of its arguments and of the lambda's body.

    `run(arguments, rows, environment, body)` gets the columns beside the lambda and returns a
    column of `type.arrow`: a scalar where all arguments are scalars and `rows` is 1.
    """

    name: str
    type: DataType
    run: Callable[[Sequence[Column], int, Environment, Body], Column]


@dataclass(frozen=True)
class LambdaDefinition:
    """A function with a lambda under its name.

    `parameters(name, types)` gives the types of the lambda's parameters from the types of the other
    arguments; `resolve(name, body, types)` gives the call.  Both raise NumberOfArgumentsDoesntMatch
    and IllegalTypeOfArgument.
    """

    name: str
    parameters: Callable[[str, Sequence[DataType]], tuple[DataType, ...]]
    resolve: Callable[[str, DataType, Sequence[DataType]], LambdaCall]


@dataclass(frozen=True)
class Elements:
    """The elements that a lambda is evaluated over: one column for each array, and the arrays'
    `offsets` from 0, shape (rows + 1,)."""

    offsets: np.ndarray
    columns: tuple[pa.Array, ...]

    @property
    def count(self) -> int:
        """The number of elements of all rows."""
        return int(self.offsets[-1])

    def evaluate(self, body: Body, body_type: DataType) -> pa.Array:
        """Return the body's value for each element, in order."""
        if not self.count:
            return pa.nulls(0, body_type.arrow)
        owners = columns.parents_of(self.offsets)
        pieces = [
            body(
                [c.slice(start, ELEMENTS_MAX) for c in self.columns],
                owners[start : start + ELEMENTS_MAX],
            )
            for start in range(0, self.count, ELEMENTS_MAX)
        ]
        return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)


def elements_of_arrays(name: str, arrays: Sequence[pa.Array]) -> Elements:
    """Return the elements of arrays that a lambda takes side by side.

    Raises SizesOfArraysDoNotMatch, with the row, if two arrays of a row differ in length."""
    lists = [columns.elements_of(array) for array in arrays]
    offsets = lists[0][0]
    for number, (other_offsets, _) in enumerate(lists[1:], 2):
        mismatched = np.flatnonzero(np.diff(offsets) != np.diff(other_offsets))
        if len(mismatched):
            row = int(mismatched[0])
            sizes = int(np.diff(offsets)[row]), int(np.diff(other_offsets)[row])
            raise SizesOfArraysDoNotMatch(
                f"The arrays of function {name} have different sizes: the first has {sizes[0]}"
                f" elements, array {number} has {sizes[1]}."
            )
    return Elements(offsets, tuple(elements for _, elements in lists))


def lambda_over_lists(
    name: str, body_type: DataType, call: ScalarCall, elements: Callable[[list[pa.Array]], Elements]
) -> LambdaCall:
    """Build the call of a function of a lambda. It evaluates the lambda's body over `elements` of the arguments,
    wraps the values as lists, and runs `call.kernel` with these lists and the arguments, once over all rows."""

    def run(values: Sequence[Column], rows: int, environment: Environment, body: Body) -> Column:
        """Evaluate the body over the elements, then call the kernel."""
        constant = rows == 1 and all(isinstance(v, pa.Scalar) for v in values)
        arrays = [columns.as_array(v, rows) for v in values]
        walked = elements(arrays)
        lists = columns.lists_from(walked.offsets, walked.evaluate(body, body_type))
        results = call.kernel([lists, *arrays], rows, environment)
        return results[0] if constant and isinstance(results, pa.Array) else results

    return LambdaCall(name, call.type, run)
