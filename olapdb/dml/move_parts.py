"""Removes whole parts of a table: DROP, DETACH, MOVE and REPLACE of partitions and parts.

Each command is one commit.  Files are never copied or renamed: a part that moves to another table
is another row of the catalog about the same file, see `attach_parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from olapdb.commit.draft import CommitDraft
from olapdb.commit.staging import Staging
from olapdb.dml.attach_parts import Incoming, MoveResult, check_structure
from olapdb.dml.part_selection import NamedParts
from olapdb.errors import BadArguments
from olapdb.ingest.read_parts import read_rows
from olapdb.lineage.retention import FrozenKeys
from olapdb.lineage.row_removal import RowChange, RowRemoval, stored_table
from olapdb.lineage.target_deletion import refuse_frozen
from olapdb.model.changes import AddPart, RemoveParts
from olapdb.model.part import Part, detached_table, new_part_id
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.failpoints import failpoint

NOTHING_MOVED = MoveResult(0, 0, None)


def drop_parts(change: RowChange, table_id: str, selection: NamedParts) -> MoveResult:
    """Remove the chosen parts. The slices of views that their rows reached become stale, or frozen
    where the change is retention. For parts of a view's target see `target_deletion`.

    Raises RetainedRows for frozen rows, NoSuchDataPart for a part that does not exist.
    """

    def attempt(snapshot: Snapshot, staging: Staging) -> MoveResult:
        """Remove the chosen parts from the table in one commit."""
        table = stored_table(snapshot, table_id, change.cause)
        parts = selection.choose(table, snapshot.parts(table.id))
        return _remove(change, snapshot, staging, table, selection, parts)

    return change.until_published(attempt)


def drop_chosen(
    change: RowChange, table_id: str, choose: Callable[[Table, Sequence[Part]], Sequence[Part]]
) -> MoveResult:
    """Remove the parts that `choose` picks of a table's live parts, in one commit. The table may have
    any engine that stores rows."""

    def attempt(snapshot: Snapshot, staging: Staging) -> MoveResult:
        """Choose parts at the snapshot and remove them in one commit."""
        table = snapshot.by_id(table_id)
        parts = choose(table, snapshot.parts(table_id)) if isinstance(table, Table) else ()
        if not parts or not isinstance(table, Table):
            return NOTHING_MOVED
        selection = NamedParts(part=parts[0].name)  # requires that exactly these are live
        return _remove(change, snapshot, staging, table, selection, parts)

    return change.until_published(attempt)


def detach_parts(change: RowChange, table_id: str, selection: NamedParts) -> MoveResult:
    """Remove the chosen parts as `drop_parts` does, and keep them as detached parts; ATTACH
    brings them back."""

    def attempt(snapshot: Snapshot, staging: Staging) -> MoveResult:
        """Remove the chosen parts and keep them as detached parts, in one commit."""
        table = stored_table(snapshot, table_id, change.cause)
        parts = selection.choose(table, snapshot.parts(table.id))
        detached = [as_detached(snapshot, table, part) for part in parts]
        return _remove(
            change, snapshot, staging, table, selection, parts, CommitDraft((), detached)
        )

    return change.until_published(attempt)


def move_parts(
    change: RowChange, table_id: str, selection: NamedParts, target_id: str
) -> MoveResult:
    """Move the chosen parts to another table of the same structure, as new blocks of it."""

    def attempt(snapshot: Snapshot, staging: Staging) -> MoveResult:
        """Move the chosen parts to the other table in one commit. Raises BadArguments."""
        table = stored_table(snapshot, table_id, change.cause)
        target = stored_table(snapshot, target_id, change.cause)
        if table.id == target.id:
            raise BadArguments("MOVE PARTITION … TO TABLE needs another table than its own.")
        check_structure(table, target)
        parts = selection.choose(table, snapshot.parts(table.id))
        incoming = Incoming(change, snapshot, table, target, staging)
        return _exchange(incoming, table, selection, parts, parts)

    return change.until_published(attempt)


def replace_parts(
    change: RowChange, table_id: str, selection: NamedParts, source_id: str, *, allow_empty: bool
) -> MoveResult:
    """Replace the table's partition by a reference to that of the source table, which keeps it too.

    Raises BadArguments if the source does not have the partition, unless `allow_empty`.
    """

    def attempt(snapshot: Snapshot, staging: Staging) -> MoveResult:
        """Replace the table's chosen parts by references to the source's, in one commit.

        Raises BadArguments if both tables are one, or if the source has no part and `allow_empty`
        is False.
        """
        table = stored_table(snapshot, table_id, change.cause)
        source = stored_table(snapshot, source_id, change.cause)
        if table.id == source.id:
            raise BadArguments("REPLACE PARTITION … FROM needs another table than its own.")
        check_structure(source, table)
        arriving = selection.choose(source, snapshot.parts(source.id))
        leaving = selection.choose(table, snapshot.parts(table.id))
        if not arriving and not allow_empty:
            raise BadArguments(
                f"{source.database}.{source.name} has no partition {selection.partition}.",
                hint="SETTINGS allow_replace_partition_from_empty_source = 1 empties the partition.",
            )
        incoming = Incoming(change, snapshot, source, table, staging)
        if selection.partition is not None:  # the source's partition is still complete
            incoming.draft.require(
                *selection.requirements(source, arriving, snapshot.parts(source.id))
            )
        return _exchange(incoming, table, selection, leaving, arriving)

    return change.until_published(attempt)


def _exchange(
    incoming: Incoming,
    table: Table,
    selection: NamedParts,
    leaving: Sequence[Part],
    arriving: Sequence[Part],
) -> MoveResult:
    """Remove `leaving` from `table` and bring `arriving` to the target, in one commit.

    Commits the arrival alone if no part leaves, and nothing if no part comes either.
    """
    if arriving:
        incoming.add_parts(arriving)
    done = _remove(
        incoming.change,
        incoming.snapshot,
        incoming.staging,
        table,
        selection,
        leaving,
        incoming.draft,
    )
    if done.commit is None and arriving:  # nothing had to leave
        live = incoming.snapshot.parts(table.id)
        return incoming.publish(arriving, *selection.requirements(table, leaving, live))
    return done


def _remove(
    change: RowChange,
    snapshot: Snapshot,
    staging: Staging,
    table: Table,
    selection: NamedParts,
    parts: Sequence[Part],
    additional: CommitDraft | None = None,
) -> MoveResult:
    """Commit the removal of `parts`, its effects on views, and the changes of `additional`.

    `selection` is the clause that chose the parts; the commit requires that it still selects
    exactly these. Commits nothing if there are no parts. Raises RetainedRows if any of them is
    frozen.
    """
    if not parts:
        return NOTHING_MOVED
    _refuse_frozen(change, snapshot, table, parts)
    removal = RowRemoval(change, snapshot, table, parts)
    context = change.context(snapshot)
    for part in parts:
        rows = read_rows(context, table, part) if removal.reads_rows else None
        removal.add(part, rows, part.rows)
    failpoint("move.rows_asked")
    ids = tuple(sorted(part.id for part in parts))
    additional = additional or CommitDraft()
    commit = removal.publish(
        staging,
        [*selection.requirements(table, parts, snapshot.parts(table.id)), *additional.requirements],
        [RemoveParts(table.id, ids), *additional.changes],
    )
    failpoint("move.committed")
    return MoveResult(sum(part.rows for part in parts), len(parts), commit)


def _refuse_frozen(
    change: RowChange, snapshot: Snapshot, table: Table, parts: Sequence[Part]
) -> None:
    """Raise RetainedRows if all keys of any part's partition are frozen; this reads no rows.

    Does nothing for retention, or if the statement discards retained rows.
    """
    if change.retain or change.discard_retained:
        return
    frozen = FrozenKeys.of(snapshot, table.id)
    for part in parts:
        if part.contributions and frozen.holds_all(part.partition_id):
            refuse_frozen(table, part.partition_id)


def as_detached(snapshot: Snapshot, table: Table, part: Part, reason: str = "") -> AddPart:
    """Return the change that adds the part as a detached one, with the same bytes.

    It belongs to the table's detached parts and has no contributions; `reason` is stored with it.
    """
    detached = replace(
        part,
        id=new_part_id(),
        table_id=detached_table(table.id),
        contributions=(),
        created_commit=0,
        detached_reason=reason,
    )
    return AddPart(detached, snapshot.inline_rows(part) if part.inline else None)
