"""Rows made from the groups by all keys: those of each grouping set, and the row of WITH TOTALS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import broadcast, cut
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_predicate
from olapdb.execute.operators.partials import (
    Partial,
    empty_group,
    finalized,
    group_by_some,
    results_of,
)
from olapdb.execute.spill.group_merger import GroupMerger
from olapdb.functions import default_value
from olapdb.functions.kernels.columns import true_positions
from olapdb.plan.expressions import AggregateCall
from olapdb.plan.nodes import Aggregate
from olapdb.types import DataType, is_nullable
from olapdb.types.arrow_values import from_numpy

Groups = Callable[[], Iterable[Partial]]
"""Gives the groups by all keys, again at each call."""


@contextmanager
def repeatable(groups: Iterator[Partial], keys: int, context: ExecutionContext) -> Iterator[Groups]:
    """Return the groups so that they can be read several times. Several partials are kept on disk,
    in smaller pieces, until the `with` block ends."""
    first, second = next(groups, None), next(groups, None)
    if first is None or second is None:
        single = () if first is None else (first,)
        yield lambda: single
        return
    with context.temporary().file("Aggregation") as file:
        extents = [
            file.append(batch)
            for partial in chain((first, second), groups)
            for batch in cut(partial.as_batch(), context.batch_rows)
        ]
        yield lambda: (Partial.of_batch(file.read(extent), keys) for extent in extents)


def grouping_sets(
    node: Aggregate,
    finest: Groups,
    calls: Sequence[AggregateCall],
    positions: Sequence[int],
    context: ExecutionContext,
) -> Iterator[Partial]:
    """Yield the groups of each grouping set, merged from `finest`, the groups by all keys.

    Over no rows the set without keys has one group in GROUPING SETS, and none in ROLLUP or CUBE, as
    in ClickHouse."""
    for number, members in enumerate(node.sets):
        places = [at for at, (name, _) in enumerate(node.keys) if name in members]
        partials = (group_by_some(partial, places, calls) for partial in finest())
        merged = _merged(partials, len(places), calls, results_of(node, positions), context)
        if not members and not node.empty_without_rows:
            merged = iter((next(merged, None) or empty_group(calls),))
        for partial in merged:
            yield _with_all_keys(node, partial, number)


def totals_row(
    node: Aggregate,
    finest: Groups,
    calls: Sequence[AggregateCall],
    positions: Sequence[int],
    context: ExecutionContext,
) -> pa.RecordBatch:
    """Return the row of WITH TOTALS: the states of the groups that HAVING keeps, merged.

    Keys are NULL or their type's default; the row counts to the grouping set without keys."""
    kept = (_having(node, partial, positions, context) for partial in finest())
    partials = (group_by_some(partial, [], calls) if node.keys else partial for partial in kept)
    merged = _merged(partials, 0, calls, results_of(node, positions), context)
    total = next(merged, None) or empty_group(calls)
    keys = [_absent_key(node.key_type(key), 1) for _, key in node.keys]
    set_number = (pa.array([len(node.sets) - 1], pa.uint64()),) if node.sets else ()
    return finalized(node, Partial(keys, total.states, 1, set_number, total.results), positions)


def _having(
    node: Aggregate, groups: Partial, positions: Sequence[int], context: ExecutionContext
) -> Partial:
    """Return the groups that count for WITH TOTALS: those that its HAVING keeps."""
    having = None if node.totals is None else node.totals.having
    if having is None:
        return groups
    rows = finalized(node, groups, positions)
    mask = evaluate_predicate(having, rows, context.environment, context.subqueries)
    kept = from_numpy(true_positions(mask))
    states = [state.take(kept) for state in groups.states]
    return Partial([key.take(kept) for key in groups.keys], states, len(kept))


def _merged(
    partials: Iterable[Partial],
    keys: int,
    calls: Sequence[AggregateCall],
    results: Sequence[tuple[AggregateCall, int]],
    context: ExecutionContext,
) -> Iterator[Partial]:
    """Yield the union of the partials' groups; a group whose states memory does not take comes finished."""
    with ExitStack() as stack:
        account = stack.enter_context(context.memory.account("GROUP BY"))
        merger = stack.enter_context(GroupMerger(calls, keys, context, account, results=results))
        for partial in partials:
            merger.add(partial)
        yield from merger.groups()


def _with_all_keys(node: Aggregate, merged: Partial, number: int) -> Partial:
    """Return the groups of a grouping set with a column for each key of the node, and with the
    number of the set."""
    members = node.sets[number]
    set_keys = iter(merged.keys)
    keys = [
        next(set_keys) if name in members else _absent_key(node.key_type(key), merged.groups)
        for name, key in node.keys
    ]
    set_column = (from_numpy(np.full(merged.groups, number, np.uint64)),)
    return Partial(keys, merged.states, merged.groups, set_column, merged.results)


def _absent_key(data_type: DataType, rows: int) -> pa.Array:
    """Return the values of a key that is not in the rows' grouping set: NULL or the default."""
    if is_nullable(data_type):
        return pa.nulls(rows, data_type.arrow)
    return broadcast(default_value(data_type), rows, data_type)
