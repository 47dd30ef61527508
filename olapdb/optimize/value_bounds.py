"""Upper bounds of how many values an expression can have that no statistics of a table tell.

least(x, 50)    51 values of an unsigned x        x % 7    7 values of an unsigned x, 13 of a signed one
count()         of n rows in groups: d different counts are of 1 + 2 + … + d rows at least
"""

from __future__ import annotations

from math import inf, sqrt

from olapdb.plan import nodes
from olapdb.plan.expressions import AggregateCall, Call, ColumnRef, Constant, Expression
from olapdb.types import Integer, plain


def values_max(expression: Expression) -> float:
    """Return how many values `least(x, c)` or `modulo(x, c)` of an integer x and a positive constant c can have at
    most; infinity for any other expression."""
    if not isinstance(expression, Call) or expression.name not in ("least", "modulo"):
        return inf
    constants = [e for e in expression.arguments if isinstance(e, Constant)]
    others = [e for e in expression.arguments if not isinstance(e, Constant)]
    if len(constants) != 1 or len(others) != 1 or not constants[0].value.is_valid:
        return inf
    bound, data_type = constants[0].value.as_py(), plain(others[0].type)
    if not isinstance(bound, int) or bound < 1 or not isinstance(data_type, Integer):
        return inf
    if expression.name == "least":
        return inf if data_type.signed else bound + 1
    return 2 * bound - 1 if data_type.signed else bound


def counting(name: str, node: nodes.Node) -> nodes.Aggregate | None:
    """Return the GROUP BY of whose count() the column is the result, seen through projections, filters, sorts and
    limits; None for any other column."""
    match node:
        case nodes.Aggregate():
            call: AggregateCall | None = dict(node.aggregates).get(name)
            return node if call is not None and call.name == "count" and node.keys else None
        case nodes.Project():
            inner = dict(node.expressions).get(name)
            return counting(inner.name, node.child) if isinstance(inner, ColumnRef) else None
        case nodes.Filter() | nodes.Sort() | nodes.Limit():
            return counting(name, node.child)
        case nodes.Shared():
            at = next((at for at, f in enumerate(node.fields) if f.name == name), None)
            return None if at is None else counting(node.child.schema[at].name, node.child)
        case _:
            return None


def counts_max(rows: float) -> float:
    """Return how many different counts the groups of `rows` rows can have at most: the counts 1, 2, … must not exceed
    `rows` together."""
    return max(1.0, sqrt(2 * rows))
