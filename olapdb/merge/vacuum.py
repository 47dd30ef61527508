"""Removes what nobody can read any more: dropped parts after their time, and what dead writers
left.  A file goes only when the catalog has been asked, after its writer's lease had ended, and
does not know it; a file whose writer is not known stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from olapdb.errors import FileDoesntExist
from olapdb.model.schema import Table
from olapdb.storage.store import StoredFile
from olapdb.storage.swap_note import SWAP_SUFFIX, is_complete, still_tells
from olapdb.storage.writer import DATA_FOLDER, lease_of_path
from olapdb.transaction.points import reach
from olapdb.transaction.services import Services

OLD_PARTS_LIFETIME_SECONDS = 480
PARTS_A_ROUND = 1_000
COMMITS_KEPT = 100_000
NOTE_LIFETIME_MS = 3_600_000
_FOR_EVER_MS = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """`unknown_files` are left alone: their names bear no lease of this catalog."""

    parts: int
    files: int
    revoked_leases: tuple[str, ...]
    unknown_files: tuple[str, ...]


def vacuum(services: Services, *, lifetime_seconds: int | None = None) -> VacuumReport:
    """One round. `lifetime_seconds` overrides every table's `old_parts_lifetime`."""
    catalog = services.catalog
    services.leftovers.settle()
    now_ms = services.clock_ms()
    default_seconds = OLD_PARTS_LIFETIME_SECONDS if lifetime_seconds is None else lifetime_seconds
    until_ms = _until(now_ms, default_seconds)
    parts, files = _dropped(
        services, until_ms, {} if lifetime_seconds is not None else _until_of(services, now_ms)
    )
    revoked = catalog.revoke_dead_leases()
    reach("vacuum.revoked")
    orphans, unknown = _orphans(services)
    catalog.forget_history(until_ms, COMMITS_KEPT)
    return VacuumReport(parts, files + orphans, revoked, unknown)


def _is_old_note(services: Services, file: StoredFile) -> bool:
    """A complete note whose replay has long committed, or failed."""
    store, now_ms = services.store, services.clock_ms()
    if not file.path.endswith(SWAP_SUFFIX) or file.modified_ms + NOTE_LIFETIME_MS > now_ms:
        return False
    try:
        # Complete when it was listed: what it tells of was written before, and is listed as well.
        return store.size(file.path) == file.bytes and is_complete(store, file.path)
    except FileDoesntExist:
        return False


def _dropped(services: Services, until_ms: int, until_of: Mapping[str, int]) -> tuple[int, int]:
    """Forgets dropped parts, then deletes their files; the rows first, so that a crash between
    leaves orphans, which a later round finds, and never a part without its file."""
    catalog = services.catalog
    due = catalog.dropped_parts(until_ms, PARTS_A_ROUND, until_of)
    paths = catalog.forget_parts(due)
    for path in paths:
        services.store.delete(path)
        reach("vacuum.file_deleted")
    return len(due), len(paths)


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
        return path.endswith(SWAP_SUFFIX), listed[path].modified_ms

    for path in sorted(listed, key=turn):
        lease_id = lease_of_path(path)
        present.add(lease_id)
        if path in referenced:
            continue
        if states.get(lease_id) == "live" and not _is_old_note(services, listed[path]):
            continue
        if still_tells(services.store, path, there):
            continue
        if lease_id not in states:
            unknown.append(path)
            continue
        services.store.delete(path)
        there.discard(path)
        reach("vacuum.file_deleted")
        deleted += 1
    gone = [one for one, state in states.items() if state != "live" and one not in present]
    if gone:
        # A loss of power must not bring back a file whose lease nobody remembers.
        services.store.sync()
        catalog.forget_leases(gone)
    return deleted, tuple(unknown)
