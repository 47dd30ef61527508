"""Functions that read elements of arrays, tuples and maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import ArgumentOutOfBound, BadArguments
from olapdb.functions import scalar
from olapdb.functions.arrays.search import map_parts
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.types import (
    NOTHING,
    Array,
    DataType,
    Integer,
    Map,
    Nothing,
    Tuple,
    is_nullable,
    make_nullable,
    plain,
)


def _array_element(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """a[i] from 1, negative from the end, the default outside; m[key]."""
    container, index = plain(arguments[0].type), plain(arguments[1].type)
    if isinstance(container, Map):
        return _map_element(name, arguments, container)
    scalar.require(name, [container], Array, "an Array or Map")
    scalar.require(name, [index], Integer, "an integer index")
    assert isinstance(container, Array)
    inner = container.inner if not isinstance(container.inner, Nothing) else make_nullable(NOTHING)
    if isinstance(inner, Array) and any(is_nullable(a.type) for a in arguments):
        raise scalar.illegal(name, arguments[0].type, "an Array without NULLs")

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        offsets, elements = columns.elements_of(arrays[0])
        sizes, place = np.diff(offsets), columns.numpy_values(arrays[1]).astype(np.int64)
        position = np.where(place > 0, place - 1, sizes + place)
        inside = (place != 0) & (position >= 0) & (position < sizes)
        return take_or_default(elements, np.where(inside, offsets[:-1] + position, -1), inner)

    return scalar.usual(name, arguments, inner, kernel)


def take_or_default(elements: pa.Array, rows: np.ndarray, inner: DataType) -> pa.Array:
    """The elements at these rows; the type's default (NULL where it can be) where the row is -1."""
    padded = pa.concat_arrays([elements, columns.single(default_value(inner))])
    return padded.take(pa.array(np.where(rows < 0, len(elements), rows)))


def _map_element(name: str, arguments: Sequence[Argument], container: Map) -> ScalarCall:
    key_type, inner = container.key, container.value

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        offsets, keys, items = map_parts(arrays[0])
        wanted = cast_column(arrays[1], call.types[1], key_type, call.environment, strict=True)
        owners = columns.parents_of(offsets)
        same = np.flatnonzero(np.asarray(pc.equal(keys, wanted.take(pa.array(owners)))))
        rows = np.full(len(arrays[0]), -1, np.int64)
        rows[owners[same][::-1]] = same[::-1]
        return take_or_default(items, rows, inner)

    return scalar.usual(name, arguments, inner, kernel)


def _tuple_element(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    container = plain(arguments[0].type)
    if not isinstance(container, Tuple):
        raise scalar.illegal(name, container, "a Tuple")
    key = arguments[1].constant.as_py() if arguments[1].constant is not None else None
    if isinstance(key, str) and key in container.field_names:
        at = container.field_names.index(key)
    elif isinstance(key, int) and 1 <= key <= len(container.elements):
        at = key - 1
    else:
        kind = BadArguments if isinstance(key, str) else ArgumentOutOfBound
        raise kind(f"{container} has no element {key!r}.")
    inner = container.elements[at]

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        if isinstance(values[0], pa.Scalar):
            return columns.struct_fields(columns.single(values[0]))[at][0]
        return columns.struct_fields(values[0])[at]

    return ScalarCall(name, inner, kernel)


def _map_side(*, keys: bool) -> scalar.Kernel:
    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        offsets, key, value = map_parts(arrays[0])
        return columns.lists_from(offsets, key if keys else value)

    return kernel


def _map_rule(*, keys: bool) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        container = types[0]
        if not isinstance(container, Map):
            raise scalar.illegal(name, container, "a Map")
        return Array(container.key if keys else container.value)

    return rule


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("arrayElement", _array_element, count=2),
    scalar.custom("tupleElement", _tuple_element, count=2),
    scalar.define("mapKeys", _map_rule(keys=True), _map_side(keys=True)),
    scalar.define("mapValues", _map_rule(keys=False), _map_side(keys=False)),
)
