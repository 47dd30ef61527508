"""Functions that give the first elements of a sorted array or map: arrayPartialSort, arrayTopK.

Each takes the number of elements first, or behind a lambda that gives the values to sort by. What
follows the elements asked for is in no promised order in ClickHouse; here the whole is sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, NumberOfArgumentsDoesntMatch
from olapdb.functions import scalar
from olapdb.functions.arrays.lambda_conditions import ListKernel, scalar_kernel
from olapdb.functions.arrays.lambda_maps import sort_pairs
from olapdb.functions.arrays.lambdas import (
    Elements,
    LambdaCall,
    LambdaDefinition,
    elements_of_arrays,
    lambda_over_lists,
)
from olapdb.functions.arrays.ordering import sorted_positions
from olapdb.functions.arrays.type_rules import element_type
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.nested import filter_elements, map_parts
from olapdb.types import Array, DataType, Integer, Map, plain
from olapdb.types.arrow_values import from_numpy


def _require_limit(name: str, types: Sequence[DataType]) -> None:
    """Check that the first argument is an integer and that another argument follows. Raises
    NumberOfArgumentsDoesntMatch and the type error."""
    if len(types) < 2:
        raise NumberOfArgumentsDoesntMatch(f"Function {name} takes a limit and what it sorts.")
    scalar.require(name, [plain(types[0])], Integer, "an integer")


# --- the order, by values that are the elements themselves or a lambda's


def _partial_sort(*, reverse: bool) -> ListKernel:
    """Return the kernel of arrayPartialSort, or with `reverse` of arrayPartialReverseSort."""

    def kernel(offsets: np.ndarray, keys: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        """Sort the elements of the first array, after the limit, by the keys."""
        _, elements = columns.elements_of(arrays[1])
        order = sorted_positions(offsets, keys, reverse=reverse)
        return columns.lists_from(offsets, elements.take(from_numpy(order)))

    return kernel


def _extreme_elements(*, largest: bool) -> ListKernel:
    """Return the kernel of arrayTopK, or without `largest` of arrayBottomK."""
    name = "arrayTopK" if largest else "arrayBottomK"

    def kernel(offsets: np.ndarray, keys: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        """Return each array's first `limit` elements in the order of the keys; NULLs are left out. Raises
        BadArguments."""
        limits = columns.numpy_values(arrays[0])
        if (limits < 0).any():
            raise BadArguments(f"The number of elements of {name} must not be negative.")
        _, elements = columns.elements_of(arrays[1])
        usable = np.asarray(elements.is_valid()) & np.asarray(keys.is_valid())
        order = sorted_positions(offsets, keys, reverse=largest)
        owners = columns.parents_of(offsets)
        usable = usable[order]
        running = np.cumsum(usable) - usable
        place = running - running[np.minimum(offsets[owners], len(running) - 1)]
        keep = usable & (place < limits[owners])
        return filter_elements(offsets, elements.take(from_numpy(order)), keep)

    return kernel


def _pairs(*, reverse: bool) -> ListKernel:
    """Return the kernel of mapPartialSort, or with `reverse` of mapPartialReverseSort."""

    def kernel(offsets: np.ndarray, keys: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        """Sort the pairs of each map by the keys."""
        return sort_pairs(offsets, keys, arrays[1], reverse=reverse)

    return kernel


# --- with a lambda


def _array_parameters(name: str, types: Sequence[DataType]) -> tuple[DataType, ...]:
    """Return the types of the lambda's parameters: the element types of the arrays after the limit."""
    _require_limit(name, types)
    return tuple(element_type(name, t) for t in types[1:])


def _map_parameters(name: str, types: Sequence[DataType]) -> tuple[DataType, ...]:
    """Return the types of the lambda's parameters: the key and the value of the map."""
    _require_limit(name, types)
    container = plain(types[1])
    if not isinstance(container, Map):
        raise scalar.illegal(name, types[1], "a Map")
    return container.key, container.value


