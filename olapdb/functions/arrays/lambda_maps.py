"""Functions of maps that take a lambda."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, IllegalTypeOfArgument, NumberOfArgumentsDoesntMatch
from olapdb.functions.arrays.lambda_conditions import (
    ListKernel,
    all_true,
    any_true,
    require_condition,
    scalar_kernel,
    true_elements,
)
from olapdb.functions.arrays.lambdas import (
    Elements,
    LambdaCall,
    LambdaDefinition,
    lambda_over_lists,
)
from olapdb.functions.arrays.ordering import sorted_positions
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.nested import count_marked, map_parts
from olapdb.functions.scalar import Invocation, Kernel, ScalarDefinition, define, illegal
from olapdb.types import NOTHING, UINT8, DataType, Map, Tuple, is_nullable, plain


def _map_parameters(name: str, types: Sequence[DataType]) -> tuple[DataType, ...]:
    """Return the types of the lambda's parameters: the map's key and value.

    Raises NumberOfArgumentsDoesntMatch."""
    if not types:
        raise IllegalTypeOfArgument(f"Function {name} takes a lambda and a Map.")
    if len(types) != 1:
        raise NumberOfArgumentsDoesntMatch(f"Function {name} takes a lambda and one Map.")
    container = plain(types[0])
    if not isinstance(container, Map):
        raise illegal(name, types[0], "a Map")
    return container.key, container.value


def _map_elements(arrays: list[pa.Array]) -> Elements:
    """Return the keys and values of the first argument, a map, as the lambda's parameters."""
    offsets, keys, items = map_parts(arrays[0])
    return Elements(offsets, (keys, items))


def _over_map(
    name: str, result: Callable[[str, DataType, Map], DataType], kernel: ListKernel
) -> LambdaDefinition:
    """Define a function of a lambda and a map whose kernel takes the values of the lambda's body and the map.
    `result(name, type of the body, the map's type)` gives the result type."""

    def resolve(spelt: str, body: DataType, types: Sequence[DataType]) -> LambdaCall:
        """Resolve the call for the types of the body and of the map."""
        container = plain(types[0])
        assert isinstance(container, Map)
        call = ScalarCall(spelt, result(spelt, body, container), scalar_kernel(kernel))
        return lambda_over_lists(spelt, body, call, _map_elements)

    return LambdaDefinition(name, _map_parameters, resolve)


def _filtered_map_type(name: str, body: DataType, container: Map) -> DataType:
    """Return the map's type; raise IllegalTypeOfArgument unless the body is a condition."""
    require_condition(name, body)
    return container


def _map_condition_type(name: str, body: DataType, container: Map) -> DataType:
    """Return UInt8; raise IllegalTypeOfArgument unless the body is a condition."""
    require_condition(name, body)
    return UINT8


def _map_apply_type(name: str, body: DataType) -> Map:
    """Return the map type of mapApply, whose lambda must give tuples of a key and a value.

    The elements of map() are Nothing. Raises BadArguments."""
    pair = plain(body)
    if isinstance(pair, Tuple) and pair.elements == (NOTHING, NOTHING):
        return Map(NOTHING, NOTHING)
    if not isinstance(pair, Tuple) or len(pair.elements) != 2 or is_nullable(pair.elements[0]):
        raise BadArguments(
            f"The lambda of function {name} must give a tuple of a key and a value, not {body}.",
            hint=f"{name}((k, v) -> (k, v), m) keeps the map as it is.",
        )
    return Map(pair.elements[0], pair.elements[1])


def _map_filter(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
    """Keep the pairs of the map for which the condition is true."""
    _, keys, items = map_parts(arrays[0])
    keep = true_elements(mapped)
    kept_offsets = columns.offsets_from_counts(count_marked(offsets, keep))
    mask = pa.array(keep)
    return _map_array(kept_offsets, keys.filter(mask), items.filter(mask), arrays[0].type)


def _map_sort(*, reverse: bool) -> ListKernel:
    """Return the kernel of mapSort (mapReverseSort) with a lambda: sort by the lambda's values."""

    def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        """Sort each map's pairs by the lambda's values."""
        return sort_pairs(offsets, mapped, arrays[0], reverse=reverse)

    return kernel


def sort_pairs(
    offsets: np.ndarray, sort_keys: pa.Array, maps: pa.Array, *, reverse: bool
) -> pa.Array:
    """Return maps with their pairs sorted by a value for each pair; `offsets` are the maps'."""
    _, keys, items = map_parts(maps)
    order = pa.array(sorted_positions(offsets, sort_keys, reverse=reverse))
    return _map_array(offsets, keys.take(order), items.take(order), maps.type)


def _map_array(
    offsets: np.ndarray, keys: pa.Array, items: pa.Array, arrow: pa.DataType
) -> pa.Array:
    """Return a map column of Arrow type `arrow` from offsets, keys and values."""
    array = pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items)
    return array if array.type == arrow else array.cast(arrow)


def _map_apply() -> LambdaDefinition:
    """Define mapApply, whose lambda returns the new (key, value) pair of each pair."""

    def resolve(spelt: str, body: DataType, types: Sequence[DataType]) -> LambdaCall:
        """Resolve the call for the type of the body, a pair of key and value."""
        result = _map_apply_type(spelt, body)

        def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
            """Build each row's map from the body's pairs of key and value."""
            keys, items = columns.struct_fields(mapped)
            return columns.maps_from(offsets, keys, items, result.arrow)

        call = ScalarCall(spelt, result, scalar_kernel(kernel))
        return lambda_over_lists(spelt, body, call, _map_elements)

    return LambdaDefinition("mapApply", _map_parameters, resolve)


def _map_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the argument's type; raise IllegalTypeOfArgument unless it is a Map."""
    if not isinstance(types[0], Map):
        raise illegal(name, types[0], "a Map")
    return types[0]


def _by_key(*, reverse: bool) -> Kernel:
    """Return the kernel of mapSort(m) (mapReverseSort(m)), which sorts by key."""

    def run(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Sort the pairs of the map by key."""
        offsets, keys, _ = map_parts(arrays[0])
        return _map_sort(reverse=reverse)(offsets, keys, arrays)

    return run


MAP_LAMBDAS: tuple[LambdaDefinition, ...] = (
    _map_apply(),
    _over_map("mapFilter", _filtered_map_type, _map_filter),
    _over_map("mapExists", _map_condition_type, any_true),
    _over_map("mapAll", _map_condition_type, all_true),
    _over_map("mapSort", lambda n, body, container: container, _map_sort(reverse=False)),
    _over_map("mapReverseSort", lambda n, body, container: container, _map_sort(reverse=True)),
)

DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("mapSort", _map_rule, _by_key(reverse=False)),
    define("mapReverseSort", _map_rule, _by_key(reverse=True)),
)
