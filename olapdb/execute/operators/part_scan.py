"""Reading pieces of parts as batches of a scan's columns, stored and virtual ones."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import rows_only, single_chunk
from olapdb.compute.context import ExecutionContext
from olapdb.config import tuning
from olapdb.engine.column_defaults import DefaultColumns, RowGroups, cached_defaults, read_filled
from olapdb.errors import InternalError
from olapdb.execute.operators.compact_columns import bytes_of_rows
from olapdb.execute.pruning.granule_selection import VIRTUAL_VALUES, PartSelection
from olapdb.functions.kernels.decimal_width import has_short_form, is_short, lengthened
from olapdb.model.schema import Table
from olapdb.records import dataclass
from olapdb.storage.column_chunks import window_groups
from olapdb.types import DataType
from olapdb.types.arrow_values import from_numpy, scalar_of


@dataclass(frozen=True)
class Source:
    """A column of a scan: its unique name in the plan, its name in the table, its type. `shared`: it may come
    in the compact form of the column cache, texts as codes of one dictionary of its part's file, Decimals of
    at most 18 digits with 64 bits."""

    unique: str
    name: str
    type: DataType
    shared: bool = False


@dataclass(frozen=True)
class Piece:
    """Some row groups of one part, read at once; `offsets` are the positions of their first rows."""

    selection: PartSelection
    groups: tuple[int, ...] | None
    group_rows: tuple[int, ...]
    offsets: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Return the number of rows in the piece."""
        return sum(self.group_rows)


Task = tuple[Piece, ...]
"""Pieces that one thread reads into one batch."""

_TASKS_PER_THREAD_MAX = 4
"""Tasks that are shares of what is left have no fewer rows than such a part of all for each thread."""

_SECOND_TASK_FACTOR = 4
"""The second task of a chain has at most so many times the rows of the first one: both tell what a row costs."""

_VARIABLE_BYTES = 32
_CODED_TEXT_BYTES_MAX = 128
"""Longer texts seldom repeat, so that they come as they are where codes are asked for."""
_CODE_BYTES = 4
_SHORT_DECIMAL_BYTES = 8

TASK_ROW = "#task_row"
"""The virtual column of the row's position in its task, from 0. No statement can name it."""


