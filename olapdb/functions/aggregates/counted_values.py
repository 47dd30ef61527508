"""topK, topKWeighted and entropy, computed from how often each distinct value occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.types import Tuple


@dataclass(frozen=True)
class CountedValues(Aggregate):
    """An aggregate of the weights of distinct values.

    State: Tuple(values Array(T), weights Array(UInt64)), the distinct values, sorted, and how often
    each occurs or the sum of its weights; T is a Tuple for several arguments. The state is exact,
    so it does not depend on the cut into blocks; it is as large as the set of distinct values."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's distinct values and how often each occurs; rows with a NULL are
        skipped.
        """
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        return self._state(arguments, np.ones(len(groups.codes), np.uint64), groups)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Add up the weights of equal values of each group's states."""
        values, weights = columns.struct_fields(states)
        offsets, elements = columns.elements_of(values)
        _, numbers = columns.elements_of(weights)
        owners = group_kernels.element_groups(offsets, groups)
        several = pa.types.is_struct(elements.type) and not isinstance(
            self.argument_types[0], Tuple
        )
        parts = columns.struct_fields(elements) if several else [elements]
        return self._state(parts, columns.numpy_values(numbers), owners)

    def _state(self, values: Sequence[pa.Array], weights: np.ndarray, groups: Groups) -> pa.Array:
        """Return the states of the groups from values with weights."""
        ranking = group_kernels.rank_rows(values)
        pairs, inverse = np.unique(
            groups.codes * max(ranking.count, 1) + ranking.ranks, return_inverse=True
        )
        sums = np.zeros(len(pairs), np.uint64)
        with np.errstate(over="ignore"):
            np.add.at(sums, inverse.reshape(-1), weights.astype(np.uint64, copy=False))
        owners, ranks = np.divmod(pairs, max(ranking.count, 1))
        rows = pa.array(ranking.rows[ranks])
        offsets = columns.offsets_from_counts(np.bincount(owners, minlength=groups.count))
        list_type = self.state_type.arrow.field(0).type
        taken = [a.take(rows) for a in values]
        if len(taken) > 1:
            elements: pa.Array = columns.structs_from(taken, list_type.value_type)
        else:
            elements = columns.retype(taken[0], list_type.value_type)
        fields = [
            columns.lists_from(offsets, elements),
            columns.lists_from(offsets, columns.from_values(sums, pa.uint64())),
        ]
        return columns.structs_from(fields, self.state_type.arrow)


@dataclass(frozen=True)
class TopK(CountedValues):
    """topK(k), topKWeighted(k): the k values of the largest weights, largest first.

    Of equal weights the smaller value comes first. The result is exact, unlike ClickHouse's."""

    limit: int = 10
    with_counts: bool = False

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the values of the largest weights of each group, at most `limit` of them.

        With `with_counts` the elements are (item, count, error), where the error is 0."""
        values, weights = columns.struct_fields(states)
        offsets, elements = columns.elements_of(values)
        numbers = columns.numpy_values(columns.elements_of(weights)[1])
        counts = np.diff(offsets)
        owners = np.repeat(np.arange(len(states)), counts)
        order = np.lexsort((np.iinfo(np.uint64).max - numbers, owners))
        position = np.arange(len(order)) - np.repeat(offsets[:-1] - offsets[0], counts)
        order = order[position < self.limit]
        kept = columns.offsets_from_counts(np.minimum(counts, self.limit))
        items = elements.take(pa.array(order))
        if not self.with_counts:
            return columns.lists_from(kept, items)
        fields = [
            items,
            columns.from_values(numbers[order], pa.uint64()),
            columns.from_values(np.zeros(len(order), np.uint64), pa.uint64()),
        ]
        item_type = self.result_type.arrow.value_type
        return columns.lists_from(kept, columns.structs_from(fields, item_type))


@dataclass(frozen=True)
class TopKWeighted(TopK):
    """topKWeighted(k)(value, weight): the weights are integers that are not negative."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's distinct values and the sum of their weights; rows with a NULL or a
        weight of 0 are skipped.
        """
        (values, weights), groups = group_kernels.drop_null_rows(arguments, groups)
        numbers = columns.numpy_values(weights)
        keep = numbers != 0
        (values,), groups = group_kernels.filter_rows([values], groups, keep)
        return self._state([values], numbers[keep], groups)


@dataclass(frozen=True)
class Entropy(CountedValues):
    """entropy: Shannon's entropy of the distribution of the values, in bits."""

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the entropy of each group, Float64; 0 for an empty group."""
        offsets, weights = columns.elements_of(columns.struct_fields(states)[1])
        numbers = columns.numpy_values(weights).astype(np.float64)
        owners = np.repeat(np.arange(len(states)), np.diff(offsets))
        totals = np.bincount(owners, numbers, len(states))
        shares = numbers / totals[owners]
        entropies = np.bincount(owners, -shares * np.log2(shares), len(states))
        return columns.from_values(entropies + 0.0, pa.float64())
