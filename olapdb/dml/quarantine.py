"""SYSTEM QUARANTINE PART: detaches a part that cannot be read, without reading it.

The detached part has the reason 'broken'; the other parts of its table can be read again.  Which
rows of views it reached is known from the ledger alone:

    of a view's source   slices whose parts name its blocks are stale
    of a view's target   its blocks are the view's gap, or its slice is stale: as by DETACH
    of a dimension       all that the view made is stale

ATTACH brings the part back, once its file was restored.
"""

from __future__ import annotations

from olapdb.commit.staging import Staging
from olapdb.dml.move_parts import as_detached
from olapdb.errors import NoSuchDataPart
from olapdb.lineage.row_removal import RowChange, RowRemoval, stored_table
from olapdb.model.changes import RemoveParts
from olapdb.model.requirements import PartsLive
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint


@dataclass(frozen=True, slots=True)
class QuarantinedPart:
    """The part that was detached. `path` is "" for a part whose rows lie in the catalog."""

    part: str
    partition: str
    path: str
    rows: int
    commit: int


def quarantine_part(change: RowChange, table_id: str, part: str) -> QuarantinedPart:
    """Detach the part in one commit. `part` is a name, or an id as error messages give it.

    Raises NoSuchDataPart if the table has no such part.
    """

    def attempt(snapshot: Snapshot, staging: Staging) -> QuarantinedPart:
        """Detach the part of that name or id, unread, in one commit; its rows leave the table.

        Raises NoSuchDataPart."""
        table = stored_table(snapshot, table_id, change.cause)
        matching = [
            live_part
            for live_part in snapshot.parts(table.id)
            if live_part.rows and part in (live_part.name, live_part.id)
        ]
        if not matching:
            raise NoSuchDataPart(
                f"{table.database}.{table.name} has no part {part}.",
                hint=f"CHECK TABLE {table.database}.{table.name} names those that are damaged.",
            )
        broken = matching[0]
        removal = RowRemoval(change, snapshot, table, [broken])
        removal.add_unread(broken)
        failpoint("move.rows_asked")
        commit = removal.publish(
            staging,
            [PartsLive(table.id, (broken.id,))],
            [RemoveParts(table.id, (broken.id,)), as_detached(snapshot, table, broken, "broken")],
        )
        failpoint("move.committed")
        return QuarantinedPart(broken.name, broken.partition_id, broken.path, broken.rows, commit)

    return change.until_published(attempt)
