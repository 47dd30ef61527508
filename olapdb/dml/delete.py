"""DELETE: removes rows, with the effects on every view that processed them.

Parts are immutable: a part with deleted rows is replaced, in one commit, by one without them, of
the same blocks.  The same commit raises the data version of the partition, so that a backfill or a
replay that read the old rows cannot publish. `RowRemoval` adds the changes of views (rules 4, 5).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from olapdb.commit.origin import CommitOrigin
from olapdb.commit.staging import Staging
from olapdb.config import Settings
from olapdb.dml.find_rows import Parameters, in_partition, matching_offsets
from olapdb.errors import UnexpectedExpression, UnknownIdentifier
from olapdb.ingest.block_parts import layout_of
from olapdb.ingest.read_parts import read_rows
from olapdb.lineage.row_removal import RowChange, RowRemoval, stored_table
from olapdb.model.changes import AddPart, Change, RemoveParts
from olapdb.model.part import Part
from olapdb.model.requirements import PartsLive
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint
from olapdb.sql import nodes
from olapdb.sql.trees import is_not_query, walk
from olapdb.types.arrow_values import from_numpy


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """The outcome of a DELETE: the rows removed, the parts replaced or removed; `commit` is None
    where nothing matched."""

    rows: int
    parts: int
    commit: int | None


NOTHING_DELETED = DeleteResult(0, 0, None)


def delete_rows(
    origin: CommitOrigin,
    table_id: str,
    condition: nodes.Expression,
    *,
    partition_id: str | None = None,
    parameters: Parameters = None,
) -> DeleteResult:
    """Delete the rows for which the condition is true (NULL is not), as of one snapshot.

    Rows inserted meanwhile stay. In a view's target the slices become stale, or the view's gap
    where no row of them remains. Raises RetainedRows for rows that cannot be computed again (unless
    the settings say `discard_retained`), UnsupportedMethod where the engine stores no parts.
    """
    discards_retained = Settings.of(origin.settings).boolean("discard_retained")
    change = RowChange(origin, "DELETE", discard_retained=discards_retained)
    where = in_partition(condition, partition_id)

    def attempt(snapshot: Snapshot, staging: Staging) -> DeleteResult:
        """Delete the rows that match `where` in one commit on this snapshot."""
        table = stored_table(snapshot, table_id, "DELETE")
        parts = [part for part in snapshot.parts(table.id) if part.rows]
        matches = matching_offsets(change.context(snapshot), table, parts, where, parameters)
        return remove_rows(change, snapshot, table, matches, staging)

    return change.until_published(attempt)


def remove_rows(
    change: RowChange,
    snapshot: Snapshot,
    table: Table,
    rows_of_parts: Sequence[tuple[Part, np.ndarray | None]],
    staging: Staging,
) -> DeleteResult:
    """Commit the removal of the rows in `rows_of_parts`; commit nothing without any part.

    Each item is a part and the offsets of its rows; offsets None removes all rows of the part.
    """
    if not rows_of_parts:
        return NOTHING_DELETED
    parts = tuple(part for part, _ in rows_of_parts)
    removal = RowRemoval(change, snapshot, table, parts)
    context = change.context(snapshot)
    staged: list[AddPart] = []
    removed = 0
    for part, offsets in rows_of_parts:
        change.origin.refuse_cancelled()
        if offsets is None or len(offsets) == part.rows:
            rows = read_rows(context, table, part) if removal.reads_rows else None
            removal.add(part, rows, part.rows)
            removed += part.rows
            continue
        rows = read_rows(context, table, part)
        is_removed = np.zeros(part.rows, dtype=bool)
        is_removed[offsets] = True
        mask = from_numpy(is_removed)
        removed += len(offsets)
        removal.add(part, rows.filter(mask), len(offsets))
        remaining = rows.filter(pc.invert(mask))
        derived = layout_of(table, context).derived(remaining)
        staged.append(staging.stage_replacement(table, part, remaining, derived))
        failpoint("delete.part_rewritten")
    ids = tuple(sorted(part.id for part in parts))
    changes: list[Change] = [RemoveParts(table.id, ids), *staged]
    commit = removal.publish(staging, [PartsLive(table.id, ids)], changes)
    return DeleteResult(removed, len(parts), commit)


def require_condition(condition: nodes.Expression | None) -> nodes.Expression:
    """Return the condition; raise UnknownIdentifier, as ClickHouse does, for a
    DELETE without WHERE, and UnexpectedExpression for one that calls arrayJoin()."""
    if condition is None:
        raise UnknownIdentifier("DELETE needs a WHERE.", hint="TRUNCATE TABLE removes all rows.")
    refuse_array_join(condition)
    return condition


def refuse_array_join(action: nodes.Node) -> None:
    """Raise UnexpectedExpression if an UPDATE or DELETE calls arrayJoin() outside of its subqueries."""
    for node in walk(action, is_not_query):
        if isinstance(node, nodes.Function) and node.name.lower() == "arrayjoin":
            raise UnexpectedExpression(
                "arrayJoin is not allowed in mutations: a row stays one row.",
                hint="Call it in a subquery: WHERE x IN (SELECT arrayJoin(…)).",
                position=node.position,
            )
