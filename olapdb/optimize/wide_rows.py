"""Wide values are computed by Projects, which bound the bytes of their batches.

    SELECT max(repeat(s, 1000)) FROM t WHERE repeat(s, 9) LIKE '%9%' GROUP BY k

    Aggregate max(-wide 1) by k
      Project k, repeat(s, 1000) AS -wide 1
        Filter -wide 0
          Project k, s, repeat(s, 9) LIKE '%9%' AS -wide 0
            Scan

It is the last rule, since others would put the expressions back. Views keep the plans of their block functions."""

from __future__ import annotations

import itertools
from dataclasses import replace

from olapdb.plan.conditions import all_of, conjuncts
from olapdb.plan.expressions import ColumnRef, Expression, columns_of
from olapdb.plan.nodes import (
    Aggregate,
    ArrayJoin,
    Distinct,
    Filter,
    LimitBy,
    Node,
    Plan,
    Project,
    Scan,
    Schema,
    Sort,
    Window,
)
from olapdb.plan.scan_conditions import scan_without
from olapdb.plan.tree import (
    bottom_up,
    expressions_of,
    map_expressions,
    map_subqueries,
    with_columns,
    with_inputs,
)
from olapdb.plan.wide_values import may_be_wide, may_widen, reads_blocks


def compute_wide_values_apart(plan: Plan) -> Plan:
    """Return a plan of the same result in which Projects alone compute wide values, those of subqueries too; the same
    plan if it has none. Keys and residual conditions of joins stay as they are. So does a plan of runningDifference or
    another function of the rows of a batch: smaller batches would change its results."""
    if reads_blocks(plan.root):
        return replace(plan, reads_blocks=True)
    root = _Apart().tree(plan.root)
    return plan if root is plan.root else replace(plan, root=root)


class _Apart:
    """The rewriting of one plan. A subquery that is the same object in several places stays one."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._done: dict[int, tuple[Node, Node]] = {}

    def tree(self, root: Node) -> Node:
        """Return a tree, and the subqueries in it, with Projects for the wide values."""
        if id(root) not in self._done:
            changed = bottom_up(root, lambda node: self._node(map_subqueries(node, self.tree)))
            self._done[id(root)] = root, changed
        return self._done[id(root)][1]

    def _node(self, node: Node) -> Node:
        """Return a node whose inputs are done."""
        match node:
            case Project(expressions=pairs):
                is_wide = may_be_wide([e for _, e in pairs])
                return node if is_wide == node.is_wide else replace(node, is_wide=is_wide)
            case Filter():
                return self._filter(node)
            case Scan():
                return self._scan(node)
            case Aggregate(totals=None) | ArrayJoin() | Distinct() | LimitBy() | Sort() | Window():
                return self._computed_below(node)
            case _:
                return node

    def _filter(self, node: Filter) -> Node:
        """Return a filter of which wide values are computed after the other conditions."""
        parts = conjuncts(node.predicate)
        wide = [part for part in parts if may_widen(part)]
        if not wide:
            return node
        narrow = [part for part in parts if not may_widen(part)]
        below = Filter(node.child, all_of(narrow)) if narrow else node.child
        return self._computed_below(Filter(below, all_of(wide)))

    def _scan(self, node: Scan) -> Node:
        """Return a scan with its wide conditions above it. PREWHERE of FINAL, which comes before rows are combined,
        stays."""
        conditions = conjuncts(node.predicate)
        if not node.final:
            conditions = [*conjuncts(node.prewhere), *conditions]
        wide = [condition for condition in conditions if may_widen(condition)]
        return self._filter_of(*scan_without(node, wide), node.schema) if wide else node

    def _filter_of(self, scan: Scan, condition: Expression, schema: Schema) -> Node:
        """Return the columns of `schema` of the rows of a scan for which a wide condition holds."""
        return with_columns(self._filter(Filter(scan, condition)), schema)

    def _computed_below(self, node: Node) -> Node:
        """Return a node with one input whose wide expressions are columns of a Project below it."""
        wide = list(dict.fromkeys(e for e in expressions_of(node) if may_widen(e)))
        if not wide:
            return node
        (child,) = node.children()
        names = {e: f"-wide {next(self._numbers)}" for e in wide}
        fields = child.schema
        if isinstance(node, Aggregate):
            read = frozenset().union(
                *(columns_of(e) for e in expressions_of(node) if e not in names)
            )
            fields = tuple(f for f in fields if f.name in read)
        own = tuple((f.name, ColumnRef(f.type, f.name)) for f in fields)
        computed = tuple((name, e) for e, name in names.items())
        below = Project(child, (*own, *computed), is_wide=True)

        def by_name(expression: Expression) -> Expression:
            """Return the column of a wide expression, any other expression unchanged."""
            name = names.get(expression)
            return expression if name is None else ColumnRef(expression.type, name)

        changed = map_expressions(with_inputs(node, (below,)), by_name)
        return with_columns(changed, node.schema)
