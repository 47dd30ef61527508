"""Keys by which values of Dynamic and JSON are ordered and compared.

A key is a text; texts in the order of bytes are the values in ClickHouse's order. Values of a Dynamic are ordered
by the name of their type, then by value; a JSON by its paths in order, each by name, type and value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.functions.dynamic.objects import entries_of
from olapdb.functions.dynamic.stored import stored_texts
from olapdb.functions.dynamic.values import kinds, kinds_of
from olapdb.functions.kernels import columns
from olapdb.functions.variants.values import in_rows

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_FIXED = (
    *(types.Integer, types.Float, types.Boolean, types.Date, types.Date32),
    *(types.DateTime, types.DateTime64, types.Time, types.Time64, types.IPv4),
)
_ENDING = "\0\0"


def order_keys(array: pa.Array, data_type: types.DataType) -> pa.Array:
    """Return the texts by which values of the type are ordered and compared: their order in bytes is the values'
    order. NULL stays null."""
    plain = types.plain(data_type)
    match plain:
        case types.Dynamic():
            return _of_dynamic(array)
        case types.Json():
            return _of_json(array)
        case types.Array(inner):
            offsets, elements = columns.elements_of(array)
            keys = _ended(order_keys(elements, inner))
            joined = pc.binary_join(columns.lists_from(offsets, pc.fill_null(keys, "\x02")), "")
            return _with_nulls(joined, array)
        case types.String() | types.FixedString():
            return columns.text(array)
        case _ if isinstance(plain, _FIXED):
            return _with_nulls(_hexadecimal(_unsigned(columns.numpy_values(array))), array)
        case _:
            return stored_texts(array, plain)


def _of_dynamic(array: pa.Array) -> pa.Array:
    """Return the keys of values of a Dynamic."""
    pieces, rows = [], []
    for kind in kinds_of(array):
        keys = order_keys(kind.values(), kind.type)
        pieces.append(pc.binary_join_element_wise(kind.type.name, columns.text(keys), "\0"))
        rows.append(kind.rows)
    return in_rows(pieces, rows, len(array), pa.string())


def _of_json(array: pa.Array) -> pa.Array:
    """Return the keys of values of JSON."""
    entries = entries_of(array)
    pieces, rows = [], []
    for kind in kinds(entries.types, entries.values):
        keys = pc.fill_null(columns.text(order_keys(kind.values(), kind.type)), "")
        pieces.append(pc.binary_join_element_wise(kind.type.name, keys, "\0"))
        rows.append(kind.rows)
    values = in_rows(pieces, rows, len(entries.rows), pa.string())
    parts = [_ended(entries.paths), _ended(values)]
    joined = pc.binary_join_element_wise(*parts, "")
    counts = np.bincount(entries.rows, minlength=len(array))
    lists = columns.lists_from(columns.offsets_from_counts(counts), joined)
    return _with_nulls(pc.binary_join(lists, ""), array)


def _ended(texts: pa.Array) -> pa.Array:
    """Return texts escaped and ended by a mark below any character, so that concatenated texts compare as lists of
    texts do."""
    escaped = pc.replace_substring(texts, "\0", "\0\1")
    return pc.binary_join_element_wise("\1", escaped, _ENDING, "")


def _with_nulls(keys: pa.Array, array: pa.Array) -> pa.Array:
    """Return the keys with NULL where the column is NULL."""
    if not array.null_count:
        return keys
    return pc.if_else(array.is_valid(), keys, pa.scalar(None, pa.string()))


def _unsigned(values: np.ndarray) -> np.ndarray:
    """Return numbers as unsigned 64-bit integers in the same order; NaN is the largest."""
    if values.dtype.kind == "f":
        bits = (values.astype(np.float64) + 0.0).view(np.uint64)
        sign = np.uint64(1) << np.uint64(63)
        return np.where(bits & sign, ~bits, bits | sign)
    if values.dtype.kind == "u":
        return values.astype(np.uint64)
    return values.astype(np.int64).view(np.uint64) ^ (np.uint64(1) << np.uint64(63))


def _hexadecimal(values: np.ndarray) -> pa.Array:
    """Return unsigned numbers as 16 hexadecimal digits each."""
    data = values.astype(">u8").view(np.uint8)
    digits = np.empty(len(data) * 2, np.uint8)
    digits[::2], digits[1::2] = _HEX[data >> 4], _HEX[data & 15]
    return columns.strings_from(np.arange(len(values) + 1, dtype=np.int64) * 16, digits)