def tasks_of(
    parts: Sequence[PartSelection],
    row_bytes: int,
    context: ExecutionContext,
    rows_max: int | None = None,
    *,
    in_chain: bool = False,
    judged: bool = True,
) -> Iterator[Task]:
    """Yield the parts' row groups in order, as tasks of at most `rows_max` rows (None: LARGE_TASK_ROWS). The first
    tasks have about TASK_ROWS rows and later ones grow; with `in_chain` only the first two are smaller, and none
    without `judged`, which lets the first one tell what rows cost. `row_bytes` is the size of a row of the columns that
    are read. A task has pieces of several parts only where these are small: reading them together copies them."""
    total_rows = sum(sum(part.group_rows) for part in parts)
    rows_of_bytes = max(context.batch_bytes // max(row_bytes, 1), 1)
    rows_max = min(
        tuning.LARGE_TASK_ROWS,
        tuning.LARGE_TASK_ROWS if rows_max is None else rows_max,
        rows_of_bytes,
        total_rows // (tuning.TASKS_PER_THREAD_MIN * context.threads),
    )
    least = min(tuning.TASK_ROWS, rows_of_bytes)
    size = _TaskSize(rows_max, least, total_rows, context.threads, grow=not in_chain, judged=judged)
    task: list[Piece] = []
    rows = 0
    for piece in (piece for part in parts for piece in _pieces(part, size)):
        is_alone = piece.rows > tuning.JOINED_TASK_ROWS_MAX
        if task and (is_alone or rows + piece.rows > size.rows):
            size.count()
            yield tuple(task)
            task, rows = [], 0
        task.append(piece)
        rows += piece.rows
        if is_alone:
            size.count()
            yield tuple(task)
            task, rows = [], 0
    if task:
        yield tuple(task)


def has_much_to_decode(tasks: Sequence[Task], sources: Sequence[Source]) -> bool:
    """Return whether the column cache lacks at least `tuning.UNREAD_VALUES_MIN` values of the columns, so that it pays
    to begin with threads."""
    pieces = [piece for task in tasks for piece in task if not piece.selection.part.inline]
    names = [source.name for source in sources if source.name != TASK_ROW]
    if sum(piece.rows for piece in pieces) * len(names) < tuning.UNREAD_VALUES_MIN:
        return False
    unread, lacking = 0, dict[int, int]()
    for piece in pieces:
        reader = piece.selection.reader
        if id(reader) not in lacking:
            lacking[id(reader)] = sum(not reader.is_cached((name,)) for name in names)
        unread += lacking[id(reader)] * piece.rows
    return unread >= tuning.UNREAD_VALUES_MIN


def joined_tasks(tasks: Sequence[Task]) -> list[Task]:
    """Return tasks for a thread that does all of them: neighbours in one part together, up to some times
    LARGE_TASK_ROWS, and to a few times the rows of the largest task. Threads need tasks for each, and each task has its
    own cost."""
    joined: list[Task] = []
    largest = max((sum(piece.rows for piece in task) for task in tasks), default=0)
    most = tuning.ALONE_TASK_FACTOR * tuning.LARGE_TASK_ROWS
    rows_max = min(most, _TASKS_PER_THREAD_MAX * largest)
    for task in tasks:
        both = _joined_pieces(joined[-1], task) if joined else None
        if both is not None and both.rows <= rows_max:
            joined[-1] = (both,)
        else:
            joined.append(task)
    return joined


def _joined_pieces(left: Task, right: Task) -> Piece | None:
    """Return two tasks of one piece each as one piece, if the pieces follow each other in a window of a part."""
    if len(left) > 1 or len(right) > 1 or left[0].selection is not right[0].selection:
        return None
    (first,), (second,) = left, right
    if first.groups is None or second.groups is None:
        return None
    window = window_groups(first.selection.group_rows[0])
    if not second.groups[0] % window or first.groups[-1] + 1 != second.groups[0]:
        return None
    return Piece(
        first.selection,
        first.groups + second.groups,
        first.group_rows + second.group_rows,
        first.offsets + second.offsets,
    )


class _TaskSize:
    """The rows of the next task. Where they grow, they double each time that every thread has had a task; else all
    but the first have the most, and the last ones a share of what is left, so that threads end at the same time."""

    def __init__(
        self, rows_max: int, least: int, total_rows: int, threads: int, *, grow: bool, judged: bool
    ) -> None:
        self.rows = least if judged else max(rows_max, least)
        self.left = total_rows
        self._rows_max = rows_max
        self._least = min(rows_max, total_rows // (_TASKS_PER_THREAD_MAX * threads))
        self._threads = threads
        self._grows = grow
        self._tasks = 0

    def piece_rows(self, left: int) -> float:
        """Return about how many rows the next piece of a part should have; `left` rows of the part are not yet in
        pieces. Where tasks do not grow, these are divided into pieces of about one size."""
        if self._grows:
            return self.rows
        share = min(self.rows, max(self.left // self._threads, self._least))
        return left / math.ceil(left / max(share, 1))

    def count(self) -> None:
        """Count one task of the present size, and raise the size for the next ones up to its limit: after the first
        task, or where tasks grow after a task for each thread."""
        self._tasks += 1
        if not self._grows:
            share = _SECOND_TASK_FACTOR * self.rows if self._tasks == 1 else self._rows_max
            self.rows = max(self.rows, min(share, self._rows_max))
        elif self._tasks % self._threads == 0:
            self.rows = max(self.rows, min(2 * self.rows, self._rows_max))


def bytes_of_row(sizes: Mapping[str, int], first: Collection[str]) -> int:
    """Return about how many bytes a row of a task takes in memory: the sizes of the columns in `first`, and a share of
    the sizes of the other columns, since these are read for few of the rows."""
    read = sum(size for name, size in sizes.items() if name in first)
    return read + (sum(sizes.values()) - read) // tuning.LATE_TASK_FACTOR


def bytes_of_values(
    source: Source, parts: Sequence[PartSelection], *, compact: bool = False
) -> int:
    """Return the size of a value of a column in memory, as `bytes_of_value` guesses it, or more where parts say that
    values are long: the average of all parts, or that of a large one with longer values."""
    guess = bytes_of_value(source.type, compact=compact)
    if has_one_size(source.type.arrow):
        return guess
    rows, total, largest = 1, 0, 0
    for part in parts:
        size = part.reader.value_bytes(source.name)
        rows, total = rows + part.part.rows, total + size * part.part.rows
        if size > largest and size * part.part.rows > tuning.ROW_GROUP_BYTES_MAX:
            largest = size
    known = max(largest, total // rows)
    return guess if compact and known <= _CODED_TEXT_BYTES_MAX else max(guess, known)


def bytes_of_value(data_type: DataType, *, compact: bool = False) -> int:
    """Return the size of a value in memory, of texts and nested values a guess; of texts in `compact` form that
    of a code."""
    arrow = data_type.arrow
    if has_short_form(arrow):
        return _SHORT_DECIMAL_BYTES
    if compact and pa.types.is_string(arrow):
        return _CODE_BYTES
    if has_one_size(arrow):
        return max(int(arrow.bit_width) // 8, 1)
    return _VARIABLE_BYTES


def has_one_size(arrow: pa.DataType) -> bool:
    """Return whether all values of a type take the same number of bytes."""
    return bool(pa.types.is_primitive(arrow) or pa.types.is_fixed_size_binary(arrow))


def _pieces(part: PartSelection, size: _TaskSize) -> Iterator[Piece]:
    """Yield the selected row groups of a part, neighbours together up to the size of a task."""
    count = len(part.group_rows)
    groups = part.groups if part.groups is not None else tuple(range(count))
    window = window_groups(part.group_rows[0])
    start, left = 0, sum(part.group_rows)
    while start < count:
        stop, rows = start + 1, part.group_rows[start]
        share = size.piece_rows(left)
        # An array of the column cache ends where a window of it does.
        while (
            stop < count
            and rows < share
            and rows + part.group_rows[stop] <= size.rows
            and groups[stop] % window
        ):
            rows += part.group_rows[stop]
            stop += 1
        whole = part.groups is None and start == 0 and stop == count
        yield Piece(
            part,
            None if whole else groups[start:stop],
            part.group_rows[start:stop],
            part.group_offsets[start:stop],
        )
        start = stop
        left -= rows
        size.left -= rows


def narrowed(task: Task, keep: np.ndarray) -> Task:
    """Return the task with only the row groups that `keep` marks: bool, a value for each row group of
    the task."""
    pieces = []
    start = 0
    for piece in task:
        count = len(piece.group_rows)
        kept = np.flatnonzero(keep[start : start + count])
        start += count
        if len(kept) == count:
            pieces.append(piece)
        elif len(kept):
            groups = range(count) if piece.groups is None else piece.groups
            pieces.append(
                Piece(
                    piece.selection,
                    tuple(groups[at] for at in kept),
                    tuple(piece.group_rows[at] for at in kept),
                    tuple(piece.offsets[at] for at in kept),
                )
            )
    return tuple(pieces)


def read_rows(
    task: Task,
    rows: np.ndarray,
    sources: Sequence[Source],
    table: Table,
    context: ExecutionContext,
    coded: Collection[str] = (),
) -> pa.RecordBatch:
    """Read the columns of some rows of a task, from the row groups that have them: those that follow each other
    together, which needs no copy of what the column cache has. Columns of fixed width that it has are read at once.

    `rows` are ascending positions in the task, one at least. `coded` is as in `read_task`."""
    sizes = np.array([size for piece in task for size in piece.group_rows], np.int64)
    ends = np.cumsum(sizes)
    owners = np.searchsorted(ends, rows, side="right")
    keep = np.zeros(len(sizes), bool)
    keep[owners] = True
    if len(task) == 1 and all(source.shared or _has_fixed_width(source) for source in sources):
        names = [source.name for source in sources]
        if keep.sum() > 1 and task[0].selection.reader.is_cached(names):
            return read_task(task, sources, table, context, coded).take(from_numpy(rows))
    starts = np.flatnonzero(keep & ~np.concatenate([[False], keep[:-1]]))
    stops = np.flatnonzero(keep & ~np.concatenate([keep[1:], [False]])) + 1
    batches = []
    for start, stop in zip(starts, stops, strict=True):
        stretch = np.zeros(len(sizes), bool)
        stretch[start:stop] = True
        first, last = np.searchsorted(rows, (ends[start] - sizes[start], ends[stop - 1]))
        batch = read_task(narrowed(task, stretch), sources, table, context, coded)
        batches.append(batch.take(from_numpy(rows[first:last] - (ends[start] - sizes[start]))))
    if len(batches) == 1:
        return batches[0]
    columns = [_joined(list(chunks)) for chunks in zip(*(b.columns for b in batches), strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=batches[0].schema.names)


def _has_fixed_width(source: Source) -> bool:
    """Return whether a column's values have one width."""
    arrow = source.type.arrow
    return bool(pa.types.is_primitive(arrow) or pa.types.is_decimal(arrow))


def read_task(
    task: Task,
    sources: Sequence[Source],
    table: Table,
    context: ExecutionContext,
    coded: Collection[str] = (),
) -> pa.RecordBatch:
    """Read the columns of all rows of a task, under their unique names.

    `coded` has unique names of columns that may be dictionaries: they are, if all pieces of the
    task store them so."""
    rows = sum(piece.rows for piece in task)
    if not sources:
        return rows_only(rows)
    in_parts = [source for source in sources if source.name != TASK_ROW]
    pieces = [_read(piece, in_parts, table, context, coded) for piece in task if in_parts]
    columns = iter([list(chunks) for chunks in zip(*pieces, strict=True)])
    arrays = [_ascending(rows) if s.name == TASK_ROW else _joined(next(columns)) for s in sources]
    batch = pa.RecordBatch.from_arrays(arrays, names=[source.unique for source in sources])
    if batch.num_rows != rows:
        raise InternalError(f"{batch.num_rows} rows were read where the parts have {rows}.")
    stored = (a for a, s in zip(arrays, sources, strict=True) if s.name != TASK_ROW)
    context.count_read(0, sum(map(bytes_of_rows, stored)))
    return batch


def _ascending(rows: int) -> pa.Array:
    """Return the numbers from 0 up to `rows`, excluded; UInt64."""
    return _ascending_numbers(max(rows - 1, 0).bit_length()).slice(0, rows)


@cache
def _ascending_numbers(bits: int) -> pa.Array:
    """Return the numbers below 2^bits, made once: tasks have about the same numbers of rows."""
    return from_numpy(np.arange(1 << bits, dtype=np.uint64))


def _joined(chunks: list[pa.Array]) -> pa.Array:
    """Return the values of all pieces of a task as one array."""
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(_same_type(chunks))


def _same_type(arrays: list[pa.Array]) -> list[pa.Array]:
    """Return the arrays with one type, so that they can be joined: unchanged if their types agree, else without their
    compact forms. Dictionaries that have more values than there are rows are decoded, too."""
    if any(is_short(array.type) for array in arrays):
        is_same = len({array.type for array in arrays}) == 1
        return arrays if is_same else [lengthened(array) for array in arrays]
    dictionaries = [array.dictionary for array in arrays if isinstance(array, pa.DictionaryArray)]
    # Arrow joins dictionaries by hashing their values.
    texts = sum(map(len, dictionaries)) if len(dictionaries) == len(arrays) else 0
    if len({array.type for array in arrays}) == 1 and texts <= sum(map(len, arrays)):
        return arrays
    return [a.dictionary_decode() if isinstance(a, pa.DictionaryArray) else a for a in arrays]


def _read(
    piece: Piece,
    sources: Sequence[Source],
    table: Table,
    context: ExecutionContext,
    coded: Collection[str],
) -> list[pa.Array]:
    """Read the columns of one piece, in the order of the sources."""
    stored = list(dict.fromkeys(s.name for s in sources if table.column(s.name) is not None))

    def defaults() -> DefaultColumns:
        """Return the table's default columns from the cache, for parts that lack a column."""
        cache = context.require_store().cache.defaults
        return cached_defaults(table, context.require_snapshot(), context.environment, cache)

    columns = read_filled(
        RowGroups(
            piece.selection.reader, piece.groups, piece.rows, [s.name for s in sources if s.shared]
        ),
        table,
        stored,
        defaults,
        context.environment,
        coded=[s.name for s in sources if s.unique in coded],
    )
    return [
        _of_one_dictionary(piece, s, single_chunk(columns[s.name]))
        if s.name in columns
        else _virtual(piece, s, table)
        for s in sources
    ]


def _of_one_dictionary(piece: Piece, source: Source, column: pa.Array) -> pa.Array:
    """Return a column of a piece as codes of the dictionary that all parts of the query have, if there is one."""
    joint = piece.selection.joints.get(source.name) if source.shared else None
    return column if joint is None else joint.translated(piece.selection.reader.cache_path, column)


def _virtual(piece: Piece, source: Source, table: Table) -> pa.Array:
    """Return a virtual column of a piece."""
    if source.name == "_part_offset":
        offsets = [
            np.arange(start, start + rows, dtype=np.uint64)
            for start, rows in zip(piece.offsets, piece.group_rows, strict=True)
        ]
        return from_numpy(np.concatenate(offsets)).cast(source.type.arrow)
    value = VIRTUAL_VALUES.get(source.name)
    if value is None:
        raise InternalError(f"Table {table.name} has no column {source.name!r}.")
    return pa.repeat(scalar_of(value(piece.selection.part), source.type.arrow), piece.rows)
