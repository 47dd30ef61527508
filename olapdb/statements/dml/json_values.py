"""A few literal rows behind VALUES, by way of JSON: what small INSERTs are made of.

`(1, 'a'), (2, 'b')` is JSON once its parentheses are brackets and its quotes double.  The reader
of `olapdb.sql.values.csv_values` scans any number of rows at a fixed cost; for a few hundred short ones this
way costs a fifth.  Whatever could mean something else than JSON takes for it is left to that
reader: None is returned, and nothing is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import isfinite

import pyarrow as pa

from olapdb.config import tuning
from olapdb.types import (
    BOOL,
    INT64,
    STRING,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Float,
    Integer,
    plain,
)

_INTEGER_MINUS_ZERO = re.compile(r"-0(?![.0-9])")
"""JSON's integer has no sign then, but a float column's -0 has."""
_TO_JSON = str.maketrans("()'", '[]"')


def read_small_values(
    text: str, targets: Sequence[DataType]
) -> tuple[list[pa.Array], list[DataType]] | None:
    """Columns and their types, as `olapdb.sql.values.csv_values.read_values` gives them; None where the
    text is long, not plain, or has a value that is read otherwise for its column."""
    rows = _rows(text)
    if rows is None:
        return None
    width = len(targets)
    if any(type(row) is not list or len(row) != width for row in rows):
        return None
    arrays, types = [], []
    for values, target in zip(zip(*rows, strict=True), targets, strict=True):
        kinds = set(map(type, values))
        read_as = _type_of(kinds, plain(target))
        if read_as is None or (float in kinds and not all(map(isfinite, values))):
            return None
        try:
            arrays.append(pa.array(values, read_as.arrow))
        except (pa.ArrowInvalid, OverflowError, UnicodeError):  # an integer of another type
            return None
        types.append(read_as)
    return arrays, types


def _rows(text: str) -> list[object] | None:
    """The rows as JSON reads them, where it reads them as ClickHouse would."""
    if len(text) > tuning.JSON_TEXT_MAX or not _is_plain(text):
        return None
    body = text.strip().removesuffix(";")
    try:
        rows: list[object] = json.loads(f"[{body.translate(_TO_JSON)}]", parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    # As many parentheses as rows: so none of them stood inside a string.
    return rows if rows and text.count("(") == text.count(")") == len(rows) else None


def _is_plain(text: str) -> bool:
    """No escapes, and nothing that becomes JSON's own marks."""
    return not any(mark in text for mark in ("\\", '"', "[", "]")) and not (
        "-0" in text and _INTEGER_MINUS_ZERO.search(text)
    )


def _refuse(word: str) -> object:
    raise ValueError(word)  # NaN and Infinity are words of the grammar here


def _type_of(kinds: set[type], target: DataType) -> DataType | None:
    """How the values of a column are read, by what they are and where they go."""
    if kinds == {str}:
        return STRING
    match target:
        case Integer() | Date() | Date32() | DateTime() | DateTime64():
            return INT64 if kinds == {int} else None
        case Float(bits=64):
            return target if kinds <= {int, float} else None
        case Boolean():
            return BOOL if kinds == {bool} else None
        case _:
            return None
