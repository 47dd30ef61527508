"""TRUNCATE: removes all rows of some tables in one commit, with the effects on views on either
side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from olapdb.commit.draft import CommitDraft, publish
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.staging import Staging
from olapdb.dml.delete import NOTHING_DELETED, DeleteResult
from olapdb.errors import Error
from olapdb.ingest.block_parts import PLACEHOLDER_PARTITION
from olapdb.lineage.effects import SourceChange, TableWrite, effects_of
from olapdb.lineage.invalidation import all_slices
from olapdb.lineage.retention import FrozenKeys
from olapdb.lineage.row_removal import RowChange, raise_data_versions, stored_table
from olapdb.lineage.target_deletion import refuse_frozen
from olapdb.model.changes import (
    ClearInvalidations,
    ForgetDeliveries,
    Invalidate,
    ReleaseRetained,
    RemoveCoverage,
    RemoveParts,
)
from olapdb.model.requirements import DataVersionIs, PartsOfPartitionAre, SchemaIs
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint


def truncate(
    origin: CommitOrigin, table_ids: Sequence[str], *, discard_retained: bool = False
) -> DeleteResult:
    """Remove all rows of these tables, in one commit. The coverage of a view's target is removed
    too (rule 5): everything is the view's gap again. Views that read a table become stale as a
    whole, except those whose target is truncated too. Delivery records (keys, tokens, source
    offsets) are deleted, so the same rows can be inserted again.

    Raises RetainedRows if a slice is frozen, unless `discard_retained`, and NotSupportedError
    where the engine stores nothing. Where several tables may not be truncated, the error names all
    of them. Of several tables, those dropped meanwhile are skipped.
    """
    change = RowChange(origin, "TRUNCATE", discard_retained=discard_retained)

    def attempt(snapshot: Snapshot, staging: Staging) -> DeleteResult:
        """Truncate those of the tables that still exist in one commit; refuse if none is left."""
        truncation = _Truncation(change, snapshot)
        existing_ids = [table_id for table_id in table_ids if snapshot.by_id(table_id) is not None]
        truncation.require_truncatable(existing_ids or table_ids)
        for table_id in existing_ids:
            truncation.add_table(table_id)
        return truncation.publish()

    return change.until_published(attempt)


@dataclass
class _Truncation:
    """The draft of one TRUNCATE's commit, with counts of the removed rows and parts."""

    change: RowChange
    snapshot: Snapshot
    rows: int = 0
    parts: int = 0
    draft: CommitDraft = field(default_factory=CommitDraft)
    _emptied: list[Table] = field(default_factory=list)
    _sources: list[SourceChange] = field(default_factory=list)

    def require_truncatable(self, table_ids: Sequence[str]) -> None:
        """Raise one error that names all of the tables that may not be truncated, if any."""
        refused: list[Error] = []
        for table_id in table_ids:
            try:
                self._require_truncatable_table(table_id)
            except Error as error:
                refused.append(error)
        if len(refused) == 1:
            raise refused[0]
        if refused:
            message = " ".join(error.message for error in refused)
            hints = dict.fromkeys(error.hint for error in refused if error.hint)
            raise type(refused[0])(message, hint=" ".join(hints))

    def add_table(self, table_id: str) -> None:
        """Add the removal of all rows of the table."""
        snapshot = self.snapshot
        forgets = self.change.origin.services.catalog.has_deliveries(table_id)
        if _stores_nothing(snapshot, table_id):
            self.draft.change(ForgetDeliveries(table_id))
            return
        table = stored_table(snapshot, table_id, "TRUNCATE")
        parts = snapshot.parts(table.id)
        if not parts and not forgets and not snapshot.views_into(table.id):
            return
        ids = tuple(sorted(part.id for part in parts))
        self._emptied.append(table)
        self.rows += sum(part.rows for part in parts)
        self.parts += len(parts)
        if ids:
            self.draft.change(RemoveParts(table.id, ids))
        self.draft.change(*raise_data_versions(table, parts))
        self.draft.change(ForgetDeliveries(table.id))
        self.draft.require(
            SchemaIs(table.id, table.version), PartsOfPartitionAre(table.id, None, ids)
        )
        self._reset_writing_views(table)
        self._sources.append(
            SourceChange(
                table.id, parts, "TRUNCATE", all_slices(self.snapshot, table, parts), joins=False
            )
        )

    def publish(self) -> DeleteResult:
        """Commit the removals and their effects on views; without any change return
        NOTHING_DELETED."""
        if not self.draft.changes:
            return NOTHING_DELETED
        origin = self.change.origin
        held = [t.id for t in self._emptied if any(p.rows for p in self.snapshot.parts(t.id))]
        write = TableWrite(frozenset(held), self.rows)
        effects = effects_of(origin, self.snapshot, write, self.draft.changes, self._sources)
        # A view whose target is empty as well has nothing left that could be stale.
        emptied = {v.id for table in self._emptied for v in self.snapshot.views_into(table.id)}
        self.draft.change(
            *(
                change
                for change in effects.changes
                if not isinstance(change, Invalidate) or change.invalidation.view_id not in emptied
            )
        )
        self.draft.require(*effects.requirements, origin.lease)
        failpoint("delete.before_commit")
        commit = publish(self.draft, origin)
        return DeleteResult(self.rows, self.parts, commit.number)

    # --- effects on views

    def _reset_writing_views(self, table: Table) -> None:
        """Remove the coverage, frozen slices and invalidations of the views that write the
        table."""
        for view in self.snapshot.views_into(table.id):
            self.draft.change(RemoveCoverage(view.id))
            self.draft.change(ReleaseRetained(view.id, None, self.snapshot.number))
            self.draft.change(ClearInvalidations(view.id, None, self.snapshot.number))
            # A concurrent retention of source rows could freeze the rows that we remove.
            whole = self.snapshot.data_version(view.source_id, PLACEHOLDER_PARTITION)
            self.draft.require(DataVersionIs(view.source_id, PLACEHOLDER_PARTITION, whole))

    def _require_truncatable_table(self, table_id: str) -> None:
        """Raise the error that keeps the table from being truncated, if there is one."""
        forgets = self.change.origin.services.catalog.has_deliveries(table_id)
        if forgets and _stores_nothing(self.snapshot, table_id):
            return
        table = stored_table(self.snapshot, table_id, "TRUNCATE")
        if self.change.discard_retained or not any(p.rows for p in self.snapshot.parts(table.id)):
            return
        frozen = FrozenKeys.of(self.snapshot, table.id)
        if frozen:
            refuse_frozen(table, frozen.slices[0][0] or "all")


def _stores_nothing(snapshot: Snapshot, table_id: str) -> bool:
    """Return whether the id is of a table whose engine stores no rows."""
    table = snapshot.by_id(table_id)
    return isinstance(table, Table) and not table.engine.stores_rows
