"""Origins: which expression over the columns of one table an expression of a plan is."""

from __future__ import annotations

from collections.abc import Mapping

from olapdb.plan import nodes
from olapdb.plan.conditions import conjuncts
from olapdb.plan.expressions import ColumnRef, Expression, columns_of, transform, walk


def origin(name: str, node: nodes.Node) -> tuple[nodes.Scan, str] | None:
    """Return the scan and the table's column that a column of a node is, None for a computed one."""
    match node:
        case nodes.Scan():
            columns = [*node.columns, *((u, c) for u, c, _ in node.predicate_columns)]
            return next(((node, column) for unique, column in columns if unique == name), None)
        case nodes.Project():
            expression = dict(node.expressions).get(name)
            inner = expression.name if isinstance(expression, ColumnRef) else None
            return None if inner is None else origin(inner, node.child)
        case nodes.Aggregate():
            key = dict(node.keys).get(name)
            return origin(key.name, node.child) if isinstance(key, ColumnRef) else None
        case nodes.Shared():
            at = next((at for at, f in enumerate(node.fields) if f.name == name), None)
            return None if at is None else origin(node.child.schema[at].name, node.child)
        case nodes.Union() | nodes.SetDifference():
            return None
        case _:
            origins = (origin(name, child) for child in node.children())
            return next((column for column in origins if column is not None), None)


def traced(expression: Expression, node: nodes.Node) -> tuple[nodes.Scan, Expression] | None:
    """Return the scan that an expression over a node's columns comes from, and the expression over
    the names that columns have in the table.

    None if it reads no column, columns of several tables, or the result of an aggregate."""
    used = columns_of(expression)
    if not used:
        return None
    match node:
        case nodes.Scan():
            return node, _over_table(expression, node)
        case nodes.Project():
            return _replaced(expression, dict(node.expressions), node.child)
        case nodes.Aggregate():
            return _replaced(expression, dict(node.keys), node.child)
        case nodes.Shared():
            inner = {
                field.name: ColumnRef(below.type, below.name)
                for field, below in zip(node.fields, node.child.schema, strict=True)
            }
            return _replaced(expression, inner, node.child)
        case nodes.Union() | nodes.SetDifference():
            return None
        case _:
            for child in node.children():
                if used <= {field.name for field in child.schema}:
                    return traced(expression, child)
            return None


def conditions_of(scan: nodes.Scan) -> list[Expression]:
    """Return the conditions of a scan, of which all must hold."""
    return [*conjuncts(scan.predicate), *conjuncts(scan.prewhere)]


def conditions_over_table(scan: nodes.Scan) -> list[Expression]:
    """Return the conditions of a scan over the names that columns have in the table, in the order of
    `conditions_of`."""
    return [_over_table(condition, scan) for condition in conditions_of(scan)]


def _over_table(expression: Expression, scan: nodes.Scan) -> Expression:
    """Return an expression over a scan's unique names as one over the names in the table."""
    names = {unique: column for unique, column, _ in scan.predicate_columns} | dict(scan.columns)

    def renamed(e: Expression) -> Expression | None:
        """Return a column under its name in the table, None for any other expression."""
        return ColumnRef(e.type, names[e.name]) if isinstance(e, ColumnRef) else None

    return transform(expression, renamed)


def _replaced(
    expression: Expression, by_name: Mapping[str, Expression], child: nodes.Node
) -> tuple[nodes.Scan, Expression] | None:
    """Return the table scan and the expression over its names that an expression comes from, after its columns are
    replaced by their expressions in `by_name`, which are over `child`. None if a column is not in `by_name`, or has
    another type there."""
    for e in walk(expression):
        if isinstance(e, ColumnRef):
            inner = by_name.get(e.name)
            if inner is None or inner.type != e.type:
                return None

    def replaced(e: Expression) -> Expression | None:
        """Return the expression that a column is computed by, None for any other expression."""
        return by_name[e.name] if isinstance(e, ColumnRef) else None

    return traced(transform(expression, replaced), child)
