"""The graph of inner joins: relations, what is equal between them, and the other conditions.

    FROM a, b JOIN c ON b.y = c.y WHERE a.x = b.x AND a.z > 5 AND a.v < c.w

    relations    a  b  c
    classes      {a.x, b.x}  {b.y, c.y}        expressions that are equal in every row of the result
    conditions   a.z > 5,  a.v < c.w

A join of two sets of relations has a key for each class with a member on both sides. So equalities
follow from others: with a.x = b.x and b.x = c.x, a can be joined with c before b.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import permutations
from typing import TypeAlias, Union

import pyarrow as pa

from olapdb.errors import Error
from olapdb.optimize.conditions import is_total
from olapdb.plan.conditions import all_of, any_of, conjuncts, disjuncts, equal
from olapdb.plan.expressions import (
    Call,
    Cast,
    ColumnRef,
    Expression,
    columns_of,
    is_repeatable,
    substitute,
)
from olapdb.plan.join_keys import key_type, with_nulls_of
from olapdb.plan.nodes import Filter, Join, Node, Scan, Schema
from olapdb.records import dataclass
from olapdb.types import Decimal, Float, Integer, plain

Relations: TypeAlias = frozenset[int]
"""Positions of relations in a graph."""

JoinTree: TypeAlias = Union[int, "tuple[JoinTree, JoinTree]"]
"""A relation's position, or the sides of a join: the rows of the left one stream past the right."""

Keys: TypeAlias = tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True)
class Equality:
    """Two expressions of one Arrow type that are equal, neither of them NULL."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class JoinGraph:
    """Relations, in the order written, and the conditions on their combinations."""

    relations: tuple[Node, ...]
    equalities: tuple[Equality, ...]
    conditions: tuple[Expression, ...]

    @cached_property
    def _owner(self) -> dict[str, int]:
        """The number of the relation that has each column, by the column's name."""
        return {f.name: at for at, node in enumerate(self.relations) for f in node.schema}

    def relations_of(self, expression: Expression) -> Relations:
        """Return the numbers of the relations whose columns the expression reads."""
        return frozenset(self._owner[name] for name in columns_of(expression))

    @cached_property
    def classes(self) -> tuple[tuple[tuple[int, Expression], ...], ...]:
        """The sets of equal expressions, each expression with the one relation that it reads."""
        classes: list[list[tuple[int, Expression]]] = []
        for equality in self.equalities:
            members = [(self.relations_of(e), e) for e in (equality.left, equality.right)]
            if any(len(relations) != 1 for relations, _ in members):
                continue
            pair = [(next(iter(relations)), e) for relations, e in members]
            met = [c for c in classes if any(column in c for column in pair)]
            if isinstance(plain(equality.left.type), Float):
                met = []  # nothing follows: a key has NaN = NaN, a condition has not
            merged = [column for c in met for column in c]
            classes = [c for c in classes if c not in met]
            classes.append(list(dict.fromkeys([*merged, *pair])))
        return tuple(map(tuple, classes))

    @cached_property
    def _wide(self) -> tuple[tuple[Relations, Relations, Equality], ...]:
        """The equalities of which an operand reads several relations."""
        wide = []
        for equality in self.equalities:
            left, right = self.relations_of(equality.left), self.relations_of(equality.right)
            if len(left) != 1 or len(right) != 1:
                wide.append((left, right, equality))
        return tuple(wide)

    def keys(self, left: Relations, right: Relations) -> Keys:
        """Return the keys of a join of two sets of relations, () where nothing is equal."""
        pairs = []
        for members in self.classes:
            ours = next((e for at, e in members if at in left), None)
            theirs = next((e for at, e in members if at in right), None)
            if ours is not None and theirs is not None:
                pairs.append((ours, theirs))
        for first, second, equality in self._wide:
            if first <= left and second <= right:
                pairs.append((equality.left, equality.right))
            elif first <= right and second <= left:
                pairs.append((equality.right, equality.left))
        return tuple(pairs)

    def within(self, at: int) -> list[Expression]:
        """Return the conditions to put on one relation: those written on it alone, then those that
        follow, without those that it applies already."""
        own = [c for c in self.conditions if self.relations_of(c) == {at}]
        known = {*own, *_applied(self.relations[at])}
        derived = [*self._equal_within(at), *self._implied(at), *self._transferred(at)]
        return own + [c for c in dict.fromkeys(derived) if c not in known]

    def _equal_within(self, at: int) -> Iterator[Expression]:
        """Yield equalities of expressions of one relation: joins compare just one of a class."""
        for members in self.classes:
            own = [e for owner, e in members if owner == at]
            yield from (equal(own[0], other) for other in own[1:])

    def _implied(self, at: int) -> Iterator[Expression]:
        """Yield the conditions on this relation alone that ORs over several relations imply: (a.x = 1 AND b.y = 2) OR
        (a.x = 3 AND b.y = 4) implies a.x = 1 OR a.x = 3."""
        for condition in self.conditions:
            branches = [conjuncts(branch) for branch in disjuncts(condition)]
            if len(branches) == 1 or len(self.relations_of(condition)) == 1:
                continue
            own = [[p for p in b if is_total(p) and self.relations_of(p) == {at}] for b in branches]
            if all(own):
                yield any_of([all_of(parts) for parts in own])

    def _transferred(self, at: int) -> Iterator[Expression]:
        """Yield conditions on columns of other relations that equal a column of this one."""
        for members in self.classes:
            mine = next((e for owner, e in members if owner == at), None)
            if not isinstance(mine, ColumnRef) or isinstance(plain(mine.type), Float):
                continue
            for owner, other in members:
                if owner == at or not isinstance(other, ColumnRef) or other.type != mine.type:
                    continue
                for condition in self.conditions:
                    if columns_of(condition) == {other.name} and is_total(condition):
                        yield substitute(condition, {other.name: mine})

    def above(self, relations: Relations, sides: Sequence[Relations]) -> list[Expression]:
        """Return the conditions on these relations that are on none of the `sides` alone."""
        conditions = [
            condition
            for condition in self.conditions
            if _is_between(self.relations_of(condition), relations, sides)
        ]
        for left, right, equality in self._wide:
            is_key = any(
                left <= first and right <= second for first, second in permutations(sides, 2)
            )
            if not is_key and _is_between(left | right, relations, sides):
                conditions.append(equal(equality.left, equality.right))
        return conditions


