"""Functions of several arrays of a row: arrayZip, arrayIntersect, arrayEnumerateUniq, arrayEnumerateDense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    BadArguments,
    DuplicateColumn,
    IllegalColumn,
    NoCommonType,
    SizesOfArraysDoNotMatch,
    TooFewArguments,
)
from olapdb.functions.arrays.ordering import first_occurrences
from olapdb.functions.arrays.search import ranks_with_null
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.integer_order import order_by
from olapdb.functions.kernels.nested import count_marked
from olapdb.functions.kernels.supertypes import comparable_type, without_bool
from olapdb.functions.numeric.conditional import plain_lc
from olapdb.functions.scalar import (
    Invocation,
    ScalarDefinition,
    custom,
    define,
    illegal,
    require,
    standard_call,
    with_count_errors,
)
from olapdb.types import (
    NOTHING,
    STRING,
    UINT32,
    Array,
    DataType,
    Float,
    Integer,
    Nothing,
    Nullable,
    Tuple,
    make_nullable,
    plain,
)
from olapdb.types.arrow_values import from_numpy


def _same_size_elements(name: str, arrays: Sequence[pa.Array]) -> tuple[np.ndarray, list[pa.Array]]:
    """Return the offsets that the arrays share, shape (rows + 1,), and the elements of each array.

    Raises SizesOfArraysDoNotMatch if the arrays of a row differ in length."""
    lists = [columns.elements_of(array) for array in arrays]
    offsets = lists[0][0]
    if any(not np.array_equal(offsets, other_offsets) for other_offsets, _ in lists[1:]):
        raise SizesOfArraysDoNotMatch(f"The arrays given to {name} have different lengths.")
    return offsets, [elements for _, elements in lists]


def _arrays_rule(
    result: DataType,
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    """Return a type rule: `result`, if all arguments are arrays."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return `result`; raise IllegalTypeOfArgument unless all arguments are arrays."""
        require(name, types, Array, "an Array")
        return result

    return rule


def codes_of(elements: Sequence[pa.Array]) -> np.ndarray:
    """Return an int64 code for each position over several arrays' elements. Two positions have equal codes exactly
    where the elements of all arrays are equal; NULL equals NULL."""
    codes = ranks_with_null(elements[0])
    for array in elements[1:]:
        ranks = ranks_with_null(array)
        span = int(ranks.max()) + 1 if len(ranks) else 1
        _, codes = np.unique(codes * span + ranks, return_inverse=True)
    return np.asarray(codes).reshape(-1)


