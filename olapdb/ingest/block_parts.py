"""The parts that one block of a table is cut into, and placeholder parts without rows."""

from __future__ import annotations

import time
from operator import attrgetter

import numpy as np
import pyarrow as pa

from olapdb.config import SESSION_SETTINGS, Settings, tuning
from olapdb.engine.combine import combine
from olapdb.engine.layout import TableLayout, shared_layout
from olapdb.engine.replacing_collapsing import check_markers
from olapdb.errors import TooManyParts
from olapdb.ingest.trigger import TriggerContext
from olapdb.model.part import Blocks, Contribution, Part, new_part_id
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot

INLINE_BYTES_MAX = int(SESSION_SETTINGS["inline_bytes_max"].default)
INLINE_ROWS_MAX = 10_000
INLINE_PARTS_UNCOUNTED = 256
INLINE_TABLE_BYTES_MAX = INLINE_PARTS_UNCOUNTED * INLINE_BYTES_MAX
"""The most bytes of a table that the catalog keeps. Up to INLINE_PARTS_UNCOUNTED parts cannot
hold more, so they are not counted."""
_PART_BYTES, _IS_INLINE = attrgetter("bytes"), attrgetter("inline")


def layout_of(table: Table, context: TriggerContext) -> TableLayout:
    """Return the table's layout from the context's cache, under the zone of the warehouse."""
    return shared_layout(table, context.cache, context.environment.of_warehouse.zone)


PLACEHOLDER_PARTITION = ""
"""The partition of placeholder parts, which belong to no partition of the table."""


def placeholder_part(table: Table, number: Blocks, contributions: tuple[Contribution, ...]) -> Part:
    """Return a part without rows, which records contributions that produced no rows."""
    return Part(
        id=new_part_id(),
        table_id=table.id,
        partition_id=PLACEHOLDER_PARTITION,
        partition_value=(),
        rows=0,
        bytes=0,
        blocks=number,
        schema_version=table.version,
        contributions=contributions,
        created_ms=time.time_ns() // 1_000_000,
    )


def partition_pieces(
    table: Table, block: pa.Table, context: TriggerContext, settings: Settings, *, unique: bool
) -> list[tuple[str, tuple[object, ...], pa.Table]]:
    """Return (partition id, value, sorted rows) of each partition of the block that has rows.

    If the engine combines rows and `optimize_on_insert` is on, rows of one sorting key are combined; `unique` says
    that no two rows have one. Raises TooManyParts past max_partitions_per_insert_block, unless
    throw_on_max_partitions_per_insert_block is off. Raises IncorrectData for invalid signs and for vectors of another
    length than an index says."""
    check_markers(table, block)
    layout = layout_of(table, context)
    layout.check_vectors(block)
    # Sort and combine before the split: once, not for each of a thousand partitions.  The
    # partitions of a large block are often sorted already.
    combines = table.engine.combines and settings.boolean("optimize_on_insert")
    if block.num_rows > tuning.SORTED_WHOLE_ROWS_MAX:
        split = [(i, v, layout.sort(rows, settings.threads)) for i, v, rows in layout.split(block)]
    elif combines and layout.keys_within_partitions:
        split = layout.split(combine(table, layout.sort(block), layout, unique=unique))
        combines = False
    else:
        split = layout.split(layout.sort(block))
    limit = settings.integer("max_partitions_per_insert_block")
    throws = settings.boolean("throw_on_max_partitions_per_insert_block")
    if limit and len(split) > limit and throws:
        raise TooManyParts(
            f"One block of {table.database}.{table.name} has rows of {len(split)} partitions,"
            f" max_partitions_per_insert_block is {limit}.",
            hint="Partition more coarsely, insert in the order of the partition key,"
            " or raise the setting (0 is no limit).",
        )
    if combines:
        split = [(i, v, combine(table, r, layout, unique=unique)) for i, v, r in split]
    return [(index, value, rows) for index, value, rows in split if rows.num_rows]


def inline_bytes_limit(table: Table, rows: pa.Table, snapshot: Snapshot, settings: Settings) -> int:
    """Return the most bytes of a part of these rows to keep in the catalog; 0 for none."""
    if rows.num_rows > INLINE_ROWS_MAX:
        return 0
    limit = settings.integer("inline_bytes_max")
    limit = min(limit, int(table.setting("inline_bytes_max")))
    parts = snapshot.parts(table.id) if limit else ()
    if len(parts) < INLINE_PARTS_UNCOUNTED:
        return limit
    inline_bytes = snapshot.derived(  # once for all parts that the INSERT writes
        ("inline bytes", table.id), lambda: sum(map(_PART_BYTES, filter(_IS_INLINE, parts)))
    )
    return limit if inline_bytes + rows.nbytes <= INLINE_TABLE_BYTES_MAX else 0


def has_own_memory(rows: pa.Table, block: pa.Table) -> bool:
    """Return whether no value of `rows` lies in the memory of the block, which its owner may change."""
    taken = np.array(_memory(block), np.int64).reshape(-1, 2)
    taken = taken[np.argsort(taken[:, 0], kind="stable")]
    ends = np.maximum.accumulate(taken[:, 1]) if len(taken) else taken[:, 1]
    for start, end in _memory(rows):
        before = int(np.searchsorted(taken[:, 0], end))
        if before and ends[before - 1] > start:
            return False
    return True


def _memory(rows: pa.Table) -> list[tuple[int, int]]:
    """Return the start and end of each buffer of the columns."""
    return [
        (buffer.address, buffer.address + buffer.size)
        for column in rows.columns
        for chunk in column.chunks
        for buffer in chunk.buffers()
        if buffer is not None and buffer.size
    ]
