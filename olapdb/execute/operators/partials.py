"""Partials of a GROUP BY: distinct keys and a state of each aggregate for each key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import make_batch, single_chunk
from olapdb.compute.group_codes import Factorised, factorise
from olapdb.functions.base import Groups
from olapdb.functions.kernels.columns import from_values
from olapdb.plan.expressions import AggregateCall
from olapdb.plan.nodes import Aggregate
from olapdb.types.arrow_values import from_numpy

MERGE_BYTES_PER_GROUP = 40
MERGE_COPIES = 4


@dataclass(frozen=True)
class Partial:
    """Distinct keys, in order of appearance, and for each aggregate one state for each key."""

    keys: list[pa.Array]
    states: list[pa.Array]
    groups: int
    set_column: tuple[pa.Array, ...] = ()
    """The number of the grouping set, where there are sets."""

    @property
    def nbytes(self) -> int:
        """Return the size of keys and states."""
        return sum(column.nbytes for column in (*self.keys, *self.states))

    def as_batch(self) -> pa.RecordBatch:
        """Return keys and states as a batch; it needs a column."""
        columns = [*self.keys, *self.states]
        return pa.RecordBatch.from_arrays(columns, names=[str(at) for at in range(len(columns))])

    @staticmethod
    def of_batch(batch: pa.RecordBatch, keys: int) -> Partial:
        """Return the partial that `as_batch` made a batch of; its first `keys` columns are keys."""
        columns = batch.columns
        return Partial(columns[:keys], columns[keys:], batch.num_rows)


def first_of_groups(keys: Sequence[pa.Array], groups: Factorised) -> list[pa.Array]:
    """Return the keys of each group: those of its first row. Where no two rows share a group these are the
    keys as they are, since groups are numbered by their first rows."""
    if groups.count == len(groups.codes):
        return list(keys)
    first = from_values(groups.first, pa.int64())
    return [key.take(first) for key in keys]


def merging_bytes(nbytes: int, groups: int) -> int:
    """Return the bytes that merging partials of so many bytes and groups needs: concatenated,
    partitioned and merged columns.

    Partitioned as in `group_codes`, and with some numbers for each group."""
    return MERGE_COPIES * nbytes + MERGE_BYTES_PER_GROUP * groups


def merge_partials(
    partials: Sequence[Partial], calls: Sequence[AggregateCall], threads: int
) -> Partial:
    """Return the union of the partials' groups; states are merged in the partials' order."""
    rows = sum(partial.groups for partial in partials)
    keys = [
        single_chunk(pa.chunked_array([p.keys[at] for p in partials]))
        for at in range(len(partials[0].keys))
    ]
    union = factorise(keys, rows, threads=threads)
    first = from_values(union.first, pa.int64())
    states = [
        single_chunk(
            call.aggregate.merge(
                single_chunk(pa.chunked_array([p.states[at] for p in partials])), union.groups
            )
        )
        for at, call in enumerate(calls)
    ]
    return Partial([key.take(first) for key in keys], states, union.count)


def group_by_some(
    finest: Partial, positions: Sequence[int], calls: Sequence[AggregateCall]
) -> Partial:
    """Return the groups of `finest` by only the keys at these positions, with merged states."""
    if len(positions) == len(finest.keys):
        return finest
    keys = [finest.keys[at] for at in positions]
    coarse = factorise(keys, finest.groups)
    first = from_numpy(coarse.first)
    states = [
        single_chunk(call.aggregate.merge(states, coarse.groups))
        for call, states in zip(calls, finest.states, strict=True)
    ]
    return Partial([key.take(first) for key in keys], states, coarse.count)


def empty_group(calls: Sequence[AggregateCall]) -> Partial:
    """Return the one group of an aggregation without keys over no rows."""
    groups = Groups(np.zeros(0, np.int64), 1)
    states = [
        single_chunk(
            call.aggregate.state([pa.nulls(0, a.type.arrow) for a in call.arguments], groups)
        )
        for call in calls
    ]
    return Partial([], states, 1)


def finalized(node: Aggregate, partial: Partial, positions: Sequence[int]) -> pa.RecordBatch:
    """Return the rows of the groups; `positions` are those of each aggregate's states."""
    columns = [
        *partial.keys,
        *(
            single_chunk(call.aggregate.finalize(partial.states[position]))
            for (_, call), position in zip(node.aggregates, positions, strict=True)
        ),
        *partial.set_column,
    ]
    return make_batch(columns, node.schema, partial.groups)
