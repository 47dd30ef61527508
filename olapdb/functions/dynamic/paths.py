"""Parts of a JSON: the value of a path, the object below one, and values of one type of a Dynamic."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.functions.dynamic.objects import Entries, entries_of, from_entries
from olapdb.functions.dynamic.stored import read_texts, stored_texts
from olapdb.functions.kernels import columns, regexes
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.variants.values import in_rows
from olapdb.types.arrow import DYNAMIC
from olapdb.types.arrow_values import from_numpy


def _at(array: pa.Array, path: str) -> Entries:
    """Return the entries of a column at one path."""
    entries = entries_of(array)
    return _taken(entries, np.flatnonzero(np.asarray(pc.equal(entries.paths, path))))


def _taken(entries: Entries, places: np.ndarray) -> Entries:
    """Return the entries at these positions."""
    indices = from_numpy(places)
    parts = (entries.paths, entries.types, entries.values)
    return Entries(entries.rows[places], *(p.take(indices) for p in parts))


def value_at(array: pa.Array, data_type: types.Json, path: str) -> pa.Array:
    """Return the values at a path, of the type `data_type.type_of(path)`."""
    own = _at(array, path)
    kind = data_type.type_of(path)
    if path not in dict(data_type.typed):
        values = columns.structs_from([own.types, own.values], DYNAMIC)
        return in_rows([values], [own.rows], len(array), DYNAMIC)
    values = read_texts(own.values, kind)
    members = in_rows([values], [own.rows], len(array), kind.arrow)
    return members if types.is_nullable(kind) else defaulted(members, kind)


def has_path(array: pa.Array, wanted: pa.Array) -> pa.Array:
    """Return whether each JSON has an entry at its row's path, or below it; UInt8."""
    entries = entries_of(array)
    rows, names = entries.rows, entries.paths
    has_entry = np.zeros(len(array), np.uint8)
    while len(rows):
        same = np.asarray(pc.equal(names, wanted.take(from_numpy(rows))))
        has_entry[rows[same]] = 1
        inner = np.asarray(pc.match_substring(names, "."))
        rows = rows[inner]
        names = regexes.replaced(names.filter(pa.array(inner)), r"\.[^.]*$", "")
    return columns.from_values(has_entry, pa.uint8())


def defaulted(array: pa.Array, data_type: types.DataType) -> pa.Array:
    """Return values with NULL replaced by the default of the type; of a Nullable type as given."""
    if not array.null_count:
        return array
    rows = np.flatnonzero(np.asarray(array.is_null()))
    filler = columns.as_array(default_value(data_type), len(rows))
    return columns.replaced_rows(array, rows, filler)


def object_at(array: pa.Array, path: str) -> pa.Array:
    """Return the objects at a path: the entries below it, with the path cut off their names."""
    entries = entries_of(array)
    start = f"{path}."
    below = _taken(entries, np.flatnonzero(np.asarray(pc.starts_with(entries.paths, start))))
    names = regexes.replaced(below.paths, f"^{re.escape(start)}", "")
    objects = from_entries(Entries(below.rows, names, below.types, below.values), len(array))
    return with_nulls_of(objects, array)


def with_nulls_of(values: pa.Array, array: pa.Array) -> pa.Array:
    """Return `values` with NULL where `array` is NULL."""
    if not array.null_count:
        return values
    return in_rows(
        [values.filter(array.is_valid())],
        [np.flatnonzero(np.asarray(array.is_valid()))],
        len(array),
        values.type,
    )


def either_at(array: pa.Array, data_type: types.Json, path: str) -> pa.Array:
    """Return the values at a path as a Dynamic; where a row has none, the object below the path if there is one."""
    values = value_at(array, data_type, path)
    below = object_at(array, path)
    sizes = columns.numpy_values(pc.fill_null(pc.list_value_length(below), 0))
    rows = np.flatnonzero(np.asarray(values.is_null()) & (sizes > 0))
    if not len(rows):
        return values
    kind = data_type.below(path)
    texts = stored_texts(below.take(from_numpy(rows)), kind)
    names = columns.as_array(pa.scalar(kind.name), len(rows))
    objects = columns.structs_from([names, texts], DYNAMIC)
    return columns.replaced_rows(values, rows, objects)


def element_of(array: pa.Array, data_type: types.DataType) -> pa.Array:
    """Return the values of one type in a Dynamic; NULL, or empty for a type without NULL, in rows of another type."""
    goal = types.make_nullable(data_type)
    if not len(array):
        return pa.nulls(0, goal.arrow)
    names, texts = columns.struct_fields(array)
    is_own = np.asarray(pc.fill_null(pc.equal(names, data_type.name), False))
    rows = np.flatnonzero(is_own)
    values = read_texts(texts.take(from_numpy(rows)), data_type)
    members = in_rows([values], [rows], len(array), goal.arrow)
    return members if types.is_nullable(goal) else defaulted(members, goal)
