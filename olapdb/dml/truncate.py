"""TRUNCATE: all rows of some tables leave in one commit, and every view on either side learns it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from olapdb.dml.delete import NOTHING_LEFT, DeleteResult
from olapdb.errors import Error
from olapdb.ingest.block_stager import VOID_PARTITION
from olapdb.lineage.dimension_change import dimension_changed
from olapdb.lineage.invalidation import StaleSlices, touched_parts, watchers_are
from olapdb.lineage.retention import FrozenKeys
from olapdb.lineage.row_removal import RowChange, raised, stored_table
from olapdb.lineage.target_deletion import refuse_frozen
from olapdb.model.changes import (
    Change,
    ClearInvalidations,
    DataVersionIs,
    ForgetDeliveries,
    Invalidate,
    PartsOfPartitionAre,
    ReleaseRetained,
    RemoveCoverage,
    RemoveParts,
    Requirement,
    SchemaIs,
)
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.services import Services


def truncate(
    services: Services,
    table_ids: Sequence[str],
    *,
    query_id: str = "",
    statement: str = "",
    discard_retained: bool = False,
) -> DeleteResult:
    """Removes all rows of these tables, in one commit.  In a view's target the coverage leaves with
    them (rule 5): everything is the view's gap again.  Views that read a table are stale as a whole,
    but for those whose target is emptied too.  What tells that rows were delivered before (keys,
    tokens, source offsets) is forgotten: they may come again.

    Raises RetainedRows where a slice is frozen, unless `discard_retained`, and NotSupportedError
    where the engine stores nothing; where several tables may not be truncated, the error names all
    of them.  Of several tables those that are dropped meanwhile are left out."""
    change = RowChange(services, "TRUNCATE", query_id, statement, discard_retained=discard_retained)

    def attempt(snapshot: Snapshot) -> DeleteResult:
        truncation = _Truncation(change, snapshot)
        there = [one for one in table_ids if snapshot.by_id(one) is not None]
        truncation.refuse(there or table_ids)
        for table_id in there:
            truncation.add(table_id)
        return truncation.publish()

    return change.until_published(attempt)


@dataclass
class _Truncation:
    change: RowChange
    snapshot: Snapshot
    rows: int = 0
    parts: int = 0
    requirements: list[Requirement] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    _emptied: list[Table] = field(default_factory=list)
    _stale: list[Change] = field(default_factory=list)

    def refuse(self, table_ids: Sequence[str]) -> None:
        """Before anything is done, all that may not be truncated is named."""
        refused: list[Error] = []
        for table_id in table_ids:
            try:
                self._check(table_id)
            except Error as error:
                refused.append(error)
        if len(refused) == 1:
            raise refused[0]
        if refused:
            message = " ".join(error.message for error in refused)
            hints = dict.fromkeys(error.hint for error in refused if error.hint)
            raise type(refused[0])(message, hint=" ".join(hints))

    def add(self, table_id: str) -> None:
        """All rows of the table."""
        snapshot = self.snapshot
        forgets = self.change.services.catalog.has_deliveries(table_id)
        if _stores_nothing(snapshot, table_id):
            self.changes.append(ForgetDeliveries(table_id))
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
            self.changes.append(RemoveParts(table.id, ids))
        self.changes += raised(table, parts)
        self.changes.append(ForgetDeliveries(table.id))
        self.requirements += [
            SchemaIs(table.id, table.version),
            PartsOfPartitionAre(table.id, None, ids),
            watchers_are(snapshot, table.id),
        ]
        self._of_writers(table)
        self._of_readers(table, parts)

    def publish(self) -> DeleteResult:
        if not self.changes:
            return NOTHING_LEFT
        self._of_dimensions()
        # A view whose target is empty as well has nothing left that could be stale.
        emptied = {v.id for table in self._emptied for v in self.snapshot.views_into(table.id)}
        self.changes += [
            one
            for one in self._stale
            if not isinstance(one, Invalidate) or one.invalidation.view_id not in emptied
        ]
        commit = self.change.apply(self.requirements, self.changes)
        return DeleteResult(self.rows, self.parts, commit)

    # --- what a table's views are told

    def _of_writers(self, table: Table) -> None:
        for view in self.snapshot.views_into(table.id):
            self.changes.append(RemoveCoverage(view.id))
            self.changes.append(ReleaseRetained(view.id, None, self.snapshot.number))
            self.changes.append(ClearInvalidations(view.id, None, self.snapshot.number))
            # Or source rows leave meanwhile by retention, and freeze what leaves here.
            whole = self.snapshot.data_version(view.source_id, VOID_PARTITION)
            self.requirements.append(DataVersionIs(view.source_id, VOID_PARTITION, whole))

    def _of_readers(self, table: Table, parts: Sequence[Part]) -> None:
        now = self.change.services.clock_ms()
        for view in self.snapshot.views_on(table.id):
            seen, unseen = touched_parts(view, parts, self.snapshot)
            self.requirements += unseen
            if any(part.rows for part in seen):
                stale = StaleSlices.of(view)
                stale.add_all(sum(part.rows for part in seen))
                self._stale += stale.invalidations(
                    "TRUNCATE", self.change.statement, self.change.query_id, now
                )

    def _of_dimensions(self) -> None:
        held = {t.id for t in self._emptied if any(p.rows for p in self.snapshot.parts(t.id))}
        if not held:
            return
        more, needed = dimension_changed(
            self.snapshot,
            held,
            "DIMENSION CHANGE",
            self.change.statement,
            self.change.query_id,
            self.rows,
            self.change.services.clock_ms(),
            services=self.change.services,
            changes=self.changes,
        )
        self._stale += more
        self.requirements += needed

    def _check(self, table_id: str) -> None:
        forgets = self.change.services.catalog.has_deliveries(table_id)
        if forgets and _stores_nothing(self.snapshot, table_id):
            return
        table = stored_table(self.snapshot, table_id, "TRUNCATE")
        if self.change.discard_retained or not any(p.rows for p in self.snapshot.parts(table.id)):
            return
        frozen = FrozenKeys.of(self.snapshot, table.id)
        if frozen:
            refuse_frozen(table, frozen.slices[0][0] or "all")


def _stores_nothing(snapshot: Snapshot, table_id: str) -> bool:
    table = snapshot.by_id(table_id)
    return isinstance(table, Table) and not table.engine.stores_rows
