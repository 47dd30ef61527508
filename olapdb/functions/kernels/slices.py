"""Substrings by positions and search for substrings, both row by row, without a loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.kernels import columns
from olapdb.types.arrow_values import from_numpy

PLACES_AT_ONCE = 1 << 20
"""The number of positions in strings that are searched together; each takes about 30 bytes."""


def pieces(
    array: pa.Array, starts: np.ndarray, lengths: np.ndarray, *, utf8: bool = False
) -> pa.Array:
    """Return the substring of each string from `starts[i]` (from 0) with `lengths[i]` units.

    Units are bytes, or code points with `utf8`. Both are clipped to the string.
    """
    offsets, data = columns.bytes_of(columns.binary(array))
    if utf8 and len(data) and int(data.max()) >= 128:
        starts, lengths = _bytes_of_points(offsets, data, starts, lengths)
    sizes = np.diff(offsets)
    first = np.clip(starts, 0, sizes)
    last = np.clip(starts + np.maximum(lengths, 0), first, sizes)
    taken = last - first
    out = columns.offsets_from_counts(taken)
    source = np.arange(int(out[-1])) + np.repeat(offsets[:-1] + first - out[:-1], taken)
    return columns.strings_from(out, data[source])


def _bytes_of_points(
    offsets: np.ndarray, data: np.ndarray, starts: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Convert the starts and lengths of substrings from code points to bytes."""
    heads = np.flatnonzero((data & 0xC0) != 0x80)
    first = np.searchsorted(heads, offsets[:-1])
    count = np.searchsorted(heads, offsets[1:]) - first
    marks = np.append(heads, len(data))
    low = np.clip(starts, 0, count)
    high = np.clip(starts + np.maximum(lengths, 0), low, count)
    begin = np.where(low == count, offsets[1:], marks[np.minimum(first + low, len(heads))])
    end = np.where(high == count, offsets[1:], marks[np.minimum(first + high, len(heads))])
    return begin - offsets[:-1], end - begin


def lengths_of(array: pa.Array, *, utf8: bool = False) -> np.ndarray:
    """Return the length of each string in bytes or code points, int64."""
    lengths = pc.utf8_length(array) if utf8 else pc.binary_length(columns.binary(array))
    return columns.numpy_values(lengths).astype(np.int64)


def find(haystack: pa.Array, needle: pa.Array) -> np.ndarray:
    """Return the first byte position of each row's needle in its haystack; int64.

    Positions count from 0; -1 if the needle is absent.
    """
    haystack, needle = columns.binary(haystack), columns.binary(needle)
    if is_constant(needle):
        constant_needle = needle[0].as_py() if len(needle) else b""
        return columns.numpy_values(pc.find_substring(haystack, constant_needle)).astype(np.int64)
    offsets, _ = columns.bytes_of(haystack)
    needle_offsets, _ = columns.bytes_of(needle)
    candidates = np.maximum(np.diff(offsets) - np.diff(needle_offsets) + 1, 0)
    positions = np.empty(len(candidates), np.int64)
    totals, start = np.cumsum(candidates), 0
    while start < len(candidates):
        done = totals[start - 1] if start else 0
        stop = max(int(np.searchsorted(totals, done + PLACES_AT_ONCE, side="right")), start + 1)
        if candidates[start] > PLACES_AT_ONCE:  # too long to search with others
            positions[start] = haystack[start].as_py().find(needle[start].as_py() or b"")
        else:
            rows = haystack.slice(start, stop - start)
            positions[start:stop] = _find(rows, needle.slice(start, stop - start))
        start = stop
    return positions


def _find(haystack: pa.Array, needle: pa.Array) -> np.ndarray:
    """Find each row's needle as `find` does, for a limited number of rows at a time. All positions advance together
    and drop out at the first wrong byte."""
    offsets, data = columns.bytes_of(haystack)
    needle_offsets, needle_data = columns.bytes_of(needle)
    sizes = np.diff(needle_offsets)
    positions = np.where(sizes == 0, 0, -1)
    candidates = np.maximum(np.diff(offsets) - sizes + 1, 0)  # positions where it may begin
    candidates[sizes == 0] = 0
    begins = columns.offsets_from_counts(candidates)
    owners = columns.parents_of(begins)
    places = np.arange(int(begins[-1])) - np.repeat(begins[:-1] - offsets[:-1], candidates)
    step = 0
    while len(owners):
        ended = sizes[owners] == step
        if ended.any():  # the whole needle matched: keep the first position of each row
            rows, first = np.unique(owners[ended], return_index=True)
            positions[rows] = places[ended][first] - offsets[rows]
            undecided = positions[owners] < 0
            owners, places = owners[undecided], places[undecided]
        matches = data[places + step] == needle_data[needle_offsets[owners] + step]
        owners, places = owners[matches], places[matches]
        step += 1
    return positions


def per_value(
    arrays: list[pa.Array],
    at: tuple[int, ...],
    function: Callable[[list[pa.Array], list[str]], pa.Array],
) -> pa.Array:
    """Apply a kernel that needs constants where the arguments at the positions `at` are columns. Calls
    `function(other columns, constants as texts)` once for each distinct combination of constants, on the rows that
    have it."""
    keys = [columns.binary(arrays[i]) for i in at]
    others = [a for i, a in enumerate(arrays) if i not in at]
    if all(is_constant(k) for k in keys):
        return function(others, [_text(k, 0) if len(k) else "" for k in keys])
    encoded = [k.dictionary_encode() for k in keys]
    codes = np.zeros(len(arrays[0]), np.int64)
    for column in encoded:
        codes = codes * max(len(column.dictionary), 1) + columns.numpy_values(column.indices)
    combinations, first, place = np.unique(codes, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    order = np.argsort(place, kind="stable")
    counts = np.bincount(place, minlength=len(combinations))
    bounds = columns.offsets_from_counts(counts)
    results = []
    for index, row in enumerate(first):
        rows = pa.array(order[bounds[index] : bounds[index + 1]])
        results.append(function([a.take(rows) for a in others], [_text(k, int(row)) for k in keys]))
    inverse = np.empty(len(order), np.int64)
    inverse[order] = np.arange(len(order))
    return pa.concat_arrays(results).take(from_numpy(inverse))


def is_constant(keys: pa.Array) -> bool:
    """Return whether all rows have the same value. Compares the first and the last row first, since most varying
    columns differ there."""
    if len(keys) <= 1:
        return True
    if keys.null_count or keys[0] != keys[len(keys) - 1]:
        return False
    return bool(pc.all(pc.equal(keys, keys[0])).as_py())


def _text(keys: pa.Array, row: int) -> str:
    """Return one key as text; bytes that are not UTF-8 become surrogates."""
    return bytes(keys[row].as_py()).decode("utf-8", "surrogateescape")
