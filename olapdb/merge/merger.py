"""Merges chosen parts: read, sort, combine, write, and one commit.

The commit requires that the parts are still live and still of one coverage (rule 8), so a merge
never undoes what happened meanwhile; it just did not take place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from olapdb.errors import (
    CommitConflict,
    InternalError,
    MemoryLimitExceeded,
    QueryWasCancelled,
    UnknownTable,
)
from olapdb.execute.combine import combine
from olapdb.execute.defaults import DefaultColumns, read_filled
from olapdb.execute.layout import TableLayout
from olapdb.functions.base import Environment
from olapdb.merge.policy import (
    MergeLimits,
    TableState,
    by_partition,
    choose,
    choose_all,
    choose_inline,
    hull,
    runs,
)
from olapdb.model.changes import (
    AddPart,
    Change,
    Commit,
    CoverageCommon,
    PartsLive,
    RemoveParts,
    SchemaIs,
)
from olapdb.model.columns import settled_version
from olapdb.model.part import Contribution, Part, union_ranges
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.storage.reader import PartReader
from olapdb.storage.writer import StagedPart
from olapdb.transaction.activity import RunningMerge
from olapdb.transaction.points import reach
from olapdb.transaction.services import Services
from olapdb.transaction.transaction import Transaction

ROUNDS_MAX = 100
"""Plans that OPTIMIZE makes before it gives up against merges and INSERTs that are faster."""
MERGED_INLINE_BYTES_MAX = 262_144
BACKGROUND_THREADS = 1
"""Of a merge that nobody asked for: the other cores are for INSERTs and queries."""


@dataclass(frozen=True, slots=True)
class MergeResult:
    """`part` None: nothing was left of the rows, and nothing had to be remembered."""

    table_id: str
    partition_id: str
    merged: tuple[Part, ...]
    part: Part | None
    commit: int


def table_state(
    snapshot: Snapshot, table: Table, fences: dict[str | None, tuple[int, ...]] | None = None
) -> TableState:
    """What the policy must know of a table at a snapshot."""
    return TableState(
        table,
        tuple(snapshot.coverage(view.id) for view in snapshot.views_on(table.id)),
        frozenset(view.id for view in snapshot.views_into(table.id)),
        fences or {},
    )


def merge_parts(
    services: Services,
    snapshot: Snapshot,
    table: Table,
    parts: Sequence[Part],
    *,
    inline: bool = True,
    kind: str = "MERGE",
    query_id: str = "",
    statement: str = "",
    layout: TableLayout | None = None,
    threads: int = 0,
) -> MergeResult:
    """Replaces parts of one partition, which `policy.runs` allows to merge, by one.

    `inline` False makes a file of it, however small; `threads` 0: on all cores.  Raises CommitConflict, with nothing
    changed, where a part or its coverage changed meanwhile.
    """
    partition_id = parts[0].partition_id
    if any(p.partition_id != partition_id for p in parts):
        raise InternalError("A merge of several partitions.")
    running = RunningMerge(
        table.id, partition_id, tuple(p.name for p in parts), sum(p.rows for p in parts),
        sum(p.bytes for p in parts),
    )  # fmt: skip
    with services.activity.merging(running):
        return _merge(
            services, snapshot, table, parts, inline, kind, query_id, statement,
            layout or layout_of(services, table), threads,
        )  # fmt: skip


def _merge(
    services: Services, snapshot: Snapshot, table: Table, parts: Sequence[Part], inline: bool,
    kind: str, query_id: str, statement: str, layout: TableLayout, threads: int,
) -> MergeResult:  # fmt: skip
    reach("merge.started")
    ordered = sorted(parts, key=lambda p: (p.block_range.first, p.block_range.last))
    rows = _merged_rows(services, snapshot, layout, ordered, threads)
    reach("merge.read")
    ids = tuple(part.id for part in ordered)
    with Transaction(services, attempts_max=1) as transaction:
        staged = _stage(transaction, layout, ordered, rows, inline, threads)
        changes: list[Change] = [RemoveParts(table.id, ids)]
        if staged is not None:
            changes.append(AddPart(staged.part, staged.inline_rows))
        commit = Commit(
            (
                transaction.lease,
                SchemaIs(table.id, table.version),
                PartsLive(table.id, ids),
                CoverageCommon(table.id, ids),
            ),
            tuple(changes),
            kind,
            query_id,
            statement,
        )
        committed = transaction.commit(lambda newest: commit)
    reach("merge.committed")
    part = staged.part if staged is not None else None
    return MergeResult(table.id, ordered[0].partition_id, tuple(ordered), part, committed.number)


def merge_some(
    services: Services,
    table_id: str,
    limits: MergeLimits | None = None,
    wanted: Callable[[], bool] = lambda: True,
) -> MergeResult | None:
    """The one background merge of a table that is worth most now, None where there is none.

    Raises CommitConflict as `merge_parts` does. `wanted` is asked before anything is read.
    """
    with services.catalog.pinned() as snapshot:
        table = snapshot.by_id(table_id)
        if not isinstance(table, Table) or not table.engine.stores_rows:
            return None
        limits = limits or limits_of(table)
        state, now_ms = table_state(snapshot, table), services.clock_ms()
        for parts in by_partition(snapshot.parts(table_id)).values():
            for run in runs(state, parts):
                flushed = choose_inline(run, limits, now_ms)
                chosen = flushed or choose(run, limits, now_ms, len(parts))
                if chosen and wanted():
                    return merge_parts(
                        services, snapshot, table, chosen, inline=not flushed,
                        threads=BACKGROUND_THREADS,
                    )  # fmt: skip
    return None


def optimize(
    services: Services,
    table_id: str,
    *,
    partition_id: str | None = None,
    final: bool = False,
    query_id: str = "",
    statement: str = "",
    limits: MergeLimits | None = None,
    cancelled: threading.Event | None = None,
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
    for _ in range(ROUNDS_MAX):
        with services.catalog.pinned() as snapshot:
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
                for parts in planned:
                    if cancelled is not None and cancelled.is_set():
                        raise QueryWasCancelled(
                            "OPTIMIZE was cancelled; what was merged stays merged."
                        )
                    done = merge_parts(
                        services, snapshot, table, parts, inline=False, kind="OPTIMIZE",
                        query_id=query_id, statement=statement,
                    )  # fmt: skip
                    results.append(done)
            except CommitConflict:
                continue  # a merge or an INSERT's commit came between: plan anew
    raise CommitConflict(
        f"The parts of the table changed {ROUNDS_MAX} times during OPTIMIZE.",
        hint="What was merged stays merged; SYSTEM STOP MERGES, then run it again.",
    )


def limits_of(table: Table) -> MergeLimits:
    limits = MergeLimits()
    return replace(limits, bytes_max=int(table.setting("max_bytes_to_merge", limits.bytes_max)))


def layout_of(services: Services, table: Table) -> TableLayout:
    """The table's keys, bound once for each version."""
    key = ("merge layout", table.id, table.version)
    environment = Environment(zone=services.zone)
    return services.cache.get_or_make(key, lambda: TableLayout(table, environment))


