"""GROUP BY by the aggregate triad: states of each batch, merged, finalized.

Each batch becomes a partial: its distinct keys and one state for each key.  Partials are merged when
they have many rows, and at the end.  Where Acero can compute every aggregate in one pass, it makes the
partial of a batch; its states are the same, so the later steps do not differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import broadcast, cut, make_batch, single_chunk
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.group_codes import Factorised, factorise
from olapdb.config import tuning
from olapdb.functions import default_value
from olapdb.functions.base import AceroAggregation, Groups
from olapdb.plan.expressions import AggregateCall, ColumnRef, Expression, columns_of
from olapdb.plan.nodes import Aggregate, Scan
from olapdb.types import String, is_nullable, plain

MERGE_BYTES_PER_GROUP = 40


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


def aggregate_batches(
    node: Aggregate, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield one row for each group, in the order in which the keys first appear."""
    calls, positions = _distinct_states([call for _, call in node.aggregates])
    with context.memory.account("GROUP BY") as account:
        partials = _Partials(calls, context.threads)
        for partial in context.parallel(_Grouping(node, calls, context).partial, child):
            partials.add(partial)
            account.set(partials.nbytes)
            if partials.is_full:
                account.set(partials.merging_bytes)
                partials.merge()
                account.set(partials.nbytes)
        account.set(partials.merging_bytes)
        total = partials.merged()
        results: Iterable[Partial]
        if node.sets:
            results = grouping_sets(node, total, calls)
        elif total is None and (node.keys or node.empty_without_rows):
            return
        else:
            results = (total or _empty_group(calls),)
        for partial in results:
            columns = [
                *partial.keys,
                *(
                    single_chunk(call.aggregate.finalize(partial.states[position]))
                    for (_, call), position in zip(node.aggregates, positions, strict=True)
                ),
                *partial.set_column,
            ]
            yield from cut(make_batch(columns, node.schema, partial.groups), context.batch_rows)


def grouping_sets(
    node: Aggregate, finest: Partial | None, calls: Sequence[AggregateCall]
) -> Iterator[Partial]:
    """Yield the groups of each grouping set, merged from `finest`, the groups by all keys.

    Over no rows (`finest` None) the set without keys has one group in GROUPING SETS, and none in
    ROLLUP or CUBE, as in ClickHouse."""
    for number, members in enumerate(node.sets):
        if finest is None:
            if members or node.empty_without_rows:
                continue
            merged = _empty_group(calls)
        else:
            positions = [at for at, (name, _) in enumerate(node.keys) if name in members]
            merged = _group_by_some(finest, positions, calls)
        set_keys = iter(merged.keys)
        keys = []
        for name, expression in node.keys:
            data_type = node.key_type(expression)
            if name in members:
                keys.append(next(set_keys))
            elif is_nullable(data_type):
                keys.append(pa.nulls(merged.groups, data_type.arrow))
            else:
                keys.append(broadcast(default_value(data_type), merged.groups, data_type))
        set_column = (pa.array(np.full(merged.groups, number, np.uint64)),)
        yield Partial(keys, merged.states, merged.groups, set_column)


def _group_by_some(
    finest: Partial, positions: Sequence[int], calls: Sequence[AggregateCall]
) -> Partial:
    """Return the groups of `finest` by only the keys at these positions, with merged states."""
    if len(positions) == len(finest.keys):
        return finest
    keys = [finest.keys[at] for at in positions]
    coarse = factorise(keys, finest.groups)
    first = pa.array(coarse.first)
    states = [
        single_chunk(call.aggregate.merge(states, coarse.groups))
        for call, states in zip(calls, finest.states, strict=True)
    ]
    return Partial([key.take(first) for key in keys], states, coarse.count)


