"""Placeholder parts for covered source blocks that no part of the target records after a swap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from olapdb.ingest.block_parts import PLACEHOLDER_PARTITION, placeholder_part
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
    """Return changes that add placeholder parts for covered source blocks that no part of the
    target records after the swap. The views have seen these blocks, but no rows of them remain.

    If the engine drops keys whose sums are zero, each slice gets a placeholder part too, for blocks
    whose rows may have cancelled out there. The `live` parts lose the `removed` ones and gain those
    in `new`. `snapshot` is the one from which the swap was computed."""
    removed = tuple(removed)
    removed_ids = {part.id for part in removed}
    remaining_parts = [part for part in live if part.id not in removed_ids]
    remaining_parts += [added.part for added in new if isinstance(added, AddPart)]
    views = tuple(views)
    blocks = [added.block for added in new if isinstance(added, AddBlock)]
    new_block = NewBlock(target.id, sum(1 for added in blocks if added.table_id == target.id))
    placeholders: list[Part] = []
    if target.engine.drops_keys:
        placeholders += _cancelled_out_parts(
            views, snapshot, target, new_block, removed, remaining_parts
        )
    contributions = tuple(
        Contribution(view.id, view.version, view.source_id, partition, blocks, 0)
        for view in views
        for partition, blocks in _unrecorded_blocks(
            view, snapshot, removed, [*remaining_parts, *placeholders]
        ).items()
    )
    if contributions:
        placeholders.append(placeholder_part(target, new_block, contributions))
    if not placeholders:
        return []
    return [AddBlock(new_block, 0, "backfill"), *map(AddPart, placeholders)]


def _cancelled_out_parts(
    views: Sequence[MaterializedView],
    snapshot: Snapshot,
    target: Table,
    number: NewBlock,
    removed: Iterable[Part],
    remaining: Sequence[Part],
) -> list[Part]:
    """Return for each target partition a placeholder part for source blocks that only the removed
    parts recorded. Their rows may have summed to zero and been dropped, as in a merge."""
    removed_by_slice: dict[str, list[Part]] = {}
    for part in removed:
        removed_by_slice.setdefault(part.partition_id, []).append(part)
    remaining_by_slice = by_partition(remaining)
    source_partitions = {
        view.id: sorted({source_part.partition_id for source_part in covered_parts(view, snapshot)})
        for view in views
    }
    placeholders: list[Part] = []
    unnamed: dict[tuple[str, tuple[BlockRange, ...]], list[Contribution]] = {}
    for slice_, parts in removed_by_slice.items():
        if slice_ == PLACEHOLDER_PARTITION:
            continue
        remaining_parts = remaining_by_slice.get(slice_, ())
        contributions: list[Contribution] = []
        for view in views:
            before, after = (
                contributed_blocks(view.id, parts, view.source_id),
                contributed_blocks(view.id, remaining_parts, view.source_id),
            )
            named = before.by_partition.keys() | after.by_partition.keys()
            everywhere = subtract_ranges(before.everywhere, after.everywhere)
            # The same for most slices: a target of a thousand partitions has a million of them.
            if (view.id, everywhere) not in unnamed:
                unnamed[view.id, everywhere] = _contributions(
                    view, dict.fromkeys(source_partitions[view.id], everywhere)
                )
            contributions += [
                contribution
                for contribution in unnamed[view.id, everywhere]
                if contribution.source_partition not in named
            ]
            contributions += _contributions(
                view,
                {
                    partition: subtract_ranges(before.ranges(partition), after.ranges(partition))
                    for partition in sorted(named.intersection(source_partitions[view.id]))
                },
            )
        if contributions:
            placeholder = placeholder_part(target, number, tuple(contributions))
            value = parts[0].partition_value
            placeholders.append(replace(placeholder, partition_id=slice_, partition_value=value))
    return placeholders


def _contributions(
    view: MaterializedView, blocks: Mapping[str, tuple[BlockRange, ...]]
) -> list[Contribution]:
    """Return a contribution for each source partition with blocks whose rows cancelled out."""
    return [
        Contribution(view.id, view.version, view.source_id, partition, ranges, 1)
        for partition, ranges in blocks.items()
        if ranges
    ]


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
