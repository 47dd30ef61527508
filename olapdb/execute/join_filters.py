"""Join filters: the keys of a join's held side drop rows of the other side where these are read.

    SELECT … FROM lineitem JOIN orders ON l_orderkey = o_orderkey WHERE o_orderdate = '1995-01-01'

The join holds the orders of a day, and looks up every line.  Once it knows their keys, the scan of
lineitem gets the condition `l_orderkey IN (those keys)`: granules are skipped by it, and the columns of
other lines are not read.  The rows that remain, and their order, are those that the join would keep.

    SELECT … FROM orders WHERE o_orderdate = '1995-01-01' AND EXISTS (… lineitem …)

Here the held side is the larger one. Where the estimates say so, the few rows of the left side are read
first, and their keys drop rows of the side that is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Literal

import pyarrow as pa

from olapdb.compute.batches import single_batch, table_of
from olapdb.compute.context import ExecutionContext
from olapdb.compute.hash_table import Lookup, build_bytes
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.row_buffer import RowBuffer, evaluate_in_batches
from olapdb.compute.stages import Deferred, all_batches
from olapdb.config import tuning
from olapdb.execute.operators.join_outputs import restored
from olapdb.execute.operators.row_filter import cannot_fail
from olapdb.execute.table_samples import estimator_of
from olapdb.plan import nodes
from olapdb.plan.conditions import all_of, conjuncts
from olapdb.plan.expressions import ColumnRef, Expression, InSubquery
from olapdb.plan.tree import with_inputs
from olapdb.types import UINT8, Nullable, is_nullable

Start = Callable[[nodes.Node], Iterator[pa.RecordBatch]]
Side = Literal["left", "right"]


class JoinFilter:
    """The filter of one join: empty until `built` is called, which the join does before it asks for
    the first row of its left side."""

    def __init__(self, join: nodes.Join, context: ExecutionContext) -> None:
        self._join = join
        self._context = context
        self._lookup: Lookup | None = None
        self.leaves_few = False
        """Whether the filter is expected to leave few of the left rows, known once they are asked for."""

    def built(self, lookup: Lookup) -> None:
        """Keep the hashed keys of the right side, by which `sides` then filters the left side."""
        self._lookup = lookup

    def sides(
        self, start: Start, right: Iterator[pa.RecordBatch], account: MemoryAccount
    ) -> tuple[Iterator[pa.RecordBatch], Iterator[pa.RecordBatch]]:
        """Return the rows of both sides, the right one to be read first. `start(node)` runs a plan,
        `right` are the rows of the whole right side. The account counts left rows that are held."""
        if not self.reduces_right:
            return Deferred(lambda _: self._left_rows(start)), right
        join, context = self._join, self._context
        left, held = all_batches(start(join.left), context), RowBuffer(join.left.schema, account)
        bytes_max = min(tuning.HELD_LEFT_BYTES_MAX, context.memory.available_bytes // 8)
        for batch in left:
            context.check()
            held.add(restored(batch, join.left.schema))
            if held.nbytes > bytes_max:  # the estimate was wrong
                return chain(held.drain(), left), right
        batches = held.drain()
        rows = single_batch(table_of(batches, join.left.schema))
        keys = [evaluate_in_batches(key, rows, context, account) for key in join.left_keys]
        account.grow(build_bytes(keys, rows.num_rows))
        lookup = Lookup(keys, rows.num_rows, threads=context.threads)
        condition = _condition(_columns(join.right_keys), join.left)
        filtered = self._filtered(join.right, condition, lookup, "left")
        if filtered is None:
            return iter(batches), right
        return iter(batches), Deferred(lambda _: self._answered(condition, lookup, start(filtered)))

    @cached_property
    def reduces_right(self) -> bool:
        """Whether the left side's keys should filter the right side: they are expected to drop most of its rows, and
        the left side has far fewer rows, so that reading it first costs little."""
        join, context = self._join, self._context
        if not _needs_partners_only(join):
            return False
        condition = _condition(_columns(join.right_keys), join.left)
        targets = list(_targets(join.right, condition))
        if not targets:
            return False
        estimator = estimator_of(context)
        rows = estimator.rows(join.left)
        if tuning.LEFT_FIRST_FACTOR * rows > estimator.rows(join.right):
            return False
        key_counts = [estimator.distinct(key, join.left) for key in join.left_keys]
        return any(
            scan.table.id not in context.blocks and self._pays(scan, below, key_counts)
            for scan, below in targets
        )

    @contextmanager
    def _answered(
        self, condition: InSubquery, lookup: Lookup, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        """Yield `batches`, the rows of a plan that has the condition. While the `with` block runs, `lookup` is the
        answer of the condition's subquery."""
        self._context.subqueries[condition.number] = lookup
        try:
            yield batches
        finally:
            del self._context.subqueries[condition.number]

    @contextmanager
    def _left_rows(self, start: Start) -> Iterator[Iterator[pa.RecordBatch]]:
        """Give the rows of the join's left side, without rows that the filter can drop where they
        are read. `start(node)` runs a plan with the schema of the left side."""
        left, lookup = self._join.left, self._lookup
        if lookup is None or not _drops_rows(self._join):
            yield start(left)
            return
        condition = _condition(_columns(self._join.left_keys), self._join.right)
        filtered = self._filtered(left, condition, lookup, "right")
        if filtered is None:
            yield start(left)
            return
        with self._answered(condition, lookup, start(filtered)) as rows:
            yield rows

    def _filtered(
        self, node: nodes.Node, condition: InSubquery, lookup: Lookup, side: Side
    ) -> nodes.Node | None:
        """Return the plan with the condition in the scan that has its columns. None if there is no
        such scan, or the condition would keep most of its rows. The keys are those of `side`, left or right."""
        if isinstance(node, nodes.Scan):
            return self._filtered_scan(node, condition, lookup, side)
        for at, child in enumerate(node.children()):
            below = _below(node, at, condition)
            if below is None:
                continue
            filtered = self._filtered(child, below, lookup, side)
            if filtered is not None:
                inputs = list(node.children())
                inputs[at] = filtered
                changed = with_inputs(node, tuple(inputs))
                self._report(changed, node, side)
                return changed
        return None

    def _report(self, changed: nodes.Node, node: nodes.Node, side: Side) -> None:
        """Tell EXPLAIN ANALYZE that `changed` runs in place of `node`, and which share of its rows the keys of `side`
        are expected to leave; do nothing in other queries."""
        profile = self._context.profile
        if profile is not None:
            profile.stand_in(changed, node)
            reduced: Side = "left" if side == "right" else "right"
            profile.reduce(node, estimator_of(self._context).matched(self._join, reduced))

    def _filtered_scan(
        self, scan: nodes.Scan, condition: InSubquery, lookup: Lookup, side: Side
    ) -> nodes.Scan | None:
        """Return the scan with the condition; None where that does not pay."""
        context = self._context
        if scan.table.id in context.blocks or not self._pays(scan, condition, lookup.value_counts):
            return None
        goes_first = False
        if not scan.final and scan.prewhere is None:
            goes_first = self._goes_first(scan, condition, lookup)
        if scan.final or scan.prewhere is not None:
            predicate = all_of([*conjuncts(scan.predicate), condition])
            changed = replace(scan, predicate=predicate)
        elif goes_first:
            changed = replace(scan, prewhere=condition)
        else:  # rows that the other conditions drop are not looked up
            changed = replace(scan, prewhere=scan.predicate, predicate=condition)
        self.leaves_few |= goes_first and side == "right"
        self._report(changed, scan, side)
        columns = dict(scan.columns)
        names = ", ".join(columns[e.name] for e in condition.arguments if isinstance(e, ColumnRef))
        when = ", before the other conditions" if goes_first else ""
        context.note(
            scan, f"Join filter: {names} IN {lookup.count} keys of the join's {side} side{when}"
        )
        return changed

    def _goes_first(self, scan: nodes.Scan, condition: InSubquery, lookup: Lookup) -> bool:
        """Return whether to look keys up before the other conditions of a scan: none of these can fail, and so few rows
        are expected to have a key that the columns of the other conditions are read for these rows alone."""
        context, others = self._context, scan.predicate
        if others is None or not lookup.is_quick or not cannot_fail(others, context):
            return False
        estimator = estimator_of(context)
        passing = self._passing(replace(scan, predicate=None), condition, lookup.value_counts)
        kept = estimator.rows(scan) / estimator.table_rows(scan)
        return passing * tuning.ROWS_PER_LATE_ROW_MIN <= 1 and passing < kept

    def _pays(self, scan: nodes.Scan, condition: InSubquery, key_counts: Sequence[float]) -> bool:
        """Return whether a scan is large enough, and the condition is expected to drop enough of its rows. `key_counts`
        has the number of values known for each key of the condition."""
        whole = replace(scan, predicate=None, prewhere=None)
        if estimator_of(self._context).table_rows(whole) < tuning.JOIN_FILTER_ROWS_MIN:
            return False
        passing = self._passing(whole, condition, key_counts)
        return 100 * passing <= tuning.JOIN_FILTER_PASS_PERCENT_MAX

    def _passing(
        self, scan: nodes.Scan, condition: InSubquery, key_counts: Sequence[float]
    ) -> float:
        """Return the part of a scan's rows, 0 to 1, that is expected to meet the condition: the smallest share that one
        of its keys lets pass by itself. `key_counts` has the number of values known for each key."""
        estimator = estimator_of(self._context)
        shares = (
            count / estimator.distinct(key, scan)
            for count, key in zip(key_counts, condition.arguments, strict=True)
        )
        return min(1.0, *shares)


