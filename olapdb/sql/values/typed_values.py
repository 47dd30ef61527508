"""Plain rows to Arrow columns, by pyarrow's CSV reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from olapdb.sql.values.scan import PlainRows
from olapdb.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT64,
    STRING,
    UINT64,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Float,
    Integer,
    make_nullable,
    plain,
)

_BLOCK_BYTES = 1 << 20
_NULLS = ["NULL", "null", "Null"]
_DECIMAL_PATTERN = r"^[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$"
_QUOTE = ord("'")
_NULL_LETTERS = np.frombuffer(b"nN", dtype=np.uint8)


@dataclass(frozen=True)
class TypedColumn:
    array: pa.Array
    type: DataType


def read_columns(rows: PlainRows, targets: Sequence[DataType]) -> tuple[TypedColumn, ...] | None:
    """One column for each target; None where a value needs the grammar (`1.5` for an integer, a
    number for a String, `nan`, a word)."""
    wanted: list[DataType] = []
    for index, target in enumerate(targets):
        column = _reading_type(rows.first[:, index], plain(target))
        if column is None:
            return None
        wanted.append(column)
    tables = _read(rows, wanted)
    if tables is None and any(t == INT64 for t in wanted):
        wanted = [
            UINT64 if t == INT64 and _unsigned(targets[i]) else t for i, t in enumerate(wanted)
        ]
        tables = _read(rows, wanted)
    if tables is None:
        return None
    found: list[TypedColumn] = []
    for index, (column_type, target) in enumerate(zip(wanted, targets, strict=True)):
        array = tables.column(index).combine_chunks()
        if column_type == FLOAT32 and pc.any(pc.is_inf(array)).as_py():
            return None  # too large for the column, or written so: the grammar can tell
        if not _texts_are_numbers(array, rows.first[:, index], plain(target)):
            return None
        nullable = array.null_count > 0
        found.append(TypedColumn(array, make_nullable(column_type) if nullable else column_type))
    return tuple(found)


def _unsigned(target: DataType) -> bool:
    inner = plain(target)
    return isinstance(inner, Integer) and inner.bits == 64 and not inner.signed


def _reading_type(first: npt.NDArray[np.uint8], target: DataType) -> DataType | None:
    """How the values are read, by what they begin with and where they go."""
    quoted = first == _QUOTE
    bare = ~quoted
    bare &= ~np.isin(first, _NULL_LETTERS)
    if not bare.any():
        # strings and NULL only; `nan` begins with n too: it then fails to be a NULL
        return _null_only(target) if not quoted.any() else STRING
    if quoted.any():
        return None
    match target:
        case Integer() | Date() | Date32() | DateTime() | DateTime64():
            return INT64
        case Float():
            return target
        case Decimal():
            return STRING
        case Boolean():
            return BOOL
        case _:
            return None


def _null_only(target: DataType) -> DataType:
    return FLOAT64 if isinstance(target, Float) else STRING


def _read(rows: PlainRows, types: Sequence[DataType]) -> pa.Table | None:
    names = [str(index) for index in range(len(types))]
    block_bytes = max(_BLOCK_BYTES, 2 * rows.row_bytes_max)
    try:
        return csv.read_csv(
            pa.BufferReader(rows.csv),
            read_options=csv.ReadOptions(
                column_names=names, block_size=block_bytes, use_threads=len(rows.csv) > block_bytes
            ),
            parse_options=csv.ParseOptions(
                quote_char="'",
                double_quote=True,
                newlines_in_values=rows.has_newlines,
                ignore_empty_lines=False,
            ),
            convert_options=csv.ConvertOptions(
                check_utf8=False,
                column_types={n: t.arrow for n, t in zip(names, types, strict=True)},
                null_values=_NULLS,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["true", "TRUE", "True", "1"],
                false_values=["false", "FALSE", "False", "0"],
            ),
        )
    except pa.ArrowInvalid:
        return None


def _texts_are_numbers(array: pa.Array, first: npt.NDArray[np.uint8], target: DataType) -> bool:
    """A text column whose values were not quoted must be numbers, for a Decimal; and a word that
    begins like NULL must be it."""
    if array.type != pa.string():
        return True
    bare = first != _QUOTE
    if not bare.any():
        return True
    written = array.filter(pa.array(bare))
    if isinstance(target, Decimal):
        matches = pc.match_substring_regex(written.drop_null(), _DECIMAL_PATTERN)
        return bool(pc.all(matches, min_count=0).as_py())
    return bool(written.null_count == len(written))
