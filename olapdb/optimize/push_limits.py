"""LIMIT moves down: into a Sort, which then keeps the top rows only, and below projections."""

from __future__ import annotations

from dataclasses import replace

from olapdb.plan.expressions import is_repeatable
from olapdb.plan.nodes import Limit, Node, Project, Sort, Union, Window
from olapdb.plan.tree import bottom_up


def push_limits(root: Node) -> Node:
    """Bound a Sort by the Limit above it, each input of a Union, and rows that are only numbered; move a Limit below a
    Project.

    A Limit WITH TIES stays in its place."""
    return bottom_up(root, _push)


def _push(node: Node) -> Node:
    """Move a Limit one step or more down, or bound the Sort or Union below it."""
    if not isinstance(node, Limit) or node.ties or node.count is None:
        return node
    needed = node.count + node.offset
    match node.child:
        case Sort() as sort:
            limit = needed if sort.limit is None else min(sort.limit, needed)
            return replace(node, child=replace(sort, limit=limit))
        case Project() as project if all(is_repeatable(e) for _, e in project.expressions):
            below = _push(replace(node, child=project.child))
            return replace(project, child=below)
        case Limit(ties=(), offset=0, count=int() as inner) if node.offset == 0:
            return _push(replace(node.child, count=min(inner, node.count)))
        case Union() as union:
            inputs = tuple(_bounded(branch, needed) for branch in union.inputs)
            return replace(node, child=replace(union, inputs=inputs))
        case Window(partition_by=(), order_by=()) as window if _only_numbers(window):
            return replace(node, child=replace(window, child=_bounded(window.child, needed)))
        case _:
            return node


def _only_numbers(window: Window) -> bool:
    """Return whether all calls are row_number(), which depends on no row behind."""
    return all(call.name == "row_number" for _, call in window.calls)


def _bounded(node: Node, count: int) -> Node:
    """Return an input under a Limit of `count` rows, unless it has one that is as small."""
    if isinstance(node, Limit) and not node.ties and not node.offset:
        return (
            node if node.count is not None and node.count <= count else replace(node, count=count)
        )
    return _push(Limit(node, count))
