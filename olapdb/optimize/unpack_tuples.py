"""Conditions on a tuple that is made of columns, as conditions on these: only so do they prune.

tuple(a, b).1 = 1        a = 1
tuple(a, b) = (1, 2)     a = 1 AND b = 2
"""

from __future__ import annotations

from dataclasses import replace

from olapdb import functions
from olapdb.errors import Error
from olapdb.functions.base import Argument
from olapdb.plan.conditions import all_of, conjuncts
from olapdb.plan.expressions import Call, Constant, Expression, transform
from olapdb.plan.nodes import Node, Scan
from olapdb.plan.tree import bottom_up
from olapdb.types import Tuple, is_nullable


def unpack_tuples(root: Node) -> Node:
    """Take tuples in the conditions of scans apart, so that the conditions prune."""
    return bottom_up(root, _unpack)


def _unpack(node: Node) -> Node:
    """Return a Scan whose conditions compare columns, not tuples of them; other nodes unchanged."""
    if not isinstance(node, Scan):
        return node
    predicate, prewhere = _unpacked(node.predicate), _unpacked(node.prewhere)
    if predicate is node.predicate and prewhere is node.prewhere:
        return node
    return replace(node, predicate=predicate, prewhere=prewhere)


def _unpacked(condition: Expression | None) -> Expression | None:
    """Return a condition with tuples taken apart, the same object if nothing changed.

    None if the condition is None."""
    if condition is None:
        return None
    changed = transform(condition, _simpler)
    return condition if changed is condition else all_of(conjuncts(changed))


def _simpler(expression: Expression) -> Expression | None:
    """Return a tupleElement or an equality of tuples taken apart, None if it must stay."""
    if not isinstance(expression, Call) or len(expression.arguments) != 2:
        return None
    left, right = expression.arguments
    if expression.name == "tupleElement":
        return _element(expression, left, right)
    if expression.name != "equals":
        return None
    pairs = zip(_elements(left), _elements(right), strict=False)
    same = [_equal(element, other) for element, other in pairs]
    whole = len(same) == len(_elements(left)) == len(_elements(right)) > 0
    equalities = [equality for equality in same if equality is not None]
    if (
        not whole
        or len(equalities) < len(same)
        or any(equality.type != expression.type for equality in equalities)
    ):
        return None
    return all_of(equalities)


def _element(call: Call, made: Expression, index: Expression) -> Expression | None:
    """Return the element that `tupleElement` takes from a call of `tuple`.

    None if `made` is no such call, the index, from 1, is not constant, or the types differ."""
    if not isinstance(made, Call) or made.name != "tuple" or not isinstance(index, Constant):
        return None
    at = index.value.as_py()
    if not isinstance(at, int) or not 0 < at <= len(made.arguments):
        return None
    element = made.arguments[at - 1]
    # It may be an element of a tuple in its turn.
    return transform(element, _simpler) if element.type == call.type else None


def _elements(value: Expression) -> tuple[Expression, ...]:
    """Return the elements of a tuple that is a call or a constant; () for anything else."""
    if isinstance(value, Call) and value.name == "tuple":
        return value.arguments
    if isinstance(value, Constant) and isinstance(value.type, Tuple) and value.value.is_valid:
        return tuple(Constant(t, value.value[i]) for i, t in enumerate(value.type.elements))
    return ()


def _equal(left: Expression, right: Expression) -> Expression | None:
    """Return the equality of two elements of tuples, taken apart itself if they are tuples; None if they are nullable
    or cannot be compared."""
    if is_nullable(left.type) or is_nullable(right.type):
        return None  # NULL in one element decides otherwise than NULL in AND
    arguments = [
        Argument(e.type, e.value if isinstance(e, Constant) else None) for e in (left, right)
    ]
    try:
        resolved = functions.resolve_scalar("equals", arguments)
    except Error:
        return None
    equality = Call(resolved.type, "equals", (left, right), resolved)
    return _simpler(equality) or equality