def _applied(node: Node) -> list[Expression]:
    """Return the conditions that a relation applies to its own columns."""
    match node:
        case Scan(predicate=predicate):
            return conjuncts(predicate)
        case Filter(child=child, predicate=predicate):
            return [*conjuncts(predicate), *_applied(child)]
        case _:
            return []


def _is_between(used: Relations, joined: Relations, sides: Sequence[Relations]) -> bool:
    """Return whether a condition on the `used` relations needs this join of the sides."""
    return len(used) > 1 and used <= joined and not any(used <= side for side in sides)


def graph_of(node: Node) -> JoinGraph | None:
    """Return the graph of the inner joins at the top of a plan, None if there is no such join. Filters between the
    joins belong to it, unless they call rand() or the like; every other node below is a relation."""
    if not _is_inner(node) and not (isinstance(node, Filter) and _is_repeatable(node)):
        return None
    relations: list[Node] = []
    equalities: list[Equality] = []
    conditions: list[Expression] = []
    _collect(node, relations, equalities, conditions)
    if len(relations) < 2:
        return None
    return JoinGraph(tuple(relations), tuple(equalities), tuple(conditions))


def _collect(
    node: Node, relations: list[Node], equalities: list[Equality], conditions: list[Expression]
) -> None:
    """Add the node's relations, equalities and conditions, inner ones first."""
    match node:
        case Filter() if _is_repeatable(node):
            _collect(node.child, relations, equalities, conditions)
            _add(conjuncts(node.predicate), equalities, conditions)
        case Join() if _is_inner(node):
            _collect(node.left, relations, equalities, conditions)
            _collect(node.right, relations, equalities, conditions)
            for left, right in zip(node.left_keys, node.right_keys, strict=True):
                if columns_of(left) and columns_of(right):
                    equalities.append(Equality(left, right))
                else:
                    conditions.append(equal(left, right))
            _add(conjuncts(node.residual), equalities, conditions)
        case _:
            relations.append(node)


