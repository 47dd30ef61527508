"""Scan of a stored table: parts are pruned, row groups read in parallel and filtered at once.

The columns of conditions are read first, those of PREWHERE before those of WHERE, the other columns of a row
group only where the conditions keep a row.  Where few rows are left, what follows is read for these alone.
Batches come in the order of the parts, whichever thread reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import cut, filter_rows, make_batch, rows_only, single_chunk
from olapdb.compute.context import BATCH_ROWS, ExecutionContext
from olapdb.compute.evaluate import evaluate_predicate
from olapdb.compute.stages import Deferred, KnownTasks, Stage
from olapdb.config import tuning
from olapdb.engine.layout import layout_of_query
from olapdb.errors import Error, InternalError
from olapdb.execute.operators import condition_masks
from olapdb.execute.operators.coded_conditions import CodedConditions
from olapdb.execute.operators.compact_columns import decoded
from olapdb.execute.operators.part_scan import (
    TASK_ROW,
    Source,
    Task,
    bytes_of_row,
    bytes_of_values,
    has_much_to_decode,
    joined_tasks,
    read_rows,
    read_task,
    tasks_of,
)
from olapdb.execute.operators.row_filter import RowFilter
from olapdb.execute.operators.running_bound import RunningBound
from olapdb.execute.pruning.granule_selection import (
    VIRTUAL_VALUES,
    PartSelection,
    Selector,
    live_parts,
)
from olapdb.execute.pruning.projections import projected_selections
from olapdb.functions import default_value
from olapdb.functions.kernels.columns import true_positions
from olapdb.functions.kernels.decimal_width import has_short_form
from olapdb.lazy import LazyModule
from olapdb.plan.conditions import all_of_any, conjuncts
from olapdb.plan.expressions import Call, Constant, Expression, InSubquery, columns_of
from olapdb.plan.nodes import Scan
from olapdb.records import dataclass
from olapdb.storage.shared_codes import JointDictionary, joint_dictionary
from olapdb.types import String, plain
from olapdb.types.arrow_values import from_numpy

if TYPE_CHECKING:
    from olapdb.execute.operators import block_pieces, final
else:
    block_pieces = LazyModule("olapdb.execute.operators.block_pieces")
    final = LazyModule("olapdb.execute.operators.final")


def scan_batches(
    node: Scan, context: ExecutionContext, coded: Collection[str] = (), shared: Collection[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the table's rows that the conditions keep.

    The rows are those of the context's block for the table, if there is one, else those of the
    snapshot's parts (with FINAL, combined). Text columns in `coded`, which no condition may read,
    come as dictionaries where the parts or the block have them so. Columns in `shared` come in the compact
    form of the column cache where it has them so: texts as codes of a part, Decimals with 64 bits."""
    block = context.blocks.get(node.table.id)
    if block is not None:
        return _block_batches(node, block, context, coded)
    if node.final and node.table.engine.combines:
        return final.final_batches(node, context)
    return Deferred(lambda in_chain: _part_batches(node, context, coded, shared, in_chain))


def counted_batch(node: Scan, context: ExecutionContext) -> pa.RecordBatch | None:
    """Return the rows of a scan that reads no column, as one batch without columns.

    The parts know their numbers of rows, so `count()` reads nothing. Returns None if the scan must
    read."""
    if node.table.id in context.blocks or (node.final and node.table.engine.combines):
        return None
    if scan_conditions(node) or scan_sources(node):
        return None
    parts = live_parts(node, context)
    granules = sum(max(p.granules, 1) for p in parts)
    context.count_selection(node, (len(parts), 0), (granules, 0))
    context.note(node, "Counted: the parts know their numbers of rows")
    return rows_only(sum(part.rows for part in parts))


def scan_sources(node: Scan) -> list[Source]:
    """Return the columns of the scan, then those that only its conditions read."""
    sources = [Source(u, c, t) for (u, c), t in zip(node.columns, node.types, strict=True)]
    own_names = {source.unique for source in sources}
    sources += [Source(u, c, t) for u, c, t in node.predicate_columns if u not in own_names]
    return sources


def scan_conditions(node: Scan) -> list[Expression]:
    """Return the conditions of PREWHERE and WHERE, in this order."""
    return [e for e in (node.prewhere, node.predicate) if e is not None]


