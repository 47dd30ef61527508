"""Recomputation of a view's target from the source, and its comparison with the stored rows.

RECONCILE and ADOPT share it. The expected rows come from source rows through the view's own block
function. The actual rows come from the target's parts, combined as by a full merge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import pyarrow as pa

from olapdb.engine.combine import combine
from olapdb.errors import ProgrammingError
from olapdb.ingest.block_parts import layout_of
from olapdb.ingest.read_parts import read_rows
from olapdb.ingest.trigger import TriggerContext
from olapdb.lineage.retention import FrozenKeys
from olapdb.lineage.sorting_key import key_columns
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.part import Part
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Verdict
from olapdb.records import dataclass
from olapdb.views.definition.judgement import bind_view
from olapdb.views.jobs.chunk import ChunkTask, FailedChunk, rows_of_chunk
from olapdb.views.jobs.job import ChunkEvent, ViewJob, by_partition, view_name
from olapdb.views.jobs.source_pruning import parts_reaching_slices
from olapdb.views.proof.compare import Difference, compare_keys, compare_rows
from olapdb.views.proof.coverage import bypass, gap_slices
from olapdb.views.proof.magnitudes import magnitude_view
from olapdb.views.proof.shared_targets import compared_parts, peers
from olapdb.views.provability.rounding import rounded_outputs

CHUNKS_MAX = 64
"""Chunks of a comparison, unless its partitions are large."""
CHUNK_ROWS_MAX = 1_048_576
"""Source rows of a chunk that has several partitions."""
EMPTY_TARGET = "all"
"""The partition under which a verdict about an empty target is stored."""


@dataclass(frozen=True, slots=True)
class ReconcileRow:
    """A verdict about one partition of the target.

    `gap_rows`: source rows of the whole view that it has not seen. `causes`: why the slice differs,
    as far as the ledger knows. `examples`: keys with their problems. `retained_rows`: target rows
    that were not compared, since retention removed their source rows; verdict "retained" means that
    the partition has no other rows.
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
    retained_rows: int = 0


@dataclass(frozen=True, slots=True)
class ComputedRows:
    """Rows, of the target's stored columns, that a view makes of source rows.

    The source rows are of one partition or several small ones that the view has seen, or (`in_gap`)
    of one partition in its gap.
    """

    partition: str
    in_gap: bool
    rows: pa.Table


