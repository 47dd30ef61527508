"""Arrow batches as PEP 249 rows: tuples of Python values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from olapdb.result import Result, python_values
from olapdb.types import FixedString, plain

if TYPE_CHECKING:
    import pyarrow as pa


class Rows:
    """The rows of a result that were not drawn yet: one by one as tuples, or the rest as batches.

    A batch is converted by columns when its first row is drawn.  Values are those of
    `olapdb.result.python_values`; a FixedString is text where it can be."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._drawn: pa.RecordBatch | None = None
        self._pending: Iterator[tuple[Any, ...]] = iter(())
        self._rows = self._draw() if result.has_columns else iter(())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What was not drawn; nothing is left for others then."""
        batches, self._rows = self._source(), iter(())
        left = sum(1 for _ in self._pending)
        if self._drawn is None or not left:
            return batches
        return chain([self._drawn.slice(self._drawn.num_rows - left)], batches)

    def _draw(self) -> Iterator[tuple[Any, ...]]:
        types = self._result.types
        texts = [_text if isinstance(plain(t), FixedString) else None for t in types]
        for batch in self._source():
            columns = [
                _converted(python_values(column, data_type), text)
                for column, data_type, text in zip(batch.columns, types, texts)
            ]
            self._drawn, self._pending = batch, zip(*columns)
            yield from self._pending

    def _source(self) -> Iterator[pa.RecordBatch]:
        if self._batches is None:
            self._batches = self._result.batches()
        return self._batches


def _converted(values: list[object], convert: Callable[[Any], Any] | None) -> list[object]:
    return values if convert is None else [None if v is None else convert(v) for v in values]


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
