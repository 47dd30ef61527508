"""Recognizes views whose blocks contain each sorting key of the target at most once.

A GROUP BY returns each group once.  Where all its keys are unchanged columns of the target's
sorting key, no two rows of the view's block have one key, and no rows need to be combined.
"""

from __future__ import annotations

from olapdb.model.schema import Table
from olapdb.plan.expressions import ColumnRef
from olapdb.plan.nodes import Aggregate, Node, Plan, Project, Sort
from olapdb.types import Float, plain


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
        same = column is not None and plain(column.type) == plain(types[field])
        if same and name in order and not isinstance(plain(types[field]), Float):
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
