"""What is merged when: the background's choice of a table, and OPTIMIZE.

Merges of many partitions share a commit, as long as they are small together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from olapdb.commit.origin import CommitOrigin
from olapdb.errors import CommitConflict, MemoryLimitExceeded, UnknownTable
from olapdb.maintenance.merge_policy import (
    MergeLimits,
    by_partition,
    choose,
    choose_all,
    choose_inline,
    runs,
)
from olapdb.maintenance.merger import MergeResult, merge_batch, table_state
from olapdb.model.columns import settled_version
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.services import Services

ROUNDS_MAX = 100
"""Plans that OPTIMIZE makes before it gives up against merges and INSERTs that are faster."""
BATCH_MERGES_MAX = 200
BATCH_BYTES_MAX = 64 << 20
"""Uncompressed bytes that the merges of one commit read; a larger merge is a commit of its own."""
BACKGROUND_THREADS = 1
"""Of a merge that nobody asked for: the other cores are for INSERTs and queries."""


def merge_some(
    services: Services,
    table_id: str,
    limits: MergeLimits | None = None,
    wanted: Callable[[], bool] = lambda: True,
) -> list[MergeResult]:
    """Make the background merges of a table that are worth most now, one of each partition, in one
    commit of bounded size; return none where none is worth it.

    Raises CommitConflict as `merge_batch` does. `wanted` is asked before anything is read.
    """
    with services.catalog.pinned() as snapshot:
        table = snapshot.by_id(table_id)
        if not isinstance(table, Table) or not table.engine.stores_rows:
            return []
        chosen = _chosen(services, snapshot, table, limits or limits_of(table))
        first = next(chosen, None)
        if first is None or not wanted():
            return []
        inline = first[1]
        alike = [first[0], *(parts for parts, one in chosen if one == inline)]
        return merge_batch(
            CommitOrigin(services, "MERGE", settings={"max_threads": BACKGROUND_THREADS}),
            snapshot,
            table,
            next(_batches(alike)),
            inline=inline,
        )


def _chosen(
    services: Services, snapshot: Snapshot, table: Table, limits: MergeLimits
) -> Iterator[tuple[list[Part], bool]]:
    """Yield the merges that are worth it, at most one of a partition, and whether their rows may
    stay in the catalog."""
    state, now_ms = table_state(snapshot, table), services.clock_ms()
    for parts in by_partition(snapshot.parts(table.id)).values():
        for run in runs(state, parts):
            flushed = choose_inline(run, limits, now_ms)
            chosen = flushed or choose(run, limits, now_ms, len(parts))
            if chosen:
                yield chosen, not flushed
                break


def optimize(
    origin: CommitOrigin,
    table_id: str,
    *,
    partition_id: str | None = None,
    final: bool = False,
    limits: MergeLimits | None = None,
) -> list[MergeResult]:
    """OPTIMIZE TABLE [PARTITION] [FINAL]: merges until each run of mergeable parts is one, of those
    that were there when it began.

    `final` also rewrites a single part that was never combined, or lies in the catalog.  Parts
    that only differ in coverage, origin (bypass) or sides of a fence stay apart.  Raises
    MemoryLimitExceeded where `final` cannot make one part within the limits, CommitConflict
    where others kept changing the parts, QueryWasCancelled before the merge that comes next.
    """
    results: list[MergeResult] = []
    up_to: int | None = None
    # Not a retry of one commit: each round makes the merges that the rounds before left possible.
    for _ in range(ROUNDS_MAX):
        with origin.services.catalog.pinned() as snapshot:
            table = snapshot.by_id(table_id)
            if not isinstance(table, Table):
                raise UnknownTable("The table does not exist any more.")
            if not table.engine.is_merge_tree:
                return results
            up_to = snapshot.next_block(table) - 1 if up_to is None else up_to
            planned = _plan(snapshot, table, partition_id, final, limits or limits_of(table), up_to)
            if not planned:
                return results
            try:
                for batch in _batches(planned):
                    results += merge_batch(origin, snapshot, table, batch, inline=False)
            except CommitConflict:
                continue  # a merge or an INSERT's commit came between: plan anew
    raise CommitConflict(
        f"The parts of the table changed {ROUNDS_MAX} times during OPTIMIZE.",
        hint="What was merged stays merged; SYSTEM STOP MERGES, then run it again.",
    )


def limits_of(table: Table) -> MergeLimits:
    return MergeLimits(bytes_max=int(table.setting("max_bytes_to_merge")))


def _plan(
    snapshot: Snapshot,
    table: Table,
    partition_id: str | None,
    final: bool,
    limits: MergeLimits,
    up_to: int,
) -> list[list[Part]]:
    """The merges of one round, of parts of blocks `up_to` this one: those of different runs, which do not get in each other's way."""
    state = table_state(snapshot, table)
    planned = []
    there = [part for part in snapshot.parts(table.id) if part.block_range.last <= up_to]
    for one, parts in by_partition(there).items():
        if partition_id is not None and one != partition_id:
            continue
        for run in runs(state, parts):
            merges = choose_all(run, limits)
            if final and len(merges) > 1:
                raise MemoryLimitExceeded(
                    f"OPTIMIZE … FINAL of {table.database}.{table.name}, partition {one}, needs"
                    f" more than {limits.memory_bytes_max:,} bytes of rows in memory.",
                    hint="Run it without FINAL, or partition more finely.",
                )
            planned += [m for m in merges if len(m) > 1 or (final and _is_raw(table, m[0]))]
    return planned


def _batches(planned: Sequence[list[Part]]) -> Iterator[list[list[Part]]]:
    """Yield the merges of one commit each: as many as are small together, so that what a conflict
    or a failure costs is bounded."""
    batch: list[list[Part]] = []
    held = 0
    for parts in planned:
        size = sum(sum(part.uncompressed_bytes.values()) for part in parts)
        if batch and (len(batch) == BATCH_MERGES_MAX or held + size > BATCH_BYTES_MAX):
            yield batch
            batch, held = [], 0
        batch.append(parts)
        held += size
    if batch:
        yield batch


def _is_raw(table: Table, part: Part) -> bool:
    """Whether rewriting a single part changes something."""
    if part.rows == 0:
        return False
    old = part.schema_version < settled_version(table)
    return old or part.inline or (table.engine.combines and part.level == 0)
