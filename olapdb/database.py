"""An open warehouse: owns its catalog, store, caches and background merges.

All connections of a process to one folder share one `Database`; releasing the last one closes it.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from olapdb.catalog.protocol import CATALOG_FILE, Catalog
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.compute.spill.files import remove_leftovers
from olapdb.config import Settings
from olapdb.errors import BadArguments, CannotOpenWarehouse, ExternalToolMissing, InterfaceError
from olapdb.lazy import LazyModule
from olapdb.maintenance.refresh_thread import RefreshThread
from olapdb.maintenance.scheduler import MergeScheduler
from olapdb.model.failpoint import Durability
from olapdb.model.schema import MaterializedView
from olapdb.native.library import library
from olapdb.runtime.failpoints import failpoint
from olapdb.runtime.services import Services
from olapdb.session import Session
from olapdb.statements.context import OpenWarehouse, PlanCache
from olapdb.statements.databases import require_database
from olapdb.storage.column_cache import process_columns
from olapdb.storage.store import LocalStore, MemoryStore, Store
from olapdb.threads import end_with_process

if TYPE_CHECKING:
    from importlib import metadata

    from olapdb.commit.origin import CommitOrigin
    from olapdb.dml import ttl
    from olapdb.views.definition import judgement
    from olapdb.views.jobs import job
    from olapdb.views.jobs.executor import Executor
else:
    metadata = LazyModule("importlib.metadata")
    ttl = LazyModule("olapdb.dml.ttl")
    judgement = LazyModule("olapdb.views.definition.judgement")
    job = LazyModule("olapdb.views.jobs.job")

MEMORY = ":memory:"


class Database:
    """One warehouse, opened once in this process. Use `Database.open` and `release`."""

    _opened: dict[tuple[int, str], Database] = {}
    _guard = threading.Lock()

    def __init__(self, location: str, *, read_only: bool, durability: Durability = "full") -> None:
        self.location = location
        self.read_only = read_only
        self.durability = durability
        self._users = 1
        self._catalog, self._store = _open_parts(location, read_only, durability)
        try:
            lease_id = "" if read_only else self._catalog.open_lease("process")
        except BaseException:
            self._catalog.close()
            raise
        self._scheduler: MergeScheduler | None = None
        self.services = Services(
            catalog=self._catalog,
            store=self._store,
            lease_id=lease_id,
            zone=self._catalog.zone,
            notify_written=self._written,
        )
        if not read_only:
            if self._store.temporary_folder is not None:
                remove_leftovers(self._store.temporary_folder)
            if any(self._catalog.snapshot().objects_of(MaterializedView)):
                judgement.judge_older_views(self.services)
            self._scheduler = MergeScheduler(self.services, expire=_apply_ttl)
            self._scheduler.start()
        library()  # kernels are loaded here, not in the time of the first query
        end_with_process(self)
        self.engine = OpenWarehouse(
            services=self.services,
            executor=self.executor,
            background=self._scheduler,
            plans=PlanCache(),
        )
        self._refreshes: RefreshThread | None = None
        if self._scheduler is not None:
            scheduled = Session(self.engine, "default", Settings())
            self._refreshes = RefreshThread(scheduled.refresh_due, self._scheduler.record_failure)
            self._refreshes.start()

    @classmethod
    def open(
        cls, location: str, *, read_only: bool = False, durability: Durability = "full"
    ) -> Database:
        """Return the database of the folder, shared within the process; `:memory:` is always a new
        one. Each call needs a `close` of its own: the last one closes the database.

        Raises InterfaceError if this process has it open with another `read_only` or `durability`.
        Raises BadArguments for an unknown `durability`, and for a read-only one in memory.
        """
        if durability not in ("full", "process"):
            raise BadArguments(f"durability is 'full' or 'process', not {durability!r}.")
        if location == MEMORY:
            if read_only:
                raise BadArguments(
                    "A warehouse in memory cannot be read_only: it would stay empty."
                )
            return cls(location, read_only=False)
        location = _real_path(location)
        key = (os.getpid(), location)
        with cls._guard:
            opened = cls._opened.get(key)
            if opened is None:
                opened = cls._opened[key] = cls(
                    location, read_only=read_only, durability=durability
                )
                return opened
            if opened.read_only != read_only:
                mode = "read-only" if opened.read_only else "for writing"
                raise InterfaceError(
                    f"{location} is already open {mode} in this process.",
                    hint="Close that connection first, or open this one alike.",
                )
            if opened.durability != durability:
                raise InterfaceError(
                    f"{location} is already open with durability = '{opened.durability}' in this"
                    " process.",
                    hint="Close that connection first, or open this one alike.",
                )
            opened._users += 1
            return opened

    def release(self) -> None:
        """Close the warehouse if this was its last user; every `open` needs one call."""
        with self._guard:
            self._users -= 1
            if self._users > 0:
                return
            self._opened.pop((os.getpid(), self.location), None)
        self._close()

    def session(self, database: str, settings: Mapping[str, object]) -> Session:
        """Return a session whose current database is `database`. Raises UnknownDatabase, BadArguments."""
        if not isinstance(settings, Mapping):
            raise BadArguments(
                f"settings are a mapping of names to values, not {type(settings).__name__}.",
                hint="For example settings={'max_threads': 4}.",
            )
        require_database(database, self._catalog.snapshot(), None)
        return Session(self.engine, database, Settings(settings))

    def executor(self, name: str, settings: Settings) -> Executor:
        """Return the executor of SETTINGS engine = `name`. Those other than in_process come from
        the entry point group `olapdb.executors`, so that the engine never imports them. Raises
        BadArguments for these in memory, ExternalToolMissing if none is installed."""
        if name == "in_process":
            return job.default_executor(self.services, settings)
        if self.location == MEMORY:
            raise BadArguments(
                f"engine = '{name}' needs a warehouse in a folder; this one is in memory.",
                hint="Use engine = 'in_process', or connect to a folder.",
            )
        for point in metadata.entry_points(group="olapdb.executors", name=name):
            make = point.load()
            executor: Executor = make(self.location, self.services, settings)
            return executor
        raise ExternalToolMissing(
            f"The executor {name} is not installed.", hint=f"pip install 'olapdb[{name}]'."
        )

    def end_soon(self) -> None:
        """Stop merges and cancel statements, because the process ends and no thread may work in
        Arrow any longer. Returns at once."""
        if self._refreshes is not None:
            self._refreshes.end_soon()
        if self._scheduler is not None:
            self._scheduler.end_soon()
        self.services.refreshes.cancel_all()
        self.services.activity.cancel_all()

    def _written(self, table_id: str) -> None:
        """Notify the scheduler of background merges that a commit wrote to the table."""
        if self._scheduler is not None:
            self._scheduler.notify(table_id)

    def _close(self) -> None:
        """Stop the background work, release the cached columns, then close the catalog. A refresh
        in progress is cancelled."""
        if self._refreshes is not None:
            self._refreshes.end_soon()
            self.services.refreshes.cancel_all()
            self._refreshes.stop()
        if self._scheduler is not None:
            self._scheduler.stop()
        self._store.cache.columns.forget()
        self._catalog.close()


def set_uncompressed_cache_size(size_bytes: int) -> None:
    """Set the bytes of decoded columns that this process keeps; 0 turns the cache off. Raise
    BadArguments for a negative size."""
    if size_bytes < 0:
        raise BadArguments(f"uncompressed_cache_size is 0 or more bytes, not {size_bytes}.")
    process_columns().resize(size_bytes)


def _open_parts(location: str, read_only: bool, durability: Durability) -> tuple[Catalog, Store]:
    """Open the catalog and the store of a location, or create them. Return (catalog, store). Raise
    CannotOpenWarehouse if there is no warehouse to read, or if a folder holds other files."""
    if location == MEMORY:
        return SqliteCatalog(MEMORY, failpoint=failpoint), MemoryStore(failpoint=failpoint)
    folder = Path(location)
    catalog_path = folder / CATALOG_FILE
    if not catalog_path.exists():
        if read_only:
            raise CannotOpenWarehouse(
                f"{location} is no warehouse: there is no {CATALOG_FILE} in it.",
                hint="Check the path, or connect without read_only to make one.",
            )
        _make_folder(folder)
    store = LocalStore(str(folder), durability, read_only=read_only, failpoint=failpoint)
    catalog = SqliteCatalog(
        str(catalog_path),
        durability=durability,
        read_only=read_only,
        sync_files=store.sync,
        failpoint=failpoint,
    )
    return catalog, store


def _apply_ttl(origin: CommitOrigin, table_id: str) -> None:
    """Remove what expired from a table, see `olapdb.dml.ttl`."""
    ttl.apply_ttl(origin, table_id)


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""How a URL begins, also one that pathlib made a path of."""


