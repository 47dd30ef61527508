"""Retained rows in replay, reconciliation and status: rows of keys that retention froze.

A frozen key of a target is neither compared nor replaced, see `olapdb.lineage.retention`. The other
keys of its slice are compared and recomputed as usual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from olapdb.commit.staging import Staging
from olapdb.engine.combine import combine
from olapdb.errors import BadArguments, RetainedRows
from olapdb.ingest.block_parts import layout_of
from olapdb.ingest.read_parts import read_rows
from olapdb.ingest.trigger import TriggerContext
from olapdb.ingest.view_failure import FAILED
from olapdb.lineage.dimension_impact import row_difference
from olapdb.lineage.retention import (
    DISCARD_HINT,
    SELF_RECORDED_CAUSES,
    FrozenKeys,
    WatchedSlices,
    frozen_keys_stale,
)
from olapdb.maintenance.merger import joined_contributions
from olapdb.model.changes import AddBlock, AddPart, Change, ReleaseRetained
from olapdb.model.contributions import BlocksRemoved, contributed_blocks
from olapdb.model.part import Contribution, NewBlock, Part
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import FrozenVerdict
from olapdb.storage.part_plan import PartPlan, inline_limit
from olapdb.views.jobs.chunk import combined_rows
from olapdb.views.jobs.job import view_name

SLICES_NAMED_MAX = 5


def stage_frozen_rows(
    target: Table,
    frozen: FrozenKeys,
    removed: Iterable[Part],
    new: Sequence[Change],
    context: TriggerContext,
    staging: Staging,
    swap: str = "",
) -> tuple[list[Change], Counter[str]]:
    """Stage the frozen rows of the `removed` parts as parts of their own: one for each partition
    and set of views that made the rows. Return the changes that add them, and the number of frozen
    rows by partition before they were merged. `context` reads the parts, and `new` are the other
    changes of the replay."""
    groups: dict[tuple[str, frozenset[str]], list[Part]] = {}
    for part in removed:
        if part.rows and frozen.holds(part.partition_id):
            writer_ids = frozenset(contribution.view_id for contribution in part.contributions)
            groups.setdefault((part.partition_id, writer_ids), []).append(part)
    changes: list[Change] = []
    before: Counter[str] = Counter()
    index = sum(
        1 for change in new if isinstance(change, AddBlock) and change.block.table_id == target.id
    )
    for (partition, _), parts in sorted(groups.items(), key=lambda group: group[0][0]):
        rows, count = _frozen_rows(target, frozen, partition, parts, context)
        before[partition] += count
        if rows is None:
            continue
        new_block = NewBlock(target.id, index)
        added_parts = [
            change.part
            for change in new
            if isinstance(change, AddPart) and change.part.partition_id == partition
        ]
        plan = PartPlan(
            partition,
            parts[0].partition_value,
            new_block,
            _remaining_contributions(parts, added_parts, context.snapshot, rows.num_rows),
            max(part.level for part in parts),
            inline_limit(target, parts),
            swap=swap,
            after=context.snapshot.next_block(target) - 1,
            derived=layout_of(target, context).derived(rows),
        )
        add_part = staging.stage_part(target, rows, plan)
        changes += [AddBlock(new_block, rows.num_rows, "backfill"), add_part]
        index += 1
    return changes, before


def _frozen_rows(
    table: Table, frozen: FrozenKeys, partition: str, parts: Iterable[Part], context: TriggerContext
) -> tuple[pa.Table | None, int]:
    """Return the parts' rows with frozen keys as a merge would leave them (None if there are none),
    and their number before that merge."""
    layout = layout_of(table, context)
    pieces = []
    for part in parts:
        rows = read_rows(context, table, part)
        frozen_rows = rows.filter(frozen.frozen_mask(layout, partition, rows))
        if frozen_rows.num_rows:
            pieces.append(frozen_rows.replace_schema_metadata(None))
    if not pieces:
        return None, 0
    rows = layout.sort(pa.concat_tables(pieces))
    return (combine(table, rows) if table.engine.combines else rows), rows.num_rows


def _remaining_contributions(
    parts: Sequence[Part], new: Iterable[Part], snapshot: Snapshot, rows: int
) -> list[Contribution]:
    """Return the contributions for the frozen rows of the parts `parts`: those of the parts,
    without source blocks that the `new` parts record."""
    new_parts = list(new)
    remaining: list[Contribution] = []
    for contribution in joined_contributions(parts):
        recorded = contributed_blocks(contribution.view_id, new_parts, contribution.source_id)
        source_partitions = {
            part.partition_id for part in snapshot.parts(contribution.source_id) if part.rows
        }
        removed = BlocksRemoved(recorded.by_partition, source_partitions)
        remainders = removed.without(replace(contribution, rows=0))
        remaining += remainders or [replace(contribution, rows=0, blocks=())]
    # The part counts as newly written: its contributions add up to its row count.
    return [replace(remaining[0], rows=rows), *remaining[1:]]


def frozen_slices_reached(
    view: MaterializedView,
    source: Table,
    frozen: FrozenKeys,
    before: Sequence[pa.Table],
    after: Sequence[pa.Table],
    context: TriggerContext,
) -> frozenset[str | None]:
    """Return the slices of the view (None: all) whose frozen keys a change of source rows reaches.
    The change is the difference of the rows `before` and `after`, each as a merge would leave
    them."""
    slices = WatchedSlices(view, {}, {}, frozen)
    rows_before, rows_after = (
        combined_rows(source, stored_rows(source, pieces), context) for pieces in (before, after)
    )
    try:
        slices.add(context, row_difference(rows_before, rows_after))
    except pa.ArrowNotImplementedError:  # Arrow cannot compare a column's type
        slices.add_all(0)
    return frozenset(slices.stale_frozen)


def stored_rows(table: Table, pieces: Iterable[pa.Table]) -> pa.Table:
    """Return the pieces as one table of the table's stored columns, which may be empty."""
    schema = pa.schema(
        [pa.field(column.name, column.type.arrow) for column in table.stored_columns]
    )
    plain = (piece.select(schema.names).replace_schema_metadata(None) for piece in pieces)
    return pa.concat_tables([schema.empty_table(), *(piece.cast(schema) for piece in plain)])


