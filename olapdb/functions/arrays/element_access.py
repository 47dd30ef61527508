"""Functions that read elements of arrays, tuples and maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import ArgumentOutOfBound, BadArguments, IllegalTypeOfArgument, ZeroIndex
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.nested import map_parts
from olapdb.types import (
    NOTHING,
    Array,
    DataType,
    FixedString,
    Integer,
    Map,
    Nothing,
    String,
    Tuple,
    is_nullable,
    is_number,
    make_nullable,
    plain,
)
from olapdb.types.arrow_values import from_numpy


def _array_element(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve arrayElement: a[i], counted from 1, or from the end if negative, and m[key].

    A position outside the array, or an absent key, gives the type's default."""
    container, index_type = plain(arguments[0].type), plain(arguments[1].type)
    if isinstance(container, Map):
        return _map_element(name, arguments, container)
    scalar.require(name, [container], Array, "an Array or Map")
    if isinstance(index_type, Array):
        return _elements_at(name, arguments)
    scalar.require(name, [index_type], Integer, "an integer index")
    assert isinstance(container, Array)
    if arguments[0].constant is None:
        _refuse_place_zero(name, arguments[1])
    inner = container.inner if not isinstance(container.inner, Nothing) else make_nullable(NOTHING)
    if isinstance(inner, Array) and any(is_nullable(a.type) for a in arguments):
        raise scalar.illegal(name, arguments[0].type, "an Array without NULLs")

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Take the element at each row's index, from 1, or from the end if negative.

        An index outside the array gives the type's default.
        """
        offsets, elements = columns.elements_of(arrays[0])
        sizes, index = np.diff(offsets), _indices(arrays[1])
        position = np.where(index > 0, index - 1, sizes + index)
        inside = (index != 0) & (position >= 0) & (position < sizes)
        return take_or_default(elements, np.where(inside, offsets[:-1] + position, -1), inner)

    return scalar.standard_call(name, arguments, inner, kernel)


def _indices(array: pa.Array) -> np.ndarray:
    """Return indices as int64; an unsigned one above its range, which is outside any array, becomes the greatest."""
    index = columns.numpy_values(array)
    if index.dtype == np.uint64:
        index = np.minimum(index, np.uint64(np.iinfo(np.int64).max))
    return index.astype(np.int64)


def _refuse_place_zero(name: str, index: Argument) -> None:
    """Raise ZeroIndex if the index is the constant 0; an index of 0 in a column gives a default."""
    if index.constant is not None and index.constant.is_valid and index.constant.as_py() == 0:
        raise ZeroIndex(f"Array indices are 1-based: {name} has no element 0.")


def _element_or_null(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve arrayElementOrNull: as arrayElement, but NULL outside the array, or for an absent key."""
    container = plain(arguments[0].type)
    if isinstance(container, Array):
        wider: DataType = Array(make_nullable(container.inner))
    elif isinstance(container, Map):
        wider = Map(container.key, make_nullable(container.value))
    else:
        raise scalar.illegal(name, container, "an Array or Map")
    whole = wider
    inner = _array_element(name, [Argument(whole), Argument(arguments[1].type)])

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Cast the elements to Nullable, then take the element at each row's index or key."""
        source = arguments[0].type
        taken = cast_column(values[0], source, whole, environment, strict=True)
        return inner.kernel([taken, values[1]], rows, environment)

    return ScalarCall(name, inner.type, kernel)


