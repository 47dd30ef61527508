"""The order of joins, by the estimated rows of every intermediate result.

Up to `limit` relations it is the cheapest of all trees without a needless CROSS join (dynamic
programming over connected sets); above, and between unconnected ones, greedy. The smaller side of
each join is the one that is held and hashed. A SEMI or ANTI join above inner joins, as EXISTS becomes, is done before
them on the one relation whose rows it keeps or drops, where that costs less. Views keep the order in which they are written, so this is
no rule of `optimize`: only queries use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from math import prod

from olapdb.config import tuning
from olapdb.model.schema import Table
from olapdb.optimize.cardinality import UNKNOWN, Estimator
from olapdb.optimize.join_graph import JoinGraph, JoinTree, Relations, build, graph_of
from olapdb.optimize.merge_projects import merge_projects
from olapdb.optimize.prune_columns import prune_columns
from olapdb.optimize.push_predicates import push_predicates
from olapdb.plan.expressions import columns_of, is_repeatable
from olapdb.plan.nodes import Filter, Join, Node, Plan, Scan
from olapdb.plan.tree import (
    all_nodes,
    bottom_up,
    expressions_of,
    map_subqueries,
    with_columns,
    with_inputs,
)
from olapdb.records import dataclass

DYNAMIC_MAX = 12
"""Relations; trying every order of more takes too long."""
GAIN_MIN = 0.999
"""An order must cost at most this part of the written one to replace it. With a smaller part the time of
a query would depend on how it is written: a large table is most of the cost of all orders."""
_HASH_COST = 2.0
"""The cost of holding and hashing a row, over that of looking one up."""


def order_joins(plan: Plan, estimator: Estimator, limit: int) -> Plan:
    """Return the plan with its inner joins in the cheapest order, those of subqueries too.

    `limit` is the number of relations up to which every order is considered; 0 keeps all orders."""
    if limit < 1:
        return plan
    root = _ordered_tree(plan.root, estimator, limit)
    return plan if root is plan.root else replace(plan, root=root)


def joined_tables(plan: Plan) -> tuple[Table, ...]:
    """Return the tables of a plan, each once, if it has joins whose form their rows decide; else ()."""
    nodes = list(all_nodes(plan.root))
    if not any(isinstance(n, Join) and _is_chosen(n) for n in nodes):
        return ()
    return tuple({n.table.id: n.table for n in nodes if isinstance(n, Scan)}.values())


def _is_chosen(join: Join) -> bool:
    """Return whether the rows of its sides decide the form of a join."""
    return join.kind in ("INNER", "CROSS") or join.strictness in ("SEMI", "ANTI")


def _ordered_tree(root: Node, estimator: Estimator, limit: int) -> Node:
    """Return one tree with its joins, and those of the subqueries in it, ordered."""
    done: dict[int, tuple[Node, Node]] = {}

    def subquery(node: Node) -> Node:
        """Return a subquery's plan with its joins ordered, the same object for the same plan."""
        if id(node) not in done:
            done[id(node)] = (node, _ordered_tree(node, estimator, limit))
        return done[id(node)][1]

    inner = bottom_up(root, lambda n: map_subqueries(n, subquery))
    ordered = _ordered(inner, estimator, limit)
    if ordered is inner:
        return root if all(before is after for before, after in done.values()) else inner
    return merge_projects(prune_columns(push_predicates(ordered)))


def _ordered(node: Node, estimator: Estimator, limit: int) -> Node:
    """Return a node with the inner joins at its top, and those further below, in the cheapest order. `limit` is as in
    `order_joins`. SEMI and ANTI joins above them are done on one relation where that costs less."""
    above = list(_partner_joins(node))
    top = above[-1].left if above else node
    graph = graph_of(top)
    if graph is None:
        return with_inputs(node, tuple(_ordered(c, estimator, limit) for c in node.children()))
    relations = tuple(_ordered(relation, estimator, limit) for relation in graph.relations)
    changed = any(new is not old for new, old in zip(relations, graph.relations, strict=True))
    graph = JoinGraph(relations, graph.equalities, graph.conditions)
    tree = written_tree(top)
    rights = [_ordered(join.right, estimator, limit) for join in above]
    kept = [replace(join, right=right) for join, right in zip(above, rights, strict=True)]
    if sum(map(estimator.table_rows, relations)) >= tuning.JOIN_ORDER_ROWS_MIN:
        graph, kept = _with_partners_first(graph, kept, estimator, limit)
        costs = _Costs(graph, estimator)
        best = costs.best(limit)
        if costs.of(best) <= GAIN_MIN * costs.of(tree):
            tree, changed = best, True
    changed = changed or len(kept) < len(above)
    if not changed and all(new is old.right for new, old in zip(rights, above, strict=True)):
        return node
    ordered = build(graph, tree) if changed else top
    for join in reversed(kept):
        ordered = replace(join, left=ordered, fields=ordered.schema)
    return with_columns(ordered, node.schema)


