"""The newest commit that a process knows: its schema and snapshot, and the parts of tables in use.

It follows the commits by their differences: our own as they are made, those of other processes
as they are noticed.
"""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.apply_changes import CommitApplier
from olapdb.catalog.sqlite.schema_cache import SchemaState, TableParts
from olapdb.catalog.sqlite.snapshot import SqliteSnapshot
from olapdb.catalog.sqlite.vacuum_mark import refuse_vacuumed, vacuumed_to
from olapdb.errors import Error
from olapdb.functions import parse_type
from olapdb.model.encoding import decode_object, decode_part
from olapdb.model.part import Part
from olapdb.model.schema import DatabaseEntry, SchemaObject

if TYPE_CHECKING:
    from olapdb.catalog.sqlite.catalog import SqliteCatalog

TABLES_LOADED_MAX = 4_096
FOLLOWED_COMMITS_MAX = 256
"""Of a table that is read: its parts as of a commit longer ago than this are read for one reader."""


@dataclass(frozen=True, slots=True)
class Newest:
    snapshot: SqliteSnapshot
    schema: SchemaState


class HeadCache:
    """Thread-safe. Whoever calls with a connection holds it before the lock in here is taken."""

    def __init__(self, catalog: SqliteCatalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._newest: Newest | None = None
        self._tables: dict[str, TableParts] = {}
        self._decoded: dict[int, tuple[str, SchemaObject]] = {}

    def renew_lock(self) -> None:
        """In a forked child, where a thread that is not there may hold the lock."""
        self._lock = threading.Lock()

    def at(self, connection: sqlite3.Connection, number: int) -> Newest:
        """The head at `number`, the newest commit that the connection sees, or at a later one
        that a faster thread has seen."""
        newest = self._newest
        if newest is not None and newest.snapshot.number == number:
            return newest
        with self._lock:
            newest = self._newest
            if newest is not None and newest.snapshot.number >= number:
                return newest
            if newest is not None and vacuumed_to(connection) > newest.snapshot.number:
                # Drops that this process has not seen yet may be forgotten: their parts and
                # objects would be live in here for ever.
                self._tables.clear()
                newest = None
            if newest is None:
                schema = self._read_schema(connection, number, keep=True)
            else:
                before = newest.snapshot.number
                changed = sql.schema_changed.value(connection, after=before)
                schema = (
                    self._read_schema(connection, number, keep=True) if changed else newest.schema
                )
                if self._tables:
                    self._follow_all(connection, before, number)
            return self._become(number, schema)

    def note(self, application: CommitApplier, number: int) -> None:
        """Follows our own commit without reading it back.

        The commit has happened, so nothing may be raised that reads as its failure: should the
        differences not fit, everything is read anew.
        """
        try:
            self._note(application, number)
        except (Error, LookupError, TypeError, ValueError):
            self.forget()
        except BaseException:  # Ctrl-C: some tables are ahead, one perhaps by half
            self.forget()
            raise

    def _follow_all(self, connection: sqlite3.Connection, after: int, up_to: int) -> None:
        """All tables, or none of them is known any more: one that failed may be followed by half."""
        try:
            _follow(connection, self._tables, after, up_to)
        except BaseException:
            self._tables.clear()
            raise

    def forget(self) -> None:
        """Everything is read anew."""
        with self._lock:
            self._newest = None
            self._tables.clear()
            self._decoded.clear()

    def _note(self, application: CommitApplier, number: int) -> None:
        with self._lock:
            newest = self._newest
            if newest is None or newest.snapshot.number != number - 1:
                return  # a reader was faster; it has read the commit whole
            for table_id in {*application.added, *application.removed}:
                known = self._tables.get(table_id)
                if known is not None:
                    added = application.added.get(table_id, ())
                    known.advance(number, added, application.removed.get(table_id, ()))
            for table_id in application.emptied:
                self._tables.pop(table_id, None)
            self._become(number, application.schema)

    def schema_at(self, connection: sqlite3.Connection, number: int) -> SchemaState:
        """The schema as of an older commit."""
        with self._lock:
            return self._read_schema(connection, number, keep=False)

    def known_parts(self, table_id: str, number: int) -> tuple[Part, ...] | None:
        with self._lock:
            known = self._tables.get(table_id)
            return None if known is None else known.at(number)

    def known_count(self, table_id: str, partition_id: str, number: int) -> int | None:
        with self._lock:
            known = self._tables.get(table_id)
            return None if known is None else known.count(partition_id, number)

    def load_parts(
        self, connection: sqlite3.Connection, table_id: str, number: int
    ) -> tuple[Part, ...]:
        """Reads the parts as of a commit, and follows them from then on unless it is long past.

        The connection should not have read yet in its transaction: what it sees first is then not
        older than what the head knows. Were commits able to outrun the reading, a table in heavy
        use would be read whole by every reader and never be known.
        """
        with self._lock:
            known = self._tables.get(table_id)
            found = None if known is None else known.at(number)
            if found is not None:  # another reader of the same table was faster
                return found
            refuse_vacuumed(connection, number)
            loaded = TableParts(
                number,
                (
                    decode_part(*row)
                    for row in sql.parts_at(connection, of_table=table_id, number=number)
                ),
            )
            parts = loaded.at(number) or ()
            seen = int(sql.newest_commit.value(connection))
            behind = self._newest is not None and seen < self._newest.snapshot.number
            if not behind and seen - number <= FOLLOWED_COMMITS_MAX:
                _follow(connection, {table_id: loaded}, number, seen)
                if len(self._tables) >= TABLES_LOADED_MAX:
                    self._tables.clear()
                self._tables[table_id] = loaded
            return parts

    def _become(self, number: int, schema: SchemaState) -> Newest:
        self._newest = Newest(SqliteSnapshot(self._catalog, number, schema), schema)
        return self._newest

    def _read_schema(
        self, connection: sqlite3.Connection, number: int, *, keep: bool
    ) -> SchemaState:
        databases = {
            name: DatabaseEntry(id, name, comment)
            for id, name, comment in sql.databases_at(connection, number=number)
        }
        objects: dict[str, SchemaObject] = {}
        decoded: dict[int, tuple[str, SchemaObject]] = {}
        for row_id, object_id, kind, body in sql.objects_at(connection, number=number):
            # The same object is kept as long as its row, so that caches may go by identity.
            kept = self._decoded.get(row_id)
            if kept is None or kept[0] != body:
                kept = (body, decode_object(kind, body, parse_type))
            decoded[row_id] = kept
            objects[object_id] = kept[1]
        if keep:
            self._decoded = decoded
        return SchemaState(databases, objects)


def _follow(
    connection: sqlite3.Connection, tables: dict[str, TableParts], after: int, up_to: int
) -> None:
    """Applies the commits after+1..up_to of other processes to the loaded tables."""
    added: dict[tuple[int, str], list[Part]] = {}
    removed: dict[tuple[int, str], list[str]] = {}
    for row in sql.parts_created_since(connection, after=after, up_to=up_to):
        if row[1] in tables:
            part = decode_part(*row)
            added.setdefault((part.created_commit, part.table_id), []).append(part)
    for table_id, part_id, commit in sql.parts_dropped_since(connection, after=after, up_to=up_to):
        if table_id in tables:
            removed.setdefault((commit, table_id), []).append(part_id)
    for commit, table_id in sorted({*added, *removed}):
        key = (commit, table_id)
        tables[table_id].advance(commit, added.get(key, ()), removed.get(key, ()))
    for table in tables.values():
        table.reached(up_to)