def refuse_retained(view: MaterializedView, partition: str) -> None:
    """Raise RetainedRows: nothing in this partition of the target can be recomputed."""
    raise RetainedRows(
        f"Partition {partition} of the target of {view_name(view)} holds what was made of source"
        " rows that have left by retention; nothing else of it can be recomputed.",
        hint=f"SYSTEM REPLAY VIEW {view_name(view)} PARTITION ID '{partition}' {DISCARD_HINT}",
    )


def release_changes(
    views: Iterable[MaterializedView], slices: frozenset[str] | None, snapshot: Snapshot
) -> list[Change]:
    """Return changes that unfreeze these slices of the views (None: all). Raise BadArguments for
    single slices if a view does not know which slices its retained rows had reached."""
    views = list(views)
    if slices is None:
        return [ReleaseRetained(view.id, None, snapshot.number) for view in views]
    for view in views:
        for retained in snapshot.retained(view.id):
            if any(slice_.partition is None for slice_ in retained.slices):
                raise BadArguments(
                    f"It is not known which slices of {view_name(view)} the retained rows reached.",
                    hint=f"SYSTEM REPLAY VIEW {view_name(view)} {DISCARD_HINT}",
                )
    return [
        ReleaseRetained(view.id, partition, snapshot.number)
        for view in views
        for partition in sorted(slices)
    ]


def stale_frozen_changes(
    views: Iterable[MaterializedView], partitions: Iterable[str] | None, snapshot: Snapshot
) -> list[Change]:
    """Return changes that mark frozen keys of these slices as stale where an invalidation may
    concern them. The replay clears the invalidations but does not recompute frozen keys. Causes
    whose own commit marked the frozen keys (SELF_RECORDED_CAUSES) are skipped."""
    chosen_partitions = None if partitions is None else set(partitions)
    changes: list[Change] = []
    for view in views:
        stale = {
            invalidation.target_partition
            for invalidation in snapshot.invalidations(view.id)
            if invalidation.cause != FAILED and invalidation.cause not in SELF_RECORDED_CAUSES
        }
        if chosen_partitions is not None:
            stale = set(chosen_partitions) if None in stale else stale & chosen_partitions
        if stale:
            changes += frozen_keys_stale(view, snapshot, stale)
    return changes


def retained_description(view: MaterializedView, snapshot: Snapshot) -> str:
    """Return the description of retained slices in system.views; "" if there are none."""
    retained_entries = [entry for entry in snapshot.retained(view.id) if entry.slices]
    if not retained_entries:
        return ""
    verdicts: dict[str, FrozenVerdict] = {}
    order: tuple[FrozenVerdict, ...] = ("proven", "covered", "stale", "different")
    for entry in retained_entries:
        for slice_ in entry.slices:
            previous = verdicts.get(slice_.partition or "any", slice_.verdict)
            verdicts[slice_.partition or "any"] = max(previous, slice_.verdict, key=order.index)
    listed = [
        f"{partition} ({verdict})"
        for partition, verdict in sorted(verdicts.items())[:SLICES_NAMED_MAX]
    ]
    more = len(verdicts) - len(listed)
    causes = ", ".join(dict.fromkeys(entry.cause for entry in retained_entries))
    source_rows = sum(entry.rows for entry in retained_entries if entry.side == "source")
    target_rows = sum(entry.rows for entry in retained_entries if entry.side == "target")
    descriptions = [f"{source_rows} rows of its source"] if source_rows else []
    descriptions += [f"{target_rows} rows of its target"] if target_rows else []
    return (
        f"{' and '.join(descriptions) or 'Rows'} have left by retention ({causes}); frozen with their last"
        f" verdict: {', '.join(listed)}{f' and {more} more' if more > 0 else ''}."
    )
