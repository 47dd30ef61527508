"""Values of Dynamic and JSON where they leave the engine: texts in Arrow data, and Python's objects."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from olapdb import types
from olapdb.functions.dynamic.objects import entries_of
from olapdb.functions.dynamic.render import plain_texts
from olapdb.functions.dynamic.values import TypedRows, kinds, kinds_of
from olapdb.functions.kernels import columns
from olapdb.functions.strings.rendering import display_array
from olapdb.types.python_values import python_values as plain_values

_PARTS = (types.Dynamic, types.Json)


def with_texts(array: pa.Array, data_type: types.DataType) -> tuple[pa.Array, types.DataType]:
    """Return a column with texts in place of values of JSON and Dynamic, and its type. Times are in UTC.

    The value of a Dynamic is as toString writes it, a JSON its object."""
    if not types.any_part(data_type, _PARTS):
        return array, data_type
    match types.plain(data_type):
        case types.Json():
            text: types.DataType = types.STRING
            if types.is_nullable(data_type):
                text = types.Nullable(text)
            return plain_texts(array, "UTC"), text
        case types.Dynamic():
            return display_array(array, data_type), types.Nullable(types.STRING)
        case types.Array(inner):
            offsets, elements = columns.elements_of(array)
            texts, kind = with_texts(elements, inner)
            lists = columns.lists_from(offsets, texts, columns.validity(array))
            return lists, types.Array(kind)
        case types.Map(key, value):
            offsets = columns.offsets_of(array)
            entries = slice(int(offsets[0]), int(offsets[-1]))
            keys, key_type = with_texts(array.keys[entries], key)
            values, value_type = with_texts(array.items[entries], value)
            target = types.Map(key_type, value_type)
            return columns.maps_from(offsets - offsets[0], keys, values, target.arrow), target
        case types.Tuple(elements, names):
            parts = zip(columns.struct_fields(array), elements, strict=True)
            converted = [with_texts(part, kind) for part, kind in parts]
            whole: types.DataType = types.Tuple(tuple(kind for _, kind in converted), names)
            fields = [field for field, _ in converted]
            structs = columns.structs_from(fields, whole.arrow, columns.validity(array))
            return structs, types.Nullable(whole) if types.is_nullable(data_type) else whole
        case _:
            return array, data_type


def python_values(array: pa.Array, data_type: types.DataType, zone: str | None) -> list[object]:
    """Return a column as Python values: a JSON is a dict of dicts, a value of a Dynamic what one of its type is."""
    plain = types.plain(data_type)
    if not types.any_part(plain, _PARTS):
        return plain_values(array, data_type, zone)
    valid = array.is_valid().to_pylist()
    match plain:
        case types.Json():
            listed: Sequence[object] = _dicts(array, zone)
        case types.Dynamic():
            listed = _by_kind(kinds_of(array), len(array), zone)
        case types.Array(inner):
            offsets, elements = columns.elements_of(array)
            items = python_values(elements, inner, zone)
            bounds = offsets.tolist()
            listed = [items[a:b] for a, b in itertools.pairwise(bounds)]
        case types.Map(key, value):
            offsets = columns.offsets_of(array)
            entries = slice(int(offsets[0]), int(offsets[-1]))
            keys = python_values(array.keys[entries], key, zone)
            values = python_values(array.items[entries], value, zone)
            bounds = (offsets - offsets[0]).tolist()
            listed = [
                dict(zip(keys[a:b], values[a:b], strict=True))
                for a, b in itertools.pairwise(bounds)
            ]
        case types.Tuple(elements=kinds_of_elements):
            parts = zip(columns.struct_fields(array), kinds_of_elements, strict=True)
            listed = list(zip(*(python_values(p, kind, zone) for p, kind in parts), strict=True))
        case _:
            listed = plain_values(array, data_type, zone)
    return [value if is_valid else None for value, is_valid in zip(listed, valid, strict=True)]


def _by_kind(typed_rows: Iterable[TypedRows], count: int, zone: str | None) -> list[object]:
    """Return the values of several types in `count` rows as Python values; None for a row without any."""
    result = np.full(count, None, object)
    for kind in typed_rows:
        own = python_values(kind.values(), types.make_nullable(kind.type), zone)
        result[kind.rows] = np.fromiter(own, object, len(own))
    return list(result)


def _dicts(array: pa.Array, zone: str | None) -> list[dict[str, object]]:
    """Return values of JSON as dicts. A path below another path that has a value
    is one key, with its dots."""
    entries = entries_of(array)
    values = _by_kind(kinds(entries.types, entries.values), len(entries.rows), zone)
    objects: list[dict[str, object]] = [{} for _ in range(len(array))]
    for row, path, value in zip(
        entries.rows.tolist(), entries.paths.to_pylist(), values, strict=True
    ):
        place, (*outer, last) = objects[row], path.split(".")
        for key in outer:
            inner = place.setdefault(key, {})
            if not isinstance(inner, dict):
                place, last = objects[row], path
                break
            place = inner
        place[last] = value
    return objects
