"""Which live parts are damaged: found by whatever reads them, noted in the catalog, lifted by CHECK
TABLE.

    a read fails            the reader makes the part a suspect (`olapdb.storage.suspects`)
    the statement ends      its bytes are compared with their checksum, and the catalog is told
    system.views            views that read or write the part's table are unverifiable
    CHECK TABLE             tells the catalog what is damaged, and what is sound again
    QUARANTINE PART, …      the part is not live any more, and its damage counts no more

A process that cannot write the catalog remembers what it met for itself.
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
    """Note in the catalog which suspects are damaged.  Cheap where there are none; raises nothing
    of ours, since it runs when a statement ends, whose own error counts."""
    suspects = services.store.cache.suspects
    if not suspects:
        return
    taken = suspects.take()
    try:
        with services.catalog.pinned() as snapshot:
            looked_at = ((part, _looked_at(part, snapshot, services)) for part in taken)
            found = [damage_of(part, why, services.clock_ms()) for part, why in looked_at if why]
        if found:
            services.catalog.record_damaged(found)
    except Error:
        for part in taken:
            suspects.add(part)


def _looked_at(part: Part, snapshot: Snapshot, services: Services) -> str:
    """What is wrong with a suspect, "" for nothing. Where that cannot be learnt now, the next read
    that fails makes it a suspect again."""
    if not is_live(part, snapshot):
        return ""
    try:
        return bytes_problem(snapshot, services.store, part)
    except Error:
        return ""


def is_live(part: Part, snapshot: Snapshot) -> bool:
    """Of a table that is there; a part that vacuum removed under its reader is not, and one that is
    detached has no views."""
    if snapshot.by_id(part.table_id) is None:
        return False
    return any(one.id == part.id for one in snapshot.parts(part.table_id))


def bytes_problem(snapshot: Snapshot, store: Store, part: Part) -> str:
    """Why the bytes of a live part are not those that were written, "" where they are. Reads all
    of them.  Raises what the operating system refuses for another reason."""
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
    return Damage(part.id, part.table_id, part.name, reason, now_ms)


def record_check(services: Services, damaged: Iterable[Damage], sound: Iterable[str]) -> None:
    """Tell the catalog what CHECK TABLE found: these are damaged, these parts (ids) are sound."""
    known = {one.part_id for one in services.catalog.damaged()}
    lifted = known.intersection(sound)
    if lifted:
        services.catalog.clear_damaged(lifted)
    new = [one for one in damaged if one.part_id not in known]
    if new:
        services.catalog.record_damaged(new)
