"""The catalog's readers: open the file, take snapshots, read what was delivered to tables."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from olapdb import errors
from olapdb.catalog.read_retry import retry_read
from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.connections import MEMORY, Connections
from olapdb.catalog.sqlite.damaged_parts import DamagedParts
from olapdb.catalog.sqlite.deliveries import key_batches, key_ledger, oldest_key
from olapdb.catalog.sqlite.head_cache import HeadCache
from olapdb.catalog.sqlite.open import open_or_create
from olapdb.catalog.sqlite.process_registry import Registration
from olapdb.catalog.sqlite.snapshot import SqliteSnapshot
from olapdb.catalog.sqlite.vacuum_mark import refuse_vacuumed
from olapdb.catalog.sqlite.writer import CatalogWriter
from olapdb.model.damage import Damage
from olapdb.model.failpoint import Durability, FailpointObserver, ignore_failpoint
from olapdb.model.keys import KeyBatch, KeyLedger
from olapdb.model.part import Part
from olapdb.model.view_state import SourceOffset

LOCK_TIMEOUT_MS = 30_000


class CatalogReader:
    """The reading part of `SqliteCatalog`, which documents the arguments."""

    def __init__(
        self,
        path: str | os.PathLike[str] = MEMORY,
        *,
        durability: Durability = "full",
        read_only: bool = False,
        zone: str = "UTC",
        lock_timeout_ms: int = LOCK_TIMEOUT_MS,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        sync_files: Callable[[], None] = lambda: None,
        failpoint: FailpointObserver = ignore_failpoint,
    ) -> None:
        self.path = os.fspath(path)
        self._read_only = read_only
        self._clock_ms = clock_ms
        self._sync_files = sync_files
        self._failpoint = failpoint
        self.connections = Connections(self.path, durability, read_only)
        in_memory = self.connections.in_memory
        try:
            facts = open_or_create(self.connections, self.path, read_only, zone, clock_ms())
        except BaseException:
            self.connections.close()
            raise
        self._warehouse_id, self._zone = facts["warehouse_id"], facts["zone"]
        self._writer = CatalogWriter(
            self.connections,
            self.path,
            read_only=read_only,
            lock_timeout_ms=lock_timeout_ms,
            notice_fork=self._notice_fork,
        )
        self._registration = Registration(
            None if in_memory or read_only else f"{without_extension(self.path)}.processes"
        )
        self._head = HeadCache(self)
        self._damaged = DamagedParts(self.connections, self._writer, read_only)
        self._own_leases: set[str] = set()
        self._closed = False

    def __repr__(self) -> str:
        return f"<catalog {self.path}>"

    @property
    def read_only(self) -> bool:
        return self._read_only

    @property
    def warehouse_id(self) -> str:
        return self._warehouse_id

    @property
    def zone(self) -> str:
        return self._zone

    def snapshot(self, number: int | None = None) -> SqliteSnapshot:
        """Return the newest snapshot, or that of commit `number`. Raises BadArguments or
        SnapshotTooOld."""
        return retry_read(lambda: self._snapshot(number))

    def _snapshot(self, number: int | None = None) -> SqliteSnapshot:
        """Read snapshot `number` (None: the newest) once, without the retry of `snapshot`. Raise
        BadArguments for a number that does not exist, SnapshotTooOld if vacuum has purged it."""
        self._notice_fork()
        if number is None:
            with self.connections.reading() as connection:  # one SELECT needs no transaction
                known = self._head.known(int(sql.newest_commit.value(connection)))
            if known is not None:
                return known.snapshot
        with self._reading_for_head() as connection:
            newest = int(sql.newest_commit.value(connection))
            if number is None or number == newest:
                return self._head.at(connection, newest).snapshot
            if not 1 <= number <= newest:
                raise errors.BadArguments(
                    f"There is no snapshot {number}.",
                    hint=f"system.snapshots lists those up to {newest}.",
                )
            refuse_vacuumed(connection, number)
            return SqliteSnapshot(self, number, self._head.schema_at(connection, number))

    def parts_at(self, table_id: str, number: int) -> tuple[Part, ...]:
        """Return the live parts of a table as of a commit; `Snapshot.parts` reads them here."""
        self._notice_fork()
        parts = self._head.known_parts(table_id, number)
        if parts is not None:
            return parts
        with self._reading_for_head() as connection:
            return self._head.load_parts(connection, table_id, number)

    @contextmanager
    def _reading_for_head(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection for reads that fill the head cache. If the read raises CatalogChanged,
        clear the cache and raise it again."""
        try:
            with self.connections.consistent() as connection:
                yield connection
        except errors.CatalogChanged:
            self._head.clear()
            raise

    def part_count_at(self, table_id: str, partition_id: str, number: int) -> int:
        """Return the number of live parts of a partition; for the newest commit without listing
        them."""
        count = self._head.known_count(table_id, partition_id, number)
        if count is not None:
            return count
        return sum(1 for p in self.parts_at(table_id, number) if p.partition_id == partition_id)

    def source_offsets(self, table_id: str, number: int | None = None) -> tuple[SourceOffset, ...]:
        """Return the positions of the table's streams at commit `number` (None: now), by stream."""
        self._notice_fork()
        with self.connections.consistent() as connection:
            at = int(sql.newest_commit.value(connection)) if number is None else number
            rows = sql.offsets_at(connection, of_table=table_id, number=at).fetchall()
        return tuple(SourceOffset(*row) for row in rows)

    def accepted_keys(
        self, table_id: str, epoch: int, since: int
    ) -> tuple[KeyLedger, tuple[KeyBatch, ...]]:
        """Return the table's key ledger and the keys from ordinal `since` on; all keys if the
        ledger's epoch is not `epoch`."""
        self._notice_fork()
        with self.connections.consistent() as connection:
            ledger = key_ledger(connection, table_id) or KeyLedger()
            since = max(since, ledger.oldest) if ledger.epoch == epoch else ledger.oldest
            if since == ledger.next:
                return ledger, ()
            return ledger, key_batches(connection, table_id, since)

    def has_deliveries(self, table_id: str) -> bool:
        """Return whether the table has keys, tokens or offsets that ForgetDeliveries would delete
        now."""
        self._notice_fork()
        with self.connections.reading() as connection:
            return sql.has_deliveries.value(connection, of_table=table_id) is not None

    def key_ledger(self, table_id: str) -> KeyLedger:
        """Return the table's key ledger; an empty one if the table never accepted a key."""
        self._notice_fork()
        with self.connections.reading() as connection:
            return key_ledger(connection, table_id) or KeyLedger()

    def oldest_key(self, table_id: str, cutoff_ms: int) -> tuple[int, int]:
        """Return (ordinal, time in ms) of the oldest key accepted after the cutoff; (the next
        ordinal, 0) if there is none."""
        self._notice_fork()
        with self.connections.consistent() as connection:
            ledger = key_ledger(connection, table_id) or KeyLedger()
            return oldest_key(connection, table_id, ledger.oldest, cutoff_ms, ledger.next)

    def accepted_key_bytes(self, table_id: str) -> int:
        """Return the bytes that the table's accepted deduplication keys occupy in the catalog; 0 if
        there are none."""
        self._notice_fork()
        with self.connections.reading() as connection:
            return int(sql.accepted_key_bytes.value(connection, of_table=table_id) or 0)

    def damaged(self) -> tuple[Damage, ...]:
        """Return the parts that reads or checks found damaged; some may not be live any more."""
        self._notice_fork()
        return self._damaged.all()

    def _notice_fork(self) -> bool:
        """Replace all locks and files inherited from the parent, if this is the first call in a
        forked child. Return whether they were replaced."""
        if not self.connections.forked():
            return False
        self._writer.forget_inherited()
        self._head.renew_lock()
        self._registration.forget_inherited()
        self._own_leases = set()
        return True


def without_extension(path: str) -> str:
    """Return the path without its file extension."""
    return os.path.splitext(path)[0]
