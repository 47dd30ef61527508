"""-Array, -ForEach, -Map and -Resample: an aggregate over the elements of arrays and maps, or for
each element, each key, each bucket on its own; and sumMap, minMap, maxMap of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    ArgumentOutOfBound,
    NumberOfArgumentsDoesntMatch,
    SizesOfArraysDoNotMatch,
    TooFewArguments,
    UnequalMappedArrays,
)
from olapdb.functions.aggregates import segments
from olapdb.functions.aggregates.combinators import State, Wrapped
from olapdb.functions.aggregates.parts import illegal, state_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.casts import cast
from olapdb.functions.kernels import columns
from olapdb.types import Array, DataType, Date, DateTime, Integer, Map, Tuple, plain

Resolve = Callable[[str, tuple[object, ...], tuple[DataType, ...]], Aggregate]

SUFFIXES = ("ForEach", "Resample", "Array", "Map")
_BUCKETS_MAX = 1 << 20


@dataclass(frozen=True)
class ArrayElements(Wrapped):
    """-Array: over all elements of the arrays; the state is that of the aggregate inside."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        offsets, elements = _elements_together(self.name, arguments)
        return self.inner.state(elements, segments.regroup(offsets, groups))


@dataclass(frozen=True)
class ForEach(Wrapped):
    """-ForEach: the first elements, the second ones, … each on their own. State: Array of states,
    as long as the longest array."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        offsets, elements = _elements_together(self.name, arguments)
        lists, owners = _by_position(offsets, groups)
        return columns.lists_from(lists, self.inner.state(elements, owners))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        offsets, elements = columns.elements_of(states)
        lists, owners = _by_position(offsets, groups)
        return columns.lists_from(lists, self.inner.merge(elements, owners))

    def finalize(self, states: pa.Array) -> pa.Array:
        offsets, elements = columns.elements_of(states)
        return columns.lists_from(offsets, self.inner.finalize(elements))


@dataclass(frozen=True)
class Resample(Wrapped):
    """-Resample(start, end, step): rows by the bucket of their last argument, those outside left
    out; the last bucket ends at `end`, too. State: Array of as many states as there are buckets."""

    start: int = 0
    end: int = 0
    step: int = 1
    buckets: int = 0

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        arguments, groups = segments.present(arguments, groups)
        *rest, keys = arguments
        if pa.types.is_temporal(keys.type):
            keys = keys.view(pa.int64() if keys.type.bit_width == 64 else pa.int32())
        found = columns.numpy_values(keys)
        wide = np.uint64 if found.dtype.kind == "u" else np.int64
        found, start, end, step = found.astype(wide), *map(wide, (self.start, self.end, self.step))
        inside = (found >= start) & (found < end)
        rest, kept = segments.kept(rest, groups, inside)
        bucket = ((found[inside] - start) // step).astype(np.int64)
        codes = kept.codes * self.buckets + bucket
        made = self.inner.state(rest, Groups(codes, groups.count * self.buckets))
        return columns.lists_from(np.arange(groups.count + 1) * self.buckets, made)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        offsets, elements = columns.elements_of(states)
        owners = segments.regroup(offsets, groups)
        codes = owners.codes * self.buckets + _positions(offsets)
        made = self.inner.merge(elements, Groups(codes, groups.count * self.buckets))
        return columns.lists_from(np.arange(groups.count + 1) * self.buckets, made)

    def finalize(self, states: pa.Array) -> pa.Array:
        offsets, elements = columns.elements_of(states)
        return columns.lists_from(offsets, self.inner.finalize(elements))


@dataclass(frozen=True)
class MapValues(Wrapped):
    """-Map: the values of each key on their own. State: Map of states, its keys sorted."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        offsets, keys, values = _map_parts(arguments[0])
        lists, owners, kept = _by_key(offsets, keys, groups)
        return self._map(lists, kept, self.inner.state([values], owners), self.state_type.state)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        offsets, keys, values = _map_parts(states)
        lists, owners, kept = _by_key(offsets, keys, groups)
        return self._map(lists, kept, self.inner.merge(values, owners), self.state_type.state)

    def finalize(self, states: pa.Array) -> pa.Array:
        offsets, keys, values = _map_parts(states)
        return self._map(offsets, keys, self.inner.finalize(values), self.result_type)

    def _map(
        self, offsets: np.ndarray, keys: pa.Array, values: pa.Array, target: DataType
    ) -> pa.Array:
        assert isinstance(target, Map)
        return cast.map_from(offsets, keys, values, target)


