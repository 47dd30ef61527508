"""BACKFILL: fills a view's gap, one source partition a chunk, each published in its own commit.

A chunk's commit carries its rows, its coverage and the rows of all views further down, and
requires that the partition holds what the chunk read and that nobody covered it meanwhile (rule
3).  So a backfill may be killed anywhere and run again, or run twice at once, while INSERTs go
on: what is covered is done, what is not is the gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from olapdb.errors import BadArguments, CommitConflict, CommitUnknown, Error
from olapdb.ingest.dimensions import dimension_changed
from olapdb.ingest.failures import FAILED, NO_PARTITION, signed
from olapdb.ingest.read import Pin, discard
from olapdb.ingest.stage import dimension_requirements
from olapdb.model.changes import (
    AddBlock,
    AddCoverage,
    AddPart,
    Change,
    ClearInvalidations,
    Commit,
    LeaseLive,
    NoPartStraddles,
    NotCovered,
    Requirement,
    ViewIs,
)  # fmt: skip
from olapdb.model.part import BlockRange, Part
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import CoverageRow
from olapdb.transaction.points import reach
from olapdb.transaction.services import Services
from olapdb.views.chunk import FailedChunk, StagedChunk
from olapdb.views.coverage import GapSlice, gap
from olapdb.views.executor import Executor
from olapdb.views.jobs import (
    ATTEMPTS_MAX,
    ChunkEvent,
    Job,
    Progress,
    find_view,
    readable_source,
    view_name,
)  # fmt: skip
from olapdb.views.verdicts import failures


@dataclass(frozen=True, slots=True)
class BackfillRow:
    """What became of one chunk. `error` is "" unless it failed; the others were published."""

    chunk: int
    partition: str
    parts: int
    rows: int
    target_rows: int
    status: Literal["published", "failed", "already covered"]
    commit: int | None
    elapsed_ms: int
    error: str = ""


def plan_backfill(
    view: MaterializedView, snapshot: Snapshot, partition: str | None = None
) -> tuple[GapSlice, ...]:
    """The chunks that a backfill would compute now; `partition` is one of the source's."""
    slices = gap(view, snapshot)
    return slices if partition is None else tuple(s for s in slices if s.partition == partition)


def backfill(
    services: Services,
    view_id: str,
    *,
    partition: str | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    query_id: str = "",
    statement: str = "",
    settings: Mapping[str, object] | None = None,
) -> Iterator[BackfillRow]:
    """Yields a row for each chunk once it is committed, or failed; consume it to the end.

    No row: there was no gap.  A chunk that fails (its view raises on its rows) leaves its gap and
    stops no other; one whose partition changed meanwhile is computed again, bounded.  Raises
    UnknownTable, BadArguments for a partition that the source does not have, and
    QueryNotSupportedInMaterializedView for a source that keeps no rows.
    """
    job = Job.of(services, "BACKFILL", executor, progress, query_id, statement, settings)
    snapshot = services.catalog.snapshot()
    view = find_view(snapshot, view_id)
    _check_partition(snapshot, view, partition)
    slices = plan_backfill(view, snapshot, partition)
    for index, one in enumerate(slices):
        job.progress(
            ChunkEvent("planned", "BACKFILL", view_name(view), index, len(slices), one.partition,
                       len(one.parts), one.rows)
        )  # fmt: skip
    reach("backfill.planned")
    yield from _rounds(job, view_id, {s.partition: i for i, s in enumerate(slices)}, snapshot)
    _forget_failures(job, view_id)


def _forget_failures(job: Job, view_id: str) -> None:
    """Removes the notes of failures once none of their blocks is in the gap any more."""
    snapshot = job.services.catalog.snapshot()
    view = snapshot.by_id(view_id)
    if not isinstance(view, MaterializedView) or failures(view, snapshot):
        return
    if any(one.cause == FAILED for one in snapshot.invalidations(view_id)):
        forget = ClearInvalidations(view_id, NO_PARTITION, snapshot.number)
        requirements = (LeaseLive(job.services.lease_id), ViewIs(view_id, view.version))
        with suppress(CommitConflict):  # dropped, or altered meanwhile: the next backfill does it
            job.services.catalog.apply(
                Commit(requirements, (forget,), "BACKFILL", job.query_id, job.statement)
            )


def _check_partition(snapshot: Snapshot, view: MaterializedView, partition: str | None) -> None:
    source = readable_source(snapshot, view, "BACKFILL")
    if partition is None:
        return
    known = sorted({part.partition_id for part in snapshot.parts(source.id) if part.rows})
    if partition not in known:
        raise BadArguments(
            f"{source.database}.{source.name}, the source of {view_name(view)}, has no partition"
            f" {partition}.",
            hint=f"It has {', '.join(known[:20]) or 'none'}. BACKFILL takes a partition of the"
            " source.",
        )


def _rounds(
    job: Job, view_id: str, wanted: dict[str, int], snapshot: Snapshot
) -> Iterator[BackfillRow]:
    """Computes the wanted partitions (with their chunk numbers); conflicts go another round."""
    total = len(wanted)
    for attempt in range(ATTEMPTS_MAX):
        if not wanted:
            return
        with Pin(job.services, snapshot.number):
            view = find_view(snapshot, view_id)
            slices = {s.partition: s for s in gap(view, snapshot) if s.partition in wanted}
            for partition in sorted(wanted.keys() - slices.keys()):
                yield BackfillRow(
                    wanted.pop(partition), partition, 0, 0, 0, "already covered", None, 0
                )
            tasks = [
                job.task(snapshot, view, s.partition, s.parts, wanted[s.partition], "backfill",
                         blocks=claimed_by(snapshot, view, s))
                for s in slices.values()
            ]  # fmt: skip
            last = attempt == ATTEMPTS_MAX - 1
            for outcome in job.executor.run(tasks):
                row = _finish(job, snapshot, view, slices[outcome.partition], outcome, total, last)
                if row is not None:
                    del wanted[outcome.partition]
                    yield row
        snapshot = job.services.catalog.snapshot()


