"""Functions that build arrays, tuples and maps from values or from arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, NumberOfArgumentsDoesntMatch, SizesOfArraysDoNotMatch
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import stable_order
from olapdb.functions.kernels.nested import map_parts
from olapdb.functions.kernels.supertypes import NULL_TYPE, common_type, common_type_or_variant
from olapdb.lazy import LazyModule
from olapdb.types import (
    NOTHING,
    Array,
    DataType,
    Map,
    Nothing,
    Nullable,
    Tuple,
    Variant,
    is_nullable,
    plain,
)
from olapdb.types.arrow_values import from_numpy

if TYPE_CHECKING:
    from olapdb.functions.variants import calls as variant_calls
else:
    variant_calls = LazyModule("olapdb.functions.variants.calls")


def interleave_lists(arguments: Sequence[pa.Array], rows: int, inner: DataType) -> pa.Array:
    """Return a list for each row that holds the row's value of each argument, in their order."""
    count = len(arguments)
    offsets = np.arange(rows + 1, dtype=np.int64) * count
    if not count:
        return columns.lists_from(offsets, pa.nulls(0, inner.arrow))
    stacked = pa.concat_arrays(list(arguments))
    order = (np.arange(rows)[:, None] + np.arange(count)[None, :] * rows).reshape(-1)
    return columns.lists_from(offsets, stacked.take(from_numpy(order)))


def _casting_call(
    result: DataType,
    build: Callable[[list[pa.Array], int], pa.Array],
    types: Sequence[DataType],
    targets: Sequence[DataType],
    name: str,
) -> ScalarCall:
    """Return a call that casts each argument to its target and passes them to `build(columns,
    rows)`.

    NULLs are passed on. Constant arguments give a constant.
    """

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Cast the arguments to their targets and build the column, of one row if all are
        constant.
        """
        constant = all(isinstance(v, pa.Scalar) for v in values)
        count = 1 if constant else rows
        cast_arguments = [
            _cast_to(columns.as_array(v, count), source, target, environment)
            for v, source, target in zip(values, types, targets, strict=True)
        ]
        built = build(cast_arguments, count)
        return built[0] if constant else built

    return ScalarCall(name, result, kernel)


def _cast_to(
    array: pa.Array, source: DataType, target: DataType, environment: Environment
) -> Column:
    """Cast values to the target type; in a Variant they keep their own type as an alternative."""
    if isinstance(plain(target), Variant):
        return variant_calls.as_alternative(array, source, target, environment)
    return cast_column(array, source, target, environment, strict=False)


def resolve_array(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve array(…): values become the elements of one array, in their common type
    or a Variant."""
    types = [a.type for a in arguments]
    inner = common_type_or_variant(types) if types else NOTHING
    return _casting_call(
        Array(inner),
        lambda cast_arguments, rows: interleave_lists(cast_arguments, rows, inner),
        types,
        [inner] * len(types),
        name,
    )