def coded_keys(node: Aggregate, scan: Scan) -> frozenset[str]:
    """Return the unique names of the scan's text columns that only keys read, unchanged.

    They may come as dictionaries."""
    others = [e for _, e in node.keys if not isinstance(e, ColumnRef)]
    others += [argument for _, call in node.aggregates for argument in call.arguments]
    others += [e for e in (scan.prewhere, scan.predicate) if e is not None]
    read = frozenset().union(*(columns_of(e) for e in others))
    return frozenset(
        e.name
        for _, e in node.keys
        if isinstance(e, ColumnRef) and isinstance(plain(e.type), String) and e.name not in read
    )


class _Partials:
    """The partials in the order of their batches; the caller merges them when `is_full`."""

    def __init__(self, calls: Sequence[AggregateCall], threads: int) -> None:
        self._threads = threads
        self._calls = calls
        self._partials: list[Partial] = []
        self._groups = 0
        self._merge_at = tuning.MERGE_ROWS_MIN
        self.nbytes = 0

    def add(self, partial: Partial) -> None:
        """Append a partial, unless it has no groups."""
        if not partial.groups:
            return
        self._partials.append(partial)
        self._groups += partial.groups
        self.nbytes += partial.nbytes

    @property
    def is_full(self) -> bool:
        """Return whether the partials have so many groups that the caller must merge them."""
        return self._groups > self._merge_at

    @property
    def merging_bytes(self) -> int:
        """Return the bytes that merging needs: concatenated, partitioned and merged columns.

        Partitioned as in `group_codes`, and with some numbers for each group.
        """
        if len(self._partials) <= 1:
            return self.nbytes
        return 4 * self.nbytes + MERGE_BYTES_PER_GROUP * self._groups

    def merge(self) -> None:
        """Replace the partials by one; `is_full` is then true again at twice its groups."""
        merged = self.merged()
        if merged is not None:
            self._partials, self._groups = [merged], merged.groups
            self.nbytes = merged.nbytes
            self._merge_at = max(tuning.MERGE_ROWS_MIN, 2 * merged.groups)

    def merged(self) -> Partial | None:
        """Return all partials as one, or None without partials."""
        if len(self._partials) <= 1:
            return self._partials[0] if self._partials else None
        return merge_partials(self._partials, self._calls, self._threads)


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
    first = pa.array(union.first)
    states = [
        single_chunk(
            call.aggregate.merge(
                single_chunk(pa.chunked_array([p.states[at] for p in partials])), union.groups
            )
        )
        for at, call in enumerate(calls)
    ]
    return Partial([key.take(first) for key in keys], states, union.count)


