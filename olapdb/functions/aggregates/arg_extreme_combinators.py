"""The combinators -ArgMin and -ArgMax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from olapdb.errors import NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.combinators import Combinator
from olapdb.functions.aggregates.extremes import extreme_order_keys, fill_missing
from olapdb.functions.aggregates.signatures import ResolveAggregate, illegal_argument, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.types import (
    AggregateFunction,
    Array,
    DataType,
    Map,
    Tuple,
    is_nullable,
    make_nullable,
    plain,
)


@dataclass(frozen=True)
class ArgExtreme(Combinator):
    """-ArgMin, -ArgMax: over the rows whose last argument is the group's smallest (largest); all of
    them, where several are. Rows with a NULL are skipped, NaN is the last choice.
    State: Tuple(key Nullable(K), state), the key NULL where there was no row."""

    largest: bool = False

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        (*rest, keys), groups = group_kernels.drop_null_rows(arguments, groups)
        chosen, kept, of_groups = self._chosen(keys, rest, groups)
        return self._pair(of_groups, self.inner.state(chosen, kept))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        keys, inner = columns.struct_fields(states)
        (keys, inner), groups = group_kernels.filter_rows(
            [keys, inner], groups, np.asarray(keys.is_valid())
        )
        (chosen,), kept, of_groups = self._chosen(keys, [inner], groups)
        return self._pair(of_groups, self.inner.merge(chosen, kept))

    def finalize(self, states: pa.Array) -> pa.Array:
        keys, inner = columns.struct_fields(states)
        values = self.inner.finalize(inner)
        if is_nullable(self.result_type) and not is_nullable(self.inner.result_type):
            rows = np.where(np.asarray(keys.is_valid()), np.arange(len(states)), -1)
            values = fill_missing(group_kernels.take_rows(values, rows), self)
        return values

    def _chosen(
        self, keys: pa.Array, values: Sequence[pa.Array], groups: Groups
    ) -> tuple[list[pa.Array], Groups, pa.Array]:
        """(the values of the rows with their group's extreme key, their groups, the keys)."""
        ordered = extreme_order_keys(keys, largest=self.largest)
        best = group_kernels.extreme_keys(ordered, groups, largest=self.largest)
        chosen, kept = group_kernels.filter_rows(values, groups, ordered == best[groups.codes])
        rows = group_kernels.extreme_rows(ordered, groups, largest=self.largest)
        return chosen, kept, group_kernels.take_rows(keys, rows)

    def _pair(self, keys: pa.Array, states: pa.Array) -> pa.Array:
        return columns.structs_from([keys, states], self.state_type.arrow)


def resolve_arg_extreme(
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: ResolveAggregate,
    *,
    suffix: str,
    above_nulls: bool,
) -> Aggregate:
    if not types:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name}{suffix} takes a key, its last argument."
        )
    key = plain(types[-1])
    if isinstance(key, Array | Map | Tuple | AggregateFunction):
        raise illegal_argument(f"{name}{suffix}", types[-1], "a key that is a single value")
    inner = resolve(name, parameters, types[:-1])
    result = inner.result_type
    if is_nullable(types[-1]) and not above_nulls and not isinstance(result, Array | Tuple):
        result = make_nullable(result)
    spelt = f"{inner.name}{suffix}"
    pair = Tuple((make_nullable(key), inner.state_type.state), ("key", "state"))
    return ArgExtreme(
        spelt,
        inner.parameters,
        types,
        result,
        state_type_of(spelt, inner.parameters, types, pair),
        inner,
        suffix == "ArgMax",
        merge_class=inner.merge_class,
    )