def _real_path(location: str) -> str:
    """Return the absolute path of a folder. Raise CannotOpenWarehouse for one that no folder can have, and for a
    URL, which would be a folder named like its scheme."""
    if _URL.match(location):
        raise CannotOpenWarehouse(
            f"{location!r} is a URL; a warehouse is a folder of this machine.",
            hint="Give its path: olapdb.connect('warehouse/'). A URL 'olapdb:///warehouse' is for "
            "sqlalchemy.create_engine.",
        )
    try:
        os.stat(path := os.path.realpath(location))
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:  # too long a name; a NUL
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotOpenWarehouse(f"{location!r} can be no folder: {reason}.") from error
    return path


def _make_folder(folder: Path) -> None:
    """Create the folder, or accept an empty one. Raise CannotOpenWarehouse if it holds files that
    are not a catalog's."""
    if folder.is_dir() and any(p for p in folder.iterdir() if not p.name.startswith(CATALOG_FILE)):
        raise CannotOpenWarehouse(
            f"{folder} is not empty and has no {CATALOG_FILE}: it is no warehouse.",
            hint="Name a new folder, or an empty one. olapdb.rebuild_catalog(folder) rebuilds a lost "
            "catalog from the parts' footers.",
        )
    if folder.is_file():
        raise CannotOpenWarehouse(
            f"{folder} is a file; a warehouse is a folder.", hint="Name a new folder."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotOpenWarehouse(f"Cannot make the folder {folder}: {error.strerror}.") from error
