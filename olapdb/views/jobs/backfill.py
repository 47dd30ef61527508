"""BACKFILL: fill a view's gap chunk by chunk, with one commit per chunk.

A chunk's commit carries its rows, its coverage and the rows of all downstream views (`publish`). So
a backfill may be killed at any point and run again, or run twice at once, while INSERTs go on:
covered blocks are done, all other blocks are still in the gap.

With `backfill_staging = 1`, chunks wait, invisible, until all are computed; one commit publishes
them. A chunk whose partition changed meanwhile is computed again, the others are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from olapdb.commit.draft import CommitDraft, publish_if_current
from olapdb.commit.origin import CommitOrigin
from olapdb.errors import BackfillIncomplete
from olapdb.ingest.view_failure import FAILED, NO_PARTITION
from olapdb.model.changes import ClearInvalidations
from olapdb.model.requirements import ViewIs
from olapdb.model.schema import MaterializedView
from olapdb.runtime.failpoints import failpoint
from olapdb.views.jobs.backfill_pass import BackfillPass, BackfillRow, report_chunk
from olapdb.views.jobs.backfill_plan import check_partition
from olapdb.views.jobs.chunk_planner import ChunkLimits, plan_chunks
from olapdb.views.jobs.executor import Executor
from olapdb.views.jobs.finishing import Finishing
from olapdb.views.jobs.job import Progress, ViewJob, find_view, view_name
from olapdb.views.proof.failed_repairs import record_failed_attempt
from olapdb.views.proof.verdicts import failures

FAILURES_NAMED_MAX = 5
PASSES_MAX = 5
"""Passes over partitions whose rows came back in other blocks, for example by a replay of a view
that writes the source. Each pass is a job of its own."""


def backfill(
    origin: CommitOrigin,
    view_id: str,
    *,
    partition: str | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    finishing: Finishing | None = None,
) -> Iterator[BackfillRow]:
    """Fill the view's gap, yielding a row for each chunk once it is committed or failed. Consume
    the iterator to the end. The commit of the last chunk, if none has failed, also publishes the draft of
    `finishing`.

    No row means that there was no gap. A chunk fails if its view raises on its rows: its gap stays,
    and the other chunks go on. A chunk whose partition changed meanwhile is computed again, up to
    ATTEMPTS_MAX times. Raises UnknownTable, BadArguments for a partition that the source does not
    have, QueryNotSupportedInMaterializedView for a source that keeps no rows, and
    QueryWasCancelled."""
    replaced_partitions: set[str] | None = None
    for _ in range(PASSES_MAX):
        job = ViewJob.of(origin, "BACKFILL", executor, progress, finishing)
        snapshot = job.services.catalog.snapshot()
        view = find_view(snapshot, view_id)
        if replaced_partitions is None:
            check_partition(snapshot, view, partition)
        chunks = tuple(
            chunk
            for chunk in plan_chunks(view, snapshot, ChunkLimits.of(job.settings), partition)
            if replaced_partitions is None or chunk.partition in replaced_partitions
        )
        run = BackfillPass(job, view, len(chunks), {chunk.index: chunk for chunk in chunks})
        with job.recorded():
            job.record.plan(view, [chunk.recorded() for chunk in chunks])
            for chunk in chunks:  # after the plan is recorded: a listener may cancel the job
                report_chunk(job, view, len(chunks), chunk, "planned")
            failpoint("backfill.planned")
            yield from run.rows(snapshot)
        _forget_failures(job, view_id)
        if (
            partition is None
            and run.last_row_error is not None
            and len(run.failed) == run.row_failures
        ):
            record_failed_attempt(job, view_id, "BACKFILL", run.last_row_error)
        replaced_partitions = run.replaced
        if not replaced_partitions:
            return


def refuse_incomplete(view: MaterializedView, rows: Sequence[BackfillRow], query_id: str) -> None:
    """Raise BackfillIncomplete if chunks failed. It names them and says how to go on."""
    failed = [row for row in rows if row.status == "failed"]
    if not failed:
        return
    name = view_name(view)
    published = sum(row.status == "published" for row in rows)
    reasons = "; ".join(
        f"chunk {row.chunk} of partition {row.partition}: {row.error}"
        for row in failed[:FAILURES_NAMED_MAX]
    )
    more = len(failed) - FAILURES_NAMED_MAX
    error = BackfillIncomplete(
        f"{len(failed)} of {len(rows)} chunks of the backfill of {name} failed: {reasons}"
        f"{f'; and {more} more' if more > 0 else ''}. {published} were published.",
        hint=f"Mend the view or its source's rows, then SYSTEM BACKFILL VIEW {name} again: it does"
        " only what is left. SELECT * FROM system.view_job_chunks WHERE query_id ="
        f" '{query_id}' has all of them.",
    )
    error.rows = tuple(rows)
    raise error


def _forget_failures(job: ViewJob, view_id: str) -> None:
    """Remove the view's recorded failures once none of their blocks is in its gap any more."""
    snapshot = job.services.catalog.snapshot()
    view = snapshot.by_id(view_id)
    if not isinstance(view, MaterializedView) or failures(view, snapshot):
        return
    if any(invalidation.cause == FAILED for invalidation in snapshot.invalidations(view_id)):
        clear_failures = ClearInvalidations(view_id, NO_PARTITION, snapshot.number)
        draft = CommitDraft([job.origin.lease, ViewIs(view_id, view.version)], [clear_failures])
        publish_if_current(draft, job.origin)  # if the view changed, the next backfill does this
