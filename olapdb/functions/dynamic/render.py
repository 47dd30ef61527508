"""JSON and Dynamic as text: a JSON is its object, with the paths in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.functions.base import Environment
from olapdb.functions.dynamic.objects import Entries, entries_of
from olapdb.functions.dynamic.stored import read_texts
from olapdb.functions.dynamic.values import kinds
from olapdb.functions.json.escapes import quote
from olapdb.functions.json.write import json_texts
from olapdb.functions.kernels import columns
from olapdb.functions.variants.values import in_rows
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy

Write: TypeAlias = Callable[[pa.Array, types.DataType, int], pa.Array]
"""A function from values, their type and the number of objects around them to JSON texts."""


@dataclass(frozen=True)
class ObjectLayout:
    """The layout in which objects are written. `line` gives the start of a line at a level, "" if all is on one
    line; `quoted` writes keys as JSON strings."""

    line: Callable[[int], str] = lambda level: ""
    colon: str = ":"
    quoted: Callable[[pa.Array], pa.Array] = quote


PLAIN = ObjectLayout(quoted=lambda texts: pc.replace_substring(quote(texts), "/", "\\/"))


def object_texts(array: pa.Array, write: Write, layout: ObjectLayout = PLAIN) -> pa.Array:
    """Return a column of JSON as texts of objects; NULL stays null."""
    entries = entries_of(array)
    end = layout.line(0)
    empty = columns.as_array(pa.scalar("{\n" + end + "}" if end else "{}"), len(array))
    if len(entries.rows):
        pieces = _pieces(entries, write, layout)
        counts = np.bincount(entries.rows, minlength=len(array))
        joined = pc.binary_join(columns.lists_from(columns.offsets_from_counts(counts), pieces), "")
        empty = pc.if_else(pa.array(counts > 0), joined, empty)
    return (
        pc.if_else(array.is_valid(), empty, pa.scalar(None, pa.string()))
        if array.null_count
        else empty
    )


def _pieces(entries: Entries, write: Write, layout: ObjectLayout) -> pa.Array:
    """Return for each entry the part of its object's text from there to the next entry: brackets to close and to open,
    its key and its value.

    The last entry of a row also closes all brackets."""
    names = entries.paths.dictionary_encode()
    codes = columns.numpy_values(names.indices)
    segments = _segments(names.dictionary)
    depth = segments.depth[codes]
    first = np.flatnonzero(np.diff(entries.rows, prepend=-1))
    is_first = np.zeros(len(codes), bool)
    is_first[first] = True
    before = np.concatenate((codes[:1], codes[:-1]))
    shared = np.where(is_first, 0, segments.shared(before, codes))
    ends = np.append(is_first[1:], True)
    closes = np.where(is_first, 0, segments.depth[before] - 1 - shared)
    parts: list[pa.Array | str] = [_closing(closes, shared, layout)]
    parts.append(pc.if_else(pa.array(is_first), "{" + layout.line(1), _commas(shared, layout)))
    parts.append(_opening(segments, codes, shared, layout))
    parts.append(_values(entries, depth, write))
    parts.append(_closing(np.where(ends, depth - 1, 0), np.zeros(len(codes), np.int64), layout))
    parts.append(pc.if_else(pa.array(ends), layout.line(0) + "}", ""))
    return pc.binary_join_element_wise(*parts, "")


@dataclass(frozen=True)
class _Segments:
    """Paths split into their keys: `codes`, shape (depth, paths), has a number for each key, -1 beyond a path's end."""

    codes: np.ndarray
    names: pa.Array
    depth: np.ndarray

    def shared(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return how many enclosing objects two paths have in common: equal leading keys, the last key of each path
        not counted."""
        same = np.ones(len(left), bool)
        common_depths = np.zeros(len(left), np.int64)
        for level in range(len(self.codes) - 1):
            inside = (level < self.depth[left] - 1) & (level < self.depth[right] - 1)
            same = same & inside & (self.codes[level][left] == self.codes[level][right])
            common_depths += same
        return common_depths


def _segments(names: pa.Array) -> _Segments:
    """Return the keys of paths; each distinct path is split once."""
    lists = pc.split_pattern(names, ".")
    offsets, parts = columns.elements_of(lists)
    encoded = parts.dictionary_encode()
    codes = columns.numpy_values(encoded.indices)
    depth = np.diff(offsets)
    grid = np.full((int(depth.max(initial=1)), len(names)), -1, np.int64)
    owners = columns.parents_of(offsets)
    grid[np.arange(len(codes)) - offsets[owners], owners] = codes
    return _Segments(grid, encoded.dictionary, depth)


def _opening(
    segments: _Segments, codes: np.ndarray, shared: np.ndarray, layout: ObjectLayout
) -> pa.Array:
    """Return the keys of each path behind the `shared` ones, with the brackets of the objects that they open."""
    keys = layout.quoted(segments.names)
    texts = columns.as_array(pa.scalar(""), len(codes))
    depth = segments.depth[codes]
    for level in range(len(segments.codes)):
        chosen = (level >= shared) & (level < depth)
        if not chosen.any():
            continue
        own = segments.codes[level][codes]
        key = keys.take(from_numpy(np.where(chosen, own, 0)))
        bracket = pc.if_else(pa.array(level < depth - 1), "{" + layout.line(level + 2), "")
        added = pc.binary_join_element_wise(key, layout.colon, bracket, "")
        texts = pc.binary_join_element_wise(texts, pc.if_else(pa.array(chosen), added, ""), "")
    return texts


def _closing(counts: np.ndarray, shared: np.ndarray, layout: ObjectLayout) -> pa.Array:
    """Return the brackets that close `counts` objects that lie in `shared` others, the innermost first."""
    most = int((counts + shared).max(initial=0))
    texts = columns.as_array(pa.scalar(""), len(counts))
    for level in range(most, 0, -1):
        chosen = (level <= counts + shared) & (level > shared)
        added = pc.if_else(pa.array(chosen), layout.line(level) + "}", "")
        texts = pc.binary_join_element_wise(texts, added, "")
    return texts


def _commas(shared: np.ndarray, layout: ObjectLayout) -> pa.Array:
    """Return the comma behind a member of an object nested in `shared` others, and the start of the next line."""
    texts = pa.array(
        ["," + layout.line(level + 1) for level in range(int(shared.max(initial=0)) + 1)],
        pa.string(),
    )
    return texts.take(from_numpy(shared))


def _values(entries: Entries, depth: np.ndarray, write: Write) -> pa.Array:
    """Return the values of entries as JSON texts, null for NULL."""
    pieces, places = [], []
    for kind in kinds(entries.types, entries.values):
        own = depth[kind.rows]
        values = read_texts(kind.texts, kind.type)
        for level in np.unique(own).tolist():
            chosen = np.flatnonzero(own == level)
            some = values if len(chosen) == len(own) else values.take(from_numpy(chosen))
            pieces.append(pc.fill_null(columns.text(write(some, kind.type, level)), "null"))
            places.append(kind.rows[chosen])
    return in_rows(pieces, places, len(entries.rows), pa.string())


def plain_texts(array: pa.Array, zone: str) -> pa.Array:
    """Return a column of JSON as toString writes it; NULL stays null. Times that name no zone are shown in `zone`."""

    def write(values: pa.Array, data_type: types.DataType, level: int) -> pa.Array:
        """Write the values of one type."""
        return json_texts(values, data_type, Environment(zone=zone))

    return object_texts(array, write)
