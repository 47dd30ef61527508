"""Find damaged live parts, and keep the catalog's list of them.

    a read fails            the reader makes the part a suspect (`olapdb.storage.suspects`)
    the statement ends      its bytes are compared with their checksum; damage is recorded
    system.views            views that read or write the part's table are unverifiable
    CHECK TABLE             records which parts are damaged, and which are sound again
    QUARANTINE PART, …      the part is not live any more, so its damage does not count

A process that cannot write the catalog keeps its own list in memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from olapdb.errors import Error, OperationalError, SnapshotTooOld
from olapdb.model.damage import Damage
from olapdb.model.part import Part
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.services import Services
from olapdb.storage.checksum import indicates_damage, verify_file, verify_inline
from olapdb.storage.store import Store


def check_suspects(services: Services) -> None:
    """Record in the catalog which suspects are damaged. Cheap without suspects. Raises no olapdb
    error: it runs at the end of a statement, whose own error counts."""
    suspects = services.store.cache.suspects
    if not suspects:
        return
    taken = suspects.take()
    try:
        with services.catalog.pinned() as snapshot:
            problems = ((part, _problem(part, snapshot, services)) for part in taken)
            damaged = [
                damage_of(part, problem, services.clock_ms())
                for part, problem in problems
                if problem
            ]
        if damaged:
            services.catalog.record_damaged(damaged)
    except Error:
        for part in taken:
            suspects.add(part)


def _problem(part: Part, snapshot: Snapshot, services: Services) -> str:
    """Return the damage of a suspect, "" if it is sound, is gone, or cannot be checked now.

    In the last case the next failing read makes it a suspect again.
    """
    if not is_live(part, snapshot):
        return ""
    try:
        return bytes_problem(snapshot, services.store, part)
    except Error:
        return ""


def is_live(part: Part, snapshot: Snapshot) -> bool:
    """Return whether the part is live in the snapshot; a vacuumed or a detached part is not."""
    if snapshot.by_id(part.table_id) is None:
        return False
    return any(live_part.id == part.id for live_part in snapshot.parts(part.table_id))


def bytes_problem(snapshot: Snapshot, store: Store, part: Part) -> str:
    """Return how the bytes of a live part differ from those written, "" if they do not. Reads all
    of them. Raises errors of the operating system that are not about the part."""
    try:
        if part.inline:
            verify_inline(part, snapshot.inline_rows(part))
        elif part.rows:
            verify_file(store, part)
    except SnapshotTooOld:
        return "The catalog does not hold its rows."
    except OperationalError as error:
        if indicates_damage(error):
            return error.message
        raise
    return ""


def damage_of(part: Part, reason: str, now_ms: int) -> Damage:
    """Return the entry for the catalog's list."""
    return Damage(part.id, part.table_id, part.name, reason, now_ms)


def record_check(services: Services, damaged: Iterable[Damage], sound: Iterable[str]) -> None:
    """Record the result of CHECK TABLE: damaged parts, and ids of sound ones."""
    known_ids = {damage.part_id for damage in services.catalog.damaged()}
    repaired = known_ids.intersection(sound)
    if repaired:
        services.catalog.clear_damaged(repaired)
    new = [damage for damage in damaged if damage.part_id not in known_ids]
    if new:
        services.catalog.record_damaged(new)
