"""Execute merges: read the parts, sort, combine, write, and commit once.

The commit requires that the parts are still live and have one coverage (rule 8), so a merge never
undoes a concurrent change; it simply does not happen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace

import pyarrow as pa

from olapdb.commit.draft import CommitDraft
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import RetryPolicy, retry_commit
from olapdb.commit.staging import Staging
from olapdb.config import tuning
from olapdb.engine.column_defaults import DefaultColumns, RowGroups, read_filled
from olapdb.engine.combine import combine
from olapdb.engine.layout import TableLayout, shared_layout
from olapdb.errors import CommitConflict, InternalError, QueryWasCancelled
from olapdb.functions.base import Environment
from olapdb.maintenance.merge_policy import TableState, enclosing_range
from olapdb.maintenance.recompression import Recompression
from olapdb.model.changes import AddPart, Change, Committed, RemoveParts
from olapdb.model.part import Contribution, Part, union_ranges
from olapdb.model.requirements import CoverageCommon, PartsLive, Requirement, SchemaIs
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.activity import RunningMerge
from olapdb.runtime.failpoints import failpoint
from olapdb.storage.part_plan import PartPlan, inline_limit
from olapdb.storage.reader import PartReader
from olapdb.threads import ThreadPool

BATCH_ATTEMPTS_MAX = 5
FLUSHING_THREADS = 8


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The result of one merge. `part` None: no rows and no contributions were left."""

    table_id: str
    partition_id: str
    merged: tuple[Part, ...]
    part: Part | None
    commit: int


def table_state(
    snapshot: Snapshot, table: Table, fences: dict[str | None, tuple[int, ...]] | None = None
) -> TableState:
    """Return the facts about a table that the merge policy needs.

    `fences` are block numbers by partition id (None: all partitions) that no merge may cross.
    """
    return TableState(
        table,
        tuple(snapshot.coverage(view.id) for view in snapshot.views_on(table.id)),
        frozenset(view.id for view in snapshot.views_into(table.id)),
        fences or {},
    )


def merge_parts(
    origin: CommitOrigin,
    snapshot: Snapshot,
    table: Table,
    parts: Sequence[Part],
    *,
    inline: bool = True,
    layout: TableLayout | None = None,
) -> MergeResult:
    """Replace parts of one partition, which `merge_policy.mergeable_runs` allows to merge, by one
    part.

    `inline` False writes a file, however small.  Raises CommitConflict, with nothing changed, if a
    concurrent commit changed a part or its coverage.
    """
    (done,) = merge_batch(origin, snapshot, table, [parts], inline=inline, layout=layout)
    return done


def rehearse_merge(
    origin: CommitOrigin, snapshot: Snapshot, table: Table, parts: Sequence[Part]
) -> int:
    """Merge parts of one partition in memory and discard the result; return the number of rows that
    the merged part would have."""
    layout = shared_layout(table, origin.services.cache, origin.services.zone)
    ordered = tuple(sorted(parts, key=lambda p: (p.block_range.first, p.block_range.last)))
    return int(_merged_rows(origin, snapshot, layout, ordered).num_rows)