class _Grouping:
    """The grouping of single batches; thread-safe."""

    def __init__(
        self, node: Aggregate, calls: Sequence[AggregateCall], context: ExecutionContext
    ) -> None:
        self._node = node
        self._context = context
        self._calls = calls
        passes = [call.aggregate.acero() for call in self._calls]
        self._passes = (
            None if any(leaves is None for leaves in passes) else [p or () for p in passes]
        )
        nested = any(pa.types.is_nested(e.type.arrow) for _, e in node.keys)
        if nested or not node.keys:
            self._passes = None

    def partial(self, batch: pa.RecordBatch) -> Partial:
        """Return the groups of a batch.

        It uses the codes shared by the views of a block if possible, else Acero, else its own codes."""
        context = self._context
        keys = [self._key(expression, batch) for _, expression in self._node.keys]
        arguments = [
            [
                evaluate_array(argument, batch, context.environment, context.subqueries)
                for argument in call.arguments
            ]
            for call in self._calls
        ]
        shared = None
        if context.codes is not None:
            shared = context.codes.factorise(
                keys, batch.num_rows, grouped_anyway=self._passes is not None
            )
        if shared is not None:
            return self._by_codes(shared, keys, arguments)
        codes = [k.indices if isinstance(k, pa.DictionaryArray) else k for k in keys]
        if self._passes is not None and batch.num_rows:
            partial = self._by_acero(codes, arguments, self._passes)
            decoded = [_decoded(c, key) for c, key in zip(partial.keys, keys, strict=True)]
            return Partial(decoded, partial.states, partial.groups)
        groups = factorise(codes, batch.num_rows)
        first = pa.array(groups.first)
        decoded = [_decoded(c.take(first), key) for c, key in zip(codes, keys, strict=True)]
        return Partial(decoded, self._states(groups, arguments), groups.count)

    def _by_codes(
        self, groups: Factorised, keys: list[pa.Array], arguments: list[list[pa.Array]]
    ) -> Partial:
        """Return the partial of a batch whose groups are known, from its keys and arguments.

        Acero groups by one code faster than by several keys.
        """
        first = pa.array(groups.first)
        group_keys = [key.take(first) for key in keys]
        if self._passes is not None:
            partial = self._by_acero([pa.array(groups.codes)], arguments, self._passes)
            return Partial(group_keys, partial.states, partial.groups)
        return Partial(group_keys, self._states(groups, arguments), groups.count)

    def _states(self, groups: Factorised, arguments: list[list[pa.Array]]) -> list[pa.Array]:
        """Return one array of states for each aggregate call, a state for each group."""
        return [
            single_chunk(call.aggregate.state(values, groups.groups))
            for call, values in zip(self._calls, arguments, strict=True)
        ]

    def _key(self, expression: Expression, batch: pa.RecordBatch) -> pa.Array:
        """Return the values of a group key for the batch; a dictionary column stays encoded."""
        if isinstance(expression, ColumnRef):
            values = batch.column(expression.name)
            if isinstance(values, pa.DictionaryArray):
                return values
        context = self._context
        return evaluate_array(expression, batch, context.environment, context.subqueries)

    def _by_acero(
        self,
        keys: list[pa.Array],
        arguments: list[list[pa.Array]],
        passes: list[tuple[AceroAggregation, ...]],
    ) -> Partial:
        """Return the partial of a batch by one pass of Acero over it.

        The pass computes all leaves of all states: `passes` has those of each call.
        """
        columns = list(keys)
        aggregations: list[tuple[str | list[str], str, object]] = []
        for values, leaves in zip(arguments, passes, strict=True):
            base = len(columns)
            columns.extend(values)
            for leaf in leaves:
                at = leaf.argument
                target: str | list[str] = [] if at is None else f"c{base + at}"
                aggregations.append((target, leaf.function, leaf.options))
        names = [f"c{at}" for at in range(len(columns))]
        table = pa.Table.from_arrays(columns, names=names)
        grouped = table.group_by(names[: len(keys)], use_threads=False).aggregate(aggregations)
        flat = [single_chunk(column) for column in grouped.columns]
        states = []
        at = len(keys)
        for call, leaves in zip(self._calls, passes, strict=True):
            states.append(single_chunk(call.aggregate.from_acero(flat[at : at + len(leaves)])))
            at += len(leaves)
        return Partial(flat[: len(keys)], states, grouped.num_rows)


def _decoded(codes: pa.Array, key: pa.Array) -> pa.Array:
    """Return the values of codes: those of the key's dictionary, if it has one, else the codes."""
    return key.dictionary.take(codes) if isinstance(key, pa.DictionaryArray) else codes


def _distinct_states(calls: Sequence[AggregateCall]) -> tuple[list[AggregateCall], list[int]]:
    """Return the calls whose states differ, and for each of `calls` its position among these."""
    distinct: list[AggregateCall] = []
    positions: list[int] = []
    by_state: dict[Hashable, int] = {}
    for call in calls:
        key = call.aggregate.state_key
        position = len(distinct)
        if key is not None:
            position = by_state.setdefault((key, call.arguments), position)
        if position == len(distinct):
            distinct.append(call)
        positions.append(position)
    return distinct, positions


def _empty_group(calls: Sequence[AggregateCall]) -> Partial:
    """Return the one group of an aggregation without keys over no rows."""
    groups = Groups(np.zeros(0, np.int64), 1)
    states = [
        single_chunk(
            call.aggregate.state([pa.array([], a.type.arrow) for a in call.arguments], groups)
        )
        for call in calls
    ]
    return Partial([], states, 1)
