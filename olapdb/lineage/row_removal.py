"""Removes rows from a table, with the effects on the views on both sides (rules 4 and 5).

    the views that read the table     the slices that the rows reached are stale, by name; or, where
                                      the rows leave by retention, frozen
    the views that write the table    what they had made of their source is gone: see `target_deletion`

A statement gathers the rows in a `RowRemoval`, part by part, and publishes it with its own changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

import pyarrow as pa

from olapdb.commit.draft import CommitDraft
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import ATTEMPTS_MAX, Outcome, RetryPolicy, retry_commit
from olapdb.commit.staging import Staging
from olapdb.errors import HaveDependentObjects, NotSupportedError, UnknownTable, UnsupportedMethod
from olapdb.ingest.block_parts import PLACEHOLDER_PARTITION
from olapdb.ingest.trigger import TriggerContext
from olapdb.lineage.effects import ProcessedParts, TableWrite, effects_of, processed_by_views
from olapdb.lineage.invalidation import StaleSlices, slices_naming
from olapdb.lineage.mutation_impact import columns_read_by
from olapdb.lineage.retention import (
    FrozenKeys,
    FrozenSlices,
    WatchedSlices,
    frozen_keys_stale,
    is_lineage_unknown,
    retained_record,
)
from olapdb.lineage.target_deletion import TargetRows
from olapdb.model.changes import Change, RaiseDataVersion, Retain
from olapdb.model.part import Part
from olapdb.model.requirements import DataVersionIs, Requirement, SchemaIs
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Cause
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint


@dataclass(frozen=True)
class RowChange:
    """A statement that removes or replaces rows.

    `retain`: the rows leave by retention, so slices that they reached become frozen, not stale;
    `discard_retained`: frozen rows may be removed.
    """

    origin: CommitOrigin
    cause: Cause
    retain: bool = False
    discard_retained: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "origin", self.origin.of_kind(self.cause))

    def context(self, snapshot: Snapshot) -> TriggerContext:
        """Return the context in which views run at the snapshot."""
        return TriggerContext.of(self.origin, snapshot)

    def until_published(self, attempt: Callable[[Snapshot, Staging], Outcome]) -> Outcome:
        """Return `attempt(pinned snapshot, staging)`, which commits once; repeat it after each
        conflict, bounded. Delete the staged files of a lost attempt."""

        def staged(snapshot: Snapshot) -> Outcome:
            """Make one attempt with its own staged files; delete them if it does not commit."""
            with Staging(self.origin) as staging:
                return attempt(snapshot, staging)

        return retry_commit(self.origin.services, staged, part_rewrite_policy(self.cause))


def part_rewrite_policy(kind: str) -> RetryPolicy:
    """Return the retry policy of a statement, such as "DELETE", that replaces rows of parts."""
    return RetryPolicy(
        kind,
        f"Merges and INSERTs were faster than this {kind} {ATTEMPTS_MAX} times.",
        "Nothing was changed; run it again, after SYSTEM STOP MERGES if need be.",
        pinned=True,
    )


@dataclass
class _ViewRemoval:
    """A view on the table, and the removed rows of the parts that it has processed, by their
    partition."""

    view: MaterializedView
    seen: frozenset[str]
    slices: dict[str, StaleSlices] = field(default_factory=dict)
    parts: dict[str, list[Part]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)


class RowRemoval:
    """The rows of `parts` that leave a table, gathered for one commit at one snapshot."""

    def __init__(
        self, change: RowChange, snapshot: Snapshot, table: Table, parts: Sequence[Part]
    ) -> None:
        self._change, self._snapshot, self._table = change, snapshot, table
        self._parts = tuple(parts)
        self._context = change.context(snapshot)
        self._removed = 0
        self._has_unread = False
        processed, self._draft = processed_by_views(snapshot, table.id, self._parts)
        self._draft.require(SchemaIs(table.id, table.version))
        self._view_removals = [self._view_removal(seen) for seen in processed if seen.parts]
        self._target: TargetRows | None = None
        if snapshot.views_into(table.id):
            self._target = TargetRows(
                snapshot,
                table,
                self._context,
                change.retain or change.cause == "TTL",
                change.discard_retained,
            )

    def _view_removal(self, seen: ProcessedParts) -> _ViewRemoval:
        """Return an empty collection of what the removal does to the view.

        The commit requires that no retention runs on its source or target meanwhile.
        """
        # A concurrent retention could freeze keys that this change invalidates; or the keys that we
        # freeze could already be deleted from the target.
        for table_id in (self._table.id, seen.view.target_id):
            version = self._snapshot.data_version(table_id, PLACEHOLDER_PARTITION)
            self._draft.require(DataVersionIs(table_id, PLACEHOLDER_PARTITION, version))
        return _ViewRemoval(seen.view, frozenset(part.id for part in seen.parts))

    @property
    def reads_rows(self) -> bool:
        """Return whether `add` needs the rows, and not only their number."""
        return bool(self._view_removals) or (self._target is not None and self._target.reads_rows)

    def add(self, part: Part, rows: pa.Table | None, count: int) -> None:
        """Add `count` rows of the part; `rows` (stored columns) may be None if `reads_rows`
        is False. If these are all of its rows, the part is removed."""
        self._removed += count
        for removal in self._view_removals:
            if part.id in removal.seen and rows is not None:
                self._slices(removal, part.partition_id).add(self._context, rows)
                removal.parts.setdefault(part.partition_id, []).append(part)
                removal.rows[part.partition_id] = removal.rows.get(part.partition_id, 0) + count
        if self._target is not None:
            self._target.add(part, rows, count)

    def add_changed(
        self, part: Part, before: pa.Table, after: pa.Table, columns: frozenset[str] | None = None
    ) -> None:
        """Note that rows of the part change from `before` to `after`, and add the slices of views
        that either reaches. With `columns` the rows differ only in these: views that read none of
        them are not affected.

        Raises HaveDependentObjects for the target of a view, whose rows only the view makes."""
        if self._target is not None:
            name = f"{self._table.database}.{self._table.name}"
            raise HaveDependentObjects(
                f"The TTL of {name} would change values that a view has made.",
                hint=f"ALTER TABLE {name} REMOVE TTL, or MODIFY COLUMN … REMOVE TTL.",
            )
        self._removed += before.num_rows
        for removal in self._view_removals:
            if part.id not in removal.seen:
                continue
            if columns is not None and not columns & columns_read_by(
                removal.view, self._table, self._context
            ):
                continue
            self._slices(removal, part.partition_id).add(self._context, before, after)
            removal.parts.setdefault(part.partition_id, []).append(part)
            removal.rows[part.partition_id] = (
                removal.rows.get(part.partition_id, 0) + before.num_rows
            )

    def add_unread(self, part: Part) -> None:
        """Add all rows of a part that cannot be read: the ledger gives the slices that they
        reached, see `slices_naming`."""
        self._has_unread = True
        self._removed += part.rows
        for removal in self._view_removals:
            if part.id in removal.seen:
                reached = slices_naming(removal.view, part, self._snapshot)
                self._slices(removal, part.partition_id).add_partitions(reached, part.rows)
        if self._target is not None:
            self._target.add_unread(part)

    def _slices(self, removal: _ViewRemoval, partition: str) -> StaleSlices:
        """Return the slices to add to: one set for each source partition under retention, else
        one for all."""
        key = partition if self._change.retain else ""
        slices = removal.slices.get(key)
        if slices is None:
            slices = removal.slices[key] = self._empty_slices(removal.view)
        return slices

    def _empty_slices(self, view: MaterializedView) -> StaleSlices:
        """Return an empty set of slices that fits the statement: frozen for retention, else
        stale."""
        if not self._change.retain:
            return WatchedSlices(view, {}, {}, FrozenKeys.of(self._snapshot, view.target_id))
        slices = FrozenSlices.of(view)
        if is_lineage_unknown(view, self._snapshot):
            slices.add_all(0)
        return slices

    def publish(
        self,
        staging: Staging,
        requirements: Sequence[Requirement],
        changes: Sequence[Change],
        unsettled: frozenset[str] = frozenset(),
    ) -> int:
        """Commit the statement's own changes with their effects on views; return the commit's
        number.

        `unsettled` are the views that joined only a part of the rows that `changes` add; all that
        they wrote is stale then.
        """
        change = self._change
        draft = CommitDraft(
            [change.origin.lease, *self._draft.requirements, *requirements], changes
        )
        draft.change(*raise_data_versions(self._table, self._parts))
        for removal in self._view_removals:
            draft.change(*self._view_changes(removal))
        if self._target is not None:
            draft = self._target.finish(draft, change.origin, change.cause)
        write = TableWrite(
            frozenset((self._table.id,)),
            self._removed,
            compares_rows=not self._has_unread,
            unsettled=unsettled,
        )
        draft.merge(effects_of(change.origin, self._snapshot, write, draft.changes))
        failpoint("delete.before_commit")
        return staging.publish(draft).number

    def _view_changes(self, removal: _ViewRemoval) -> list[Change]:
        """Return the changes that make slices of a view on the table stale.

        Retention records them as retained instead.
        """
        change = self._change
        changes: list[Change] = []
        for partition, slices in removal.slices.items():
            if not isinstance(slices, FrozenSlices):
                changes += slices.invalidations(change.origin, change.cause)
                if isinstance(slices, WatchedSlices) and slices.stale_frozen:
                    changes += frozen_keys_stale(removal.view, self._snapshot, slices.stale_frozen)
                continue
            retained = retained_record(
                removal.view,
                "source",
                removal.parts[partition],
                removal.rows[partition],
                slices.slices(self._snapshot),
                change.origin,
                change.cause,
            )
            changes.append(Retain(retained))
        return changes


def raise_data_versions(table: Table, parts: Sequence[Part]) -> list[Change]:
    """Return changes that raise the data version of the whole table and of the parts'
    partitions."""
    partitions = dict.fromkeys((PLACEHOLDER_PARTITION, *(part.partition_id for part in parts)))
    return [RaiseDataVersion(table.id, partition) for partition in partitions]


ANY_ENGINE_ACTIONS = frozenset({"TRUNCATE", "QUARANTINE PART"})
"""Actions on tables of any engine that stores rows."""


def stored_table(
    snapshot: Snapshot, table_id: str, action: str, *, any_engine: bool = False
) -> Table:
    """Return the table, of the MergeTree family, for DELETE and REPLACE of Memory too or, with
    `any_engine` and for some actions, of any engine that stores rows. Raises UnknownTable,
    NotSupportedError, UnsupportedMethod."""
    table = snapshot.by_id(table_id)
    if not isinstance(table, Table):
        raise UnknownTable(f"The table of this {action} does not exist any more.")
    if table.engine.name == "Null":
        kind = NotSupportedError if action == "TRUNCATE" else UnsupportedMethod
        raise kind(f"{action}: {table.database}.{table.name} is a Null table and stores nothing.")
    if action in ("DELETE", "INSERT … REPLACE") and table.engine.name == "Memory":
        return table
    if not any_engine and action not in ANY_ENGINE_ACTIONS and not table.engine.is_merge_tree:
        raise UnsupportedMethod(
            f"{action} needs a table of the MergeTree family, not {table.engine.name}.",
            hint="TRUNCATE TABLE removes all rows.",
        )
    return table
