"""Sorting past memory: sorted runs are written to a temporary file and merged.

A run is the rows that memory took, sorted and cut into blocks.  Of each run one block is held.  The
blocks are merged up to the first of their last rows, all at once: no unread row comes before it.

run 0   1 4 | 9 …       bound 4, the last row of run 0's block
run 1   2 5 | 6 …       merged: 1 2 3 4; held: 5, nothing of run 0, 7
run 2   3 7 | 8 …
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import cut, single_chunk, take_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.ordering import OrderColumn, dense_ranks, sort_indices
from olapdb.compute.row_buffer import RowBuffer, evaluate_in_batches
from olapdb.compute.spill.budget import SpillBudget
from olapdb.compute.spill.files import Extent, SpillFile, joined
from olapdb.errors import MemoryLimitExceeded
from olapdb.plan.expressions import ColumnRef
from olapdb.plan.nodes import Schema, SortKey
from olapdb.result import close_iterator
from olapdb.types.arrow_values import from_numpy

SORT_BYTES_PER_ROW = 48
"""Row numbers, packed keys, and two copies of both to sort them."""
KEY_BYTES = 16
"""About the bytes of a computed key."""
KEY_SAMPLE_ROWS = 64
"""Measure computed texts and arrays in so many rows of a batch."""
BLOCK_BYTES_MIN, BLOCK_BYTES_MAX = 1 << 16, 16 << 20
BLOCKS_OF_MEMORY = 128
"""Cut a run into blocks of this fraction of the query's memory."""
SEARCH_STEP = 512
"""Rows of a block of which one is compared first to find how many come before a row."""
CUT_ROWS_PER_RUN = 256
"""Rows of a merge are not cut into pieces of fewer rows than this for each of the runs."""
MERGE_SHARE = 2
"""Merging takes at most one part in so many of the memory, or that of two runs: the operators that read the sorted rows need
the rest."""
MERGE_COPIES = 4
"""What merging needs of each block: itself, joined with the others, its keys, and its result."""

Run = list[Extent]


