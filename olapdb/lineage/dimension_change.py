"""The slices of views that a change of a table which they join makes stale.

A table that a view reads beside its source is one of its dimensions.  A commit that changes its
rows invalidates the slices of the view's target that the change reaches (`dimension_impact`); where
these are unknown, all of the target.  The lookup reads the source rows that the view has processed.
So the commit requires that the view has processed no others, and that no dimension changed
meanwhile:

    D: INSERT INTO kinds     looks up events, finds January
    S: INSERT INTO events    fires with the old kinds, commits a row of February
    D: commits               refused, or February would hold a row of the old kinds, unnamed
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

import pyarrow as pa

from olapdb.commit.draft import CommitDraft
from olapdb.commit.origin import CommitOrigin
from olapdb.config import Settings
from olapdb.errors import Error, QueryWasCancelled
from olapdb.functions.base import Environment
from olapdb.ingest.dimension_requirements import dimension_requirements
from olapdb.ingest.read_parts import Pin
from olapdb.ingest.trigger import LIMIT_SETTINGS, TriggerContext, bound_view
from olapdb.lineage.dimension_impact import DimensionImpact, TableChange
from olapdb.lineage.invalidation import StaleSlices, processed_parts
from olapdb.model.changes import AddPart, Change, RemoveParts
from olapdb.model.requirements import (
    DimensionViewsAre,
    NothingCovered,
    Requirement,
    SchemaIs,
    SeenUpTo,
)
from olapdb.model.schema import ENGINE_ROLES, MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass

SLICES_MAX = 1_000
"""A change that reaches more partitions of a target than this makes all of it stale."""


def dimension_views(snapshot: Snapshot, table_ids: Collection[str]) -> list[MaterializedView]:
    """Return the views that read one of the tables as a dimension, not as their source."""
    return [
        view
        for view in snapshot.objects_of(MaterializedView)
        if not set(table_ids).isdisjoint(view.dimension_ids)
    ]


@dataclass(frozen=True, slots=True)
class TableWrite:
    """The tables (ids) whose rows a commit changes, and how to treat views that join them.

    `rows` is the number of rows that change, for invalidations of everything.  `compares_rows`
    False skips the lookup and makes all that these views wrote stale.  All is also stale of the
    views (ids) in `rejoined`, whose joined rows are unchanged but read differently from now on; and
    of those in `unsettled`, which joined only a part of the rows that the commit publishes.
    """

    table_ids: frozenset[str]
    rows: int
    compares_rows: bool = True
    rejoined: frozenset[str] = frozenset()
    unsettled: frozenset[str] = frozenset()


def dimension_effects(
    origin: CommitOrigin, snapshot: Snapshot, write: TableWrite, changes: Sequence[Change]
) -> CommitDraft:
    """Return the invalidations of views that join the written tables, or any other table whose
    parts the commit's `changes` remove or add; and their requirements.

    `changes` are all of the commit's own: rows of parts that it removes and adds are compared, so
    that equal rows invalidate nothing, and tables that change together are compared together.  A
    view that has written nothing, before the commit or in it, is not stale, and the commit requires
    that this stays so. A view that reads its dimensions `at_insert` never becomes stale.
    """
    draft = CommitDraft()
    table_ids = write.table_ids | changed_tables(snapshot, changes)
    views = dimension_views(snapshot, table_ids)
    for table_id in sorted(table_ids):
        readers = tuple((v.id, v.version) for v in views if table_id in v.dimension_ids)
        draft.require(DimensionViewsAre(table_id, readers))
    table_changes = (
        _table_changes(snapshot, table_ids, changes) if write.compares_rows and views else None
    )
    for view in views:
        if view.dimension_mode == "at_insert":
            continue
        stale: StaleSlices | None = None
        if view.id not in write.unsettled:
            coverage = snapshot.coverage(view.id)
            if not coverage.everywhere and not any(coverage.by_partition.values()):
                draft.require(NothingCovered(view.id))
                continue
            if table_changes is not None and view.id not in write.rejoined:
                lookup = _Lookup(origin, snapshot, view, table_changes)
                stale = lookup.stale_slices()
                if stale is not None:
                    draft.require(*lookup.requirements())
        if stale is None:
            stale = StaleSlices.of(view)
            stale.add_all(write.rows)
        draft.change(*stale.invalidations(origin, "DIMENSION CHANGE"))
    return draft


def changed_tables(snapshot: Snapshot, changes: Sequence[Change]) -> set[str]:
    """Return the ids of the snapshot's tables in which the changes add rows or remove parts."""
    table_ids = {
        change.table_id if isinstance(change, RemoveParts) else change.part.table_id
        for change in changes
        if isinstance(change, RemoveParts) or (isinstance(change, AddPart) and change.part.rows)
    }
    return {table_id for table_id in table_ids if isinstance(snapshot.by_id(table_id), Table)}


