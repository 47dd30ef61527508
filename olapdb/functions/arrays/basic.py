"""Arrays, tuples and maps: making them, their elements, search in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import ArgumentOutOfBound, BadArguments, NumberOfArgumentsDoesntMatch
from olapdb.functions import scalar
from olapdb.functions.arrays.search import map_parts
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column, map_from
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.supertypes import common_type
from olapdb.functions.numeric.conditional import plain_lc
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


def array_of(arguments: Sequence[pa.Array], rows: int, inner: DataType) -> pa.Array:
    """One list a row of the arguments' values, interleaved."""
    count = len(arguments)
    offsets = np.arange(rows + 1, dtype=np.int64) * count
    if not count:
        return columns.lists_from(offsets, pa.array([], inner.arrow))
    stacked = pa.concat_arrays(list(arguments))
    order = (np.arange(rows)[:, None] + np.arange(count)[None, :] * rows).reshape(-1)
    return columns.lists_from(offsets, stacked.take(pa.array(order)))


def _whole(
    result: DataType,
    build: Callable[[list[pa.Array], int], pa.Array],
    types: Sequence[DataType],
    targets: Sequence[DataType],
    name: str,
) -> ScalarCall:
    """A call whose arguments are cast first and may hold NULLs; constants give a constant."""

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        constant = all(isinstance(v, pa.Scalar) for v in values)
        count = 1 if constant else rows
        cast = [
            cast_column(columns.as_array(v, count), s, t, environment, strict=False)
            for v, s, t in zip(values, types, targets, strict=True)
        ]
        made = build(cast, count)
        return made[0] if constant else made

    return ScalarCall(name, result, kernel)


def array_call(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    types = [a.type for a in arguments]
    inner = common_type([plain_lc(t) for t in types]) if types else NOTHING
    return _whole(
        Array(inner),
        lambda cast, rows: array_of(cast, rows, inner),
        types,
        [inner] * len(types),
        name,
    )


def _tuple(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    types = tuple(plain_lc(a.type) for a in arguments)
    result = Tuple(types)

    def build(cast: list[pa.Array], rows: int) -> pa.Array:
        return columns.structs_from(cast, result.arrow, rows=rows)

    return _whole(result, build, [a.type for a in arguments], types, name)


def _map(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    if len(arguments) % 2:
        raise NumberOfArgumentsDoesntMatch(f"Function {name} takes keys and values in pairs.")
    keys, values = arguments[::2], arguments[1::2]
    key = common_type([plain_lc(a.type) for a in keys]) if keys else NOTHING
    value = common_type([plain_lc(a.type) for a in values]) if values else NOTHING
    if keys and is_nullable(key):
        raise BadArguments(
            f"Map cannot have a key of type {key}.", hint="Use ifNull or assumeNotNull on it."
        )
    result = Map(key, value)
    targets = [key if i % 2 == 0 else value for i in range(len(arguments))]

    def build(cast: list[pa.Array], rows: int) -> pa.Array:
        key_lists = array_of(cast[::2], rows, key)
        value_lists = array_of(cast[1::2], rows, value)
        return map_from(columns.offsets_of(key_lists), key_lists.values, value_lists.values, result)

    return _whole(result, build, [a.type for a in arguments], targets, name)


def concatenation(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """arrayConcat, and concat of arrays."""
    result = common_type([plain(a.type) for a in arguments])
    if not isinstance(result, Array):
        raise scalar.illegal(name, arguments[0].type, "an Array")

    def build(cast: list[pa.Array], rows: int) -> pa.Array:
        parts = [columns.elements_of(c) for c in cast]
        owners = np.concatenate([columns.parents_of(o) for o, _ in parts])
        order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=rows)
        elements = pa.concat_arrays([e for _, e in parts]).take(pa.array(order))
        return columns.lists_from(columns.offsets_from_counts(counts), elements)

    types = [a.type for a in arguments]
    return _whole(result, build, types, [result] * len(types), name)


# --- elements -----------------------------------------------------------------------------------


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
        return or_default(elements, np.where(inside, offsets[:-1] + position, -1), inner)

    return scalar.usual(name, arguments, inner, kernel)


def or_default(elements: pa.Array, rows: np.ndarray, inner: DataType) -> pa.Array:
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
        return or_default(items, rows, inner)

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


# --- maps ---------------------------------------------------------------------------------------


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


def _map_from_arrays(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    types = [plain(a.type) for a in arguments]
    scalar.require(name, types, Array, "an Array")
    keys, values = types
    assert isinstance(keys, Array)
    assert isinstance(values, Array)
    result = Map(keys.inner, values.inner)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        (left, key), (right, value) = (columns.elements_of(a) for a in arrays)
        if not np.array_equal(left, right):
            raise BadArguments(f"The arrays of {name} have different sizes.")
        return map_from(left, key, value, result)

    return scalar.usual(name, arguments, result, kernel)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("array", array_call, count=(0, None)),
    scalar.custom("tuple", _tuple, count=(0, None)),
    scalar.custom("map", _map, count=(0, None)),
    scalar.custom("arrayElement", _array_element, count=2),
    scalar.custom("tupleElement", _tuple_element, count=2),
    scalar.custom("arrayConcat", concatenation, count=(1, None)),
    scalar.define("mapKeys", _map_rule(keys=True), _map_side(keys=True)),
    scalar.define("mapValues", _map_rule(keys=False), _map_side(keys=False)),
    scalar.custom("mapFromArrays", _map_from_arrays, count=2, aliases=("MAP_FROM_ARRAYS",)),
)