def _partner_joins(node: Node) -> Iterator[Join]:
    """Yield the SEMI and ANTI joins at the top of a plan, the outermost first. Each keeps or drops left rows, whatever
    the other joins do."""
    while (
        isinstance(node, Join)
        and node.kind == "LEFT"
        and node.strictness in ("SEMI", "ANTI")
        and node.fields == node.left.schema
        and all(map(is_repeatable, expressions_of(node)))
    ):
        yield node
        node = node.left


def _with_partners_first(
    graph: JoinGraph, above: Sequence[Join], estimator: Estimator, limit: int
) -> tuple[JoinGraph, list[Join]]:
    """Return the graph in which relations have the SEMI and ANTI joins that cost less on them than above all inner
    joins, and the other ones of `above`, the outermost first."""
    kept: list[Join] = []
    for join in reversed(above):
        pushed = _with_partner_first(graph, join, estimator, limit)
        if pushed is None:
            kept.insert(0, join)
        else:
            graph = pushed
    return graph, kept


def _with_partner_first(
    graph: JoinGraph, join: Join, estimator: Estimator, limit: int
) -> JoinGraph | None:
    """Return the graph with a SEMI or ANTI join on the one relation that it reads on its left; None if it reads
    several, or if it costs less above the inner joins, which may leave few of the relation's rows."""
    right = {field.name for field in join.right.schema}
    read = frozenset().union(*map(columns_of, expressions_of(join))) - right
    reading = [at for at, node in enumerate(graph.relations) if read & _names(node)]
    if len(reading) != 1:
        return None
    (at,) = reading
    relations = list(graph.relations)
    relations[at] = replace(join, left=relations[at], fields=relations[at].schema)
    pushed = JoinGraph(tuple(relations), graph.equalities, graph.conditions)
    before, after = _Costs(graph, estimator), _Costs(pushed, estimator)
    everything = (1 << len(relations)) - 1
    cost_above = before.of(before.best(limit)) + before.rows(everything) + after.rows(everything)
    cost_first = after.of(after.best(limit)) + before.leaves[at] + after.leaves[at]
    return pushed if cost_first <= GAIN_MIN * cost_above else None


def _names(node: Node) -> frozenset[str]:
    """Return the names of a node's columns."""
    return frozenset(field.name for field in node.schema)


def written_tree(node: Node) -> JoinTree:
    """Return the tree in which a plan joins the relations of its graph."""
    position = iter(range(1 << 30))

    def tree_of(part: Node) -> JoinTree:
        """Return the tree of a part of the plan. A relation is its number: relations are counted from left to right."""
        while isinstance(part, Filter) and graph_of(part) is not None:
            part = part.child
        if graph_of(part) is None:
            return next(position)
        left, right = part.children()
        return tree_of(left), tree_of(right)

    return tree_of(node)


@dataclass(frozen=True, eq=False)
class _Leaf:
    """The estimates of a relation, joined with those `within` whose bounds its keys are, as bits. `distinct` has
    the values of its expression in each class, 0 where it has none."""

    node: Node
    within: int
    rows: float
    distinct: list[float]


def _rows_of(leaf: _Leaf) -> float:
    """Return the expected number of rows of a leaf."""
    return leaf.rows


