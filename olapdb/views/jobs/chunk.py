"""A chunk of work on a view: some source parts, run through the view's own block function.

A chunk is plain data, so a thread or a Spark task can compute it. The job that planned it publishes
the staged results. Source rows are read in blocks as large as an INSERT would cut them, and results
are combined as they arrive. So memory is bounded by one block and the chunk's distinct keys.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import field
from typing import Literal, TypeAlias

import pyarrow as pa

from olapdb.config import SESSION_SETTINGS, Settings
from olapdb.engine.combine import combine, keeps_distinct_keys
from olapdb.errors import Error, InternalError, QueryWasCancelled, UnknownTable
from olapdb.execute.operators.aggregate import coded_keys
from olapdb.functions.base import Environment
from olapdb.ingest.block_parts import layout_of
from olapdb.ingest.block_stager import BlockStager
from olapdb.ingest.read_parts import read_pieces
from olapdb.ingest.staged_insert import StagedInsert
from olapdb.ingest.trigger import BoundView, TriggerContext, bound_view, fire
from olapdb.lineage.retention import FrozenKeys
from olapdb.model.frozen import FrozenSnapshot
from olapdb.model.part import BlockRange, Contribution, NewBlock, Part, union_ranges
from olapdb.model.schema import MaterializedView, Table
from olapdb.plan.nodes import Aggregate
from olapdb.plan.tree import all_nodes, all_scans
from olapdb.records import dataclass
from olapdb.runtime.cache import Cache
from olapdb.runtime.failpoints import failpoint
from olapdb.storage.store import Store

PIECE_ROWS = 131_072
"""Rows of one read of a part, in whole row groups."""
BLOCK_ROWS_MAX = int(SESSION_SETTINGS["max_insert_block_size"].default)
BLOCK_BYTES_MAX = int(SESSION_SETTINGS["min_insert_block_size_bytes"].default)
"""A chunk's block has at most as many source rows as an INSERT's block. For wide rows the bytes
limit it: min_insert_block_size_bytes, the size to which an INSERT squashes its blocks."""

Purpose: TypeAlias = Literal["backfill", "replay", "rows"]
"""backfill: stage parts of the target and fire its views; replay: stage, fire nothing; rows: return
the rows."""


@dataclass(frozen=True, slots=True)
class ChunkTask:
    """The input of one chunk: the parts `part_ids` of the view's source, all of source partition
    `partition`. `target_partitions` limits the result to these target partitions; None keeps all.
    `blocks` are source blocks that the result records beside the parts' own; they contribute no
    rows."""

    index: int
    purpose: Purpose
    snapshot: FrozenSnapshot
    view_id: str
    partition: str
    part_ids: frozenset[str]
    lease_id: str
    settings: tuple[tuple[str, object], ...] = ()
    environment: Environment = field(default_factory=Environment)
    target_partitions: frozenset[str] | None = None
    blocks: tuple[BlockRange, ...] = ()
    frozen: FrozenKeys = field(default_factory=FrozenKeys)
    """Keys of the target that a replay does not replace."""
    swap: str = ""
    """The id of the replay's manifest, which the parts' footers name."""

    @property
    def view(self) -> MaterializedView:
        """Return the view of the chunk. Raise InternalError if the snapshot lacks it."""
        view = self.snapshot.by_id(self.view_id)
        if not isinstance(view, MaterializedView):
            raise InternalError(f"Chunk {self.index} has no view.")
        return view

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the source parts of the chunk."""
        source = self.snapshot.parts(self.view.source_id)
        return tuple(part for part in source if part.id in self.part_ids)

    @property
    def rows(self) -> int:
        """Return the number of source rows."""
        return sum(part.rows for part in self.parts)


@dataclass(frozen=True, slots=True)
class StagedChunk:
    """A computed chunk: `staged` for the commit or, for the purpose "rows", `rows`: an Arrow IPC
    stream of the target's stored columns."""

    index: int
    partition: str
    staged: StagedInsert | None
    rows: bytes | None
    source_rows: int
    target_rows: int
    elapsed_ms: int


@dataclass(frozen=True, slots=True)
class FailedChunk:
    """A chunk whose computation raised `error`."""

    index: int
    partition: str
    error: Error


