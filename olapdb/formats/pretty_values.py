"""Values as formats for people show them, and the readings of large numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.config import Settings
from olapdb.formats.base import Header
from olapdb.formats.json_values import NULL_WORD, JsonStyle, json_texts
from olapdb.formats.texts import joined_rows, quoted, shown, with_null
from olapdb.functions import resolve_scalar
from olapdb.functions.base import Argument, Environment
from olapdb.functions.kernels import columns


def cells(
    batch: pa.RecordBatch, header: Header, as_json: bool = False, *, indented: bool = False
) -> list[list[str]]:
    """Format the values of the batch as texts, column by column. `as_json`: named tuples are JSON, if
    output_format_pretty_named_tuples_as_json is on. `indented`: values of type JSON take a line for each path."""
    as_json = as_json and header.settings.boolean("output_format_pretty_named_tuples_as_json")
    ascii_only = header.settings.text("output_format_pretty_grid_charset") == "ASCII"
    null = "NULL" if ascii_only else NULL_WORD
    texts = []
    for column, data_type in zip(batch.columns, header.types, strict=True):
        if indented and isinstance(types.plain(data_type), types.Json):
            style = JsonStyle(replace(header, settings=Settings()), "    ")
            texts_of_rows = json_texts(column, types.plain(data_type), style)
            written = pc.if_else(column.is_valid(), texts_of_rows, pa.scalar(None, pa.string()))
        else:
            written = (_with_json if as_json else shown)(column, data_type, header)
        values = columns.binary(written).to_pylist()
        texts.append([null if v is None else v.decode("utf-8", "surrogateescape") for v in values])
    return texts


def _has_names(data_type: types.DataType) -> bool:
    """Return whether the type is or contains a named tuple."""
    match types.plain(data_type):
        case types.Tuple(elements=elements, names=names):
            return bool(names) or any(map(_has_names, elements))
        case types.Array(inner):
            return _has_names(inner)
        case types.Map(value=value):
            return _has_names(value)
        case _:
            return False


def _with_json(column: pa.Array, data_type: types.DataType, header: Header) -> pa.Array:
    """Return values as texts, tuples with names as JSON wherever they stand; NULL is null."""
    inner = types.plain(data_type)
    if not _has_names(inner):
        return shown(column, data_type, header)
    valid = columns.validity(column)
    if valid is not None:
        present = column.filter(pa.array(valid))
        return columns.scatter(_with_json(present, inner, header), np.asarray(valid))
    match inner:
        case types.Array(element):
            offsets, elements = columns.elements_of(column)
            return _list(offsets, _nested(elements, element, header), "[", "]")
        case types.Map(key, value):
            offsets = columns.offsets_of(column)
            entries = slice(int(offsets[0]), int(offsets[-1]))
            keys = quoted(column.keys[entries], key, header)
            values = _nested(column.items[entries], value, header)
            pairs = pc.binary_join_element_wise(keys, values, ":")
            return _list(offsets - offsets[0], pairs, "{", "}")
        case types.Tuple(elements=elements, names=()):
            parts = zip(columns.struct_fields(column), elements, strict=True)
            return joined_rows([_nested(part, kind, header) for part, kind in parts], ",", "(", ")")
        case _:
            style = JsonStyle(replace(header, settings=Settings()), "  ", deep_indent=" ")
            return json_texts(column, inner, style)


def _nested(column: pa.Array, data_type: types.DataType, header: Header) -> pa.Array:
    """Format the elements of a container as texts."""
    if not _has_names(data_type):
        return quoted(column, data_type, header)
    return with_null(_with_json(column, data_type, header), "NULL")


def _list(offsets: np.ndarray, texts: pa.Array, opening: str, closing: str) -> pa.Array:
    """Join the texts of each list with commas between brackets."""
    inside = pc.binary_join(columns.lists_from(offsets, texts), ",")
    return pc.binary_join_element_wise(opening, inside, closing, "")


def readings(batch: pa.RecordBatch, header: Header) -> list[list[str]]:
    """Return for each value, column by column, the comment that makes a large number readable; "" for other values."""
    large = header.settings.integer("output_format_pretty_single_large_number_tip_threshold")
    return [
        _readings_of(column, types.plain(data_type), large)
        for column, data_type in zip(batch.columns, header.types, strict=True)
    ]


def _readings_of(column: pa.Array, data_type: types.DataType, large: int) -> list[str]:
    """Return the comments for the numbers of a column above `large`; "" for others. A `large` of 0 turns comments
    off."""
    if not large or not isinstance(data_type, types.Integer | types.Float | types.Decimal):
        return [""] * len(column)
    if data_type == types.UINT64:
        column = column.cast(pa.int64(), safe=False)  # as ClickHouse reads it here
    numbers = [None if value is None else float(value) for value in column.to_pylist()]
    readable = resolve_scalar("formatReadableQuantity", [Argument(types.FLOAT64)])
    texts = readable.kernel([pa.array(numbers, pa.float64())], len(column), Environment())
    return [
        f" -- {text}" if number is not None and large < abs(number) < float("inf") else ""
        for number, text in zip(numbers, texts.to_pylist(), strict=True)
    ]