@dataclass
class _Costs:
    """The costs of the trees of one graph: rows made, rows looked up, rows hashed."""

    graph: JoinGraph
    estimator: Estimator

    @cached_property
    def leaves(self) -> list[float]:
        """The expected number of rows of each relation, after the conditions on it alone."""
        return [leaves[0].rows for leaves in self._leaves]

    @cached_property
    def _leaves(self) -> list[list[_Leaf]]:
        """The estimates of each relation: of its own rows, then of those within the bounds of each
        relation that it can be joined with, where these are fewer."""
        return [
            [self._leaf(at, at), *self._narrowed(at)] for at in range(len(self.graph.relations))
        ]

    def _narrowed(self, at: int) -> Iterator[_Leaf]:
        """Yield for each relation that shares an equality with this one the estimates of this one's rows within the
        other's bounds, if these drop any."""
        for other in range(len(self.graph.relations)):
            if other != at and self.neighbours[at] >> other & 1:
                leaf = self._leaf(at, other)
                if leaf.node is not self.graph.relations[at]:
                    yield leaf

    def _leaf(self, at: int, other: int) -> _Leaf:
        """Return the estimates of a relation, joined with another one if that is not itself."""
        node, estimator = self.graph.relations[at], self.estimator
        if other != at:
            keys = self.graph.keys(frozenset((at,)), frozenset((other,)))
            ours, theirs = [key for key, _ in keys], [key for _, key in keys]
            node = estimator.narrowed(node, ours, self.graph.relations[other], theirs)
        kept = (estimator.selectivity(c, node) for c in self.graph.within(at))
        rows = max(prod(kept, start=estimator.rows(node)), 1.0)
        members = [
            [estimator.domain(e, node) for owner, e in members if owner == at]
            for members in self.graph.classes
        ]
        return _Leaf(
            node, 0 if other == at else 1 << other, rows, [min(m, default=0) for m in members]
        )

    @cached_property
    def _table_rows(self) -> list[float]:
        """The number of rows of each relation; of a table all of its rows, before any condition."""
        return [self.estimator.table_rows(relation) for relation in self.graph.relations]

    @cached_property
    def neighbours(self) -> list[int]:
        """For each relation the set, as bits, of those that share an equality with it."""
        bits = [0] * len(self.graph.relations)
        for relation in range(len(bits)):
            for other in range(len(bits)):
                if relation != other and self.graph.keys(
                    frozenset((relation,)), frozenset((other,))
                ):
                    bits[relation] |= 1 << other
        return bits

    def rows(self, members: int) -> float:
        """Return the rows of the join of a set of relations, given as bits."""
        if members not in self._rows:
            self._rows[members] = self._estimated(members)
        return self._rows[members]

    @cached_property
    def _rows(self) -> dict[int, float]:
        """The estimates made so far: the rows of the join by its set of relations, as bits."""
        return {}

    def _estimated(self, members: int) -> float:
        """Return the expected rows of the join of a set of relations, given as bits: all combinations of their rows,
        divided for each class of equal keys by the distinct values of all relations in it but the one with the fewest.
        Several keys between two relations divide by at most the rows of the smaller table."""
        leaves = {
            at: min((leaf for leaf in leaves if not leaf.within & ~members), key=_rows_of)
            for at, leaves in enumerate(self._leaves)
            if members >> at & 1
        }
        rows = prod((leaf.rows for leaf in leaves.values()), start=1.0)
        divisors: dict[tuple[int, int], float] = {}
        for position in range(len(self.graph.classes)):
            inside = {
                at: leaf.distinct[position]
                for at, leaf in leaves.items()
                if leaf.distinct[position]
            }
            ranked = sorted(inside, key=lambda at: (inside[at], -leaves[at].rows))
            for smaller, larger in pairwise(ranked):
                pair = (min(smaller, larger), max(smaller, larger))
                before = divisors.get(pair)
                combinations_max = min(self._table_rows[smaller], self._table_rows[larger])
                divisors[pair] = (
                    inside[larger]
                    if before is None
                    else max(before, min(before * inside[larger], combinations_max))
                )
        rows /= prod(divisors.values())
        for condition in self.graph.conditions:
            used = self.graph.relations_of(condition)
            if len(used) > 1 and _bits(used) & ~members == 0:
                rows *= UNKNOWN
        return max(rows, 1.0)

    def of(self, tree: JoinTree) -> float:
        """Return the cost of a tree: the sum of the costs of its joins."""
        return (
            0.0 if isinstance(tree, int) else self._join(tree) + self.of(tree[0]) + self.of(tree[1])
        )

    def _join(self, tree: tuple[JoinTree, JoinTree]) -> float:
        """Return the cost of the join at the top of a tree, without those of the joins below: its rows, the left rows,
        and the right rows, which are hashed, times a factor."""
        left, right = _members(tree[0]), _members(tree[1])
        return self.rows(left | right) + self.rows(left) + _HASH_COST * self.rows(right)

    def _pair(self, tree: JoinTree, other_tree: JoinTree) -> tuple[JoinTree, JoinTree]:
        """Return the join of two trees with the one of fewer rows on the right, whose rows are held."""
        if self.rows(_members(tree)) < self.rows(_members(other_tree)):
            return other_tree, tree
        return tree, other_tree

    def best(self, limit: int) -> JoinTree:
        """Return the cheapest tree: of each connected part, then of the parts by their size."""
        limit = min(limit, DYNAMIC_MAX)
        parts = [
            self._dynamic(part) if part.bit_count() <= limit else self._greedy(part)
            for part in self._components()
        ]
        parts.sort(key=lambda tree: self.rows(_members(tree)))
        tree, *others = parts
        for other in others:
            tree = self._pair(tree, other)
        return tree

    def _components(self) -> list[int]:
        """Return the connected sets of relations; relation i is bit i of a set."""
        waiting = (1 << len(self.leaves)) - 1
        components = []
        while waiting:
            reached, before = waiting & -waiting, 0
            while reached != before:
                before = reached
                reached |= self._around(reached)
            components.append(reached)
            waiting &= ~reached
        return components

    def _around(self, members: int) -> int:
        """Return, as bits, the relations outside of a set that share an equality with one of the set."""
        around = 0
        for at, bits in enumerate(self.neighbours):
            if members >> at & 1:
                around |= bits
        return around

    def _dynamic(self, part: int) -> JoinTree:
        """Return the cheapest tree of a connected set, from those of its connected subsets."""
        trees: dict[int, tuple[float, JoinTree]] = {}
        for at in range(len(self.leaves)):
            if part >> at & 1:
                trees[1 << at] = (0.0, at)
        for members in sorted(_subsets(part), key=int.bit_count):
            if members.bit_count() < 2:
                continue
            best: tuple[float, JoinTree] | None = None
            first = members & -members
            for left in _subsets(members ^ first):
                half, other_half = left | first, members ^ (left | first)
                if not other_half or half not in trees or other_half not in trees:
                    continue
                if not self._around(half) & other_half:
                    continue
                below = trees[half][0] + trees[other_half][0]
                if best is not None and below >= best[0]:
                    continue
                pair = self._pair(trees[half][1], trees[other_half][1])
                cost = below + self._join(pair)
                if best is None or cost < best[0]:
                    best = (cost, pair)
            if best is not None:
                trees[members] = best
        return trees[part][1]

    def _greedy(self, part: int) -> JoinTree:
        """Return a tree of a connected set that makes the smallest join first, again and again."""
        trees: list[JoinTree] = [at for at in range(len(self.leaves)) if part >> at & 1]
        while len(trees) > 1:
            pairs = [
                (self.rows(_members(tree) | _members(other)), at, to)
                for at, tree in enumerate(trees)
                for to, other in enumerate(trees[:at])
                if self._around(_members(tree)) & _members(other)
            ]
            _, at, to = min(pairs)
            joined = self._pair(trees[to], trees[at])
            trees = [tree for i, tree in enumerate(trees) if i not in (at, to)] + [joined]
        return trees[0]


def _subsets(members: int) -> list[int]:
    """Return all subsets of a set of bits, the empty one too."""
    subsets = [0]
    while members:
        bit = members & -members
        subsets += [subset | bit for subset in subsets]
        members ^= bit
    return subsets


def _bits(relations: Relations) -> int:
    """Return a set of numbers of relations as bits: relation i is bit i."""
    return sum(1 << at for at in relations)


def _members(tree: JoinTree) -> int:
    """Return the set of all relations in a tree, as bits."""
    return 1 << tree if isinstance(tree, int) else _members(tree[0]) | _members(tree[1])
