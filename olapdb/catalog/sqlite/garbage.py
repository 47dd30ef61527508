"""Vacuum's deletions in the catalog.

Vacuum writes its mark before it reads the pins, and a reader reads the mark after it has written
its pin, so one of the two sees the other.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence

from olapdb.catalog.protocol import DroppedPart
from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.compaction import compact_blocks, crowded_tables
from olapdb.catalog.sqlite.vacuum_mark import raise_mark
from olapdb.catalog.sqlite.writer import CatalogWriter
from olapdb.model.failpoint import FailpointObserver
from olapdb.records import dataclass

COMMITS_A_STEP = 5_000


@dataclass(frozen=True, slots=True)
class History:
    """History that vacuum may delete: rows that no snapshot after `horizon` shows, commits of the
    log from `oldest_commit` to before `before`, single blocks of the `crowded` tables."""

    horizon: int
    oldest_commit: int
    before: int
    crowded: tuple[str, ...]


def due_history(connection: sqlite3.Connection, horizon: int, before: int) -> History | None:
    """Return the history to delete, None if it is not worth a write.

    The log keeps the commits from the horizon on: vacuum needs their times to know which drops are
    due.
    """
    before = min(before, horizon)
    crowded = crowded_tables(connection, horizon)
    if not crowded and sql.has_history.value(connection, up_to=horizon, before=before) is None:
        return None
    oldest = int(sql.oldest_commit.value(connection))
    return History(horizon, oldest, before, crowded)


def purge_parts(
    writer: CatalogWriter,
    parts: Sequence[DroppedPart],
    oldest_pin: Callable[[], int],
    failpoint: FailpointObserver,
) -> tuple[str, ...]:
    """Delete the given parts that no pinned snapshot can see. Return the paths of files that no
    other part uses, in the order of the drops. `failpoint` is for tests."""
    if not parts:
        return ()
    with writer.housekeeping("vacuum") as connection:
        raise_mark(connection, max(dropped.dropped_commit for dropped in parts))
    failpoint("vacuum.marked")
    horizon = oldest_pin()
    purged = [dropped for dropped in parts if dropped.dropped_commit <= horizon]
    ids = json.dumps([dropped.part.id for dropped in purged])
    paths = {dropped.part.path for dropped in purged if dropped.part.path}
    with writer.housekeeping("vacuum") as connection:
        sql.purge_parts(connection, part_ids=ids, up_to=horizon)
        sql.purge_inline(connection, part_ids=ids)
        used = sql.paths_still_used(connection, paths=json.dumps(sorted(paths)))
        paths -= {path for (path,) in used}
    failpoint("vacuum.forgotten")
    # In the order of the drops: replaced parts go before their replacement, see rebuild_catalog.
    return tuple(
        dict.fromkeys(dropped.part.path for dropped in purged if dropped.part.path in paths)
    )


def purge_history(
    writer: CatalogWriter,
    due: History,
    oldest_pin: Callable[[], int],
    clock_ms: Callable[[], int],
    failpoint: FailpointObserver,
) -> None:
    """Delete the rows that no snapshot after `due.horizon` shows, join old blocks into spans,
    shorten the log of commits.

    Each transaction is bounded, as INSERTs wait for it; a crash between two leaves the rest to the
    next round."""
    with writer.housekeeping("vacuum") as connection:
        raise_mark(connection, due.horizon)
    failpoint("vacuum.marked")
    horizon = min(due.horizon, oldest_pin())
    with writer.housekeeping("vacuum") as connection:
        dropped_ids = json.dumps(
            [id for (id,) in sql.tables_dropped_until(connection, up_to=horizon)]
        )
        for forget in sql.purge_dropped:
            forget(connection, up_to=horizon)
        sql.purge_dropped_tables(connection, up_to=horizon)
        for forget in sql.purge_orphans:
            forget(connection, of_tables=dropped_ids)
        sql.purge_superseded_checks(connection, up_to=horizon)
        sql.purge_older_versions(connection, up_to=horizon)
    failpoint("vacuum.history_forgotten")
    compact_blocks(writer, due.crowded, horizon, clock_ms, failpoint)
    before = min(due.oldest_commit, due.before)
    while before < due.before:
        before = min(before + COMMITS_A_STEP, due.before)
        with writer.housekeeping("vacuum") as connection:
            sql.purge_commits(connection, before=before)
