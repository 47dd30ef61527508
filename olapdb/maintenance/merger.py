"""Merges chosen parts: read, sort, combine, write, and one commit.

The commit requires that the parts are still live and still of one coverage (rule 8), so a merge
never undoes what happened meanwhile; it just did not take place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pyarrow as pa

from olapdb.commit.transaction import Transaction
from olapdb.engine.column_defaults import DefaultColumns, read_filled
from olapdb.engine.combine import combine
from olapdb.engine.layout import TableLayout, shared_layout
from olapdb.errors import CommitConflict, InternalError, QueryWasCancelled
from olapdb.functions.base import Environment
from olapdb.maintenance.merge_policy import TableState, hull
from olapdb.model.changes import (
    AddPart,
    Change,
    Commit,
    CoverageCommon,
    PartsLive,
    RemoveParts,
    Requirement,
    SchemaIs,
)
from olapdb.model.part import Contribution, Part, union_ranges
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.activity import RunningMerge
from olapdb.runtime.failpoints import failpoint
from olapdb.runtime.services import Services
from olapdb.storage.reader import PartReader
from olapdb.storage.writer import StagedPart
from olapdb.threads import ThreadPool

BATCH_ATTEMPTS_MAX = 5
THREADED_MERGES_MIN = 8
FLUSHING_THREADS = 8


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
    (done,) = merge_batch(
        services,
        snapshot,
        table,
        [parts],
        inline=inline,
        kind=kind,
        query_id=query_id,
        statement=statement,
        layout=layout,
        threads=threads,
    )
    return done


def merge_batch(
    services: Services,
    snapshot: Snapshot,
    table: Table,
    merges: Sequence[Sequence[Part]],
    *,
    inline: bool = True,
    kind: str = "MERGE",
    query_id: str = "",
    statement: str = "",
    layout: TableLayout | None = None,
    threads: int = 0,
    cancelled: threading.Event | None = None,
) -> list[MergeResult]:
    """Make several merges of a table in one commit; each as `merge_parts` does.

    Raises QueryWasCancelled before the next of them where `cancelled` is set; nothing of the batch is
    committed then.  Where some of the merges lost a race, the commit has the others, and these are returned.  Raises
    CommitConflict, with nothing changed, where all of them did."""
    layout = layout or shared_layout(table, services.cache, services.zone)

    def stage(parts: Sequence[Part]) -> _Piece:
        if cancelled is not None and cancelled.is_set():
            raise QueryWasCancelled("OPTIMIZE was cancelled; what was merged stays merged.")
        return _stage_piece(services, transaction, snapshot, layout, parts, inline, threads)

    with (
        ExitStack() as running,
        Transaction(
            services, attempts_max=1 if len(merges) == 1 else BATCH_ATTEMPTS_MAX
        ) as transaction,
    ):
        for parts in merges:
            running.enter_context(services.activity.merging(_shown(table, parts)))
        pieces = _staged_pieces(stage, merges)
        batch = _Batch(services, transaction, table, pieces)
        committed = transaction.commit(lambda newest: batch.commit(kind, query_id, statement))
    failpoint("merge.committed")
    return [piece.result(table, committed.number) for piece in batch.pieces]


def _shown(table: Table, parts: Sequence[Part]) -> RunningMerge:
    partition_id = parts[0].partition_id
    if any(p.partition_id != partition_id for p in parts):
        raise InternalError("A merge of several partitions.")
    return RunningMerge(
        table.id,
        partition_id,
        tuple(p.name for p in parts),
        sum(p.rows for p in parts),
        sum(p.bytes for p in parts),
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    """A merge that is staged: `parts` in the order of their blocks, `staged` None where nothing is
    left of them."""

    table_id: str
    parts: tuple[Part, ...]
    staged: StagedPart | None

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(part.id for part in self.parts)

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        return (PartsLive(self.table_id, self.ids), CoverageCommon(self.table_id, self.ids))

    @property
    def changes(self) -> tuple[Change, ...]:
        removed = RemoveParts(self.table_id, self.ids)
        if self.staged is None:
            return (removed,)
        return (removed, AddPart(self.staged.part, self.staged.inline_rows))

    def result(self, table: Table, commit: int) -> MergeResult:
        part = self.staged.part if self.staged is not None else None
        return MergeResult(table.id, self.parts[0].partition_id, self.parts, part, commit)


class _Batch:
    """The commit of several merges: after a conflict, of those that have not lost the race."""

    def __init__(
        self, services: Services, transaction: Transaction, table: Table, pieces: list[_Piece]
    ) -> None:
        self._services, self._transaction, self._table = services, transaction, table
        self._again = False
        self.pieces = pieces

    def commit(self, kind: str, query_id: str, statement: str) -> Commit:
        """Return the commit; called again, that of the merges whose requirements still hold."""
        schema = SchemaIs(self._table.id, self._table.version)
        if self._again:
            self._leave_out_lost(schema)
        self._again = True
        return Commit(
            (self._transaction.lease, schema, *(r for p in self.pieces for r in p.requirements)),
            tuple(change for piece in self.pieces for change in piece.changes),
            kind,
            query_id,
            statement,
        )

    def _leave_out_lost(self, schema: SchemaIs) -> None:
        wanted = [schema, *(r for piece in self.pieces for r in piece.requirements)]
        violated = set(self._services.catalog.violated(wanted))
        kept: list[_Piece] = []
        for piece in self.pieces:
            if schema not in violated and violated.isdisjoint(piece.requirements):
                kept.append(piece)
            elif piece.staged is not None:
                # The commit that named the file has surely not happened: it conflicted.
                self._transaction.drop(piece.staged)
        self.pieces = kept
        if not kept:
            raise CommitConflict(
                "Others changed the parts of all these merges.", hint="Nothing was changed."
            )


def _stage_piece(
    services: Services,
    transaction: Transaction,
    snapshot: Snapshot,
    layout: TableLayout,
    parts: Sequence[Part],
    inline: bool,
    threads: int,
) -> _Piece:
    failpoint("merge.started")
    ordered = tuple(sorted(parts, key=lambda p: (p.block_range.first, p.block_range.last)))
    rows = _merged_rows(services, snapshot, layout, ordered, threads)
    failpoint("merge.read")
    staged = _stage(transaction, layout, ordered, rows, inline, threads)
    return _Piece(layout.table.id, ordered, staged)


def _staged_pieces(
    stage: Callable[[Sequence[Part]], _Piece], merges: Sequence[Sequence[Part]]
) -> list[_Piece]:
    """Stage the merges; many small ones at once, as each waits for its file to be flushed."""
    if len(merges) < THREADED_MERGES_MIN:
        return [stage(parts) for parts in merges]
    with ThreadPool(FLUSHING_THREADS, "olapdb-merge") as pool:
        futures = [pool.submit(stage, parts) for parts in merges]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(cancel_futures=True)  # those under way are waited for
            raise


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


def _merged_rows(
    services: Services, snapshot: Snapshot, layout: TableLayout, parts: Sequence[Part], threads: int
) -> pa.Table:
    """All rows in the order of the sorting key, equal keys in the order of their blocks, combined
    where the engine does."""
    table, environment = layout.table, services.environment()
    pieces = [
        _read(services, snapshot, layout, part, environment, threads) for part in parts if part.rows
    ]
    if not pieces:
        return _stored_schema(table).empty_table()
    rows = layout.sort(pa.concat_tables(pieces))
    before = rows.num_rows
    merged = combine(table, rows, layout) if table.engine.combines else rows
    if not table.engine.combines and merged.num_rows != sum(p.rows for p in parts):
        raise InternalError(f"A merge of {before} rows of {table.name} left {merged.num_rows}.")
    return merged


def _read(
    services: Services,
    snapshot: Snapshot,
    layout: TableLayout,
    part: Part,
    environment: Environment,
    threads: int,
) -> pa.Table:
    """The part's rows as the table is now: what it was too old to hold is written down."""
    table = layout.table
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
    transaction: Transaction,
    layout: TableLayout,
    parts: Sequence[Part],
    rows: pa.Table,
    inline: bool,
    threads: int,
) -> StagedPart | None:
    table = layout.table
    contributions = joined_contributions(parts)
    if rows.num_rows == 0 and not contributions:
        return None
    with_rows = next((p for p in parts if p.rows), parts[0])
    limit = int(table.setting("inline_bytes_max"))
    return transaction.stage(
        table,
        rows,
        partition_id=with_rows.partition_id,
        partition_value=with_rows.partition_value,
        blocks=hull(parts),
        contributions=contributions,
        level=max(p.level for p in parts) + 1,
        inline_bytes_max=limit if inline and all(p.inline or not p.rows for p in parts) else 0,
        replaces=[part.id for part in parts],
        index_values=layout.index_values(rows),
        threads=threads,
    )
