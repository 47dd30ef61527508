"""RECONCILE: compares a view's target with a recomputation from the source, at one snapshot.

What should be there comes from the source rows that the view has seen (its gap is reported, not
held against it), through the view's own block function; what is there from the target's parts, as
a full merge would leave them.  The answer never comes from the ledger or from another view.

A verdict is stored with a fingerprint of what it is about, and lapses with it (rule 9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from olapdb.errors import BadArguments, CommitConflict
from olapdb.ingest.keys import key_columns
from olapdb.ingest.read import Pin, read_rows
from olapdb.ingest.stage import layout_of
from olapdb.ingest.trigger import Surroundings
from olapdb.model.changes import (
    Change,
    ClearInvalidations,
    Commit,
    LeaseLive,
    RecordCheck,
    Requirement,
    ViewIs,
)  # fmt: skip
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Check, Verdict
from olapdb.transaction.services import Services
from olapdb.views.chunk import ChunkTask, FailedChunk, combined, rows_of_chunk
from olapdb.views.compare import Difference, compare_keys, compare_rows
from olapdb.views.coverage import bypass, gap, stores_rows
from olapdb.views.executor import Executor
from olapdb.views.jobs import ChunkEvent, Job, Progress, by_partition, find_view, view_name
from olapdb.views.narrow import reaching_parts
from olapdb.views.verdicts import check_is_current, fingerprint, stale_slices

NOTHING_THERE = "all"
"""The partition that a verdict about an empty target is stored under."""


@dataclass(frozen=True, slots=True)
class ReconcileRow:
    """The verdict about one partition of the target.

    `gap_rows` are source rows (of the whole view) that it has not seen; `causes` say why a slice
    differs as far as the ledger knows; `examples` are keys with what is wrong with them.
    """

    partition: str
    snapshot: int
    keys_compared: int
    missing: int
    extra: int
    differing: int
    largest_difference: float
    examples: tuple[str, ...]
    bypass_rows: int
    gap_rows: int
    causes: tuple[str, ...]
    verdict: Verdict


def reconcile(
    services: Services,
    view_id: str,
    *,
    partition: str | None = None,
    sample: int | None = None,
    stale: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
    query_id: str = "",
    statement: str = "",
    settings: Mapping[str, object] | None = None,
    record: bool = True,
) -> tuple[ReconcileRow, ...]:
    """Recomputes and compares target partitions: one, the stale ones, `sample` of them (those
    proven longest ago first), or all.

    A view that cannot be proven gives one row of verdict "unverifiable" whose cause is the reason.
    An equal verdict also clears older invalidations of its slice: the recomputation disproved
    them.  `record` False stores nothing.
    """
    job = Job.of(services, "RECONCILE", executor, progress, query_id, statement, settings)
    snapshot = services.catalog.snapshot()
    with Pin(services, snapshot.number):
        view = find_view(snapshot, view_id)
        reason = unverifiable(view, snapshot)
        if reason:
            return (_unverifiable(view, snapshot, reason),)
        chosen = _chosen(view, snapshot, partition, sample, stale)
        if chosen is not None and not chosen:
            return ()
        rows = _Reconciliation(job, snapshot, view, chosen).run()
        if record:
            _record(job, snapshot, view, rows, complete=chosen is None)
    return rows


def unverifiable(view: MaterializedView, snapshot: Snapshot) -> str:
    """Why the view cannot be compared with its source, or ""."""
    for one in snapshot.views_into(view.target_id):
        if one.unprovable:
            return one.unprovable
        if not stores_rows(snapshot, one.source_id):
            return f"The source of {view_name(one)} keeps no rows that could be read again."
    if not stores_rows(snapshot, view.target_id):
        return "The target keeps no rows that could be compared."
    return ""


def _unverifiable(view: MaterializedView, snapshot: Snapshot, reason: str) -> ReconcileRow:
    gap_rows = sum(s.rows for s in gap(view, snapshot)) if stores_rows(
        snapshot, view.source_id
    ) else 0  # fmt: skip
    return ReconcileRow(
        NOTHING_THERE, snapshot.number, 0, 0, 0, 0, 0.0, (), sum(bypass(view, snapshot).values()),
        gap_rows, (reason,), "unverifiable",
    )  # fmt: skip


def _chosen(
    view: MaterializedView, snapshot: Snapshot, partition: str | None, sample: int | None,
    stale: bool,
) -> frozenset[str] | None:  # fmt: skip
    if sum((partition is not None, sample is not None, stale)) > 1:
        raise BadArguments("RECONCILE VIEW takes one of PARTITION, SAMPLE and STALE.")
    if partition is not None:
        return frozenset((partition,))
    if stale:
        return stale_slices(snapshot, view)
    if sample is None:
        return None
    if sample < 1:
        raise BadArguments("SAMPLE is the number of partitions to compare, at least 1.")
    proven = {
        c.target_partition: c.checked_ms for c in snapshot.checks(view.id)
        if check_is_current(c, view, snapshot)
    }  # fmt: skip
    there = sorted({p.partition_id for p in snapshot.parts(view.target_id) if p.rows})
    there.sort(key=lambda one: proven.get(one, 0))
    return frozenset(there[:sample])


@dataclass(frozen=True)
class _Reconciliation:
    job: Job
    snapshot: Snapshot
    view: MaterializedView
    slices: frozenset[str] | None

    def run(self) -> tuple[ReconcileRow, ...]:
        target = self.snapshot.by_id(self.view.target_id)
        assert isinstance(target, Table)
        expected = self._split(target, self._expected())
        actual = self._split(target, self._actual(target))
        partitions = sorted(expected.keys() | actual.keys() | (self.slices or set()))
        empty = pa.table({c.name: pa.array([], c.type.arrow) for c in target.stored_columns})
        made = []
        gap_rows = sum(s.rows for s in gap(self.view, self.snapshot))
        by_hand = bypass(self.view, self.snapshot)
        for index, one in enumerate(partitions or [NOTHING_THERE]):
            difference = _compare(target, expected.get(one, empty), actual.get(one, empty))
            made.append(self._row(one, difference, gap_rows, by_hand.get(one, 0)))
            self.job.progress(
                ChunkEvent("compared", "RECONCILE", view_name(self.view), index,
                           max(len(partitions), 1), one, 0, difference.keys_compared,
                           elapsed_ms=self.job.elapsed_ms)
            )  # fmt: skip
        return tuple(made)

    def _expected(self) -> list[pa.Table]:
        """The rows of every view that writes the target, from covered source rows."""
        tasks: list[ChunkTask] = []
        for view in self.snapshot.views_into(self.view.target_id):
            parts = reaching_parts(view, self.snapshot, self.slices, self.job.services)
            for partition, own in by_partition(parts).items():
                tasks.append(
                    self.job.task(self.snapshot, view, partition, own, len(tasks), "rows",
                                  self.slices)
                )  # fmt: skip
        found: list[pa.Table] = []
        for outcome in self.job.executor.run(tasks):
            if isinstance(outcome, FailedChunk):
                raise outcome.error
            found.append(rows_of_chunk(outcome))
            self.job.progress(
                ChunkEvent("computed", "RECONCILE", view_name(self.view), outcome.index,
                           len(tasks), outcome.partition, 0, outcome.source_rows,
                           outcome.target_rows, None, outcome.elapsed_ms)
            )  # fmt: skip
        return found

    def _actual(self, target: Table) -> list[pa.Table]:
        around = self._around()
        return [
            read_rows(around, target, part) for part in self.snapshot.parts(target.id)
            if part.rows and (self.slices is None or part.partition_id in self.slices)
        ]  # fmt: skip

    def _split(self, target: Table, tables: list[pa.Table]) -> dict[str, pa.Table]:
        """Rows by partition, as a full merge would leave them."""
        rows = [one for one in tables if one.num_rows]
        if not rows:
            return {}
        around = self._around()
        plain = [one.replace_schema_metadata(None).cast(_schema(target)) for one in rows]
        pieces = layout_of(target, around).split(pa.concat_tables(plain))
        merged = {i: combined(target, piece, around) for i, _, piece in pieces}
        return {i: piece for i, piece in merged.items() if piece.num_rows}

    def _around(self) -> Surroundings:
        services = self.job.services
        return Surroundings(
            self.snapshot, services.store, services.cache, self.job.settings,
            self.job.environment(),
        )  # fmt: skip

    def _row(
        self, partition: str, difference: Difference, gap_rows: int, by_hand: int
    ) -> ReconcileRow:
        return ReconcileRow(
            partition=partition,
            snapshot=self.snapshot.number,
            keys_compared=difference.keys_compared,
            missing=difference.missing,
            extra=difference.extra,
            differing=difference.differing,
            largest_difference=difference.largest_difference,
            examples=difference.examples,
            bypass_rows=by_hand,
            gap_rows=gap_rows,
            causes=() if difference.equal else tuple(self._causes(partition, by_hand)),
            verdict="equal" if difference.equal else "different",
        )

    def _causes(self, partition: str, by_hand: int) -> Iterable[str]:
        if by_hand:
            yield f"{by_hand} rows that no view made"
        for one in self.snapshot.invalidations(self.view.id):
            if one.target_partition in (None, partition):
                yield f"{one.cause}: {one.statement}" if one.statement else one.cause


def _schema(table: Table) -> pa.Schema:
    return pa.schema([pa.field(c.name, c.type.arrow) for c in table.stored_columns])


def _compare(target: Table, expected: pa.Table, actual: pa.Table) -> Difference:
    if not target.engine.combines:
        return compare_rows(target, expected, actual)
    keys = key_columns(target)
    if None in keys:
        return compare_rows(target, expected, actual)
    return compare_keys(target, [k for k in keys if k is not None], expected, actual)


def _record(
    job: Job, snapshot: Snapshot, view: MaterializedView, rows: tuple[ReconcileRow, ...],
    complete: bool,
) -> None:  # fmt: skip
    writers = snapshot.views_into(view.target_id)
    requirements: list[Requirement] = [LeaseLive(job.services.lease_id)]
    requirements += [ViewIs(one.id, one.version) for one in writers]
    changes: list[Change] = []
    for row in rows:
        print_of = fingerprint(view, snapshot, row.partition)
        for one in writers:
            changes.append(RecordCheck(_check(job, one, row, print_of)))
            if row.verdict == "equal":
                changes.append(ClearInvalidations(one.id, row.partition, snapshot.number))
    if complete and all(row.verdict == "equal" for row in rows):
        changes += [ClearInvalidations(one.id, None, snapshot.number) for one in writers]
    try:
        job.services.catalog.apply(
            Commit(tuple(requirements), tuple(changes), "RECONCILE", job.query_id, job.statement)
        )
    except CommitConflict:
        # The definition changed since the snapshot: the verdict is true, but lapsed already.
        return


def _check(job: Job, view: MaterializedView, row: ReconcileRow, print_of: str) -> Check:
    return Check(
        view_id=view.id, target_partition=row.partition, snapshot=row.snapshot,
        fingerprint=print_of, verdict=row.verdict, keys_compared=row.keys_compared,
        missing=row.missing, extra=row.extra, differing=row.differing,
        largest_difference=row.largest_difference, examples=row.examples,
        checked_ms=job.services.clock_ms(), mode="FULL",
    )  # fmt: skip
