"""Arrays, tuples and maps: making them, elements, search, sums, order. Lambdas are not here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import ArgumentOutOfBound, BadArguments, IllegalTypeOfArgument
from olapdb.functions import columns
from olapdb.functions.aggregates import segments
from olapdb.functions.base import Argument, Column, Environment, Groups, ScalarCall
from olapdb.functions.casts import cast_column, map_from
from olapdb.functions.conditional import plain_lc
from olapdb.functions.scalar import (
    Definition,
    Invocation,
    Kernel,
    custom,
    define,
    illegal,
    require,
    usual,
)
from olapdb.functions.supertypes import common_type, sum_type
from olapdb.functions.values import default_value
from olapdb.types import (
    FLOAT64,
    NOTHING,
    UINT8,
    UINT32,
    UINT64,
    Array,
    Boolean,
    DataType,
    Decimal,
    Float,
    Integer,
    Map,
    Nothing,
    String,
    Tuple,
    is_nullable,
    make_nullable,
    plain,
)

_SIZE_MAX = 10_000_000


def array_of(arguments: Sequence[pa.Array], rows: int, inner: DataType) -> pa.Array:
    """One list a row of the arguments' values, interleaved."""
    count = len(arguments)
    offsets = np.arange(rows + 1, dtype=np.int64) * count
    if not count:
        return columns.lists_from(offsets, pa.array([], inner.arrow))
    stacked = pa.concat_arrays(list(arguments))
    order = (np.arange(rows)[:, None] + np.arange(count)[None, :] * rows).reshape(-1)
    return columns.lists_from(offsets, stacked.take(pa.array(order)))


def _whole(result: DataType, build: Callable[[list[pa.Array], int], pa.Array], types: Sequence[DataType],
           targets: Sequence[DataType], name: str) -> ScalarCall:  # fmt: skip
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


