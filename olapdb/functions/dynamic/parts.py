"""Calls that take a part of a Dynamic or a JSON, also of those that are elements of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa

from olapdb import types
from olapdb.functions.base import Column, Environment, ScalarCall
from olapdb.functions.dynamic.order import order_keys
from olapdb.functions.dynamic.paths import object_at, value_at
from olapdb.functions.kernels import columns

Take: TypeAlias = Callable[[pa.Array, Environment], pa.Array]
"""A function from the values of a Dynamic or a JSON to as many others."""


def call_of(name: str, result: types.DataType, take: Take, depth: int = 0) -> ScalarCall:
    """Return the call of a function of one column that applies `take`; with `depth` above 0, to the elements within
    that many arrays."""
    for _ in range(depth):
        result = types.Array(result)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the part of each value that the function is for; within arrays, if the argument has any."""
        taken = _within(columns.single(values[0]), depth, lambda array: take(array, environment))
        return taken[0] if isinstance(values[0], pa.Scalar) else taken

    return ScalarCall(name, result, kernel)


def _within(array: pa.Array, depth: int, take: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return the column with `take` applied to the elements within `depth` levels of arrays."""
    if not depth:
        return take(array)
    offsets, elements = columns.elements_of(array)
    return columns.lists_from(offsets, _within(elements, depth - 1, take))


def innermost(data_type: types.DataType) -> tuple[types.DataType, int]:
    """Return the type of the innermost elements of arrays, and how many arrays are around them."""
    depth = 0
    while isinstance(data_type, types.Array):
        data_type, depth = data_type.inner, depth + 1
    return data_type, depth


def value_call(source: types.DataType, path: str) -> ScalarCall:
    """Return the call that takes the value at a path of a JSON, or of the JSONs in an array."""
    inner, depth = innermost(source)
    kind = types.plain(inner)
    assert isinstance(kind, types.Json)
    result = kind.type_of(path)
    if types.is_nullable(inner):
        result = types.make_nullable(result)
    return call_of("_jsonValue", result, lambda array, _: value_at(array, kind, path), depth)


def object_call(source: types.DataType, path: str) -> ScalarCall:
    """Return the call that takes the object below a path of a JSON, or of the JSONs in an array."""
    inner, depth = innermost(source)
    kind = types.plain(inner)
    assert isinstance(kind, types.Json)
    result: types.DataType = kind.below(path)
    if types.is_nullable(inner):
        result = types.make_nullable(result)
    return call_of("_jsonObject", result, lambda array, _: object_at(array, path), depth)


def order_call(source: types.DataType) -> ScalarCall:
    """Return the call that gives the key by which values of Dynamic or JSON are ordered and compared."""
    result = types.make_nullable(types.STRING) if types.is_nullable(source) else types.STRING
    return call_of("_orderKey", result, lambda array, _: order_keys(array, source))