def merge_batch(
    origin: CommitOrigin,
    snapshot: Snapshot,
    table: Table,
    merges: Sequence[Sequence[Part]],
    *,
    inline: bool = True,
    layout: TableLayout | None = None,
) -> list[MergeResult]:
    """Make several merges of a table in one commit, each as `merge_parts` does; return their
    results.

    Raises QueryWasCancelled between two merges if the origin is cancelled, with nothing committed.
    If concurrent commits changed the parts of some merges, commits and returns the others.  Raises
    CommitConflict, with nothing changed, if they changed the parts of all.
    """
    services = origin.services
    layout = layout or shared_layout(table, services.cache, services.zone)
    codecs = Recompression.of(table, services)

    def stage(parts: Sequence[Part]) -> _Piece:
        """Read, merge and stage the parts of one merge.

        Raise QueryWasCancelled if OPTIMIZE was cancelled.
        """
        if origin.cancelled.is_set():
            raise QueryWasCancelled("OPTIMIZE was cancelled; what was merged stays merged.")
        failpoint("merge.started")
        ordered = tuple(sorted(parts, key=lambda p: (p.block_range.first, p.block_range.last)))
        rows = _merged_rows(origin, snapshot, layout, ordered)
        failpoint("merge.read")
        staged = _stage(staging, layout, ordered, rows, inline, codecs.codec_of(rows))
        return _Piece(table.id, ordered, staged)

    # Nothing is computed again, so no attempt needs the turn: a batch only drops the lost merges.
    policy = RetryPolicy(
        origin.kind, attempts_max=1 if len(merges) == 1 else BATCH_ATTEMPTS_MAX, fair=False
    )
    with ExitStack() as running, Staging(origin) as staging:
        for parts in merges:
            running.enter_context(services.activity.merging(_running_merge(table, parts)))
        batch = _Batch(origin, staging, table, _staged_pieces(stage, merges))
        committed = retry_commit(services, batch.commit, policy)
    failpoint("merge.committed")
    # Only queries that began before the merge would read them. Their memory is soon needed for others.
    for part in (part for piece in batch.pieces for part in piece.parts if part.path):
        services.store.cache.forget_columns(part.path)
    return [piece.result(table, committed.number) for piece in batch.pieces]


def _running_merge(table: Table, parts: Sequence[Part]) -> RunningMerge:
    """Return the entry of system.merges for these parts of one partition."""
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
    """A staged merge: `parts` in the order of their blocks, `staged` None if nothing is left of
    them."""

    table_id: str
    parts: tuple[Part, ...]
    staged: AddPart | None

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of the parts to merge."""
        return tuple(part.id for part in self.parts)

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """Return the requirements that the parts are live and have one coverage."""
        return (PartsLive(self.table_id, self.ids), CoverageCommon(self.table_id, self.ids))

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return the changes that replace the parts by the staged one."""
        removed = RemoveParts(self.table_id, self.ids)
        if self.staged is None:
            return (removed,)
        return (removed, self.staged)

    def result(self, table: Table, commit: int) -> MergeResult:
        """Return the merge's result after the commit of this number."""
        part = self.staged.part if self.staged is not None else None
        return MergeResult(table.id, self.parts[0].partition_id, self.parts, part, commit)


class _Batch:
    """The commit of several merges; after a conflict, of those whose parts are unchanged."""

    def __init__(
        self, origin: CommitOrigin, staging: Staging, table: Table, pieces: list[_Piece]
    ) -> None:
        self._origin, self._staging, self._table = origin, staging, table
        self._again = False
        self.pieces = pieces

    def commit(self, newest: Snapshot) -> Committed:
        """Commit the merges. A second call commits only those whose requirements still hold.

        The second call raises CommitConflict if none remains.
        """
        schema = SchemaIs(self._table.id, self._table.version)
        if self._again:
            self._drop_violated(schema)
        self._again = True
        draft = CommitDraft((self._origin.lease, schema))
        for piece in self.pieces:
            draft.require(*piece.requirements)
            draft.change(*piece.changes)
        failpoint("transaction.before_commit")
        committed = self._staging.publish(draft, notify=False)
        failpoint("transaction.committed")
        return committed

    def _drop_violated(self, schema: SchemaIs) -> None:
        """Drop the merges whose requirements are violated, and their files.

        Raises CommitConflict if none remains.
        """
        requirements = [schema, *(r for piece in self.pieces for r in piece.requirements)]
        violated = set(self._origin.services.catalog.violated(requirements))
        remaining: list[_Piece] = []
        for piece in self.pieces:
            if schema not in violated and violated.isdisjoint(piece.requirements):
                remaining.append(piece)
            elif piece.staged is not None:
                # The commit that named the file certainly did not happen: it conflicted.
                self._staging.drop(piece.staged)
        self.pieces = remaining
        if not remaining:
            raise CommitConflict(
                "Others changed the parts of all these merges.", hint="Nothing was changed."
            )


