"""mapPopulateSeries: a map with a value for each integer between its keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, CannotConvertType, TooLargeArray
from olapdb.functions.arrays.resizing import require_list_size
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.nested import map_parts
from olapdb.functions.scalar import (
    Invocation,
    ScalarDefinition,
    custom,
    illegal,
    require,
    standard_call,
)
from olapdb.types import Array, DataType, Integer, Map, Tuple, plain


def _parts_of_type(
    name: str, arguments: Sequence[Argument]
) -> tuple[Integer, Integer, DataType, int]:
    """Return the key type, the value type, the result type, and the number of arguments before the last key: 1 for a
    map, 2 for two arrays. Raises for other arguments than a map or two arrays of integers."""
    first = plain(arguments[0].type)
    result: DataType = first
    if isinstance(first, Map):
        key, value, taken = first.key, first.value, 1
    else:
        both = [plain(a.type) for a in arguments[:2]]
        require(name, both, Array, "a Map or two Arrays")
        inners = [kind.inner for kind in both if isinstance(kind, Array)]
        if len(inners) < 2:
            raise illegal(name, first, "a Map or two Arrays")
        key, value, result, taken = *inners, Tuple(tuple(both)), 2
    if not isinstance(key, Integer) or not isinstance(value, Integer):
        raise illegal(name, first, "keys and values that are integers")
    if len(arguments) > taken + 1:
        raise illegal(name, arguments[-1].type, "at most one last key")
    if len(arguments) > taken:
        require(name, [plain(arguments[taken].type)], Integer, "an integer as the last key")
    return key, value, result, taken


def _populate(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve mapPopulateSeries(m[, last]) and mapPopulateSeries(keys, values[, last]).

    The result has each integer from the smallest key to the last one, the largest key without
    `last`, in order. Missing keys have the value 0, and the first of equal keys counts."""
    key, value, result, taken = _parts_of_type(name, arguments)

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Give each row a pair for every key from its smallest to its last one; new keys have the value 0. Raises
        CannotConvertType."""
        offsets, keys, values = _pairs(name, arrays)
        numbers = columns.numpy_values(keys)
        last = None if len(arrays) == taken else columns.numpy_values(arrays[taken])
        if last is not None and not np.array_equal(last.astype(numbers.dtype), last):
            raise CannotConvertType(f"A last key of {name} does not fit {key}.")
        out, series, spread = _series(offsets, numbers, columns.numpy_values(values), last)
        new_keys = columns.from_values(series.astype(numbers.dtype), key.arrow)
        new_values = columns.from_values(spread, value.arrow)
        if isinstance(result, Map):
            return columns.maps_from(out, new_keys, new_values, result.arrow)
        lists = [columns.lists_from(out, new_keys), columns.lists_from(out, new_values)]
        return columns.structs_from(lists, result.arrow, rows=len(arrays[0]))

    return standard_call(name, arguments, result, kernel)


def _pairs(name: str, arrays: list[pa.Array]) -> tuple[np.ndarray, pa.Array, pa.Array]:
    """Return the offsets, keys and values of maps, or of arrays of equal sizes.

    Raises BadArguments."""
    if pa.types.is_map(arrays[0].type):
        return map_parts(arrays[0])
    (offsets, keys), (other, values) = (columns.elements_of(a) for a in arrays[:2])
    if not np.array_equal(offsets, other):
        raise BadArguments(f"The arrays of {name} have different sizes.")
    return offsets, keys, values


_SPAN_MAX = 1 << 53
"""More keys than any series may have."""
_SIZE_MAX = 1 << 30
"""The keys that a series may have."""


def _series(
    offsets: np.ndarray, keys: np.ndarray, values: np.ndarray, last: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the offsets, keys and values of the rows' filled series, up to `last`, or the largest key if None.

    Raises TooLargeArray."""
    filled = np.flatnonzero(np.diff(offsets) > 0)
    low = np.zeros(len(offsets) - 1, np.int64)
    counts = np.zeros(len(offsets) - 1, np.int64)
    starts = offsets[:-1][filled]
    wide = keys.astype(np.int64)
    if len(filled):
        least = np.minimum.reduceat(keys, starts)
        most = np.maximum.reduceat(keys, starts) if last is None else last[filled]
        low[filled] = least.astype(np.int64)
        # A difference of 64-bit keys can wrap; no such series is small enough, and its size need not be exact.
        spans = most.astype(np.float64) - least.astype(np.float64)
        exact = np.maximum(most.astype(np.int64) - low[filled] + 1, 0)
        counts[filled] = np.where(spans > _SPAN_MAX, _SPAN_MAX, np.where(spans < 0, 0, exact))
    if (counts > _SIZE_MAX).any():
        raise TooLargeArray(
            f"Function mapPopulateSeries would make more than {_SIZE_MAX} keys of one map."
        ).at_row(int(np.argmax(counts > _SIZE_MAX)))
    require_list_size("mapPopulateSeries", counts)
    out = columns.offsets_from_counts(counts)
    rows = columns.parents_of(out)
    series = low[rows] + np.arange(len(rows)) - out[rows]
    spread = np.zeros(len(rows), values.dtype)
    owners = columns.parents_of(offsets)
    place = wide - low[owners]
    inside = np.flatnonzero(place < counts[owners])[::-1]  # the first of equal keys is written last
    spread[out[owners[inside]] + place[inside]] = values[inside]
    return out, series, spread


DEFINITIONS: tuple[ScalarDefinition, ...] = (custom("mapPopulateSeries", _populate, count=(1, 3)),)