def _columns(keys: Sequence[Expression]) -> list[ColumnRef]:
    """Return those of the keys that are columns; computed keys are left out."""
    return [key for key in keys if isinstance(key, ColumnRef)]


def _condition(keys: Sequence[ColumnRef], plan: nodes.Node) -> InSubquery:
    """Return `keys IN plan`. The plan never runs: the answer is put beside the condition's number in the context."""
    is_null = len(keys) == 1 and is_nullable(keys[0].type)
    return InSubquery(Nullable(UINT8) if is_null else UINT8, tuple(keys), plan, False)


def _targets(node: nodes.Node, condition: InSubquery) -> Iterator[tuple[nodes.Scan, InSubquery]]:
    """Yield the scans to which the condition can move, with the condition there."""
    if isinstance(node, nodes.Scan):
        yield node, condition
    for at, child in enumerate(node.children()):
        below = _below(node, at, condition)
        if below is not None:
            yield from _targets(child, below)


def _needs_partners_only(join: nodes.Join) -> bool:
    """Return whether the join's result is the same without the right rows whose keys the left side lacks. False where a
    key of the right side is no column."""
    kinds = ("INNER", "LEFT") if join.strictness != "ASOF" else ()
    return join.kind in kinds and _has_equal_columns(join, join.right_keys)


