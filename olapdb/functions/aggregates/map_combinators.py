"""The combinator -Map, and sumMap, minMap and maxMap of arrays of keys and of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import NumberOfArgumentsDoesntMatch, SizesOfArraysDoNotMatch, UnequalMappedArrays
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.array_combinators import element_lists
from olapdb.functions.aggregates.combinators import Combinator
from olapdb.functions.aggregates.signatures import ResolveAggregate, illegal_argument, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.nested import map_parts
from olapdb.records import dataclass
from olapdb.types import Array, DataType, Map, Tuple, is_nullable, plain
from olapdb.types.arrow_values import from_numpy, to_numpy


@dataclass(frozen=True)
class MapValues(Combinator):
    """-Map: aggregate the values of each key by themselves. State: Map of inner states, keys
    sorted.
    """

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return for each group the map from its keys to inner states, keys sorted."""
        offsets, keys, values = map_parts(arguments[0])
        lists, owners, distinct_keys = _group_by_key(
            keys, group_kernels.element_groups(offsets, groups)
        )
        return self._to_map(
            lists, distinct_keys, self.inner.state([values], owners), self.state_type.state
        )

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return for each group one map: the inner states of equal keys merged, keys sorted."""
        offsets, keys, values = map_parts(states)
        lists, owners, distinct_keys = _group_by_key(
            keys, group_kernels.element_groups(offsets, groups)
        )
        return self._to_map(
            lists, distinct_keys, self.inner.merge(values, owners), self.state_type.state
        )

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return for each group the map from its keys to inner results."""
        offsets, keys, values = map_parts(states)
        return self._to_map(offsets, keys, self.inner.finalize(values), self.result_type)

    def _to_map(
        self, offsets: np.ndarray, keys: pa.Array, values: pa.Array, target: DataType
    ) -> pa.Array:
        """Return a column of maps of type `target`, which must be a Map."""
        assert isinstance(target, Map)
        return columns.maps_from(offsets, keys, values, target.arrow)


@dataclass(frozen=True)
class MappedArrays(Combinator):
    """sumMap, minMap and maxMap of an array of keys and arrays of values, given as arguments or as
    one Tuple.

    State: Tuple(keys, states, …), arrays. A NULL value adds nothing, but its key stays. sumMap
    drops keys whose sums are all 0, as ClickHouse does; if an array has Nullable values, it drops those of which all
    values are NULL instead.
    """

    others: tuple[Aggregate, ...] = ()
    """The aggregates of the second array of values and of those after it."""
    has_nullable_values: bool = False

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return for each group its keys, sorted, and the inner states of each key.

        Raises UnequalMappedArrays if the arrays of a row differ in length.
        """
        arrays = arguments if len(arguments) > 1 else columns.struct_fields(arguments[0])
        try:
            offsets, (keys, *values) = element_lists(self.name, arrays)
        except SizesOfArraysDoNotMatch as error:  # as ClickHouse calls it for maps
            raise UnequalMappedArrays(error.message) from None
        if self.inner.name.startswith("sum") and self.has_nullable_values:
            offsets, keys, values = _without_null_values(offsets, keys, values)
        lists, owners, distinct_keys = _group_by_key(
            keys, group_kernels.element_groups(offsets, groups)
        )
        states = [
            inner.state([value], owners) for inner, value in zip(self._inners, values, strict=True)
        ]
        return self._join_state(lists, distinct_keys, states, self.state_type.arrow)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return for each group its keys, sorted, and the merged inner states of each key."""
        offsets, keys, values = self._split_state(states)
        lists, owners, distinct_keys = _group_by_key(
            keys, group_kernels.element_groups(offsets, groups)
        )
        merged = [
            inner.merge(value_states, owners)
            for inner, value_states in zip(self._inners, values, strict=True)
        ]
        return self._join_state(lists, distinct_keys, merged, self.state_type.arrow)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return for each group the keys and the values; sumMap of values that cannot be NULL drops keys whose sums are
        all 0."""
        offsets, keys, inner = self._split_state(states)
        values = [
            aggregate.finalize(state) for aggregate, state in zip(self._inners, inner, strict=True)
        ]
        if self.inner.name.startswith("sum") and not self.has_nullable_values:
            sums = [np.asarray(value.cast(pa.float64(), safe=False)) for value in values]
            keep = np.any([column != 0 for column in sums], axis=0)
            counts = np.bincount(columns.parents_of(offsets)[keep], minlength=len(states))
            offsets = columns.offsets_from_counts(counts)
            keys, *values = [column.filter(from_numpy(keep)) for column in (keys, *values)]
        return self._join_state(offsets, keys, values, self.result_type.arrow)

    @property
    def _inners(self) -> tuple[Aggregate, ...]:
        """The aggregates of the arrays of values, in their order."""
        return (self.inner, *self.others)

    def _split_state(self, states: pa.Array) -> tuple[np.ndarray, pa.Array, list[pa.Array]]:
        """Return the offsets, keys and value states of states or results, which are tuples of
        lists.
        """
        key_lists, *value_lists = columns.struct_fields(states)
        offsets, keys = columns.elements_of(key_lists)
        return offsets, keys, [columns.elements_of(value_list)[1] for value_list in value_lists]

    def _join_state(
        self,
        offsets: np.ndarray,
        keys: pa.Array,
        values: Sequence[pa.Array],
        arrow_type: pa.DataType,
    ) -> pa.Array:
        """Return tuples of lists, `keys` first, which all share `offsets`; inverse of
        `_split_state`.
        """
        lists = [columns.lists_from(offsets, elements) for elements in (keys, *values)]
        return columns.structs_from(lists, arrow_type)


def _without_null_values(
    offsets: np.ndarray, keys: pa.Array, values: Sequence[pa.Array]
) -> tuple[np.ndarray, pa.Array, list[pa.Array]]:
    """Return offsets, keys and values without the elements of which all values are NULL."""
    keep = np.any([to_numpy(pc.is_valid(column)) for column in values], axis=0)
    counts = np.bincount(columns.parents_of(offsets)[keep], minlength=len(offsets) - 1)
    kept = [column.filter(from_numpy(keep)) for column in (keys, *values)]
    return columns.offsets_from_counts(counts), kept[0], kept[1:]


def _group_by_key(keys: pa.Array, owners: Groups) -> tuple[np.ndarray, Groups, pa.Array]:
    """Group elements by group and key.

    Returns the offsets of the result lists, one list a group, the groups of the elements, and the
    keys of the result lists: each group's distinct keys, sorted, NULL first."""
    ranked, rows = _rank_keys(keys)
    width = max(len(rows), 1)
    group_key_pairs, list_positions = np.unique(owners.codes * width + ranked, return_inverse=True)
    pair_groups, ranks = np.divmod(group_key_pairs, width)
    lists = columns.offsets_from_counts(np.bincount(pair_groups, minlength=owners.count))
    distinct_keys = keys.take(from_numpy(rows[ranks]))
    return (
        lists,
        Groups(list_positions.reshape(-1).astype(np.int64), len(group_key_pairs)),
        distinct_keys,
    )


