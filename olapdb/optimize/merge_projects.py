"""Project over Project, Filter over Filter become one; a Project that changes nothing goes."""

from __future__ import annotations

from dataclasses import replace

from olapdb.optimize.conditions import is_cheap, references
from olapdb.plan.conditions import all_of, conjuncts
from olapdb.plan.expressions import ColumnRef, is_repeatable, substitute
from olapdb.plan.nodes import Filter, Node, Project
from olapdb.plan.tree import bottom_up


def merge_projects(root: Node) -> Node:
    """Merge a Project into the one above it where that repeats no work, and Filters into one."""
    return bottom_up(root, _merge)


def _merge(node: Node) -> Node:
    """Merge a Project into a Project, a Filter into a Filter; drop a Project that does nothing."""
    match node:
        case Project(child=Project() as inner) if _may_inline(node, inner):
            by_name = dict(inner.expressions)
            merged = tuple((n, substitute(e, by_name)) for n, e in node.expressions)
            return _merge(Project(inner.child, merged))
        case Project() if _is_identity(node):
            return node.child
        case Filter(child=Filter() as inner):
            both = all_of([*conjuncts(inner.predicate), *conjuncts(node.predicate)])
            return replace(node, child=inner.child, predicate=both)
        case _:
            return node


def _may_inline(outer: Project, inner: Project) -> bool:
    """Return whether no expression of `inner` would be computed twice or rand() moved."""
    counts = references(e for _, e in outer.expressions)
    return all(
        is_cheap(e) or (counts.get(name, 0) <= 1 and is_repeatable(e))
        for name, e in inner.expressions
    )


def _is_identity(node: Project) -> bool:
    """Return whether the Project gives all columns of its child, in order, under their names."""
    return node.schema == node.child.schema and all(
        isinstance(e, ColumnRef) and e.name == name for name, e in node.expressions
    )
