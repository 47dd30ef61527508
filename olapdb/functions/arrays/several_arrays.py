"""Functions of several arrays of a row: arrayZip, arrayIntersect, arrayEnumerateUniq, arrayEnumerateDense."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import NoCommonType, SizesOfArraysDoNotMatch
from olapdb.functions.arrays.ordering import first_occurrences
from olapdb.functions.arrays.search import ranks_with_null
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.supertypes import common_type
from olapdb.functions.numeric.conditional import plain_lc
from olapdb.functions.scalar import Invocation, ScalarDefinition, custom, define, require, usual
from olapdb.types import (
    NOTHING,
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


def _several(name: str, arrays: Sequence[pa.Array]) -> tuple[np.ndarray, list[pa.Array]]:
    """The elements of arrays of equal lengths; SizesOfArraysDoNotMatch otherwise."""
    split = [columns.elements_of(one) for one in arrays]
    offsets = split[0][0]
    if any(not np.array_equal(offsets, others) for others, _ in split[1:]):
        raise SizesOfArraysDoNotMatch(f"The arrays given to {name} have different lengths.")
    return offsets, [elements for _, elements in split]


def _arrays_rule(
    result: DataType,
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(name, types, Array, "an Array")
        return result

    return rule


def _codes(elements: Sequence[pa.Array]) -> np.ndarray:
    """Equal numbers for equal elements (of all arrays together); NULL equals NULL."""
    found = ranks_with_null(elements[0])
    for one in elements[1:]:
        ranks = ranks_with_null(one)
        span = int(ranks.max()) + 1 if len(ranks) else 1
        _, found = np.unique(found * span + ranks, return_inverse=True)
    return np.asarray(found).reshape(-1)


def _occurrences(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """arrayEnumerateUniq: the how-manieth of its kind each element is."""
    offsets, elements = _several("arrayEnumerateUniq", arrays)
    codes = _codes(elements)
    order = np.lexsort((np.arange(len(codes)), codes, columns.parents_of(offsets)))
    owners, sorted_codes = columns.parents_of(offsets)[order], codes[order]
    fresh = np.ones(len(codes), bool)
    fresh[1:] = (owners[1:] != owners[:-1]) | (sorted_codes[1:] != sorted_codes[:-1])
    starts = np.flatnonzero(fresh)
    places = np.arange(len(codes)) - np.repeat(starts, np.diff(np.append(starts, len(codes)))) + 1
    found = np.zeros(len(codes), np.int64)
    found[order] = places
    return columns.lists_from(offsets, columns.from_values(found, pa.uint32()))


def _dense(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """arrayEnumerateDense: the number of each element's value, by first appearance."""
    offsets, elements = _several("arrayEnumerateDense", arrays)
    codes, owners = _codes(elements), columns.parents_of(offsets)
    first = first_occurrences(owners, codes)
    numbers = np.cumsum(first)
    numbers -= np.concatenate(([0], numbers))[offsets[:-1]][owners]
    span = int(codes.max()) + 1 if len(codes) else 1
    pairs = owners * span + codes
    kinds, inverse = np.unique(pairs, return_inverse=True)
    number_of = np.zeros(len(kinds), np.int64)
    number_of[inverse.reshape(-1)[first]] = numbers[first]
    found = number_of[inverse.reshape(-1)]
    return columns.lists_from(offsets, columns.from_values(found, pa.uint32()))


def _zip(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    types = [plain(a.type) for a in arguments]
    require(name, types, Array, "an Array")
    inner = Tuple(tuple(one.inner for one in types if isinstance(one, Array)))

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        offsets, elements = _several(name, arrays)
        return columns.lists_from(offsets, columns.structs_from(elements, inner.arrow))

    return usual(name, arguments, Array(inner), kernel)


def _intersect(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    types = [plain(a.type) for a in arguments]
    require(name, types, Array, "an Array")
    inners = [plain_lc(one.inner) for one in types if isinstance(one, Array)]
    shared = _subtype(name, inners)
    wide = Array(common_type(inners)) if not isinstance(shared, Nothing) else Array(shared)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        constant = all(isinstance(v, pa.Scalar) for v in values)
        count = 1 if constant else rows
        lists = [
            columns.as_array(cast_column(v, t, wide, environment, strict=False), count)
            for v, t in zip(values, types, strict=True)
        ]
        offsets, elements = _common(lists, count)
        found = cast_column(elements, wide.inner, shared, environment, strict=False)
        made = columns.lists_from(offsets, columns.single(found))
        return made[0] if constant else made

    if isinstance(shared, Nothing):
        return ScalarCall(name, Array(NOTHING), lambda v, r, e: default_value(Array(NOTHING)))
    return ScalarCall(name, Array(shared), kernel)


def _common(lists: Sequence[pa.Array], rows: int) -> tuple[np.ndarray, pa.Array]:
    """The elements of the first array, each once, that all others have too."""
    split = [columns.elements_of(one) for one in lists]
    owners = np.concatenate([columns.parents_of(offsets) for offsets, _ in split])
    number = np.repeat(np.arange(len(split)), [len(elements) for _, elements in split])
    elements = pa.concat_arrays([one for _, one in split])
    ranks = ranks_with_null(elements)
    span = int(ranks.max()) + 1 if len(ranks) else 1
    pairs = owners * span + ranks
    kinds, inverse = np.unique(pairs, return_inverse=True)
    inverse = inverse.reshape(-1)
    seen = np.zeros((len(kinds), len(split)), bool)
    seen[inverse, number] = True
    everywhere = np.logical_and.reduce(seen, axis=1)
    first = len(split[0][1])
    kept = everywhere[inverse[:first]] & first_occurrences(owners[:first], ranks[:first])
    counts = np.bincount(owners[:first][kept], minlength=rows)
    return columns.offsets_from_counts(counts), split[0][1].filter(pa.array(kept))


def _subtype(name: str, inners: Sequence[DataType]) -> DataType:
    """The type of what values of all of these types have in common; NoCommonType where nothing."""
    if any(isinstance(one, Nothing) for one in inners):
        return NOTHING
    bare = [plain(one) for one in inners]
    found = bare[0]
    if any(one != found for one in bare[1:]):
        if not all(isinstance(one, Integer | Float) for one in bare):
            shown = ", ".join(map(str, bare))
            raise NoCommonType(
                f"There is no subtype for types {shown} in {name}.", hint="Cast one of them."
            )
        integers = [one for one in bare if isinstance(one, Integer)]
        floats = [one for one in bare if isinstance(one, Float)]
        found = (
            min(integers, key=lambda one: (one.bits, one.signed))
            if integers
            else min(floats, key=lambda one: one.bits)
        )
    nullable = all(isinstance(one, Nullable) for one in inners)
    return make_nullable(found) if nullable else found


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("arrayEnumerateUniq", _arrays_rule(Array(UINT32)), _occurrences, count=(1, None)),
    define("arrayEnumerateDense", _arrays_rule(Array(UINT32)), _dense, count=(1, None)),
    custom("arrayZip", _zip, count=(1, None)),
    custom("arrayIntersect", _intersect, count=(1, None)),
)
