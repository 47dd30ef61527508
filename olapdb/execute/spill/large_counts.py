"""uniqExact and count(DISTINCT …) without GROUP BY, of more values than memory takes.

    uniqExact(x), uniqExact(y), sum(z)      the distinct x, written to disk where memory ends, are counted,
                                            then the distinct y, then the other aggregates are computed

The input is read once for each of them.  A GROUP BY divides its states by their keys instead; the state of one group must
fit the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import filter_rows, make_batch
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.errors import MemoryLimitExceeded
from olapdb.execute.spill.distinct import distinct_rows
from olapdb.functions.aggregates.distinct import UniqExact
from olapdb.functions.kernels.columns import all_valid, from_values
from olapdb.plan.expressions import AggregateCall, Expression
from olapdb.plan.nodes import Aggregate
from olapdb.result import close_iterator
from olapdb.types.arrow_values import from_numpy

Run = Callable[[Aggregate], Iterator[pa.RecordBatch]]
"""Runs an aggregation over all rows in memory."""


def may_count_on_disk(node: Aggregate, context: ExecutionContext) -> bool:
    """Return whether an aggregation has one row and counts distinct values, which may be on disk. A block of a view,
    which is small, has none there."""
    return (
        not node.keys
        and not node.sets
        and node.totals is None
        and not context.blocks
        and any(_counts_distinct(call) for _, call in node.aggregates)
    )


def counted_batches(
    node: Aggregate,
    run: Run,
    rows: Callable[[], Iterator[pa.RecordBatch]],
    context: ExecutionContext,
) -> Iterator[pa.RecordBatch]:
    """Yield the row of an aggregation for which `may_count_on_disk` holds. Where memory does not take its states, count
    the distinct values of its calls on disk; `rows()` reads the node's input once more."""
    try:
        batches = list(run(node))
    except MemoryLimitExceeded:
        batches = [_counted(node, run, rows, context)]
    yield from batches


def _counted(
    node: Aggregate,
    run: Run,
    rows: Callable[[], Iterator[pa.RecordBatch]],
    context: ExecutionContext,
) -> pa.RecordBatch:
    """Return the row of an aggregation, its distinct values counted on disk."""
    others = tuple(pair for pair in node.aggregates if not _counts_distinct(pair[1]))
    values: dict[str, pa.Array] = {}
    if others:
        for batch in run(replace(node, aggregates=others)):
            values.update(zip(batch.schema.names, batch.columns, strict=True))
    counts: dict[tuple[Expression, ...], int] = {}
    for name, call in node.aggregates:
        if name in values:
            continue
        if call.arguments not in counts:
            counts[call.arguments] = _distinct_count(call.arguments, rows(), context)
        # As in memory, a narrower type than UInt64 wraps.
        count = np.array([counts[call.arguments]], np.int64)
        values[name] = from_values(count, call.type.arrow)
    return make_batch([values[name] for name, _ in node.aggregates], node.schema, 1)


def _counts_distinct(call: AggregateCall) -> bool:
    """Return whether a call is uniqExact, as which count(DISTINCT …) comes; not of groupUniqArray, whose result has the
    values, nor of a combinator."""
    return type(call.aggregate) is UniqExact


def _distinct_count(
    arguments: Sequence[Expression], rows: Iterator[pa.RecordBatch], context: ExecutionContext
) -> int:
    """Return how many distinct values the arguments have together; rows with a NULL are none."""

    def values(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the values of the arguments in the batches' rows that have no NULL."""
        for batch in batches:
            columns = [
                evaluate_array(e, batch, context.environment, context.subqueries) for e in arguments
            ]
            names = [str(at) for at in range(len(columns))]
            own = pa.RecordBatch.from_arrays(columns, names=names)
            valid = all_valid(columns, batch.num_rows)
            yield own if valid is None else filter_rows(own, from_numpy(valid))

    try:
        distinct = distinct_rows(values(rows), range(len(arguments)), context)
        return sum(batch.num_rows for batch in distinct)
    finally:
        close_iterator(rows)
