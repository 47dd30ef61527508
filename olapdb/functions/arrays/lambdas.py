"""The contract of functions that take a lambda: `arrayMap(x -> x + 1, a)`.

The binder resolves the function for the types of the arrays and of the lambda's body.  The executor
evaluates the body once over the elements of many rows, side by side:

    a = [[1, 2], [], [3]]      elements 1, 2, 3 of the rows 0, 0, 2

so a lambda costs one pass of its kernels, not one call for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.errors import SizesOfArraysDoNotMatch
from olapdb.functions.base import Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.types import DataType

Body: TypeAlias = Callable[[Sequence[pa.Array], np.ndarray], pa.Array]
"""Evaluate the lambda's body.

Takes the values of the lambda's parameters, all of one length, and for each of them the row that it
belongs to, ascending; returns as many values of the body's type."""

ELEMENTS_MAX = 1 << 20
"""Elements that one evaluation of a body sees; this bounds the memory of its intermediate columns."""


@dataclass(frozen=True)
class LambdaCall:
    """A function resolved for the types of its arguments and of its lambda's body.

    `run(arguments, rows, environment, body)` gets the columns beside the lambda and returns a column
    of `type.arrow`: a scalar where all arguments are scalars and `rows` is 1."""

    name: str
    type: DataType
    run: Callable[[Sequence[Column], int, Environment, Body], Column]


@dataclass(frozen=True)
class LambdaDefinition:
    """A function under its name.

    `parameters(name, types)` gives the types of the lambda's parameters from the types of the other
    arguments; `resolve(name, body, types)` gives the call.  Both raise NumberOfArgumentsDoesntMatch
    and IllegalTypeOfArgument.
    """

    name: str
    parameters: Callable[[str, Sequence[DataType]], tuple[DataType, ...]]
    resolve: Callable[[str, DataType, Sequence[DataType]], LambdaCall]


@dataclass(frozen=True)
class Elements:
    """The elements of the arrays that a lambda walks: `offsets` from 0, shape (rows + 1,), and one
    column of elements for each array."""

    offsets: np.ndarray
    columns: tuple[pa.Array, ...]

    @property
    def count(self) -> int:
        return int(self.offsets[-1])

    def mapped(self, body: Body, body_type: DataType) -> pa.Array:
        """The body's value for each element, in order."""
        if not self.count:
            return pa.array([], body_type.arrow)
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
    """The elements of arrays that are walked side by side.

    Raises SizesOfArraysDoNotMatch, with the row, where two arrays of a row differ in length."""
    taken = [columns.elements_of(array) for array in arrays]
    offsets = taken[0][0]
    for at, (others, _) in enumerate(taken[1:], 2):
        wrong = np.flatnonzero(np.diff(offsets) != np.diff(others))
        if len(wrong):
            row = int(wrong[0])
            sizes = int(np.diff(offsets)[row]), int(np.diff(others)[row])
            raise SizesOfArraysDoNotMatch(
                f"The arrays of function {name} have different sizes: the first has {sizes[0]}"
                f" elements, array {at} has {sizes[1]}."
            )
    return Elements(offsets, tuple(elements for _, elements in taken))


def lambda_over_lists(
    name: str, body_type: DataType, call: ScalarCall, elements: Callable[[list[pa.Array]], Elements]
) -> LambdaCall:
    """A function of what the body gives for the elements, as a list, and of the arguments.

    `call.kernel` takes ([the body's values as lists], then the arguments) and runs once over all
    rows."""

    def run(values: Sequence[Column], rows: int, environment: Environment, body: Body) -> Column:
        constant = rows == 1 and all(isinstance(v, pa.Scalar) for v in values)
        arrays = [columns.as_array(v, rows) for v in values]
        walked = elements(arrays)
        lists = columns.lists_from(walked.offsets, walked.mapped(body, body_type))
        made = call.kernel([lists, *arrays], rows, environment)
        return made[0] if constant and isinstance(made, pa.Array) else made

    return LambdaCall(name, call.type, run)