def compute_chunk(
    task: ChunkTask,
    store: Store,
    cache: Cache | None = None,
    cancelled: threading.Event | None = None,
    at_a_time: int = 1,
) -> StagedChunk:
    """Run the view over the chunk's source rows; stage or return the result. The process computes `at_a_time` chunks at
    a time, whose queries share the threads of the settings.

    Publishes nothing; staged files carry the task's lease. Raises the view's own errors, which name
    the view, and QueryWasCancelled once `cancelled` is set. Deletes the staged files on any
    error."""
    started = time.perf_counter_ns()
    context = TriggerContext(
        task.snapshot,
        store,
        cache or Cache(),
        _share_of_threads(task, at_a_time),
        task.environment,
        cancelled or threading.Event(),
    )
    bound = bound_view(task.view, context)
    if task.purpose != "backfill":  # CHECKs apply to new rows, not to recomputed ones
        bound = bound.unchecked()
    buffer = _ChunkBuffer(task, context, bound)
    source_rows = 0
    try:
        for block in _source_blocks(task, context, bound):
            if context.cancelled.is_set():
                raise QueryWasCancelled("The chunk was cancelled.")
            source_rows += block.num_rows
            buffer.add(fire(bound, block, context))
        staged, rows, target_rows = buffer.finish()
    except BaseException:
        buffer.discard()
        raise
    failpoint(f"{task.purpose}.chunk_computed")
    elapsed_ms = (time.perf_counter_ns() - started) // 1_000_000
    return StagedChunk(
        task.index, task.partition, staged, rows, source_rows, target_rows, elapsed_ms
    )


def rows_of_chunk(chunk: StagedChunk) -> pa.Table:
    """Return the rows of a chunk that was computed for the purpose "rows"."""
    if chunk.rows is None:
        raise InternalError("The chunk was not computed for its rows.")
    with pa.ipc.open_stream(chunk.rows) as reader:
        return reader.read_all()


