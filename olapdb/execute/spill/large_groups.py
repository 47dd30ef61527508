"""Groups whose states memory does not take, from the partials of a GROUP BY on disk.

    SELECT k, uniqExact(x), quantileExact(y), sum(z) FROM t GROUP BY k

The states of one k are read from disk once for each aggregate.  The x of the states are divided by their hash, and the
numbers of the divisions add up.  The y are sorted on disk, and the one at the position of the quantile is kept.  Other
states, such as the sum, are merged as they come, and must fit the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import single_chunk
from olapdb.compute.context import ExecutionContext
from olapdb.compute.group_codes import factorise
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.spill.files import SpillFile
from olapdb.compute.spill.partitions import LEVELS_MAX, PARTITIONS, PartitionedRows
from olapdb.execute.operators.partials import Partial, merging_bytes
from olapdb.execute.spill.sorter import Sorter
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels.columns import from_values
from olapdb.plan.expressions import AggregateCall, ColumnRef
from olapdb.plan.nodes import Field, SortKey
from olapdb.types import INT64, Array, DataType, Float, Tuple
from olapdb.types.arrow_values import from_numpy

Read = Callable[[], Iterator[Partial]]
"""Reads all partials of the groups, again at each call."""
States = Callable[[], Iterator[pa.Array]]
"""Reads the states of one group, again at each call."""
_NAME = "value"


def large_groups(
    read: Read,
    calls: Sequence[AggregateCall],
    results: Sequence[tuple[AggregateCall, int]],
    context: ExecutionContext,
    account: MemoryAccount,
) -> Iterator[Partial]:
    """Yield each group of the partials that `read` gives, finished. There are few groups.

    `calls` made the states; `results` are the calls of the answer, each with the position of its states. Raises
    MemoryLimitExceeded if states that cannot be divided need too much."""
    keys = _keys(read, context)
    for group in range(len(keys[0]) if keys else 1):
        own = [key.slice(group, 1) for key in keys]
        merged: dict[int, pa.Array] = {}
        finished = []
        for call, position in results:
            states = _states_of(read, own, position, context)
            count = _elements(states, call.aggregate)
            if not count:
                if position not in merged:
                    merged[position] = _merged(states, calls[position], account)
                finished.append(single_chunk(call.aggregate.finalize(merged[position])))
            else:
                finished.append(_divided(states, count, call.aggregate, context, account))
        account.set(0)
        yield Partial(own, [], 1, results=tuple(finished))


def _keys(read: Read, context: ExecutionContext) -> list[pa.Array]:
    """Return the distinct keys of all partials; an empty list if there are no keys."""
    known: list[pa.Array] = []
    for partial in read():
        context.check()
        keys = partial.keys
        if known:
            keys = [pa.concat_arrays(pair) for pair in zip(known, keys, strict=True)]
        if keys:
            first = from_values(factorise(keys, len(keys[0])).first, pa.int64())
            known = [key.take(first) for key in keys]
    return known


def _states_of(
    read: Read, own: Sequence[pa.Array], position: int, context: ExecutionContext
) -> States:
    """Return the reader of the states at a position of the group with the keys `own`."""

    def states() -> Iterator[pa.Array]:
        """Yield the group's states, in the order in which they were made."""
        for partial in read():
            context.check()
            column = partial.states[position]
            if own:
                pairs = zip(own, partial.keys, strict=True)
                keys = [pa.concat_arrays(pair) for pair in pairs]
                codes = factorise(keys, len(keys[0])).codes
                column = column.take(from_numpy(np.flatnonzero(codes[1:] == codes[0])))
            if len(column):
                yield column

    return states