def _is_inner(node: Node) -> bool:
    """Return whether the node is an INNER or CROSS join of all pairs that only filters them."""
    return (
        isinstance(node, Join)
        and node.kind in ("INNER", "CROSS")
        and node.strictness == "ALL"
        and _columns(node.schema) == _columns((*node.left.schema, *node.right.schema))
        and all(map(is_repeatable, (*node.left_keys, *node.right_keys)))
        and (node.residual is None or is_repeatable(node.residual))
    )


def _columns(schema: Schema) -> list[tuple[str, pa.DataType]]:
    """Return the columns' names and Arrow types. An INNER JOIN that was an outer one has Nullable columns
    whose values its sides have without NULL."""
    return [(field.name, field.type.arrow) for field in schema]


def _is_repeatable(node: Filter) -> bool:
    """Return whether the filter's condition may be evaluated elsewhere: it calls no rand() or the like."""
    return is_repeatable(node.predicate)


def _add(
    parts: Sequence[Expression], equalities: list[Equality], conditions: list[Expression]
) -> None:
    """Add conjuncts as equalities where they compare columns, else as conditions."""
    for part in parts:
        equality = _equality(part)
        if equality is None:
            conditions.append(part)
        else:
            equalities.append(equality)


def _equality(part: Expression) -> Equality | None:
    """Return `x = y` over columns as an equality, of one type where both are integers or decimals.

    None for other conditions."""
    if not isinstance(part, Call) or part.name != "equals":
        return None
    left, right = part.arguments
    names = columns_of(left), columns_of(right)
    if not all(names) or names[0] & names[1]:
        return None
    if left.type.arrow == right.type.arrow:
        return Equality(left, right)
    if not all(isinstance(plain(e.type), Integer | Decimal) for e in (left, right)):
        return None
    try:
        common = key_type(left.type, right.type)
    except Error:
        return None
    sides = [
        e if plain(e.type) == plain(common) else Cast(with_nulls_of(e, common), e)
        for e in (left, right)
    ]
    return Equality(*sides)


def build(graph: JoinGraph, tree: JoinTree) -> Node:
    """Return the plan that joins the relations as the tree says, with each condition as early as
    its columns are there. Its columns come in the order of the tree."""
    node, relations = _built(graph, tree)
    rest = [c for c in graph.conditions if not graph.relations_of(c)]
    assert len(relations) == len(graph.relations)
    return Filter(node, all_of(rest)) if rest else node


def _built(graph: JoinGraph, tree: JoinTree) -> tuple[Node, Relations]:
    """Return the plan of a part of the tree, and the numbers of its relations."""
    if isinstance(tree, int):
        conditions = graph.within(tree)
        leaf = graph.relations[tree]
        node: Node = Filter(leaf, all_of(conditions)) if conditions else leaf
        return node, frozenset((tree,))
    left, ours = _built(graph, tree[0])
    right, theirs = _built(graph, tree[1])
    keys = graph.keys(ours, theirs)
    node = Join(
        left,
        right,
        "INNER" if keys else "CROSS",
        "ALL",
        tuple(e for e, _ in keys),
        tuple(e for _, e in keys),
        None,
        (*left.schema, *right.schema),
    )
    conditions = graph.above(ours | theirs, (ours, theirs))
    return Filter(node, all_of(conditions)) if conditions else node, ours | theirs


def written_order(graph: JoinGraph) -> JoinTree:
    """Return the relations as they are written, each joined to all before it.

    A relation that shares no equality with those before it waits until one does: so a CROSS join
    is made only where it was asked for."""
    waiting = list(range(1, len(graph.relations)))
    tree: JoinTree = 0
    joined: Relations = frozenset((0,))
    while waiting:
        following = next((at for at in waiting if graph.keys(joined, frozenset((at,)))), waiting[0])
        waiting.remove(following)
        tree, joined = (tree, following), joined | {following}
    return tree
