"""Arrow batches as PEP 249 rows: tuples of Python values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from olapdb.result import Result, python_values
from olapdb.types import FixedString, plain


def python_rows(result: Result) -> Iterator[tuple[Any, ...]]:
    """Rows one by one; a batch is converted by columns when its first row is drawn.

    Values are those of `olapdb.result.python_values`; a FixedString is text where it can be."""
    if not result.has_columns:
        return
    texts = [_text if isinstance(plain(t), FixedString) else None for t in result.types]
    for batch in result.batches():
        columns = [
            _converted(python_values(column, data_type), text)
            for column, data_type, text in zip(batch.columns, result.types, texts)
        ]
        yield from zip(*columns)


def _converted(values: list[object], convert: Callable[[Any], Any] | None) -> list[object]:
    return values if convert is None else [None if v is None else convert(v) for v in values]


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