def _has_equal_columns(join: nodes.Join, keys: Sequence[Expression]) -> bool:
    """Return whether the keys are columns, and those of both sides have the same Arrow types."""
    pairs = zip(join.left_keys, join.right_keys, strict=True)
    return (
        bool(keys)
        and all(isinstance(key, ColumnRef) for key in keys)
        and all(left.type.arrow == right.type.arrow for left, right in pairs)
    )


def _drops_rows(join: nodes.Join) -> bool:
    """Return whether the join's result is the same without the left rows whose keys the right side lacks. False where a
    key of the left side is no column."""
    is_inner = join.strictness in ("ALL", "ANY") and join.kind == "INNER"
    drops = (
        is_inner or join.strictness == "SEMI" or (join.strictness, join.kind) == ("ALL", "RIGHT")
    )
    return drops and _has_equal_columns(join, join.left_keys)


def _below(node: nodes.Node, at: int, condition: InSubquery) -> InSubquery | None:
    """Return the condition over the node's input `at`, None if it must not move there."""
    used = [key.name for key in condition.arguments if isinstance(key, ColumnRef)]
    match node:
        case nodes.Filter() | nodes.Sort(limit=None) | nodes.Distinct(keys=()):
            return condition
        case nodes.LimitBy(keys=keys):
            by = {key.name for key in keys if isinstance(key, ColumnRef)}
            return condition if set(used) <= by else None
        case nodes.Project(expressions=pairs):
            return _renamed(condition, dict(pairs))
        case nodes.Aggregate(sets=(), totals=None, keys=keys):
            return _renamed(condition, dict(keys))
        case nodes.Join(kind=kind, strictness=strictness):
            side = node.children()[at]
            if not set(used) <= {field.name for field in side.schema}:
                return None
            if strictness in ("SEMI", "ANTI"):
                return condition if at == 0 else None
            keeps = ("INNER", "CROSS", "LEFT" if at == 0 else "RIGHT")
            return condition if strictness == "ALL" and kind in keeps else None
        case _:
            return None


def _renamed(condition: InSubquery, by_name: dict[str, object]) -> InSubquery | None:
    """Return the condition over the columns that its own columns are, None if one is computed."""
    arguments = []
    for key in condition.arguments:
        inner = by_name.get(key.name) if isinstance(key, ColumnRef) else None
        if not isinstance(inner, ColumnRef) or inner.type != key.type:
            return None
        arguments.append(inner)
    return replace(condition, arguments=tuple(arguments))
