"""The rows of a small VALUES, read by a JSON parser: the fast path of small INSERTs.

`(1, 'a'), (2, 'b')` is JSON once parentheses become brackets and quotes double quotes.
`olapdb.sql.values.csv_values` reads any number of rows at a fixed cost. For a few hundred short
rows JSON needs a fifth of the time. A text that JSON could read otherwise than ClickHouse returns
None and goes to that reader.
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
    Enum,
    Float,
    Integer,
    Time,
    Time64,
    plain,
)
from olapdb.types.arrow_values import array_of

_INTEGER_MINUS_ZERO = re.compile(r"-0(?![.0-9])")
"""An integer -0: JSON drops the sign, which a float column keeps."""
_TO_JSON = str.maketrans("()'", '[]"')


def read_small_values(
    text: str, targets: Sequence[DataType]
) -> tuple[list[pa.Array], list[DataType]] | None:
    """Parse the rows of VALUES; return one array for each target column, and the type that its values
    have before they are converted, as `olapdb.sql.values.csv_values.read_values` does. Return None
    if the text is longer than JSON_TEXT_MAX, or if JSON may read it otherwise than ClickHouse."""
    rows = _parse_rows(text)
    if rows is None:
        return None
    width = len(targets)
    if set(map(type, rows)) != {list} or set(map(len, rows)) != {width}:
        return None
    arrays, types = [], []
    for values, target in zip(zip(*rows, strict=True), targets, strict=True):
        kinds = set(map(type, values))
        read_as = _value_type(kinds, plain(target))
        if read_as is None or (float in kinds and not all(map(isfinite, values))):
            return None
        try:
            arrays.append(array_of(values, read_as.arrow))
        except (pa.ArrowInvalid, OverflowError, UnicodeError):  # an integer outside Int64
            return None
        types.append(read_as)
    return arrays, types


def _parse_rows(text: str) -> list[list[object]] | None:
    """Return the rows as JSON reads them; None if ClickHouse could read them otherwise."""
    if len(text) > tuning.JSON_TEXT_MAX or not _is_plain(text):
        return None
    body = text.strip().removesuffix(";")
    try:
        rows: list[list[object]] = json.loads(
            f"[{body.translate(_TO_JSON)}]", parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError):
        return None
    # One pair of parentheses a row: so no string contains a parenthesis.
    return rows if rows and text.count("(") == text.count(")") == len(rows) else None


def _is_plain(text: str) -> bool:
    """Return whether the text has no escapes, no -0 and no character that JSON's syntax uses."""
    return not any(mark in text for mark in ("\\", '"', "[", "]")) and not (
        "-0" in text and _INTEGER_MINUS_ZERO.search(text)
    )


def _refuse_constant(word: str) -> object:
    """Raise ValueError: in SQL, NaN and Infinity are identifiers."""
    raise ValueError(word)


def _value_type(kinds: set[type], target: DataType) -> DataType | None:
    """Return the type that values of these Python classes are read as for a column of the target
    type; None if JSON cannot decide."""
    if kinds == {str}:
        return STRING
    match target:
        case Integer() | Enum() | Date() | Date32() | DateTime() | DateTime64() | Time() | Time64():
            return INT64 if kinds == {int} else None
        case Float(bits=64):
            return target if kinds <= {int, float} else None
        case Boolean():
            return BOOL if kinds == {bool} else None
        case _:
            return None
