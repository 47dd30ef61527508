"""Recognizes views whose blocks contain each sorting key of the target at most once.

A GROUP BY returns each group once.  Where all its keys are columns of the target's sorting key,
unchanged or as wider integers, no two rows of the view's block have one key, and no rows need to be
combined.
"""

from __future__ import annotations

from olapdb.model.schema import Table
from olapdb.plan.expressions import ColumnRef
from olapdb.plan.nodes import Aggregate, Node, Plan, Project, Sort
from olapdb.types import DataType, Float, Integer, plain


def gives_each_key_once(plan: Plan, target: Table) -> bool:
    """Return whether the plan's rows contain each sorting key of the target at most once; False
    where unknown.

    The names of the plan's output are columns of the target.
    """
    order = {item.expression.strip("`") for item in target.sorting_key}
    types = {field.name: field.type for field in plan.root.schema}
    fields = set()
    for field, name in plan.output:
        column = target.column(name)
        if column is not None and name in order and _stays_distinct(types[field], column.type):
            fields.add(field)
    node: Node = plan.root
    while isinstance(node, Project | Sort):
        if isinstance(node, Project):
            by_name = dict(node.expressions)
            fields = {e.name for f in fields if isinstance(e := by_name[f], ColumnRef)}
        node = node.child
    if not isinstance(node, Aggregate) or node.sets:
        return False
    return {name for name, _ in node.keys} <= fields


def _stays_distinct(made: DataType, stored: DataType) -> bool:
    """Return whether different values of the type `made` are different keys in the type `stored`:
    the same type, if it has no NaN, or an integer type that holds all of its values."""
    made, stored = plain(made), plain(stored)
    if isinstance(made, Integer) and isinstance(stored, Integer):
        return stored.minimum <= made.minimum and made.maximum <= stored.maximum
    return made == stored and not isinstance(made, Float)
