"""Window functions: all rows are held and sorted once by partition and order, unless they are in that order already.

Past the memory they are sorted on disk; then some whole partitions are held at a time, or some rows of one that is too
large (`window_streams.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import cut, make_batch, single_batch, table_of, take_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.ordering import OrderColumn, equal_to_previous, is_sorted, sort_indices
from olapdb.compute.row_buffer import RowBuffer, evaluate_in_batches
from olapdb.compute.spill.budget import PIECES_OF_MEMORY
from olapdb.errors import MemoryLimitExceeded
from olapdb.execute.operators.frame_aggregates import RepeatedValues, TreeValues, values_over
from olapdb.execute.operators.frames import partitions_and_peers, with_frame
from olapdb.execute.operators.row_limits import limited
from olapdb.execute.spill.sorter import SORT_BYTES_PER_ROW, Sorter
from olapdb.functions.window_definitions import COUNTS_ROWS, RANKING, Frames, WindowFunction
from olapdb.lazy import LazyModule
from olapdb.plan.expressions import WindowCall
from olapdb.plan.nodes import SortKey, Window
from olapdb.plan.wide_values import varies_in_size

if TYPE_CHECKING:
    from olapdb.compute import first_rows
    from olapdb.execute.operators import row_pieces
    from olapdb.execute.spill import window_streams
else:
    first_rows = LazyModule("olapdb.compute.first_rows")
    row_pieces = LazyModule("olapdb.execute.operators.row_pieces")
    window_streams = LazyModule("olapdb.execute.spill.window_streams")

_Values: TypeAlias = pa.Array | RepeatedValues | TreeValues

FRAME_BYTES_PER_ROW = 6 * 8
"""The bounds of partitions, peers and frames."""
VALUE_BYTES = 16
"""About the bytes of a call's value."""
STREAMED_SHARE = 2
"""A partition whose rows need more than this part of the memory is streamed."""
PIECE_BYTES = 1 << 22
"""Sort and frame partitions that were read back together up to about so many bytes."""


