"""Source blocks that a view has seen, and that no part of its target would name after a swap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from olapdb.ingest.stage import void_part
from olapdb.model.changes import AddBlock, AddPart, Change
from olapdb.model.part import BlockRange, Contribution, NewBlock, Part, subtract_ranges
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.views.coverage import covered_parts
from olapdb.views.jobs import by_partition
from olapdb.views.ledger import booked, unbooked_parts


def left_over(
    views: Iterable[MaterializedView], snapshot: Snapshot, target: Table, removed: Iterable[Part],
    live: Iterable[Part], new: Sequence[Change],
) -> list[Change]:  # fmt: skip
    """A void part that names the covered blocks which no part of the target names any more: they
    have nothing to add, since rows were deleted, but they were seen. Of the `live` parts the
    `removed` ones go and those of `new` come; `snapshot` is what the swap was computed from."""
    removed = tuple(removed)
    gone = {part.id for part in removed}
    left = [part for part in live if part.id not in gone]
    left += [one.part for one in new if isinstance(one, AddPart)]
    orphaned = tuple(
        Contribution(view.id, view.version, view.source_id, partition, blocks, 0)
        for view in views
        for partition, blocks in _unnamed(view, snapshot, removed, left).items()
    )
    if not orphaned:
        return []
    blocks = [one.block for one in new if isinstance(one, AddBlock)]
    number = NewBlock(target.id, sum(1 for one in blocks if one.table_id == target.id))
    return [AddBlock(number, 0, "backfill"), AddPart(void_part(target, number, orphaned))]


def _unnamed(
    view: MaterializedView, snapshot: Snapshot, removed: Iterable[Part], left: Iterable[Part]
) -> dict[str, tuple[BlockRange, ...]]:
    """By source partition, the blocks that a void part has to name: those of parts that are named
    no more, and those that a removed part named for all partitions. The latter may have no rows in
    a partition, and lie within a part of it once this is merged."""
    named, before = booked(view.id, left), booked(view.id, removed)
    found: dict[str, tuple[BlockRange, ...]] = {}
    for partition in by_partition(covered_parts(view, snapshot)):
        blocks = subtract_ranges(before.everywhere, named.ranges(partition))
        if blocks:
            found[partition] = blocks
    for partition in by_partition(unbooked_parts(view, snapshot, named)):
        found[partition] = snapshot.coverage(view.id).ranges(partition)
    return found
