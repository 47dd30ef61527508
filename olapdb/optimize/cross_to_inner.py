"""`FROM a, b WHERE a.k = b.k` is an INNER JOIN."""

from __future__ import annotations

from dataclasses import replace

from olapdb.optimize.conditions import is_repeatable
from olapdb.plan.conditions import all_of, conjuncts
from olapdb.plan.expressions import Call, Expression, columns_of
from olapdb.plan.nodes import Filter, Join, Node
from olapdb.plan.tree import bottom_up


def cross_to_inner(root: Node) -> Node:
    """Make a CROSS join an INNER one whose keys are the equalities between its sides.

    Only equalities of equal types become keys; the other conditions stay above the join."""
    return bottom_up(root, _convert)


def _convert(node: Node) -> Node:
    """Return a Filter over a CROSS join with keys in the join; any other node unchanged."""
    match node:
        case Filter(child=Join(kind="CROSS") as join):
            return _with_keys(node, join)
        case _:
            return node


def _with_keys(node: Filter, join: Join) -> Node:
    """Return the filter's equalities as keys of an INNER join, the other conditions above it.

    Returns the filter unchanged if it has no such equality."""
    left = frozenset(f.name for f in join.left.schema)
    right = frozenset(f.name for f in join.right.schema)
    keys: list[tuple[Expression, Expression]] = []
    rest: list[Expression] = []
    for part in conjuncts(node.predicate):
        pair = _equality(part, left, right)
        if pair is None:
            rest.append(part)
        else:
            keys.append(pair)
    if not keys:
        return node
    inner = replace(
        join,
        kind="INNER",
        left_keys=tuple(one for one, _ in keys),
        right_keys=tuple(other for _, other in keys),
    )
    return replace(node, child=inner, predicate=all_of(rest)) if rest else inner


def _equality(
    part: Expression, left: frozenset[str], right: frozenset[str]
) -> tuple[Expression, Expression] | None:
    """Return an equality between the sides as (left key, right key).

    None unless the condition is an equality of equal types, each of whose operands reads columns of
    one side only. Also None for rand() and the like. `left` and `right` are the sides' columns."""
    if not isinstance(part, Call) or part.name != "equals" or not is_repeatable(part):
        return None
    one, other = part.arguments
    if one.type.arrow != other.type.arrow:
        return None
    of_one, of_other = columns_of(one), columns_of(other)
    if not of_one or not of_other:
        return None
    if of_one <= left and of_other <= right:
        return one, other
    if of_one <= right and of_other <= left:
        return other, one
    return None