@dataclass(frozen=True)
class Recomputation:
    """A recomputation of a view's target, and of its peers' rows in it, at one snapshot.

    `slices`: partitions of the target, None for all. The gap of a view in `gap_of` counts as seen:
    the result is then the target with the missed rows inserted by hand.
    """

    job: ViewJob
    snapshot: Snapshot
    view: MaterializedView
    slices: frozenset[str] | None = None
    gap_of: frozenset[str] = frozenset()

    @property
    def target(self) -> Table:
        """Return the table that the view writes."""
        table = self.snapshot.by_id(self.view.target_id)
        assert isinstance(table, Table)
        return table

    def compare(self, computed: Sequence[ComputedRows]) -> tuple[ReconcileRow, ...]:
        """Return a verdict for each partition that either side has, and for partitions whose rows
        cancel each other out while they have parts. An empty target gives one verdict, about
        EMPTY_TARGET."""
        target = self.target
        expected = self._split(target, [partition.rows for partition in computed])
        actual = self._split(target, self._actual(target))
        parts = () if self.slices is not None else compared_parts(self.view, self.snapshot)
        selected = self.slices or {part.partition_id for part in parts}
        partitions = sorted(expected.keys() | actual.keys() | selected)
        empty = pa.table(
            {column.name: pa.nulls(0, column.type.arrow) for column in target.stored_columns}
        )
        verdicts = []
        gap_rows = sum(gap.rows for gap in gap_slices(self.view, self.snapshot))
        bypass_rows = bypass(self.view, self.snapshot)
        frozen, layout = FrozenKeys.of(self.snapshot, target.id), layout_of(target, self.context())
        for index, partition in enumerate(partitions or [EMPTY_TARGET]):
            actual_rows = actual.get(partition, empty)
            comparable = frozen.without_frozen(layout, partition, actual_rows)
            due = frozen.without_frozen(layout, partition, expected.get(partition, empty))
            difference = self._difference(partition, due, comparable)
            row = self._row(partition, difference, gap_rows, bypass_rows.get(partition, 0))
            if frozen.holds(partition):
                nothing_compared = difference.equal and not difference.keys_compared
                row = replace(
                    row,
                    retained_rows=actual_rows.num_rows - comparable.num_rows,
                    verdict="retained" if nothing_compared else row.verdict,
                )
            verdicts.append(row)
            self.job.progress(
                ChunkEvent(
                    "compared",
                    self.job.operation,
                    view_name(self.view),
                    index,
                    max(len(partitions), 1),
                    partition,
                    0,
                    difference.keys_compared,
                    elapsed_ms=self.job.elapsed_ms,
                )
            )
        return tuple(verdicts)

    def expected(self) -> list[ComputedRows]:
        """Compute the rows that the view and its peers make of the source rows that each has seen.
        Raise the error of a chunk that failed."""
        tasks, in_gap = self._tasks()
        computed: list[ComputedRows] = []
        self.job.plan(self.view, tasks)
        for outcome in self.job.run(tasks):
            if isinstance(outcome, FailedChunk):
                raise outcome.error
            computed.append(
                ComputedRows(outcome.partition, in_gap[outcome.index], rows_of_chunk(outcome))
            )
            self.job.progress(
                ChunkEvent(
                    "computed",
                    self.job.operation,
                    view_name(self.view),
                    outcome.index,
                    len(tasks),
                    outcome.partition,
                    0,
                    outcome.source_rows,
                    outcome.target_rows,
                    None,
                    outcome.elapsed_ms,
                )
            )
        return computed

    def _tasks(self) -> tuple[list[ChunkTask], list[bool]]:
        """Return the tasks that recompute the rows, and whether each is in a view's gap."""
        tasks: list[ChunkTask] = []
        in_gap: list[bool] = []
        for view in peers(self.view, self.snapshot):
            seen = parts_reaching_slices(view, self.snapshot, self.slices, self.job.services)
            unseen = gap_slices(view, self.snapshot) if view.id in self.gap_of else ()
            pieces = [(name, batch, False) for name, batch in _batches(by_partition(seen))]
            pieces += [(gap.partition, gap.parts, True) for gap in unseen]
            for partition, parts, is_gap in pieces:
                tasks.append(self._task(view, partition, parts, len(tasks)))
                in_gap.append(is_gap)
        return tasks, in_gap

    def _difference(self, partition: str, expected: pa.Table, actual: pa.Table) -> Difference:
        """Return the difference of the rows of one partition, combined as by a full merge: by key
        if the engine merges rows and all keys are columns, else as multisets. Only where they
        differ, sums of floats are compared by the magnitude of what was added."""
        target, keys = self.target, key_columns(self.target)
        if not target.engine.combines or None in keys:
            difference = compare_rows(target, expected, actual, self._rounded)
            if difference.equal or not self._rounded or partition not in self._magnitudes:
                return difference
            magnitudes = self._magnitudes[partition]
            return compare_rows(target, expected, actual, self._rounded, magnitudes)
        if expected.equals(actual):  # both in the order of the keys, each key once
            return Difference(keys_compared=expected.num_rows)
        names = [key for key in keys if key is not None]
        difference = compare_keys(target, names, expected, actual, rounded=self._rounded)
        if difference.equal or partition not in self._magnitudes:
            return difference
        magnitudes = self._magnitudes[partition]
        return compare_keys(target, names, expected, actual, magnitudes, self._rounded)

    @cached_property
    def _rounded(self) -> frozenset[str]:
        """Return the columns that the views compute from sums of floats."""
        names = frozenset[str]()
        for view in peers(self.view, self.snapshot):
            names |= rounded_outputs(bind_view(view, self.snapshot))
        return names

    @cached_property
    def _magnitudes(self) -> dict[str, pa.Table]:
        """Return the magnitudes of what the views add up, by partition, as rows of the target; {}
        where it has no sums of floats, or where the magnitudes cannot be computed."""
        target = self.target
        only = None if target.engine.combines else self._rounded
        writers = [
            changed
            for view in peers(self.view, self.snapshot)
            if (changed := magnitude_view(view, target, self.snapshot, only)) is not None
        ]
        if not writers:
            return {}
        of_magnitudes = replace(self, snapshot=OverlaySnapshot.of(self.snapshot, *writers))
        rows: list[pa.Table] = []
        # Not by `job.run`, whose chunks are on record: these are no chunks of the comparison.
        try:
            tasks, _ = of_magnitudes._tasks()
        except ProgrammingError:  # a query of magnitudes that cannot be bound
            return {}
        for outcome in self.job.executor.run(tasks, self.job.record.stop_requested):
            if isinstance(outcome, FailedChunk):
                return {}
            rows.append(rows_of_chunk(outcome))
        return self._split(target, rows)

    def _task(
        self, view: MaterializedView, partition: str, parts: Sequence[Part], index: int
    ) -> ChunkTask:
        """Return the task that recomputes the rows of the parts; `index` numbers it."""
        return self.job.task(self.snapshot, view, partition, parts, index, "rows", self.slices)

    def _actual(self, target: Table) -> list[pa.Table]:
        """Read the rows of the compared parts of the target, one table for each part."""
        context = self.context()
        return [
            read_rows(context, target, part)
            for part in compared_parts(self.view, self.snapshot)
            if (self.slices is None or part.partition_id in self.slices)
        ]

    def _split(self, target: Table, tables: list[pa.Table]) -> dict[str, pa.Table]:
        """Return the rows by partition, combined as by a full merge, without empty partitions."""
        nonempty_tables = [table for table in tables if table.num_rows]
        if not nonempty_tables:
            return {}
        context = self.context()
        layout = layout_of(target, context)
        plain_tables = [
            table.replace_schema_metadata(None).cast(_schema(target)) for table in nonempty_tables
        ]
        sorted_rows = layout.sort(pa.concat_tables(plain_tables))
        if layout.keys_within_partitions:
            merged = {
                partition: piece
                for partition, _, piece in layout.split(combine(target, sorted_rows, layout))
            }
        else:
            pieces = layout.split(sorted_rows)
            merged = {partition: combine(target, piece, layout) for partition, _, piece in pieces}
        return {partition: piece for partition, piece in merged.items() if piece.num_rows}

    def context(self) -> TriggerContext:
        """Return the context in which block functions run and parts are read, at the snapshot."""
        services = self.job.services
        return TriggerContext(
            self.snapshot, services.store, services.cache, self.job.settings, self.job.environment()
        )

    def _row(
        self, partition: str, difference: Difference, gap_rows: int, bypass_rows: int
    ) -> ReconcileRow:
        """Return the result row of one partition; causes are given only if it differs."""
        return ReconcileRow(
            partition=partition,
            snapshot=self.snapshot.number,
            keys_compared=difference.keys_compared,
            missing=difference.missing,
            extra=difference.extra,
            differing=difference.differing,
            largest_difference=difference.largest_difference,
            examples=difference.examples,
            bypass_rows=bypass_rows,
            gap_rows=gap_rows,
            causes=() if difference.equal else tuple(self._causes(partition, bypass_rows)),
            verdict="equal" if difference.equal else "different",
        )

    def _causes(self, partition: str, bypass_rows: int) -> Iterable[str]:
        """Yield the known causes of a difference: bypass rows and invalidations."""
        if bypass_rows:
            yield f"{bypass_rows} rows that no view made"
        for note in self.snapshot.invalidations(self.view.id):
            if note.target_partition in (None, partition):
                yield (f"{note.cause}: {note.statement}" if note.statement else note.cause)


