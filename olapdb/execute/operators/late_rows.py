"""Late materialisation: ORDER BY … LIMIT and LIMIT over a stored table.

The columns of conditions and sort keys are read first, with the address of each row: the number of
its task and its position there.  All other columns are read at the end, of the rows that are left.

ORDER BY … LIMIT keeps a running bound: the first key of the worst row that can still be in the answer.
Row groups whose least and greatest values lie behind it are not read, and those that begin with the
best values are read first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import cut, make_batch, single_batch, table_of, take_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.ordering import sort_indices
from olapdb.config import tuning
from olapdb.execute.operators.limit import limit_batches
from olapdb.execute.operators.part_scan import (
    TASK_ROW,
    Source,
    Task,
    bytes_of_values,
    joined_tasks,
    narrowed,
    read_rows,
)
from olapdb.execute.operators.project import project_batches
from olapdb.execute.operators.running_bound import RunningBound
from olapdb.execute.operators.scan import TaskReader, scan_conditions, scan_tasks
from olapdb.execute.operators.sort import not_after, nth_value, order_columns, sort_batches
from olapdb.execute.pruning.granule_selection import live_parts
from olapdb.execute.pruning.interval_analysis import ValueInterval, interval_of_bounds
from olapdb.functions.kernels.columns import from_values
from olapdb.lazy import LazyModule
from olapdb.model.columns import PartColumns
from olapdb.model.part import ColumnBounds
from olapdb.plan.expressions import ColumnRef, columns_of, is_repeatable, substitute
from olapdb.plan.nodes import Limit, Project, Scan, Sort, SortKey
from olapdb.records import dataclass
from olapdb.types import UINT64
from olapdb.types.arrow_values import from_numpy, to_numpy

if TYPE_CHECKING:
    from olapdb.plan import wide_values
else:
    wide_values = LazyModule("olapdb.plan.wide_values")

_SHARES_OF_ROWS = 32
"""The part of the memory that some rows of the answer may take."""

_SHARES_OF_KEYS = 8
"""The part of the memory that the keys of the answer's rows may take."""

_FEW_ROWS = 1_000
_ROWS_PER_ROW = 4
"""More than a few rows are read late if the table has so many for each: else all row groups are read again, for each part
of the answer that memory takes."""

TASK_BITS = 32
"""The bits of an address below the task's number: the position in the task."""


