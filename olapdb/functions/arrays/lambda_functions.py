"""Functions that take a lambda, over arrays and maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from olapdb.errors import IllegalTypeOfArgument, NumberOfArgumentsDoesntMatch, TypeMismatch
from olapdb.functions.arrays.element_access import take_or_default
from olapdb.functions.arrays.lambdas import (
    Body,
    Elements,
    LambdaCall,
    LambdaDefinition,
    elements_of_arrays,
    lambda_over_lists,
)
from olapdb.functions.arrays.nested_equality import rankable_values
from olapdb.functions.arrays.search import map_parts, ranks_with_null
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import map_from
from olapdb.functions.kernels import columns
from olapdb.functions.scalar import Invocation, Kernel, ScalarDefinition, TypeRule, define, illegal
from olapdb.types import (
    UINT8,
    UINT32,
    Array,
    Boolean,
    DataType,
    Map,
    Nothing,
    Tuple,
    is_nullable,
    make_nullable,
    plain,
)

ListKernel = Callable[[np.ndarray, pa.Array, list[pa.Array]], pa.Array]
"""(offsets, the body's values, the arguments) -> the result; offsets are those of the elements."""


# --- types of the parameters


def _of_arrays(name: str, types: Sequence[DataType]) -> tuple[DataType, ...]:
    """One parameter for each array."""
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Function {name} takes a lambda and arrays.")
    return tuple(_inner(name, t) for t in types)


def _of_map(name: str, types: Sequence[DataType]) -> tuple[DataType, ...]:
    """The key and the value."""
    if len(types) != 1:
        raise NumberOfArgumentsDoesntMatch(f"Function {name} takes a lambda and one Map.")
    container = plain(types[0])
    if not isinstance(container, Map):
        raise illegal(name, types[0], "a Map")
    return container.key, container.value


def _of_fold(name: str, types: Sequence[DataType]) -> tuple[DataType, ...]:
    """The accumulator, then one parameter for each array; the last argument begins it."""
    if len(types) < 2:
        raise NumberOfArgumentsDoesntMatch(
            f"Function {name} takes a lambda, one or more arrays, and the accumulator's first value."
        )
    return (types[-1], *(_inner(name, t) for t in types[:-1]))


def _inner(name: str, data_type: DataType) -> DataType:
    container = plain(data_type)
    if not isinstance(container, Array):
        raise illegal(name, data_type, "an Array")
    return container.inner


# --- walking


def _walk_map(arrays: list[pa.Array]) -> Elements:
    offsets, keys, items = map_parts(arrays[0])
    return Elements(offsets, (keys, items))


def _over_arrays(
    name: str, result: Callable[[str, DataType, Sequence[DataType]], DataType], kernel: ListKernel
) -> LambdaDefinition:
    """A function of the body's values and the arrays."""

    def resolve(spelt: str, body: DataType, types: Sequence[DataType]) -> LambdaCall:
        call = ScalarCall(spelt, result(spelt, body, types), _list_kernel(kernel))
        return lambda_over_lists(
            spelt, body, call, lambda arrays: elements_of_arrays(spelt, arrays)
        )

    return LambdaDefinition(name, _of_arrays, resolve)


def _list_kernel(kernel: ListKernel) -> Callable[[Sequence[Column], int, Environment], Column]:
    def run(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        lists, *arrays = (columns.single(v) for v in values)
        offsets, mapped = columns.elements_of(lists)
        return kernel(offsets, mapped, arrays)

    return run


def _as_function(name: str) -> LambdaDefinition:
    """`f(lambda, a)` is `f(arrayMap(lambda, a))`."""

    def resolve(spelt: str, body: DataType, types: Sequence[DataType]) -> LambdaCall:
        from olapdb.functions.registry import resolve_scalar

        inner = resolve_scalar(name, [Argument(Array(body))])
        call = ScalarCall(spelt, inner.type, lambda v, rows, e: inner.kernel(v[:1], rows, e))
        return lambda_over_lists(
            spelt, body, call, lambda arrays: elements_of_arrays(spelt, arrays)
        )

    return LambdaDefinition(name, _of_arrays, resolve)


# --- conditions


def _require_condition(name: str, body: DataType) -> None:
    kind = plain(body)
    if kind != UINT8 and not isinstance(kind, Boolean | Nothing):
        raise IllegalTypeOfArgument(
            f"The lambda of function {name} must give UInt8 or Nullable(UInt8), not {body}."
        )


def _true(mapped: pa.Array) -> np.ndarray:
    """Which elements the condition holds for; NULL does not."""
    if pa.types.is_null(mapped.type):
        return np.zeros(len(mapped), bool)
    values = columns.numpy_values(mapped) != 0
    valid = columns.validity(mapped)
    return np.asarray(values if valid is None else values & valid)


def _conditional(
    name: str, result: Callable[[DataType], DataType], kernel: ListKernel
) -> LambdaDefinition:
    """A function whose lambda is a condition; `result` takes the first array's element type."""

    def rule(spelt: str, body: DataType, types: Sequence[DataType]) -> DataType:
        _require_condition(spelt, body)
        return result(_inner(spelt, types[0]))

    return _over_arrays(name, rule, kernel)


def _filter(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
    keep = _true(mapped)
    _, elements = columns.elements_of(arrays[0])
    counts = _per_row(offsets, keep)
    return columns.lists_from(columns.offsets_from_counts(counts), elements.filter(pa.array(keep)))


def _per_row(offsets: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """How many marked elements each row has; int64, shape (rows,)."""
    running = np.concatenate(([0], np.cumsum(marked)))
    return np.asarray(running[offsets[1:]] - running[offsets[:-1]])


def _count_true(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
    return columns.from_values(_per_row(offsets, _true(mapped)), pa.uint32())


def _any_true(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
    return columns.from_values(_per_row(offsets, _true(mapped)) > 0, pa.uint8())


def _all_true(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
    return columns.from_values(_per_row(offsets, ~_true(mapped)) == 0, pa.uint8())


def _found(offsets: np.ndarray, mapped: pa.Array, *, last: bool) -> np.ndarray:
    """The position among all elements of each row's first (last) match, -1 where there is none."""
    hits = np.flatnonzero(_true(mapped))
    owners = columns.parents_of(offsets)[hits]
    found = np.full(len(offsets) - 1, -1, np.int64)
    if last:
        found[owners] = hits
    else:
        found[owners[::-1]] = hits[::-1]
    return found


def _match(name: str, *, last: bool) -> LambdaDefinition:
    """The first (last) element for which the condition holds, or the type's default."""

    def resolve(spelt: str, body: DataType, types: Sequence[DataType]) -> LambdaCall:
        _require_condition(spelt, body)
        inner = _inner(spelt, types[0])

        def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
            _, elements = columns.elements_of(arrays[0])
            return take_or_default(elements, _found(offsets, mapped, last=last), inner)

        call = ScalarCall(spelt, inner, _list_kernel(kernel))
        return lambda_over_lists(
            spelt, body, call, lambda arrays: elements_of_arrays(spelt, arrays)
        )

    return LambdaDefinition(name, _of_arrays, resolve)


def _match_or_null(*, last: bool) -> ListKernel:
    def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        found = _found(offsets, mapped, last=last)
        _, elements = columns.elements_of(arrays[0])
        return elements.take(pa.array(found, mask=found < 0))

    return kernel


def _match_place(*, last: bool) -> ListKernel:
    def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        found = _found(offsets, mapped, last=last)
        return columns.from_values(np.where(found < 0, 0, found - offsets[:-1] + 1), pa.uint32())

    return kernel


def _nullable_element(inner: DataType) -> DataType:
    if isinstance(plain(inner), Array | Map | Tuple):
        raise IllegalTypeOfArgument(
            f"An element of type {inner} cannot be NULL.", hint="Use arrayFirst or arrayLast."
        )
    return make_nullable(inner)


def _fill(*, reverse: bool) -> ListKernel:
    """Elements for which the condition does not hold take the nearest value before (after) them."""

    def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        _, elements = columns.elements_of(arrays[0])
        keep, places = _true(mapped), np.arange(len(elements))
        filled = np.diff(offsets) > 0
        if reverse:
            keep[offsets[1:][filled] - 1] = True
            taken = np.minimum.accumulate(np.where(keep, places, len(places))[::-1])[::-1]
        else:
            keep[offsets[:-1][filled]] = True
            taken = np.maximum.accumulate(np.where(keep, places, -1))
        return columns.lists_from(offsets, elements.take(pa.array(taken)))

    return kernel


def _split(*, reverse: bool) -> ListKernel:
    """Cut each array before (after) the elements for which the condition holds."""

    def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        _, elements = columns.elements_of(arrays[0])
        cut = _true(mapped)
        if reverse:  # after an element is before the next one
            cut = np.concatenate((np.zeros(1, bool), cut[:-1])) if len(cut) else cut
        filled = np.diff(offsets) > 0
        cut[offsets[:-1][filled]] = True
        starts = np.flatnonzero(cut)
        inner = np.concatenate((starts, [len(elements)])).astype(np.int64)
        pieces = columns.lists_from(inner, elements)
        return columns.lists_from(columns.offsets_from_counts(_per_row(offsets, cut)), pieces)

    return kernel


# --- order


def _sort(*, reverse: bool) -> ListKernel:
    def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        _, elements = columns.elements_of(arrays[0])
        order = sorted_positions(offsets, mapped, reverse)
        return columns.lists_from(offsets, elements.take(pa.array(order)))

    return kernel


def sorted_positions(offsets: np.ndarray, keys: pa.Array, reverse: bool) -> np.ndarray:
    """Positions of all elements so that each row's are sorted by their keys; ties keep their order.

    NULL is last in both directions; NaN is above all other values going up, and last going down."""
    ranks = ranks_with_null(rankable_values(keys))
    last = -ranks if reverse else ranks
    if pa.types.is_floating(keys.type):
        last = np.where(np.isnan(columns.numpy_values(keys)), len(ranks) + 1, last)
    last = np.where(ranks == 0, np.iinfo(np.int64).max, last)
    return np.lexsort((np.arange(len(keys)), last, columns.parents_of(offsets)))


def _compact(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
    """Of elements in a row whose keys are equal, keep the first."""
    _, elements = columns.elements_of(arrays[0])
    ranks = ranks_with_null(rankable_values(mapped))
    keep = np.ones(len(ranks), bool)
    keep[1:] = ranks[1:] != ranks[:-1]
    keep[offsets[:-1][np.diff(offsets) > 0]] = True
    counts = _per_row(offsets, keep)
    return columns.lists_from(columns.offsets_from_counts(counts), elements.filter(pa.array(keep)))


def _first_array(name: str, body: DataType, types: Sequence[DataType]) -> DataType:
    return Array(_inner(name, types[0]))


# --- maps


def _over_map(
    name: str, result: Callable[[str, DataType, Map], DataType], kernel: ListKernel
) -> LambdaDefinition:
    def resolve(spelt: str, body: DataType, types: Sequence[DataType]) -> LambdaCall:
        container = plain(types[0])
        assert isinstance(container, Map)
        call = ScalarCall(spelt, result(spelt, body, container), _list_kernel(kernel))
        return lambda_over_lists(spelt, body, call, _walk_map)

    return LambdaDefinition(name, _of_map, resolve)


def _map_condition(name: str, body: DataType, container: Map) -> DataType:
    _require_condition(name, body)
    return container


def _map_flag(name: str, body: DataType, container: Map) -> DataType:
    _require_condition(name, body)
    return UINT8


def _applied_type(name: str, body: DataType, container: Map) -> DataType:
    made = plain(body)
    if not isinstance(made, Tuple) or len(made.elements) != 2 or is_nullable(made.elements[0]):
        raise IllegalTypeOfArgument(
            f"The lambda of function {name} must give a tuple of a key and a value, not {body}.",
            hint=f"{name}((k, v) -> (k, v), m) keeps the map as it is.",
        )
    return Map(made.elements[0], made.elements[1])


def _map_filter(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
    _, keys, items = map_parts(arrays[0])
    keep = _true(mapped)
    kept = columns.offsets_from_counts(_per_row(offsets, keep))
    mask = pa.array(keep)
    return _map_of(kept, keys.filter(mask), items.filter(mask), arrays[0].type)


def _map_sort(*, reverse: bool) -> ListKernel:
    def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        _, keys, items = map_parts(arrays[0])
        order = pa.array(sorted_positions(offsets, mapped, reverse))
        return _map_of(offsets, keys.take(order), items.take(order), arrays[0].type)

    return kernel


def _map_of(offsets: np.ndarray, keys: pa.Array, items: pa.Array, arrow: pa.DataType) -> pa.Array:
    made = pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items)
    return made if made.type == arrow else made.cast(arrow)


def _map_apply() -> LambdaDefinition:
    def resolve(spelt: str, body: DataType, types: Sequence[DataType]) -> LambdaCall:
        container = plain(types[0])
        assert isinstance(container, Map)
        result = _applied_type(spelt, body, container)
        assert isinstance(result, Map)

        def kernel(offsets: np.ndarray, mapped: pa.Array, arrays: list[pa.Array]) -> pa.Array:
            keys, items = columns.struct_fields(mapped)
            return map_from(offsets, keys, items, result)

        call = ScalarCall(spelt, result, _list_kernel(kernel))
        return lambda_over_lists(spelt, body, call, _walk_map)

    return LambdaDefinition("mapApply", _of_map, resolve)


# --- folding


def _fold() -> LambdaDefinition:
    """arrayFold(acc, x -> …, a, first): place by place, all rows that are as long at once."""

    def resolve(spelt: str, body: DataType, types: Sequence[DataType]) -> LambdaCall:
        if body != types[-1]:
            raise TypeMismatch(
                f"The lambda of function {spelt} gives {body}, but its accumulator begins as {types[-1]}.",
                hint=f"Cast the first value: CAST(…, '{body}').",
            )

        def run(
            values: Sequence[Column], rows: int, environment: Environment, evaluate: Body
        ) -> Column:
            constant = rows == 1 and all(isinstance(v, pa.Scalar) for v in values)
            *arrays, state = (columns.as_array(v, rows) for v in values)
            walked = elements_of_arrays(spelt, arrays)
            lengths = np.diff(walked.offsets)
            place = 0
            while len(longer := np.flatnonzero(lengths > place)):
                at = pa.array(walked.offsets[longer] + place)
                owned = pa.array(longer)
                made = evaluate([state.take(owned), *(c.take(at) for c in walked.columns)], longer)
                state = columns.replaced_rows(state, longer, made)
                place += 1
            return state[0] if constant else state

        return LambdaCall(spelt, body, run)

    return LambdaDefinition("arrayFold", _of_fold, resolve)


_DEFINITIONS: tuple[LambdaDefinition, ...] = (
    _over_arrays(
        "arrayMap",
        lambda n, body, types: Array(body),
        lambda offsets, mapped, arrays: columns.lists_from(offsets, mapped),
    ),
    _conditional("arrayFilter", Array, _filter),
    _conditional("arrayCount", lambda inner: UINT32, _count_true),
    _conditional("arrayExists", lambda inner: UINT8, _any_true),
    _conditional("arrayAll", lambda inner: UINT8, _all_true),
    _match("arrayFirst", last=False),
    _match("arrayLast", last=True),
    _conditional("arrayFirstOrNull", _nullable_element, _match_or_null(last=False)),
    _conditional("arrayLastOrNull", _nullable_element, _match_or_null(last=True)),
    _conditional("arrayFirstIndex", lambda inner: UINT32, _match_place(last=False)),
    _conditional("arrayLastIndex", lambda inner: UINT32, _match_place(last=True)),
    _conditional("arrayFill", Array, _fill(reverse=False)),
    _conditional("arrayReverseFill", Array, _fill(reverse=True)),
    _conditional("arraySplit", lambda inner: Array(Array(inner)), _split(reverse=False)),
    _conditional("arrayReverseSplit", lambda inner: Array(Array(inner)), _split(reverse=True)),
    _over_arrays("arraySort", _first_array, _sort(reverse=False)),
    _over_arrays("arrayReverseSort", _first_array, _sort(reverse=True)),
    _over_arrays("arrayCompact", _first_array, _compact),
    *(
        _as_function(name)
        for name in (
            "arraySum",
            "arrayAvg",
            "arrayMin",
            "arrayMax",
            "arrayProduct",
            "arrayCumSum",
            "arrayCumSumNonNegative",
            "arrayDifference",
        )
    ),
    _fold(),
    _map_apply(),
    _over_map("mapFilter", _map_condition, _map_filter),
    _over_map("mapExists", _map_flag, _any_true),
    _over_map("mapAll", _map_flag, _all_true),
    _over_map("mapSort", lambda n, body, container: container, _map_sort(reverse=False)),
    _over_map("mapReverseSort", lambda n, body, container: container, _map_sort(reverse=True)),
)


# --- the same functions without a lambda


def _plain_condition(kernel: ListKernel) -> Kernel:
    """arrayCount(a), arrayExists(a), arrayAll(a): the elements are the conditions."""

    def run(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        offsets, elements = columns.elements_of(arrays[0])
        return kernel(offsets, elements, arrays)

    return run


def _condition_rule(result: DataType) -> TypeRule:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        _require_condition(name, _inner(name, types[0]))
        return result

    return rule


def _map_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    if not isinstance(types[0], Map):
        raise illegal(name, types[0], "a Map")
    return types[0]


def _by_key(*, reverse: bool) -> Kernel:
    """mapSort(m), mapReverseSort(m): by key."""

    def run(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        offsets, keys, _ = map_parts(arrays[0])
        return _map_sort(reverse=reverse)(offsets, keys, arrays)

    return run


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("arrayCount", _condition_rule(UINT32), _plain_condition(_count_true)),
    define("arrayExists", _condition_rule(UINT8), _plain_condition(_any_true)),
    define("arrayAll", _condition_rule(UINT8), _plain_condition(_all_true)),
    define("mapSort", _map_rule, _by_key(reverse=False)),
    define("mapReverseSort", _map_rule, _by_key(reverse=True)),
)

LAMBDA_DEFINITIONS: Mapping[str, LambdaDefinition] = MappingProxyType(
    {one.name: one for one in _DEFINITIONS}
)
