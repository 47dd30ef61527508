"""distinctJSONPaths, distinctJSONPathsAndTypes and distinctDynamicTypes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.aggregates.combinators import Combinator
from olapdb.functions.aggregates.distinct import GroupUniqArray
from olapdb.functions.aggregates.signatures import (
    illegal_argument,
    require_count,
    require_no_parameters,
    state_type_of,
)
from olapdb.functions.base import Groups
from olapdb.functions.dynamic.objects import entries_of
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import STRING, Array, DataType, Dynamic, Json, Map, Tuple, plain

_PAIR = Tuple((STRING, STRING))
_NAMES_WITH_TYPES = Map(STRING, Array(STRING))


@dataclass(frozen=True)
class DistinctPaths(Combinator):
    """distinctJSONPaths: the sorted set of all paths. State: the same."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's distinct paths."""
        entries = entries_of(arguments[0])
        rows = groups.codes[entries.rows]
        return self.inner.state(
            [self.values_of(entries.paths, entries.types)], Groups(rows, groups.count)
        )

    def values_of(self, paths: pa.Array, types: pa.Array) -> pa.Array:
        """Return the elements of the set: for this aggregate the paths alone."""
        return paths


@dataclass(frozen=True)
class DistinctPathsAndTypes(DistinctPaths):
    """distinctJSONPathsAndTypes: the types of each path. State: the sorted set of pairs."""

    def values_of(self, paths: pa.Array, types: pa.Array) -> pa.Array:
        """Return the elements of the set: pairs of path and type."""
        return columns.structs_from([paths, types], _PAIR.arrow)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return a map from each path to its types."""
        offsets, pairs = columns.elements_of(states)
        paths, types = columns.struct_fields(pairs)
        codes = columns.numpy_values(paths.dictionary_encode().indices)
        owners = columns.parents_of(offsets)
        begins = np.ones(len(codes), bool)
        begins[1:] = (np.diff(codes) != 0) | (np.diff(owners) != 0)
        first = np.flatnonzero(begins)
        lists = columns.lists_from(np.append(first, len(codes)), types)
        counts = np.bincount(owners[first], minlength=len(states))
        keys = paths.filter(pa.array(begins))
        return columns.maps_from(
            columns.offsets_from_counts(counts), keys, lists, _NAMES_WITH_TYPES.arrow
        )


@dataclass(frozen=True)
class DistinctTypes(Combinator):
    """distinctDynamicTypes: the sorted set of the types of values. State: the same."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's distinct types; NULL has none."""
        names = columns.struct_fields(arguments[0])[0]
        if names.null_count:
            rows = np.flatnonzero(np.asarray(pc.is_valid(names)))
            names, groups = names.drop_null(), Groups(groups.codes[rows], groups.count)
        return self.inner.state([names], groups)


def distinct_paths(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Combinator:
    """Resolve distinctJSONPaths or distinctJSONPathsAndTypes of a JSON. Raises IllegalTypeOfArgument."""
    if len(types) == 1 and not isinstance(plain(types[0]), Json):
        raise illegal_argument(name, types[0], "a JSON")
    with_types = name.endswith("Types")
    kind = DistinctPathsAndTypes if with_types else DistinctPaths
    result = _NAMES_WITH_TYPES if with_types else Array(STRING)
    return _resolved(kind, name, parameters, types, _PAIR if with_types else STRING, result)


def distinct_types(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Combinator:
    """Resolve distinctDynamicTypes of a Dynamic. Raises IllegalTypeOfArgument."""
    if len(types) == 1 and not isinstance(types[0], Dynamic):
        raise illegal_argument(name, types[0], "a Dynamic")
    return _resolved(DistinctTypes, name, parameters, types, STRING, Array(STRING))


def _resolved(
    kind: type[Combinator],
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    kept: DataType,
    result: DataType,
) -> Combinator:
    """Build the aggregate of class `kind`, whose states are sets of type `kept` and whose result type is `result`."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    state = state_type_of(name, (), types, Array(kept))
    inner = GroupUniqArray("groupUniqArray", (), (kept,), Array(kept), state)
    return kind(name, (), types, result, state, inner)
