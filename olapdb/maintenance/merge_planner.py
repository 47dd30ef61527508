"""Choose when to merge what: background merges of a table, OPTIMIZE, and TTL … RECOMPRESS.

Merges of many partitions share a commit while they are small together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from olapdb.commit.origin import CommitOrigin
from olapdb.engine.layout import shared_layout
from olapdb.errors import CommitConflict, MemoryLimitExceeded, UnknownTable
from olapdb.maintenance.merge_policy import (
    MergeLimits,
    by_partition,
    choose,
    choose_all,
    choose_inline,
    mergeable_runs,
)
from olapdb.maintenance.merger import MergeResult, merge_batch, read_part, table_state
from olapdb.maintenance.recompression import Recompression
from olapdb.model.columns import settled_version
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.services import Services

ROUNDS_MAX = 100
"""Rounds of planning after which OPTIMIZE gives up, if concurrent commits keep changing the
parts."""
BATCH_MERGES_MAX = 200
BATCH_BYTES_MAX = 64 << 20
"""Uncompressed input bytes of the merges of one commit; a larger merge has its own commit."""
BACKGROUND_THREADS = 1
"""Threads of a background merge: the other cores are for INSERTs and queries."""


def merge_worthwhile(
    services: Services,
    table_id: str,
    limits: MergeLimits | None = None,
    wanted: Callable[[], bool] = lambda: True,
) -> list[MergeResult]:
    """Merge the table's most worthwhile parts, at most one merge for each partition, in one commit
    of bounded size; return [] if no merge is worthwhile.

    Raises CommitConflict as `merge_batch` does. If `wanted` returns False before the parts are
    read, nothing is merged.
    """
    with services.catalog.pinned() as snapshot:
        table = snapshot.by_id(table_id)
        if not isinstance(table, Table) or not table.engine.stores_rows or table.is_bounded:
            return []  # a bounded table loses its blocks one by one
        chosen = _worthwhile_merges(services, snapshot, table, limits or limits_of(table))
        first = next(chosen, None)
        if first is None or not wanted():
            return []
        inline = first[1]
        alike = [first[0], *(parts for parts, place in chosen if place == inline)]
        return merge_batch(
            CommitOrigin(services, "MERGE", settings={"max_threads": BACKGROUND_THREADS}),
            snapshot,
            table,
            next(_batches(alike)),
            inline=inline,
        )


def _worthwhile_merges(
    services: Services, snapshot: Snapshot, table: Table, limits: MergeLimits
) -> Iterator[tuple[list[Part], bool]]:
    """Yield the worthwhile merges, at most one of a partition, and whether the result may stay
    inline."""
    state, now_ms = table_state(snapshot, table), services.clock_ms()
    for parts in by_partition(snapshot.parts(table.id)).values():
        for run in mergeable_runs(state, parts):
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
    """Implement OPTIMIZE TABLE [PARTITION] [FINAL]: merge until each run of mergeable parts, of
    those that existed at the start, is one part.

    `final` also rewrites a single part that was never combined, or lies in the catalog.  Parts that
    differ in coverage, origin (bypass) or sides of a fence stay apart.  Raises MemoryLimitExceeded
    if `final` cannot make one part within the limits, CommitConflict if concurrent commits keep
    changing the parts, QueryWasCancelled before the next merge.
    """

    def plan(snapshot: Snapshot, table: Table, up_to: int) -> list[list[Part]]:
        """Return the merges of one round, of parts with blocks up to `up_to`; [] ends the rounds."""
        return _plan(snapshot, table, partition_id, final, limits or limits_of(table), up_to)

    return _merge_in_rounds(origin, table_id, plan)


def recompress(
    origin: CommitOrigin, table_id: str, *, partition_id: str | None = None
) -> list[MergeResult]:
    """Write the parts that existed at the start again with the codec that the table's TTL …
    RECOMPRESS has for them now, each by a merge of its own; leave those that have it.

    Raises CommitConflict if concurrent commits keep changing the parts, QueryWasCancelled before
    the next merge.
    """
    services = origin.services

    def plan(snapshot: Snapshot, table: Table, up_to: int) -> list[list[Part]]:
        """Return the parts with blocks up to `up_to` that need another codec, each as a merge of
        its own; [] ends the rounds."""
        rules = Recompression.of(table, services)
        layout = shared_layout(table, services.cache, services.zone)
        environment = services.environment()

        def read(part: Part) -> pa.Table:
            """Return the columns of the part that the rules read."""
            return read_part(origin, snapshot, layout, part, environment, rules.columns)

        return [
            [part]
            for part in snapshot.parts(table.id)
            if part.block_range.last <= up_to
            and partition_id in (None, part.partition_id)
            and rules.wants(part, read)
        ]

    return _merge_in_rounds(origin, table_id, plan)


def _merge_in_rounds(
    origin: CommitOrigin, table_id: str, plan: Callable[[Snapshot, Table, int], list[list[Part]]]
) -> list[MergeResult]:
    """Execute what `plan` returns for the newest snapshot and the last block of the first one, until
    it returns nothing.

    Raises CommitConflict if concurrent commits keep changing the parts.
    Also raises UnknownTable.
    """
    results: list[MergeResult] = []
    up_to: int | None = None
    # Not a retry of one commit: each round executes the merges that earlier rounds made possible.
    for _ in range(ROUNDS_MAX):
        with origin.services.catalog.pinned() as snapshot:
            table = snapshot.by_id(table_id)
            if not isinstance(table, Table):
                raise UnknownTable("The table does not exist any more.")
            if not table.engine.is_merge_tree:
                return results
            up_to = snapshot.next_block(table) - 1 if up_to is None else up_to
            planned = plan(snapshot, table, up_to)
            if not planned:
                return results
            try:
                for batch in _batches(planned):
                    results += merge_batch(origin, snapshot, table, batch, inline=False)
            except CommitConflict:
                continue  # a merge or an INSERT committed meanwhile: plan again
    raise CommitConflict(
        f"The parts of the table changed {ROUNDS_MAX} times during OPTIMIZE.",
        hint="What was merged stays merged; SYSTEM STOP MERGES, then run it again.",
    )


def limits_of(table: Table) -> MergeLimits:
    """Return the table's limits of a background merge."""
    return MergeLimits(bytes_max=int(table.setting("max_bytes_to_merge")))