def _batches(partitions: Mapping[str, tuple[Part, ...]]) -> Iterator[tuple[str, tuple[Part, ...]]]:
    """Yield the chunks of a comparison as (name, parts), in the order of `partitions`.

    A chunk is one partition. If there are more than CHUNKS_MAX, it joins equally many consecutive
    ones, but fewer where these exceed CHUNK_ROWS_MAX rows. Chunking never changes the result of a
    comparable view.
    """
    size = -(-len(partitions) // CHUNKS_MAX)
    names: list[str] = []
    parts: list[Part] = []
    rows = 0
    for name, added_parts in partitions.items():
        added_rows = sum(part.rows for part in added_parts)
        if names and (len(names) == size or rows + added_rows > CHUNK_ROWS_MAX):
            yield _chunk_name(names), tuple(parts)
            names, parts, rows = [], [], 0
        names.append(name)
        parts += added_parts
        rows += added_rows
    if names:
        yield _chunk_name(names), tuple(parts)


def _chunk_name(partitions: Sequence[str]) -> str:
    """Return the first partition, and the number of the others if there are more."""
    if len(partitions) == 1:
        return partitions[0]
    return f"{partitions[0]} and {len(partitions) - 1} more"


def _schema(table: Table) -> pa.Schema:
    """Return the Arrow schema of the table's stored columns."""
    return pa.schema([pa.field(column.name, column.type.arrow) for column in table.stored_columns])
