"""Arrow batches as PEP 249 rows: tuples of Python values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from olapdb.errors import ProgrammingError
from olapdb.functions.edges import exported, python_values
from olapdb.result import Result
from olapdb.types import FixedString, plain
from olapdb.types.arrow import exported_schema, is_exported


class UnfetchedRows:
    """The rows of a result that were not fetched yet: one by one as tuples, or the rest as batches.

    A batch is converted by columns when its first row is fetched.  Values are those of
    `olapdb.types.python_values`; a FixedString is text if it is UTF-8.
    """

    def __init__(self, result: Result) -> None:
        self._drawing = _Drawing(result)
        self._rows = _draw(self._drawing) if result.has_columns else iter(())

    def take(self, count: int | None = None) -> list[tuple[Any, ...]]:
        """Return the next `count` rows, fewer at the end; None means all.

        Raises ProgrammingError if another thread reads them at this moment."""
        rows = self._rows if count is None else islice(self._rows, count)
        try:
            return list(rows)
        except ValueError as error:
            refuse_if_shared(error)
            raise

    def __next__(self) -> tuple[Any, ...]:
        try:
            return next(self._rows)
        except ValueError as error:
            refuse_if_shared(error)
            raise

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows not fetched yet. Those that the caller does not take stay: `yield from`
        would end them with the caller's loop."""
        try:
            for row in self._rows:  # noqa: UP028
                yield row
        except ValueError as error:
            refuse_if_shared(error)
            raise

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Return all rows not fetched yet as batches; no rows remain afterwards."""
        return _exported(self.rest_as_stored(), self._drawing.result)

    def rest_as_stored(self) -> Iterator[pa.RecordBatch]:
        """Return all rows not fetched yet as the engine has them, an Enum as its number; no rows
        remain afterwards."""
        drawing = self._drawing
        batches, self._rows = drawing.source(), iter(())
        remaining = sum(1 for _ in drawing.pending)
        if drawing.drawn is not None and remaining:
            started = drawing.drawn.slice(drawing.drawn.num_rows - remaining)
            batches = chain([started], batches)
        return batches


def refuse_if_shared(error: ValueError) -> None:
    """Raise ProgrammingError, with what to do, if another thread was reading the rows. Call it in
    the function that asked for the next row.

    Python refuses to advance a generator that runs. Such a ValueError has no frame below the line
    that asked; one from inside the generator has the generator's."""
    if error.__traceback__ is not None and error.__traceback__.tb_next is None:
        raise _shared() from None


def _shared() -> ProgrammingError:
    """Return the error for a cursor that two threads read at once."""
    return ProgrammingError(
        "Another thread fetches from this cursor at this moment.",
        hint="Give each thread a cursor of its own, connection.cursor(): threads may share the"
        " connection.",
    )


class _OneReader(Iterator[pa.RecordBatch]):
    """The batches of a result. While a thread waits for the next one, ProgrammingError refuses
    every other thread."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._reading = threading.Lock()

    def __next__(self) -> pa.RecordBatch:
        if not self._reading.acquire(blocking=False):
            raise _shared()
        try:
            return next(self._batches)
        finally:
            self._reading.release()


def _exported(batches: Iterator[pa.RecordBatch], result: Result) -> Iterator[pa.RecordBatch]:
    """Return the batches as users get them: an Enum's texts instead of its numbers, times as durations."""
    if not any(map(is_exported, result.types)):
        return batches
    schema = exported_schema(result.names, result.types)
    return (
        pa.RecordBatch.from_arrays(
            [exported(c, t) for c, t in zip(batch.columns, result.types, strict=True)],
            schema=schema,
        )
        for batch in batches
    )


class _Drawing:
    """The position in a result. It is separate from `UnfetchedRows`, which holds the generator that advances
    it: a reference cycle of the two would keep the result until garbage collection."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.drawn: pa.RecordBatch | None = None
        self.pending: Iterator[tuple[Any, ...]] = iter(())
        self._batches: Iterator[pa.RecordBatch] | None = None

    def source(self) -> Iterator[pa.RecordBatch]:
        """Return the iterator over the result's batches, the same at each call."""
        if self._batches is None:
            self._batches = _OneReader(self.result.batches())
        return self._batches


def _draw(drawing: _Drawing) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as tuples of Python values; a FixedString is text if it is UTF-8, else bytes.

    Sets `drawing.drawn` to the batch of the last row, and `drawing.pending` to the iterator over
    the rows of that batch that are not yielded yet."""
    types = drawing.result.types
    texts = [_text if isinstance(plain(t), FixedString) else None for t in types]
    for batch in drawing.source():
        columns = [
            _converted(python_values(column, data_type, drawing.result.zone), text)
            for column, data_type, text in zip(batch.columns, types, texts)
        ]
        drawing.drawn, drawing.pending = batch, zip(*columns)
        yield from drawing.pending


def _converted(values: list[object], convert: Callable[[Any], Any] | None) -> list[object]:
    """Convert all values but None; unchanged without `convert`."""
    return values if convert is None else [None if v is None else convert(v) for v in values]


def _text(value: bytes) -> str | bytes:
    """Decode UTF-8. Return the bytes unchanged if they are not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
