"""Arrays as a whole: sums, order, distinct values, slices, ranges. Lambdas are not here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import ArgumentOutOfBound, IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.arrays.basic import array_call, concatenation
from olapdb.functions.arrays.search import counts_of, null_ranks
from olapdb.functions.base import Argument, Column, Environment, Groups, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.supertypes import common_type, sum_type
from olapdb.functions.numeric.conditional import plain_lc
from olapdb.types import (
    FLOAT64,
    UINT32,
    Array,
    Boolean,
    DataType,
    Date,
    DateTime,
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

_SIZE_MAX = 500_000_000


# --- whole arrays -------------------------------------------------------------------------------


def _array_rule(
    result: Callable[[Array], DataType],
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        first = types[0]
        if not isinstance(first, Array):
            raise scalar.illegal(name, first, "an Array")
        return result(first)

    return rule


def _numeric(name: str, inner: DataType) -> DataType:
    one = plain(inner)
    if is_nullable(inner) or not isinstance(one, Integer | Float | Decimal | Boolean):
        raise IllegalTypeOfArgument(f"Illegal type Array({inner}) of argument of function {name}.")
    return one


def _folding(kind: str) -> scalar.Kernel:
    """arraySum, arrayAvg, arrayMin, arrayMax: the aggregate of each array."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        from olapdb.functions.aggregates.registry import resolve_aggregate

        container = call.types[0]
        assert isinstance(container, Array)
        offsets, elements = columns.elements_of(arrays[0])
        taken = container.inner if kind in ("min", "max") else plain(container.inner)
        aggregate = resolve_aggregate(kind, (), (taken,))
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


def _reordered(kind: str) -> scalar.Kernel:
    """arraySort, arrayReverseSort, arrayDistinct, arrayCompact."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        offsets, elements = columns.elements_of(arrays[0])
        owners = columns.parents_of(offsets)
        positions = np.arange(len(elements))
        ranks = null_ranks(elements)
        if kind in ("sort", "reverseSort"):
            last = ranks if kind == "sort" else -ranks
            if pa.types.is_floating(elements.type):  # NaN is above the others, whatever the order
                last = np.where(np.isnan(columns.numpy_values(elements)), len(ranks) + 1, last)
            last = np.where(ranks == 0, np.iinfo(np.int64).max, last)
            order = np.lexsort((positions, last, owners))
            return columns.lists_from(offsets, elements.take(pa.array(order)))
        if kind == "distinct":
            kept = first_occurrences(owners, ranks) & (ranks > 0)
        else:
            kept = np.ones(len(elements), bool)
            kept[1:] = (owners[1:] != owners[:-1]) | (ranks[1:] != ranks[:-1])
        counts = np.bincount(owners[kept], minlength=len(arrays[0]))
        return columns.lists_from(
            columns.offsets_from_counts(counts), elements.filter(pa.array(kept))
        )

    return kernel


def first_occurrences(owners: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Which elements are the first of their rank in their array."""
    span = int(ranks.max()) + 1 if len(ranks) else 1
    _, first = np.unique(owners * span + ranks, return_index=True)
    kept = np.zeros(len(ranks), bool)
    kept[first] = True
    return kept


