"""A process's cache of the newest commit: its schema and snapshot, and the parts of tables in use.

It applies each commit's differences: its own when they are made, those of other processes when they
are noticed.
"""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING

from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.schema_cache import SchemaState, StoredObject, StoredObjects, TableParts
from olapdb.catalog.sqlite.snapshot import SqliteSnapshot
from olapdb.catalog.sqlite.vacuum_mark import refuse_vacuumed, vacuumed_to
from olapdb.errors import Error
from olapdb.model.encoding import (
    COLLECTION_KIND,
    FUNCTION_KIND,
    decode_collection,
    decode_function,
    decode_part,
)
from olapdb.model.named_collection import NamedCollection
from olapdb.model.part import Part
from olapdb.model.schema import DatabaseEntry
from olapdb.model.user_function import UserFunction
from olapdb.records import dataclass

if TYPE_CHECKING:
    from olapdb.catalog.sqlite.apply_changes import CommitApplier
    from olapdb.catalog.sqlite.catalog_reader import CatalogReader

TABLES_LOADED_MAX = 4_096
FOLLOWED_COMMITS_MAX = 256
"""A reader of a table as of a commit older than this reads its parts uncached."""


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest known snapshot and its schema."""

    snapshot: SqliteSnapshot
    schema: SchemaState


class HeadCache:
    """A thread-safe cache of the newest commit. A caller that passes a connection must acquire it
    before this object's lock."""

    def __init__(self, catalog: CatalogReader) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._newest: Newest | None = None
        self._tables: dict[str, TableParts] = {}
        self._rows: dict[int, StoredObject] = {}

    def renew_lock(self) -> None:
        """Replace the lock in a forked child: a thread that the child lacks may hold it."""
        self._lock = threading.Lock()

    def known(self, number: int) -> Newest | None:
        """Return the cached head at `number`, None if another commit is cached."""
        newest = self._newest
        return newest if newest is not None and newest.snapshot.number == number else None

    def at(self, connection: sqlite3.Connection, number: int) -> Newest:
        """Return the head at `number`, the newest commit that the connection sees, or at a later
        one that another thread has seen."""
        known = self.known(number)
        if known is not None:
            return known
        with self._lock:
            newest = self._newest
            if newest is not None and newest.snapshot.number >= number:
                return newest
            if newest is not None and vacuumed_to(connection) > newest.snapshot.number:
                # Vacuum may have purged drops that this process has not seen: their parts and
                # objects would stay live in this cache for ever.
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
                    self._apply_foreign_commits(connection, before, number)
            return self._set_newest(number, schema)

    def apply_own_commit(self, applier: CommitApplier, number: int) -> None:
        """Apply our own commit without reading it back.

        The commit has happened, so this may not raise an error that reads as its failure: if the
        differences do not fit, the cache is cleared.
        """
        try:
            self._advance_one(applier, number)
        except (Error, LookupError, TypeError, ValueError):
            self.clear()
        except BaseException:  # Ctrl-C: some tables are ahead, one perhaps by half
            self.clear()
            raise

    def _apply_foreign_commits(
        self, connection: sqlite3.Connection, after: int, up_to: int
    ) -> None:
        """Apply other processes' commits after+1..up_to to all cached tables. On failure clear them
        all, since one may be half updated."""
        try:
            _apply_commits(connection, self._tables, after, up_to)
        except BaseException:
            self._tables.clear()
            raise

    def clear(self) -> None:
        """Clear the cache; everything is read again."""
        with self._lock:
            self._newest = None
            self._tables.clear()
            self._rows.clear()

    def _advance_one(self, applier: CommitApplier, number: int) -> None:
        """Advance the cache by one commit. Does nothing unless the cache holds the commit before
        it."""
        with self._lock:
            newest = self._newest
            if newest is None or newest.snapshot.number != number - 1:
                return  # a reader has read the commit already
            for table_id in {*applier.added, *applier.removed}:
                table_parts = self._tables.get(table_id)
                if table_parts is not None:
                    added = applier.added.get(table_id, ())
                    table_parts.advance(number, added, applier.removed.get(table_id, ()))
            for table_id in applier.emptied:
                self._tables.pop(table_id, None)
            self._set_newest(number, applier.schema)

    def schema_at(self, connection: sqlite3.Connection, number: int) -> SchemaState:
        """Read the schema as of an older commit; it is not cached."""
        with self._lock:
            return self._read_schema(connection, number, keep=False)

    def known_parts(self, table_id: str, number: int) -> tuple[Part, ...] | None:
        """Return the cached live parts as of a commit, None if they are not cached."""
        with self._lock:
            table_parts = self._tables.get(table_id)
            return None if table_parts is None else table_parts.at(number)

    def known_count(self, table_id: str, partition_id: str, number: int) -> int | None:
        """Return the cached number of live parts of a partition as of a commit, None if it is not
        cached."""
        with self._lock:
            table_parts = self._tables.get(table_id)
            return None if table_parts is None else table_parts.count(partition_id, number)

    def load_parts(
        self, connection: sqlite3.Connection, table_id: str, number: int
    ) -> tuple[Part, ...]:
        """Return the table's parts as of a commit, and cache them unless more than
        FOLLOWED_COMMITS_MAX commits came after it.

        Call it first in the connection's transaction: what it sees is then not older than the head.
        Else a table that commits change all the time would be read whole by every reader and never
        be cached.
        """
        with self._lock:
            table_parts = self._tables.get(table_id)
            cached = None if table_parts is None else table_parts.at(number)
            if cached is not None:  # another thread loaded the table meanwhile
                return cached
            refuse_vacuumed(connection, number)
            loaded = TableParts(
                number,
                (
                    decode_part(row)
                    for row in sql.parts_at(connection, of_table=table_id, number=number)
                ),
            )
            parts = loaded.at(number) or ()
            seen = int(sql.newest_commit.value(connection))
            behind = self._newest is not None and seen < self._newest.snapshot.number
            if not behind and seen - number <= FOLLOWED_COMMITS_MAX:
                _apply_commits(connection, {table_id: loaded}, number, seen)
                if len(self._tables) >= TABLES_LOADED_MAX:
                    self._tables.clear()
                self._tables[table_id] = loaded
            return parts

    def _set_newest(self, number: int, schema: SchemaState) -> Newest:
        """Make commit `number` with this schema the newest one that the cache knows."""
        self._newest = Newest(SqliteSnapshot(self._catalog, number, schema), schema)
        return self._newest

    def _read_schema(
        self, connection: sqlite3.Connection, number: int, *, keep: bool
    ) -> SchemaState:
        """Read the databases, tables, views and functions as of commit `number`. Unchanged rows
        yield the same objects as before. Objects are decoded at their first use. `keep` keeps the
        rows for the next read."""
        databases = {
            name: DatabaseEntry(id, name, comment)
            for id, name, comment in sql.databases_at(connection, number=number)
        }
        objects: dict[str, StoredObject] = {}
        functions: dict[tuple[str, str], UserFunction] = {}
        collections: dict[str, NamedCollection] = {}
        rows: dict[int, StoredObject] = {}
        for row_id, object_id, kind, database, name, body in sql.objects_at(
            connection, number=number
        ):
            if kind == FUNCTION_KIND:
                function = decode_function(body)
                functions[function.database, function.name] = function
                continue
            if kind == COLLECTION_KIND:
                collection = decode_collection(body)
                collections[collection.name] = collection
                continue
            # The same object is kept as long as its row, so that caches may go by identity.
            row = self._rows.get(row_id)
            if row is None or row.body != body:
                row = StoredObject(kind, database, name, body)
            rows[row_id] = objects[object_id] = row
        if keep:
            self._rows = rows
        return SchemaState(databases, StoredObjects(objects), functions, collections)


def _apply_commits(
    connection: sqlite3.Connection, tables: dict[str, TableParts], after: int, up_to: int
) -> None:
    """Apply the commits after+1..up_to of other processes to the loaded tables."""
    added: dict[tuple[int, str], list[Part]] = {}
    removed: dict[tuple[int, str], list[str]] = {}
    for row in sql.parts_created_since(connection, after=after, up_to=up_to):
        if row[1] in tables:
            part = decode_part(row)
            added.setdefault((part.created_commit, part.table_id), []).append(part)
    for table_id, part_id, commit in sql.parts_dropped_since(connection, after=after, up_to=up_to):
        if table_id in tables:
            removed.setdefault((commit, table_id), []).append(part_id)
    for commit, table_id in sorted({*added, *removed}):
        key = (commit, table_id)
        tables[table_id].advance(commit, added.get(key, ()), removed.get(key, ()))
    for table in tables.values():
        table.reached(up_to)
