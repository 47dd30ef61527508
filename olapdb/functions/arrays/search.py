"""Functions that search arrays and maps: has, indexOf, countEqual, hasAny, hasAll, mapContains."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import NoCommonType
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.arrays.nested_equality import equal_rows, rankable_values
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.nested import count_marked, map_parts
from olapdb.functions.kernels.supertypes import comparable_type
from olapdb.functions.numeric.comparison import resolve_comparison
from olapdb.functions.numeric.conditional import plain_lc
from olapdb.functions.scalar import Invocation, ScalarDefinition, custom, require, standard_call
from olapdb.types import (
    UINT8,
    UINT64,
    Array,
    DataType,
    ExactFloat,
    Map,
    is_number,
    make_nullable,
    plain,
)
from olapdb.types.arrow_values import from_numpy

_OF_ARRAYS = ("indexOf", "countEqual")
"""Functions that refuse a Map."""
Fold = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(offsets, bool for each element: equal to its row's value) -> a number for each row."""


def _search(name: str, arguments: Sequence[Argument], result: DataType, fold: Fold) -> ScalarCall:
    """Return the call that compares each element with its row's value and folds the answers.

    A Map is searched by its keys, except by indexOf and countEqual. NULL equals NULL."""
    container = plain(arguments[0].type)
    if isinstance(container, Map) and name not in _OF_ARRAYS:
        container = Array(container.key)
    require(name, [container], Array, "an Array")
    assert isinstance(container, Array)
    types = [plain_lc(container.inner), plain_lc(arguments[1].type)]
    shared = _searched_type(types)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Compare each element with its row's value and reduce the matches of each row by `fold`."""
        constant = all(isinstance(v, pa.Scalar) for v in values)
        count = 1 if constant else rows
        lists, needles = (columns.as_array(v, count) for v in values)
        if pa.types.is_map(lists.type):
            offsets, elements, _ = map_parts(lists)
        else:
            offsets, elements = columns.elements_of(lists)
        parents = pa.array(columns.parents_of(offsets))
        if shared is None:
            same = _equal_numbers(elements, needles.take(parents), types, environment)
        else:
            elements, needles = (
                cast_column(v, t, make_nullable(shared), environment, strict=False)
                for v, t in ((elements, container.inner), (needles, arguments[1].type))
            )
            same = _equal_or_both_null(elements, needles.take(parents))
        answers = columns.from_values(fold(offsets, same), result.arrow)
        return answers[0] if constant else answers

    return ScalarCall(name, result, kernel)


def _searched_type(types: Sequence[DataType]) -> DataType | None:
    """Return the type in which elements and value are compared.

    Returns None for numbers without a common type (Int64 and Float64); `=` compares these."""
    numbers = all(is_number(t) for t in types)
    try:
        shared = comparable_type(types)
    except NoCommonType:
        if not numbers:
            raise
        return None
    return None if isinstance(plain(shared), ExactFloat) else shared


def _equal_numbers(
    elements: pa.Array, needles: pa.Array, types: Sequence[DataType], environment: Environment
) -> np.ndarray:
    """Return which elements equal their needle as `=` compares numbers; NULL equals NULL."""
    equals = resolve_comparison("equals", [Argument(t) for t in types])
    compared = columns.truth(equals.kernel([elements, needles], len(elements), environment))
    equal = pc.fill_null(compared, False)
    return np.asarray(pc.or_(equal, pc.and_(elements.is_null(), needles.is_null())))


def _equal_or_both_null(left: pa.Array, right: pa.Array) -> np.ndarray:
    """Return which rows of two columns of one type are equal or both NULL; bool."""
    if pa.types.is_null(left.type):
        return np.ones(len(left), bool)
    if pa.types.is_nested(left.type):
        return equal_rows(left, right)
    equal = np.asarray(pc.fill_null(pc.equal(left, right), False))
    return np.asarray(equal | np.asarray(pc.and_(left.is_null(), right.is_null())))


