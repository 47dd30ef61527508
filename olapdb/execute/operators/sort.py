"""ORDER BY: all rows are held and sorted once, or in runs on disk; with a limit only the top rows are
held."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import take_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.ordering import OrderColumn, rows_within, sort_indices
from olapdb.compute.row_buffer import evaluate_in_batches
from olapdb.compute.stages import Stage, begun
from olapdb.config import tuning
from olapdb.errors import MemoryLimitExceeded
from olapdb.execute.operators.row_limits import limited
from olapdb.execute.spill.sorter import Sorter
from olapdb.functions.kernels.columns import true_positions
from olapdb.lazy import LazyModule
from olapdb.plan.expressions import Expression, is_repeatable
from olapdb.plan.nodes import Limit, LimitBy, Sort, SortKey
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy, to_numpy

if TYPE_CHECKING:
    from olapdb.compute import first_rows
else:
    first_rows = LazyModule("olapdb.compute.first_rows")

FIRST_ROWS_BYTES = 5 * 8
"""The keys, the groups, the least keys, and the positions of a row, when the first rows of groups are found."""


def sort_batches(
    node: Sort,
    child: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    wanted: RowsOfGroups | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows sorted, or with `node.limit` the first ones; rows with equal keys keep their
    order. Rows in memory that are not `wanted` may be left out.

    Rows that memory does not take are sorted on disk."""
    with (
        context.memory.account("ORDER BY") as account,
        Sorter(node.keys, node.schema, context, account, node.limit) as sorter,
    ):
        if node.limit is None:
            child = limited(child, "max_rows_to_sort", context)
        else:
            child = _top_rows(node, node.limit, child, context, sorter)
        for batch in child:
            context.check()
            sorter.add(batch)
        if wanted is not None and not sorter.spilled and sorter.rows:
            _keep_wanted(node, wanted, sorter, context, account)
        # Of a top the rows that remain count, as in ClickHouse.
        ordered = sorter.sorted()
        yield from ordered if node.limit is None else limited(ordered, "max_rows_to_sort", context)


@dataclass(frozen=True)
class RowsOfGroups:
    """The rows that a LIMIT BY above a sort keeps, or those of them that a LIMIT above it takes."""

    limit_by: LimitBy
    limit: Limit | None


def _keep_wanted(
    node: Sort,
    wanted: RowsOfGroups,
    sorter: Sorter,
    context: ExecutionContext,
    account: MemoryAccount,
) -> None:
    """Drop rows of the sorter that are not wanted, where these are found by less work than sorting.

    A group's rows are told apart by the first sort key that is no key of the LIMIT BY. Where the LIMIT BY has the first
    sort key, each value of it gives the LIMIT at least a row."""
    limit_by, limit = wanted.limit_by, wanted.limit
    if limit_by.offset < 0 or limit_by.count < 1:
        return  # counted from the end of the group
    by = [key for key in node.keys if key.expression not in limit_by.keys]
    bounds: list[tuple[Sequence[Expression], SortKey, int, bool]] = []
    if limit is not None and limit.count and not limit_by.offset and node.keys[0] not in by:
        bounds.append(((), node.keys[0], limit.count + limit.offset, True))
    if by:
        bounds.append((limit_by.keys, by[0], limit_by.offset + limit_by.count, False))
    for keys, order, count, distinct in bounds:
        if not is_repeatable(order.expression) or not all(map(is_repeatable, keys)):
            continue
        rows = sorter.unsorted()
        held_bytes = account.held_bytes
        kept = None
        with suppress(MemoryLimitExceeded):  # sorting all rows, which needs less memory, will do
            account.grow(rows.num_rows * FIRST_ROWS_BYTES)
            value = evaluate_in_batches(order.expression, rows, context, account)
            kept = first_rows.first_rows(
                [evaluate_in_batches(key, rows, context, account) for key in keys],
                OrderColumn(value, order.descending, order.nulls_first),
                count,
                account,
                distinct=distinct,
                threads=context.threads,
            )
        account.set(held_bytes)
        sorter.hold(rows if kept is None else take_rows(rows, kept))


