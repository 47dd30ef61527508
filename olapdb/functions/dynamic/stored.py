"""The texts in which a Dynamic and a JSON keep their values.

A text reads back as the value that it was: times are in UTC, floats have their shortest digits, strings are as
they are. What holds a Dynamic or a JSON has its Arrow form as text: tuples of type and value."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.errors import NotSupportedError
from olapdb.functions.aggregates.registry import state_representation
from olapdb.functions.base import Environment
from olapdb.functions.casts import cast
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.strings.rendering import display_array

_DYNAMIC = types.Nullable(
    types.Tuple((types.STRING, types.Nullable(types.STRING)), ("type", "value"))
)
_JSON = types.Array(
    types.Tuple(
        (types.STRING, types.STRING, types.Nullable(types.STRING)), ("path", "type", "value")
    )
)
_OPTIONAL_JSON = types.Nullable(types.Tuple((_JSON,), ("paths",)))
"""The form of an object within an array that may be NULL: an array itself never is."""
_UTC = Environment(zone="UTC")


def type_named(name: str) -> types.DataType:
    """Return the type that a value's type name, as stored, denotes."""
    return _type_named(name)


@lru_cache(maxsize=4096)
def _type_named(name: str) -> types.DataType:
    """Parse the name of a type."""
    return types.parse_type(name, state_representation)


def storable(data_type: types.DataType) -> types.DataType:
    """Return the type as which values of a type are written and read: times in UTC, a Dynamic and a JSON as
    their Arrow form. Raises NotSupportedError for a Variant within, and for a state."""
    match data_type:
        case types.Nullable(types.Json()):
            return _OPTIONAL_JSON
        case types.Nullable(inner):
            return types.make_nullable(storable(inner))
        case types.LowCardinality(inner) | types.SimpleAggregateFunction(inner=inner):
            return storable(inner)
        case types.DateTime():
            return types.DateTime("UTC")
        case types.DateTime64(precision):
            return types.DateTime64(precision, "UTC")
        case types.Array(inner):
            return types.Array(storable(inner))
        case types.Map(key, value):
            return types.Map(storable(key), storable(value))
        case types.Tuple(elements):
            return types.Tuple(tuple(map(storable, elements)), data_type.names)
        case types.Dynamic():
            return _DYNAMIC
        case types.Json():
            return _JSON
        case types.Nothing():
            return types.STRING  # of an empty array: no text is read as one
        case types.Variant() | types.AggregateFunction():
            raise NotSupportedError(
                f"A Dynamic or JSON with a value that holds {data_type} is not supported.",
                hint="Cast the inner values to Dynamic, or to one type.",
            )
        case _:
            return data_type


def stored_texts(array: pa.Array, data_type: types.DataType) -> pa.Array:
    """Return values of a type as the texts that keep them; NULL stays null. Raises NotSupportedError."""
    plain = types.plain(data_type)
    if isinstance(plain, types.String):
        return array
    target = types.plain(storable(plain))
    return columns.text(display_array(_as_stored(array, plain), target))


def read_texts(texts: pa.Array, data_type: types.DataType) -> pa.Array:
    """Return the values that texts keep, as values of their type; NULL stays null."""
    plain = types.plain(data_type)
    if isinstance(plain, types.String):
        return texts
    target = types.plain(storable(plain))
    source: types.DataType = types.Nullable(types.STRING)
    goal = types.make_nullable(target)
    if isinstance(target, types.Array | types.Map):
        texts = pc.fill_null(texts, "[]" if isinstance(target, types.Array) else "{}")
        source, goal = types.STRING, target
    read = columns.single(cast.store_column(texts, source, goal, _UTC))
    return _from_stored(read, plain)


def _as_stored(array: pa.Array, data_type: types.DataType) -> pa.Array:
    """Return values of a type in the Arrow form of `storable`."""
    if isinstance(data_type, types.Nullable) and isinstance(data_type.inner, types.Json):
        fields = [columns.retype(array.fill_null(pa.scalar([], array.type)), _JSON.arrow)]
        valid = columns.validity(array)
        return columns.structs_from(fields, types.plain(_OPTIONAL_JSON).arrow, valid)
    return _changed(array, data_type, storable(data_type), _as_stored)


def _from_stored(array: pa.Array, data_type: types.DataType) -> pa.Array:
    """Return values in the Arrow form of `storable` as those of a type."""
    if isinstance(data_type, types.Nullable) and isinstance(data_type.inner, types.Json):
        return columns.retype(columns.struct_fields(array)[0], data_type.arrow)
    return _changed(array, data_type, data_type, _from_stored)


def _changed(
    array: pa.Array,
    data_type: types.DataType,
    target: types.DataType,
    change: Callable[[pa.Array, types.DataType], pa.Array],
) -> pa.Array:
    """Return values of `data_type` in the Arrow form of `target`: `change` converts the elements of containers."""
    if array.type == target.arrow:
        return array
    if pa.types.is_timestamp(array.type):
        return columns.view(array, target.arrow)
    match types.plain(data_type):
        case types.Array(inner):
            offsets, elements = columns.elements_of(array)
            return columns.retype(
                columns.lists_from(offsets, change(elements, inner)), target.arrow
            )
        case types.Map(key, value):
            offsets = columns.offsets_of(array)
            start, stop = int(offsets[0]), int(offsets[-1])
            keys = change(array.keys.slice(start, stop - start), key)
            values = change(array.items.slice(start, stop - start), value)
            return columns.maps_from(offsets - start, keys, values, target.arrow)
        case types.Tuple(elements):
            fields = zip(columns.struct_fields(array), elements, strict=True)
            parts = [change(field, element) for field, element in fields]
            return columns.structs_from(
                parts, target.arrow, columns.validity(array), rows=len(array)
            )
        case types.Nothing():
            return pa.nulls(len(array), target.arrow)
        case _:
            return array.cast(target.arrow)


def default_paths(typed: tuple[tuple[str, types.DataType], ...]) -> list[dict[str, str | None]]:
    """Return the paths that a JSON has if its text names none: those with a declared type, with their defaults, as
    Python values."""
    return [{"path": path, "type": t.name, "value": default_text(t)} for path, t in typed]


def default_text(data_type: types.DataType) -> str | None:
    """Return the text that keeps the default of a type; None if the default is NULL."""
    value = columns.as_array(default_value(data_type), 1)
    text: str | None = stored_texts(value, data_type)[0].as_py()
    return text
