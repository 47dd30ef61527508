"""DISTINCT, EXCEPT and INTERSECT: whole rows are compared, and NULL equals NULL."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import make_batch, take_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.hash_table import Lookup
from olapdb.compute.row_buffer import RowBuffer
from olapdb.compute.spill.budget import SpillBudget
from olapdb.compute.spill.partitions import LEVELS_MAX, PARTITIONS, PartitionedRows
from olapdb.execute.operators.limit import ranks_in_groups
from olapdb.execute.operators.row_limits import limited
from olapdb.execute.spill.distinct import distinct_rows
from olapdb.functions.base import Groups
from olapdb.plan.nodes import Distinct, SetDifference
from olapdb.types.arrow_values import from_numpy


def distinct_batches(
    node: Distinct, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the first row of each distinct key, as soon as it comes; past the memory in no order."""
    yield from limited(_first_rows(node, child, context), "max_rows_in_distinct", context)


def _first_rows(
    node: Distinct, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the first row of each distinct key."""
    width = len(node.schema)
    if not node.keys:
        yield from distinct_rows(child, range(width), context)
        return
    key_columns = range(width, width + len(node.keys))
    for rows in distinct_rows(_with_keys(node, child, context), key_columns, context):
        yield make_batch(rows.columns[:width], node.schema, rows.num_rows)


def _with_keys(
    node: Distinct, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the batches with a column for each key behind their own columns."""
    for batch in child:
        keys = [
            evaluate_array(key, batch, context.environment, context.subqueries) for key in node.keys
        ]
        columns = [*batch.columns, *keys]
        names = [str(at) for at in range(len(columns))]
        yield pa.RecordBatch.from_arrays(columns, names=names)


def set_difference_batches(
    node: SetDifference,
    left: Iterator[pa.RecordBatch],
    right: Iterator[pa.RecordBatch],
    context: ExecutionContext,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of EXCEPT or INTERSECT; past the memory in no order.

    DISTINCT compares sets. ALL counts: a row that is n times at the left and m times at the right is
    max(n - m, 0) times in EXCEPT, min(n, m) times in INTERSECT."""
    yield from _set_difference(node, left, right, context, 0)


def _set_difference(
    node: SetDifference,
    left: Iterator[pa.RecordBatch],
    right: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    level: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows. `level` is how often both sides have been partitioned before."""
    with context.memory.account(node.operator) as account:
        buffer = RowBuffer(node.right.schema, account)
        budget = SpillBudget("distinct", context, account)
        types = [field.type for field in node.right.schema]
        right = chain.from_iterable(map(budget.pieces, right))
        for batch in right:
            context.check()
            if level < LEVELS_MAX and buffer.would_exceed(budget, batch, types):
                rest = chain(buffer.drain(), (batch,), right)
                account.set(0)
                yield from _difference_on_disk(node, left, rest, context, level)
                return
            buffer.add(batch)
        right_rows = buffer.build_lookup(matches_null=True, threads=context.threads)
        rows = _difference(node, left, right_rows, context)
        if node.distinct:
            rows = distinct_rows(rows, range(len(node.schema)), context, level)
        for batch in rows:
            yield make_batch(batch.columns, node.fields, batch.num_rows)


def _difference(
    node: SetDifference,
    left: Iterator[pa.RecordBatch],
    right_rows: Lookup,
    context: ExecutionContext,
) -> Iterator[pa.RecordBatch]:
    """Yield the left rows of EXCEPT or INTERSECT in their order. With DISTINCT a row comes as often as it is at the
    left; the caller drops the repeats."""
    unmatched = _UnmatchedCounts(right_rows)
    for batch in left:
        context.check()
        codes = right_rows.find(batch.columns, batch.num_rows)
        matched = codes >= 0 if node.distinct else unmatched.match(codes)
        positions = np.flatnonzero(matched if node.operator == "INTERSECT" else ~matched)
        if len(positions):
            yield take_rows(batch, from_numpy(positions))


def _difference_on_disk(
    node: SetDifference,
    left: Iterator[pa.RecordBatch],
    right: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    level: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows partition by partition; equal rows of both sides are in one."""
    types = [field.type.arrow for field in node.right.schema]
    with context.temporary().file("Distinct") as file:
        left_rows, right_rows = PartitionedRows(file, level), PartitionedRows(file, level)
        for rows, batches in ((right_rows, right), (left_rows, left)):
            for batch in batches:
                context.check()
                keys = [
                    column if column.type == arrow else column.cast(arrow)
                    for column, arrow in zip(batch.columns, types, strict=True)
                ]
                rows.add(batch, keys)
        for number in range(PARTITIONS):
            if left_rows.rows(number):
                yield from _set_difference(
                    node,
                    left_rows.read(number, context.batch_rows),
                    right_rows.read(number, context.batch_rows),
                    context,
                    level + 1,
                )


class _UnmatchedCounts:
    """The number of unmatched right rows of each code."""

    def __init__(self, right_rows: Lookup) -> None:
        self._counts = right_rows.sizes

    def match(self, codes: np.ndarray) -> np.ndarray:
        """Match left rows, in their order, with one right row each; return a mask of the matched.

        The right rows are used up."""
        groups = Groups(np.where(codes < 0, len(self._counts), codes), len(self._counts) + 1)
        available = np.append(self._counts, 0)
        matched: np.ndarray = ranks_in_groups(groups) < available[groups.codes]
        self._counts = np.maximum(self._counts - groups.sizes[:-1], 0)
        return matched
