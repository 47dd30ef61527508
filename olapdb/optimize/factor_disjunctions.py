"""What all branches of an OR have in common is a condition of its own.

(k = j AND a = 1) OR (j = k AND a = 2)      k = j AND (a = 1 OR a = 2)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from olapdb.plan.conditions import MIRRORED, all_of, all_of_any, any_of, conjuncts, disjuncts
from olapdb.plan.expressions import Call, Expression, is_repeatable
from olapdb.plan.nodes import Filter, Node
from olapdb.plan.tree import bottom_up


def factor_disjunctions(root: Node) -> Node:
    """Take conditions that every branch of an OR repeats out of the OR, in each Filter.

    They can then become keys of a join or move to a table."""
    return bottom_up(root, _factor)


_SYMMETRIC = frozenset({"equals", "notEquals", "isNotDistinctFrom", "isDistinctFrom"})
_DESCENDING = ("greater", "greaterOrEquals")


def _meaning(condition: Expression) -> Hashable:
    """Return a value that is equal for two conditions if they are the same up to the order of a comparison's sides: `a
    < b` and `b > a`."""
    match condition:
        case Call(name=name, arguments=(_, _) as sides) if name in _SYMMETRIC:
            return name, frozenset(sides)
        case Call(name="less" | "lessOrEquals" as name, arguments=(left, right)):
            return name, (left, right)
        case Call(name=name, arguments=(left, right)) if name in _DESCENDING:
            return MIRRORED[name], (right, left)
        case _:
            return condition


def _factor(node: Node) -> Node:
    """Return a Filter with its ORs factored; any other node unchanged."""
    if not isinstance(node, Filter):
        return node
    parts = conjuncts(node.predicate)
    factored = [factor for part in parts for factor in _factored(part)]
    return node if factored == parts else replace(node, predicate=all_of(factored))


def _factored(condition: Expression) -> Iterator[Expression]:
    """Yield the common conditions of an OR's branches, then the OR of what remains, if anything.

    Yields any other condition unchanged."""
    branches = [
        {_meaning(part): part for part in conjuncts(branch)} for branch in disjuncts(condition)
    ]
    shared = {
        meaning: part
        for meaning, part in branches[0].items()
        if all(meaning in branch for branch in branches[1:]) and is_repeatable(part)
    }
    if len(branches) == 1 or not shared:
        yield condition
        return
    yield from shared.values()
    rest = [
        all_of_any([part for meaning, part in branch.items() if meaning not in shared])
        for branch in branches
    ]
    remaining = [branch for branch in rest if branch is not None]
    if len(remaining) == len(rest):  # a branch without more conditions makes the OR true
        yield any_of(remaining)