def _plan(
    snapshot: Snapshot,
    table: Table,
    partition_id: str | None,
    final: bool,
    limits: MergeLimits,
    up_to: int,
) -> list[list[Part]]:
    """Return the merges of one round, of parts with blocks up to `up_to`.

    Merges of different runs are independent. `final` adds single parts that a rewrite changes. It
    raises MemoryLimitExceeded if a run does not fit one merge.
    """
    state = table_state(snapshot, table)
    planned = []
    parts_up_to = [part for part in snapshot.parts(table.id) if part.block_range.last <= up_to]
    for partition, parts in by_partition(parts_up_to).items():
        if partition_id is not None and partition != partition_id:
            continue
        for run in mergeable_runs(state, parts):
            merges = choose_all(run, limits)
            if final and len(merges) > 1:
                raise MemoryLimitExceeded(
                    f"OPTIMIZE … FINAL of {table.database}.{table.name}, partition {partition}, needs"
                    f" more than {limits.memory_bytes_max:,} bytes of rows in memory.",
                    hint="Run it without FINAL, or partition more finely.",
                )
            planned += [m for m in merges if len(m) > 1 or (final and _needs_rewrite(table, m[0]))]
    return planned


def _batches(planned: Sequence[list[Part]]) -> Iterator[list[list[Part]]]:
    """Yield the merges of each commit: as many as are small together, so that a conflict or a
    failure costs little."""
    batch: list[list[Part]] = []
    batch_bytes = 0
    for parts in planned:
        size = sum(sum(part.uncompressed_bytes.values()) for part in parts)
        if batch and (len(batch) == BATCH_MERGES_MAX or batch_bytes + size > BATCH_BYTES_MAX):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(parts)
        batch_bytes += size
    if batch:
        yield batch


def _needs_rewrite(table: Table, part: Part) -> bool:
    """Return whether rewriting the single part changes anything.

    It does if the part has rows and is of an older schema, in the catalog, or was never combined.
    """
    if part.rows == 0:
        return False
    old = part.schema_version < settled_version(table)
    return old or part.inline or (table.engine.combines and part.level == 0)
