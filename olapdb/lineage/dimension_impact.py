"""The rows of a view's target that a change of its dimensions reaches, found by running its plan on
the dimensions before and after the change.

changed rows     the joined side is run on the dimension before and after; the rows that differ are
                 the changed ones, and columns that the view does not read do not count
matching rows    the source's rows are restricted to those that join a changed one, by key and by
                 the rest of the ON condition (a policy with effective dates: just those days)
stale rows       the view runs over these, with the dimension before and after; the rows of the
                 target that differ are stale

view      SELECT day, kind, sum(weight) AS w FROM events JOIN kinds USING kind GROUP BY day, kind
change    ALTER TABLE kinds UPDATE weight = 2 WHERE kind = 'a'
changed   (a, 1) and (a, 2)
matching  rows of events with kind = 'a'; parts and row groups are pruned by their bounds
stale     (2024-01-01, a), (2024-02-03, a)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import single_batch, single_chunk
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.group_codes import factorise
from olapdb.engine.layout import TableLayout
from olapdb.execute import ExecutionContext, run
from olapdb.execute.pruning.granule_selection import Selector, live_parts
from olapdb.ingest.own_rows import inline_rows_by_part, with_block_number
from olapdb.ingest.trigger import BoundView, TriggerContext
from olapdb.lineage.dimension_sites import (
    JoinSite,
    is_grouped,
    is_row_wise_side,
    join_sites,
    restrict_to_matches,
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
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy

DIFFERENCE_ROWS_MAX = 2_097_152
"""The most rows of a view without GROUP BY to compare; of a larger change, all rows count as
stale."""


@dataclass(frozen=True)
class TableChange:
    """The parts of a table that a commit keeps, removes and adds.

    `inline` has the Arrow IPC bytes of the added inline parts, by part id."""

    table: Table
    kept: tuple[Part, ...]
    removed: tuple[Part, ...]
    added: tuple[Part, ...]
    inline: Mapping[str, bytes]

    @staticmethod
    def of(table: Table, changes: Sequence[Change], snapshot: Snapshot) -> TableChange | None:
        """Return the changes of the table among these; None if they remove parts that the
        snapshot lacks."""
        removed_ids = {
            part_id
            for change in changes
            if isinstance(change, RemoveParts) and change.table_id == table.id
            for part_id in change.part_ids
        }
        live = snapshot.parts(table.id)
        removed = tuple(part for part in live if part.id in removed_ids)
        if len(removed) != len(removed_ids):
            return None
        staged = [c for c in changes if isinstance(c, AddPart) and c.part.table_id == table.id]
        first = snapshot.next_block(table)
        return TableChange(
            table,
            tuple(part for part in live if part.id not in removed_ids),
            removed,
            tuple(with_block_number(part_added.part, first) for part_added in staged),
            inline_rows_by_part(staged),
        )

    @property
    def is_empty(self) -> bool:
        """Return whether no row is removed or added."""
        return not any(part.rows for part in (*self.removed, *self.added))


@dataclass(frozen=True)
class DimensionImpact:
    """The impact of changed dimensions on one view; `source_parts` are the source parts that the
    view has processed, `source_rows_max` bounds the number of their rows to read."""

    bound: BoundView
    context: TriggerContext
    changes: Mapping[str, TableChange]
    source_parts: Sequence[Part]
    source_rows_max: int

    def target_rows(self) -> Iterator[pa.Table] | None:
        """Return the target rows, in its stored columns, that the change adds, removes or alters.

        The result is a superset.  None if the rows are unknown, see `join_sites`, or where more
        than `source_rows_max` rows would have to be read.  Raises the view's errors.
        """
        sites = join_sites(self.bound.plan.root, self.bound.view.source_id, frozenset(self.changes))
        if sites is None:
            return None
        plans = [plan for site in sites if (plan := self._plan(site)) is not None]
        if sum(self._rows_read(plan) for plan in plans) > self.source_rows_max:
            return None
        return (rows for plan in plans for rows in self._stale_rows(plan))

    # --- changed rows

    def _plan(self, site: JoinSite) -> Plan | None:
        """Return the view's plan over the rows that match a changed one, None if no row changed."""
        matched = self._changed_rows(site)
        if matched.num_rows == 0:
            return None
        keys: dict[int, pa.Array] = {}
        if site.join is not None:
            batch = single_batch(matched)
            for at, key in enumerate(site.join.right_keys):
                if columns_of(key):
                    keys[at] = evaluate_array(key, batch, self.context.environment)
        root = restrict_to_matches(self.bound.plan.root, site, matched, keys)
        return optimize(replace(self.bound.plan, root=root))

    def _changed_rows(self, site: JoinSite) -> pa.Table:
        """Return the distinct rows of the site's side that the change adds, removes or alters.

        An altered row comes twice, as it was and as it is. A row whose number alone changes comes
        once, or is left out where only its presence counts."""
        side = site.side
        plan = Plan(side, tuple((f.name, f.name) for f in side.schema))
        row_wise = is_row_wise_side(side, frozenset(self.changes))
        before, after = (
            run(plan, self._context(after=after, changed_parts_only=row_wise)).read_all()
            for after in (False, True)
        )
        return row_difference(before, after, by_presence=site.by_presence and not row_wise)

    # --- stale rows

    def _stale_rows(self, plan: Plan) -> Iterator[pa.Table]:
        """Yield the rows that the view's plan gives differently before and after the change."""
        limit = None if is_grouped(plan.root) else DIFFERENCE_ROWS_MAX
        both = [self._rows(plan, limit, after=after) for after in (False, True)]
        before, after = both
        if before is not None and after is not None:
            yield row_difference(self._block(before), self._block(after))
            return
        for is_after in (False, True):
            for batch in run(plan, self._context(after=is_after)).batches():
                yield self._block(pa.Table.from_batches([batch]))

    def _rows(self, plan: Plan, limit: int | None, *, after: bool) -> pa.Table | None:
        """Return the plan's rows before or `after` the change; None if they are more than `limit`.

        `limit` None returns all rows.
        """
        result = run(plan, self._context(after=after))
        batches: list[pa.RecordBatch] = []
        rows = 0
        try:
            for batch in result.batches():
                batches.append(batch)
                rows += batch.num_rows
                if limit is not None and rows > limit:
                    return None
        finally:
            result.close()
        return pa.Table.from_batches(batches, result.schema)

    def _block(self, rows: pa.Table) -> pa.Table:
        """Return the plan's rows as rows of the target, in its stored columns."""
        arrays = [single_chunk(column) for column in rows.columns]
        return self.bound.maker.make(arrays, rows.num_rows, self.context.environment)

    def _rows_read(self, plan: Plan) -> int:
        """Count the rows of the source parts that pruning keeps."""
        context = self._context(after=False)
        rows = 0
        for scan in all_scans(plan.root):
            if scan.table.id == self.bound.view.source_id:
                layout = TableLayout(scan.table, context.environment)
                parts = live_parts(scan, context)
                selected = Selector(scan, scan.predicate, layout, context).keep_parts(parts)
                rows += sum(part.rows for part in selected)
        return rows

    def _context(self, *, after: bool, changed_parts_only: bool = False) -> ExecutionContext:
        """Return a context that reads the seen source parts, and the dimensions before or `after`.

        With `changed_parts_only` only the parts of the dimensions that are removed or added."""
        parts: dict[str, Sequence[Part]] = {self.bound.view.source_id: self.source_parts}
        inline: dict[str, bytes] = {}
        for table_id, change in self.changes.items():
            moving = change.added if after else change.removed
            chosen = moving if changed_parts_only else (*change.kept, *moving)
            parts[table_id] = sorted(chosen, key=lambda p: (p.block_range, p.partition_id))
            inline.update(change.inline)
        context = self.context
        snapshot = OverlaySnapshot(context.snapshot, inline=inline)
        return ExecutionContext(
            snapshot=snapshot,
            store=context.store,
            settings=context.settings,
            environment=context.environment,
            parts=parts,
            cancelled=context.cancelled,
        )


def row_difference(before: pa.Table, after: pa.Table, *, by_presence: bool = False) -> pa.Table:
    """Return the distinct rows that one table has more often than the other.

    With `by_presence` those that only one table has.  Both tables have one schema of at least one
    column; NULL equals NULL."""
    both = pa.concat_tables([before, after])
    groups = factorise([single_chunk(column) for column in both.columns], both.num_rows)
    old = np.bincount(groups.codes[: before.num_rows], minlength=groups.count)
    new = np.bincount(groups.codes[before.num_rows :], minlength=groups.count)
    differs = (old > 0) != (new > 0) if by_presence else old != new
    return both.take(from_numpy(groups.first[differs]))