def _finish(
    job: Job, snapshot: Snapshot, view: MaterializedView, chunk: GapSlice,
    outcome: StagedChunk | FailedChunk, total: int, last: bool,
) -> BackfillRow | None:  # fmt: skip
    """Publishes a computed chunk; None where it has to be computed again."""
    index, parts = outcome.index, len(chunk.parts)

    def say(phase: str, target_rows: int, commit: int | None, elapsed_ms: int) -> None:
        job.progress(
            ChunkEvent(phase, "BACKFILL", view_name(view), index, total, chunk.partition,  # type: ignore[arg-type]
                       parts, chunk.rows, target_rows, commit, elapsed_ms)
        )  # fmt: skip

    if isinstance(outcome, FailedChunk):
        say("failed", 0, None, 0)
        return BackfillRow(
            index, chunk.partition, parts, chunk.rows, 0, "failed", None, 0, str(outcome.error)
        )
    say("computed", outcome.target_rows, None, outcome.elapsed_ms)
    try:
        commit = _publish(job, snapshot, view, chunk, outcome)
    except CommitConflict as conflict:
        _discard(job, outcome)
        say("conflict", outcome.target_rows, None, outcome.elapsed_ms)
        if not last:
            return None
        return BackfillRow(
            index, chunk.partition, parts, chunk.rows, 0, "failed", None, outcome.elapsed_ms,
            f"{conflict.message} Its source changed {ATTEMPTS_MAX} times meanwhile.",
        )
    except CommitUnknown:
        raise
    except Error:
        _discard(job, outcome)
        raise
    reach("backfill.chunk_published")
    say("published", outcome.target_rows, commit, outcome.elapsed_ms)
    return BackfillRow(
        index, chunk.partition, parts, chunk.rows, outcome.target_rows, "published", commit,
        outcome.elapsed_ms,
    )  # fmt: skip


def _publish(
    job: Job, snapshot: Snapshot, view: MaterializedView, chunk: GapSlice, outcome: StagedChunk
) -> int:
    staged = outcome.staged
    assert staged is not None
    claimed = claimed_by(snapshot, view, chunk)
    coverage = [AddCoverage(CoverageRow(view.id, chunk.partition, one)) for one in claimed]
    requirements = job.read_requirements(snapshot, view, (chunk.partition,))
    requirements += [NotCovered(view.id, chunk.partition, chunk.blocks), *staged.requirements]
    requirements.append(NoPartStraddles(view.source_id, chunk.partition, claimed))
    requirements += _dimensions(snapshot, view)
    written = {c.block.table_id for c in staged.changes if isinstance(c, AddBlock)}
    more, needed = dimension_changed(
        snapshot, written, "DIMENSION CHANGE", job.statement, job.query_id, outcome.target_rows,
        job.services.clock_ms(),
    )  # fmt: skip
    own = signed(staged.changes, job.statement, job.query_id, job.services.clock_ms())
    changes: list[Change] = [*own, *coverage, *more]
    reach("backfill.before_commit")
    committed = job.services.catalog.apply(
        Commit((*requirements, *needed), tuple(changes), "BACKFILL", job.query_id, job.statement)
    )
    for table_id in {c.part.table_id for c in staged.changes if isinstance(c, AddPart)}:
        job.services.notify_written(table_id)
    return committed.number


def _dimensions(snapshot: Snapshot, view: MaterializedView) -> list[Requirement]:
    return [requirement for requirement, _ in dimension_requirements(view, snapshot)]


def claimed_by(
    snapshot: Snapshot, view: MaterializedView, chunk: GapSlice
) -> tuple[BlockRange, ...]:
    """The source blocks that the view has seen of the partition once the slice is filled."""
    source = readable_source(snapshot, view, "BACKFILL")
    last_block = snapshot.next_block(source) - 1
    return claimed_ranges(chunk.parts, snapshot.parts(source.id), chunk.partition, last_block)


def claimed_ranges(
    chunk: tuple[Part, ...], live: tuple[Part, ...], partition: str, last_block: int
) -> tuple[BlockRange, ...]:
    """The blocks that a chunk covers in its partition: its parts' own, widened over blocks that
    have no rows there, so that merges of the partition find no holes.

        chunk 3..3, 7..7, another live part 5..5, last block 9  ->  1..4, 6..9
    """
    mine = {part.id for part in chunk}
    others = sorted(
        part.block_range for part in live if part.partition_id == partition and part.id not in mine
    )
    ranges: list[BlockRange] = []
    first = 1
    for other in [*others, None]:
        end = last_block if other is None else other.first - 1
        inside = [p for p in chunk if first <= p.block_range.first and p.block_range.last <= end]
        if inside:
            ranges.append(BlockRange(first, end))
        first = first if other is None else other.last + 1
    return tuple(ranges)


def _discard(job: Job, outcome: StagedChunk) -> None:
    if outcome.staged is not None:
        discard(job.services, outcome.staged.paths)