def _has_marked(offsets: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """Return for each row whether any of its elements is marked; bool, shape (rows,)."""
    return count_marked(offsets, marked) > 0


def _first_marked(offsets: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """Return the position from 1 of each row's first marked element; 0 if it has none."""
    positions = np.zeros(len(offsets) - 1, np.int64)
    hits = np.flatnonzero(marked)[::-1]
    owners = columns.parents_of(offsets)[hits]
    positions[owners] = hits - offsets[owners] + 1
    return positions


def _searching(result: DataType, fold: Fold) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of a search function with this `result` type and `fold`."""
    return lambda name, arguments: _search(name, arguments, result, fold)


def _map_contains(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve mapContains(m, key): whether a map has the key."""
    require(name, [plain(arguments[0].type)], Map, "a Map")
    return _search(name, arguments, UINT8, _has_marked)


def _containment(*, every: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of hasAll (`every`) or hasAny, over two arrays."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; both arrays are compared in their common type."""
        types = [plain(a.type) for a in arguments]
        require(name, types, Array, "an Array")
        shared = comparable_type(types)
        assert isinstance(shared, Array)

        def kernel(values: list[Column], call: Invocation) -> pa.Array:
            """Return for each row 1 if the first array has all, or any, elements of the second."""
            left, right = (
                cast_column(v, t, shared, call.environment, strict=False)
                for v, t in zip(values, call.types, strict=True)
            )
            owned = columns.elements_of(columns.as_array(left, call.rows))
            few = isinstance(right, pa.Scalar) and len(right.values) <= _CONSTANTS_MAX
            if few and not pa.types.is_nested(shared.arrow.value_type):
                holds = _hold_constants(*owned, right.values, every=every)
            else:
                needles = columns.elements_of(columns.as_array(right, call.rows))
                matches = count_marked(needles[0], _is_element(*owned, *needles))
                holds = matches == np.diff(needles[0]) if every else matches > 0
            return columns.from_values(holds, pa.uint8())

        return standard_call(name, arguments, UINT8, kernel, keeps_constants=True)

    return resolve


_CONSTANTS_MAX = 16
"""Up to so many constants are compared one by one, which is faster than ranking all elements."""


def _hold_constants(
    offsets: np.ndarray, elements: pa.Array, constants: pa.Array, *, every: bool
) -> np.ndarray:
    """Return for each row whether its array has every constant, or with `every` False at least one; bool."""
    holds = np.full(len(offsets) - 1, every)
    for constant in constants:
        repeated = pa.repeat(constant, len(elements))
        has = _has_marked(offsets, _equal_or_both_null(elements, repeated))
        holds = holds & has if every else holds | has
    return holds


def _is_element(
    offsets: np.ndarray, elements: pa.Array, needle_offsets: np.ndarray, needles: pa.Array
) -> np.ndarray:
    """Return whether each needle is among the elements of its row; bool, shape of `needles`."""
    both = pa.concat_arrays([elements, needles])
    ranks = ranks_with_null(rankable_values(both))
    span = int(ranks.max()) + 1 if len(ranks) else 1
    owned = columns.parents_of(offsets) * span + ranks[: len(elements)]
    if pa.types.is_floating(both.type):  # NaN is equal to nothing
        owned = owned[~np.isnan(columns.numpy_values(elements))]
    return np.isin(columns.parents_of(needle_offsets) * span + ranks[len(elements) :], owned)


def ranks_with_null(elements: pa.Array) -> np.ndarray:
    """Return the ranks of the values, from 1; 0 for NULL. int64, shape (rows,)."""
    valid = columns.validity(elements)
    if pa.types.is_null(elements.type):
        return np.zeros(len(elements), np.int64)
    ranks = np.zeros(len(elements), np.int64)
    if valid is None:
        return group_kernels.rank_rows([elements]).ranks + 1
    ranks[valid] = group_kernels.rank_rows([elements.filter(from_numpy(valid))]).ranks + 1
    return ranks


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("has", _searching(UINT8, _has_marked), count=2),
    custom("indexOf", _searching(UINT64, _first_marked), count=2),
    custom("countEqual", _searching(UINT64, count_marked), count=2),
    custom("hasAny", _containment(every=False), count=2),
    custom("hasAll", _containment(every=True), count=2),
    custom("mapContains", _map_contains, count=2, aliases=("mapContainsKey",)),
)
