"""Joins of which a side only says whether there is a partner, where duplicates do not count.

    k IN (SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.w <> b.w)
    SELECT DISTINCT a.k FROM a JOIN b ON a.k = b.k

The rows of a set, of DISTINCT, of GROUP BY without sums, and of the right side of a SEMI or ANTI join are the
same however often each occurs. A join below whose right columns nothing else reads is then a LEFT SEMI JOIN: one
partner is enough, no pairs are made. If nothing reads the left columns, the sides change places where the
pairs are many. So this is no rule of `optimize`: queries use it after the order of their joins is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import TypeVar, cast

from olapdb.config import tuning
from olapdb.optimize.cardinality import Estimator
from olapdb.optimize.grouped_partners import with_grouped_partners
from olapdb.optimize.partial_aggregates import KEPT_BY_DUPLICATES
from olapdb.plan import nodes
from olapdb.plan.conditions import all_of, all_of_any, conjuncts
from olapdb.plan.expressions import (
    Expression,
    InSubquery,
    columns_of,
    is_repeatable,
    transform,
    walk,
)
from olapdb.plan.tree import (
    expressions_of,
    map_expressions,
    map_subqueries,
    subqueries_of,
    with_columns,
    with_inputs,
)
from olapdb.records import dataclass

Names = frozenset[str]
AnyNode = TypeVar("AnyNode", bound=nodes.Node)


def use_semi_joins(plan: nodes.Plan, estimator: Estimator) -> nodes.Plan:
    """Return the plan with SEMI joins wherever a side of an INNER JOIN only says whether there is a partner."""
    root = _SemiJoins(estimator).every(plan.root)
    return plan if root is plan.root else replace(plan, root=root)


@dataclass
class _SemiJoins:
    """The rewriting of one plan. A subquery that is the same object in several places stays one."""

    estimator: Estimator
    _done: dict[tuple[int, bool], tuple[nodes.Node, nodes.Node]] = field(default_factory=dict)

    def every(self, node: nodes.Node) -> nodes.Node:
        """Return a plan of which each row counts, with the parts below rewritten in which none does."""
        return self._once(node, False)

    def _set(self, node: nodes.Node) -> nodes.Node:
        """Return a plan with the same distinct rows, and the same columns."""
        return self._once(node, True)

    def _once(self, node: nodes.Node, is_set: bool) -> nodes.Node:
        """Return the rewritten plan, of which only distinct rows count if `is_set`; the same object for the same
        plan."""
        key = id(node), is_set
        if key not in self._done:
            if is_set:
                names = frozenset(f.name for f in node.schema)
                rewritten = with_columns(self._distinct(node, names), node.schema)
            else:
                rewritten = self._rows(node)
            self._done[key] = node, rewritten
        return self._done[key][1]

    def _rows(self, node: nodes.Node) -> nodes.Node:
        """Return a node that has exactly the rows of the given one; below it, inner joins whose duplicates do not count are
        SEMI joins."""
        node = self._with_subqueries(node)
        match node:
            case nodes.Distinct(keys=()):
                return with_inputs(node, (self._set(node.child),))
            case nodes.Aggregate() if _ignores_duplicates(node):
                read = [*(e for _, e in node.keys), *_arguments(node)]
                return with_inputs(node, (self._distinct(node.child, _read(read)),))
            case nodes.Join(strictness="SEMI" | "ANTI"):
                return self._partners(node, self.every(node.left))
            case _:
                return with_inputs(node, tuple(map(self.every, node.children())))

    def _with_subqueries(self, node: AnyNode) -> AnyNode:
        """Return a node with the subqueries in its own expressions rewritten: those of IN as sets."""

        def changed(e: Expression) -> Expression | None:
            """Return IN with its subquery as a set, None for any other expression."""
            if not isinstance(e, InSubquery):
                return None
            arguments = tuple(transform(argument, changed) for argument in e.arguments)
            return replace(e, arguments=arguments, plan=self._set(e.plan))

        if not any(True for _ in subqueries_of(node)):
            return node
        in_sets = {id(e.plan) for e in _inside(node) if isinstance(e, InSubquery)}
        # Plans of IN are rewritten as sets alone: what the first pass has made of them would be no set.
        others = map_subqueries(node, lambda p: p if id(p) in in_sets else self.every(p))
        return cast(AnyNode, map_expressions(others, lambda e: transform(e, changed)))

    def _partners(self, node: nodes.Join, left: nodes.Node) -> nodes.Join:
        """Return a SEMI or ANTI join over another left side, whose right side is a set."""
        residual = columns_of(node.residual) if node.residual is not None else frozenset()
        used = _read(node.right_keys) | (residual & _names(node.right))
        right = self._distinct(node.right, used)
        fields = left.schema
        joined = replace(node, left=left, right=right, fields=fields)
        return with_grouped_partners(joined, self.estimator)

    def _distinct(self, node: nodes.Node, needed: Names) -> nodes.Node:
        """Return a plan whose distinct values of the needed columns are those of the node. It may have other
        columns too."""
        match node:
            case nodes.Project() if all(is_repeatable(e) for _, e in node.expressions):
                return self._projected(node, needed)
            case nodes.Filter() if is_repeatable(node.predicate):
                return self._filtered(node, needed)
            case nodes.Join(strictness="ALL", kind="INNER"):
                return self._inner(node, [], needed)
            case nodes.Join(strictness="SEMI" | "ANTI"):
                own = _read(node.left_keys) | _read(conjuncts(node.residual))
                left = self._distinct(node.left, (needed | own) & _names(node.left))
                return self._partners(self._with_subqueries(node), left)
            case nodes.Union():
                return with_inputs(node, tuple(map(self._set, node.children())))
            case _:
                return self._rows(node)

    def _projected(self, node: nodes.Project, needed: Names) -> nodes.Node:
        """Return the distinct rows of the needed expressions; a node as it is if it has none of them."""
        kept = tuple((n, e) for n, e in node.expressions if n in needed)
        if not kept:
            return self._rows(node)
        child = self._distinct(node.child, _read(e for _, e in kept))
        return self._with_subqueries(replace(node, child=child, expressions=kept))

    def _filtered(self, node: nodes.Filter, needed: Names) -> nodes.Node:
        """Return the distinct rows of a filter. Its condition is one of the SEMI join below it."""
        filtered = self._with_subqueries(node)
        parts = conjuncts(filtered.predicate)
        join = filtered.child
        if isinstance(join, nodes.Join) and (join.kind, join.strictness) == ("INNER", "ALL"):
            return self._inner(join, parts, needed)
        child = self._distinct(filtered.child, needed | columns_of(filtered.predicate))
        return replace(filtered, child=child)

    def _inner(self, node: nodes.Join, parts: Sequence[Expression], needed: Names) -> nodes.Node:
        """Return the distinct rows of an INNER JOIN of which some more conditions hold."""
        joined = self._with_subqueries(node)
        semi = self._semi_join(joined, parts, needed)
        if semi is not None:
            return semi
        conditions = [*conjuncts(joined.residual), *parts]
        used = needed | _read([*joined.left_keys, *joined.right_keys, *conditions])
        left = self._distinct(joined.left, used & _names(joined.left))
        right = self._distinct(joined.right, used & _names(joined.right))
        types = {f.name: f for f in joined.fields}
        fields = tuple(types.get(f.name, f) for f in (*left.schema, *right.schema))
        pairs = replace(joined, left=left, right=right, fields=fields)
        return nodes.Filter(pairs, all_of(parts)) if parts else pairs

    def _are_many(self, node: nodes.Join, parts: Sequence[Expression]) -> bool:
        """Return whether a join is expected to make many more pairs than either side has distinct rows, so that a SEMI
        join, which holds the left side, costs less."""
        used = _read([*node.left_keys, *conjuncts(node.residual), *parts])
        before = self.estimator.rows(node.left)
        left = self.estimator.rows(self._distinct(node.left, used & _names(node.left)))
        pairs = self.estimator.rows(node) * left / before
        return pairs > tuning.SWAPPED_PAIRS_FACTOR * max(left, self.estimator.rows(node.right))

    def _semi_join(
        self, node: nodes.Join, parts: Sequence[Expression], needed: Names
    ) -> nodes.Node | None:
        """Return an INNER JOIN as a SEMI join of the side that has all needed columns; None where both
        have some, or that does not pay."""
        conditions = [*conjuncts(node.residual), *parts]
        keys = (*node.left_keys, *node.right_keys)
        if not node.left_keys or not all(map(is_repeatable, (*conditions, *keys))):
            return None
        left, right = node.left, node.right
        left_keys, right_keys = node.left_keys, node.right_keys
        if needed & _names(right):
            if needed & _names(left) or not self._are_many(node, parts):
                return None
            left, right, left_keys, right_keys = right, left, right_keys, left_keys
        semi = nodes.Join(
            left, right, "LEFT", "SEMI", left_keys, right_keys, all_of_any(conditions), left.schema
        )
        read = _read([*left_keys, *conditions])
        return self._partners(semi, self._distinct(left, (needed | read) & _names(left)))


def _ignores_duplicates(node: nodes.Aggregate) -> bool:
    """Return whether the groups and their results are the same however often a row occurs."""
    return (
        not node.sets
        and node.totals is None
        and all(call.name in KEPT_BY_DUPLICATES for _, call in node.aggregates)
        and all(is_repeatable(e) for e in (*(e for _, e in node.keys), *_arguments(node)))
    )


def _inside(node: nodes.Node) -> Iterator[Expression]:
    """Yield the node's own expressions with all of their subexpressions."""
    for expression in expressions_of(node):
        yield from walk(expression)


def _arguments(node: nodes.Aggregate) -> list[Expression]:
    """Return the arguments of all aggregates of the node, one list for all."""
    return [argument for _, call in node.aggregates for argument in call.arguments]


def _names(node: nodes.Node) -> Names:
    """Return the names of a node's columns."""
    return frozenset(f.name for f in node.schema)


def _read(expressions: Iterable[Expression]) -> Names:
    """Return the columns that expressions read."""
    return frozenset().union(*(columns_of(e) for e in expressions))