@dataclass(frozen=True)
class MappedArrays(Wrapped):
    """sumMap, minMap, maxMap of an array of keys and some of values, as arguments or as a Tuple.
    State: Tuple(keys, states, …). A NULL adds nothing to its key, which stays. The result leaves out
    keys all of whose sums are 0, as in ClickHouse."""

    others: tuple[Aggregate, ...] = ()
    """What is done with the second array of values, and those after it."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        given = arguments if len(arguments) > 1 else columns.struct_fields(arguments[0])
        try:
            offsets, (keys, *values) = _elements_together(self.name, given)
        except SizesOfArraysDoNotMatch as error:  # as ClickHouse calls it for maps
            raise UnequalMappedArrays(error.message) from None
        lists, found, kept = _by_code(keys, segments.regroup(offsets, groups))
        made = [inner.state([one], found) for inner, one in zip(self._inners, values, strict=True)]
        return self._tuple(lists, kept, made, self.state_type.arrow)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        offsets, keys, values = self._parts(states)
        lists, owners, kept = _by_key(offsets, keys, groups)
        made = [inner.merge(one, owners) for inner, one in zip(self._inners, values, strict=True)]
        return self._tuple(lists, kept, made, self.state_type.arrow)

    def finalize(self, states: pa.Array) -> pa.Array:
        offsets, keys, inner = self._parts(states)
        values = [one.finalize(of) for one, of in zip(self._inners, inner, strict=True)]
        if self.inner.name == "sum":
            sums = [np.asarray(one.cast(pa.float64(), safe=False)) for one in values]
            keep = np.any([one != 0 for one in sums], axis=0)
            counts = np.bincount(columns.parents_of(offsets)[keep], minlength=len(states))
            offsets = columns.offsets_from_counts(counts)
            keys, *values = [one.filter(pa.array(keep)) for one in (keys, *values)]
        return self._tuple(offsets, keys, values, self.result_type.arrow)

    @property
    def _inners(self) -> tuple[Aggregate, ...]:
        return (self.inner, *self.others)

    def _parts(self, states: pa.Array) -> tuple[np.ndarray, pa.Array, list[pa.Array]]:
        key_lists, *value_lists = columns.struct_fields(states)
        offsets, keys = columns.elements_of(key_lists)
        return offsets, keys, [columns.elements_of(one)[1] for one in value_lists]

    def _tuple(
        self, offsets: np.ndarray, keys: pa.Array, values: Sequence[pa.Array], arrow: pa.DataType
    ) -> pa.Array:
        lists = [columns.lists_from(offsets, one) for one in (keys, *values)]
        return columns.structs_from(lists, arrow)


# --- elements and their groups


def _elements_together(
    name: str, arguments: Sequence[pa.Array]
) -> tuple[np.ndarray, list[pa.Array]]:
    """The elements of arrays of equal lengths; SizesOfArraysDoNotMatch otherwise."""
    split = [columns.elements_of(one) for one in arguments]
    offsets = split[0][0]
    for others, _ in split[1:]:
        if not np.array_equal(offsets, others):
            raise SizesOfArraysDoNotMatch(
                f"The arrays that {name} takes from one row have different lengths."
            )
    return offsets, [elements for _, elements in split]


def _map_parts(array: pa.Array) -> tuple[np.ndarray, pa.Array, pa.Array]:
    offsets = columns.offsets_of(array)
    start, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    return offsets - start, array.keys.slice(start, count), array.items.slice(start, count)


def _positions(offsets: np.ndarray) -> np.ndarray:
    return np.asarray(np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets)))


def _by_position(offsets: np.ndarray, groups: Groups) -> tuple[np.ndarray, Groups]:
    """(offsets of the groups' lists, the place in them of each element)."""
    lengths = np.zeros(groups.count, np.int64)
    np.maximum.at(lengths, groups.codes, np.diff(offsets))
    lists = columns.offsets_from_counts(lengths)
    owners = segments.regroup(offsets, groups)
    codes = lists[owners.codes].astype(np.int64) + _positions(offsets)
    return lists, Groups(codes, int(lists[-1]))


def _by_key(
    offsets: np.ndarray, keys: pa.Array, groups: Groups
) -> tuple[np.ndarray, Groups, pa.Array]:
    return _by_code(keys, segments.regroup(offsets, groups))


def _by_code(keys: pa.Array, owners: Groups) -> tuple[np.ndarray, Groups, pa.Array]:
    """(offsets of the groups' lists, the place of each element, the keys of the places): each
    group's keys once, sorted, NULL first."""
    ranked, rows = _ranked(keys)
    width = max(len(rows), 1)
    pairs, places = np.unique(owners.codes * width + ranked, return_inverse=True)
    group_of, ranks = np.divmod(pairs, width)
    lists = columns.offsets_from_counts(np.bincount(group_of, minlength=owners.count))
    kept = keys.take(pa.array(rows[ranks]))
    return lists, Groups(places.reshape(-1).astype(np.int64), len(pairs)), kept


def _ranked(keys: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(the rank of each key, a row with the key of each rank); NULL is the first."""
    valid = columns.all_valid([keys], len(keys))
    if valid is None or bool(valid.all()):
        ranking = segments.rank([keys])
        return ranking.ranks, ranking.rows
    there = np.flatnonzero(valid)
    ranking = segments.rank([keys.filter(pa.array(valid))])
    ranks = np.zeros(len(keys), np.int64)
    ranks[there] = ranking.ranks + 1
    return ranks, np.concatenate([np.flatnonzero(~valid)[:1], there[ranking.rows]])


# --- from a name and types


def resolve_nested(
    suffix: str,
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: Resolve,
) -> Aggregate:
    """`name` with one of SUFFIXES; `resolve` makes the aggregate inside."""
    match suffix:
        case "Array":
            return _array(name, parameters, types, resolve)
        case "ForEach":
            return _for_each(name, parameters, types, resolve)
        case "Resample":
            return _resample(name, parameters, types, resolve)
        case _:
            return _map(name, parameters, types, resolve)


def _element_types(name: str, types: tuple[DataType, ...]) -> tuple[DataType, ...]:
    if not types:
        raise TooFewArguments(f"Aggregate function {name} needs at least one array.")
    found = []
    for one in types:
        array = plain(one)
        if not isinstance(array, Array):
            raise illegal(name, one, "an array")
        found.append(array.inner)
    return tuple(found)


def _array(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...], resolve: Resolve
) -> Aggregate:
    inner = resolve(name, parameters, _element_types(f"{name}Array", types))
    same = inner.state_type
    if not isinstance(inner, State):
        same = state_of(f"{inner.name}Array", inner.parameters, types, same.state)
    return ArrayElements(
        f"{inner.name}Array",
        inner.parameters,
        types,
        inner.result_type,
        same,
        inner,
        merge_class=inner.merge_class,
        additive=inner.additive,
        merge_function=inner.merge_function,
    )


def _for_each(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...], resolve: Resolve
) -> Aggregate:
    inner = resolve(name, parameters, _element_types(f"{name}ForEach", types))
    spelt = f"{inner.name}ForEach"
    state = state_of(spelt, inner.parameters, types, Array(inner.state_type.state))
    return ForEach(
        spelt,
        inner.parameters,
        types,
        Array(inner.result_type),
        state,
        inner,
        merge_class=inner.merge_class,
    )


def _resample(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...], resolve: Resolve
) -> Aggregate:
    spelt = f"{name}Resample"
    if len(parameters) < 3 or not types:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {spelt} takes parameters (start, end, step) and a key, its last"
            " argument."
        )
    *own, start, end, step = parameters
    if not (isinstance(start, int) and isinstance(end, int) and isinstance(step, int)):
        raise ArgumentOutOfBound(f"The start, end and step of {spelt} are integers.")
    buckets = 0 if end < start or step < 1 else -((start - end) // step)
    if step < 1 or buckets > _BUCKETS_MAX:
        raise ArgumentOutOfBound(
            f"The step of {spelt} is at least 1, with {_BUCKETS_MAX} buckets at most."
        )
    key = plain(types[-1])
    if not isinstance(key, Integer | Date | DateTime):
        raise illegal(spelt, types[-1], "an integer key")
    unsigned = isinstance(key, Integer) and not key.signed
    lowest, highest = (0, (1 << 64) - 1) if unsigned else (-(1 << 63), (1 << 63) - 1)
    if not (lowest <= start <= highest and lowest <= end <= highest and step <= highest):
        raise ArgumentOutOfBound(
            f"The start, end and step of {spelt} are numbers from {lowest} to {highest}, as its key."
        )
    inner = resolve(name, tuple(own), types[:-1])
    state = state_of(f"{inner.name}Resample", parameters, types, Array(inner.state_type.state))
    return Resample(
        f"{inner.name}Resample",
        parameters,
        types,
        Array(inner.result_type),
        state,
        inner,
        start,
        end,
        step,
        buckets,
        merge_class=inner.merge_class,
    )


_OF_ARRAYS = ("sum", "min", "max")


def _map(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...], resolve: Resolve
) -> Aggregate:
    spelt = f"{name}Map"
    only = plain(types[0]) if types else None
    if len(types) == 1 and isinstance(only, Map):
        inner = resolve(name, parameters, (only.value,))
        state = state_of(
            f"{inner.name}Map", inner.parameters, types, Map(only.key, inner.state_type.state)
        )
        result: DataType = Map(only.key, inner.result_type)
        return MapValues(
            f"{inner.name}Map",
            inner.parameters,
            types,
            result,
            state,
            inner,
            merge_class=inner.merge_class,
            **_merging(inner),
        )
    given = types if not isinstance(only, Tuple) or len(types) > 1 else only.elements
    arrays = [one for one in map(plain, given) if isinstance(one, Array)]
    if name not in _OF_ARRAYS or len(arrays) < max(len(given), 2):
        wanted = ", or arrays of keys and of values" if name in _OF_ARRAYS else ""
        raise illegal(spelt, types[0] if types else Tuple(()), f"a Map{wanted}")
    inners = [resolve(name, parameters, (plain(one.inner),)) for one in arrays[1:]]
    keys = Array(arrays[0].inner)
    states = Tuple((keys, *(Array(one.state_type.state) for one in inners)))
    classes = [one.merge_class for one in inners]
    return MappedArrays(
        f"{inners[0].name}Map",
        inners[0].parameters,
        types,
        Tuple((keys, *(Array(one.result_type) for one in inners))),
        state_of(spelt, (), types, states),
        inners[0],
        tuple(inners[1:]),
        merge_class="float" if "float" in classes else classes[0],
        **_merging(inners[0]),
    )


class _Merging(TypedDict):
    additive: bool
    merge_function: str


def _merging(inner: Aggregate) -> _Merging:
    """Whether maps that are finished may be merged by the same function."""
    merges = inner.merge_function == inner.name and inner.name in _OF_ARRAYS
    return {"additive": merges, "merge_function": f"{inner.name}Map" if merges else ""}
