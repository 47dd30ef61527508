"""The combinators -ArgMin and -ArgMax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.combinators import Combinator
from olapdb.functions.aggregates.extremes import extreme_order_keys, fill_missing
from olapdb.functions.aggregates.signatures import ResolveAggregate, illegal_argument, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import (
    AggregateFunction,
    Array,
    DataType,
    Tuple,
    is_nullable,
    make_nullable,
    plain,
)


@dataclass(frozen=True)
class ArgExtreme(Combinator):
    """-ArgMin and -ArgMax: aggregate the rows whose last argument, the key, is the group's extreme.

    Ties all count. Rows with a NULL are skipped. NaN is an extreme only if no other key exists.
    State: Tuple(key Nullable(K), state); the key of a group without rows is NULL."""

    largest: bool = False

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's state from the rows that have the group's extreme key."""
        (*values, keys), groups = group_kernels.drop_null_rows(arguments, groups)
        chosen, chosen_groups, group_keys = self._rows_with_extreme_key(keys, values, groups)
        return self._key_and_state(group_keys, self.inner.state(chosen, chosen_groups))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Merge the inner states of each group's extreme key; drop states of other keys and empty
        ones.
        """
        keys, inner = columns.struct_fields(states)
        (keys, inner), groups = group_kernels.filter_rows(
            [keys, inner], groups, np.asarray(keys.is_valid())
        )
        (chosen,), chosen_groups, group_keys = self._rows_with_extreme_key(keys, [inner], groups)
        return self._key_and_state(group_keys, self.inner.merge(chosen, chosen_groups))

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the inner results.

        A group without rows gives NULL, or the default if not Nullable.
        """
        keys, inner = columns.struct_fields(states)
        values = self.inner.finalize(inner)
        if is_nullable(self.result_type) and not is_nullable(self.inner.result_type):
            rows = np.where(np.asarray(keys.is_valid()), np.arange(len(states)), -1)
            values = fill_missing(group_kernels.take_rows(values, rows), self)
        return values

    def _rows_with_extreme_key(
        self, keys: pa.Array, values: Sequence[pa.Array], groups: Groups
    ) -> tuple[list[pa.Array], Groups, pa.Array]:
        """Return the values of the rows that have their group's extreme key, the groups of these
        rows, and the extreme key of each group."""
        missing_low = self.largest or pa.types.is_nested(keys.type)  # (NULL, 1) is the least
        ordered = extreme_order_keys(keys, largest=missing_low)
        best = group_kernels.extreme_keys(ordered, groups, largest=self.largest)
        chosen, chosen_groups = group_kernels.filter_rows(
            values, groups, ordered == best[groups.codes]
        )
        rows = group_kernels.extreme_rows(ordered, groups, largest=self.largest)
        return chosen, chosen_groups, group_kernels.take_rows(keys, rows)

    def _key_and_state(self, keys: pa.Array, states: pa.Array) -> pa.Array:
        """Return the states Tuple(key, state) from one key and one inner state a group."""
        return columns.structs_from([keys, states], self.state_type.arrow)


def resolve_arg_extreme_combinator(
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    resolve: ResolveAggregate,
    *,
    suffix: str,
    has_result_over_no_rows: bool,
) -> Aggregate:
    """Return -ArgMin or -ArgMax (`suffix`) of the aggregate `name`; `resolve` resolves that one.

    `types` are those of its arguments, then of the key. The result is Nullable for a Nullable key,
    unless `has_result_over_no_rows`: the aggregate counts or gathers.

    Raises NumberOfArgumentsDoesntMatch and IllegalTypeOfArgument."""
    if not types:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name}{suffix} takes a key, its last argument."
        )
    key = plain(types[-1])
    if isinstance(key, AggregateFunction):
        raise illegal_argument(f"{name}{suffix}", types[-1], "a key that can be ordered")
    inner = resolve(name, parameters, types[:-1])
    result = inner.result_type
    if (
        is_nullable(types[-1])
        and not has_result_over_no_rows
        and not isinstance(result, Array | Tuple)
    ):
        result = make_nullable(result)
    full_name = f"{inner.name}{suffix}"
    state = Tuple((make_nullable(key), inner.state_type.state), ("key", "state"))
    return ArgExtreme(
        full_name,
        inner.parameters,
        types,
        result,
        state_type_of(full_name, inner.parameters, types, state),
        inner,
        suffix == "ArgMax",
        merge_class=inner.merge_class,
    )
