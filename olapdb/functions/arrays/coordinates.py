"""flipCoordinates: points with x and y exchanged."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.types import FLOAT64, Array, DataType, Tuple


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the argument's type; raise IllegalTypeOfArgument unless it is a pair of Float64, or
    arrays of such at any depth."""
    inner = types[0]
    while isinstance(inner, Array):
        inner = inner.inner
    if not isinstance(inner, Tuple) or inner.elements != (FLOAT64, FLOAT64):
        raise scalar.illegal(name, types[0], "a pair of Float64, or arrays of such")
    return types[0]


def _flipped(array: pa.Array) -> pa.Array:
    """Return the points, at any depth of arrays, with x and y exchanged."""
    if pa.types.is_list(array.type):
        offsets, elements = columns.elements_of(array)
        return columns.lists_from(offsets, _flipped(elements))
    x, y = columns.struct_fields(array)
    return columns.structs_from([y, x], array.type)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("flipCoordinates", _rule, lambda arrays, call: _flipped(arrays[0])),
)
