"""Join filters: the keys of a join's held side drop rows of the other side where these are read.

    SELECT … FROM lineitem JOIN orders ON l_orderkey = o_orderkey WHERE o_orderdate = '1995-01-01'

The join holds the orders of a day, and looks up every line.  Once it knows their keys, the scan of
lineitem gets the condition `l_orderkey IN (those keys)`: granules are skipped by it, and the columns of
other lines are not read.  The rows that remain, and their order, are those that the join would keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.compute.hash_table import Lookup
from olapdb.config import tuning
from olapdb.optimize.cardinality import Estimator
from olapdb.optimize.statistics import statistics_of
from olapdb.plan import nodes
from olapdb.plan.conditions import all_of, conjuncts
from olapdb.plan.expressions import ColumnRef, InSubquery
from olapdb.plan.tree import with_inputs
from olapdb.storage.distinct_counts import distinct_counts
from olapdb.types import UINT8, Nullable, is_nullable

Start = Callable[[nodes.Node], Iterator[pa.RecordBatch]]


class JoinFilter:
    """The filter of one join: empty until `built` is called, which the join does before it asks for
    the first row of its left side."""

    def __init__(self, join: nodes.Join, context: ExecutionContext) -> None:
        self._join = join
        self._context = context
        self._lookup: Lookup | None = None

    def built(self, lookup: Lookup) -> None:
        """Take the keys of the right side."""
        self._lookup = lookup

    def left_rows(self, start: Start) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the join's left side, without rows that the filter can drop where they
        are read. `start(node)` runs a plan with the schema of the left side."""
        left, lookup = self._join.left, self._lookup
        if lookup is None or not _drops_rows(self._join):
            yield from start(left)
            return
        keys = [key for key in self._join.left_keys if isinstance(key, ColumnRef)]
        plan = self._join.right
        is_null = any(is_nullable(key.type) for key in keys)
        condition = InSubquery(
            Nullable(UINT8) if is_null and len(keys) == 1 else UINT8, tuple(keys), plan, False
        )
        filtered = self._filtered(left, condition, lookup)
        if filtered is None:
            yield from start(left)
            return
        self._context.subqueries[condition.number] = lookup
        try:
            yield from start(filtered)
        finally:
            del self._context.subqueries[condition.number]

    def _filtered(
        self, node: nodes.Node, condition: InSubquery, lookup: Lookup
    ) -> nodes.Node | None:
        """Return the plan with the condition in the scan that has its columns. None if there is no
        such scan, or the condition would keep most of its rows."""
        if isinstance(node, nodes.Scan):
            return self._filtered_scan(node, condition, lookup)
        for at, child in enumerate(node.children()):
            below = _below(node, at, condition)
            if below is None:
                continue
            filtered = self._filtered(child, below, lookup)
            if filtered is not None:
                inputs = list(node.children())
                inputs[at] = filtered
                changed = with_inputs(node, tuple(inputs))
                if self._context.profile is not None:
                    self._context.profile.stand_in(changed, node)
                return changed
        return None

    def _filtered_scan(
        self, scan: nodes.Scan, condition: InSubquery, lookup: Lookup
    ) -> nodes.Scan | None:
        """Return the scan with the condition; None where that does not pay."""
        context = self._context
        if scan.table.id in context.blocks or not self._pays(scan, condition, lookup):
            return None
        if scan.final or scan.prewhere is not None:
            predicate = all_of([*conjuncts(scan.predicate), condition])
            changed = replace(scan, predicate=predicate)
        else:  # rows that the other conditions drop are not looked up
            changed = replace(scan, prewhere=scan.predicate, predicate=condition)
        if context.profile is not None:
            context.profile.stand_in(changed, scan)
        columns = dict(scan.columns)
        names = ", ".join(columns[e.name] for e in condition.arguments if isinstance(e, ColumnRef))
        context.note(scan, f"Join filter: {names} IN {lookup.count} keys of the join's right side")
        return changed

    def _pays(self, scan: nodes.Scan, condition: InSubquery, lookup: Lookup) -> bool:
        """Return whether the condition is expected to drop enough rows of a scan that is large
        enough."""
        context, snapshot = self._context, self._context.require_snapshot()
        counts = distinct_counts(context.require_store(), snapshot)
        statistics = statistics_of(snapshot, counts)
        if statistics(scan.table).rows < tuning.JOIN_FILTER_ROWS_MIN:
            return False
        whole = replace(scan, predicate=None, prewhere=None)
        estimator = Estimator(statistics)
        distinct = max(estimator.distinct(key, whole) for key in condition.arguments)
        return 100 * lookup.count <= tuning.JOIN_FILTER_PASS_PERCENT_MAX * distinct


def _drops_rows(join: nodes.Join) -> bool:
    """Return whether the join drops left rows whose keys, which are columns, the right side lacks."""
    is_inner = join.strictness in ("ALL", "ANY") and join.kind == "INNER"
    drops = (
        is_inner or join.strictness == "SEMI" or (join.strictness, join.kind) == ("ALL", "RIGHT")
    )
    keys = zip(join.left_keys, join.right_keys, strict=True)
    return (
        drops
        and bool(join.left_keys)
        and all(
            isinstance(left, ColumnRef) and left.type.arrow == right.type.arrow
            for left, right in keys
        )
    )


def _below(node: nodes.Node, at: int, condition: InSubquery) -> InSubquery | None:
    """Return the condition over the node's input `at`, None if it must not move there."""
    used = [key.name for key in condition.arguments if isinstance(key, ColumnRef)]
    match node:
        case nodes.Filter() | nodes.Sort(limit=None) | nodes.Distinct(keys=()):
            return condition
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
