"""plus, minus, multiply, divide, modulo and intDiv of tuples and arrays, element by element.

Two tuples multiply to their dot product, as in ClickHouse; two arrays are added and subtracted only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from olapdb.errors import SizesOfArraysDoNotMatch
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.registry import resolve_scalar
from olapdb.types import Array, Tuple, is_nullable, plain

_NAMES = {
    "plus": "tuplePlus",
    "minus": "tupleMinus",
    "multiply": "dotProduct",
    "negate": "tupleNegate",
}
"""What an operation of tuples is; divide, modulo and intDiv take a tuple and a number only."""
_BY_NUMBER = {
    "multiply": "tupleMultiplyByNumber",
    "divide": "tupleDivideByNumber",
    "modulo": "tupleModuloByNumber",
    "positiveModulo": "tuplePositiveModuloByNumber",
    "intDiv": "tupleIntDivByNumber",
    "intDivOrZero": "tupleIntDivOrZeroByNumber",
}


def with_nested(definition: scalar.ScalarDefinition) -> scalar.ScalarDefinition:
    """Return the definition with tuples and arrays as further operands."""
    if definition.name not in _NAMES and definition.name not in _BY_NUMBER:
        return definition
    of_numbers = definition.resolver

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call for arrays element by element, for tuples by the matching function of tuples, else for
        numbers.

        Raises IllegalTypeOfArgument."""
        types = [plain(a.type) for a in arguments]
        if any(isinstance(t, Array) for t in types):
            return _of_arrays(name, arguments)
        of_tuples = _tuple_function(name, [isinstance(t, Tuple) for t in types])
        if of_tuples is None:
            return of_numbers(name, arguments)
        swapped = len(types) == 2 and not isinstance(types[0], Tuple)
        call = resolve_scalar(of_tuples, list(arguments)[::-1] if swapped else arguments)
        if not swapped:
            return replace(call, name=name)

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Multiply the tuple by the number in front of it."""
            return call.kernel(list(values)[::-1], rows, environment)

        return replace(call, name=name, kernel=kernel)

    return replace(definition, resolver=resolve)


def _tuple_function(name: str, tuples: Sequence[bool]) -> str | None:
    """Return the name of the function of tuples that computes the operation, such as tuplePlus; None if there is
    none. `tuples` says which operands are tuples."""
    if all(tuples):
        return _NAMES.get(name)
    first_alone = list(tuples) == [True, False]
    number_first = list(tuples) == [False, True] and name == "multiply"
    return _BY_NUMBER.get(name) if first_alone or number_first else None


def _of_arrays(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve an operation between the elements of two arrays, or of an array and a number.

    Raises IllegalTypeOfArgument for operands that ClickHouse refuses, Nullable elements too."""
    inner: list[Argument] = []
    for argument in arguments:
        data_type = plain(argument.type)
        element = data_type.inner if isinstance(data_type, Array) else argument.type
        inner.append(Argument(element))
    lists = [isinstance(plain(a.type), Array) for a in arguments]
    allowed = name in ("plus", "minus") if all(lists) else name in _BY_NUMBER
    allowed &= len(lists) == 2 and (lists[0] or name == "multiply")
    if not allowed or any(is_nullable(a.type) for a in inner):
        raise scalar.illegal(name, arguments[0].type, "a number, or arrays of numbers")
    call = resolve_scalar(name, inner)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Compute all elements of all rows in one call. Raises SizesOfArraysDoNotMatch."""
        constant = all(isinstance(value, pa.Scalar) for value in values)
        arrays = [columns.as_array(value, 1 if constant else rows) for value in values]
        offsets, elements = _flattened(name, arrays, lists)
        computed = call.kernel(elements, int(offsets[-1]), environment)
        whole = columns.lists_from(offsets, columns.as_array(computed, int(offsets[-1])))
        return whole[0] if constant else whole

    return ScalarCall(name, Array(call.type), kernel)


def _flattened(
    name: str, arrays: Sequence[pa.Array], lists: Sequence[bool]
) -> tuple[np.ndarray, list[pa.Array]]:
    """Return the offsets of the rows, and for each operand one value for each element.

    Raises SizesOfArraysDoNotMatch for two arrays of different sizes."""
    offsets: np.ndarray | None = None
    parts: list[pa.Array] = []
    for array, is_list in zip(arrays, lists, strict=True):
        if not is_list:
            parts.append(array)
            continue
        own, elements = columns.elements_of(array)
        if offsets is not None and not np.array_equal(np.diff(offsets), np.diff(own)):
            row = int(np.argmax(np.diff(offsets) != np.diff(own)))
            raise SizesOfArraysDoNotMatch(
                f"The two arrays of function {name} must have equal sizes."
            ).at_row(row)
        offsets = own - own[0] if offsets is None else offsets
        parts.append(elements.slice(int(own[0]), int(own[-1] - own[0])))
    assert offsets is not None
    parents = pa.array(columns.parents_of(offsets))
    return offsets, [
        part if is_list else part.take(parents) for part, is_list in zip(parts, lists, strict=True)
    ]
