"""GROUP BY by the aggregate triad: states of each batch, merged, finalized.

Each batch becomes a partial: its distinct keys and one state for each key.  Partials are merged when
they have many rows, and at the end (`GroupMerger`).  Without compiled kernels, Acero makes the partial of a batch where
it can compute every aggregate in one pass; its states are the same, so the later steps do not differ.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import olapdb.functions.aggregates.sums  # noqa: F401  (most queries count or add up: imported before they begin)
from olapdb.compute.batches import cut, single_chunk
from olapdb.compute.context import ExecutionContext
from olapdb.compute.group_codes import Factorised, factorise
from olapdb.compute.stages import Deferred, Stage, begun
from olapdb.config import Settings, tuning
from olapdb.execute.operators.coded_inputs import CodedInputs, state_of
from olapdb.execute.operators.compact_columns import bytes_of_rows, have_one_form, joined_batches
from olapdb.execute.operators.divided_groups import DividedGroups, LooseRows
from olapdb.execute.operators.grouping_sets import grouping_sets, repeatable, totals_row
from olapdb.execute.operators.partials import (
    Partial,
    empty_group,
    finalized,
    first_of_groups,
    results_of,
)
from olapdb.execute.operators.row_limits import limited
from olapdb.execute.spill.group_merger import GroupMerger
from olapdb.functions.base import AceroAggregation, TotalsOfState
from olapdb.functions.kernels.columns import from_values
from olapdb.lazy import LazyModule
from olapdb.native.group_totals import group_totals
from olapdb.native.grouping import digits_of
from olapdb.native.library import library
from olapdb.plan.expressions import AggregateCall, ColumnRef, columns_of
from olapdb.plan.nodes import Aggregate, Scan, TotalsRow
from olapdb.types import String, plain
from olapdb.types.arrow_values import from_numpy

if TYPE_CHECKING:
    from olapdb.execute.operators import coded_sets
    from olapdb.execute.operators.first_groups import FirstGroups
else:
    coded_sets = LazyModule("olapdb.execute.operators.coded_sets")

FEW_REPEATS = 0.8
"""Where so many rows of a batch have keys of their own, grouping them costs more than to write the others."""
CHECKED_BATCHES = 8
"""Of so many batches that are written as they are, one is grouped, to see whether that still holds."""


def aggregate_batches(
    node: Aggregate,
    child: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    known: Callable[[Sequence[AggregateCall]], Iterator[Partial]] | None = None,
    first: FirstGroups | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield one row for each group, in the order in which the keys first appear; where groups were
    spilled to disk, or divided, in no order. `known` gives groups of further rows, with the states of calls; with
    `first` only those groups need come."""
    return Deferred(lambda _: _aggregated(node, child, context, known, first))


