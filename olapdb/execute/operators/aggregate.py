"""GROUP BY: states per batch, merged, finalized: the aggregate triad at work.

Each batch becomes a partial: its distinct keys and one state for each.  Partials are merged when
they have piled up, and at the end.  Where every aggregate can be computed by Acero in one pass, a
batch's partial is; the states are the same, so nothing after that differs.
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
from olapdb.functions import default_value
from olapdb.functions.base import AceroAggregation, Groups
from olapdb.plan.expressions import AggregateCall, ColumnRef, Expression, columns_of
from olapdb.plan.nodes import Aggregate, Scan
from olapdb.types import String, is_nullable, plain

MERGE_ROWS_MIN = 1_000_000
"""Partials are merged when they hold this many rows, and then again at twice what was left."""
MERGE_BYTES_PER_GROUP = 40


@dataclass(frozen=True)
class Partial:
    """Distinct keys, in order of appearance, and for each aggregate one state a key."""

    keys: list[pa.Array]
    states: list[pa.Array]
    groups: int
    set_column: tuple[pa.Array, ...] = ()
    """The number of the grouping set, where there are sets."""

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in (*self.keys, *self.states))


def aggregate_batches(
    node: Aggregate, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Groups in the order in which their keys first came, cut into batches."""
    calls, places = _distinct_states([call for _, call in node.aggregates])
    with context.memory.hold("GROUP BY") as account:
        gathered = _Gathered(calls, context.threads)
        for partial in context.parallel(_Grouping(node, calls, context).partial, child):
            gathered.add(partial)
            account.set(gathered.nbytes)
            if gathered.is_full:
                account.set(gathered.merging_bytes)
                gathered.merge()
                account.set(gathered.nbytes)
        account.set(gathered.merging_bytes)
        total = gathered.merged()
        made: Iterable[Partial]
        if node.sets:
            made = grouping_sets(node, total, calls)
        elif total is None and (node.keys or node.empty_without_rows):
            return
        else:
            made = (total or _nothing(calls),)
        for partial in made:
            columns = [
                *partial.keys,
                *(
                    single_chunk(call.aggregate.finalize(partial.states[place]))
                    for (_, call), place in zip(node.aggregates, places, strict=True)
                ),
                *partial.set_column,
            ]
            yield from cut(make_batch(columns, node.schema, partial.groups), context.batch_rows)


def grouping_sets(
    node: Aggregate, finest: Partial | None, calls: Sequence[AggregateCall]
) -> Iterator[Partial]:
    """The groups of each set, merged from the groups of all keys.

    Over no rows a set without keys has one group where the query names its sets, and none where they
    are those of ROLLUP or CUBE, as in ClickHouse."""
    for number, members in enumerate(node.sets):
        if finest is None:
            if members or node.empty_without_rows:
                continue
            merged = _nothing(calls)
        else:
            kept = [at for at, (name, _) in enumerate(node.keys) if name in members]
            merged = _merged_by(finest, kept, calls)
        chosen = iter(merged.keys)
        keys = []
        for name, expression in node.keys:
            wanted = node.key_type(expression)
            if name in members:
                keys.append(next(chosen))
            elif is_nullable(wanted):
                keys.append(pa.nulls(merged.groups, wanted.arrow))
            else:
                keys.append(broadcast(default_value(wanted), merged.groups, wanted))
        set_column = (pa.array(np.full(merged.groups, number, np.uint64)),)
        yield Partial(keys, merged.states, merged.groups, set_column)


def _merged_by(finest: Partial, kept: Sequence[int], calls: Sequence[AggregateCall]) -> Partial:
    """The groups of some of the keys."""
    if len(kept) == len(finest.keys):
        return finest
    keys = [finest.keys[at] for at in kept]
    found = factorise(keys, finest.groups)
    first = pa.array(found.first)
    states = [
        single_chunk(call.aggregate.merge(states, found.groups))
        for call, states in zip(calls, finest.states, strict=True)
    ]
    return Partial([key.take(first) for key in keys], states, found.count)


def coded_keys(node: Aggregate, scan: Scan) -> frozenset[str]:
    """The scan's text columns that are keys themselves and that nothing else reads."""
    others = [e for _, e in node.keys if not isinstance(e, ColumnRef)]
    others += [argument for _, call in node.aggregates for argument in call.arguments]
    others += [e for e in (scan.prewhere, scan.predicate) if e is not None]
    read = frozenset().union(*(columns_of(e) for e in others))
    return frozenset(
        e.name
        for _, e in node.keys
        if isinstance(e, ColumnRef) and isinstance(plain(e.type), String) and e.name not in read
    )


class _Gathered:
    """Partials in the order of their batches, merged now and then."""

    def __init__(self, calls: Sequence[AggregateCall], threads: int) -> None:
        self._threads = threads
        self._calls = calls
        self._partials: list[Partial] = []
        self._groups = 0
        self._merge_at = MERGE_ROWS_MIN
        self.nbytes = 0

    def add(self, partial: Partial) -> None:
        if not partial.groups:
            return
        self._partials.append(partial)
        self._groups += partial.groups
        self.nbytes += partial.nbytes

    @property
    def is_full(self) -> bool:
        return self._groups > self._merge_at

    @property
    def merging_bytes(self) -> int:
        """What they hold while they are merged, all in one, in the order of their slices (see
        `codes`) and joined, besides some numbers for each group."""
        if len(self._partials) <= 1:
            return self.nbytes
        return 4 * self.nbytes + MERGE_BYTES_PER_GROUP * self._groups

    def merge(self) -> None:
        merged = self.merged()
        if merged is not None:
            self._partials, self._groups = [merged], merged.groups
            self.nbytes = merged.nbytes
            self._merge_at = max(MERGE_ROWS_MIN, 2 * merged.groups)

    def merged(self) -> Partial | None:
        """All of them as one, None where there is none."""
        if len(self._partials) <= 1:
            return self._partials[0] if self._partials else None
        return merge_partials(self._partials, self._calls, self._threads)


