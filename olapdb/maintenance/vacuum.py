"""Remove what no snapshot can read any more: dropped parts after their lifetime, and files of dead
writers.

A file is deleted only if its writer's lease had ended before the catalog was queried and the
catalog does not have it.  A file of an unknown writer stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from olapdb.errors import FileDoesntExist
from olapdb.model.schema import Table
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint
from olapdb.runtime.services import Services
from olapdb.storage.replay_manifest import MANIFEST_SUFFIX, is_complete, is_in_use
from olapdb.storage.store import StoredFile
from olapdb.storage.writer import DATA_FOLDER, lease_of_path

OLD_PARTS_LIFETIME_SECONDS = 480
PARTS_A_STEP = 500
"""Parts that one transaction purges: INSERTs wait for it."""
COMMITS_KEPT = 10_000
"""Entries of the commit log that stay, besides those within the parts' lifetime."""
PARTS_A_SECOND = 1_000
"""The assumed pace of vacuum before it was measured."""
PURGED_PARTS, PURGE_MICROSECONDS = "VacuumedParts", "VacuumMicroseconds"
"""Counters of system.events from which the pace is computed."""
MANIFEST_LIFETIME_MS = 3_600_000
_LATEST_MS = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """What a round removed. `unknown_files` were left alone: their names have no lease of this
    catalog."""

    parts: int
    files: int
    revoked_leases: tuple[str, ...]
    unknown_files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VacuumBacklog:
    """Parts that are due and not purged yet, and the seconds that this takes at the measured
    pace."""

    parts: int
    seconds: float


def vacuum(
    services: Services,
    *,
    lifetime_seconds: int | None = None,
    may_continue: Callable[[], bool] = lambda: True,
) -> VacuumReport:
    """Purge everything that is due, and release its space.

    `lifetime_seconds` overrides every table's `old_parts_lifetime`.  `may_continue` is called
    between two transactions; when it returns False, the rest waits for the next round.
    """
    catalog = services.catalog
    services.deferred.run_pending()
    now_ms = services.clock_ms()
    default_seconds = OLD_PARTS_LIFETIME_SECONDS if lifetime_seconds is None else lifetime_seconds
    until_ms = _due_time(now_ms, default_seconds)
    parts, files = _purge_dropped(
        services,
        until_ms,
        {} if lifetime_seconds is not None else _due_times(services, now_ms),
        may_continue,
    )
    revoked = catalog.revoke_dead_leases()
    failpoint("vacuum.revoked")
    orphans, unknown = _delete_orphans(services)
    catalog.purge_history(until_ms, COMMITS_KEPT)
    catalog.release_space()
    return VacuumReport(parts, files + orphans, revoked, unknown)


def backlog(services: Services) -> VacuumBacklog:
    """Return the number of parts that vacuum must purge now, and the seconds that this will take at
    the pace measured so far."""
    now_ms = services.clock_ms()
    parts = services.catalog.overdue_parts(
        _due_time(now_ms, OLD_PARTS_LIFETIME_SECONDS), _due_times(services, now_ms)
    )
    events = services.activity.events()
    done, microseconds = events.get(PURGED_PARTS, 0), events.get(PURGE_MICROSECONDS, 0)
    pace = done * 1_000_000 / microseconds if microseconds else PARTS_A_SECOND
    return VacuumBacklog(parts, parts / pace if parts else 0.0)


def _is_old_manifest(services: Services, file: StoredFile) -> bool:
    """Return whether the file is a complete manifest whose replay must have ended long ago."""
    store, now_ms = services.store, services.clock_ms()
    if not file.path.endswith(MANIFEST_SUFFIX) or file.modified_ms + MANIFEST_LIFETIME_MS > now_ms:
        return False
    try:
        # It was complete when listed, so the files it names were written before and are listed.
        return store.size(file.path) == file.bytes and is_complete(store, file.path)
    except FileDoesntExist:
        return False


def _purge_dropped(
    services: Services, until_ms: int, until_of: Mapping[str, int], may_continue: Callable[[], bool]
) -> tuple[int, int]:
    """Purge dropped parts step by step, then delete their files; return both counts. The rows go
    first, so that a crash leaves orphaned files for a later round, never a part without its file.
    """
    parts = files = after = 0
    while True:
        started = time.perf_counter_ns()
        due = services.catalog.dropped_parts(until_ms, PARTS_A_STEP, until_of, after)
        paths = services.catalog.purge_parts(due)
        for path in paths:
            services.store.delete(path)
            failpoint("vacuum.file_deleted")
        parts, files = parts + len(due), files + len(paths)
        services.activity.count(PURGED_PARTS, len(due))
        if due:
            services.activity.count(PURGE_MICROSECONDS, (time.perf_counter_ns() - started) // 1_000)
        if len(due) < PARTS_A_STEP or not may_continue():
            return parts, files
        after = due[-1].dropped_commit  # more parts of this commit may be due


def _due_times(services: Services, now_ms: int) -> dict[str, int]:
    """Return by table id the time until which a part must have been dropped to be due, for tables
    with an own `old_parts_lifetime`."""
    tables = [dropped.table for dropped in services.catalog.dropped_tables()]
    tables += [o for o in services.catalog.snapshot().objects() if isinstance(o, Table)]
    lifetimes = {table.id: dict(table.settings).get("old_parts_lifetime") for table in tables}
    return {
        table_id: _due_time(now_ms, int(lifetime))
        for table_id, lifetime in lifetimes.items()
        if lifetime is not None
    }


def _due_time(now_ms: int, lifetime_seconds: int) -> int:
    """Return the latest time at which a part must have been dropped for its purge now.

    In milliseconds. For a lifetime of 0 every dropped part qualifies, even if the clock was set
    back.
    """
    return now_ms - lifetime_seconds * 1000 if lifetime_seconds else _LATEST_MS


def _delete_orphans(services: Services) -> tuple[int, tuple[str, ...]]:
    """Delete unreferenced files of ended leases, and the leases; return (files deleted, unknown
    files)."""
    catalog = services.catalog
    # In this order: files, then leases, then the catalog's paths.  A lease that has ended by now
    # commits nothing more, so if the catalog lacks a file of it, it always will.
    listed = {file.path: file for file in services.store.list(f"{DATA_FOLDER}/")}
    states = {lease.id: lease.state for lease in catalog.leases()}
    referenced = catalog.referenced_paths()
    deleted, unknown, seen_leases = 0, [], set()
    remaining = set(listed)

    def deletion_order(path: str) -> tuple[bool, int]:
        """Return a sort key: the oldest first, and manifests last.

        So replaced parts go before their replacement (rebuild_catalog). An incomplete manifest
        makes a rebuild ignore its replay's parts.
        """
        return path.endswith(MANIFEST_SUFFIX), listed[path].modified_ms

    for path in sorted(listed, key=deletion_order):
        lease_id = lease_of_path(path)
        seen_leases.add(lease_id)
        if path in referenced:
            continue
        if states.get(lease_id) == "live" and not _is_old_manifest(services, listed[path]):
            continue
        if is_in_use(services.store, path, remaining):
            continue
        if lease_id not in states:
            unknown.append(path)
            continue
        services.store.delete(path)
        remaining.discard(path)
        failpoint("vacuum.file_deleted")
        deleted += 1
    ended = [
        lease for lease, state in states.items() if state != "live" and lease not in seen_leases
    ]
    if ended:
        # A loss of power must not bring back a file whose lease was purged.
        services.store.sync()
        catalog.purge_leases(ended)
    return deleted, tuple(unknown)