@contextmanager
def _part_batches(
    node: Scan,
    context: ExecutionContext,
    coded: Collection[str],
    shared: Collection[str],
    in_chain: bool,
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Give the rows of the table's live parts that the scan's conditions may keep.

    Answers from row counts alone if it can; else prunes parts and row groups and reads in parallel.
    """
    counted = counted_batch(node, context)
    if counted is not None:
        yield cut(counted, context.batch_rows)
        return
    reader = TaskReader(node, context, coded, shared)
    compact = frozenset(coded).union(shared)
    tasks = list(scan_tasks(node, context, compact=compact, in_chain=in_chain))
    rows = [sum(piece.rows for piece in task) for task in tasks]

    def read(task: Task) -> Iterable[pa.RecordBatch]:
        """Yield the rows of a task that meet the conditions, cut to batches: large ones if the consumer joins them and
        max_block_size is not set low, else of a batch's rows."""
        with context.reading():
            batch = reader.read(task)
        if context.joins_batches and context.batch_rows >= BATCH_ROWS:
            return cut(batch, max(context.rows_at_once, tuning.SLOW_BATCH_ROWS))
        return cut(batch, context.batch_rows)

    known = KnownTasks(rows, scan=("alone", _cost_key(node)))
    if in_chain:
        is_long = has_much_to_decode(tasks, scan_sources(node)) and reader.has_much_to_decode(tasks)
        known = KnownTasks(rows, joined_tasks, _cost_key(node), is_long)
    yield Stage(context, read, tasks, known=known)


def _cost_key(node: Scan) -> Hashable:
    """Return the key under which a plan keeps what a scan's rows cost, from one run to the next. The names in
    `node.columns` are unique in the plan, so that no two scans share a key."""
    return node.table.id, node.columns


def scan_tasks(
    node: Scan,
    context: ExecutionContext,
    later: Scan | None = None,
    rows_max: int | None = None,
    compact: Collection[str] = (),
    *,
    in_chain: bool = False,
) -> Iterator[Task]:
    """Prune parts and row groups by the scan's conditions; yield the rest in order, as tasks of up to `rows_max` rows
    (None: `tasks_of` decides). With `in_chain` no task is made small to give a first row early. The tasks can also be
    read by `later`, a scan of other columns of the table. Texts in `compact` are read as codes where that is
    possible."""
    layout = layout_of_query(node.table, context.require_store().cache, context.environment)
    parts = live_parts(node, context)
    total, granules_total = len(parts), sum(max(p.granules, 1) for p in parts)
    conditions = scan_conditions(node)
    if parts and any(_is_of_another_table(c, context) for c in conditions):
        parts = []
    selection = Selector(node, all_of_any(conditions), layout, context).select(parts)
    sources = scan_sources(node)
    names = {source.name for scan in (node, later or node) for source in scan_sources(scan)}
    chosen = projected_selections(
        node, all_of_any(conditions), selection.parts, names - {TASK_ROW}, context
    )
    chosen = _with_joint_dictionaries(node, chosen, compact, context)
    granules = sum(p.granules for p in chosen)
    context.count_partitions({selection.part.partition_id for selection in chosen})
    context.count_selection(node, (total, len(chosen)), (granules_total, granules))
    row_bytes = _row_bytes(node, sources, compact, chosen, context)
    rows = sum(sum(selection.group_rows) for selection in chosen)
    is_known = in_chain and context.is_long(_cost_key(node), rows) is not None
    unread_rows = _rows_of_unread_texts(node, sources, chosen)
    if unread_rows is not None:
        rows_max = unread_rows if rows_max is None else min(rows_max, unread_rows)
    return tasks_of(chosen, row_bytes, context, rows_max, in_chain=in_chain, judged=not is_known)


def _with_joint_dictionaries(
    node: Scan,
    chosen: tuple[PartSelection, ...],
    compact: Collection[str],
    context: ExecutionContext,
) -> tuple[PartSelection, ...]:
    """Return the selections, each with one dictionary for all of them of each text column that the column cache has as
    codes, and of other columns in `compact`."""
    files = [selection.reader.cache_path for selection in chosen if not selection.part.inline]
    if len(files) < 2:
        return chosen
    cache, joints = context.require_store().cache, dict[str, JointDictionary]()
    for source in scan_sources(node):
        column = node.table.column(source.name)
        is_coded = isinstance(plain(source.type), String) or source.unique in compact
        if column is not None and is_coded:
            joint = joint_dictionary(cache, files, column.id)
            if joint is not None:
                joints[source.name] = joint
    if not joints:
        return chosen
    return tuple(replace(selection, joints=joints) for selection in chosen)


def _rows_of_unread_texts(
    node: Scan, sources: Sequence[Source], chosen: Sequence[PartSelection]
) -> int | None:
    """Return how many rows a task may have at most so that it reads about `tuning.UNREAD_TEXT_BYTES` of texts for the
    first time. None if no text is read for the first time."""
    parts = [selection for selection in chosen if selection.groups is None or selection.groups]
    names = [
        source.name
        for source in sources
        if isinstance(plain(source.type), String) and node.table.column(source.name) is not None
    ]
    size = sum(
        selection.reader.unread_text_bytes(name, selection.groups[0] if selection.groups else 0)
        for selection in parts
        for name in names
    )
    rows = sum(selection.part.rows for selection in parts)
    return None if not size else max(tuning.UNREAD_TEXT_BYTES * rows // size, 1)


def _row_bytes(
    node: Scan,
    sources: Sequence[Source],
    compact: Collection[str],
    chosen: Sequence[PartSelection],
    context: ExecutionContext,
) -> int:
    """Return about how many bytes a row of a scan's tasks takes in memory, texts in `compact` as codes.

    The keys of a join are looked up before other conditions only where few rows are expected to remain."""
    sizes = {s.unique: bytes_of_values(s, chosen, compact=s.unique in compact) for s in sources}
    first = node.prewhere
    if not isinstance(first, InSubquery) or first.number not in context.subqueries:
        return sum(sizes.values())
    return bytes_of_row(sizes, columns_of(first))


def _is_of_another_table(condition: Expression, context: ExecutionContext) -> bool:
    """Return whether a conjunct of the condition compares constants and is false, as `_table = 'other'` is where
    several tables are read as one. A comparison that fails is skipped: perhaps no row needs it."""
    for part in conjuncts(condition):
        if not isinstance(part, Call) or not all(isinstance(a, Constant) for a in part.arguments):
            continue
        with suppress(Error):
            keep = evaluate_predicate(part, rows_only(1), context.environment, context.subqueries)
            if not keep.true_count:
                return True
    return False


class TaskReader:
    """A reader and filter of tasks; thread-safe."""

    def __init__(
        self,
        node: Scan,
        context: ExecutionContext,
        coded: Collection[str] = (),
        shared: Collection[str] = (),
        bound: RunningBound | None = None,
    ) -> None:
        """Prepare to read the columns and evaluate the conditions of the scan. `coded` and `shared` are as in
        `scan_batches`. `bound`, on one of the node's columns, is a condition that is judged after the others."""
        self._node = node
        self._coded = coded
        self._output_codes = frozenset(coded).union(shared)
        self._context = context
        self._conditions = scan_conditions(node)
        sources = scan_sources(node)
        texts = frozenset(s.unique for s in sources if isinstance(plain(s.type), String))
        coded_texts = frozenset(coded).union(shared)
        steps = [
            (CodedConditions(conditions, texts, context), used)
            for conditions, used in _steps(self._conditions)
        ]
        for conditions, _ in steps:
            coded_texts |= conditions.columns
        if bound is not None and bound.column is not None:
            coded_texts |= texts & {bound.column}
        sources = [
            replace(s, shared=s.unique in coded_texts or has_short_form(s.type.arrow))
            for s in sources
        ]
        bounds = [] if bound is None or bound.column is None else [(bound, {bound.column})]
        self._masks = condition_masks.ConditionMasks(node, self._conditions, context)
        self._reading = _Reading.of(sources, [*steps, *bounds], len(steps))
        returned = {unique for unique, _ in node.columns}
        self._known_reading = _Reading.of([s for s in sources if s.unique in returned], bounds, 0)
        """The columns and bounds to read where a remembered mask says which rows meet the conditions."""

    def has_much_to_decode(self, tasks: Sequence[Task]) -> bool:
        """Return whether the columns that the tasks read are to be decoded: where masks are remembered, those of the
        conditions are not read, and stay out of the column cache."""
        is_masked = all(map(self._masks.knows, tasks))
        reading = self._known_reading if is_masked else self._reading
        return has_much_to_decode(tasks, reading.all)

    def read(self, task: Task) -> pa.RecordBatch:
        """Return the task's rows that meet the conditions, as the scan's output columns.

        A large task reads the columns of the first condition, those of the second, then the others: of the
        row groups where a row remains, and where few rows do, of these alone.
        """
        context = self._context
        rows = sum(piece.rows for piece in task)
        context.count_read(rows, 0)
        if self._masks.may_know:
            known = self._masks.of_task(task)
            if known is not None:
                return self._read(task, self._known_reading, known)
        return self._read(task, self._reading, None)

    def _read(self, task: Task, reading: _Reading, keep: pa.BooleanArray | None) -> pa.RecordBatch:
        """Return the rows of `keep` (None: all) that meet the conditions of the reading's steps."""
        context, table = self._context, self._node.table
        rows = sum(piece.rows for piece in task)
        is_small = not reading.has_later_columns or rows <= tuning.READ_AT_ONCE_ROWS_MAX
        if keep is None and is_small:
            batch = read_task(task, reading.all, table, context, self._coded)
            for at, step in enumerate(reading.steps):
                keep = step.mask(batch, keep)
                self._remember(task, reading, at + 1, keep)
            return _output(self._node, batch, keep, self._output_codes)
        batch = read_task(task, reading.first, table, context)
        for at in range(len(reading.steps) + 1):
            if at:
                step = reading.steps[at - 1]
                batch = _beside(batch, read_task(task, step.columns, table, context))
                keep = step.mask(batch, keep)
            if keep is not None and not keep.true_count:
                if at <= reading.conditions:  # a bound that drops rows is of this query alone
                    self._remember(task, reading, reading.conditions, keep)
                empty = [pa.nulls(0, data_type.arrow) for data_type in self._node.types]
                return make_batch(empty, self._node.schema, 0)
            self._remember(task, reading, at, keep)
            is_read = not (reading.others or reading.steps[at:])
            if is_read or keep is None:
                continue
            if keep.true_count * tuning.ROWS_PER_LATE_ROW_MIN <= rows:
                return self._few(task, reading, batch, true_positions(keep), at)
        rest = read_task(task, reading.others, table, context, self._coded)
        return _output(self._node, _beside(batch, rest), keep, self._output_codes)

    def _remember(
        self, task: Task, reading: _Reading, done: int, keep: pa.BooleanArray | None
    ) -> None:
        """Keep the mask `keep` for later queries if all of the scan's conditions have been applied, which `done`, the
        number of applied steps, tells."""
        if done and done == reading.conditions and keep is not None and self._masks.may_know:
            self._masks.remember(task, keep)

    def _few(
        self, task: Task, reading: _Reading, batch: pa.RecordBatch, kept_rows: np.ndarray, done: int
    ) -> pa.RecordBatch:
        """Return the rows of a task that all steps keep, where the first `done` steps have left few: `kept_rows` are
        their positions. Columns that are not in `batch` yet are read for these rows alone."""
        table, context = self._node.table, self._context
        steps = reading.steps[done:]
        others = [s for step in steps for s in step.columns] + reading.others
        rows = sum(piece.rows for piece in task)
        if batch.num_columns:
            batch = batch.take(from_numpy(kept_rows))
        else:
            batch = rows_only(len(kept_rows))
        if others:
            batch = _beside(batch, read_rows(task, kept_rows, others, table, context, self._coded))
        keep: pa.BooleanArray | None = None
        for at, step in enumerate(steps, done + 1):
            keep = step.mask(batch, keep)
            if at == reading.conditions and keep is not None:
                full = np.zeros(rows, bool)
                full[kept_rows[true_positions(keep)]] = True
                self._remember(task, reading, at, from_numpy(full))
        return _output(self._node, batch, keep, self._output_codes)


@dataclass(frozen=True)
class _Step:
    """Conditions that are evaluated together, and the columns that they read first. For many threads."""

    conditions: CodedConditions | RunningBound
    columns: list[Source]

    def mask(self, batch: pa.RecordBatch, kept: pa.BooleanArray | None) -> pa.BooleanArray | None:
        """Return a mask of the rows of `kept` (None: all) that meet the conditions; None without conditions."""
        return self.conditions.mask(batch, kept)


@dataclass(frozen=True)
class _Reading:
    """The order in which the columns of a task are read: `first` before any step, those of each step before it, the
    `others` for the rows that remain. The first `conditions` steps are the conditions of the scan."""

    all: list[Source]
    first: list[Source]
    steps: list[_Step]
    others: list[Source]
    conditions: int

    @staticmethod
    def of(
        sources: Sequence[Source],
        steps: Sequence[tuple[CodedConditions | RunningBound, AbstractSet[str]]],
        conditions: int,
    ) -> _Reading:
        """Return the reading of the sources for steps, each with the columns that it uses; it reads those that no
        step before it read."""
        # A row's position in the task is that among all of its rows: it is read at first.
        first = [s for s in sources if s.name == TASK_ROW]
        waiting = [s for s in sources if s.name != TASK_ROW]
        reading_steps = []
        for step, used in steps:
            reading_steps.append(_Step(step, [s for s in waiting if s.unique in used]))
            waiting = [s for s in waiting if s.unique not in used]
        return _Reading(list(sources), first, reading_steps, waiting, conditions)

    @property
    def has_later_columns(self) -> bool:
        """Return whether some columns are read only after a condition has dropped rows."""
        return bool(self.steps) and (bool(self.others) or len(self.steps) > 1)


def _steps(
    conditions: Sequence[Expression],
) -> Iterator[tuple[Sequence[Expression], frozenset[str]]]:
    """Yield the conditions that are evaluated together, in their order, with the columns that they read and the
    ones before do not."""
    used = [columns_of(condition) for condition in conditions]
    if len(conditions) == 2 and used[0] and used[1] - used[0]:
        yield conditions[:1], used[0]
        yield conditions[1:], used[1] - used[0]
    elif conditions:
        yield conditions, frozenset().union(*used)


def _beside(batch: pa.RecordBatch, others: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns of two batches as one. Both have the same number of rows; one may have no columns."""
    if not others.num_columns or not batch.num_columns:
        return batch if batch.num_columns else others
    names = [*batch.schema.names, *others.schema.names]
    return pa.RecordBatch.from_arrays([*batch.columns, *others.columns], names)


def _output(
    node: Scan, batch: pa.RecordBatch, keep: pa.BooleanArray | None, coded: Collection[str]
) -> pa.RecordBatch:
    """Return the columns of the node's schema, of the rows that `keep` marks; those in `coded` may be
    dictionaries."""
    names = [unique for unique, _ in node.columns]
    if not names:
        return rows_only(batch.num_rows if keep is None else keep.true_count)
    batch = batch.select(names)
    if keep is not None:
        batch = filter_rows(batch, keep)
    batch = decoded(batch, coded)
    return batch if coded else make_batch(batch.columns, node.schema, batch.num_rows)


def _block_batches(
    node: Scan, block: pa.Table, context: ExecutionContext, coded: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a block that is read instead of the table, by the trigger of a view."""
    sources = scan_sources(node)
    context.count_read(block.num_rows, block.nbytes)
    conditions = RowFilter(scan_conditions(node), context)

    def filtered(piece: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the scan's output columns of the rows of a piece that meet the conditions."""
        batch = _block_batch(node, sources, piece, coded)
        batch = _output(node, batch, conditions.mask(batch), coded)
        if batch.num_rows:
            yield batch

    pieces = list(block_pieces.block_pieces(block, context.batch_rows))
    rows = [piece.num_rows for piece in pieces]
    return Stage(context, filtered, pieces, known=KnownTasks(rows, is_long=True))


def _block_batch(
    node: Scan, sources: list[Source], block: pa.Table, coded: Collection[str]
) -> pa.RecordBatch:
    """Return the block's columns by unique name; only those in `coded` stay dictionaries."""
    if not sources:
        return rows_only(block.num_rows)
    columns = []
    for source in sources:
        column = block_column(source, block, node)
        if source.unique not in coded and isinstance(column, pa.DictionaryArray):
            column = column.dictionary_decode()
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=[source.unique for source in sources])


def block_column(source: Source, block: pa.Table, node: Scan) -> pa.Array:
    """Return the source's column of the block; a virtual column has its type's default value."""
    if source.name in block.column_names:
        return single_chunk(block.column(source.name))
    if source.name in VIRTUAL_VALUES or source.name == "_part_offset":
        return pa.repeat(default_value(source.type), block.num_rows)
    raise InternalError(f"The block of {node.table.name} has no column {source.name!r}.")