def late_top_batches(node: Sort, context: ExecutionContext) -> Iterator[pa.RecordBatch] | None:
    """Return the batches of ORDER BY … LIMIT over a stored table, or over a projection of one. None
    for other plans, and where the limit is too large."""
    if node.limit is None or not 0 < node.limit <= tuning.LATE_ROWS_MAX:
        return None
    project, keys = None, node.keys
    scan = node.child
    if isinstance(scan, Project):
        project, scan = scan, scan.child
        expressions = dict(project.expressions)
        if not all(map(is_repeatable, expressions.values())):
            return None
        keys = tuple(
            replace(key, expression=substitute(key.expression, expressions)) for key in keys
        )
        if project.is_wide and wide_values.may_be_wide([key.expression for key in keys]):
            return None  # the Project computes them some rows at a time
    if not isinstance(scan, Scan) or not _reads_parts(scan, context):
        return None
    if not all(is_repeatable(key.expression) for key in keys):
        return None
    used = frozenset().union(*(columns_of(key.expression) for key in keys))
    if not _fit_memory(node.limit, scan, used, context):
        return None  # the operators that do without can spill
    if node.limit > max(_FEW_ROWS, _rows_of(scan, context) // _ROWS_PER_ROW):
        return None
    context.runs_within(node, scan, *(() if project is None else (project,)))
    context.note(node, "Late rows: other columns are read for the rows of the answer alone")
    rows = _top_rows(keys, node.limit, scan, context)
    return rows if project is None else project_batches(project, rows, context)


def late_limit_batches(node: Limit, context: ExecutionContext) -> Iterator[pa.RecordBatch] | None:
    """Return the batches of LIMIT over a stored table. None for other plans, WITH TIES, and where
    the limit is too large."""
    scan = node.child
    if node.count is None or node.ties or not isinstance(scan, Scan):
        return None
    if not 0 < node.count + node.offset <= tuning.LATE_ROWS_MAX or not _reads_parts(scan, context):
        return None
    context.runs_within(node, scan)
    context.note(node, "Late rows: other columns are read for the rows of the answer alone")
    return _limited_rows(node, scan, context)


def _rows_of(scan: Scan, context: ExecutionContext) -> int:
    """Return the number of rows of the scan's table, conditions apart."""
    return sum(part.rows for part in live_parts(scan, context))


def _fit_memory(rows: int, scan: Scan, used: Collection[str], context: ExecutionContext) -> bool:
    """Return whether memory takes so many rows of the scan's columns in `used`, as far as the catalog tells."""
    names = [column for unique, column in scan.columns if unique in used]
    parts = live_parts(scan, context)
    total = sum(part.uncompressed_bytes.get(name, 0) for part in parts for name in names)
    row_bytes = total // max(sum(part.rows for part in parts), 1)
    return rows * row_bytes <= context.memory.available_bytes // _SHARES_OF_KEYS


def _reads_parts(scan: Scan, context: ExecutionContext) -> bool:
    """Return whether the scan reads columns of parts, row by row: not a view's block, and not rows
    that FINAL combines."""
    if scan.table.id in context.blocks or not scan.columns:
        return False
    return not (scan.final and scan.table.engine.combines)


def _top_rows(
    keys: Sequence[SortKey], limit: int, scan: Scan, context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the first `limit` rows of the scan in the order of the keys; rows with equal keys in the
    order of the parts."""
    used = frozenset().union(*(columns_of(k.expression) for k in keys))
    addressed = _addressed(scan, used, context)
    tasks = list(scan_tasks(addressed, context, scan, tuning.TOP_TASK_ROWS))
    intervals = _KeyIntervals.of(keys[0], scan, tasks)
    if not scan_conditions(scan) and (intervals is None or not intervals.tell_groups_apart):
        # No task can be left out, and without conditions all of them take little: fewer tasks cost less.
        intervals, tasks = None, joined_tasks(tasks)
    top = _TopReader(addressed, tuple(keys), limit, tasks, intervals, context)
    address = SortKey(ColumnRef(UINT64, TASK_ROW))
    sort = Sort(addressed, (*keys, address), limit)
    batches = sort_batches(
        sort, _run(top, top.task_order(), context, tuning.BOUNDED_TASK_SHARE), context
    )
    yield from _completed(list(batches), addressed, scan, top.tasks, context)


def _limited_rows(node: Limit, scan: Scan, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    """Yield the rows offset … offset + count of the scan, in the order of the parts."""
    addressed = _addressed(scan, frozenset(), context)
    tasks = list(scan_tasks(addressed, context, scan))
    reader = _AddressReader(addressed, tasks, context)
    if scan_conditions(scan):
        source = _run(reader, range(len(tasks)), context)
    else:
        source = reader.unread(node.offset + (node.count or 0))
    batches = limit_batches(replace(node, child=addressed), source, context)
    yield from _completed(list(batches), addressed, scan, tasks, context)


def _run(
    reader: _AddressReader, numbers: Sequence[int], context: ExecutionContext, share: int = 1
) -> Iterator[pa.RecordBatch]:
    """Yield the batches that the reader keeps of the tasks with these numbers, in order. To decide whether threads pay,
    each task but the first counts with one in `share` of its rows: a bound lets the reader skip most others."""
    rows = [sum(piece.rows for piece in reader.tasks[number]) for number in numbers]
    rows[1:] = [count // share for count in rows[1:]]
    return context.parallel_if_long(reader.read, numbers, rows)


def _addressed(scan: Scan, used: frozenset[str], context: ExecutionContext) -> Scan:
    """Return the scan of only the columns in `used`, those that its conditions read, and the rows'
    addresses."""
    used = used.union(*map(columns_of, scan_conditions(scan)))
    kept = [
        (column, data_type)
        for column, data_type in zip(scan.columns, scan.types, strict=True)
        if column[0] in used
    ]
    addressed = replace(
        scan,
        columns=(*(column for column, _ in kept), (TASK_ROW, TASK_ROW)),
        types=(*(data_type for _, data_type in kept), UINT64),
    )
    if context.profile is not None:
        context.profile.stand_in(addressed, scan)
    return addressed


class _AddressReader:
    """A reader of tasks by their number that turns positions in a task into addresses."""

    def __init__(
        self,
        scan: Scan,
        tasks: list[Task],
        context: ExecutionContext,
        bound: RunningBound | None = None,
    ) -> None:
        self._scan = scan
        self._context = context
        self._reader = TaskReader(scan, context, bound=bound)
        self.tasks = tasks

    def read(self, number: int) -> pa.RecordBatch:
        """Return the rows of a task that the conditions keep, with their addresses."""
        return self._addressed(self._reader.read(self.tasks[number]), number)

    def unread(self, rows_max: int) -> Iterator[pa.RecordBatch]:
        """Yield the addresses of the first `rows_max` rows of a scan without other columns."""
        for number, task in enumerate(self.tasks):
            rows = min(sum(piece.rows for piece in task), rows_max)
            self._context.count_read(rows, 0)
            yield self._with_addresses([], number, np.arange(rows, dtype=np.uint64))
            rows_max -= rows
            if not rows_max:
                return

    def _addressed(self, batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
        """Return the rows of a task with addresses in place of positions."""
        positions = to_numpy(batch.column(TASK_ROW))
        return self._with_addresses(batch.columns[:-1], number, positions)

    def _with_addresses(
        self, columns: Sequence[pa.Array], number: int, positions: np.ndarray
    ) -> pa.RecordBatch:
        """Return the columns and the addresses of positions in a task."""
        addresses = from_values(positions | np.uint64(number << TASK_BITS), pa.uint64())
        return make_batch([*columns, addresses], self._scan.schema, len(positions))


class _TopReader(_AddressReader):
    """A reader that keeps of each task the rows that can be among the first `limit`; thread-safe."""

    def __init__(
        self,
        scan: Scan,
        keys: tuple[SortKey, ...],
        limit: int,
        tasks: list[Task],
        intervals: _KeyIntervals | None,
        context: ExecutionContext,
    ) -> None:
        """Prepare to read the tasks; `intervals` are of the first key, where they can leave out row groups."""
        self._bound = RunningBound(keys[0], limit)
        super().__init__(scan, tasks, context, self._bound)
        self._keys = keys
        self._limit = limit
        self._intervals = intervals

    def task_order(self) -> Sequence[int]:
        """Return the numbers of the tasks, those with the best values of the first key first."""
        if self._intervals is None:
            return range(len(self.tasks))
        return self._intervals.task_order()

    def read(self, number: int) -> pa.RecordBatch:
        """Return the rows of a task that may be in the answer, at most `limit`, with their
        addresses."""
        bound, first_key = self._bound.value, self._keys[0]
        if bound is not None and self._intervals is not None:
            keep = self._intervals.not_after(number, bound)
            self.tasks[number] = narrowed(self.tasks[number], keep)
            if not self.tasks[number]:
                return self._with_addresses(self._no_columns(), number, np.zeros(0, np.uint64))
        batch = self._reader.read(self.tasks[number])
        if bound is not None and self._bound.column is None:
            batch = not_after(bound, first_key, batch, self._context)
        if batch.num_rows >= self._limit:
            batch = self._first_rows(batch)  # sorted: the last row is the worst
            last = batch.slice(batch.num_rows - 1)
            self._bound.tighten(order_columns([first_key], last, self._context)[0].values[0])
        return self._addressed(batch, number)

    def _no_columns(self) -> list[pa.Array]:
        """Return the scan's columns without rows and without the addresses."""
        return [pa.nulls(0, data_type.arrow) for data_type in self._scan.types[:-1]]

    def _first_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the first `limit` rows of a batch that has more, sorted."""
        first_key, context = self._keys[0], self._context
        sampled = tuning.TOP_SAMPLE_PER_ROW * self._limit
        for rows in (sampled, batch.num_rows):
            if self._limit < rows <= batch.num_rows:
                sample = order_columns([first_key], batch.slice(0, rows), context)[0].values
                bound = nth_value(sample, first_key, self._limit)
                if bound is not None:
                    batch = not_after(bound, first_key, batch, context)
        order = sort_indices(order_columns(self._keys, batch, context), batch.num_rows)
        return take_rows(batch, order.slice(0, self._limit))


@dataclass(frozen=True)
class _KeyIntervals:
    """The bounds of a sort key's values in each row group of each task; `starts` has the number of
    each task's first row group, and one number more."""

    key: SortKey
    values: ValueInterval
    starts: np.ndarray

    @staticmethod
    def of(key: SortKey, scan: Scan, tasks: Sequence[Task]) -> _KeyIntervals | None:
        """Return the bounds of a key that is a column of the table. None for other keys, and if no
        row group has bounds."""
        if not isinstance(key.expression, ColumnRef):
            return None
        column = dict(scan.columns)[key.expression.name]
        if scan.table.column(column) is None:
            return None
        part_columns = PartColumns(scan.table)
        bounds: list[ColumnBounds | None] = []
        starts = [0]
        for task in tasks:
            for piece in task:
                if len(piece.group_rows) == 1 and piece.groups is None:
                    # The footer may be unread, and the part's bounds say the same.
                    bounds.append(part_columns.bounds(piece.selection.part).get(column))
                    continue
                of_groups = piece.selection.reader.bounds_in_groups(column)
                numbers = range(len(of_groups)) if piece.groups is None else piece.groups
                bounds.extend(of_groups[number] for number in numbers)
            starts.append(len(bounds))
        values = interval_of_bounds(bounds, key.expression.type)
        return None if values is None else _KeyIntervals(key, values, np.array(starts))

    @property
    def tell_groups_apart(self) -> bool:
        """Return whether all values of one row group lie before all of another one, so that the best rows of one can
        leave out the other."""
        known = from_numpy(self.values.known & self.values.has_values)
        greatest_low = pc.max(self.values.low.filter(known))
        least_high = pc.min(self.values.high.filter(known))
        return bool(pc.greater(greatest_low, least_high).as_py())

    @property
    def _best(self) -> pa.Array:
        """Return for each row group the value of the key that sorts first: the greatest for a descending key, else the
        least."""
        return self.values.high if self.key.descending else self.values.low

    @property
    def _may_be_first(self) -> np.ndarray:
        """Return a mask of the row groups that must be read whatever the bound is: their values are unknown, or they
        may have NULLs and the order puts these first."""
        unknown: np.ndarray = ~(self.values.known & self.values.has_values)
        return unknown | self.values.may_be_null if self.key.nulls_first else unknown

    def not_after(self, task: int, bound: pa.Scalar) -> np.ndarray:
        """Return a mask of the task's row groups that may have a row at or before the bound."""
        groups = slice(self.starts[task], self.starts[task + 1])
        best = self._best[groups.start : groups.stop]
        reaches = (pc.greater_equal if self.key.descending else pc.less_equal)(best, bound)
        mask: np.ndarray = to_numpy(reaches) | self._may_be_first[groups]
        return mask

    def task_order(self) -> Sequence[int]:
        """Return the numbers of the tasks, those with the best values first; stable."""
        order = to_numpy(
            pc.array_sort_indices(
                self._best, order="descending" if self.key.descending else "ascending"
            )
        )
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        rank[self._may_be_first] = -1
        best_of_task = np.minimum.reduceat(rank, self.starts[:-1])
        return [int(number) for number in np.argsort(best_of_task, kind="stable")]


def _completed(
    batches: list[pa.RecordBatch],
    addressed: Scan,
    scan: Scan,
    tasks: Sequence[Task],
    context: ExecutionContext,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with all columns of `scan`, of which `batches` have those of `addressed`."""
    rows = single_batch(table_of(batches, addressed.schema))
    if not rows.num_rows:
        return
    present = {unique for unique, _ in addressed.columns}
    others = [
        Source(unique, column, data_type)
        for (unique, column), data_type in zip(scan.columns, scan.types, strict=True)
        if unique not in present
    ]
    with context.memory.account("LIMIT") as account:
        account.grow(rows.nbytes)
        for some in cut(rows, _rows_at_once(others, tasks, context)):
            held_bytes = account.held_bytes
            columns = {name: some.column(name) for name in some.schema.names}
            if others:
                addresses = to_numpy(some.column(TASK_ROW))
                fetched = _fetch(addresses, others, scan, tasks, context, account)
                columns.update((name, fetched.column(name)) for name in fetched.schema.names)
            arrays = [columns[unique] for unique, _ in scan.columns]
            yield from cut(make_batch(arrays, scan.schema, some.num_rows), context.batch_rows)
            account.set(held_bytes)


def _rows_at_once(
    sources: Sequence[Source], tasks: Sequence[Task], context: ExecutionContext
) -> int:
    """Return how many rows of the answer to read columns for at once, one at least: those that memory takes twice, in
    the order of the table and in that of the answer."""
    parts = {id(p.selection.part): p.selection for task in tasks for p in task}
    row_bytes = sum(bytes_of_values(source, list(parts.values())) for source in sources)
    return max(context.memory.available_bytes // (_SHARES_OF_ROWS * max(row_bytes, 1)), 1)


def _fetch(
    addresses: np.ndarray,
    sources: Sequence[Source],
    scan: Scan,
    tasks: Sequence[Task],
    context: ExecutionContext,
    account: MemoryAccount,
) -> pa.RecordBatch:
    """Read columns of the rows at these addresses, in the order of the addresses."""
    order = np.argsort(addresses)
    ascending = addresses[order]
    numbers = (ascending >> np.uint64(TASK_BITS)).astype(np.int64)
    positions = (ascending & np.uint64((1 << TASK_BITS) - 1)).astype(np.int64)
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))

    def read(segment: tuple[int, np.ndarray]) -> pa.RecordBatch:
        """Return the rows of one task at positions; `segment` is the task's number and the positions."""
        number, rows = segment
        return read_rows(tasks[number], rows, sources, scan.table, context)

    segments = zip(numbers[starts].tolist(), np.split(positions, starts[1:]), strict=True)
    batches = []
    for batch in context.parallel(read, segments):
        account.grow(2 * batch.nbytes)  # itself, and its rows in the answer
        batches.append(batch)
    rows = single_batch(pa.Table.from_batches(batches))
    original = np.empty(len(order), np.int64)
    original[order] = np.arange(len(order))
    return take_rows(rows, from_numpy(original))
