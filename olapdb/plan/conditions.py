"""Conditions as lists of conjuncts."""

from __future__ import annotations

from collections.abc import Sequence

from olapdb import functions
from olapdb.functions.base import Argument
from olapdb.plan.expressions import Call, Constant, Expression


def conjuncts(condition: Expression | None) -> list[Expression]:
    """Return the conditions that must all hold: `a AND (b AND c)` gives a, b, c; None gives []."""
    if condition is None:
        return []
    if isinstance(condition, Call) and condition.name == "and":
        return [one for argument in condition.arguments for one in conjuncts(argument)]
    return [condition]


def all_of(conditions: Sequence[Expression]) -> Expression:
    """Return the conjunction of at least one condition."""
    if len(conditions) == 1:
        return conditions[0]
    resolved = functions.resolve_scalar("and", [Argument(c.type) for c in conditions])
    return Call(resolved.type, "and", tuple(conditions), resolved)


def all_of_any(conditions: Sequence[Expression]) -> Expression | None:
    """Return the conjunction of the conditions, None where there are none."""
    return all_of(conditions) if conditions else None


def truth(condition: Expression) -> bool | None:
    """Return the value of a constant condition, NULL being false; None where it is not constant."""
    if not isinstance(condition, Constant):
        return None
    return condition.value.is_valid and bool(condition.value.as_py())
