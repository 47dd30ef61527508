"""Reading the rows of live and staged parts; pins; deletion of staged files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from olapdb.engine.column_defaults import DefaultColumns, RowGroups, read_filled
from olapdb.errors import CommitUnknown, Error
from olapdb.ingest.trigger import TriggerContext
from olapdb.model.changes import AddPart
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.records import dataclass
from olapdb.runtime.services import Services
from olapdb.storage.reader import PartReader
from olapdb.storage.store import Store


def read_rows(
    context: TriggerContext, table: Table, part: Part, columns: Sequence[str] | None = None
) -> pa.Table:
    """Return stored columns (None: all) of a live part, in the table's order.

    Columns that are newer than the part are filled with their defaults."""
    return pa.concat_tables(read_pieces(context, table, part, 1 << 62, columns))


def read_pieces(
    context: TriggerContext,
    table: Table,
    part: Part,
    rows_max: int,
    columns: Sequence[str] | None = None,
    coded: Collection[str] = (),
    granules: range | None = None,
) -> Iterator[pa.Table]:
    """Yield the rows that `read_rows` returns, in pieces of whole row groups of about `rows_max`
    rows. Yields at least one piece.

    Text columns named in `coded` come as dictionaries where the part stores them so. `granules`
    restricts the row groups by index; None reads all."""
    names = [c.name for c in table.stored_columns if columns is None or c.name in columns]
    reader = PartReader(context.store, context.snapshot, part, table, context.environment)
    groups: list[int] = []
    rows = 0
    for group in reader.row_groups:
        if granules is not None and group.index not in granules:
            continue
        if groups and rows + group.rows > rows_max:
            yield _filled(context, table, reader, names, groups, rows, coded)
            groups, rows = [], 0
        groups.append(group.index)
        rows += group.rows
    yield _filled(context, table, reader, names, groups, rows, coded)


def _filled(
    context: TriggerContext,
    table: Table,
    reader: PartReader,
    names: list[str],
    groups: list[int],
    count: int,
    coded: Collection[str],
) -> pa.Table:
    """Read the columns `names` of the row groups, with defaults for those that the part lacks.

    `count` is the number of rows in the groups; the columns in `coded` may stay dictionary-encoded.
    """

    def defaults() -> DefaultColumns:
        """Bind the table's default columns, for parts that lack a column."""
        return DefaultColumns.of(table, context.snapshot, context.environment, context.cache)

    columns = read_filled(
        RowGroups(reader, groups, count), table, names, defaults, context.environment, coded=coded
    )
    return pa.Table.from_arrays([columns[n] for n in names], names=names)


@dataclass(frozen=True)
class _InlineRows:
    """The inline bytes of a staged part, which no snapshot has yet."""

    rows: bytes | None

    def inline_rows(self, part: Part) -> bytes:
        """Return the bytes; the part is always the staged one."""
        assert self.rows is not None
        return self.rows


def read_staged(
    store: Store, table: Table, staged: AddPart, columns: Sequence[str] | None = None
) -> pa.Table:
    """Return all rows of a part that is staged, not committed, with `columns` (None: all
    stored)."""
    names = [c.name for c in table.stored_columns if columns is None or c.name in columns]
    return PartReader(store, _InlineRows(staged.inline_rows), staged.part, table).read(names)


class Pin:
    """A context manager that keeps vacuum from deleting a snapshot's parts while they are read."""

    def __init__(self, services: Services, number: int) -> None:
        self._catalog, self._number = services.catalog, number

    def __enter__(self) -> None:
        self._catalog.pin(self._number)

    def __exit__(self, *error: object) -> None:
        self._catalog.unpin(self._number)


def discard(services: Services, paths: Iterable[str]) -> None:
    """Delete staged files of a commit that certainly did not happen."""
    for path in paths:
        services.store.delete(path)


@contextmanager
def deleting_on_failure(delete_staged: Callable[[], None]) -> Iterator[None]:
    """Call `delete_staged`, which deletes staged files, where the commit inside fails and certainly
    did not happen.

    An exception that is no olapdb error, such as Ctrl-C, may arrive after the commit: it deletes
    nothing.
    """
    try:
        yield
    except CommitUnknown:
        raise
    except Error:
        delete_staged()
        raise
