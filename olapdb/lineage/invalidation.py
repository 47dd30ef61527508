"""The slices of views that a change of source rows makes stale.

A change's rows are run through each view's own SELECT: the partitions of the target that they reach
are the stale slices, and their keys the examples.  Where that fails (the view is broken) or is
unknown (a dimension changed), all of the target is stale.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa

from olapdb.commit.origin import CommitOrigin
from olapdb.compute.batches import single_chunk
from olapdb.compute.group_codes import factorise
from olapdb.engine.layout import TableLayout
from olapdb.errors import Error
from olapdb.functions import readable
from olapdb.ingest.block_parts import PLACEHOLDER_PARTITION, layout_of
from olapdb.ingest.trigger import TriggerContext, bound_view, fire
from olapdb.lineage.sorting_key import key_columns
from olapdb.model.changes import Change, Invalidate
from olapdb.model.contributions import SharedBlocks, contributed_blocks, wrote_rows
from olapdb.model.part import BlockRange, Part, overlaps_any, subtract_ranges
from olapdb.model.requirements import NotCovered, Requirement, ViewsOnTableAre
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Cause, Coverage, Invalidation
from olapdb.records import dataclass
from olapdb.types import DataType
from olapdb.types.arrow_values import from_numpy

KEY_EXAMPLES_MAX = 10


@dataclass
class StaleSlices:
    """The slices of one view that a change reaches, gathered piece by piece of the change."""

    view: MaterializedView
    rows: dict[str | None, int]
    keys: dict[str | None, list[str]]

    @staticmethod
    def of(view: MaterializedView) -> StaleSlices:
        """Return an empty set of slices of the view."""
        return StaleSlices(view, {}, {})

    def add(self, context: TriggerContext, *blocks: pa.Table) -> None:
        """Add the slices that source rows (the source's stored columns) contribute to. `blocks`
        are one piece of the change, such as the rows before and after it: a key that several of
        them reach counts once."""
        pieces = [block for block in blocks if block.num_rows]
        if not pieces:
            return
        try:
            bound = bound_view(self.view, context).unchecked()
            outputs = [fire(bound, block, context) for block in pieces]
        except Error:
            self.add_all(max(block.num_rows for block in pieces))
            return
        target_rows = outputs[0] if len(outputs) == 1 else pa.concat_tables(outputs)
        if target_rows.num_rows:
            self.add_target_rows(bound.target, target_rows, context)

    def add_target_rows(self, target: Table, rows: pa.Table, context: TriggerContext) -> None:
        """Add the slices of target rows that the change adds, removes or alters: a key counts
        once."""
        for partition, _, piece in layout_of(target, context).split(rows):
            self.on_slice_rows(target, partition, piece, context)
            distinct = distinct_keys(target, piece)
            self.rows[partition] = self.rows.get(partition, 0) + distinct.num_rows
            examples = self.keys.setdefault(partition, [])
            if len(examples) < KEY_EXAMPLES_MAX:
                texts = key_texts(target, distinct, KEY_EXAMPLES_MAX)
                examples += [text for text in dict.fromkeys(texts) if text not in examples]
                del examples[KEY_EXAMPLES_MAX:]

    def on_slice_rows(
        self, target: Table, partition: str, rows: pa.Table, context: TriggerContext
    ) -> None:
        """Receive every piece of a slice that the change reaches; a hook for subclasses."""

    def add_all(self, rows: int) -> None:
        """Add all of the target as one slice, for which only the number of changed rows is
        known."""
        self.rows[None] = self.rows.get(None, 0) + rows

    def add_partitions(self, partitions: Collection[str] | None, rows: int) -> None:
        """Count `rows` for each of the partitions; None counts them for the whole target."""
        for partition in (None,) if partitions is None else partitions:
            self.rows[partition] = self.rows.get(partition, 0) + rows

    def invalidations(self, origin: CommitOrigin, cause: Cause) -> list[Change]:
        """Return an invalidation of each slice, recorded under the origin's statement."""
        return [
            invalidate(
                origin, self.view.id, partition, cause, rows, tuple(self.keys.get(partition, ()))
            )
            for partition, rows in self.rows.items()
        ]


def invalidate(
    origin: CommitOrigin,
    view_id: str,
    partition: str | None,
    cause: Cause,
    rows: int,
    keys: tuple[str, ...] = (),
) -> Invalidate:
    """Return the change that marks a slice of a view (None: all of it) stale, recorded under the
    origin's statement; `rows` changed, `keys` are examples."""
    return Invalidate(
        Invalidation(
            view_id,
            partition,
            cause,
            origin.statement,
            origin.query_id,
            rows,
            origin.now_ms(),
            keys,
        )
    )


def distinct_keys(target: Table, rows: pa.Table) -> pa.Table:
    """Return one row for each sorting key and partition; all rows of a target that has neither."""
    layout = TableLayout(target)
    names = [
        c.name
        for c in target.stored_columns
        if c.name in layout.sorting_columns | layout.partition_columns
    ]
    if not names:
        return rows
    distinct = factorise([single_chunk(rows.column(name)) for name in names], rows.num_rows)
    return rows.take(from_numpy(distinct.first))


def key_texts(table: Table, rows: pa.Table, limit: int) -> list[str]:
    """Return the sorting keys of the first `limit` rows as text: "JFK" or "(JFK, 2013-01-01)".

    Key items that are expressions are left out; the result is [] if all items are expressions.
    """
    named_columns = (table.column(name) for name in key_columns(table) if name is not None)
    columns = [column for column in named_columns if column is not None]
    if not columns:
        return []
    head = rows.slice(0, limit)
    texts = [column_texts(head.column(c.name), c.type) for c in columns]
    if len(texts) == 1:
        return texts[0]
    return [f"({', '.join(row)})" for row in zip(*texts, strict=True)]


def column_texts(column: pa.ChunkedArray, data_type: DataType) -> list[str]:
    """Return the values as ClickHouse prints them, NULL as "NULL"."""
    return readable(single_chunk(column), data_type)


def processed_parts(
    view: MaterializedView, parts: Iterable[Part], snapshot: Snapshot
) -> tuple[list[Part], list[Requirement]]:
    """Return the source parts that the view has processed, and for the other parts the
    requirements that the view still has not."""
    coverage = snapshot.coverage(view.id)
    seen: list[Part] = []
    unseen: list[Requirement] = []
    for part in parts:
        if coverage.touches(part.partition_id, part.block_range):
            seen.append(part)
        else:
            unseen.append(NotCovered(view.id, part.partition_id, (part.block_range,)))
    return seen, unseen


def all_slices(snapshot: Snapshot, table: Table, parts: Collection[Part]) -> dict[str, StaleSlices]:
    """Return the whole target of each view that has processed rows of these parts of its source, by
    the view's id."""
    slices: dict[str, StaleSlices] = {}
    for view in snapshot.views_on(table.id):
        seen, _ = processed_parts(view, parts, snapshot)
        if any(part.rows for part in seen):
            slices[view.id] = StaleSlices.of(view)
            slices[view.id].add_all(sum(part.rows for part in seen))
    return slices


def slices_naming(view: MaterializedView, part: Part, snapshot: Snapshot) -> frozenset[str] | None:
    """Return the slices of the view that a part of its source reached, without reading the part:
    the slices whose parts name blocks of it. Slices that are stale already are included, since a
    running replay may still bring them such names.

    Return None, for all slices, if the target keeps no parts or is stale as a whole; if merges drop
    sums of zero, so that rows of the part may have cancelled out; and if a replay of the view above
    moved rows of this partition to blocks that no part of the target names.

        source part  blocks 3..4      target  2024-01 names 1..3, 2024-02 names 1..2, 2024-03 is stale
        reached      2024-01 and 2024-03
    """
    target = snapshot.by_id(view.target_id)
    if not isinstance(target, Table) or not target.engine.stores_rows:
        return None
    stale = {
        invalidation.target_partition
        for invalidation in snapshot.invalidations(view.id)
        if invalidation.cause != "VIEW FAILED"
    }
    if None in stale:
        return None
    if target.engine.drops_keys and SharedBlocks(snapshot.parts(view.source_id)).holds(part):
        return None
    by_slice: dict[str, list[Part]] = {}
    for target_part in snapshot.parts(target.id):
        if wrote_rows(target_part):
            by_slice.setdefault(target_part.partition_id, []).append(target_part)
    slices = {
        partition
        for partition, parts in by_slice.items()
        if overlaps_any(
            contributed_blocks(view.id, parts, view.source_id).ranges(part.partition_id),
            part.block_range,
        )
    }
    names = [contributed_blocks(view.id, parts) for parts in by_slice.values()]
    moved = partitions_moved_above(view, snapshot, names)
    if PLACEHOLDER_PARTITION in slices or part.partition_id in moved:
        return None
    return frozenset(
        slices.union(stale_slices for stale_slices in stale if stale_slices is not None)
    )


def partitions_moved_above(
    view: MaterializedView, snapshot: Snapshot, names: Collection[Coverage]
) -> frozenset[str]:
    """Return the partitions of the view's source in which `names`, the blocks that parts of its
    target name, include blocks without live rows. Return none if no view writes the source.

    A replay of the view that writes the source puts its rows into a new block. If they equal the
    former rows, this view's rows stay and still name the former block. The names then do not tell
    which live parts those rows were made of."""
    if not snapshot.views_into(view.source_id):
        return frozenset()
    live: dict[str, list[BlockRange]] = {}
    for part in snapshot.parts(view.source_id):
        if part.rows:
            live.setdefault(part.partition_id, []).append(part.block_range)
    return frozenset(
        partition
        for partition, ranges in live.items()
        if any(subtract_ranges(named.ranges(partition), ranges) for named in names)
    )


def require_same_views(snapshot: Snapshot, table_id: str) -> ViewsOnTableAre:
    """Return the requirement that the views on the table are unchanged since the snapshot."""
    return ViewsOnTableAre(table_id, tuple((v.id, v.version) for v in snapshot.views_on(table_id)))
