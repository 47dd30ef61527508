"""The temporary tables of a session, and which statements are about them.

    CREATE TEMPORARY TABLE t    a table in a catalog and a store that the session has in memory
    INSERT INTO t, DROP TABLE t the statement writes there, because `t` without a database names it
    SELECT … FROM t JOIN u      the query reads both catalogs, see `SessionSnapshot`

They need no cleaning up after a crash, no commit of the warehouse, and no right to write to it.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.compute.memory import memory_limit
from olapdb.config import Settings
from olapdb.lazy import LazyModule, lazy_modules
from olapdb.model.schema import DatabaseEntry
from olapdb.model.session_snapshot import TEMPORARY_DATABASE
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.cache import Cache
from olapdb.runtime.services import Services
from olapdb.storage.session_store import TemporaryStore

if TYPE_CHECKING:
    from olapdb.maintenance import merge_planner
    from olapdb.maintenance import vacuum as vacuums
    from olapdb.model import changes
else:
    merge_planner, vacuums = lazy_modules("olapdb.maintenance", "merge_planner", "vacuum")
    changes = LazyModule("olapdb.model.changes")

MERGES_MAX = 100
"""The most merges after one statement; what is left waits for the next."""


class TemporaryTables:
    """The temporary tables of one session. Thread-safe.

    Catalog and store are made by the first CREATE TEMPORARY TABLE, so that other sessions pay
    nothing. `close` drops all tables."""

    def __init__(self, warehouse: Services) -> None:
        self._warehouse = warehouse
        self._services: Services | None = None
        self._store = TemporaryStore(warehouse.store.cache)
        self._written: set[str] = set()
        self._settled = 0
        self._lock = threading.RLock()

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot of the temporary tables; None before the first was made."""
        return None if self._services is None else self._services.catalog.snapshot()

    def ids(self) -> Mapping[str, str]:
        """Return the id of each temporary table by name."""
        snapshot = self.snapshot()
        if snapshot is None:
            return {}
        return {item.name: item.id for item in snapshot.objects(TEMPORARY_DATABASE)}

    @property
    def store(self) -> TemporaryStore:
        """The files of the temporary tables."""
        return self._store

    def services(self, settings: Settings) -> Services:
        """Return the services to write temporary tables with; their files are limited by the
        statement's `max_memory_usage`."""
        with self._lock:
            if self._services is None:
                self._services = self._opened()
            self._store.bytes_max = memory_limit(settings)
            return self._services

    def settle(self) -> None:
        """Merge the tables that statements wrote, and free the memory of parts that no query reads
        any more. Call it after each statement: there is no background work."""
        with self._lock:
            if self._services is None or self._services.catalog.snapshot().number == self._settled:
                return
            while self._written:
                table_id = self._written.pop()
                for _ in range(MERGES_MAX):
                    if not merge_planner.merge_worthwhile(self._services, table_id):
                        break
            vacuums.vacuum(self._services, lifetime_seconds=0)
            self._settled = self._services.catalog.snapshot().number

    def close(self) -> None:
        """Drop all temporary tables and free their memory. Idempotent."""
        with self._lock:
            services, self._services = self._services, None
            if services is None:
                return
            for file in list(self._store.list("")):
                self._store.delete(file.path)
            services.catalog.close()

    def _opened(self) -> Services:
        """Return services over an empty catalog in memory that has the database of temporary
        tables."""
        catalog = SqliteCatalog(":memory:")
        entry = DatabaseEntry(str(uuid.uuid4()), TEMPORARY_DATABASE, "")
        catalog.apply(changes.Commit((), (changes.AddDatabase(entry),), "CREATE DATABASE"))
        return replace(
            self._warehouse,
            catalog=catalog,
            store=self._store,
            lease_id=catalog.open_lease("process"),
            notify_written=self._written.add,
            cache=Cache(),
        )
