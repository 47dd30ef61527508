"""Expressions that are tuples of others: the keys of tables and indexes."""

from __future__ import annotations

from olapdb.plan.expressions import Call, Expression


def tuple_elements(expression: Expression) -> tuple[Expression, ...]:
    """Return the elements of `tuple(a, b)`; nothing for another expression."""
    match expression:
        case Call(name="tuple", arguments=arguments):
            return arguments
    return ()