def merge_partials(
    partials: Sequence[Partial], calls: Sequence[AggregateCall], threads: int
) -> Partial:
    """The union of the partials' groups; states are merged in the partials' order."""
    rows = sum(partial.groups for partial in partials)
    keys = [
        single_chunk(pa.chunked_array([p.keys[at] for p in partials]))
        for at in range(len(partials[0].keys))
    ]
    found = factorise(keys, rows, threads=threads)
    first = pa.array(found.first)
    states = [
        single_chunk(
            call.aggregate.merge(
                single_chunk(pa.chunked_array([p.states[at] for p in partials])), found.groups
            )
        )
        for at, call in enumerate(calls)
    ]
    return Partial([key.take(first) for key in keys], states, found.count)


class _Grouping:
    """Makes the partial of a batch; safe to use from many threads."""

    def __init__(
        self, node: Aggregate, calls: Sequence[AggregateCall], context: ExecutionContext
    ) -> None:
        self._node = node
        self._context = context
        self._calls = calls
        passes = [call.aggregate.acero() for call in self._calls]
        self._passes = None if any(one is None for one in passes) else [p or () for p in passes]
        nested = any(pa.types.is_nested(e.type.arrow) for _, e in node.keys)
        if nested or not node.keys:
            self._passes = None

    def partial(self, batch: pa.RecordBatch) -> Partial:
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
            made = self._by_acero(codes, arguments, self._passes)
            decoded = [_decoded(found, key) for found, key in zip(made.keys, keys, strict=True)]
            return Partial(decoded, made.states, made.groups)
        found = factorise(codes, batch.num_rows)
        first = pa.array(found.first)
        states = [
            single_chunk(call.aggregate.state(values, found.groups))
            for call, values in zip(self._calls, arguments, strict=True)
        ]
        taken = [_decoded(c.take(first), key) for c, key in zip(codes, keys, strict=True)]
        return Partial(taken, states, found.count)

    def _by_codes(
        self, found: Factorised, keys: list[pa.Array], arguments: list[list[pa.Array]]
    ) -> Partial:
        """With the groups at hand: a number groups faster than the keys that it stands for."""
        first = pa.array(found.first)
        taken = [key.take(first) for key in keys]
        if self._passes is not None:
            made = self._by_acero([pa.array(found.codes)], arguments, self._passes)
            return Partial(taken, made.states, made.groups)
        states = [
            single_chunk(call.aggregate.state(values, found.groups))
            for call, values in zip(self._calls, arguments, strict=True)
        ]
        return Partial(taken, states, found.count)

    def _key(self, expression: Expression, batch: pa.RecordBatch) -> pa.Array:
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
        """One pass of Acero's grouper over the batch for all leaves of all states."""
        columns = list(keys)
        wanted: list[tuple[str | list[str], str, object]] = []
        for values, leaves in zip(arguments, passes, strict=True):
            base = len(columns)
            columns.extend(values)
            for leaf in leaves:
                at = leaf.argument
                target: str | list[str] = [] if at is None else f"c{base + at}"
                wanted.append((target, leaf.function, leaf.options))
        names = [f"c{at}" for at in range(len(columns))]
        table = pa.Table.from_arrays(columns, names=names)
        made = table.group_by(names[: len(keys)], use_threads=False).aggregate(wanted)
        flat = [single_chunk(column) for column in made.columns]
        states = []
        at = len(keys)
        for call, leaves in zip(self._calls, passes, strict=True):
            states.append(single_chunk(call.aggregate.from_acero(flat[at : at + len(leaves)])))
            at += len(leaves)
        return Partial(flat[: len(keys)], states, made.num_rows)


def _decoded(codes: pa.Array, key: pa.Array) -> pa.Array:
    """A key's values: those of its dictionary, where the codes are positions in it."""
    return key.dictionary.take(codes) if isinstance(key, pa.DictionaryArray) else codes


def _distinct_states(calls: Sequence[AggregateCall]) -> tuple[list[AggregateCall], list[int]]:
    """The calls whose states are made, and for each call which of these it is finished from."""
    made: list[AggregateCall] = []
    places: list[int] = []
    known: dict[Hashable, int] = {}
    for call in calls:
        key = call.aggregate.state_key
        place = len(made)
        if key is not None:
            place = known.setdefault((key, call.arguments), place)
        if place == len(made):
            made.append(call)
        places.append(place)
    return made, places


def _nothing(calls: Sequence[AggregateCall]) -> Partial:
    """The one group of an aggregation without keys over no rows."""
    groups = Groups(np.zeros(0, np.int64), 1)
    states = [
        single_chunk(
            call.aggregate.state([pa.array([], a.type.arrow) for a in call.arguments], groups)
        )
        for call in calls
    ]
    return Partial([], states, 1)
