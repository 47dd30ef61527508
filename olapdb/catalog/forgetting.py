"""What vacuum removes of the catalog.

The mark of what is gone is written before the pins are read, and whoever pins reads it after the
pin is written, so that one of the two sees the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from olapdb.catalog import statements as sql
from olapdb.catalog.base import DroppedPart
from olapdb.catalog.writing import Writer
from olapdb.model.stages import Reach


def forget_parts(
    writer: Writer, parts: Sequence[DroppedPart], oldest_pin: Callable[[], int], reach: Reach
) -> tuple[str, ...]:
    """Of the parts those that nobody can see, and the paths of their files that no other part has;
    `reach` is for tests."""
    if not parts:
        return ()
    mark = max(one.dropped_commit for one in parts)
    with writer.housekeeping("vacuum") as connection:
        kept = int(sql.get_meta.value(connection, name="vacuumed_to"))
        sql.set_meta(connection, name="vacuumed_to", content=str(max(kept, mark)))
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
    writer: Writer, horizon: int, before: int, oldest_pin: Callable[[], int]
) -> None:
    """What no snapshot after `horizon` shows, and the commits older than `before`."""
    with writer.housekeeping("vacuum") as connection:
        marked = int(sql.get_meta.value(connection, name="vacuumed_to"))
        sql.set_meta(connection, name="vacuumed_to", content=str(max(marked, horizon)))
    horizon = min(horizon, oldest_pin())
    with writer.housekeeping("vacuum") as connection:
        for forget in sql.forget_dropped:
            forget(connection, up_to=horizon)
        sql.forget_dropped_tables(connection, up_to=horizon)
        for forget in sql.forget_homeless:
            forget(connection)
        sql.forget_superseded_checks(connection, up_to=horizon)
        sql.forget_commits(connection, before=before)
