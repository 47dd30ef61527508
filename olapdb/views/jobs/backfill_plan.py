"""The plan of a backfill: the chunks that it would compute now."""

from __future__ import annotations

from collections.abc import Mapping

from olapdb.errors import BadArguments
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.views.jobs.chunk_planner import ChunkLimits, plan_chunks
from olapdb.views.jobs.job import readable_source, view_name


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A chunk that a backfill would compute now: its source parts and the blocks that they span."""

    chunk: int
    partition: str
    parts: int
    rows: int
    bytes: int
    first_block: int
    last_block: int


def backfill_plan(
    snapshot: Snapshot,
    view: MaterializedView,
    *,
    partition: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> tuple[PlanRow, ...]:
    """Return the chunks that BACKFILL would compute, without computing or changing anything. Raises
    the errors of `backfill` about the source and the partition."""
    check_partition(snapshot, view, partition)
    return tuple(
        PlanRow(
            chunk.index,
            chunk.partition,
            len(chunk.parts),
            chunk.rows,
            chunk.recorded().bytes,
            chunk.blocks[0].first,
            chunk.blocks[-1].last,
        )
        for chunk in plan_chunks(view, snapshot, ChunkLimits.of(settings or {}), partition)
    )


def check_partition(snapshot: Snapshot, view: MaterializedView, partition: str | None) -> None:
    """Raise if the source cannot be read, or has no rows in the partition (BadArguments)."""
    source = readable_source(snapshot, view, "BACKFILL")
    if partition is None:
        return
    partitions = sorted({part.partition_id for part in snapshot.parts(source.id) if part.rows})
    if partition not in partitions:
        raise BadArguments(
            f"{source.database}.{source.name}, the source of {view_name(view)}, has no partition"
            f" {partition}.",
            hint=f"It has {', '.join(partitions[:20]) or 'none'}. BACKFILL takes a partition of the"
            " source.",
        )