def _top_rows(
    node: Sort,
    limit: int,
    child: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    sorter: Sorter,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that may be among the first `limit`, for the sorter, which is cut back to its first `limit` rows
    whenever it holds many more, or many bytes. Threads drop rows that sort after a bound, where they can."""
    top = _Top(node.keys, limit, context)
    with ExitStack() as stack:
        rows = begun(child, stack)
        batch_lists: Iterable[Iterable[pa.RecordBatch]] = (map(top.rows, rows),)
        if isinstance(rows, Stage):
            batch_lists = (
                rows.chain(stack)
                .then(lambda batches_of_task: [*map(top.rows, batches_of_task)])
                .run(context)
            )
        for batches in batch_lists:
            for batch in batches:
                if not batch.num_rows:
                    continue
                yield batch
                is_wide = sorter.rows > 2 * limit and sorter.nbytes > 4 * context.batch_bytes
                if not sorter.spilled and (sorter.rows >= top.many or is_wide):
                    last = sorter.cut_back()
                    if last is not None and sorter.rows == limit:
                        top.learn(order_columns(node.keys, last, context))


class _Top:
    """The rows of batches that may be among the first `limit`. For many threads."""

    def __init__(self, keys: Sequence[SortKey], limit: int, context: ExecutionContext) -> None:
        self._keys = keys
        self._limit = limit
        self._context = context
        self._bounds: tuple[pa.Scalar, ...] = ()
        """The first keys of a row that as many rows as are wanted sort no later than; without the keys from the first
        one on with which nothing can be compared."""
        self.many = max(2 * limit, tuning.TOP_ROWS_MIN)
        """The number of rows from which on comparing all of their keys costs more than looking for a bound."""

    def learn(self, columns: Sequence[OrderColumn]) -> None:
        """Take the sort keys of the first row of `columns` as bounds: at least `limit` rows sort no later than it. A
        bound ends before the first key that is NULL, NaN or nested."""
        values = (column.values[0] for column in columns)
        self._bounds = tuple(itertools.takewhile(is_bound, values))

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch that may be among the first `limit` by the bounds known so far: all such rows in
        their order, or, where these are many, the first `limit` of them, sorted."""
        bounds, context = self._bounds, self._context
        if bounds and batch.num_rows < self.many:
            batch = not_after(bounds[0], self._keys[0], batch, context)
        elif bounds:
            columns = order_columns(self._keys[: len(bounds)], batch, context)
            batch = _taken(batch, _rows_within_all(columns, bounds))
        if batch.num_rows < self.many:
            return batch
        first_key = self._keys[0]
        values = order_columns([first_key], batch, context)[0].values
        last = nth_value(values, first_key, self._limit)
        if last is not None and is_bound(last):
            batch = not_after(last, first_key, batch, context)
        if batch.num_rows >= self.many:  # many are equal in the first key
            columns = order_columns(self._keys, batch, context)
            batch = take_rows(batch, sort_indices(columns, batch.num_rows).slice(0, self._limit))
            self.learn(order_columns(self._keys, batch.slice(self._limit - 1), context))
        elif last is not None and is_bound(last):
            self._bounds = (last,)
        return batch


def _rows_within_all(columns: Sequence[OrderColumn], bounds: Sequence[pa.Scalar]) -> np.ndarray:
    """Return the positions of rows, ascending, that do not sort after the bounds, compared key by key. Behind a key
    that is a float or has NULLs the further keys are not compared, so that some later rows may stay."""
    values, bound = columns[0].values, bounds[0]
    if len(bounds) == 1 or values.null_count or pa.types.is_floating(values.type):
        return rows_within(columns[0], bound)
    before = true_positions((pc.greater if columns[0].descending else pc.less)(values, bound))
    later = _rows_within_all(columns[1:], bounds[1:])
    tied = later[to_numpy(pc.equal(values.take(from_numpy(later)), bound))]
    return np.sort(np.concatenate([before, tied]))


def not_after(
    bound: pa.Scalar, key: SortKey, batch: pa.RecordBatch, context: ExecutionContext
) -> pa.RecordBatch:
    """Return the rows whose `key` does not sort after `bound`, or all rows where `bound` is none
    (see `is_bound`)."""
    if not is_bound(bound):
        return batch
    positions = rows_within(order_columns([key], batch, context)[0], bound)
    return _taken(batch, positions)


def _taken(batch: pa.RecordBatch, positions: np.ndarray) -> pa.RecordBatch:
    """Return the rows of a batch at positions, none of which occurs twice, in the order of the positions."""
    return batch if len(positions) == batch.num_rows else take_rows(batch, from_numpy(positions))


def nth_value(values: pa.Array, key: SortKey, count: int) -> pa.Scalar | None:
    """Return the value of the `count`-th row in the key's order, without sorting; None where Arrow
    cannot say. There are more rows than `count`."""
    if pa.types.is_nested(values.type) or pa.types.is_float16(values.type):
        return None
    pivot = len(values) - count if key.descending else count - 1
    nulls_low = key.nulls_first != key.descending
    options = pc.PartitionNthOptions(pivot, null_placement="at_start" if nulls_low else "at_end")
    position = pc.partition_nth_indices(values, options=options)[pivot].as_py()
    return values[position]


def is_bound(value: pa.Scalar) -> bool:
    """Return whether other values can be compared with this one: it is not NULL, NaN or nested."""
    if not value.is_valid or pa.types.is_nested(value.type):
        return False
    return not (pa.types.is_floating(value.type) and pc.is_nan(value).as_py())


def order_columns(
    keys: Sequence[SortKey], batch: pa.RecordBatch, context: ExecutionContext
) -> list[OrderColumn]:
    """Return the sort keys' values for each row of the batch."""
    return [
        OrderColumn(
            evaluate_array(key.expression, batch, context.environment, context.subqueries),
            key.descending,
            key.nulls_first,
        )
        for key in keys
    ]
