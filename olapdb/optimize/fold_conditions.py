"""Conditions whose value is known: WHERE 1 goes, WHERE 0 reads nothing."""

from __future__ import annotations

from olapdb.optimize.conditions import empty_rows
from olapdb.plan.conditions import all_of, conjuncts, truth
from olapdb.plan.nodes import Filter, Node, Values
from olapdb.plan.totals import totals_plan
from olapdb.plan.tree import bottom_up


def fold_conditions(root: Node) -> Node:
    """Drop conjuncts that are true; make the rows empty where one is false."""
    return bottom_up(root, _fold)


def _fold(node: Node) -> Node:
    """Return a Filter without constant conditions; no rows if one of them is false.

    Rows that WITH TOTALS is about are still read for it."""
    if not isinstance(node, Filter):
        return node
    parts = conjuncts(node.predicate)
    values = [truth(p) for p in parts]
    if False in values and totals_plan(node) is None:  # totals are of the rows before WHERE
        schema = node.schema
        rows = empty_rows([f.name for f in schema], [f.type.arrow for f in schema])
        return Values(schema, rows)
    unknown = [p for p, value in zip(parts, values, strict=True) if value is not True]
    if len(unknown) == len(parts):
        return node
    return Filter(node.child, all_of(unknown)) if unknown else node.child
