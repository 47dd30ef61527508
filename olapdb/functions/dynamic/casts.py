"""CAST to and from Dynamic and JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.functions.base import Environment
from olapdb.functions.casts.cast import cast_column, cast_or_null
from olapdb.functions.dynamic.objects import objects_of_texts
from olapdb.functions.dynamic.paths import defaulted
from olapdb.functions.dynamic.render import plain_texts
from olapdb.functions.dynamic.times import FINE_TIME, TIME, days_and_times, read_times
from olapdb.functions.dynamic.values import gathered, joined, of_type
from olapdb.functions.json.write import json_texts
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.escapes import unescaped
from olapdb.types.arrow_values import from_numpy

Convert: TypeAlias = Callable[[pa.Array, types.DataType, types.DataType], pa.Array]
"""A cast: (array, source, target) to the converted array."""
_OBJECTS = (types.Map, types.Tuple, types.Json)
_INFERS = "cast_string_to_dynamic_use_inference"


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
        if isinstance(inner, types.String) and _INFERS in environment.changed:
            return of_fields(array, environment)
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


def of_literals(array: pa.Array, source: types.DataType, environment: Environment) -> pa.Array:
    """Return constants of an INSERT, all of one type, as a Dynamic.

    Whole numbers become Int64, or UInt64 where they need it; texts that are dates or times become such, also within
    arrays, tuples and maps."""
    target = _literal_type(source)
    plain = types.plain(source)
    if isinstance(plain, types.String):
        return of_texts(array, environment)
    if isinstance(plain, types.Array) and isinstance(plain.inner, types.Nothing):
        return of_type(
            pc.if_else(array.is_valid(), "[]", None), types.STRING
        )  # no element says a type
    if target == source:
        return of_type(array, source)
    return of_type(
        columns.single(cast_column(array, source, target, environment, strict=True)), target
    )


def _literal_type(source: types.DataType) -> types.DataType:
    """Return the type that a literal has in a Dynamic."""
    match source:
        case types.Nullable(inner):
            return types.make_nullable(_literal_type(inner))
        case types.Integer(bits, signed):
            return source if bits == 64 and not signed else types.INT64
        case types.Array(inner):
            return types.Array(_literal_type(inner))
        case types.Map(key, value):
            return types.Map(_literal_type(key), _literal_type(value))
        case types.Tuple(elements):
            return types.Tuple(tuple(map(_literal_type, elements)), source.names)
        case _:
            return types.stored_type(source)


def of_texts(texts: pa.Array, environment: Environment) -> pa.Array:
    """Return texts as a Dynamic: those that are dates or times as such, others as String; NULL stays NULL."""
    valid = columns.validity(texts)
    present = texts if valid is None else texts.filter(pa.array(valid))
    flags = days_and_times(columns.text(present), environment)
    pieces, places = [], []
    rest = np.ones(len(present), bool)
    for is_own, kind in zip(flags, (types.DATE, TIME, FINE_TIME), strict=True):
        rows = np.flatnonzero(is_own)
        if len(rows):
            rest[rows] = False
            read = read_times(present.take(from_numpy(rows)), kind, environment)
            pieces.append(of_type(read, kind))
            places.append(rows)
    rows = np.flatnonzero(rest)
    pieces.append(of_type(present.take(from_numpy(rows)), types.STRING))
    places.append(rows)
    parsed = joined(pieces, places, len(present))
    return parsed if valid is None else columns.scatter(parsed, valid)


def of_fields(texts: pa.Array, environment: Environment) -> pa.Array:
    """Return the fields of a text format as a Dynamic, each as the first type that reads it: a number, Bool, date,
    time, an array of numbers or of quoted texts, else String; NULL stays NULL."""
    valid = columns.validity(texts)
    present = texts if valid is None else texts.filter(pa.array(valid))
    rest = np.ones(len(present), bool)
    pieces, places = [], []
    for kind, pattern in _FIELDS:
        rows = np.flatnonzero(rest & np.asarray(pc.match_substring_regex(present, pattern)))
        if not len(rows):
            continue
        own = present.take(from_numpy(rows))
        read = cast_or_null(own, types.STRING, kind, environment)
        is_read = np.asarray(read.is_valid())
        rest[rows[is_read]] = False
        pieces.append(of_type(read.filter(pa.array(is_read)), kind))
        places.append(rows[is_read])
    rows = np.flatnonzero(rest)
    pieces.append(of_texts(present.take(from_numpy(rows)), environment))
    places.append(rows)
    parsed = joined(pieces, places, len(present))
    return parsed if valid is None else columns.scatter(parsed, valid)


_NUMBER = r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?"
_TEXT = r"'([^'\\]|\\.)*'"
_FIELDS: tuple[tuple[types.DataType, str], ...] = (
    (types.INT64, r"^-?[0-9]+$"),
    (types.UINT64, r"^[0-9]{19,20}$"),
    (types.FLOAT64, f"^{_NUMBER}$"),
    (types.BOOL, "^(true|false)$"),
    (types.Array(types.INT64), r"^\[-?[0-9]{1,18}(, *-?[0-9]{1,18})*\]$"),
    (types.Array(types.FLOAT64), rf"^\[{_NUMBER}(, *{_NUMBER})*\]$"),
    (types.Array(types.STRING), rf"^\[{_TEXT}(, *{_TEXT})*\]$"),
)
"""Types of fields, and what their texts look like."""
_INTEGER = r"^-?[0-9]{1,18}$"
_FLOAT = r"^-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$"


def of_members(texts: pa.Array) -> pa.Array:
    """Return the members of the text of an array, tuple or map as a Dynamic: quoted ones as String, date or time,
    others as Int64, Float64 or Bool.

    Raises IncorrectData, with its row, for any other member."""
    quoted = np.asarray(pc.starts_with(texts, "'"))
    whole = np.asarray(pc.match_substring_regex(texts, _INTEGER))
    flags = [
        (quoted, None),
        (whole, types.INT64),
        (np.asarray(pc.match_substring_regex(texts, _FLOAT)) & ~whole, types.FLOAT64),
        (np.asarray(pc.is_in(texts, pa.array(["true", "false"]))), types.BOOL),
    ]
    unread = ~np.logical_or.reduce([flag for flag, _ in flags])
    if unread.any():
        row = int(np.argmax(unread))
        raise errors.IncorrectData(
            f"{texts[row].as_py()!r} within a text is no number, Bool or text in quotes.",
            hint="Write arrays within an array as JSON, or use INSERT … SELECT.",
        ).at_row(row)
    pieces, places = [], []
    for flag, kind in flags:
        rows = np.flatnonzero(flag)
        if not len(rows):
            continue
        own = texts.take(from_numpy(rows))
        if kind is None:
            inner = pc.replace_substring(pc.utf8_slice_codeunits(own, 1, -1), "''", "'")
            pieces.append(of_texts(unescaped(inner), Environment()))
        else:
            read = own.cast(kind.arrow) if kind != types.BOOL else pc.equal(own, "true")
            pieces.append(of_type(read, kind))
        places.append(rows)
    return joined(pieces, places, len(texts))


def refuse_json(source: types.DataType, target: types.DataType) -> None:
    """Raise TypeMismatch for a cast of JSON to a type that is neither String, Dynamic nor JSON."""
    raise errors.TypeMismatch(
        f"Cannot convert {source} to {target}.",
        hint="Take a path, j.path::Type, or JSONExtract(toString(j), 'Type').",
    )


def _cast_kind(
    values: pa.Array, source: types.DataType, target: types.DataType, cast: Convert
) -> pa.Array:
    """Return the values of one type in a Dynamic, cast by `cast` to the target."""
    return columns.retype(cast(values, source, target), target.arrow)


def _with_nulls(array: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return the column with `change` applied to its values; NULL stays NULL. An error of `change` names the
    column's row."""
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
    """Return values without NULL as JSON: texts are parsed; maps and tuples with names become objects. Raises
    TypeMismatch for other types."""
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
    """Return a column of JSON as another JSON type: as given if both declare the same typed paths and the target
    skips none; else its text is read again."""
    if source.typed == target.typed and not (target.skipped or target.skipped_patterns):
        return array
    return objects_of_texts(plain_texts(array, environment.zone), target, environment)
