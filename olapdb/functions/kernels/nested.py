"""Kernels of list and map columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.functions.kernels import columns
from olapdb.types.arrow_values import from_numpy


def map_parts(array: pa.Array) -> tuple[np.ndarray, pa.Array, pa.Array]:
    """Return the offsets of a map column, from 0 and of shape (rows + 1,), its keys and its values."""
    offsets = columns.offsets_of(array)
    start, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    return offsets - start, array.keys.slice(start, count), array.items.slice(start, count)


def count_marked(offsets: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """Return the number of marked elements of each list; int64, shape (rows,). `marked` is a bool for each element,
    `offsets` are those of the lists, from 0."""
    running = np.concatenate(([0], np.cumsum(marked)))
    return np.asarray(running[offsets[1:]] - running[offsets[:-1]])


def filter_elements(offsets: np.ndarray, elements: pa.Array, keep: np.ndarray) -> pa.Array:
    """Return the lists with only the elements that `keep` marks, in order."""
    kept_offsets = columns.offsets_from_counts(count_marked(offsets, keep))
    return columns.lists_from(kept_offsets, elements.filter(from_numpy(keep)))


def truncate_lists(lists: pa.Array, limit: int) -> pa.Array:
    """Return the first `limit` elements of each list."""
    offsets, elements = columns.elements_of(lists)
    positions = np.arange(len(elements)) - np.repeat(offsets[:-1], np.diff(offsets))
    return filter_elements(offsets, elements, positions < limit)