def _array(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    types = [a.type for a in arguments]
    inner = common_type([plain_lc(t) for t in types]) if types else NOTHING
    return _whole(Array(inner), lambda cast, rows: array_of(cast, rows, inner), types, [inner] * len(types), name)


def _tuple(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    types = tuple(plain_lc(a.type) for a in arguments)
    result = Tuple(types)

    def build(cast: list[pa.Array], rows: int) -> pa.Array:
        return columns.structs_from(cast, result.arrow, rows=rows)

    return _whole(result, build, [a.type for a in arguments], types, name)


def _map(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    if len(arguments) % 2:
        raise BadArguments(f"Function {name} takes keys and values in pairs.")
    keys, values = arguments[::2], arguments[1::2]
    key = common_type([plain_lc(a.type) for a in keys]) if keys else NOTHING
    value = common_type([plain_lc(a.type) for a in values]) if values else NOTHING
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
        raise illegal(name, arguments[0].type, "an Array")

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
    require(name, [container], Array, "an Array or Map")
    require(name, [index], Integer, "an integer index")
    assert isinstance(container, Array)
    inner = container.inner if not isinstance(container.inner, Nothing) else make_nullable(NOTHING)
    if isinstance(inner, Array) and any(is_nullable(a.type) for a in arguments):
        raise illegal(name, arguments[0].type, "an Array without NULLs")

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        offsets, elements = columns.elements_of(arrays[0])
        sizes, place = np.diff(offsets), columns.numpy_values(arrays[1]).astype(np.int64)
        position = np.where(place > 0, place - 1, sizes + place)
        inside = (place != 0) & (position >= 0) & (position < sizes)
        return _or_default(elements, np.where(inside, offsets[:-1] + position, -1), inner)

    return usual(name, arguments, inner, kernel)


def _or_default(elements: pa.Array, rows: np.ndarray, inner: DataType) -> pa.Array:
    """The elements at these rows; the type's default (NULL where it can be) where the row is -1."""
    padded = pa.concat_arrays([elements, columns.single(default_value(inner))])
    return padded.take(pa.array(np.where(rows < 0, len(elements), rows)))


def _map_element(name: str, arguments: Sequence[Argument], container: Map) -> ScalarCall:
    key_type, inner = container.key, container.value

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        offsets, keys, items = _map_parts(arrays[0])
        wanted = cast_column(arrays[1], call.types[1], key_type, call.environment, strict=True)
        owners = columns.parents_of(offsets)
        same = np.flatnonzero(np.asarray(pc.equal(keys, wanted.take(pa.array(owners)))))
        rows = np.full(len(arrays[0]), -1, np.int64)
        rows[owners[same][::-1]] = same[::-1]
        return _or_default(items, rows, inner)

    return usual(name, arguments, inner, kernel)


def _map_parts(array: pa.Array) -> tuple[np.ndarray, pa.Array, pa.Array]:
    offsets = columns.offsets_of(array)
    start, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    return offsets - start, array.keys.slice(start, count), array.items.slice(start, count)


def _tuple_element(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    container = plain(arguments[0].type)
    if not isinstance(container, Tuple):
        raise illegal(name, container, "a Tuple")
    key = arguments[1].constant.as_py() if arguments[1].constant is not None else None
    if isinstance(key, str) and key in container.field_names:
        at = container.field_names.index(key)
    elif isinstance(key, int) and 1 <= key <= len(container.elements):
        at = key - 1
    else:
        raise ArgumentOutOfBound(f"{container} has no element {key!r}.")
    inner = container.elements[at]

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        if isinstance(values[0], pa.Scalar):
            return columns.struct_fields(columns.single(values[0]))[at][0]
        return columns.struct_fields(values[0])[at]

    return ScalarCall(name, inner, kernel)


# --- search -------------------------------------------------------------------------------------


def _search(name: str, arguments: Sequence[Argument], result: DataType,
            fold: Callable[[np.ndarray, np.ndarray, int], np.ndarray]) -> ScalarCall:  # fmt: skip
    """fold(offsets, which elements are equal to the row's value, rows)."""
    container = plain(arguments[0].type)
    if isinstance(container, Map):
        container = Array(container.key)
    require(name, [container], Array, "an Array")
    assert isinstance(container, Array)
    shared = common_type([plain_lc(container.inner), plain_lc(arguments[1].type)])
    if isinstance(plain(shared), Tuple):
        raise illegal(name, shared, "an Array of numbers, strings or dates")

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        constant = all(isinstance(v, pa.Scalar) for v in values)
        count = 1 if constant else rows
        lists, wanted = (columns.as_array(v, count) for v in values)
        if pa.types.is_map(lists.type):
            offsets, elements, _ = _map_parts(lists)
        else:
            offsets, elements = columns.elements_of(lists)
        elements = cast_column(elements, container.inner, make_nullable(shared), environment, strict=False)
        wanted = cast_column(wanted, arguments[1].type, make_nullable(shared), environment, strict=False)
        spread = wanted.take(pa.array(columns.parents_of(offsets)))
        same = _equal_or_both_null(elements, spread)
        made = columns.from_values(fold(offsets, same, count), result.arrow)
        return made[0] if constant else made

    return ScalarCall(name, result, kernel)


def _equal_or_both_null(left: pa.Array, right: pa.Array) -> np.ndarray:
    if pa.types.is_null(left.type):
        return np.ones(len(left), bool)
    if pa.types.is_nested(left.type):
        both = segments.rank([pa.concat_arrays([left, right])]).ranks
        return both[: len(left)] == both[len(left) :]
    equal = np.asarray(pc.fill_null(pc.equal(left, right), False))
    return equal | np.asarray(pc.and_(left.is_null(), right.is_null()))


def _any_of(offsets: np.ndarray, same: np.ndarray, rows: int) -> np.ndarray:
    return _count_of(offsets, same, rows) > 0


def _count_of(offsets: np.ndarray, same: np.ndarray, rows: int) -> np.ndarray:
    running = np.concatenate(([0], np.cumsum(same)))
    return running[offsets[1:]] - running[offsets[:-1]]


def _first_of(offsets: np.ndarray, same: np.ndarray, rows: int) -> np.ndarray:
    out = np.zeros(rows, np.int64)
    hits = np.flatnonzero(same)[::-1]
    owners = columns.parents_of(offsets)[hits]
    out[owners] = hits - offsets[owners] + 1
    return out


def _searching(result: DataType, fold: Callable[[np.ndarray, np.ndarray, int], np.ndarray]) -> Callable[[str, Sequence[Argument]], ScalarCall]:
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

        def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
            cast = [cast_column(a, t, shared, call.environment, strict=False)
                    for a, t in zip(arrays, call.types, strict=True)]  # fmt: skip
            (left_offsets, left), (right_offsets, right) = (columns.elements_of(c) for c in cast)
            ranks = _null_ranks(pa.concat_arrays([left, right]))
            span = int(ranks.max()) + 1 if len(ranks) else 1
            owned = columns.parents_of(left_offsets) * span + ranks[: len(left)]
            wanted = columns.parents_of(right_offsets) * span + ranks[len(left) :]
            there = np.isin(wanted, owned)
            found = _count_of(right_offsets, there, call.rows)
            holds = found == np.diff(right_offsets) if every else found > 0
            return columns.from_values(holds, pa.uint8())

        return usual(name, arguments, UINT8, kernel)

    return resolve


def _null_ranks(elements: pa.Array) -> np.ndarray:
    """Ranks of values from 1, 0 for NULL."""
    valid = columns.validity(elements)
    if pa.types.is_null(elements.type):
        return np.zeros(len(elements), np.int64)
    ranks = np.zeros(len(elements), np.int64)
    if valid is None:
        return segments.rank([elements]).ranks + 1
    ranks[valid] = segments.rank([elements.filter(pa.array(valid))]).ranks + 1
    return ranks


# --- whole arrays -------------------------------------------------------------------------------


def _array_rule(result: Callable[[Array], DataType]) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        first = types[0]
        if not isinstance(first, Array):
            raise illegal(name, first, "an Array")
        return result(first)

    return rule


def _numeric(name: str, inner: DataType) -> DataType:
    one = plain(inner)
    if is_nullable(inner) or not isinstance(one, Integer | Float | Decimal | Boolean):
        raise IllegalTypeOfArgument(f"Illegal type Array({inner}) of argument of function {name}.")
    return one


def _folding(kind: str) -> Kernel:
    """arraySum, arrayAvg, arrayMin, arrayMax: the aggregate of each array."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        from olapdb.functions.aggregates.registry import resolve_aggregate

        container = call.types[0]
        assert isinstance(container, Array)
        offsets, elements = columns.elements_of(arrays[0])
        aggregate = resolve_aggregate(kind, (), (plain(container.inner),))
        groups = Groups(columns.parents_of(offsets), len(arrays[0]))
        values = aggregate.finalize(aggregate.state([elements], groups))
        if kind == "avg":  # of nothing is 0 here, unlike avg()
            known = columns.numpy_values(values)
            values = pa.array(np.where(np.diff(offsets) == 0, 0.0, known))
        return values if values.type == call.result.arrow else values.cast(call.result.arrow)

    return kernel


def reversed_lists(array: pa.Array) -> pa.Array:
    """Each list back to front."""
    offsets, elements = columns.elements_of(array)
    owners = columns.parents_of(offsets)
    order = offsets[owners] + offsets[owners + 1] - 1 - np.arange(len(elements))
    return columns.lists_from(offsets, elements.take(pa.array(order)))


def _reordered(kind: str) -> Kernel:
    """arraySort, arrayReverseSort, arrayDistinct, arrayCompact."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        offsets, elements = columns.elements_of(arrays[0])
        owners = columns.parents_of(offsets)
        positions = np.arange(len(elements))
        ranks = _null_ranks(elements)
        if kind in ("sort", "reverseSort"):
            last = np.where(ranks == 0, np.iinfo(np.int64).max, ranks if kind == "sort" else -ranks)
            order = np.lexsort((positions, last, owners))
            return columns.lists_from(offsets, elements.take(pa.array(order)))
        if kind == "distinct":
            kept = _first_occurrences(owners, ranks) & (ranks > 0)
        else:
            kept = np.ones(len(elements), bool)
            kept[1:] = (owners[1:] != owners[:-1]) | (ranks[1:] != ranks[:-1])
        counts = np.bincount(owners[kept], minlength=len(arrays[0]))
        return columns.lists_from(columns.offsets_from_counts(counts), elements.filter(pa.array(kept)))

    return kernel


def _first_occurrences(owners: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    span = int(ranks.max()) + 1 if len(ranks) else 1
    _, first = np.unique(owners * span + ranks, return_index=True)
    kept = np.zeros(len(ranks), bool)
    kept[first] = True
    return kept


def _uniq(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    offsets, elements = columns.elements_of(arrays[0])
    kept = _first_occurrences(columns.parents_of(offsets), _null_ranks(elements))
    return columns.from_values(_count_of(offsets, kept, call.rows), pa.uint32())


def _enumerate(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    offsets, _ = columns.elements_of(arrays[0])
    owners = columns.parents_of(offsets)
    places = np.arange(len(owners)) - offsets[owners] + 1
    return columns.lists_from(offsets, columns.from_values(places, pa.uint32()))


def _slice(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """arraySlice(a, offset[, length]); negative counts from the end."""
    container = plain(arguments[0].type)
    require(name, [container], Array, "an Array")
    require(name, [plain(a.type) for a in arguments[1:]], Integer, "an integer")

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        offsets, elements = columns.elements_of(arrays[0])
        sizes = np.diff(offsets)
        start = columns.numpy_values(arrays[1]).astype(np.int64)
        begin = np.where(start > 0, start - 1, np.where(start < 0, sizes + start, sizes))
        length = columns.numpy_values(arrays[2]).astype(np.int64) if len(arrays) > 2 else 2 * sizes
        end = np.clip(np.where(length < 0, sizes + length, begin + length), 0, sizes)
        begin = np.clip(begin, 0, sizes)
        counts = np.maximum(end - begin, 0)
        out = columns.offsets_from_counts(counts)
        rows = np.arange(int(out[-1])) + np.repeat(offsets[:-1] + begin - out[:-1], counts)
        return columns.lists_from(out, elements.take(pa.array(rows)))

    return usual(name, arguments, container, kernel)


def _push(*, back: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        single_type = Array(plain_lc(arguments[1].type))
        order = [arguments[0], Argument(single_type)] if back else [Argument(single_type), arguments[0]]
        joined = concatenation(name, order)
        wrap = _array("array", [arguments[1]])

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            one = wrap.kernel([values[1]], rows, environment)
            pair = [values[0], one] if back else [one, values[0]]
            return joined.kernel(pair, rows, environment)

        return ScalarCall(name, joined.type, kernel)

    return resolve


def _pop(*, back: bool) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        offsets, elements = columns.elements_of(arrays[0])
        owners, positions = columns.parents_of(offsets), np.arange(len(elements))
        gone = positions == (offsets[owners + 1] - 1 if back else offsets[owners])
        counts = np.maximum(np.diff(offsets) - 1, 0)
        return columns.lists_from(columns.offsets_from_counts(counts), elements.filter(pa.array(~gone)))

    return kernel


def _flatten(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    array, data_type = arrays[0], call.types[0]
    while isinstance(data_type, Array) and isinstance(data_type.inner, Array):
        outer, lists = columns.elements_of(array)
        inner, elements = columns.elements_of(lists)
        array, data_type = columns.lists_from(inner[outer], elements), data_type.inner
    return array


def _flat_type(array: Array) -> DataType:
    inner: DataType = array
    while isinstance(inner, Array) and isinstance(inner.inner, Array):
        inner = inner.inner
    return inner


def _range(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """range([start,] end[, step])."""
    types = [plain(a.type) for a in arguments]
    require(name, types, Integer, "an integer")
    inner = common_type(types)

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        numbers = [columns.numpy_values(a).astype(np.int64) for a in arrays]
        start = numbers[0] if len(numbers) > 1 else np.zeros(len(arrays[0]), np.int64)
        end = numbers[1] if len(numbers) > 1 else numbers[0]
        step = numbers[2] if len(numbers) > 2 else np.ones(len(arrays[0]), np.int64)
        if (step == 0).any():
            raise BadArguments("The step of range must not be 0.")
        counts = np.maximum(-((start - end) // step), 0)
        _bounded(name, int(counts.sum()))
        offsets = columns.offsets_from_counts(counts)
        owners = columns.parents_of(offsets)
        values = start[owners] + (np.arange(len(owners)) - offsets[owners]) * step[owners]
        return columns.lists_from(offsets, columns.from_values(values, inner.arrow))

    return usual(name, arguments, Array(inner), kernel)


def _bounded(name: str, elements: int) -> None:
    if elements > _SIZE_MAX * 50:
        raise BadArguments(f"A call to {name} would produce {elements} array elements.")


def _with_constant(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    require(name, [plain(arguments[0].type)], Integer, "an integer")
    inner = plain_lc(arguments[1].type)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        constant = all(isinstance(v, pa.Scalar) for v in values)
        count, elements = (columns.as_array(v, 1 if constant else rows) for v in values)
        counts = np.maximum(columns.numpy_values(count).astype(np.int64), 0)
        _bounded(name, int(counts.sum()))
        offsets = columns.offsets_from_counts(counts)
        made = columns.lists_from(offsets, elements.take(pa.array(columns.parents_of(offsets))))
        return made[0] if constant else made

    return ScalarCall(name, Array(inner), kernel)


def _empty_array(inner: DataType) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        return ScalarCall(name, Array(inner), lambda v, r, e: default_value(Array(inner)))

    return resolve


# --- maps ---------------------------------------------------------------------------------------


def _map_side(*, keys: bool) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        offsets, key, value = _map_parts(arrays[0])
        return columns.lists_from(offsets, key if keys else value)

    return kernel


def _map_rule(*, keys: bool) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        container = types[0]
        if not isinstance(container, Map):
            raise illegal(name, container, "a Map")
        return Array(container.key if keys else container.value)

    return rule


def _map_from_arrays(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    types = [plain(a.type) for a in arguments]
    require(name, types, Array, "an Array")
    keys, values = types
    assert isinstance(keys, Array) and isinstance(values, Array)
    result = Map(keys.inner, values.inner)

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        (left, key), (right, value) = (columns.elements_of(a) for a in arrays)
        if not np.array_equal(left, right):
            raise BadArguments(f"The arrays of {name} have different sizes.")
        return map_from(left, key, value, result)

    return usual(name, arguments, result, kernel)




def _sum_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    return sum_type(_numeric(name, _inner(name, types[0])))


def _avg_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    _numeric(name, _inner(name, types[0]))
    return FLOAT64


def _extreme_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    inner = plain(_inner(name, types[0]))
    if isinstance(inner, Array | Tuple | Map | Nothing):
        raise illegal(name, types[0], "an Array of single values")
    return inner


def _inner(name: str, data_type: DataType) -> DataType:
    if not isinstance(data_type, Array):
        raise illegal(name, data_type, "an Array")
    return data_type.inner


def _itself(array: Array) -> DataType:
    return array


def _not_null_elements(array: Array) -> DataType:
    return Array(plain(array.inner))


DEFINITIONS: tuple[Definition, ...] = (
    custom("array", _array, count=(0, None)),
    custom("tuple", _tuple, count=(0, None)),
    custom("map", _map, count=(0, None)),
    custom("arrayElement", _array_element, count=2),
    custom("tupleElement", _tuple_element, count=2),
    custom("has", _searching(UINT8, _any_of), count=2),
    custom("indexOf", _searching(UINT64, _first_of), count=2),
    custom("countEqual", _searching(UINT64, _count_of), count=2),
    custom("hasAny", _sets(every=False), count=2),
    custom("hasAll", _sets(every=True), count=2),
    custom("mapContains", _map_contains, count=2, aliases=("mapContainsKey",)),
    custom("arrayConcat", concatenation, count=(1, None)),
    custom("arraySlice", _slice, count=(2, 3)),
    custom("arrayPushBack", _push(back=True), count=2),
    custom("arrayPushFront", _push(back=False), count=2),
    define("arrayPopBack", _array_rule(_itself), _pop(back=True)),
    define("arrayPopFront", _array_rule(_itself), _pop(back=False)),
    define("arraySum", _sum_rule, _folding("sum")),
    define("arrayAvg", _avg_rule, _folding("avg")),
    define("arrayMin", _extreme_rule, _folding("min")),
    define("arrayMax", _extreme_rule, _folding("max")),
    define("arraySort", _array_rule(_itself), _reordered("sort")),
    define("arrayReverseSort", _array_rule(_itself), _reordered("reverseSort")),
    define("arrayReverse", _array_rule(_itself), lambda a, call: reversed_lists(a[0])),
    define("arrayDistinct", _array_rule(_not_null_elements), _reordered("distinct")),
    define("arrayCompact", _array_rule(_itself), _reordered("compact")),
    define("arrayUniq", _array_rule(lambda a: UINT32), _uniq),
    define("arrayEnumerate", _array_rule(lambda a: Array(UINT32)), _enumerate),
    define("arrayFlatten", _array_rule(_flat_type), _flatten, aliases=("flatten",), insensitive=True),
    custom("range", _range, count=(1, 3)),
    custom("arrayWithConstant", _with_constant, count=2),
    *(custom(f"emptyArray{t.name}", _empty_array(t), count=0)
      for t in (UINT8, UINT32, UINT64, FLOAT64, String())),
    define("mapKeys", _map_rule(keys=True), _map_side(keys=True)),
    define("mapValues", _map_rule(keys=False), _map_side(keys=False)),
    custom("mapFromArrays", _map_from_arrays, count=2),
)  # fmt: skip