def _map_elements(arrays: list[pa.Array]) -> Elements:
    """Return the keys and values of the map, the second argument, as elements of a list."""
    offsets, keys, values = map_parts(arrays[1])
    return Elements(offsets, (keys, values))


def _array_lambda(
    name: str, result: Callable[[DataType], DataType], kernel: ListKernel
) -> LambdaDefinition:
    """Define the form with a lambda of a function (lambda, limit, array, …); `result` maps the element type of the
    first array to the result type."""

    def resolve(spelt: str, body: DataType, types: Sequence[DataType]) -> LambdaCall:
        """Resolve the call; `result` takes the type of the first array's elements."""
        call = ScalarCall(spelt, result(element_type(spelt, types[1])), scalar_kernel(kernel))
        return lambda_over_lists(spelt, body, call, lambda a: elements_of_arrays(spelt, a[1:]))

    return LambdaDefinition(name, _array_parameters, resolve)


def _map_lambda(name: str, kernel: ListKernel) -> LambdaDefinition:
    """Define the form with a lambda of a function (lambda, limit, map); the result type is the map's."""

    def resolve(spelt: str, body: DataType, types: Sequence[DataType]) -> LambdaCall:
        """Resolve the call, which gives a map of the same type."""
        call = ScalarCall(spelt, plain(types[1]), scalar_kernel(kernel))
        return lambda_over_lists(spelt, body, call, _map_elements)

    return LambdaDefinition(name, _map_parameters, resolve)


# --- without one


def _of_elements(kernel: ListKernel) -> scalar.Kernel:
    """Return the kernel of the form without a lambda: sort arrays by their elements, maps by their keys."""

    def run(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Call the list kernel with the elements or keys as sort keys."""
        if pa.types.is_map(arrays[1].type):
            offsets, keys, _ = map_parts(arrays[1])
        else:
            offsets, keys = columns.elements_of(arrays[1])
        return kernel(offsets, keys, arrays)

    return run


def _array_rule(result: Callable[[DataType], DataType]) -> scalar.TypeRule:
    """Return the type rule of (limit, array); `result` maps the element type to the result type."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type; raise IllegalTypeOfArgument for other arguments."""
        _require_limit(name, types)
        return result(element_type(name, types[1]))

    return rule


def _map_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type of the map behind a limit; raise IllegalTypeOfArgument for other arguments."""
    _map_parameters(name, types)
    return types[1]


def _bare(inner: DataType) -> DataType:
    """Return Array(inner) with the elements' Nullable removed."""
    return Array(plain(inner))


def _same(inner: DataType) -> DataType:
    """Return Array(inner)."""
    return Array(inner)


_OF_ARRAYS: tuple[tuple[str, Callable[[DataType], DataType], ListKernel], ...] = (
    ("arrayPartialSort", _same, _partial_sort(reverse=False)),
    ("arrayPartialReverseSort", _same, _partial_sort(reverse=True)),
    ("arrayTopK", _bare, _extreme_elements(largest=True)),
    ("arrayBottomK", _bare, _extreme_elements(largest=False)),
)
_OF_MAPS: tuple[tuple[str, ListKernel], ...] = (
    ("mapPartialSort", _pairs(reverse=False)),
    ("mapPartialReverseSort", _pairs(reverse=True)),
)

PARTIAL_LAMBDAS: tuple[LambdaDefinition, ...] = (
    *(_array_lambda(name, result, kernel) for name, result, kernel in _OF_ARRAYS),
    *(_map_lambda(name, kernel) for name, kernel in _OF_MAPS),
)

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(
        scalar.define(name, _array_rule(result), _of_elements(kernel), count=2)
        for name, result, kernel in _OF_ARRAYS
    ),
    *(scalar.define(name, _map_rule, _of_elements(kernel), count=2) for name, kernel in _OF_MAPS),
)
