"""Search in arrays and maps: has, indexOf, countEqual, hasAny, hasAll, mapContains."""

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
from olapdb.functions.kernels.supertypes import common_type
from olapdb.functions.numeric.comparison import resolve_comparison
from olapdb.functions.numeric.conditional import plain_lc
from olapdb.functions.scalar import Invocation, ScalarDefinition, custom, illegal, require, usual
from olapdb.types import (
    UINT8,
    UINT64,
    Array,
    DataType,
    ExactFloat,
    Map,
    Tuple,
    is_number,
    make_nullable,
    plain,
)


def map_parts(array: pa.Array) -> tuple[np.ndarray, pa.Array, pa.Array]:
    offsets = columns.offsets_of(array)
    start, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    return offsets - start, array.keys.slice(start, count), array.items.slice(start, count)


def _search(
    name: str,
    arguments: Sequence[Argument],
    result: DataType,
    fold: Callable[[np.ndarray, np.ndarray, int], np.ndarray],
) -> ScalarCall:
    """fold(offsets, which elements are equal to the row's value, rows)."""
    container = plain(arguments[0].type)
    if isinstance(container, Map):
        container = Array(container.key)
    require(name, [container], Array, "an Array")
    assert isinstance(container, Array)
    types = [plain_lc(container.inner), plain_lc(arguments[1].type)]
    shared = _searched_type(types)
    if shared is not None and isinstance(plain(shared), Tuple):
        raise illegal(name, shared, "an Array of numbers, strings or dates")

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        constant = all(isinstance(v, pa.Scalar) for v in values)
        count = 1 if constant else rows
        lists, wanted = (columns.as_array(v, count) for v in values)
        if pa.types.is_map(lists.type):
            offsets, elements, _ = map_parts(lists)
        else:
            offsets, elements = columns.elements_of(lists)
        parents = pa.array(columns.parents_of(offsets))
        if shared is None:
            same = _equal_numbers(elements, wanted.take(parents), types, environment)
        else:
            elements, wanted = (
                cast_column(v, t, make_nullable(shared), environment, strict=False)
                for v, t in ((elements, container.inner), (wanted, arguments[1].type))
            )
            same = _equal_or_both_null(elements, wanted.take(parents))
        made = columns.from_values(fold(offsets, same, count), result.arrow)
        return made[0] if constant else made

    return ScalarCall(name, result, kernel)


def _searched_type(types: Sequence[DataType]) -> DataType | None:
    """The type at which elements and value are compared; None for numbers that have none in common
    (Int64 and Float64), which are compared as `=` does."""
    numbers = all(is_number(t) for t in types)
    try:
        shared = common_type(types)
    except NoCommonType:
        if not numbers:
            raise
        return None
    return None if isinstance(plain(shared), ExactFloat) else shared


def _equal_numbers(
    elements: pa.Array, wanted: pa.Array, types: Sequence[DataType], environment: Environment
) -> np.ndarray:
    equals = resolve_comparison("equals", [Argument(t) for t in types])
    found = columns.truth(equals.kernel([elements, wanted], len(elements), environment))
    equal = pc.fill_null(found, False)
    return np.asarray(pc.or_(equal, pc.and_(elements.is_null(), wanted.is_null())))


def _equal_or_both_null(left: pa.Array, right: pa.Array) -> np.ndarray:
    if pa.types.is_null(left.type):
        return np.ones(len(left), bool)
    if pa.types.is_nested(left.type):
        return equal_rows(left, right)
    equal = np.asarray(pc.fill_null(pc.equal(left, right), False))
    return np.asarray(equal | np.asarray(pc.and_(left.is_null(), right.is_null())))


def _any_of(offsets: np.ndarray, same: np.ndarray, rows: int) -> np.ndarray:
    return count_marked(offsets, same, rows) > 0


def count_marked(offsets: np.ndarray, same: np.ndarray, rows: int) -> np.ndarray:
    running = np.concatenate(([0], np.cumsum(same)))
    return np.asarray(running[offsets[1:]] - running[offsets[:-1]])


