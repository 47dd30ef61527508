"""Pieces of strings by per-row positions, in bytes or in code points, without a loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.kernels import columns

PLACES_AT_ONCE = 1 << 20
"""So many places of strings are searched together: some 30 bytes are held for each."""


def pieces(
    array: pa.Array, starts: np.ndarray, lengths: np.ndarray, *, utf8: bool = False
) -> pa.Array:
    """The piece of each string from its `starts[i]` (from 0) of `lengths[i]` units, both clipped
    to the string."""
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
    """Positions in code points as positions in bytes."""
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
    """How long each string is, in bytes or code points, int64."""
    counted = pc.utf8_length(array) if utf8 else pc.binary_length(columns.binary(array))
    return columns.numpy_values(counted).astype(np.int64)


def find(haystack: pa.Array, needle: pa.Array) -> np.ndarray:
    """The byte at which each string's own needle is first found, from 0, or -1; int64."""
    haystack, needle = columns.binary(haystack), columns.binary(needle)
    if is_constant(needle):
        wanted = needle[0].as_py() if len(needle) else b""
        return columns.numpy_values(pc.find_substring(haystack, wanted)).astype(np.int64)
    offsets, _ = columns.bytes_of(haystack)
    needle_offsets, _ = columns.bytes_of(needle)
    room = np.maximum(np.diff(offsets) - np.diff(needle_offsets) + 1, 0)
    found = np.empty(len(room), np.int64)
    totals, start = np.cumsum(room), 0
    while start < len(room):
        done = totals[start - 1] if start else 0
        stop = max(int(np.searchsorted(totals, done + PLACES_AT_ONCE, side="right")), start + 1)
        if room[start] > PLACES_AT_ONCE:  # alone
            found[start] = haystack[start].as_py().find(needle[start].as_py() or b"")
        else:
            some = haystack.slice(start, stop - start)
            found[start:stop] = _find(some, needle.slice(start, stop - start))
        start = stop
    return found


def _find(haystack: pa.Array, needle: pa.Array) -> np.ndarray:
    """All places at once: a place is given up at the first byte that differs."""
    offsets, data = columns.bytes_of(haystack)
    needle_offsets, needle_data = columns.bytes_of(needle)
    sizes = np.diff(needle_offsets)
    found = np.where(sizes == 0, 0, -1)
    room = np.maximum(np.diff(offsets) - sizes + 1, 0)  # so many places it may begin at
    room[sizes == 0] = 0
    begins = columns.offsets_from_counts(room)
    owners = columns.parents_of(begins)
    places = np.arange(int(begins[-1])) - np.repeat(begins[:-1] - offsets[:-1], room)
    step = 0
    while len(owners):
        ended = sizes[owners] == step
        if ended.any():  # all of the needle was there: the first place of each row counts
            rows, first = np.unique(owners[ended], return_index=True)
            found[rows] = places[ended][first] - offsets[rows]
            open_rows = found[owners] < 0
            owners, places = owners[open_rows], places[open_rows]
        same = data[places + step] == needle_data[needle_offsets[owners] + step]
        owners, places = owners[same], places[same]
        step += 1
    return found


def per_value(
    arrays: list[pa.Array],
    at: tuple[int, ...],
    function: Callable[[list[pa.Array], list[str]], pa.Array],
) -> pa.Array:
    """Applies a function that takes constants where columns stand: once for each distinct
    combination of the columns `at`, on the rows that have it."""
    keys = [columns.binary(arrays[i]) for i in at]
    others = [a for i, a in enumerate(arrays) if i not in at]
    if all(is_constant(k) for k in keys):
        return function(others, [_text(k, 0) if len(k) else "" for k in keys])
    encoded = [k.dictionary_encode() for k in keys]
    codes = np.zeros(len(arrays[0]), np.int64)
    for one in encoded:
        codes = codes * max(len(one.dictionary), 1) + columns.numpy_values(one.indices)
    found, first, place = np.unique(codes, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    order = np.argsort(place, kind="stable")
    counts = np.bincount(place, minlength=len(found))
    bounds = columns.offsets_from_counts(counts)
    made = []
    for index, row in enumerate(first):
        rows = pa.array(order[bounds[index] : bounds[index + 1]])
        made.append(function([a.take(rows) for a in others], [_text(k, int(row)) for k in keys]))
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(made).take(pa.array(back))


def is_constant(keys: pa.Array) -> bool:
    """Whether all rows have the same value; most that differ do so at both ends."""
    if len(keys) <= 1:
        return True
    if keys.null_count or keys[0] != keys[len(keys) - 1]:
        return False
    return bool(pc.all(pc.equal(keys, keys[0])).as_py())


def _text(keys: pa.Array, row: int) -> str:
    return bytes(keys[row].as_py()).decode("utf-8", "surrogateescape")
