"""Arrow batches as PEP 249 rows: tuples of Python values.

UUIDs become `uuid.UUID`, DateTime a naive `datetime` where the type names no zone (its meaning is
the warehouse's zone) and an aware one where it does; everything else as Arrow converts it.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from olapdb.result import Result
from olapdb.types import UUID, DataType, DateTime, DateTime64, FixedString, Map, plain


def python_rows(result: Result) -> Iterator[tuple[Any, ...]]:
    """Rows one by one; a batch is converted by columns when its first row is drawn."""
    if not result.has_columns:
        return
    converters = [_converter(t) for t in result.types]
    for batch in result.batches():
        columns = [
            values if convert is None else [None if v is None else convert(v) for v in values]
            for values, convert in zip((c.to_pylist() for c in batch.columns), converters)
        ]
        yield from zip(*columns)


def _converter(data_type: DataType) -> Callable[[Any], Any] | None:
    match plain(data_type):
        case UUID():
            return lambda value: uuid.UUID(bytes=value)
        case FixedString():
            return _text
        case DateTime(zone=None) | DateTime64(zone=None):
            return _naive
        case Map():
            return dict
        case _:
            return None


def _naive(value: datetime.datetime) -> datetime.datetime:
    return value.replace(tzinfo=None)


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