def _merged(states: States, call: AggregateCall, account: MemoryAccount) -> pa.Array:
    """Return the one state of all, merged whenever those that wait are as large as what was merged before."""
    merged: list[pa.Array] = []
    waiting: list[pa.Array] = []
    nbytes = 0

    def merge() -> list[pa.Array]:
        """Return the state of those merged before and those that wait."""
        parts = [*merged, *waiting]
        rows = sum(map(len, parts))
        account.set(merging_bytes(sum(part.nbytes for part in parts), rows))
        joined = single_chunk(pa.chunked_array(parts))
        state = single_chunk(call.aggregate.merge(joined, Groups(np.zeros(rows, np.int64), 1)))
        account.set(state.nbytes)
        return [state]

    for column in states():
        waiting.append(column)
        nbytes += column.nbytes
        if nbytes >= sum(part.nbytes for part in merged):
            merged, waiting, nbytes = merge(), [], 0
    return (merge() if waiting else merged)[0]


def _elements(states: States, aggregate: Aggregate) -> int:
    """Return the number of elements of the states together; 0 if they cannot be divided."""
    if aggregate.division == "none":
        return 0
    return sum(len(aggregate.elements(column)[0]) for column in states())


def _divided(
    states: States,
    count: int,
    aggregate: Aggregate,
    context: ExecutionContext,
    account: MemoryAccount,
) -> pa.Array:
    """Return the result of the states of one group, whose `count` elements are divided on disk."""
    elements = (aggregate.elements(column) for column in states())
    if aggregate.division == "in order":
        parts = _in_order(elements, aggregate, context)
    else:
        with context.temporary().file("Aggregation") as file:
            return aggregate.result_of_parts(
                _by_value(map(_batch, elements), aggregate, context, account, file, 0), count
            )
    return aggregate.result_of_parts(parts, count)


def _batch(elements: Sequence[pa.Array]) -> pa.RecordBatch:
    """Return elements as a batch."""
    return pa.RecordBatch.from_arrays(
        list(elements), names=[str(at) for at in range(len(elements))]
    )


def _by_value(
    batches: Iterator[pa.RecordBatch],
    aggregate: Aggregate,
    context: ExecutionContext,
    account: MemoryAccount,
    file: SpillFile,
    level: int,
) -> Iterator[pa.Array]:
    """Yield the states of elements, no value of which is in two of them. A partition that memory does not take is
    divided again, at the next level."""
    partitions = PartitionedRows(file, level)
    for batch in batches:
        context.check()
        partitions.add(batch, batch.columns[:1])
    for number in range(PARTITIONS):
        rows = partitions.rows(number)
        if not rows:
            continue
        needed = merging_bytes(partitions.nbytes(number), rows)
        read = partitions.read(number, context.batch_rows)
        if needed > account.available_bytes and level + 1 < LEVELS_MAX and partitions.divides:
            yield from _by_value(read, aggregate, context, account, file, level + 1)
            continue
        account.set(needed)
        columns = zip(*(batch.columns for batch in read), strict=True)
        elements = [single_chunk(pa.chunked_array(list(column))) for column in columns]
        yield aggregate.state_of_elements(elements)
        account.set(0)


def _in_order(
    elements: Iterator[list[pa.Array]], aggregate: Aggregate, context: ExecutionContext
) -> Iterator[pa.Array]:
    """Yield states of stretches of the sorted elements, in their order."""
    field = Field(_NAME, _element_type(aggregate))
    key = SortKey(ColumnRef(field.type, _NAME))
    with (
        context.memory.account("GROUP BY") as account,
        Sorter((key,), (field,), context, account) as sorter,
    ):
        for (values,) in elements:
            context.check()
            sorter.add(pa.RecordBatch.from_arrays([values], names=[_NAME]))
        for batch in sorter.sorted():
            yield aggregate.state_of_elements(batch.columns)


def _element_type(aggregate: Aggregate) -> DataType:
    """Return the type of the elements by which states are sorted; floats are integers of the same order."""
    state = aggregate.state_type.state
    while isinstance(state, Tuple):  # the flag of -OrNull, and the state
        state = state.elements[1]
    assert isinstance(state, Array)
    return INT64 if isinstance(state.inner, Float) else state.inner
