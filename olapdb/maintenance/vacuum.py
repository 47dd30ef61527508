"""Removes what nobody can read any more: dropped parts after their time, and what dead writers
left.  A file goes only when the catalog has been asked, after its writer's lease had ended, and
does not know it; a file whose writer is not known stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from olapdb.errors import FileDoesntExist
from olapdb.model.schema import Table
from olapdb.runtime.failpoints import failpoint
from olapdb.runtime.services import Services
from olapdb.storage.replay_manifest import MANIFEST_SUFFIX, is_complete, is_in_use
from olapdb.storage.store import StoredFile
from olapdb.storage.writer import DATA_FOLDER, lease_of_path

OLD_PARTS_LIFETIME_SECONDS = 480
PARTS_A_STEP = 500
"""Parts that one transaction forgets: INSERTs wait for it."""
COMMITS_KEPT = 10_000
"""Entries of the log of commits that stay, besides those of the time that may be read."""
PARTS_A_SECOND = 1_000
"""The pace of vacuum where it was not measured yet."""
FORGOTTEN, FORGETTING = "VacuumedParts", "VacuumMicroseconds"
"""Counters of system.events, by which the pace is known."""
NOTE_LIFETIME_MS = 3_600_000
_FOR_EVER_MS = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """`unknown_files` are left alone: their names bear no lease of this catalog."""

    parts: int
    files: int
    revoked_leases: tuple[str, ...]
    unknown_files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VacuumBacklog:
    """Parts that have had their time and are there still, and the seconds of work that they are at
    the pace that this process measured."""

    parts: int
    seconds: float


def vacuum(
    services: Services,
    *,
    lifetime_seconds: int | None = None,
    wanted: Callable[[], bool] = lambda: True,
) -> VacuumReport:
    """Forget all that has had its time, and give its space back.

    `lifetime_seconds` overrides every table's `old_parts_lifetime`.  `wanted` is asked between two
    transactions; what is left is left to the next round."""
    catalog = services.catalog
    services.deferred.run_pending()
    now_ms = services.clock_ms()
    default_seconds = OLD_PARTS_LIFETIME_SECONDS if lifetime_seconds is None else lifetime_seconds
    until_ms = _until(now_ms, default_seconds)
    parts, files = _dropped(
        services,
        until_ms,
        {} if lifetime_seconds is not None else _until_of(services, now_ms),
        wanted,
    )
    revoked = catalog.revoke_dead_leases()
    failpoint("vacuum.revoked")
    orphans, unknown = _orphans(services)
    catalog.purge_history(until_ms, COMMITS_KEPT)
    catalog.release_space()
    return VacuumReport(parts, files + orphans, revoked, unknown)


def backlog(services: Services) -> VacuumBacklog:
    """Return what vacuum is behind with, now."""
    now_ms = services.clock_ms()
    parts = services.catalog.overdue_parts(
        _until(now_ms, OLD_PARTS_LIFETIME_SECONDS), _until_of(services, now_ms)
    )
    events = services.activity.events()
    done, microseconds = events.get(FORGOTTEN, 0), events.get(FORGETTING, 0)
    pace = done * 1_000_000 / microseconds if microseconds else PARTS_A_SECOND
    return VacuumBacklog(parts, parts / pace if parts else 0.0)


def _is_old_note(services: Services, file: StoredFile) -> bool:
    """A complete note whose replay has long committed, or failed."""
    store, now_ms = services.store, services.clock_ms()
    if not file.path.endswith(MANIFEST_SUFFIX) or file.modified_ms + NOTE_LIFETIME_MS > now_ms:
        return False
    try:
        # Complete when it was listed: what it tells of was written before, and is listed as well.
        return store.size(file.path) == file.bytes and is_complete(store, file.path)
    except FileDoesntExist:
        return False


def _dropped(
    services: Services, until_ms: int, until_of: Mapping[str, int], wanted: Callable[[], bool]
) -> tuple[int, int]:
    """Forgets dropped parts, then deletes their files; the rows first, so that a crash between
    leaves orphans, which a later round finds, and never a part without its file. Step by step,
    until none is due."""
    parts = files = after = 0
    while True:
        started = time.perf_counter_ns()
        due = services.catalog.dropped_parts(until_ms, PARTS_A_STEP, until_of, after)
        paths = services.catalog.purge_parts(due)
        for path in paths:
            services.store.delete(path)
            failpoint("vacuum.file_deleted")
        parts, files = parts + len(due), files + len(paths)
        services.activity.count(FORGOTTEN, len(due))
        if due:
            services.activity.count(FORGETTING, (time.perf_counter_ns() - started) // 1_000)
        if len(due) < PARTS_A_STEP or not wanted():
            return parts, files
        after = due[-1].dropped_commit  # of this commit more may be due


def _until_of(services: Services, now_ms: int) -> dict[str, int]:
    """When parts that are due now were dropped at the latest, of tables whose settings say."""
    tables = [one.table for one in services.catalog.dropped_tables()]
    tables += [o for o in services.catalog.snapshot().objects() if isinstance(o, Table)]
    lifetimes = {table.id: dict(table.settings).get("old_parts_lifetime") for table in tables}
    return {
        table_id: _until(now_ms, int(lifetime))
        for table_id, lifetime in lifetimes.items()
        if lifetime is not None
    }


def _until(now_ms: int, lifetime_seconds: int) -> int:
    """When what has had its time was dropped at the latest: of no time at all that is whatever was,
    although the clock may have been set back since."""
    return now_ms - lifetime_seconds * 1000 if lifetime_seconds else _FOR_EVER_MS


def _orphans(services: Services) -> tuple[int, tuple[str, ...]]:
    catalog = services.catalog
    # In this order: files, then leases, then what the catalog knows.  A lease that has ended by
    # now can commit no more, so a file of it that is not known then never will be.
    listed = {file.path: file for file in services.store.list(f"{DATA_FOLDER}/")}
    states = {lease.id: lease.state for lease in catalog.leases()}
    referenced = catalog.referenced_paths()
    deleted, unknown, present = 0, [], set()
    there = set(listed)

    def turn(path: str) -> tuple[bool, int]:
        """The oldest first: what a part replaced is gone before it is, see rebuild_catalog. Notes
        last: while one says that a replay is under way, none of its parts counts."""
        return path.endswith(MANIFEST_SUFFIX), listed[path].modified_ms

    for path in sorted(listed, key=turn):
        lease_id = lease_of_path(path)
        present.add(lease_id)
        if path in referenced:
            continue
        if states.get(lease_id) == "live" and not _is_old_note(services, listed[path]):
            continue
        if is_in_use(services.store, path, there):
            continue
        if lease_id not in states:
            unknown.append(path)
            continue
        services.store.delete(path)
        there.discard(path)
        failpoint("vacuum.file_deleted")
        deleted += 1
    gone = [one for one, state in states.items() if state != "live" and one not in present]
    if gone:
        # A loss of power must not bring back a file whose lease nobody remembers.
        services.store.sync()
        catalog.purge_leases(gone)
    return deleted, tuple(unknown)
