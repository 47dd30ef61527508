"""Placeholder parts for covered source blocks that no part of the target records after a swap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from olapdb.ingest.block_parts import placeholder_part
from olapdb.model.changes import AddBlock, AddPart, Change
from olapdb.model.part import BlockRange, Contribution, NewBlock, Part, subtract_ranges
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.views.jobs.job import by_partition
from olapdb.views.proof.coverage import covered_parts
from olapdb.views.proof.ledger_check import contributed_blocks, unbooked_parts


def placeholder_changes(
    views: Iterable[MaterializedView],
    snapshot: Snapshot,
    target: Table,
    removed: Iterable[Part],
    live: Iterable[Part],
    new: Sequence[Change],
) -> list[Change]:
    """Return changes that add a placeholder part for covered source blocks that no part of the
    target records after the swap. The views have seen these blocks, but no rows of them remain.

    The `live` parts lose the `removed` ones and gain those in `new`; a chunk has recorded the slices
    in which its rows cancelled out. `snapshot` is the one from which the swap was computed."""
    removed = tuple(removed)
    removed_ids = {part.id for part in removed}
    remaining = [part for part in live if part.id not in removed_ids]
    remaining += [added.part for added in new if isinstance(added, AddPart)]
    blocks = [added.block for added in new if isinstance(added, AddBlock)]
    new_block = NewBlock(target.id, sum(1 for added in blocks if added.table_id == target.id))
    contributions = tuple(
        Contribution(view.id, view.version, view.source_id, partition, blocks, 0)
        for view in views
        for partition, blocks in _unrecorded_blocks(view, snapshot, removed, remaining).items()
    )
    if not contributions:
        return []
    placeholder = placeholder_part(target, new_block, contributions)
    return [AddBlock(new_block, 0, "backfill"), AddPart(placeholder)]


def _unrecorded_blocks(
    view: MaterializedView, snapshot: Snapshot, removed: Iterable[Part], remaining: Iterable[Part]
) -> dict[str, tuple[BlockRange, ...]]:
    """Return, by source partition, the blocks that a placeholder part must record.

    They are all covered blocks of a partition that has a covered part which no remaining part
    records. Of another partition they are the blocks that a removed part recorded for all
    partitions, and that no remaining part records. Such a block may have no rows in the partition,
    but a merge may join parts before and after it into one that contains it."""
    remaining_blocks, removed_blocks = (
        contributed_blocks(view.id, remaining, view.source_id),
        contributed_blocks(view.id, removed, view.source_id),
    )
    unrecorded: dict[str, tuple[BlockRange, ...]] = {}
    for partition in by_partition(covered_parts(view, snapshot)):
        blocks = subtract_ranges(removed_blocks.everywhere, remaining_blocks.ranges(partition))
        if blocks:
            unrecorded[partition] = blocks
    for partition in by_partition(unbooked_parts(view, snapshot, remaining_blocks)):
        unrecorded[partition] = snapshot.coverage(view.id).ranges(partition)
    return unrecorded
