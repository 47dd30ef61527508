"""Conditions as lists of conjuncts."""

from __future__ import annotations

from collections.abc import Sequence

from olapdb import functions
from olapdb.functions.base import Argument
from olapdb.plan.expressions import Call, Constant, Expression

MIRRORED = {
    "equals": "equals",
    "less": "greater",
    "lessOrEquals": "greaterOrEquals",
    "greater": "less",
    "greaterOrEquals": "lessOrEquals",
}
"""The comparisons that bound a value, and what each is with its operands exchanged."""


def conjuncts(condition: Expression | None) -> list[Expression]:
    """Return the conditions that must all hold: `a AND (b AND c)` gives a, b, c; None gives []."""
    if condition is None:
        return []
    if isinstance(condition, Call) and condition.name == "and":
        return [conjunct for argument in condition.arguments for conjunct in conjuncts(argument)]
    return [condition]


def disjuncts(condition: Expression) -> list[Expression]:
    """Return the conditions of which one must hold: `a OR (b OR c)` gives a, b, c."""
    if isinstance(condition, Call) and condition.name == "or":
        return [disjunct for argument in condition.arguments for disjunct in disjuncts(argument)]
    return [condition]


def all_of(conditions: Sequence[Expression]) -> Expression:
    """Return the conjunction of at least one condition."""
    return conditions[0] if len(conditions) == 1 else scalar_call("and", conditions)


def any_of(conditions: Sequence[Expression]) -> Expression:
    """Return the disjunction of at least one condition."""
    return conditions[0] if len(conditions) == 1 else scalar_call("or", conditions)


def equal(left: Expression, right: Expression) -> Expression:
    """Return `left = right`."""
    return scalar_call("equals", (left, right))


def scalar_call(name: str, arguments: Sequence[Expression]) -> Expression:
    """Return a call of a scalar function, resolved for the arguments' types."""
    described = [Argument(a.type, a.value if isinstance(a, Constant) else None) for a in arguments]
    resolved = functions.resolve_scalar(name, described)
    return Call(resolved.type, name, tuple(arguments), resolved)


def all_of_any(conditions: Sequence[Expression]) -> Expression | None:
    """Return the conjunction of the conditions, None where there are none."""
    return all_of(conditions) if conditions else None


def truth(condition: Expression) -> bool | None:
    """Return whether a constant condition is true: False for 0 and NULL. None where the condition is not constant."""
    if not isinstance(condition, Constant):
        return None
    return condition.value.is_valid and bool(condition.value.as_py())
