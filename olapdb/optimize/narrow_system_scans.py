"""A scan of a system table lists only the rows that its conditions on names can keep.

To render a row of system.tables costs far more than to compare a name. So conditions such as
`database = 'a' AND name IN ('b', 'c')` go to the table as the values that it has to list. The Filter
stays: the table may list more rows than those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from olapdb.plan import nodes
from olapdb.plan.conditions import conjuncts
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression, InValues
from olapdb.plan.tree import bottom_up

Values = frozenset[str]


def narrow_system_scans(root: nodes.Node) -> nodes.Node:
    """Give each SystemScan below a Filter the text values that the Filter allows, by column."""
    return bottom_up(root, _narrowed)


def _narrowed(node: nodes.Node) -> nodes.Node:
    """Return a Filter over a SystemScan with the scan narrowed; any other node unchanged."""
    if not isinstance(node, nodes.Filter) or not isinstance(node.child, nodes.SystemScan):
        return node
    scan = node.child
    conditions = conjuncts(node.predicate)
    allowed = {column: _every(conditions, unique) for unique, column in scan.columns}
    only = tuple((column, values) for column, values in allowed.items() if values is not None)
    return replace(node, child=replace(scan, only=only)) if only else node


def _every(conditions: Iterable[Expression], column: str) -> Values | None:
    """Return the values of the column for which all conditions can hold; None for any value."""
    bounds = [values for c in conditions if (values := _allowed(c, column)) is not None]
    return reduce(frozenset.intersection, bounds) if bounds else None


def _allowed(condition: Expression, column: str) -> Values | None:
    """Return the text values of the column for which a condition can hold; None for any value."""
    match condition:
        case Call(name="and"):
            return _every(conjuncts(condition), column)
        case Call(name="or", arguments=arguments):
            branches = [_allowed(a, column) for a in arguments]
            if any(b is None for b in branches):
                return None
            return frozenset().union(*(b for b in branches if b is not None))
        case (
            Call(name="equals", arguments=(ColumnRef(name=name), Constant(value=value)))
            | Call(name="equals", arguments=(Constant(value=value), ColumnRef(name=name)))
        ) if name == column:
            text = value.as_py()
            return frozenset({text}) if isinstance(text, str) else None
        case InValues(argument=ColumnRef(name=name), negated=False, values=values) if (
            name == column
        ):
            texts = values.to_pylist()
            return frozenset(texts) if all(isinstance(t, str) for t in texts) else None
    return None