def _enumerate_unique(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Number the occurrences of each value within its array, from 1: the kernel of
    arrayEnumerateUniq.

    Over several arrays a value is the tuple of their elements at one position.
    """
    offsets, elements = _same_size_elements("arrayEnumerateUniq", arrays)
    numbers = occurrences(columns.parents_of(offsets), codes_of(elements))
    return columns.lists_from(offsets, columns.from_values(numbers, pa.uint32()))


def occurrences(parents: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return for each element which occurrence of its code within its parent it is, from 1."""
    order = order_by(parents, codes)
    owners, sorted_codes = parents[order], codes[order]
    is_first = np.ones(len(codes), bool)
    is_first[1:] = (owners[1:] != owners[:-1]) | (sorted_codes[1:] != sorted_codes[:-1])
    starts = np.flatnonzero(is_first)
    counts = np.diff(np.append(starts, len(codes)))
    numbers = np.zeros(len(codes), np.int64)
    numbers[order] = np.arange(len(codes)) - np.repeat(starts, counts) + 1
    return numbers


def _uniq(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Count the distinct elements of each array, NULL included: the kernel of arrayUniq.

    Over several arrays an element is the tuple of their elements at one position.
    """
    offsets, elements = _same_size_elements("arrayUniq", arrays)
    distinct = first_occurrences(columns.parents_of(offsets), codes_of(elements))
    return columns.from_values(count_marked(offsets, distinct), pa.uint32())


def _enumerate_dense(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Number each array's distinct values by first appearance, from 1: arrayEnumerateDense.

    Over several arrays a value is the tuple of their elements at one position.
    """
    offsets, elements = _same_size_elements("arrayEnumerateDense", arrays)
    numbers = dense_numbers(columns.parents_of(offsets), codes_of(elements))
    return columns.lists_from(offsets, columns.from_values(numbers, pa.uint32()))


def dense_numbers(owners: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the number of each element's code within its owner, by first appearance, from 1.

    Owners are in ascending order."""
    first = first_occurrences(owners, codes)
    numbers = np.cumsum(first)
    starts = np.searchsorted(owners, owners)
    numbers -= np.concatenate(([0], numbers))[starts]
    span = int(codes.max()) + 1 if len(codes) else 1
    pairs = owners * span + codes
    distinct_pairs, inverse = np.unique(pairs, return_inverse=True)
    pair_numbers = np.zeros(len(distinct_pairs), np.int64)
    pair_numbers[inverse.reshape(-1)[first]] = numbers[first]
    return np.asarray(pair_numbers[inverse.reshape(-1)])


def _zip(name: str, arguments: Sequence[Argument], names: tuple[str, ...] = ()) -> ScalarCall:
    """Resolve arrayZip: an array of tuples, whose elements have these names, from arrays of equal sizes."""
    types = [plain(a.type) for a in arguments]
    require(name, types, Array, "an Array")
    inner = Tuple(tuple(array.inner for array in types if isinstance(array, Array)), names)

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Build arrays of tuples. Raises SizesOfArraysDoNotMatch if the arrays of a row differ in length."""
        offsets, elements = _same_size_elements(name, arrays)
        return columns.lists_from(offsets, columns.structs_from(elements, inner.arrow))

    return standard_call(name, arguments, Array(inner), kernel)


def _nested(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve nested(names, array, …): an array of tuples with names from arrays of equal sizes.

    Raises IllegalTypeOfArgument, IllegalColumn for names that are not constant, BadArguments for another number of
    names, and DuplicateColumn."""
    if plain(arguments[0].type) != Array(STRING):
        raise illegal(name, arguments[0].type, "a constant Array(String) of names")
    if arguments[0].constant is None:
        raise IllegalColumn(f"The names of function {name} must be a constant.")
    names = tuple(arguments[0].constant.as_py())
    if len(names) != len(arguments) - 1:
        raise BadArguments(
            f"Function {name} has {len(names)} names for {len(arguments) - 1} arrays."
        )
    if len(set(names)) != len(names):
        raise DuplicateColumn(f"The names of function {name} must be unique.")
    zipped = _zip(name, arguments[1:], names)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Build arrays of tuples from the arrays, which are all arguments but the first."""
        return zipped.kernel(values[1:], rows, environment)

    return replace(zipped, kernel=kernel)


def _intersect(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve arrayIntersect: the distinct elements that all arrays have."""
    types = [plain(a.type) for a in arguments]
    require(name, types, Array, "an Array")
    inners = [plain_lc(array.inner) for array in types if isinstance(array, Array)]
    shared = _subtype(name, inners)
    wide = Array(comparable_type(inners)) if not isinstance(shared, Nothing) else Array(shared)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Intersect each row's arrays in their common type, then convert to the result type."""
        constant = all(isinstance(v, pa.Scalar) for v in values)
        count = 1 if constant else rows
        lists = [
            columns.as_array(cast_column(v, t, wide, environment, strict=False), count)
            for v, t in zip(values, types, strict=True)
        ]
        offsets, elements = _common_elements(lists, count)
        narrowed = cast_column(elements, wide.inner, shared, environment, strict=False)
        common = columns.lists_from(offsets, columns.single(narrowed))
        return common[0] if constant else common

    if isinstance(shared, Nothing):
        return ScalarCall(name, Array(NOTHING), lambda v, r, e: default_value(Array(NOTHING)))
    return ScalarCall(name, Array(shared), kernel)


def _common_elements(lists: Sequence[pa.Array], rows: int) -> tuple[np.ndarray, pa.Array]:
    """Return the offsets and elements of the arrays' intersections. Elements are distinct and keep the order of the
    first array."""
    arrays = [columns.elements_of(array) for array in lists]
    owners = np.concatenate([columns.parents_of(offsets) for offsets, _ in arrays])
    number = np.repeat(np.arange(len(arrays)), [len(elements) for _, elements in arrays])
    elements = pa.concat_arrays([own for _, own in arrays])
    ranks = ranks_with_null(elements)
    span = int(ranks.max()) + 1 if len(ranks) else 1
    pairs = owners * span + ranks
    distinct_pairs, inverse = np.unique(pairs, return_inverse=True)
    inverse = inverse.reshape(-1)
    seen = np.zeros((len(distinct_pairs), len(arrays)), bool)
    seen[inverse, number] = True
    in_all = np.logical_and.reduce(seen, axis=1)
    first = len(arrays[0][1])
    keep = in_all[inverse[:first]] & first_occurrences(owners[:first], ranks[:first])
    counts = np.bincount(owners[:first][keep], minlength=rows)
    return columns.offsets_from_counts(counts), arrays[0][1].filter(from_numpy(keep))


def _subtype(name: str, inners: Sequence[DataType]) -> DataType:
    """Return the type of the values common to all of these types: the narrowest of integer types, else of float
    types. A Bool counts as UInt8; of Bool and UInt8 alone the first is returned. Raises NoCommonType if other types
    differ."""
    if any(isinstance(inner, Nothing) for inner in inners):
        return NOTHING
    narrowest = plain(inners[0])
    bare = [without_bool(plain(inner)) for inner in inners]
    if any(other != bare[0] for other in bare[1:]):
        if not all(isinstance(data_type, Integer | Float) for data_type in bare):
            shown = ", ".join(map(str, bare))
            raise NoCommonType(
                f"There is no subtype for types {shown} in {name}.", hint="Cast one of them."
            )
        integers = [data_type for data_type in bare if isinstance(data_type, Integer)]
        floats = [data_type for data_type in bare if isinstance(data_type, Float)]
        narrowest = (
            min(integers, key=lambda integer: (integer.bits, integer.signed))
            if integers
            else min(floats, key=lambda number: number.bits)
        )
    nullable = all(isinstance(inner, Nullable) for inner in inners)
    return make_nullable(narrowest) if nullable else narrowest


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("arrayUniq", _arrays_rule(UINT32), _uniq, count=(1, None)),
    *with_count_errors(
        (
            define(
                "arrayEnumerateUniq",
                _arrays_rule(Array(UINT32)),
                _enumerate_unique,
                count=(1, None),
            ),
            define(
                "arrayEnumerateDense",
                _arrays_rule(Array(UINT32)),
                _enumerate_dense,
                count=(1, None),
            ),
        ),
        few=TooFewArguments,
    ),
    custom("arrayZip", _zip, count=(1, None)),
    custom("nested", _nested, count=(1, None)),
    custom("arrayIntersect", _intersect, count=(1, None)),
)
