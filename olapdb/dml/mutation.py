"""Rewrites the rows of parts by the steps of one statement, and composes the changes of its commit.

Parts are immutable: a part with changed rows is replaced by one of the same blocks.  Each step sees
the rows of the steps before it; other statements see none of them before the commit. The commit
raises the data version of each partition, and invalidates the slices of views to which the old and
the new rows belong (rule 4):

    UPDATE v = v + 1 WHERE k = 2, DELETE WHERE v > 9
    step 1   part a -> a1 (staged)          step 2   a1 -> a2 (staged; a1 is thrown away)
    commit   - a   + a2   raise(partition of a)   invalidate(what a's changed rows reached, and a2's)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.commit.draft import CommitDraft
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.staging import Staging
from olapdb.compute.batches import overwritten, single_chunk
from olapdb.compute.group_codes import factorise
from olapdb.dml.find_rows import (
    Assignments,
    Parameters,
    in_partition,
    matching_offsets,
    matching_rows,
)
from olapdb.dml.mutation_steps import (
    DeduplicateStep,
    DeleteStep,
    FillNullsStep,
    MaterializeColumnStep,
    RewriteStep,
    SetStep,
    Step,
    check_assignments,
    refuse_computed_keys,
)
from olapdb.dml.null_fill import read_without_nulls
from olapdb.engine.column_defaults import DefaultColumns
from olapdb.errors import CommitConflict, HaveDependentObjects, UnsupportedMethod
from olapdb.ingest.block_parts import PLACEHOLDER_PARTITION, layout_of
from olapdb.ingest.nested_columns import check_nested_sizes
from olapdb.ingest.read_parts import read_rows
from olapdb.ingest.trigger import TriggerContext
from olapdb.lineage.effects import SourceChange, TableWrite, effects_of
from olapdb.lineage.mutation_impact import StaleViews
from olapdb.model.changes import AddPart, RaiseDataVersion, RemoveParts
from olapdb.model.columns import lacks
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.part import Part
from olapdb.model.requirements import PartsLive, PartsOfPartitionAre
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.cache import Cache
from olapdb.runtime.failpoints import failpoint
from olapdb.storage.part_plan import PartPlan
from olapdb.types.arrow_values import from_numpy, to_numpy


@dataclass
class Mutation:
    """The steps of one statement over `table`, which may be newer than the snapshot's (an ALTER
    that is not committed yet).

    `replaced` maps the ids of changed live parts to their replacements, None for a removed part;
    `requires_all_parts` requires at the commit that the live parts are exactly those of the
    snapshot.
    """

    origin: CommitOrigin
    staging: Staging
    snapshot: Snapshot
    table: Table
    parameters: Parameters = None
    rows: int = 0
    requires_all_parts: bool = False
    replaced: dict[str, AddPart | None] = field(default_factory=dict)
    partitions: dict[str, None] = field(default_factory=dict)
    _changed_parts: dict[str, Part] = field(default_factory=dict)
    _staged_inline: dict[str, bytes] = field(default_factory=dict)
    _cache: Cache = field(default_factory=Cache)
    _views: StaleViews = field(init=False)

    def __post_init__(self) -> None:
        self._views = StaleViews(
            self.snapshot, self.table, TriggerContext.of(self.origin, self.snapshot)
        )

    def run(self, step: Step) -> None:
        """Stage the parts that the step rewrites; nothing is visible before the commit.

        Raises UnsupportedMethod."""
        if not self.table.engine.is_merge_tree and self.table.engine.name != "Memory":
            raise UnsupportedMethod(
                f"Mutations need a table of the MergeTree family or Memory, not {self.table.engine.name}.",
                hint="TRUNCATE TABLE and INSERT the rows anew.",
            )
        match step:
            case SetStep():
                self._set(step)
            case DeleteStep():
                self._delete(step)
            case DeduplicateStep():
                self._deduplicate(step)
            case MaterializeColumnStep():
                self._materialize_column(step)
            case RewriteStep(partition_id=partition, omitted=index):
                files = [part for part in self._parts() if not part.inline]
                self._rewrite_unchanged(files, partition, index)
            case FillNullsStep():
                self._fill_nulls(step)

    def invalidate_reread_rows(
        self, columns: frozenset[str], joined: frozenset[str], widened: frozenset[str]
    ) -> None:
        """Note that unchanged rows read differently now, and invalidate views as an UPDATE does.

        `columns` (of the snapshot's table) read differently in rows that no step rewrites. `joined`
        do so for views that join the table. Of `widened` only the integers got a wider type.
        """
        parts = [part for part in self.snapshot.parts(self.table.id) if part.rows]
        affected = self._views.affected_views(columns, joined, widened, self._context())
        if not self._views.rejoined and not (parts and (affected or columns)):
            return
        for part in parts:
            self.partitions[part.partition_id] = None
            self._changed_parts[part.id] = part
        self.requires_all_parts = True
        self._views.add_all_slices(affected, parts)

    def draft(self) -> CommitDraft:
        """Return the commit: requirements (on the rows, not on the schema), changes, and effects
        on views."""
        draft = CommitDraft()
        if self.requires_all_parts:
            every = tuple(sorted(part.id for part in self.snapshot.parts(self.table.id)))
            draft.require(PartsOfPartitionAre(self.table.id, None, every))
        if self.replaced:
            ids = tuple(sorted(self.replaced))
            draft.require(PartsLive(self.table.id, ids))
            draft.change(RemoveParts(self.table.id, ids))
            draft.change(*(staged for staged in self.replaced.values() if staged is not None))
        if not self.partitions and not self._views.rejoined:
            return draft
        for partition in (PLACEHOLDER_PARTITION, *self.partitions):
            draft.change(RaiseDataVersion(self.table.id, partition))
        touched = tuple(self._changed_parts.values())
        source = SourceChange(self.table.id, touched, "UPDATE", self._views.slices)
        write = TableWrite(
            frozenset((self.table.id,)), self.rows, rejoined=frozenset(self._views.rejoined)
        )
        draft.merge(effects_of(self.origin, self.snapshot, write, draft.changes, [source]))
        return draft

    # --- the steps

    def _set(self, step: SetStep) -> None:
        """Rewrite the matching rows with the assigned values, and recompute the columns that
        depend on them."""
        check_assignments(self.table, [name for name, _ in step.assignments])
        self._refuse_target("UPDATE")
        changed = {name for name, _ in step.assignments}
        defaults = self._defaults()
        given = changed | set(step.recompute)
        recomputed = [*step.recompute, *_dependent_materialized(self.table, defaults, given)]
        refuse_computed_keys(self.table, recomputed, given)
        written = frozenset((*changed, *recomputed))
        for part, matches in self._matching(step, step.assignments):
            rows = read_rows(self._context(), self.table, part)
            offsets = to_numpy(single_chunk(matches.column("_part_offset"))).astype(np.int64)
            leaving = rows.take(from_numpy(offsets))
            arriving = _with_columns(leaving, {n: matches.column(n) for n in changed})
            if recomputed:
                other_columns = {
                    n: single_chunk(arriving.column(n))
                    for n in arriving.column_names
                    if n not in recomputed
                }
                environment = self.origin.environment
                completed = defaults.complete(
                    other_columns, len(offsets), environment, recomputed, storing=True
                )
                arriving = _with_columns(arriving, {n: completed[n] for n in recomputed})
            if any("." in name for name in written):
                sized = {n: single_chunk(arriving.column(n)) for n in arriving.column_names}
                check_nested_sizes(self.table, sized, 0)
            new_rows = _with_columns(
                rows, {n: overwritten(rows.column(n), offsets, arriving.column(n)) for n in written}
            )
            self._invalidate(part, written, (leaving, arriving))
            self._stage(part, new_rows, leaving.num_rows)

    def _delete(self, step: DeleteStep) -> None:
        """Rewrite the parts without the matching rows."""
        self._refuse_target("DELETE beside other actions")
        where = in_partition(step.where, step.partition_id)
        parts = [p for p in self._parts() if step.partition_id in (None, p.partition_id)]
        for part, offsets in matching_offsets(
            self._context(), self.table, parts, where, self.parameters
        ):
            removed = np.zeros(part.rows, dtype=bool)
            removed[offsets] = True
            self._remove(part, removed)

    def _deduplicate(self, step: DeduplicateStep) -> None:
        """Remove all but the first of equal rows in each partition, in the order of blocks."""
        grouped: dict[str, list[Part]] = {}
        for part in self._parts():
            if step.partition_id in (None, part.partition_id):
                grouped.setdefault(part.partition_id, []).append(part)
        for parts in grouped.values():
            parts.sort(key=lambda p: (p.block_range.first, p.block_range.last))
            rows = pa.concat_tables(
                read_rows(self._context(), self.table, part, step.columns) for part in parts
            )
            values = [single_chunk(rows.column(name)) for name in step.columns]
            removed = np.ones(rows.num_rows, dtype=bool)
            removed[factorise(values, rows.num_rows).first] = False
            if not removed.any():
                continue
            self._refuse_target("OPTIMIZE … DEDUPLICATE")
            ends = np.cumsum([part.rows for part in parts])[:-1]
            for part, removed_of_part in zip(parts, np.split(removed, ends), strict=True):
                if removed_of_part.any():
                    self._remove(part, removed_of_part)

    def _remove(self, part: Part, removed: np.ndarray) -> None:
        """Rewrite the part without the rows in the mask `removed`."""
        rows = read_rows(self._context(), self.table, part)
        mask = from_numpy(removed)
        leaving = rows.filter(mask)
        everything = frozenset(c.name for c in self.table.columns)
        self._invalidate(part, everything, (leaving,))
        self._stage(part, rows.filter(pc.invert(mask)), leaving.num_rows)

    def _materialize_column(self, step: MaterializeColumnStep) -> None:
        """Store the column's default in those parts that lack the column."""
        column = self.table.column(step.column)
        assert column is not None
        parts = [part for part in self._parts() if lacks(part, column)]
        self._rewrite_unchanged(parts, step.partition_id)

    def _rewrite_unchanged(
        self, parts: Iterable[Part], partition_id: str | None = None, omitted: str = ""
    ) -> None:
        """Rewrite the parts with unchanged rows.

        `partition_id` limits them to one partition (None: all); `omitted` names a skip index or projection
        to drop.
        """
        for part in parts:
            if partition_id in (None, part.partition_id):
                rows = read_rows(self._context(), self.table, part)
                self._stage(part, rows, 0, changes_rows=False, omitted=omitted)

    def _refuse_target(self, action: str) -> None:
        """Raise HaveDependentObjects if a view writes the table: its rows must stay the
        result of the view's query."""
        views = self.snapshot.views_into(self.table.id)
        if not views:
            return
        name = f"{views[0].database}.{views[0].name}"
        source = self.snapshot.by_id(views[0].source_id)
        where = f"{source.database}.{source.name}" if source is not None else "its source"
        raise HaveDependentObjects(
            f"{action}: {self.table.database}.{self.table.name} is written by view {name}, which"
            " claims to hold what its query makes.",
            hint=f"Change the rows of {where} and run SYSTEM REPLAY VIEW {name} STALE.",
        )

    def _fill_nulls(self, step: FillNullsStep) -> None:
        """Rewrite the parts that have NULLs in the step's columns, with the columns' defaults."""
        nullable_columns = frozenset(step.columns)
        for part in self._parts():
            filled, had_nulls = read_without_nulls(self._context(), self.table, part, step.columns)
            if had_nulls is not None:
                before = read_rows(self._views.context, self._views.table_before, part)
                self._invalidate(
                    part, nullable_columns, (before.filter(had_nulls), filled.filter(had_nulls))
                )
                self._stage(part, filled, had_nulls.true_count)

    # --- rows

    def _context(self) -> TriggerContext:
        """Return the context that reads the rows after the steps so far. It has its own cache,
        since this version of the table may never be committed."""
        return replace(TriggerContext.of(self.origin, self._current_snapshot()), cache=self._cache)

    def _current_snapshot(self) -> Snapshot:
        """Return the snapshot with the new table and the staged parts in place of those they
        replace."""
        return OverlaySnapshot(
            self.snapshot,
            {self.table.id: self.table},
            replaced=self.replaced,
            inline=self._staged_inline,
        )

    def _parts(self) -> list[Part]:
        """Return the table's parts that have rows, as this mutation's earlier steps left them."""
        return [part for part in self._current_snapshot().parts(self.table.id) if part.rows]

    def _defaults(self) -> DefaultColumns:
        """Return the table's default columns, bound in the state after the earlier steps."""
        return DefaultColumns.of(
            self.table, self._current_snapshot(), self.origin.environment, self._cache
        )

    def _matching(self, step: SetStep, assignments: Assignments) -> Iterator[tuple[Part, pa.Table]]:
        """Yield the parts with rows that match the step, with their offsets and assigned values."""
        parts = [p for p in self._parts() if step.partition_id in (None, p.partition_id)]
        where = in_partition(step.where, step.partition_id)
        return matching_rows(
            self.table, parts, where, assignments, self._context(), self.parameters
        )

    # --- staging

    def _stage(
        self,
        part: Part,
        rows: pa.Table,
        count: int,
        *,
        changes_rows: bool = True,
        omitted: str = "",
    ) -> None:
        """Stage `rows` in place of the part, which is live, or was staged by an earlier step.

        `count` rows changed, which the result counts if `changes_rows`. `omitted` names a
        skip index that the new part lacks. Without rows and contributions no part is staged.
        """
        self.origin.refuse_cancelled()
        origin, before = self._live_part(part)
        staged = None
        derived = layout_of(self.table, self._views.context).derived(rows)
        derived = derived.without(omitted)
        if rows.num_rows or part.contributions:
            plan = PartPlan.replacing(part, self.table, derived)
            plan = replace(plan, replaces=(origin.id,))
            staged = self.staging.stage_part(self.table, rows, plan)
            if staged.inline_rows is not None:
                self._staged_inline[staged.part.id] = staged.inline_rows
        self.replaced[origin.id] = staged
        if before is not None:
            self.staging.drop(before)
        if changes_rows:
            self.rows += count
            self.partitions[part.partition_id] = None
            self._changed_parts[origin.id] = origin
        failpoint("update.part_rewritten")

    def _invalidate(self, part: Part, written: frozenset[str], changed: Iterable[pa.Table]) -> None:
        """Note the slices of views that the changed rows of the part reach; `written` are the
        columns set."""
        origin, _ = self._live_part(part)
        self._views.add_changed_rows(origin, written, changed)

    def _live_part(self, part: Part) -> tuple[Part, AddPart | None]:
        """Return the live part that `part` is or replaces, and its staged replacement (None: none).

        Raises CommitConflict if the snapshot has no such part.
        """
        for live in self.snapshot.parts(self.table.id):
            staged = self.replaced.get(live.id)
            if live.id == part.id or (staged is not None and staged.part.id == part.id):
                return live, staged
        raise CommitConflict(f"Part {part.id} is not of the snapshot.")


def _dependent_materialized(table: Table, defaults: DefaultColumns, changed: set[str]) -> list[str]:
    """Return the MATERIALIZED columns whose value depends on the changed ones, directly or
    through another. Those of an EPHEMERAL column keep their values, since that one is stored nowhere."""
    needs = {c.name: c.needs for c in defaults.columns}
    ephemeral = {c.name for c in table.columns if c.default_kind == "EPHEMERAL"}
    names: list[str] = []
    reached = set(changed)
    waiting = [
        c.name
        for c in table.columns
        if c.default_kind == "MATERIALIZED" and not needs[c.name] & ephemeral
    ]
    while True:
        more = [n for n in waiting if n not in reached and needs[n] & reached]
        if not more:
            return names
        names += more
        reached.update(more)


def _with_columns(rows: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    """Return the rows with the given columns replaced, cast to their present types."""
    for name, values in columns.items():
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, values.cast(rows.schema.field(at).type))
    return rows