def _uniq(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    offsets, elements = columns.elements_of(arrays[0])
    kept = first_occurrences(columns.parents_of(offsets), null_ranks(elements))
    return columns.from_values(counts_of(offsets, kept, call.rows), pa.uint32())


def _enumerate(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    offsets, _ = columns.elements_of(arrays[0])
    owners = columns.parents_of(offsets)
    places = np.arange(len(owners)) - offsets[owners] + 1
    return columns.lists_from(offsets, columns.from_values(places, pa.uint32()))


def _slice(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """arraySlice(a, offset[, length]); negative counts from the end."""
    container = plain(arguments[0].type)
    scalar.require(name, [container], Array, "an Array")
    scalar.require(name, [plain(a.type) for a in arguments[1:]], Integer, "an integer")

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
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

    return scalar.usual(name, arguments, container, kernel)


def _push(*, back: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        single_type = Array(plain_lc(arguments[1].type))
        order = (
            [arguments[0], Argument(single_type)] if back else [Argument(single_type), arguments[0]]
        )
        joined = concatenation(name, order)
        wrap = array_call("array", [arguments[1]])

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            one = wrap.kernel([values[1]], rows, environment)
            pair = [values[0], one] if back else [one, values[0]]
            return joined.kernel(pair, rows, environment)

        return ScalarCall(name, joined.type, kernel)

    return resolve


def _pop(*, back: bool) -> scalar.Kernel:
    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        offsets, elements = columns.elements_of(arrays[0])
        owners, positions = columns.parents_of(offsets), np.arange(len(elements))
        gone = positions == (offsets[owners + 1] - 1 if back else offsets[owners])
        counts = np.maximum(np.diff(offsets) - 1, 0)
        return columns.lists_from(
            columns.offsets_from_counts(counts), elements.filter(pa.array(~gone))
        )

    return kernel


def _flatten(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
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
    scalar.require(name, types, Integer, "an integer")
    inner = common_type(types)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        numbers = [columns.numpy_values(a).astype(np.int64) for a in arrays]
        start = numbers[0] if len(numbers) > 1 else np.zeros(len(arrays[0]), np.int64)
        end = numbers[1] if len(numbers) > 1 else numbers[0]
        step = numbers[2] if len(numbers) > 2 else np.ones(len(arrays[0]), np.int64)
        if (step == 0).any():
            raise ArgumentOutOfBound("The step of range must not be 0.")
        bounded(name, np.ceil((end.astype(np.float64) - start) / step))
        counts = np.maximum(-((start - end) // step), 0)
        offsets = columns.offsets_from_counts(counts)
        owners = columns.parents_of(offsets)
        values = start[owners] + (np.arange(len(owners)) - offsets[owners]) * step[owners]
        return columns.lists_from(offsets, columns.from_values(values, inner.arrow))

    return scalar.usual(name, arguments, Array(inner), kernel)


def bounded(name: str, sizes: np.ndarray) -> None:
    """ArgumentOutOfBound for arrays of these sizes (those below 0 are empty) that no memory could
    hold; added up as floats, which do not wrap."""
    elements = float(np.maximum(sizes, 0).sum(dtype=np.float64))
    if elements > _SIZE_MAX:
        raise ArgumentOutOfBound(f"A call to {name} would produce {elements:.0f} array elements.")


def _with_constant(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    scalar.require(name, [plain(arguments[0].type)], Integer, "an integer")
    inner = plain_lc(arguments[1].type)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        constant = all(isinstance(v, pa.Scalar) for v in values)
        count, elements = (columns.as_array(v, 1 if constant else rows) for v in values)
        counts = np.maximum(columns.numpy_values(count).astype(np.int64), 0)
        bounded(name, counts)
        offsets = columns.offsets_from_counts(counts)
        made = columns.lists_from(offsets, elements.take(pa.array(columns.parents_of(offsets))))
        return made[0] if constant else made

    return ScalarCall(name, Array(inner), kernel)


def _empty_array(inner: DataType) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        return ScalarCall(name, Array(inner), lambda v, r, e: default_value(Array(inner)))

    return resolve


def _sum_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    return sum_type(_numeric(name, _inner(name, types[0])))


def _avg_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    _numeric(name, _inner(name, types[0]))
    return FLOAT64


def _extreme_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    inner = plain(_inner(name, types[0]))
    if isinstance(inner, Array | Tuple | Map | Nothing):
        raise scalar.illegal(name, types[0], "an Array of single values")
    return make_nullable(inner) if is_nullable(_inner(name, types[0])) else inner


def _inner(name: str, data_type: DataType) -> DataType:
    if not isinstance(data_type, Array):
        raise scalar.illegal(name, data_type, "an Array")
    return data_type.inner


def _itself(array: Array) -> DataType:
    return array


def _not_null_elements(array: Array) -> DataType:
    return Array(plain(array.inner))


_EMPTY_ARRAYS: tuple[DataType, ...] = (
    *(Integer(bits, signed) for bits in (8, 16, 32, 64) for signed in (False, True)),
    Float(32),
    Float(64),
    Date(),
    DateTime(),
    String(),
)
"""The element types that have a function emptyArray… of their own."""


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("arraySlice", _slice, count=(2, 3)),
    scalar.custom("arrayPushBack", _push(back=True), count=2),
    scalar.custom("arrayPushFront", _push(back=False), count=2),
    scalar.define("arrayPopBack", _array_rule(_itself), _pop(back=True)),
    scalar.define("arrayPopFront", _array_rule(_itself), _pop(back=False)),
    scalar.define("arraySum", _sum_rule, _folding("sum")),
    scalar.define("arrayAvg", _avg_rule, _folding("avg")),
    scalar.define("arrayMin", _extreme_rule, _folding("min")),
    scalar.define("arrayMax", _extreme_rule, _folding("max")),
    scalar.define("arraySort", _array_rule(_itself), _reordered("sort")),
    scalar.define("arrayReverseSort", _array_rule(_itself), _reordered("reverseSort")),
    scalar.define("arrayReverse", _array_rule(_itself), lambda a, call: reversed_lists(a[0])),
    scalar.define("arrayDistinct", _array_rule(_not_null_elements), _reordered("distinct")),
    scalar.define("arrayCompact", _array_rule(_itself), _reordered("compact")),
    scalar.define("arrayUniq", _array_rule(lambda a: UINT32), _uniq),
    scalar.define("arrayEnumerate", _array_rule(lambda a: Array(UINT32)), _enumerate),
    scalar.define(
        "arrayFlatten", _array_rule(_flat_type), _flatten, aliases=("flatten",), insensitive=True
    ),
    scalar.custom("range", _range, count=(1, 3)),
    scalar.custom("arrayWithConstant", _with_constant, count=2),
    *(scalar.custom(f"emptyArray{t.name}", _empty_array(t), count=0) for t in _EMPTY_ARRAYS),
)