def _elements_at(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve a[indices]: the elements at several indices, as an array."""
    container, indices = plain(arguments[0].type), plain(arguments[1].type)
    assert isinstance(container, Array)
    assert isinstance(indices, Array)
    scalar.require(name, [indices.inner], Integer, "an Array of integer indices")
    inner = container.inner

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Take the elements at all indices of each row; the default outside the array."""
        offsets, elements = columns.elements_of(arrays[0])
        wanted, numbers = columns.elements_of(arrays[1])
        owners, index = columns.parents_of(wanted), _indices(numbers)
        sizes = np.diff(offsets)[owners]
        position = np.where(index > 0, index - 1, sizes + index)
        inside = (index != 0) & (position >= 0) & (position < sizes)
        places = np.where(inside, offsets[:-1][owners] + position, -1)
        return columns.lists_from(wanted, take_or_default(elements, places, inner))

    return scalar.standard_call(name, arguments, container, kernel)


def take_or_default(elements: pa.Array, positions: np.ndarray, inner: DataType) -> pa.Array:
    """Return the elements at these positions; a position of -1 gives the type's default, which is
    NULL for a Nullable type."""
    padded = pa.concat_arrays([elements, columns.single(default_value(inner))])
    return padded.take(from_numpy(np.where(positions < 0, len(elements), positions)))


def _check_key(name: str, container: Map, given: DataType) -> None:
    """Raise IllegalTypeOfArgument for a number as the key of a map of texts, or the reverse."""
    key, given = plain(container.key), plain(given)
    texts = isinstance(key, String)
    if is_number(given if texts else key) and isinstance(key if texts else given, String):
        raise scalar.illegal(name, given, f"a key of {container}")


def _map_element(name: str, arguments: Sequence[Argument], container: Map) -> ScalarCall:
    """Resolve m[key]: the value of the first equal key, or the value type's default."""
    key_type, inner = container.key, container.value
    _check_key(name, container, arguments[1].type)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Take the value of each row's first equal key; the value type's default if no key is
        equal.
        """
        offsets, keys, items = map_parts(arrays[0])
        given = _keys_that_fit(arrays[1], call.types[1], key_type)
        source, target = make_nullable(call.types[1]), make_nullable(key_type)
        needles = cast_column(given, source, target, call.environment, strict=True)
        owners = columns.parents_of(offsets)
        equal = pc.fill_null(pc.equal(keys, needles.take(from_numpy(owners))), False)
        matches = np.flatnonzero(np.asarray(equal))
        positions = np.full(len(arrays[0]), -1, np.int64)
        positions[owners[matches][::-1]] = matches[::-1]  # the first of equal keys
        return take_or_default(items, positions, inner)

    return scalar.standard_call(name, arguments, inner, kernel)


def _keys_that_fit(given: pa.Array, data_type: DataType, key: DataType) -> pa.Array:
    """Return texts with NULL for those that are too long for a FixedString, which equal none; other keys
    unchanged."""
    width = plain(key)
    if not isinstance(width, FixedString) or not isinstance(plain(data_type), String | FixedString):
        return given
    return pc.if_else(pc.less_equal(pc.binary_length(given), width.length), given, None)


def _tuple_element(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve tupleElement(t, name or position[, default]), of a tuple or of each tuple in an array.

    The name or position is a constant; positions count from 1, or from the end if negative. An
    element that the tuple lacks gives the default, and is an error without one."""
    container = plain(arguments[0].type)
    if isinstance(container, Array):
        return _element_of_each(name, arguments, container)
    if not isinstance(container, Tuple):
        raise scalar.illegal(name, container, "a Tuple")
    key = arguments[1].constant.as_py() if arguments[1].constant is not None else None
    position = _element_position(container, key)
    if position is None and len(arguments) == 3:
        return ScalarCall(name, arguments[2].type, lambda values, rows, environment: values[2])
    if position is None:
        if isinstance(key, float):
            raise IllegalTypeOfArgument(f"{key} is no place and no name of an element.")
        kind = BadArguments if isinstance(key, str) else ArgumentOutOfBound
        raise kind(f"{container} has no element {key!r}.")
    at = position

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the field at the position; a scalar for a constant tuple."""
        if isinstance(values[0], pa.Scalar):
            return columns.struct_fields(columns.single(values[0]))[at][0]
        return columns.struct_fields(values[0])[at]

    return ScalarCall(name, container.elements[position], kernel)


def _element_position(container: Tuple, key: object) -> int | None:
    """Return the position, from 0, of a tuple's element by name or number; None if it lacks it."""
    if isinstance(key, str):
        return container.field_names.index(key) if key in container.field_names else None
    count = len(container.elements)
    if not isinstance(key, int) or key == 0 or abs(key) > count:
        return None
    return key - 1 if key > 0 else count + key


def _element_of_each(name: str, arguments: Sequence[Argument], container: Array) -> ScalarCall:
    """Resolve tupleElement of an array of tuples: the array of their elements."""
    if _innermost(container) is None:
        raise scalar.illegal(name, container, "a Tuple or an Array of Tuples")
    if len(arguments) == 3:
        key = arguments[1].constant.as_py() if arguments[1].constant is not None else None
        tuple_type = _innermost(container)
        if tuple_type is not None and _element_position(tuple_type, key) is None:
            return ScalarCall(name, arguments[2].type, lambda values, rows, environment: values[2])
    inner = _tuple_element(name, [Argument(container.inner), arguments[1]])

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Take the element of every tuple of the arrays."""
        constant = isinstance(values[0], pa.Scalar)
        offsets, tuples = columns.elements_of(columns.as_array(values[0], 1 if constant else rows))
        fields = inner.kernel([tuples, values[1]], len(tuples), environment)
        lists = columns.lists_from(offsets, columns.as_array(fields, len(tuples)))
        return lists[0] if constant else lists

    return ScalarCall(name, Array(inner.type), kernel)


def _innermost(container: Array) -> Tuple | None:
    """Return the tuple in an array, or in arrays of arrays; None if something else is in it."""
    inner = container.inner
    while isinstance(inner, Array):
        inner = inner.inner
    return inner if isinstance(inner, Tuple) else None


def _keys_or_values(*, keys: bool) -> scalar.Kernel:
    """Return the kernel of mapKeys, or without `keys` of mapValues."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return each map's keys, or without `keys` its values, as an array."""
        offsets, map_keys, map_values = map_parts(arrays[0])
        container = call.types[0]
        if keys and isinstance(container, Map) and isinstance(container.key, Nothing):
            map_keys = pa.nulls(len(map_keys))  # Arrow's form of map() has texts for keys
        return columns.lists_from(offsets, map_keys if keys else map_values)

    return kernel


def _keys_or_values_rule(
    *, keys: bool
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    """Return the type rule of mapKeys, or without `keys` of mapValues: an Array of them."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type; raise IllegalTypeOfArgument unless the argument is a Map."""
        container = types[0]
        if not isinstance(container, Map):
            raise scalar.illegal(name, container, "a Map")
        return Array(container.key if keys else container.value)

    return rule


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("arrayElement", _array_element, count=2),
    scalar.custom("arrayElementOrNull", _element_or_null, count=2),
    scalar.custom("tupleElement", _tuple_element, count=(2, 3)),
    scalar.define("mapKeys", _keys_or_values_rule(keys=True), _keys_or_values(keys=True)),
    scalar.define("mapValues", _keys_or_values_rule(keys=False), _keys_or_values(keys=False)),
)
