"""The combinator -Map, and sumMap, minMap and maxMap of arrays of keys and of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import pyarrow as pa

from olapdb.errors import SizesOfArraysDoNotMatch, UnequalMappedArrays
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.array_combinators import element_lists
from olapdb.functions.aggregates.combinators import Combinator
from olapdb.functions.aggregates.signatures import ResolveAggregate, illegal_argument, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.casts import cast
from olapdb.functions.kernels import columns
from olapdb.types import Array, DataType, Map, Tuple, plain


@dataclass(frozen=True)
class MapValues(Combinator):
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
class MappedArrays(Combinator):
    """sumMap, minMap, maxMap of an array of keys and some of values, as arguments or as a Tuple.
    State: Tuple(keys, states, …). A NULL adds nothing to its key, which stays. The result leaves out
    keys all of whose sums are 0, as in ClickHouse."""

    others: tuple[Aggregate, ...] = ()
    """What is done with the second array of values, and those after it."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        given = arguments if len(arguments) > 1 else columns.struct_fields(arguments[0])
        try:
            offsets, (keys, *values) = element_lists(self.name, given)
        except SizesOfArraysDoNotMatch as error:  # as ClickHouse calls it for maps
            raise UnequalMappedArrays(error.message) from None
        lists, found, kept = _by_code(keys, group_kernels.element_groups(offsets, groups))
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


def _map_parts(array: pa.Array) -> tuple[np.ndarray, pa.Array, pa.Array]:
    offsets = columns.offsets_of(array)
    start, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    return offsets - start, array.keys.slice(start, count), array.items.slice(start, count)


def _by_key(
    offsets: np.ndarray, keys: pa.Array, groups: Groups
) -> tuple[np.ndarray, Groups, pa.Array]:
    return _by_code(keys, group_kernels.element_groups(offsets, groups))


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
        ranking = group_kernels.rank_rows([keys])
        return ranking.ranks, ranking.rows
    there = np.flatnonzero(valid)
    ranking = group_kernels.rank_rows([keys.filter(pa.array(valid))])
    ranks = np.zeros(len(keys), np.int64)
    ranks[there] = ranking.ranks + 1
    return ranks, np.concatenate([np.flatnonzero(~valid)[:1], there[ranking.rows]])


_OF_ARRAYS = ("sum", "min", "max")


def resolve_map(
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: ResolveAggregate,
) -> Aggregate:
    spelt = f"{name}Map"
    only = plain(types[0]) if types else None
    if len(types) == 1 and isinstance(only, Map):
        inner = resolve(name, parameters, (only.value,))
        state = state_type_of(
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
        raise illegal_argument(spelt, types[0] if types else Tuple(()), f"a Map{wanted}")
    inners = [resolve(name, parameters, (plain(one.inner),)) for one in arrays[1:]]
    keys = Array(arrays[0].inner)
    states = Tuple((keys, *(Array(one.state_type.state) for one in inners)))
    classes = [one.merge_class for one in inners]
    return MappedArrays(
        f"{inners[0].name}Map",
        inners[0].parameters,
        types,
        Tuple((keys, *(Array(one.result_type) for one in inners))),
        state_type_of(spelt, (), types, states),
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