def _first_of(offsets: np.ndarray, same: np.ndarray, rows: int) -> np.ndarray:
    out = np.zeros(rows, np.int64)
    hits = np.flatnonzero(same)[::-1]
    owners = columns.parents_of(offsets)[hits]
    out[owners] = hits - offsets[owners] + 1
    return out


def _searching(
    result: DataType, fold: Callable[[np.ndarray, np.ndarray, int], np.ndarray]
) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        return _search(name, arguments, result, fold)

    return resolve


def _map_contains(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    require(name, [plain(arguments[0].type)], Map, "a Map")
    return _search(name, arguments, UINT8, _any_of)


def _sets(*, every: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """hasAny, hasAll over two arrays."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        types = [plain(a.type) for a in arguments]
        require(name, types, Array, "an Array")
        shared = common_type(types)
        assert isinstance(shared, Array)

        def kernel(values: list[Column], call: Invocation) -> pa.Array:
            left, right = (
                cast_column(v, t, shared, call.environment, strict=False)
                for v, t in zip(values, call.types, strict=True)
            )
            owned = columns.elements_of(columns.as_array(left, call.rows))
            few = isinstance(right, pa.Scalar) and len(right.values) <= _FEW
            if few and not pa.types.is_nested(shared.arrow.value_type):
                holds = _hold_each(*owned, right.values, call.rows, every)
            else:
                wanted = columns.elements_of(columns.as_array(right, call.rows))
                found = count_marked(wanted[0], _found_in(*owned, *wanted), call.rows)
                holds = found == np.diff(wanted[0]) if every else found > 0
            return columns.from_values(holds, pa.uint8())

        return usual(name, arguments, UINT8, kernel, keeps_constants=True)

    return resolve


_FEW = 16
"""So many constants are looked for one by one."""


def _hold_each(
    offsets: np.ndarray, elements: pa.Array, wanted: pa.Array, rows: int, every: bool
) -> np.ndarray:
    """Which rows have every one of the constants, or one of them."""
    holds = np.full(rows, every)
    for at in range(len(wanted)):
        spread = pa.repeat(wanted[at], len(elements))
        has = _any_of(offsets, _equal_or_both_null(elements, spread), rows)
        holds = holds & has if every else holds | has
    return holds


def _found_in(
    offsets: np.ndarray, elements: pa.Array, wanted_offsets: np.ndarray, wanted: pa.Array
) -> np.ndarray:
    """Which of the wanted elements are among those of their row."""
    both = pa.concat_arrays([elements, wanted])
    ranks = ranks_with_null(rankable_values(both))
    span = int(ranks.max()) + 1 if len(ranks) else 1
    owned = columns.parents_of(offsets) * span + ranks[: len(elements)]
    if pa.types.is_floating(both.type):  # NaN is equal to nothing
        owned = owned[~np.isnan(columns.numpy_values(elements))]
    return np.isin(columns.parents_of(wanted_offsets) * span + ranks[len(elements) :], owned)


def ranks_with_null(elements: pa.Array) -> np.ndarray:
    """Ranks of values from 1, 0 for NULL."""
    valid = columns.validity(elements)
    if pa.types.is_null(elements.type):
        return np.zeros(len(elements), np.int64)
    ranks = np.zeros(len(elements), np.int64)
    if valid is None:
        return group_kernels.rank_rows([elements]).ranks + 1
    ranks[valid] = group_kernels.rank_rows([elements.filter(pa.array(valid))]).ranks + 1
    return ranks


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("has", _searching(UINT8, _any_of), count=2),
    custom("indexOf", _searching(UINT64, _first_of), count=2),
    custom("countEqual", _searching(UINT64, count_marked), count=2),
    custom("hasAny", _sets(every=False), count=2),
    custom("hasAll", _sets(every=True), count=2),
    custom("mapContains", _map_contains, count=2, aliases=("mapContainsKey",)),
)
