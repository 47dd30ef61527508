"""What vacuum removes of the catalog.

The mark of what is gone is written before the pins are read, and whoever pins reads it after the
pin is written, so that one of the two sees the other.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from olapdb.catalog.protocol import DroppedPart
from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.compaction import compact_blocks, crowded_tables
from olapdb.catalog.sqlite.vacuum_mark import raise_mark
from olapdb.catalog.sqlite.writer import Writer
from olapdb.model.failpoint import Reach

COMMITS_A_STEP = 5_000


@dataclass(frozen=True, slots=True)
class History:
    """What vacuum may forget of the past: rows that no snapshot after `horizon` shows, the log of
    commits from `oldest_commit` to those before `before`, the single blocks of `crowded` tables."""

    horizon: int
    oldest_commit: int
    before: int
    crowded: tuple[str, ...]


def due_history(connection: sqlite3.Connection, horizon: int, before: int) -> History | None:
    """Return what is to be forgotten, None where it is not worth a write.

    The log keeps the commits from the horizon on: by them vacuum knows what has had its time."""
    before = min(before, horizon)
    crowded = crowded_tables(connection, horizon)
    if not crowded and sql.has_history.value(connection, up_to=horizon, before=before) is None:
        return None
    oldest = int(sql.oldest_commit.value(connection))
    return History(horizon, oldest, before, crowded)


def forget_parts(
    writer: Writer, parts: Sequence[DroppedPart], oldest_pin: Callable[[], int], reach: Reach
) -> tuple[str, ...]:
    """Of the parts those that nobody can see, and the paths of their files that no other part has;
    `reach` is for tests."""
    if not parts:
        return ()
    with writer.housekeeping("vacuum") as connection:
        raise_mark(connection, max(one.dropped_commit for one in parts))
    reach("vacuum.marked")
    horizon = oldest_pin()
    gone = [one for one in parts if one.dropped_commit <= horizon]
    ids = json.dumps([one.part.id for one in gone])
    paths = {one.part.path for one in gone if one.part.path}
    with writer.housekeeping("vacuum") as connection:
        sql.forget_parts(connection, part_ids=ids, up_to=horizon)
        sql.forget_inline(connection, part_ids=ids)
        used = sql.paths_still_used(connection, paths=json.dumps(sorted(paths)))
        paths -= {path for (path,) in used}
    reach("vacuum.forgotten")
    # As they were dropped: what a part replaced is gone before it is, see rebuild_catalog.
    return tuple(dict.fromkeys(one.part.path for one in gone if one.part.path in paths))


def forget_history(
    writer: Writer,
    due: History,
    oldest_pin: Callable[[], int],
    clock_ms: Callable[[], int],
    reach: Reach,
) -> None:
    """Forget what no snapshot after the horizon shows, join old blocks, shorten the log.

    Each transaction is bounded, as INSERTs wait for it; a crash between two leaves the rest to the
    next round."""
    with writer.housekeeping("vacuum") as connection:
        raise_mark(connection, due.horizon)
    reach("vacuum.marked")
    horizon = min(due.horizon, oldest_pin())
    with writer.housekeeping("vacuum") as connection:
        leaving = json.dumps([id for (id,) in sql.leaving_tables(connection, up_to=horizon)])
        for forget in sql.forget_dropped:
            forget(connection, up_to=horizon)
        sql.forget_dropped_tables(connection, up_to=horizon)
        for forget in sql.forget_homeless:
            forget(connection, of_tables=leaving)
        sql.forget_superseded_checks(connection, up_to=horizon)
        sql.forget_older_versions(connection, up_to=horizon)
    reach("vacuum.history_forgotten")
    compact_blocks(writer, due.crowded, horizon, clock_ms, reach)
    before = min(due.oldest_commit, due.before)
    while before < due.before:
        before = min(before + COMMITS_A_STEP, due.before)
        with writer.housekeeping("vacuum") as connection:
            sql.forget_commits(connection, before=before)
