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
from typing import TYPE_CHECKING

from olapdb.lazy import LazyModule
from olapdb.plan.expressions import AggregateCall, ColumnRef
from olapdb.plan.nodes import Aggregate, Node, Scan
from olapdb.plan.tree import bottom_up
from olapdb.types import UUID, FixedString, String, plain

if TYPE_CHECKING:
    from olapdb.optimize import partial_aggregates
else:
    partial_aggregates = LazyModule("olapdb.optimize.partial_aggregates")

_COUNTED = "uniqExact"
_TEXTS = (String, FixedString, UUID)


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
    outer = {name: partial_aggregates.of_partials(name, call) for name, call in partial}
    if None in outer.values():
        return node
    column = _free_name("__distinct", [name for name, _ in (*node.keys, *node.aggregates)])
    inner = Aggregate(node.child, (*node.keys, (column, text)), tuple(partial), limited=False)
    counts = partial_aggregates.aggregate_of("count", ColumnRef(text.type, column))
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


def _free_name(name: str, taken: Sequence[str]) -> str:
    """Return the name, or with a number behind it if it is among `taken`."""
    names = (name, *(f"{name}_{number}" for number in range(len(taken) + 1)))
    return next(name for name in names if name not in taken)