def _tuple(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve tuple(…): one element for each argument."""
    types = tuple(a.type for a in arguments)
    result = Tuple(types)

    def build(cast_arguments: list[pa.Array], rows: int) -> pa.Array:
        """Return structs of the arguments."""
        return columns.structs_from(cast_arguments, result.arrow, rows=rows)

    return _casting_call(result, build, [a.type for a in arguments], types, name)


def _map(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve map(key, value, …): keys and values take their common types, else a Variant; a
    Nullable key is refused.
    """
    if len(arguments) % 2:
        raise NumberOfArgumentsDoesntMatch(f"Function {name} takes keys and values in pairs.")
    keys, values = arguments[::2], arguments[1::2]
    key_type = common_type_or_variant([a.type for a in keys]) if keys else NOTHING
    value_type = common_type_or_variant([a.type for a in values]) if values else NOTHING
    if any(is_nullable(a.type) for a in keys):
        raise BadArguments(
            f"Map cannot have a key of type {key_type}.", hint="Use ifNull or assumeNotNull on it."
        )
    result = Map(key_type, value_type)
    targets = [key_type if i % 2 == 0 else value_type for i in range(len(arguments))]

    def build(cast_arguments: list[pa.Array], rows: int) -> pa.Array:
        """Return maps whose keys are the even arguments and whose values are the odd ones, from 0."""
        key_lists = interleave_lists(cast_arguments[::2], rows, key_type)
        value_lists = interleave_lists(cast_arguments[1::2], rows, value_type)
        return columns.maps_from(
            columns.offsets_of(key_lists), key_lists.values, value_lists.values, result.arrow
        )

    return _casting_call(result, build, [a.type for a in arguments], targets, name)


def resolve_concatenation(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve arrayConcat(…), and concat(…) of arrays: join each row's arrays, in their common
    type. A bare NULL among them makes it NULL.
    """
    if any(isinstance(plain(a.type), Nothing) for a in arguments):
        return scalar.standard_call(name, arguments, NULL_TYPE, None)
    scalar.require(name, [plain(a.type) for a in arguments], Array, "an Array")
    result = common_type([plain(a.type) for a in arguments])
    assert isinstance(result, Array)

    def build(cast_arguments: list[pa.Array], rows: int) -> pa.Array:
        """Join the arrays of each row in argument order."""
        arrays = [columns.elements_of(c) for c in cast_arguments]
        owners = np.concatenate([columns.parents_of(o) for o, _ in arrays])
        order = stable_order(owners)
        counts = np.bincount(owners, minlength=rows)
        elements = pa.concat_arrays([e for _, e in arrays]).take(from_numpy(order))
        return columns.lists_from(columns.offsets_from_counts(counts), elements)

    types = [a.type for a in arguments]
    return _casting_call(result, build, types, [result] * len(types), name)


def _map_from_arrays(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve mapFromArrays(keys, values): a map of two arrays of equal sizes. A map in place of an
    array is the array of its pairs."""
    types = [_as_array(plain(a.type)) for a in arguments]
    scalar.require(name, types, Array, "an Array")
    keys, values = types
    assert isinstance(keys, Array)
    assert isinstance(values, Array)
    result = Map(keys.inner.inner if isinstance(keys.inner, Nullable) else keys.inner, values.inner)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Build maps from arrays of keys and of values. Raises SizesOfArraysDoNotMatch if the arrays of a row differ
        in size."""
        (key_offsets, key), (value_offsets, value) = (
            _list_elements(a, t) for a, t in zip(arrays, types, strict=True)
        )
        if not np.array_equal(key_offsets, value_offsets):
            raise SizesOfArraysDoNotMatch(f"The arrays of {name} have different sizes.")
        if key.null_count:
            raise BadArguments(f"A key of {name} is NULL: a map has no such keys.")
        return columns.maps_from(key_offsets, key, value, result.arrow)

    return scalar.standard_call(name, arguments, result, kernel)


def _as_array(data_type: DataType) -> DataType:
    """Return the type Array(Tuple(key, value)) for a Map; any other type unchanged."""
    if isinstance(data_type, Map):
        return Array(Tuple((data_type.key, data_type.value)))
    return data_type


def _list_elements(array: pa.Array, data_type: DataType) -> tuple[np.ndarray, pa.Array]:
    """Return the offsets and elements of arrays of this type, or of maps as arrays of pairs."""
    if not pa.types.is_map(array.type):
        return columns.elements_of(array)
    assert isinstance(data_type, Array)
    offsets, keys, values = map_parts(array)
    pairs = columns.structs_from([keys, values], data_type.inner.arrow, rows=len(keys))
    return offsets, pairs


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("array", resolve_array, count=(0, None)),
    scalar.custom("tuple", _tuple, count=(0, None)),
    scalar.custom("map", _map, count=(0, None)),
    scalar.custom("arrayConcat", resolve_concatenation, count=(1, None)),
    scalar.custom("mapFromArrays", _map_from_arrays, count=2, aliases=("MAP_FROM_ARRAYS",)),
)
