"""Functions that order, deduplicate and number the elements of an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions import scalar
from olapdb.functions.arrays.search import ranks_with_null
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.types import UINT32, Array, DataType, plain


def _array_rule(
    result: Callable[[Array], DataType],
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        first = types[0]
        if not isinstance(first, Array):
            raise scalar.illegal(name, first, "an Array")
        return result(first)

    return rule


def reverse_lists(array: pa.Array) -> pa.Array:
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
        ranks = ranks_with_null(elements)
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


def _enumerate(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    offsets, _ = columns.elements_of(arrays[0])
    owners = columns.parents_of(offsets)
    places = np.arange(len(owners)) - offsets[owners] + 1
    return columns.lists_from(offsets, columns.from_values(places, pa.uint32()))


def _itself(array: Array) -> DataType:
    return array


def _not_null_elements(array: Array) -> DataType:
    return Array(plain(array.inner))


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("arraySort", _array_rule(_itself), _reordered("sort")),
    scalar.define("arrayReverseSort", _array_rule(_itself), _reordered("reverseSort")),
    scalar.define("arrayReverse", _array_rule(_itself), lambda a, call: reverse_lists(a[0])),
    scalar.define("arrayDistinct", _array_rule(_not_null_elements), _reordered("distinct")),
    scalar.define("arrayCompact", _array_rule(_itself), _reordered("compact")),
    scalar.define("arrayEnumerate", _array_rule(lambda a: Array(UINT32)), _enumerate),
)