def _rank_keys(keys: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the rank of each key and, for each rank, a row with that key. NULL has rank 0."""
    valid = columns.all_valid([keys], len(keys))
    if valid is None or bool(valid.all()):
        ranking = group_kernels.rank_rows([keys])
        return ranking.ranks, ranking.rows
    valid_rows = np.flatnonzero(valid)
    ranking = group_kernels.rank_rows([keys.filter(from_numpy(valid))])
    ranks = np.zeros(len(keys), np.int64)
    ranks[valid_rows] = ranking.ranks + 1
    return ranks, np.concatenate([np.flatnonzero(~valid)[:1], valid_rows[ranking.rows]])


_MAPPED_ARRAY_FUNCTIONS = ("sum", "min", "max")


def resolve_map_combinator(
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: ResolveAggregate,
) -> Aggregate:
    """Return -Map of the aggregate `name`; `resolve` resolves that one.

    Takes a Map, or for sum, min and max an array of keys and arrays of values.

    Raises IllegalTypeOfArgument, and NumberOfArgumentsDoesntMatch for no argument or several maps."""
    full_name = f"{name}Map"
    first_type = plain(types[0]) if types else None
    if len(types) == 1 and isinstance(first_type, Map):
        inner = resolve(name, parameters, (first_type.value,))
        state = state_type_of(
            f"{inner.name}Map", inner.parameters, types, Map(first_type.key, inner.state_type.state)
        )
        result: DataType = Map(first_type.key, inner.result_type)
        return MapValues(
            f"{inner.name}Map",
            inner.parameters,
            types,
            result,
            state,
            inner,
            merge_class=inner.merge_class,
            **_merge_fields(inner),
        )
    if not types or (isinstance(first_type, Map) and len(types) > 1):
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {full_name} takes one Map.")
    if name not in _MAPPED_ARRAY_FUNCTIONS:
        raise illegal_argument(full_name, types[0] if types else Tuple(()), "a Map")
    return mapped_arrays(name, types, resolve, parameters)


def mapped_arrays(
    name: str,
    types: tuple[DataType, ...],
    resolve: ResolveAggregate,
    parameters: tuple[object, ...] = (),
) -> MappedArrays:
    """Return the aggregate `name` of an array of keys and arrays of values, or of a Tuple of them.

    Raises IllegalTypeOfArgument."""
    full_name = f"{name}Map"
    first_type = plain(types[0]) if types else None
    argument_types = (
        types if not isinstance(first_type, Tuple) or len(types) > 1 else first_type.elements
    )
    arrays = [data_type for data_type in map(plain, argument_types) if isinstance(data_type, Array)]
    if len(arrays) < max(len(argument_types), 2):
        expected = "a Map, or arrays of keys and of values"
        raise illegal_argument(full_name, types[0] if types else Tuple(()), expected)
    inners = [resolve(name, parameters, (plain(array.inner),)) for array in arrays[1:]]
    keys = Array(arrays[0].inner)
    states = Tuple((keys, *(Array(aggregate.state_type.state) for aggregate in inners)))
    classes = [aggregate.merge_class for aggregate in inners]
    return MappedArrays(
        f"{inners[0].name}Map",
        inners[0].parameters,
        types,
        Tuple((keys, *(Array(aggregate.result_type) for aggregate in inners))),
        state_type_of(full_name, (), types, states),
        inners[0],
        tuple(inners[1:]),
        any(is_nullable(array.inner) for array in arrays[1:]),
        merge_class="float" if "float" in classes else classes[0],
        **_merge_fields(inners[0]),
    )


class _MergeFields(TypedDict):
    """The fields `additive` and `merge_function` of an aggregate: whether, and by which function, finished values
    merge."""

    additive: bool
    merge_function: str


def _merge_fields(inner: Aggregate) -> _MergeFields:
    """Return the fields `additive` and `merge_function` of a map aggregate.

    Finished maps merge by the same function if finished values of the inner aggregate do."""
    merges = inner.merge_function == inner.name and inner.name in _MAPPED_ARRAY_FUNCTIONS
    return {"additive": merges, "merge_function": f"{inner.name}Map" if merges else ""}