def _table_changes(
    snapshot: Snapshot, table_ids: Collection[str], changes: Sequence[Change]
) -> dict[str, TableChange] | None:
    """Return the commit's changes of each table; None if they are unknown."""
    table_changes: dict[str, TableChange] = {}
    for table_id in sorted(table_ids):
        table = snapshot.by_id(table_id)
        if not isinstance(table, Table):
            return None
        change = TableChange.of(table, changes, snapshot)
        if change is None:
            return None
        if not change.is_empty:
            table_changes[table_id] = change
    return table_changes


@dataclass
class _Lookup:
    """A search for the slices of one view that changed dimensions reach, at one snapshot."""

    origin: CommitOrigin
    snapshot: Snapshot
    view: MaterializedView
    table_changes: Mapping[str, TableChange]
    _unseen: list[Requirement] = field(default_factory=list)

    def stale_slices(self) -> StaleSlices | None:
        """Return the slices of the view's target that the changed dimensions reach.

        Returns None if all of the target counts as stale: the slices are unknown, are more than
        SLICES_MAX, or need too many source rows, or the view fails on these rows. Raises
        QueryWasCancelled. `requirements` is complete only after this call."""
        changes = {i: c for i, c in self.table_changes.items() if i in self.view.dimension_ids}
        slices = StaleSlices.of(self.view)
        if not changes:
            return slices
        settings = Settings.of(self.origin.settings)
        rows_max = settings.integer("dimension_lookup_rows_max")
        source = self.snapshot.by_id(self.view.source_id)
        if not rows_max or not isinstance(source, Table) or not _keeps_source_rows(source):
            return None
        seen, self._unseen = processed_parts(
            self.view, self.snapshot.parts(source.id), self.snapshot
        )
        context = self._context()
        parts = [part for part in seen if part.rows]
        try:
            with Pin(self.origin.services, self.snapshot.number):
                bound = bound_view(self.view, context).unchecked()
                changed_rows = DimensionImpact(
                    bound, context, changes, parts, rows_max
                ).target_rows()
                if changed_rows is None:
                    return None
                for rows in changed_rows:
                    if rows.num_rows:
                        slices.add_target_rows(bound.target, rows, context)
                    if len(slices.rows) > SLICES_MAX:
                        return None
        except QueryWasCancelled:
            raise
        except (Error, pa.ArrowNotImplementedError):
            return None  # the view fails on these rows, or they are of types that do not compare
        return slices

    def requirements(self) -> list[Requirement]:
        """Require that the view has processed no other rows than those that were read, and that
        these are unchanged."""
        needed: list[Requirement] = [*self._unseen]
        for table_id in (self.view.source_id, self.view.target_id):
            table = self.snapshot.by_id(table_id)
            assert isinstance(table, Table)
            needed.append(SchemaIs(table.id, table.version))
            if table_id == self.view.source_id:
                needed.append(SeenUpTo(self.view.id, self.snapshot.next_block(table) - 1))
        needed += [
            requirement for requirement, _ in dimension_requirements(self.view, self.snapshot)
        ]
        return needed

    def _context(self) -> TriggerContext:
        """Return the context in which the view runs: its own settings, with the statement's
        limits."""
        settings, services = self.origin.settings, self.origin.services
        limits = {name: settings[name] for name in LIMIT_SETTINGS if name in settings}
        return TriggerContext(
            self.snapshot,
            services.store,
            services.cache,
            {**dict(self.view.settings), **limits},
            Environment(zone=self.view.zone, database=self.view.database),
        )


def _keeps_source_rows(source: Table) -> bool:
    """Return whether the source still has the rows that fired the view. Merges drop rows of
    Replacing and Collapsing tables, and a Null table keeps none. Merged rows of Summing and
    Aggregating tables join the same rows as in a recomputation."""
    return source.engine.stores_rows and source.engine.name not in ENGINE_ROLES
