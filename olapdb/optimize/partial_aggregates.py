"""Aggregates of parts of a group, and the aggregates over them that give the result for the whole group."""

from __future__ import annotations

from olapdb import functions
from olapdb.plan.expressions import AggregateCall, ColumnRef, Expression
from olapdb.types import Date, Date32, DateTime, DateTime64, Decimal, Integer, String, plain

KEPT_BY_DUPLICATES = frozenset({"min", "max", "uniqExact"})
"""Aggregates whose result is the same however often a row occurs."""
_OUTER = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
"""The aggregate of the results for parts of a group that gives the result for the group."""
_EXACT = (Integer, Decimal, String, Date, Date32, DateTime, DateTime64)
"""The arguments for which it gives it to the last bit, whatever the parts."""


def of_partials(column: str, call: AggregateCall) -> AggregateCall | None:
    """Return the aggregate of a call's results for parts, in this column, that gives the call's result for all rows;
    None where there is none of the same type."""
    outer = _OUTER.get(call.name)
    is_exact = all(isinstance(plain(argument.type), _EXACT) for argument in call.arguments)
    if outer is None or not (is_exact or call.name == "count"):
        return None
    merged = aggregate_of(outer, ColumnRef(call.type, column))
    return merged if merged.type == call.type else None


def aggregate_of(name: str, argument: Expression) -> AggregateCall:
    """Return a call of the aggregate function `name` with one argument, resolved for its type."""
    return AggregateCall(functions.resolve_aggregate(name, (), [argument.type]), name, (argument,))
