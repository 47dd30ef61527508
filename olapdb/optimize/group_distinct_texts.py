"""Distinct texts are counted by grouping them first.

SELECT k, count(DISTINCT x), sum(n) … GROUP BY k
SELECT k, count(x), sum(s) FROM (SELECT k, x, sum(n) AS s … GROUP BY k, x) GROUP BY k

The state of uniqExact is a sorted list: texts would be ranked batch by batch.  A GROUP BY numbers them,
takes codes of dictionaries, and can go past the memory.  Numbers stay: their lists are made faster
than groups.  NULL is a group of its own, which count(x) leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from olapdb import functions
from olapdb.plan.expressions import AggregateCall, ColumnRef, Expression
from olapdb.plan.nodes import Aggregate, Node, Scan
from olapdb.plan.tree import bottom_up
from olapdb.types import (
    UUID,
    Date,
    Date32,
    DateTime,
    DateTime64,
    FixedString,
    Integer,
    String,
    plain,
)

_COUNTED = "uniqExact"
_TEXTS = (String, FixedString, UUID)
_OUTER = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
"""The aggregate of the results for parts of a group that gives the result for the group."""
_EXACT = (Integer, String, Date, Date32, DateTime, DateTime64)
"""The arguments for which it gives it to the last bit, whatever the parts."""


def group_distinct_texts(root: Node) -> Node:
    """Group by the text whose distinct values are counted, then count the groups."""
    return bottom_up(root, _grouped)


def _grouped(node: Node) -> Node:
    """Return an Aggregate with count(DISTINCT text) as two: the inner one groups by the text too, the
    outer one counts these groups. Return any other node unchanged."""
    if not isinstance(node, Aggregate) or node.sets or node.totals is not None:
        return node
    if isinstance(node.child, Scan) and node.child.table.projections:
        return node  # their states answer for the whole aggregate
    counted = {call.arguments for _, call in node.aggregates if _is_count_of_texts(call)}
    if len(counted) != 1:
        return node
    ((text,),) = counted
    partial = [pair for pair in node.aggregates if not _is_count_of_texts(pair[1])]
    outer = {name: _outer(name, call) for name, call in partial}
    if None in outer.values():
        return node
    column = _free_name("__distinct", [name for name, _ in (*node.keys, *node.aggregates)])
    inner = Aggregate(node.child, (*node.keys, (column, text)), tuple(partial), limited=False)
    counts = _call("count", ColumnRef(text.type, column))
    aggregates = tuple((name, outer.get(name) or counts) for name, _ in node.aggregates)
    keys = tuple((name, ColumnRef(key.type, name)) for name, key in node.keys)
    return replace(node, child=inner, keys=keys, aggregates=aggregates)


def _is_count_of_texts(call: AggregateCall) -> bool:
    """Return whether the call counts the distinct values of one text."""
    arguments = call.arguments
    return (
        call.name == _COUNTED
        and len(arguments) == 1
        and isinstance(plain(arguments[0].type), _TEXTS)
    )


def _outer(name: str, call: AggregateCall) -> AggregateCall | None:
    """Return the aggregate of a call's results in the column `name` that gives the call's result for
    all rows; None where there is none of the same type."""
    outer = _OUTER.get(call.name)
    is_exact = all(isinstance(plain(argument.type), _EXACT) for argument in call.arguments)
    if outer is None or not (is_exact or call.name == "count"):
        return None
    merged = _call(outer, ColumnRef(call.type, name))
    return merged if merged.type == call.type else None


def _call(name: str, argument: Expression) -> AggregateCall:
    """Return an aggregate function of one argument."""
    aggregate = functions.resolve_aggregate(name, (), [argument.type])
    return AggregateCall(aggregate, name, (argument,))


def _free_name(name: str, taken: Sequence[str]) -> str:
    """Return the name, with a number if it is taken."""
    names = (name, *(f"{name}_{number}" for number in range(len(taken) + 1)))
    return next(name for name in names if name not in taken)
