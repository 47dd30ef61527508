"""The contract of a format: what a writer and a reader are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import BinaryIO, TypeAlias

import pyarrow as pa

from olapdb import errors
from olapdb.config import Settings
from olapdb.functions.base import Environment
from olapdb.records import dataclass
from olapdb.result import QueryStatistics
from olapdb.types import DataType

Structure: TypeAlias = tuple[tuple[str, DataType], ...]
"""The name and type of each column."""


@dataclass(frozen=True)
class Header:
    """The columns of a result and the settings and zone with which their values are written."""

    names: tuple[str, ...]
    types: tuple[DataType, ...]
    settings: Settings = field(default_factory=Settings)
    environment: Environment = field(default_factory=Environment)


@dataclass(frozen=True)
class Ending:
    """The end of a result, for a writer: the row of WITH TOTALS and the two rows of the setting
    `extremes`, if any, the number of rows, and the statistics of the query."""

    totals: pa.RecordBatch | None = None
    rows: int = 0
    statistics: QueryStatistics | None = None
    elapsed_seconds: float = 0.0
    extremes: pa.RecordBatch | None = None

    @property
    def rows_behind(self) -> tuple[pa.RecordBatch, ...]:
        """Return the totals and the extremes, in this order, those that exist."""
        return tuple(rows for rows in (self.totals, self.extremes) if rows is not None)


class Writer:
    """A writer of one result. Call `start`, `write` for each batch, and `finish`, in this order; the output is the
    concatenation of what they return."""

    def __init__(self, header: Header) -> None:
        """Take the columns of the result."""
        self.header = header

    def start(self) -> bytes:
        """Return what comes before the rows."""
        return b""

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows of the batch, of which there is at least one."""
        raise NotImplementedError

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the text of each row alone, without what the format puts before and after all rows. Raises
        BadArguments for a format that does not write row by row."""
        raise errors.BadArguments(
            "formatRow takes a format whose rows are texts of their own.",
            hint="Such as CSV, TabSeparated, JSONEachRow, Values or CustomSeparated.",
        )

    def finish(self, ending: Ending) -> bytes:
        """Return what comes behind the rows."""
        return b""


@dataclass(frozen=True)
class Input:
    """A stream of bytes to read, and the columns that are wanted of it.

    `structure` has the wanted columns in order; None: the format says which there are.
    `needed` are the names of those columns that are read at all; None: all. A reader may return
    more than these.
    """

    stream: BinaryIO
    settings: Settings
    environment: Environment
    structure: Structure | None = None
    needed: frozenset[str] | None = None
    absent_apart: frozenset[str] = frozenset()
    """Columns for which a row without a value differs from one with NULL: rows of a batch lack
    such a column all, or none."""


@dataclass(frozen=True)
class Rows:
    """A batch of columns that were read: their names, their types as read, and their values.

    Text formats read columns of type String, which the caller converts to the column's type; NULL is
    null also where the column is not Nullable, and so is a value for which the column's default
    stands.
    """

    names: tuple[str, ...]
    types: tuple[DataType, ...]
    arrays: tuple[pa.Array, ...]
    rows: int


@dataclass(frozen=True)
class Reader:
    """A reader of a format: `infer` finds the columns of the data, `read` yields the rows. `named`: the data contain
    column names, by which INSERT matches them. `infers`: the data determine their columns."""

    infer: Callable[[Input], Structure]
    read: Callable[[Input], Iterator[Rows]]
    named: bool = False
    infers: bool = True


@dataclass(frozen=True)
class Format:
    """A format: its name, aliases and file endings, its writer and its reader."""

    name: str
    description: str
    writer: Callable[[Header], Writer] | None = None
    reader: Reader | None = None
    aliases: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    appends: bool = True
    """True if a file may hold several results, one behind the other."""


def write_all(
    writer: Writer, batches: Iterator[pa.RecordBatch], end: Callable[[int], Ending]
) -> Iterator[bytes]:
    """Yield the output of a result piece by piece. `end` makes the Ending from the number of rows."""
    yield writer.start()
    rows = 0
    for batch in batches:
        for piece in _pieces(batch):
            yield writer.write(piece)
        rows += batch.num_rows
    yield writer.finish(end(rows))


_PIECE_BYTES = 1 << 25
"""Arrow's text arrays hold 2 GB, and the text of a row may be several times its bytes."""


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch in slices small enough that the text of each fits one Arrow array; nothing for no rows."""
    if not batch.num_rows:
        return
    if batch.num_rows == 1 or batch.nbytes <= _PIECE_BYTES:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _pieces(batch.slice(0, middle))
    yield from _pieces(batch.slice(middle))