def window_batches(
    node: Window, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the child's rows, sorted by partition and order, with a column for each call.

    Raises MemoryLimitExceeded if the rows of one partition need too much memory and cannot be streamed."""
    keys = (*(SortKey(e) for e in node.partition_by), *node.order_by)
    with (
        context.memory.account("window functions") as account,
        context.memory.account("window functions") as sorter_account,
        Sorter(keys, node.child.schema, context, sorter_account) as sorter,
    ):
        sorter.reserved_row_bytes = FRAME_BYTES_PER_ROW + VALUE_BYTES * len(node.calls)
        for batch in limited(child, "max_rows_to_sort", context) if keys else child:
            context.check()
            sorter.add(batch)
        if sorter.spilled:
            yield from _spilled(node, sorter.sorted(), context, account)
        elif sorter.rows:
            yield from _results(node, sorter.unsorted(), context, sorter_account)


def _results(
    node: Window, rows: pa.RecordBatch, context: ExecutionContext, account: MemoryAccount
) -> Iterator[pa.RecordBatch]:
    """Yield rows of whole partitions, sorted, with the columns of the calls."""
    held_bytes = account.held_bytes
    in_order, values = _with_calls(rows, node, context, account)
    batches = cut(in_order, context.batch_rows)
    pieces = None
    if not all(isinstance(value, pa.Array) for value in values):
        pieces = row_pieces.RowPieces(context.batch_bytes)
        batches = pieces.cut(batches)
    start = 0
    for piece in batches:
        context.check()
        stop = start + piece.num_rows
        computed = [
            value.slice(start, piece.num_rows)
            if isinstance(value, pa.Array)
            else _typed(value.of_rows(start, stop), call)
            for value, (_, call) in zip(values, node.calls, strict=True)
        ]
        if pieces is not None:
            pieces.learn(piece.num_rows, sum(value.nbytes for value in computed))
        yield make_batch([*piece.columns, *computed], node.schema, piece.num_rows)
        start = stop
    account.set(held_bytes)


def _spilled(
    node: Window,
    batches: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    account: MemoryAccount,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of sorted batches with the columns of the calls: some whole partitions at a time, and those that are
    too large for memory by a stream of their rows, where the calls can be computed so.

    The account counts the rows at work and those of the partition that has begun."""
    buffer = RowBuffer(node.child.schema, account)
    row_bytes = SORT_BYTES_PER_ROW + FRAME_BYTES_PER_ROW + VALUE_BYTES * len(node.calls)
    rows_max = max(account.available_bytes // PIECES_OF_MEMORY // row_bytes, 1)
    may_stream = window_streams.may_stream(node)
    enough_bytes, enough_rows = PIECE_BYTES, rows_max
    rest: list[pa.RecordBatch] = []
    source = chain.from_iterable(cut(rows, rows_max) for rows in batches)
    while (batch := rest.pop() if rest else next(source, None)) is not None:
        buffer.add(batch)
        if buffer.nbytes < enough_bytes and buffer.rows < enough_rows:
            continue
        rows = buffer.concatenate()
        keys = [evaluate_in_batches(e, rows, context, account) for e in node.partition_by]
        is_first = ~equal_to_previous(keys, rows.num_rows)
        last_start = int(np.flatnonzero(is_first)[-1])
        account.set(rows.nbytes)
        if last_start:
            yield from _results(node, rows.slice(0, last_start), context, account)
        account.set(0)
        rows = rows.slice(last_start)
        needed_bytes = 3 * rows.nbytes + rows.num_rows * row_bytes
        if may_stream and needed_bytes > account.available_bytes // STREAMED_SHARE:
            stream = window_streams.PartitionStream(node, context, account, rows_max)
            yield from stream.results(_partition(node, rows, source, context, rest))
            enough_bytes, enough_rows = PIECE_BYTES, rows_max
            continue
        buffer.add(rows)
        enough_bytes = max(PIECE_BYTES, 2 * buffer.nbytes)
        enough_rows = max(rows_max, 2 * buffer.rows)
        if may_stream:  # before memory ends
            share = account.available_bytes // STREAMED_SHARE
            enough_bytes = min(enough_bytes, max(share // 3, buffer.nbytes + 1))
            enough_rows = min(enough_rows, max(share // row_bytes, buffer.rows + 1))
    if buffer.rows:
        rows = buffer.concatenate()
        yield from _results(node, rows, context, account)


def _partition(
    node: Window,
    first: pa.RecordBatch,
    source: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    rest: list[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the partition of which `first` are the first rows; put those of the next partition that were read
    with them into `rest`."""
    yield first
    last = first.slice(first.num_rows - 1)
    for batch in source:
        joined = single_batch(table_of([last, batch], node.child.schema))
        keys = [
            evaluate_array(e, joined, context.environment, context.subqueries)
            for e in node.partition_by
        ]
        is_same = equal_to_previous(keys, joined.num_rows)[1:]
        count = len(is_same) if is_same.all() else int(np.argmin(is_same))
        if count:
            yield batch.slice(0, count)
        if count < batch.num_rows:
            rest.append(batch.slice(count))
            return
        last = batch.slice(batch.num_rows - 1)


def _with_calls(
    batch: pa.RecordBatch, node: Window, context: ExecutionContext, account: MemoryAccount
) -> tuple[pa.RecordBatch, list[_Values]]:
    """Return the rows sorted, and the values of the node's calls in them."""
    rows = batch.num_rows
    partition = [
        OrderColumn(evaluate_in_batches(e, batch, context, account)) for e in node.partition_by
    ]
    order = [
        OrderColumn(
            evaluate_in_batches(k.expression, batch, context, account), k.descending, k.nulls_first
        )
        for k in node.order_by
    ]
    account.grow(rows * (SORT_BYTES_PER_ROW + FRAME_BYTES_PER_ROW))
    if not is_sorted([*partition, *order], rows):
        kept = _first_ranks(node, partition, order, context, account)
        if kept is not None:
            rows = len(kept)
            batch = take_rows(batch, kept)
            partition, order = _taken(partition, kept), _taken(order, kept)
        positions = sort_indices([*partition, *order], rows)
        account.grow(batch.nbytes)
        batch = take_rows(batch, positions)
        partition, order = _taken(partition, positions), _taken(order, positions)
    frames = partitions_and_peers([p.values for p in partition], order, rows)
    values: list[_Values] = []
    for _, call in node.calls:
        context.check()
        value = _value(call, batch, with_frame(frames, call.frame, order), context, account)
        account.grow(value.nbytes)
        values.append(value)
    return batch, values


def _taken(columns: Sequence[OrderColumn], positions: pa.Array) -> list[OrderColumn]:
    """Return the columns' values at the positions."""
    return [replace(column, values=column.values.take(positions)) for column in columns]


def _first_ranks(
    node: Window,
    partition: Sequence[OrderColumn],
    order: Sequence[OrderColumn],
    context: ExecutionContext,
    account: MemoryAccount,
) -> pa.Array | None:
    """Return the positions of rows that hold all whose ranks are wanted, and all rows before these in their partitions, so
    that their ranks are the same. None for all rows: ranks are not bounded, or another call reads further rows."""
    functions = {name: call.function.name for name, call in node.calls}
    if not order or not RANKING.issuperset(functions.values()):
        return None
    bounds = [(rank, functions[name]) for name, rank in node.ranks_max if name in functions]
    if not bounds:
        return None
    rank_max, function = min(bounds)
    held_bytes = account.held_bytes
    positions = None
    with suppress(MemoryLimitExceeded):  # ranking all rows, which needs less memory, will do
        positions = first_rows.first_rows(
            [column.values for column in partition],
            order[0],
            rank_max,
            account,
            distinct=function not in COUNTS_ROWS,
            threads=context.threads,
        )
    account.set(held_bytes)
    return positions


def _value(
    call: WindowCall,
    batch: pa.RecordBatch,
    frames: Frames,
    context: ExecutionContext,
    account: MemoryAccount,
) -> _Values:
    """Return the result of one window call for each row of the batch, or what makes it for some rows at a time where
    values may be large."""
    arguments = [evaluate_in_batches(a, batch, context, account) for a in call.arguments]
    if isinstance(call.function, WindowFunction):
        return call.function.kernel(arguments, frames)
    values = values_over(call.function, arguments, frames)
    if isinstance(values, pa.Array):
        return _typed(values, call)
    if context.cuts_wide_rows and varies_in_size(call.type):
        return values
    return _typed(values.of_rows(0, batch.num_rows), call)


def _typed(values: pa.Array, call: WindowCall) -> pa.Array:
    """Return the values of a call in the Arrow type of the call."""
    return values if values.type == call.type.arrow else values.cast(call.type.arrow)