class Sorter:
    """Sorts rows by keys, stable; rows past the memory are on disk. Use it in a `with` block.

    `limit` is how many of the first rows the caller wants at most."""

    def __init__(
        self,
        keys: Sequence[SortKey],
        schema: Schema,
        context: ExecutionContext,
        account: MemoryAccount,
        limit: int | None = None,
    ) -> None:
        self._keys = keys
        self._schema = schema
        self._context = context
        self._account = account
        self._limit = limit
        self._buffer = RowBuffer(schema, account)
        self._budget = SpillBudget("sort", context, account)
        self._file: SpillFile | None = None
        self._runs: list[Run] = []
        self._key_bytes_max = 0
        self.reserved_row_bytes = 0
        """The bytes for each row that the caller will use to sort in memory, if nothing spills."""
        memory_bytes = context.memory.limit_bytes
        self._block_bytes = min(
            max(memory_bytes // BLOCKS_OF_MEMORY, BLOCK_BYTES_MIN), BLOCK_BYTES_MAX
        )

    @property
    def rows(self) -> int:
        """Return the number of rows in memory."""
        return self._buffer.rows

    @property
    def nbytes(self) -> int:
        """Return the bytes of the rows in memory."""
        return self._buffer.nbytes

    @property
    def spilled(self) -> bool:
        """Return whether any rows are on disk."""
        return bool(self._runs)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows. Writes a run first if memory does not take them."""
        if not batch.num_rows:
            return  # batches without rows would become a run without blocks
        row_bytes = SORT_BYTES_PER_ROW + self._key_bytes(batch) + self.reserved_row_bytes
        for piece in self._budget.pieces(batch, row_bytes):
            self._add(piece, row_bytes)

    def _key_bytes(self, batch: pa.RecordBatch) -> int:
        """Estimate the bytes a row that the computed keys take: the maximum over the batches so far. 0 without a memory
        limit."""
        if not self._budget.enabled or not batch.num_rows:
            return self._key_bytes_max
        nbytes = 0
        sample = batch.slice(0, KEY_SAMPLE_ROWS)
        for at in self._computed:
            expression = self._keys[at].expression
            nbytes += KEY_BYTES
            if not pa.types.is_primitive(expression.type.arrow):
                context = self._context
                values = evaluate_array(expression, sample, context.environment, context.subqueries)
                nbytes += values.nbytes // sample.num_rows
        self._key_bytes_max = max(self._key_bytes_max, nbytes)
        return self._key_bytes_max

    def _add(self, batch: pa.RecordBatch, row_bytes: int) -> None:
        """Add rows that take a small part of the memory; to sort them takes `row_bytes` more for each. Spill what is
        there first if memory does not take both."""
        buffer = self._buffer
        nbytes = buffer.nbytes + batch.nbytes
        needed = 2 * nbytes + (buffer.rows + batch.num_rows) * row_bytes
        if buffer.rows and (
            self._budget.is_exceeded(nbytes, needed)
            or (self._budget.enabled and not buffer.has_room(batch))
        ):
            self._spill()
        buffer.add(batch)

    def spill(self) -> None:
        """Write the rows in memory to disk: the caller has no room to work on them at once."""
        self._spill()

    def cut_back(self) -> pa.RecordBatch | None:
        """Sort the rows in memory and keep only the first `limit` of them. Return the last of these as a batch of one
        row, None if there are none. Call it only while no row is on disk."""
        top = []
        for batch in self._sorted_in_memory():
            self._account.grow(batch.nbytes)
            top.append(batch)
        self._account.set(0)
        for batch in top:
            self._buffer.add(batch)
        return top[-1].slice(top[-1].num_rows - 1) if top else None

    def unsorted(self) -> pa.RecordBatch:
        """Return the rows in memory in the order in which they came; the account still counts
        them."""
        return self._buffer.concatenate()

    def hold(self, rows: pa.RecordBatch) -> None:
        """Hold these rows in the place of those that `unsorted` returned."""
        self._account.set(0)
        self._buffer.add(rows)

    def sorted(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows in order, a batch at a time, and release them."""
        if not self._runs:
            yield from self._sorted_in_memory()
            return
        if self._buffer.rows:
            self._spill()
        for batch in self._merged():
            columns = batch.columns[: len(self._schema)]
            rows = pa.RecordBatch.from_arrays(columns, names=[f.name for f in self._schema])
            yield from cut(rows, self._rows_at_once(rows))

    def _sorted_in_memory(self) -> Iterator[pa.RecordBatch]:
        """Yield the buffer's rows in order and empty it."""
        rows = self._buffer.rows
        if not rows:
            return
        batch = self._buffer.concatenate()
        _, order = self._order(batch, self._account)
        self._account.set(batch.nbytes + order.nbytes)
        step = self._rows_at_once(batch)
        for start in range(0, len(order), step):
            self._context.check()
            yield take_rows(batch, order.slice(start, step))

    def _rows_at_once(self, rows: pa.RecordBatch) -> int:
        """Return how many of the rows a batch may have: fewer where they are wide, and batches may be cut by bytes."""
        if not self._context.cuts_wide_rows:
            return self._context.batch_rows
        bytes_max = max(self._context.batch_bytes, BLOCK_BYTES_MIN)
        of_bytes = int(rows.num_rows * bytes_max // max(rows.nbytes, 1))
        return min(self._context.batch_rows, max(of_bytes, 1))

    def _order(
        self, batch: pa.RecordBatch, account: MemoryAccount
    ) -> tuple[list[OrderColumn], pa.Array]:
        """Return the keys of the rows, and the rows' positions in order, up to the limit; the account
        counts what that takes."""
        keys = [
            OrderColumn(
                evaluate_in_batches(key.expression, batch, self._context, account),
                key.descending,
                key.nulls_first,
            )
            for key in self._keys
        ]
        account.grow(batch.num_rows * SORT_BYTES_PER_ROW)
        order = sort_indices(keys, batch.num_rows)
        return keys, order if self._limit is None else order.slice(0, self._limit)

    # --- runs

    def _spill(self) -> None:
        """Write the rows in memory as a run of each thread, or as several where memory does not take
        sorting them."""
        if self._file is None:
            self._file = self._context.temporary().file("Sort")
        batches = self._buffer.drain()
        self._account.set(0)
        shares = min(self._context.threads, len(batches))
        ends = [len(batches) * share // shares for share in range(shares + 1)]
        runs = [batches[start:end] for start, end in pairwise(ends)]
        batches.clear()
        for written in self._context.parallel(self._runs_of, runs):
            self._runs += written

    def _runs_of(self, batches: list[pa.RecordBatch]) -> list[Run]:
        """Sort batches and write them; return the run, or one of each half of them. Empties the list."""
        with self._context.memory.account("ORDER BY") as account:
            buffer = RowBuffer(self._schema, account)
            try:
                for batch in batches:
                    buffer.add(batch)
                batch = buffer.concatenate()
                keys, order = self._order(batch, account)
            except MemoryLimitExceeded:
                if len(batches) == 1:
                    raise
                account.set(0)
                middle = len(batches) // 2
                return [*self._runs_of(batches[:middle]), *self._runs_of(batches[middle:])]
            batches.clear()
            columns = [*batch.columns, *(keys[at].values for at in self._computed)]
            names = [str(at) for at in range(len(columns))]
            table = pa.RecordBatch.from_arrays(columns, names=names)
            return [self._write(self._taken(table, order))]

    @property
    def _computed(self) -> list[int]:
        """Return the numbers of the keys that are not columns of the rows; a run has a column for
        each behind the others."""
        return [
            at for at, key in enumerate(self._keys) if not isinstance(key.expression, ColumnRef)
        ]

    def _taken(self, rows: pa.RecordBatch, order: pa.Array) -> Iterator[pa.RecordBatch]:
        """Yield the rows at the positions, in their order, in batches of at most a batch's rows and bytes."""
        step = self._rows_at_once(rows)
        for start in range(0, len(order), step):
            self._context.check()
            yield rows.take(order.slice(start, step))

    def _write(self, batches: Iterator[pa.RecordBatch]) -> Run:
        """Write sorted batches, in blocks of bounded size; return the run."""
        assert self._file is not None
        run: Run = []
        for batch in batches:
            pieces = -(-batch.nbytes // self._block_bytes) or 1
            step = max(-(-batch.num_rows // pieces), 1)
            run += [self._file.append(piece) for piece in cut(batch, step)]
        return run

    # --- merging

    def _merged(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all runs in order; merges some of them to one as long as they are too
        many."""
        assert self._file is not None
        runs, self._runs = self._runs, []
        block_bytes = max(extent.nbytes for run in runs for extent in run)
        memory_bytes = self._account.available_bytes // MERGE_SHARE
        fan_in = max(memory_bytes // (MERGE_COPIES * block_bytes), 2)
        while len(runs) > fan_in:
            runs = [
                self._write(self._merge(runs[at : at + fan_in])) if at + 1 < len(runs) else runs[at]
                for at in range(0, len(runs), fan_in)
            ]
        yield from self._merge(runs)

    def _merge(self, runs: Sequence[Run]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some runs in order; rows of equal keys in the order of the runs."""
        assert self._file is not None
        remaining = self._limit
        ordered = self._context.parallel(self._in_order, self._steps(runs))
        for rows in ordered:
            if remaining is not None:
                rows = rows.slice(0, remaining)
                remaining -= rows.num_rows
            yield rows
            if remaining == 0:
                close_iterator(ordered)
                return

    def _steps(self, runs: Sequence[Run]) -> Iterator[Sequence[pa.RecordBatch]]:
        """Yield the next rows of each run that come before all others, in the order of the runs: about as many
        together as a batch may have."""
        assert self._file is not None
        cursors = [_Cursor(self._file, run) for run in runs]
        while cursors:
            self._context.check()
            self._account.set(MERGE_COPIES * sum(cursor.block.nbytes for cursor in cursors))
            counts = self._counts(cursors)
            taken = [
                cursor.take(rows) for cursor, rows in zip(cursors, counts, strict=True) if rows
            ]
            yield from self._cut(taken)
            cursors = [cursor for cursor in cursors if cursor.advance()]

    def _counts(self, cursors: Sequence[_Cursor]) -> list[int]:
        """Return for each block how many of its rows can be merged now: those up to the least of the last rows of
        blocks that others of their run follow."""
        if not any(cursor.has_more for cursor in cursors):
            return [cursor.block.num_rows for cursor in cursors]
        lasts = [cursor.block.slice(cursor.block.num_rows - 1) for cursor in cursors]
        ranks = dense_ranks(self._order_columns(lasts), len(cursors))
        open_ends = [at for at, cursor in enumerate(cursors) if cursor.has_more]
        bound = open_ends[int(np.argmin(ranks[open_ends]))]
        return self._rows_up_to([cursor.block for cursor in cursors], bound)

    def _cut(self, taken: Sequence[pa.RecordBatch]) -> Iterator[Sequence[pa.RecordBatch]]:
        """Yield sorted rows of several runs in pieces that follow each other, at most a few times as large as a
        batch, so that those of several threads do not take much memory together. To find where to cut takes
        time with each run, so that pieces of many runs are larger."""
        enough = max(self._context.batch_rows, CUT_ROWS_PER_RUN * len(taken))
        if self._context.threads == 1:
            yield taken
            return
        waiting = [taken]
        while waiting:
            rows = waiting.pop()
            total = sum(batch.num_rows for batch in rows)
            longest = max(range(len(rows)), key=lambda at: rows[at].num_rows)
            size = rows[longest].num_rows
            if total < 2 * enough or len(rows) == 1 or size == 1:
                yield rows
                continue
            count = min(max(size * enough // total, 1), size - 1)
            tried = [b.slice(0, count) if at == longest else b for at, b in enumerate(rows)]
            counts = self._rows_up_to(tried, longest)
            pieces = list(zip(rows, counts, strict=True))
            waiting.append(
                [batch.slice(count) for batch, count in pieces if count < batch.num_rows]
            )
            waiting.append([batch.slice(0, count) for batch, count in pieces if count])

    def _in_order(self, taken: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Return sorted rows of several runs as one batch, in order."""
        if len(taken) == 1:
            return taken[0]
        order = sort_indices(self._order_columns(taken), sum(rows.num_rows for rows in taken))
        return take_rows(joined(list(taken), len(order)), order)

    def _rows_up_to(self, blocks: Sequence[pa.RecordBatch], bound: int) -> list[int]:
        """Return how many rows of each block come before the next row of the run of block `bound`, whose
        last row is the smallest one.

        Every `SEARCH_STEP`-th row of each block is compared with that row, then the rows between two of
        these."""
        last = blocks[bound].slice(blocks[bound].num_rows - 1)
        counts = [0] * len(blocks)
        for step in (SEARCH_STEP, 1):
            tried = []
            for block, count in zip(blocks, counts, strict=True):
                rows = block.slice(count) if step > 1 else block.slice(count, SEARCH_STEP - 1)
                positions = np.arange(step - 1, rows.num_rows, step)
                tried.append(take_rows(rows, from_numpy(positions)) if step > 1 else rows)
            sizes = np.array([rows.num_rows for rows in tried])
            ranks = dense_ranks(self._order_columns([*tried, last]), int(sizes.sum()) + 1)
            # rows that equal the bound come before it in the runs before its own, else after it
            owners = np.repeat(np.arange(len(blocks)), sizes)
            is_before = ranks[:-1] < ranks[-1] + (owners <= bound)
            before_bound = np.bincount(owners[is_before], minlength=len(blocks)).tolist()
            counts = [count + step * more for count, more in zip(counts, before_bound, strict=True)]
        return counts

    def _order_columns(self, blocks: Sequence[pa.RecordBatch]) -> list[OrderColumn]:
        """Return the keys of blocks of runs, joined."""
        computed = iter(range(len(self._schema), len(self._schema) + len(self._computed)))
        names = [field.name for field in self._schema]
        columns = []
        for key in self._keys:
            expression = key.expression
            if isinstance(expression, ColumnRef):
                at = names.index(expression.name)
            else:
                at = next(computed)
            values = single_chunk(pa.chunked_array([block.column(at) for block in blocks]))
            columns.append(OrderColumn(values, key.descending, key.nulls_first))
        return columns

    def close(self) -> None:
        """Free the temporary file. Idempotent."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Sorter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Cursor:
    """The next rows of a run: the rest of one block, which is in memory."""

    def __init__(self, file: SpillFile, run: Run) -> None:
        self._file = file
        self._rest = iter(run)
        self._left = len(run) - 1
        self.block = file.read(next(self._rest))

    @property
    def has_more(self) -> bool:
        """Return whether further blocks of the run follow the present one."""
        return self._left > 0

    def take(self, rows: int) -> pa.RecordBatch:
        """Return the next rows of the block and drop them from it."""
        taken = self.block.slice(0, rows)
        self.block = self.block.slice(rows)
        return taken

    def advance(self) -> bool:
        """Read the next block if this one is empty; return whether there are rows."""
        if not self.block.num_rows and self._left:
            self._left -= 1
            self.block = self._file.read(next(self._rest))
        return bool(self.block.num_rows)
