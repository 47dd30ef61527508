"""CAST to and from Dynamic and JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb import errors, types
from olapdb.functions.base import Environment
from olapdb.functions.dynamic.objects import objects_of_texts
from olapdb.functions.dynamic.paths import defaulted
from olapdb.functions.dynamic.render import plain_texts
from olapdb.functions.dynamic.values import gathered, of_type
from olapdb.functions.json.write import json_texts
from olapdb.functions.kernels import columns

Convert: TypeAlias = Callable[[pa.Array, types.DataType, types.DataType], pa.Array]
"""A cast: (array, source, target) to the converted array."""
_OBJECTS = (types.Map, types.Tuple, types.Json)


def takes(source: types.DataType, target: types.DataType) -> bool:
    """Return whether one of two plain types is Dynamic or JSON, so that this module casts."""
    return isinstance(source, types.Dynamic | types.Json) or isinstance(
        target, types.Dynamic | types.Json
    )


def convert(
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    cast: Convert,
    environment: Environment,
) -> pa.Array:
    """Return a column as values of `target`, where one of the types is Dynamic or JSON.

    `cast` converts the values of a type. NULL of a Dynamic becomes the default of a target without NULL. Raises
    CannotConvertType, TypeMismatch and IncorrectData."""
    inner, outer = types.plain(source), types.plain(target)
    if isinstance(outer, types.Dynamic):
        return of_type(array, source)
    if isinstance(inner, types.Dynamic):
        read = gathered(array, lambda v, t: _cast_kind(v, t, target, cast), target.arrow)
        return read if types.is_nullable(target) else defaulted(read, outer)
    if array.null_count and not types.is_nullable(target):
        raise errors.CannotConvertType(
            f"Cannot convert NULL to a type that is not Nullable: {target}."
        ).at_row(int(np.argmax(np.asarray(array.is_null()))))
    if isinstance(outer, types.Json):
        return _with_nulls(array, lambda values: _to_json(values, inner, outer, environment))
    assert isinstance(inner, types.Json)
    if not isinstance(outer, types.String):
        refuse_json(inner, outer)
    return plain_texts(array, environment.zone)


def refuse_json(source: types.DataType, target: types.DataType) -> None:
    """Raise TypeMismatch for a cast of JSON to a type that is neither String, Dynamic nor JSON."""
    raise errors.TypeMismatch(
        f"Cannot convert {source} to {target}.",
        hint="Take a path, j.path::Type, or JSONExtract(toString(j), 'Type').",
    )


def _cast_kind(
    values: pa.Array, source: types.DataType, target: types.DataType, cast: Convert
) -> pa.Array:
    """Return the values of one type of a Dynamic as those of the target."""
    return columns.retype(cast(values, source, target), target.arrow)


def _with_nulls(array: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return what `change` makes of the values, NULL where the column is NULL. An error names the column's row."""
    valid = columns.validity(array)
    if valid is None:
        return change(array)
    try:
        return columns.scatter(change(array.filter(pa.array(valid))), valid)
    except errors.DataError as error:
        if error.row is not None:
            error.row = int(np.flatnonzero(valid)[error.row])
        raise


def _to_json(
    array: pa.Array, source: types.DataType, target: types.Json, environment: Environment
) -> pa.Array:
    """Return values without NULL as JSON: texts as what they say, maps and tuples as their objects."""
    if isinstance(source, types.Nothing):
        return pa.nulls(len(array), target.arrow)
    if isinstance(source, types.String | types.FixedString):
        return objects_of_texts(columns.unpadded(array), target, environment)
    if isinstance(source, types.Json):
        return _between(array, source, target, environment)
    if isinstance(source, _OBJECTS):
        return objects_of_texts(json_texts(array, source, environment), target, environment)
    raise errors.TypeMismatch(
        f"Cannot convert {source} to {target}.",
        hint="A text of JSON, a Map and a Tuple with names can be converted.",
    )


def _between(
    array: pa.Array, source: types.Json, target: types.Json, environment: Environment
) -> pa.Array:
    """Return a JSON as one of another type, which reads its text, as ClickHouse does; the same paths with types
    are the same values."""
    if source.typed == target.typed and not (target.skipped or target.skipped_patterns):
        return array
    return objects_of_texts(plain_texts(array, environment.zone), target, environment)