def _share_of_threads(task: ChunkTask, at_a_time: int) -> Settings:
    """Return the task's settings with the threads of one of `at_a_time` chunks, at least one. A number of threads that
    the view has of its own stays."""
    settings = Settings(dict(task.settings))
    has_own = any(name == "max_threads" for name, _ in task.view.settings)
    if at_a_time == 1 or (has_own and "max_threads" not in settings.changed):
        return settings
    return Settings({**settings.changed, "max_threads": max(1, settings.threads // at_a_time)})


# --- reading -------------------------------------------------------------------------------------


def _source_blocks(
    task: ChunkTask, context: TriggerContext, bound: BoundView
) -> Iterator[pa.Table]:
    """Yield the chunk's source rows in blocks, with only the columns that the view reads.

    Raises UnknownTable."""
    source = task.snapshot.by_id(task.view.source_id)
    if not isinstance(source, Table):
        raise UnknownTable(f"The source of view {task.view.name} does not exist.")
    columns = _columns_read(bound, source)
    coded_columns = _columns_grouped_by(bound, source)
    settings = Settings.of(context.settings)
    rows_max = settings.integer("max_insert_block_size")
    bytes_max = settings.integer("min_insert_block_size_bytes") or BLOCK_BYTES_MAX
    pieces: list[pa.Table] = []
    held_rows = held_bytes = 0
    for part in task.parts:
        for piece in read_pieces(
            context, source, part, min(rows_max, PIECE_ROWS), columns, coded_columns
        ):
            block_full = (
                held_rows + piece.num_rows > rows_max or held_bytes + piece.nbytes > bytes_max
            )
            if pieces and block_full:
                yield _concatenated(pieces)
                pieces, held_rows, held_bytes = [], 0, 0
            pieces.append(piece)
            held_rows += piece.num_rows
            held_bytes += piece.nbytes
    if held_rows:
        yield _concatenated(pieces)


def _columns_grouped_by(bound: BoundView, source: Table) -> frozenset[str]:
    """Return the text columns that the view only groups by: they may stay dictionary-encoded."""
    root = bound.plan.root
    scans = [scan for scan in all_scans(root) if scan.table.id == source.id]
    if len(scans) != 1:
        return frozenset()
    (scan,) = scans
    for node in all_nodes(root):
        if isinstance(node, Aggregate) and node.child is scan:
            coded_names = coded_keys(node)
            return frozenset(name for unique, name in scan.columns if unique in coded_names)
    return frozenset()


def _concatenated(pieces: list[pa.Table]) -> pa.Table:
    """Return the pieces as one table. If only some parts store a column as a dictionary, decode it
    in all pieces."""
    if any(not piece.schema.equals(pieces[0].schema) for piece in pieces):
        pieces = [_decoded(piece) for piece in pieces]
    return pa.concat_tables(pieces)


def _decoded(piece: pa.Table) -> pa.Table:
    """Return the table with its dictionary columns decoded."""
    plain = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in piece.columns
    ]
    return pa.Table.from_arrays(plain, names=piece.column_names)


def _columns_read(bound: BoundView, source: Table) -> list[str]:
    """Return the source's stored columns that the plan's scans read. Return at least one, so that a
    block has a row count."""
    names_read: set[str] = set()
    for scan in all_scans(bound.plan.root):
        if scan.table.id == source.id:
            names_read.update(name for _, name in scan.columns)
            names_read.update(name for _, name, _ in scan.predicate_columns)
    names = [column.name for column in source.stored_columns if column.name in names_read]
    return names or [source.stored_columns[0].name]


# --- writing -------------------------------------------------------------------------------------


class _ChunkBuffer:
    """A buffer that combines the view's result rows and stages them as blocks of the target."""

    def __init__(self, task: ChunkTask, context: TriggerContext, bound: BoundView) -> None:
        self._task, self._context, self._bound = task, context, bound
        self._stager = BlockStager(context, task.lease_id, swap=task.swap, owns_blocks=True)
        self._buffer: list[pa.Table] = []
        self._buffered_rows = 0
        self._is_combined = False
        self._combine_at = BLOCK_ROWS_MAX
        self._target_rows = 0
        self._last_block: NewBlock | None = None
        self._booked_partitions: set[str] = set()
        self._reached: dict[str, tuple[object, ...]] | None = (
            {} if bound.target.engine.drops_keys and task.purpose != "rows" else None
        )
        """The partitions that results reached, before rows combine. None if each keeps a row."""

    def add(self, result: pa.Table) -> None:
        """Buffer one result of the block function; combine and stage when the buffer is full."""
        selected = self._selected_rows(result)
        if selected.num_rows == 0:
            return
        self._buffer.append(selected)
        self._buffered_rows += selected.num_rows
        self._is_combined = False
        if self._buffered_rows < self._combine_at:
            return
        if self._bound.target.engine.combines:
            self._set_buffer(self._combined())
            # If keys hardly repeat, combining again at the same size would be quadratic.
            self._combine_at = max(BLOCK_ROWS_MAX, 2 * self._buffered_rows)
        if self._buffered_rows >= BLOCK_ROWS_MAX and self._task.purpose != "rows":
            self._flush()

    def finish(self) -> tuple[StagedInsert | None, bytes | None, int]:
        """Combine and stage the remaining rows. Return the staged insert, the rows as an IPC stream
        (only for the purpose "rows", then nothing is staged), and the number of target rows."""
        if self._buffer and self._bound.target.engine.combines and not self._has_distinct_keys:
            self._set_buffer(self._combined())
        if self._task.purpose == "rows":
            rows = self._buffered_table()
            return None, _ipc_stream(rows), rows.num_rows
        if self._buffered_rows or (self._task.purpose == "backfill" and not self._last_block):
            self._flush()
        self._stage_empty_slices()
        staged = self._stager.staged(self._bound.target.id, self._target_rows)
        return staged, None, self._target_rows

    def discard(self) -> None:
        """Delete the staged files, which no commit will name."""
        for path in self._stager.staged(self._bound.target.id, 0).paths:
            self._context.store.delete(path)

    def _selected_rows(self, result: pa.Table) -> pa.Table:
        """Return the rows that belong to the task's target partitions and whose keys are not
        frozen."""
        target_partitions, frozen = self._task.target_partitions, self._task.frozen
        layout = layout_of(self._bound.target, self._context)
        if self._reached is not None:
            self._reached.update(layout.partitions(result))
        if (target_partitions is None and not frozen) or result.num_rows == 0:
            return result
        pieces = [
            frozen.without_frozen(layout, partition, rows)
            for partition, _, rows in layout.split(result)
            if target_partitions is None or partition in target_partitions
        ]
        return pa.concat_tables(pieces) if pieces else result.slice(0, 0)

    def _set_buffer(self, rows: pa.Table) -> None:
        """Replace the buffered rows by these combined ones."""
        self._buffer, self._buffered_rows, self._is_combined = [rows], rows.num_rows, True

    def _buffered_table(self) -> pa.Table:
        """Return the buffered rows as one table, which may be empty."""
        if self._buffer:
            return pa.concat_tables(self._buffer)
        columns = self._bound.target.stored_columns
        return pa.table({column.name: pa.nulls(0, column.type.arrow) for column in columns})

    def _combined(self) -> pa.Table:
        """Return all buffered rows, combined as the target's engine would merge them."""
        return combined_rows(self._bound.target, self._buffered_table(), self._context)

    @property
    def _has_distinct_keys(self) -> bool:
        """Return whether no two buffered rows, which are to be staged, have the same key, so that combining changes
        none of them: they are the view's rows of one block, or were combined before."""
        return (
            (len(self._buffer) == 1)
            and (self._bound.unique or self._is_combined)
            and self._task.purpose != "rows"
            and keeps_distinct_keys(self._bound.target)
        )

    def _stage_empty_slices(self) -> None:
        """Record the chunk's source blocks, by placeholder parts, in each slice where all rows that
        they gave cancelled out.

        The slice still depends on these blocks: once some of their source rows leave, the result of
        the others is missing there. Without a record a replay or a backfill would conclude that the
        blocks never reached the slice."""
        selected, frozen = self._task.target_partitions, self._task.frozen
        empty = {
            partition: value
            for partition, value in (self._reached or {}).items()
            if partition not in self._booked_partitions
            and (selected is None or partition in selected)
            and not frozen.holds_all(partition)
        }
        if not empty:
            return
        if self._last_block is None:
            self._last_block = self._stager.add_empty_block(self._bound.target)
        # One row stands for those that are gone: see `wrote_rows`.
        contributions = (self._contribution(1),)
        self._stager.add_empty_slices(self._bound.target, self._last_block, empty, contributions)

    def _flush(self) -> None:
        """Stage the buffered rows as one block of the target, which records the chunk's source
        blocks."""
        rows = self._buffered_table()
        self._last_block = self._stager.add_view_block(
            self._bound.target,
            rows,
            (self._contribution(rows.num_rows),),
            "backfill",
            self._booked_partitions,
            fires=self._task.purpose == "backfill",
            unique=self._has_distinct_keys,
        )
        self._target_rows += rows.num_rows
        self._buffer, self._buffered_rows = [], 0

    def _contribution(self, rows: int) -> Contribution:
        """Return the chunk's source blocks as a contribution of this many rows."""
        view = self._task.view
        part_ranges = (part.block_range for part in self._task.parts)
        return Contribution(
            view.id,
            view.version,
            view.source_id,
            self._task.partition,
            union_ranges((*part_ranges, *self._task.blocks)),
            rows,
        )


def combined_rows(table: Table, rows: pa.Table, context: TriggerContext) -> pa.Table:
    """Return the rows as a full merge of each partition would leave them, sorted within each."""
    layout = layout_of(table, context)
    if table.engine.combines and layout.keys_within_partitions:
        return combine(table, layout.sort(rows), layout) if rows.num_rows else rows
    pieces = [layout.sort(piece) for _, _, piece in layout.split(rows)] if rows.num_rows else []
    if table.engine.combines:
        pieces = [combine(table, piece) for piece in pieces]
    return pa.concat_tables(pieces) if pieces else rows


def _ipc_stream(rows: pa.Table) -> bytes:
    """Return the rows as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    stream: bytes = sink.getvalue().to_pybytes()
    return stream
