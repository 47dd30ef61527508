"""Functions that build arrays, tuples and maps from values or from other arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, NumberOfArgumentsDoesntMatch
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column, map_from
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.supertypes import common_type
from olapdb.functions.numeric.conditional import plain_lc
from olapdb.types import NOTHING, Array, DataType, Map, Tuple, is_nullable, plain


def interleave_lists(arguments: Sequence[pa.Array], rows: int, inner: DataType) -> pa.Array:
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


def resolve_array(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    types = [a.type for a in arguments]
    inner = common_type([plain_lc(t) for t in types]) if types else NOTHING
    return _whole(
        Array(inner),
        lambda cast, rows: interleave_lists(cast, rows, inner),
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
        key_lists = interleave_lists(cast[::2], rows, key)
        value_lists = interleave_lists(cast[1::2], rows, value)
        return map_from(columns.offsets_of(key_lists), key_lists.values, value_lists.values, result)

    return _whole(result, build, [a.type for a in arguments], targets, name)


def resolve_concatenation(name: str, arguments: Sequence[Argument]) -> ScalarCall:
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
    scalar.custom("array", resolve_array, count=(0, None)),
    scalar.custom("tuple", _tuple, count=(0, None)),
    scalar.custom("map", _map, count=(0, None)),
    scalar.custom("arrayConcat", resolve_concatenation, count=(1, None)),
    scalar.custom("mapFromArrays", _map_from_arrays, count=2, aliases=("MAP_FROM_ARRAYS",)),
)
