"""Which rows of a view's target a change of its dimensions reaches: its plan, asked twice.

what changed     the joined side is run on the dimension as it was and as it will be; the rows
                 that differ are the changed ones, columns that the view does not read count not
who meets it     the source's rows are kept to those that join a changed one, by key and by the
                 rest of the ON condition (a policy with effective dates: just those days)
what differs     the view runs over these, with the dimension as it was and as it will be; rows
                 of the target that differ are what is stale

view      SELECT day, kind, sum(weight) AS w FROM events JOIN kinds USING kind GROUP BY day, kind
change    ALTER TABLE kinds UPDATE weight = 2 WHERE kind = 'a'
changed   (a, 1) and (a, 2)
met by    rows of events with kind = 'a'; parts and row groups are pruned by their bounds
stale     (2024-01-01, a), (2024-02-03, a)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import single_batch, single_chunk
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.group_codes import factorise
from olapdb.engine.layout import TableLayout
from olapdb.execute import ExecutionContext, run
from olapdb.execute.pruning.granule_selection import Selector, live_parts
from olapdb.ingest.own_rows import inline_of, numbered
from olapdb.ingest.trigger import BoundView, TriggerContext
from olapdb.lineage.dimension_sites import (
    JoinSite,
    is_grouped,
    join_sites,
    kept_to,
    reads_one_by_one,
)
from olapdb.model.changes import AddPart, Change, RemoveParts
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.optimize import optimize
from olapdb.plan.expressions import columns_of
from olapdb.plan.nodes import Plan
from olapdb.plan.tree import all_scans

DIFFERENCE_ROWS_MAX = 2_097_152
"""Rows of a view without GROUP BY that are compared; where a change meets more, all count."""


@dataclass(frozen=True)
class TableChange:
    """What a commit does to the parts of a table. `kept` stay, `removed` leave, `added` come;
    `inline` are the bytes of those that are inline, by part."""

    table: Table
    kept: tuple[Part, ...]
    removed: tuple[Part, ...]
    added: tuple[Part, ...]
    inline: Mapping[str, bytes]

    @staticmethod
    def of(table: Table, changes: Sequence[Change], snapshot: Snapshot) -> TableChange | None:
        """Return the change; None where the commit removes parts that the snapshot does not have."""
        gone = {
            part_id
            for change in changes
            if isinstance(change, RemoveParts) and change.table_id == table.id
            for part_id in change.part_ids
        }
        live = snapshot.parts(table.id)
        removed = tuple(part for part in live if part.id in gone)
        if len(removed) != len(gone):
            return None
        staged = [c for c in changes if isinstance(c, AddPart) and c.part.table_id == table.id]
        first = snapshot.next_block(table)
        return TableChange(
            table,
            tuple(part for part in live if part.id not in gone),
            removed,
            tuple(numbered(one.part, first) for one in staged),
            inline_of(staged),
        )

    @property
    def is_empty(self) -> bool:
        return not any(part.rows for part in (*self.removed, *self.added))


@dataclass(frozen=True)
class DimensionImpact:
    """One view, its dimensions that change, and the parts of its source that it has seen."""

    bound: BoundView
    around: TriggerContext
    changes: Mapping[str, TableChange]
    source_parts: Sequence[Part]
    source_rows_max: int

    def target_rows(self) -> Iterator[pa.Table] | None:
        """Return rows of the target's stored columns: those that the change adds, removes or
        alters, and perhaps others. None where they are unknown, or where too many rows of the
        source would have to be read. Raises what the view raises."""
        found = join_sites(self.bound.plan.root, self.bound.view.source_id, frozenset(self.changes))
        if found is None:
            return None
        plans = [plan for place in found if (plan := self._plan(place)) is not None]
        if sum(self._rows_read(plan) for plan in plans) > self.source_rows_max:
            return None
        return (rows for plan in plans for rows in self._differing(plan))

    # --- what changed

    def _plan(self, place: JoinSite) -> Plan | None:
        """The view's plan over the rows that meet a changed one; None where nothing changed."""
        met = self._changed_rows(place)
        if met.num_rows == 0:
            return None
        keys: dict[int, pa.Array] = {}
        if place.join is not None:
            batch = single_batch(met)
            for at, key in enumerate(place.join.right_keys):
                if columns_of(key):
                    keys[at] = evaluate_array(key, batch, self.around.environment)
        root = kept_to(self.bound.plan.root, place, met, keys)
        return optimize(replace(self.bound.plan, root=root))

    def _changed_rows(self, place: JoinSite) -> pa.Table:
        """The distinct rows of the place's side that differ."""
        side = place.side
        plan = Plan(side, tuple((f.name, f.name) for f in side.schema))
        alone = reads_one_by_one(side, frozenset(self.changes))
        before, after = (
            run(plan, self._context(after=after, alone=alone)).read_all() for after in (False, True)
        )
        return difference(before, after, by_presence=place.by_presence and not alone)

    # --- what differs

    def _differing(self, plan: Plan) -> Iterator[pa.Table]:
        limit = None if is_grouped(plan.root) else DIFFERENCE_ROWS_MAX
        both = [self._rows(plan, limit, after=after) for after in (False, True)]
        before, after = both
        if before is not None and after is not None:
            yield difference(self._block(before), self._block(after))
            return
        for is_after in (False, True):
            for batch in run(plan, self._context(after=is_after)).batches():
                yield self._block(pa.Table.from_batches([batch]))

    def _rows(self, plan: Plan, limit: int | None, *, after: bool) -> pa.Table | None:
        """The plan's rows; None where there are more than `limit`."""
        result = run(plan, self._context(after=after))
        held: list[pa.RecordBatch] = []
        rows = 0
        try:
            for batch in result.batches():
                held.append(batch)
                rows += batch.num_rows
                if limit is not None and rows > limit:
                    return None
        finally:
            result.close()
        return pa.Table.from_batches(held, result.schema)

    def _block(self, rows: pa.Table) -> pa.Table:
        arrays = [single_chunk(column) for column in rows.columns]
        return self.bound.maker.make(arrays, rows.num_rows, self.around.environment)

    def _rows_read(self, plan: Plan) -> int:
        """Rows of the source in the parts that pruning leaves."""
        context = self._context(after=False)
        rows = 0
        for scan in all_scans(plan.root):
            if scan.table.id == self.bound.view.source_id:
                layout = TableLayout(scan.table, context.environment)
                parts = live_parts(scan, context)
                kept = Selector(scan, scan.predicate, layout, context).keep_parts(parts)
                rows += sum(part.rows for part in kept)
        return rows

    def _context(self, *, after: bool, alone: bool = False) -> ExecutionContext:
        """The source as far as the view has seen it, the dimensions as they were or as they will
        be; `alone`: only their parts that leave or come."""
        parts: dict[str, Sequence[Part]] = {self.bound.view.source_id: self.source_parts}
        inline: dict[str, bytes] = {}
        for table_id, change in self.changes.items():
            moving = change.added if after else change.removed
            chosen = moving if alone else (*change.kept, *moving)
            parts[table_id] = sorted(chosen, key=lambda p: (p.block_range, p.partition_id))
            inline.update(change.inline)
        around = self.around
        snapshot = OverlaySnapshot(around.snapshot, inline=inline)
        return ExecutionContext(
            snapshot=snapshot,
            store=around.store,
            settings=around.settings,
            environment=around.environment,
            parts=parts,
            cancelled=around.cancelled,
        )


def difference(before: pa.Table, after: pa.Table, *, by_presence: bool = False) -> pa.Table:
    """Return the distinct rows that one of the tables has more often than the other (`by_presence`:
    that only one of them has). Both have one schema of at least one column; NULL equals NULL."""
    both = pa.concat_tables([before, after])
    found = factorise([single_chunk(column) for column in both.columns], both.num_rows)
    old = np.bincount(found.codes[: before.num_rows], minlength=found.count)
    new = np.bincount(found.codes[before.num_rows :], minlength=found.count)
    differs = (old > 0) != (new > 0) if by_presence else old != new
    return both.take(pa.array(found.first[differs]))