def _staged_pieces(
    stage: Callable[[Sequence[Part]], _Piece], merges: Sequence[Sequence[Part]]
) -> list[_Piece]:
    """Stage the merges; many small ones concurrently, because each waits for its file to be
    flushed."""
    if len(merges) < tuning.THREADED_MERGES_MIN:
        return [stage(parts) for parts in merges]
    with ThreadPool(FLUSHING_THREADS, "olapdb-merge") as pool:
        futures = [pool.submit(stage, parts) for parts in merges]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(cancel_futures=True)  # waits for the running ones
            raise


def joined_contributions(parts: Sequence[Part]) -> tuple[Contribution, ...]:
    """Return one contribution for each (view, version, source, source partition): ranges joined,
    counts added."""
    grouped: dict[tuple[str, int, str, str | None], list[Contribution]] = {}
    for part in parts:
        for contribution in part.contributions:
            key = (
                contribution.view_id,
                contribution.view_version,
                contribution.source_id,
                contribution.source_partition,
            )
            grouped.setdefault(key, []).append(contribution)
    return tuple(
        replace(
            group[0],
            blocks=union_ranges(b for contribution in group for b in contribution.blocks),  # type: ignore[misc]
            rows=sum(contribution.rows for contribution in group),
        )
        for group in grouped.values()
    )


def _merged_rows(
    origin: CommitOrigin, snapshot: Snapshot, layout: TableLayout, parts: Sequence[Part]
) -> pa.Table:
    """Return all rows in the order of the sorting key, equal keys in the order of their blocks,
    combined if the engine combines."""
    table, environment = layout.table, origin.services.environment()
    tables = [read_part(origin, snapshot, layout, part, environment) for part in parts if part.rows]
    if not tables:
        return _stored_schema(table).empty_table()
    rows = layout.sort(pa.concat_tables(tables), origin.threads)
    before = rows.num_rows
    merged = combine(table, rows, layout) if table.engine.combines else rows
    if not table.engine.combines and merged.num_rows != sum(p.rows for p in parts):
        raise InternalError(f"A merge of {before} rows of {table.name} left {merged.num_rows}.")
    return merged


def read_part(
    origin: CommitOrigin,
    snapshot: Snapshot,
    layout: TableLayout,
    part: Part,
    environment: Environment,
    columns: Collection[str] | None = None,
) -> pa.Table:
    """Return the part's rows in the table's present schema, of these columns (None: all).

    Columns that the part lacks have their defaults, of which now() is the environment's.
    """
    services, table = origin.services, layout.table
    names = [c.name for c in table.stored_columns if columns is None or c.name in columns]
    reader = PartReader(services.store, snapshot, part, table, environment, caches=False)

    def defaults() -> DefaultColumns:
        """Bind the table's default columns, for parts that lack a column."""
        return DefaultColumns.of(table, snapshot, environment, services.cache)

    columns = read_filled(
        RowGroups(reader, None, part.rows),
        table,
        names,
        defaults,
        environment,
        use_threads=origin.threads != 1,
    )
    return pa.table([columns[name] for name in names], names=names)


def _stored_schema(table: Table) -> pa.Schema:
    """Return the Arrow schema of the table's stored columns."""
    return pa.schema([(c.name, c.type.arrow) for c in table.stored_columns])


def _stage(
    staging: Staging,
    layout: TableLayout,
    parts: Sequence[Part],
    rows: pa.Table,
    inline: bool,
    codec: str,
) -> AddPart | None:
    """Stage the merged part; None if it would have neither rows nor contributions.

    A small part stays in the catalog if `inline`; `codec` is that of a file.
    """
    table = layout.table
    contributions = joined_contributions(parts)
    if rows.num_rows == 0 and not contributions:
        return None
    with_rows = next((p for p in parts if p.rows), parts[0])
    plan = PartPlan(
        with_rows.partition_id,
        with_rows.partition_value,
        enclosing_range(parts),
        contributions,
        max(p.level for p in parts) + 1,
        inline_limit(table, parts) if inline else 0,
        [part.id for part in parts],
        derived=layout.derived(rows),
        codec=codec,
        owns_rows=True,
    )
    failpoint("stage.before_part")
    staged = staging.stage_part(table, rows, plan)
    failpoint("stage.part_staged")
    return staged
