"""Plain rows to Arrow columns, by pyarrow's CSV reader."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from olapdb.native.literals import PlainRows
from olapdb.records import dataclass
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
    Enum,
    Float,
    Integer,
    Time,
    Time64,
    make_nullable,
    plain,
)
from olapdb.types.arrow_values import from_numpy

_BLOCK_BYTES = 1 << 20
_NULLS = ["NULL", "null", "Null"]
_DECIMAL_PATTERN = r"^[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$"
_QUOTE = ord("'")
_NULL_LETTERS = np.frombuffer(b"nN", dtype=np.uint8)


@dataclass(frozen=True)
class TypedColumn:
    """A column as it was read, and its type: see `LiteralRows`."""

    array: pa.Array
    type: DataType


def read_columns(rows: PlainRows, targets: Sequence[DataType]) -> tuple[TypedColumn, ...] | None:
    """Read one column for each target type.

    Returns None where a value needs the grammar: `1.5` for an integer, a number for a String,
    `nan`, a word.
    """
    column_types: list[DataType] = []
    for index, target in enumerate(targets):
        column_type = _reading_type(rows.first[:, index], plain(target))
        if column_type is None:
            return None
        column_types.append(column_type)
    table = _read_csv(rows, column_types)
    if table is None and INT64 in column_types:
        column_types = [
            UINT64 if column_type == INT64 and _is_uint64(target) else column_type
            for column_type, target in zip(column_types, targets, strict=True)
        ]
        table = _read_csv(rows, column_types)
    if table is None:
        return None
    columns: list[TypedColumn] = []
    for index, (column_type, target) in enumerate(zip(column_types, targets, strict=True)):
        array = table.column(index).combine_chunks()
        if column_type == FLOAT32 and pc.any(pc.is_inf(array)).as_py():
            return None  # too large for the column, or `inf`: the grammar distinguishes them
        if not _texts_are_numbers(array, rows.first[:, index], plain(target)):
            return None
        nullable = array.null_count > 0
        columns.append(TypedColumn(array, make_nullable(column_type) if nullable else column_type))
    return tuple(columns)


def _is_uint64(target: DataType) -> bool:
    """Return whether a column's type is UInt64 or Nullable(UInt64)."""
    inner = plain(target)
    return isinstance(inner, Integer) and inner.bits == 64 and not inner.signed


def _reading_type(first: npt.NDArray[np.uint8], target: DataType) -> DataType | None:
    """Choose the type to read a column as; None where its values need the grammar.

    `first` holds the first byte of each value, `target` is the type without Nullable.
    """
    quoted = first == _QUOTE
    bare = ~quoted
    bare &= ~np.isin(first, _NULL_LETTERS)
    if not bare.any():
        # strings and NULL only; `nan` begins with n too: it then fails to be a NULL
        only_null_type = FLOAT64 if isinstance(target, Float) else STRING
        return STRING if quoted.any() else only_null_type
    if quoted.any():
        return None
    match target:
        case Integer() | Enum() | Date() | Date32() | DateTime() | DateTime64() | Time() | Time64():
            return INT64
        case Float():
            return target
        case Decimal():
            return STRING
        case Boolean():
            return BOOL
        case _:
            return None


def _read_csv(rows: PlainRows, types: Sequence[DataType]) -> pa.Table | None:
    """Read the CSV with these column types; None where a value does not fit its type."""
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
    """Return whether the unquoted values of a text column are numbers or NULL.

    Numbers are allowed for a Decimal only, which reads their text.
    """
    if array.type != pa.string():
        return True
    bare = first != _QUOTE
    if not bare.any():
        return True
    written = array.filter(from_numpy(bare))
    if isinstance(target, Decimal):
        matches = pc.match_substring_regex(written.drop_null(), _DECIMAL_PATTERN)
        return bool(pc.all(matches, min_count=0).as_py())
    return bool(written.null_count == len(written))
