"""Find the minimum and maximum of a large column among few of its rows.

Arrow's `min_max` compares texts one by one, about 10 ns each, and handles NaN in floats slowly.
Most texts differ in their first byte, so few rows remain to compare.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from olapdb.config import tuning
from olapdb.functions.kernels.arrow_buffers import empty
from olapdb.functions.kernels.columns import numpy_values
from olapdb.lazy import LazyModule
from olapdb.native.library import library
from olapdb.types.arrow_values import array_of, from_numpy

if TYPE_CHECKING:
    from olapdb.native import encoding
else:
    encoding = LazyModule("olapdb.native.encoding")

_SAMPLE_ROWS = 1_024
_HEADS_MIN = 4
"""Distinct first bytes in a sample of the rows; with fewer, filtering by them would keep too many
rows."""
_WORD_BYTES = (1, 2, 4, 8)


def min_max_candidates(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a subset of the rows that includes the minimum, the maximum, and a NaN or a NULL if
    the column has one."""
    return pa.chunked_array([_candidates(chunk) for chunk in values.chunks], values.type)


def _candidates(array: pa.Array) -> pa.Array:
    """Return few values of the array that contain its minimum and maximum. Returns the array itself
    if it is small, has nulls, or its type has no shortcut."""
    if len(array) < tuning.MIN_MAX_ROWS_MIN or array.null_count:
        return array
    arrow = array.type
    if pa.types.is_float32(arrow) or pa.types.is_float64(arrow):
        numbers = numpy_values(array)
        return from_numpy(np.array([numbers.min(), numbers.max()]))  # both are NaN where one is
    return _text_candidates(array) if pa.types.is_string(arrow) else array


def _text_candidates(array: pa.Array) -> pa.Array:
    """Return few strings that contain the minimum and maximum: exactly two by a kernel, or if all have one length
    of 1, 2, 4 or 8 bytes, else those with extreme first bytes. Returns the whole array if the first
    bytes hardly differ."""
    if library() is not None:
        return array.take(array_of(list(encoding.text_range(array)), pa.int64()))
    rows = len(array)
    _, offset_buffer, byte_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32, rows + 1, array.offset * 4)
    start, end = int(offsets[0]), int(offsets[-1])
    if start == end:
        return array.slice(0, 1)
    data = np.frombuffer(byte_buffer, np.uint8, end)
    lengths = np.subtract(offsets[1:], offsets[:-1], out=empty(rows, np.int32))
    width = (end - start) // rows
    if lengths.min() == width == lengths.max():
        texts = data[start:].reshape(rows, width)
        if width in _WORD_BYTES:
            words = texts.view(f">u{width}").reshape(rows)
            return array.take(array_of([int(words.argmin()), int(words.argmax())], pa.int64()))
        heads = texts[:, 0]
        return _with_extreme_heads(array, heads)
    if not _are_selective(data[np.minimum(offsets[:_SAMPLE_ROWS], end - 1)]):
        return array
    heads = data.take(offsets[:-1], out=empty(rows, np.uint8), mode="clip")
    heads[lengths == 0] = 0  # "" sorts first
    return _with_extreme_heads(array, heads)


def _with_extreme_heads(array: pa.Array, heads: np.ndarray) -> pa.Array:
    """Return the rows whose first byte is the smallest or the largest."""
    if not _are_selective(heads[:_SAMPLE_ROWS]):
        return array
    is_candidate = heads == heads.min()
    is_candidate |= heads == heads.max()
    return array.filter(from_numpy(is_candidate))


def _are_selective(heads: np.ndarray) -> bool:
    """Return whether a sample of first bytes has enough distinct values to exclude most rows."""
    return bool(np.count_nonzero(np.bincount(heads)) >= _HEADS_MIN)
