"""Functions that order, deduplicate and number the elements of an array."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.functions import scalar
from olapdb.functions.arrays.nested_equality import rankable_values
from olapdb.functions.arrays.search import ranks_with_null
from olapdb.functions.arrays.type_rules import array_rule, same_type
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import stable_order
from olapdb.functions.kernels.nested import filter_elements
from olapdb.types import UINT32, Array, DataType, plain
from olapdb.types.arrow_values import from_numpy


def reverse_lists(array: pa.Array) -> pa.Array:
    """Return the lists with their elements in reverse order."""
    offsets, elements = columns.elements_of(array)
    owners = columns.parents_of(offsets)
    order = offsets[owners] + offsets[owners + 1] - 1 - np.arange(len(elements))
    return columns.lists_from(offsets, elements.take(from_numpy(order)))


def _sort(*, reverse: bool) -> scalar.Kernel:
    """Return the kernel of arraySort(a), or with `reverse` of arrayReverseSort(a)."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return each array with its elements sorted; NULL is last."""
        offsets, elements = columns.elements_of(arrays[0])
        order = sorted_positions(offsets, elements, reverse=reverse)
        return columns.lists_from(offsets, elements.take(from_numpy(order)))

    return kernel


def sorted_positions(offsets: np.ndarray, keys: pa.Array, *, reverse: bool) -> np.ndarray:
    """Return the positions of all elements in the order that sorts each row by its keys.

    Ties, -0.0 and 0.0 among them, keep their order. NULL is last in both directions, NaN comes
    right before it."""
    ranks = ranks_with_null(rankable_values(keys))
    top = int(ranks.max()) if len(ranks) else 0
    places = top - ranks if reverse else ranks - 1
    if pa.types.is_floating(keys.type):
        places = np.where(np.isnan(columns.numpy_values(keys)), top, places)
    places = np.where(ranks == 0, top + 1, places)
    return stable_order(columns.parents_of(offsets) * (top + 2) + places)


def _distinct(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Keep the first of equal elements and drop NULLs: the kernel of arrayDistinct."""
    offsets, elements = columns.elements_of(arrays[0])
    ranks = ranks_with_null(elements)
    keep = first_occurrences(columns.parents_of(offsets), ranks) & (ranks > 0)
    return filter_elements(offsets, elements, keep)


def _compact(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Keep the first of equal neighbours: the kernel of arrayCompact."""
    offsets, elements = columns.elements_of(arrays[0])
    return filter_elements(
        offsets, elements, distinct_neighbours(offsets, ranks_with_null(elements))
    )


def distinct_neighbours(offsets: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Return which elements differ in rank from the one before them in their array; bool. The first
    element of an array always does."""
    differs = np.ones(len(ranks), bool)
    differs[1:] = ranks[1:] != ranks[:-1]
    differs[offsets[:-1][np.diff(offsets) > 0]] = True
    return differs


def first_occurrences(owners: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Return which elements are the first of their rank in their array; bool.

    `owners` holds the row of each element."""
    span = int(ranks.max()) + 1 if len(ranks) else 1
    _, positions = np.unique(owners * span + ranks, return_index=True)
    is_first = np.zeros(len(ranks), bool)
    is_first[positions] = True
    return is_first


def _enumerate(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Number the elements of each array from 1: the kernel of arrayEnumerate."""
    offsets, _ = columns.elements_of(arrays[0])
    owners = columns.parents_of(offsets)
    positions = np.arange(len(owners)) - offsets[owners] + 1
    return columns.lists_from(offsets, columns.from_values(positions, pa.uint32()))


def _not_null_elements(array: Array) -> DataType:
    """Return the array type with elements that are not Nullable."""
    return Array(plain(array.inner))


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("arraySort", array_rule(same_type), _sort(reverse=False)),
    scalar.define("arrayReverseSort", array_rule(same_type), _sort(reverse=True)),
    scalar.define("arrayReverse", array_rule(same_type), lambda a, call: reverse_lists(a[0])),
    scalar.define("arrayDistinct", array_rule(_not_null_elements), _distinct),
    scalar.define("arrayCompact", array_rule(same_type), _compact),
    scalar.define("arrayEnumerate", array_rule(lambda a: Array(UINT32)), _enumerate),
)
