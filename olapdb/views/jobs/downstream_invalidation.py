"""Invalidation of views on a replayed target: their results from the replaced rows are stale.

The recomputed rows are a new block of the target. These views count it as seen without computing
anything from it; only their own replay does. Where a replay gives the rows that were there, a
provable view below is not stale: its rows depend on their values, not on the block that holds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.commit.draft import CommitDraft
from olapdb.compute.batches import single_chunk
from olapdb.compute.group_codes import factorise
from olapdb.engine.layout import TableLayout
from olapdb.ingest.block_parts import placeholder_part
from olapdb.ingest.read_parts import read_rows, read_staged
from olapdb.ingest.trigger import TriggerContext
from olapdb.lineage.effects import SourceChange, processed_by_views
from olapdb.lineage.invalidation import StaleSlices
from olapdb.lineage.mutation_impact import columns_read_by
from olapdb.lineage.retention import FrozenKeys, frozen_keys_stale
from olapdb.model.changes import AddBlock, AddCoverage, AddPart, Change
from olapdb.model.part import BlockRange, Contribution, NewBlock, Part
from olapdb.model.requirements import Covered, Requirement
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import CoverageRow
from olapdb.types import AggregateFunction, SimpleAggregateFunction
from olapdb.types.arrow_values import from_numpy
from olapdb.views.jobs.chunk import combined_rows
from olapdb.views.jobs.retained_rows import frozen_slices_reached, stored_rows


def downstream_effects(
    now: Snapshot,
    target: Table,
    removed: Iterable[Part],
    new: Sequence[Change],
    context: TriggerContext,
) -> tuple[CommitDraft, SourceChange]:
    """Return a commit draft for the views that read the target, and their slices that are stale.

    Only views that have seen some of the `removed` parts count. Their stale slices are those that
    rows of these parts, or of the parts in `new`, reach. The draft adds the new blocks to the
    views' coverage, with a placeholder part for each view, and downgrades verdicts on frozen keys.
    It requires that the views still cover the removed parts. `new` are the changes of the replay.
    `context` belongs to the snapshot `now`, which contains the `removed` parts."""
    draft = CommitDraft()
    with_rows = [part for part in removed if part.rows]
    slices: dict[str, StaleSlices] = {}
    watched_views, _ = processed_by_views(now, target.id, with_rows, joins=False)
    for watched in watched_views:
        view, seen = watched.view, watched.parts
        if not seen:
            continue
        draft.require(*_require_covered(view, seen))
        slices[view.id] = _stale_slices(view, target, seen, new, context)
        for change in new:
            if isinstance(change, AddBlock) and change.block.table_id == target.id:
                draft.change(AddCoverage(CoverageRow(view.id, None, change.block)))
        draft.change(*_downgraded_verdicts(view, target, seen, new, context))
        draft.change(*_placeholder_changes(now, view, new, draft.changes))
    return draft, SourceChange(target.id, with_rows, "UPSTREAM REPLAY", slices, joins=False)


def _stale_slices(
    view: MaterializedView,
    target: Table,
    seen: Iterable[Part],
    new: Iterable[Change],
    context: TriggerContext,
) -> StaleSlices:
    """Return the slices of the view that the replaced rows or the new ones reach; where rows can be
    compared, only those that one of both sides lacks."""
    stale = StaleSlices.of(view)
    before: dict[str, list[Part]] = {}
    after: dict[str, list[AddPart]] = {}
    for part in seen:
        before.setdefault(part.partition_id, []).append(part)
    for change in new:
        if isinstance(change, AddPart) and change.part.table_id == target.id and change.part.rows:
            after.setdefault(change.part.partition_id, []).append(change)
    compares = not view.unprovable and _rows_compare(target)
    columns = columns_read_by(view, target, context)
    for partition in sorted(before.keys() | after.keys()):
        old = (read_rows(context, target, part) for part in before.get(partition, ()))
        added = (
            read_staged(context.store, target, addition) for addition in after.get(partition, ())
        )
        if compares:
            stale.add(context, *_differing(target, old, added, columns, context))
        else:
            for rows in (*old, *added):
                stale.add(context, rows)
    return stale


def _rows_compare(target: Table) -> bool:
    """Return whether a table holds the same for provable views on it wherever a merge would leave
    the same rows: no merge drops a row, and all that it changes are merged values."""
    if target.engine.name == "MergeTree":
        return True
    layout = TableLayout(target)
    keys = layout.sorting_columns | layout.partition_columns
    return target.engine.name == "AggregatingMergeTree" and all(
        column.name in keys or isinstance(column.type, AggregateFunction | SimpleAggregateFunction)
        for column in target.stored_columns
    )


def _differing(
    target: Table,
    before: Iterable[pa.Table],
    after: Iterable[pa.Table],
    columns: frozenset[str],
    context: TriggerContext,
) -> list[pa.Table]:
    """Return the rows of a partition before and after a replay, as a merge would leave them, whose
    values in `columns` one side has more often than the other."""
    sides = [
        combined_rows(target, stored_rows(target, pieces), context) for pieces in (before, after)
    ]
    stored = {column.name for column in target.stored_columns}
    names = sorted(columns) if columns and columns <= stored else sorted(stored)
    both = pa.concat_tables(sides)
    try:
        codes = factorise([single_chunk(both.column(name)) for name in names], both.num_rows)
    except pa.ArrowNotImplementedError:  # a type whose values have no codes
        return sides
    split = sides[0].num_rows
    old = np.bincount(codes.codes[:split], minlength=codes.count)
    new = np.bincount(codes.codes[split:], minlength=codes.count)
    differs = (old != new)[codes.codes]
    return [
        side.filter(from_numpy(mask))
        for side, mask in zip(sides, (differs[:split], differs[split:]), strict=True)
    ]


def _require_covered(view: MaterializedView, seen: Iterable[Part]) -> list[Requirement]:
    """Require that the view still covers these parts. A concurrent TRUNCATE of its target may have
    put them back into its gap; then the new blocks must not count as seen."""
    ranges_by_partition: dict[str, list[BlockRange]] = {}
    for part in seen:
        ranges_by_partition.setdefault(part.partition_id, []).append(part.block_range)
    return [
        Covered(view.id, partition, tuple(ranges))
        for partition, ranges in ranges_by_partition.items()
    ]


def _downgraded_verdicts(
    view: MaterializedView,
    target: Table,
    seen: Iterable[Part],
    new: Iterable[Change],
    context: TriggerContext,
) -> list[Change]:
    """Return changes that downgrade the verdict of the view's retained slices whose input rows this
    replay changes. Identical rows keep the verdict."""
    frozen = FrozenKeys.of(context.snapshot, view.target_id)
    if not frozen:
        return []
    before = [read_rows(context, target, part) for part in seen]
    after = [
        read_staged(context.store, target, change)
        for change in new
        if isinstance(change, AddPart) and change.part.table_id == target.id and change.part.rows
    ]
    reached = frozen_slices_reached(view, target, frozen, before, after, context)
    return frozen_keys_stale(view, context.snapshot, reached)


def _placeholder_changes(
    now: Snapshot, view: MaterializedView, new: Iterable[Change], before: Iterable[Change]
) -> list[Change]:
    """Return a placeholder part of the view's target that records the new blocks of its source, and
    the block that it needs. The blocks count as seen; only the view's own replay computes their
    rows."""
    blocks = tuple(
        change.block
        for change in new
        if isinstance(change, AddBlock) and change.block.table_id == view.source_id
    )
    target = now.by_id(view.target_id)
    if not blocks or not isinstance(target, Table) or not target.engine.stores_rows:
        return []
    target_blocks = [
        change
        for change in before
        if isinstance(change, AddBlock) and change.block.table_id == target.id
    ]
    new_block = NewBlock(target.id, len(target_blocks))
    contribution = Contribution(view.id, view.version, view.source_id, None, blocks, 0)
    return [
        AddBlock(new_block, 0, "backfill"),
        AddPart(placeholder_part(target, new_block, (contribution,))),
    ]