def joined_contributions(parts: Sequence[Part]) -> tuple[Contribution, ...]:
    """One for each (view, version, source, source partition): ranges joined, counts added."""
    grouped: dict[tuple[str, int, str, str | None], list[Contribution]] = {}
    for part in parts:
        for one in part.contributions:
            key = (one.view_id, one.view_version, one.source_id, one.source_partition)
            grouped.setdefault(key, []).append(one)
    return tuple(
        replace(
            some[0],
            blocks=union_ranges(b for one in some for b in one.blocks),  # type: ignore[misc]
            rows=sum(one.rows for one in some),
        )
        for some in grouped.values()
    )


def _plan(
    snapshot: Snapshot, table: Table, partition_id: str | None, final: bool, limits: MergeLimits,
    up_to: int,
) -> list[list[Part]]:  # fmt: skip
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


def _is_raw(table: Table, part: Part) -> bool:
    """Whether rewriting a single part changes something."""
    if part.rows == 0:
        return False
    old = part.schema_version < settled_version(table)
    return old or part.inline or (table.engine.combines and part.level == 0)


def _merged_rows(
    services: Services, snapshot: Snapshot, layout: TableLayout, parts: Sequence[Part],
    threads: int,
) -> pa.Table:  # fmt: skip
    """All rows in the order of the sorting key, equal keys in the order of their blocks, combined
    where the engine does."""
    table = layout.table
    pieces = [_read(services, snapshot, layout, part, threads) for part in parts if part.rows]
    if not pieces:
        return _stored_schema(table).empty_table()
    rows = layout.sort(pa.concat_tables(pieces))
    before = rows.num_rows
    merged = combine(table, rows, layout) if table.engine.combines else rows
    if not table.engine.combines and merged.num_rows != sum(p.rows for p in parts):
        raise InternalError(f"A merge of {before} rows of {table.name} left {merged.num_rows}.")
    return merged


def _read(
    services: Services, snapshot: Snapshot, layout: TableLayout, part: Part, threads: int
) -> pa.Table:
    """The part's rows as the table is now: what it was too old to hold is written down."""
    table, environment = layout.table, Environment(zone=services.zone)
    names = [c.name for c in table.stored_columns]
    reader = PartReader(services.store, snapshot, part, table, environment)

    def defaults() -> DefaultColumns:
        return DefaultColumns.of(table, snapshot, environment, services.cache)

    found = read_filled(
        reader, table, names, None, part.rows, defaults, environment, use_threads=threads != 1
    )
    return pa.table([found[name] for name in names], names=names)


def _stored_schema(table: Table) -> pa.Schema:
    return pa.schema([(c.name, c.type.arrow) for c in table.stored_columns])


def _stage(
    transaction: Transaction, layout: TableLayout, parts: Sequence[Part], rows: pa.Table,
    inline: bool, threads: int,
) -> StagedPart | None:  # fmt: skip
    table = layout.table
    contributions = joined_contributions(parts)
    if rows.num_rows == 0 and not contributions:
        return None
    with_rows = next((p for p in parts if p.rows), parts[0])
    limit = int(table.setting("inline_bytes_max", MERGED_INLINE_BYTES_MAX))
    return transaction.stage(
        table, rows, partition_id=with_rows.partition_id,
        partition_value=with_rows.partition_value, blocks=hull(parts),
        contributions=contributions, level=max(p.level for p in parts) + 1,
        inline_bytes_max=limit if inline and all(p.inline or not p.rows for p in parts) else 0,
        replaces=[part.id for part in parts], index_values=layout.index_values(rows), threads=threads,
    )  # fmt: skip