@contextmanager
def _aggregated(
    node: Aggregate,
    child: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    known: Callable[[Sequence[AggregateCall]], Iterator[Partial]] | None,
    first: FirstGroups | None,
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Group all rows; give one row for each group, as a `Stage` where several threads make them."""
    calls, positions = distinct_states([call for _, call in node.aggregates])
    with ExitStack() as stack:
        account, loose_account = (
            stack.enter_context(context.memory.account("GROUP BY")) for _ in range(2)
        )
        # What makes other groups of these, and a LIMIT that keeps some, need states.
        is_final = not node.sets and node.totals is None and first is None
        is_final &= not context.blocks or all(call.aggregate.divides_exactly for call in calls)
        answers = results_of(node, positions) if is_final else ()
        repeats = bool(node.sets) and node.totals is None and first is None
        merger = stack.enter_context(
            GroupMerger(calls, len(node.keys), context, account, results=answers, repeats=repeats)
        )
        grouping = _Grouping(node, calls, context, merger)
        grouping.may_divide &= first is None
        loose = DividedGroups(calls, grouping.states, context, loose_account)
        for piece in _partials(grouping, child, context, first):
            if first is not None and isinstance(piece, Partial):
                first.learn(piece)
            _add(piece, merger, loose, grouping)
        for partial in known(calls) if known is not None else ():
            _add(partial, merger, loose, grouping)
        with_sets = first is None and not node.sets and node.totals is None
        if loose and not loose.add_before(merger):
            _merge_loose(loose, merger)
        limits = (
            Settings.of(context.settings).integer("max_rows_to_group_by") if node.limited else 0
        )
        if loose and with_sets and not limits:

            def rows(bounds: tuple[int, int]) -> list[pa.RecordBatch]:
                """Return the rows of the groups in the divisions from `bounds[0]` up to `bounds[1]`, excluded."""
                return [finalized(node, loose.partial(bounds).with_values(), positions)]

            yield Stage(context, rows, loose.ranges())
            return
        results = (
            (p.decoded(calls) for p in loose.drain())
            if loose
            else merger.groups(with_sets=with_sets)
        )
        yield _rows(node, results, calls, positions, context, first)


def _rows(
    node: Aggregate,
    results: Iterator[Partial],
    calls: Sequence[AggregateCall],
    positions: Sequence[int],
    context: ExecutionContext,
    first: FirstGroups | None,
) -> Iterator[pa.RecordBatch]:
    """Yield a row for each group of the results, and for the groups of each grouping set, in batches. Without keys and
    rows there may be one group. Leave the row of WITH TOTALS in the context."""
    if first is not None:
        results = first.groups(results)
    if not node.keys and not node.empty_without_rows and not node.sets:
        results = iter((next(results, None) or empty_group(calls),))
    with ExitStack() as stack:
        if node.sets or node.totals is not None:
            finest = stack.enter_context(repeatable(results, len(node.keys), context))
            results = iter(finest())
            if node.totals is not None:
                row = totals_row(node, finest, calls, positions, context)
                context.totals[id(node)] = row
            if node.sets:
                results = grouping_sets(node, finest, calls, positions, context)
        groups = (
            batch
            for partial in results
            for batch in cut(finalized(node, partial, positions), context.batch_rows)
        )
        yield from limited(groups, "max_rows_to_group_by", context) if node.limited else groups


def _add(
    made: Partial | LooseRows, merger: GroupMerger, loose: DividedGroups, grouping: _Grouping
) -> None:
    """Add the groups or the loose rows of some batches: to `loose` if it takes them, else to `merger`, together with
    the groups of all loose rows so far; from then on no rows are kept loose."""
    if isinstance(made, Partial) and not loose:
        merger.add(made)
        return
    rows = LooseRows.of_partial(made) if isinstance(made, Partial) else made
    if loose.takes(rows):
        loose.add(rows)
        return
    grouping.may_divide = grouping.divides = False
    _merge_loose(loose, merger)
    merger.add(made if isinstance(made, Partial) else loose.grouped([made]))


def _merge_loose(loose: DividedGroups, merger: GroupMerger) -> None:
    """Group all loose rows, add the groups to `merger`, and empty `loose`."""
    for partial in loose.drain():
        merger.add(partial)


def totals_batches(
    node: TotalsRow, aggregate: Callable[[], Iterator[pa.RecordBatch]], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the row of totals that the Aggregate left. Run it by `aggregate()` where nothing drew
    a row from it, as under LIMIT 0."""
    if id(node.aggregate) not in context.totals:
        for _ in aggregate():
            context.check()
    yield context.totals[id(node.aggregate)]


def coded_keys(node: Aggregate) -> frozenset[str]:
    """Return the unique names of the child's String columns that keys read unchanged, and neither aggregates, computed
    keys nor the conditions of a scan below read. They may come as dictionaries."""
    others = [e for _, e in node.keys if not isinstance(e, ColumnRef)]
    others += [argument for _, call in node.aggregates for argument in call.arguments]
    if isinstance(node.child, Scan):
        others += [e for e in (node.child.prewhere, node.child.predicate) if e is not None]
    read = frozenset().union(*(columns_of(e) for e in others))
    return frozenset(
        e.name
        for _, e in node.keys
        if isinstance(e, ColumnRef) and isinstance(plain(e.type), String) and e.name not in read
    )


def _partials(
    grouping: _Grouping,
    child: Iterator[pa.RecordBatch],
    context: ExecutionContext,
    first: FirstGroups | None,
) -> Iterator[Partial | LooseRows]:
    """Yield the groups of the child's batches, or the rows themselves, divided by their keys, where there are too many
    groups. The order is that of the batches. Several batches that share groups are grouped together. `first` drops the
    rows of groups that a LIMIT leaves out; None: no row is dropped."""
    with ExitStack() as stack:
        rows = begun(child, stack)
        wanted = iter if first is None else first.rows
        if not isinstance(rows, Stage):
            yield from context.parallel(grouping.grouped, _together(grouping, wanted(rows)))
            return
        chain = rows.chain(stack).then(
            lambda batches: [*map(grouping.grouped, _together(grouping, wanted(batches)))]
        )
        for partials in chain.run(context):
            yield from partials


def _together(
    grouping: _Grouping, batches: Iterable[pa.RecordBatch]
) -> Iterator[Sequence[pa.RecordBatch]]:
    """Yield lists of batches, cut to pieces that memory takes, in their order; the batches of a list are grouped in one
    pass."""
    waiting: list[pa.RecordBatch] = []
    for batch in itertools.chain.from_iterable(map(grouping.pieces, batches)):
        if waiting and not (grouping.joins and _may_be_joined(waiting, batch)):
            yield waiting
            waiting = []
        waiting.append(batch)
        if not grouping.joins:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _may_be_joined(batches: Sequence[pa.RecordBatch], batch: pa.RecordBatch) -> bool:
    """Return whether a batch may be grouped together with those before: the rows and bytes do not become too
    many, and the columns have one form."""
    rows = sum(waiting.num_rows for waiting in batches) + batch.num_rows
    row_bytes = sum(map(bytes_of_rows, batch.columns))
    return (
        rows <= tuning.JOINED_BATCH_ROWS_MAX
        and rows * row_bytes <= tuning.LARGE_TASK_BYTES * batch.num_rows
        and have_one_form(batches[-1], batch)
    )


class _Grouping:
    """The grouping of single batches; thread-safe."""

    def __init__(
        self,
        node: Aggregate,
        calls: Sequence[AggregateCall],
        context: ExecutionContext,
        merger: GroupMerger,
    ) -> None:
        self._node = node
        self._merger = merger
        self.pieces = merger.pieces
        self._batches = itertools.count()
        self._repeats_are_few = False
        self._may_total = library() is not None
        self.joins = False
        """Whether several batches are grouped together, since one has many groups."""
        self.may_divide = bool(node.keys) and context.joins_batches
        self.divides = False
        """Whether batches are divided and not grouped, since one has many groups."""
        self._context = context
        self._calls = calls
        self._inputs = CodedInputs(node, context)
        passes = [call.aggregate.acero() for call in self._calls]
        self._passes = (
            None if any(leaves is None for leaves in passes) else [p or () for p in passes]
        )
        nested = any(pa.types.is_nested(e.type.arrow) for _, e in node.keys)
        if nested or not node.keys or library() is not None:
            self._passes = None

    def grouped(self, batches: Sequence[pa.RecordBatch]) -> Partial | LooseRows:
        """Return the groups of batches, or their rows, divided, and note whether more of them are worth that, or
        joining."""
        self._context.check()
        batch = joined_batches(batches)
        if self.divides and batch.num_rows:
            return self._divided(batch)
        partial = self.partial(batch)
        self.joins = self._context.joins_batches and partial.groups >= max(
            tuning.JOINED_GROUPS_MIN, batch.num_rows // tuning.ROWS_PER_JOINED_GROUP_MAX
        )
        self.divides = self.joins and self.may_divide and not self._has_few_keys(batch)
        # Few partials among many rows would have all groups of these merged once more.
        return self._divided(batch) if self.divides else partial

    def _has_few_keys(self, batch: pa.RecordBatch) -> bool:
        """Return whether all rows may have so few keys that batches are grouped in one pass, or by a table: that is
        faster than dividing them."""
        keys = [self._inputs.key(expression, batch) for _, expression in self._node.keys]
        coded = [len(key.dictionary) for key in keys if isinstance(key, pa.DictionaryArray)]
        others = [key for key in keys if not isinstance(key, pa.DictionaryArray)]
        radix_max = tuning.TOTALLED_RADIX_MAX // max(math.prod(coded), 1)
        return library() is not None and (
            (not others and radix_max > 0) or digits_of(others, radix_max) is not None
        )

    def _divided(self, batch: pa.RecordBatch) -> LooseRows:
        """Return the rows of a batch, its keys and arguments, divided by their keys' hashes."""
        return LooseRows.of(self._calls, *self._columns(batch), batch.num_rows)

    def _columns(
        self, batch: pa.RecordBatch, *, masks: bool = False
    ) -> tuple[list[pa.Array], list[list[pa.Array]]]:
        """Return the keys of a batch, and the arguments of each call; conditions of -If may be `masks`."""
        keys = [self._inputs.key(expression, batch) for _, expression in self._node.keys]
        return keys, [self._inputs.arguments(call, batch, masks=masks) for call in self._calls]

    def partial(self, batch: pa.RecordBatch) -> Partial:
        """Return the groups of a batch.

        It uses the codes shared by the views of a block if possible, else Acero, else its own codes."""
        context = self._context
        keys, arguments = self._columns(batch, masks=library() is not None)
        shared = None
        if context.codes is not None:
            shared = context.codes.factorise(
                keys,
                batch.num_rows,
                grouped_anyway=self._passes is not None or library() is not None,
            )
        if shared is not None:
            return self._by_codes(shared, keys, arguments)
        codes = [k.indices if isinstance(k, pa.DictionaryArray) else k for k in keys]
        if self._may_keep_repeats():
            every = np.arange(batch.num_rows)
            states = self.states(Factorised(every, every), arguments)
            return Partial(keys, states, batch.num_rows)
        if self._passes is not None and batch.num_rows:
            partial = self._by_acero(codes, arguments, self._passes)
            return Partial(_coded(partial.keys, keys), partial.states, partial.groups)
        totalled = self._by_totals(codes, arguments)
        if totalled is not None:
            return Partial(_coded(totalled.keys, keys), totalled.states, totalled.groups)
        groups = factorise(codes, batch.num_rows)
        firsts = _coded(first_of_groups(codes, groups), keys)
        self._repeats_are_few = groups.count >= FEW_REPEATS * batch.num_rows
        return Partial(firsts, self.states(groups, arguments), groups.count)

    def _may_keep_repeats(self) -> bool:
        """Return whether each row of a batch may be a group: partials are on disk, so that their groups are
        merged once more anyway, and a batch had few repeats of keys. One in some batches is looked at."""
        return (
            self._repeats_are_few
            and self._merger.spilled
            and next(self._batches) % CHECKED_BATCHES != 0
        )

    def _by_totals(
        self, keys: Sequence[pa.Array], arguments: list[list[pa.Array]]
    ) -> Partial | None:
        """Return the partial of a batch by one pass of a kernel over it; None where keys may have too many values,
        and where states are made of more than counts, sums and extremes."""
        if not self._may_total or not keys or len(keys[0]) < tuning.TOTALLED_ROWS_MIN:
            return None
        self._may_total = False  # what does not suit one batch seldom suits the next
        made: list[TotalsOfState] = []
        for call, values in zip(self._calls, arguments, strict=True):
            totals = call.aggregate.totals(values)
            if totals is None:
                return None
            made.append(totals)
        wanted = [total for made_totals in made for total in made_totals.totals]
        grouped = group_totals(keys, wanted, min(tuning.TOTALLED_RADIX_MAX, len(keys[0])))
        if grouped is None:
            return None
        self._may_total = True
        firsts, values_of_totals = grouped
        states, start = [], 0
        for made_totals in made:
            stop = start + len(made_totals.totals)
            states.append(single_chunk(made_totals.states(values_of_totals[start:stop])))
            start = stop
        first = from_values(firsts, pa.int64())
        return Partial([key.take(first) for key in keys], states, len(firsts))

    def _by_codes(
        self, groups: Factorised, keys: list[pa.Array], arguments: list[list[pa.Array]]
    ) -> Partial:
        """Return the partial of a batch whose groups are known, from its keys and arguments.

        Acero groups by one code faster than by several keys.
        """
        group_keys = first_of_groups(keys, groups)
        if self._passes is not None:
            partial = self._by_acero([from_numpy(groups.codes)], arguments, self._passes)
            return Partial(group_keys, partial.states, partial.groups)
        return Partial(group_keys, self.states(groups, arguments), groups.count)

    def states(self, groups: Factorised, arguments: list[list[pa.Array]]) -> list[pa.Array]:
        """Return one array of states for each aggregate call, a state for each group."""
        return [
            coded_sets.set_of(values[0], groups.groups)
            if call.aggregate.keeps_distinct and isinstance(values[0], pa.DictionaryArray)
            else state_of(call, values, groups.groups)
            for call, values in zip(self._calls, arguments, strict=True)
        ]

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
            columns.extend(
                v.dictionary_decode() if isinstance(v, pa.DictionaryArray) else v for v in values
            )
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


def _coded(codes: Sequence[pa.Array], keys: Sequence[pa.Array]) -> list[pa.Array]:
    """Return the codes as dictionary columns where the key of the same place is a dictionary; other columns
    unchanged."""
    return [
        pa.DictionaryArray.from_arrays(values, key.dictionary, safe=False)
        if isinstance(key, pa.DictionaryArray)
        else values
        for values, key in zip(codes, keys, strict=True)
    ]


def distinct_states(calls: Sequence[AggregateCall]) -> tuple[list[AggregateCall], list[int]]:
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
