"""What ORDER BY does not need is computed behind its LIMIT, for the rows that are left.

Sort(x) LIMIT 10 (Project(x, f(y)))  ->  Project(x, f(y)) (Sort(x) LIMIT 10 (Project(x, y)))

As in ClickHouse, an error of f is one of the rows that are left.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb.lazy import LazyModule
from olapdb.optimize.conditions import is_cheap
from olapdb.plan.expressions import ColumnRef, columns_of, is_repeatable
from olapdb.plan.nodes import Limit, Node, Project, Sort
from olapdb.plan.tree import bottom_up

if TYPE_CHECKING:
    from olapdb.plan import wide_values
else:
    wide_values = LazyModule("olapdb.plan.wide_values")

_ROWS_MAX = 65_536
_WIDE_ROWS_MAX = 1_000
"""With more rows the sort might carry texts or arrays that are far larger than what is computed from them."""


def compute_after_limit(root: Node) -> Node:
    """Move expressions from below a Sort with a LIMIT above it, unless the Sort reads them."""
    return bottom_up(root, _move)


def _move(node: Node) -> Node:
    """Return the Limit with the expressions below its Sort above it; the node itself where none can be moved."""
    match node:
        case Limit(count=int() as count, child=Sort(child=Project() as project) as sort) if (
            count + node.offset <= _ROWS_MAX
        ):
            pass
        case _:
            return node
    keys = frozenset().union(*(columns_of(k.expression) for k in (*sort.keys, *node.ties)))
    moved = {
        name: e
        for name, e in project.expressions
        if name not in keys and not is_cheap(e) and is_repeatable(e)
    }
    kept = {name: e for name, e in project.expressions if name not in moved}
    read = frozenset().union(*map(columns_of, moved.values()))
    if count + node.offset > _WIDE_ROWS_MAX:
        added = (f for f in project.child.schema if f.name in read - kept.keys())
        if any(wide_values.varies_in_size(f.type) for f in added):
            return node
    if not moved or any(name in kept and not _is_column(kept[name], name) for name in read):
        return node
    inputs = {f.name: ColumnRef(f.type, f.name) for f in project.child.schema if f.name in read}
    below = Project(project.child, tuple((kept | inputs).items()), is_wide=project.is_wide)
    above = tuple((n, moved.get(n, ColumnRef(e.type, n))) for n, e in project.expressions)
    return Project(replace(node, child=replace(sort, child=below)), above, is_wide=project.is_wide)


def _is_column(expression: object, name: str) -> bool:
    """Return whether the expression is the column of this name."""
    return isinstance(expression, ColumnRef) and expression.name == name
