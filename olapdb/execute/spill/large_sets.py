"""Sets of IN that memory does not take: a join, which spills, marks the rows that are in them.

`SELECT x FROM t WHERE x IN (query) OR y` becomes

    Project x
      Filter mark OR y
        Join LEFT ANY on x = z
          t
          Project z, 1 AS mark
            query

So it is for the conditions of scans and filters, for projections and GROUP BY. Elsewhere, as in a lambda or
as the key of a sort, a set must fit the memory."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.compute.context import ExecutionContext, LargeSet
from olapdb.plan.conditions import conjuncts, scalar_call
from olapdb.plan.expressions import (
    Cast,
    ColumnRef,
    Constant,
    Expression,
    InSubquery,
    LambdaParameter,
    transform,
    walk,
)
from olapdb.plan.nodes import Aggregate, Filter, Join, Node, Project, Scan
from olapdb.plan.scan_conditions import scan_without
from olapdb.plan.tree import bottom_up, expressions_of, map_expressions, with_columns, with_inputs
from olapdb.types import UINT8, Nullable, is_nullable


def join_large_sets(root: Node, context: ExecutionContext) -> Node:
    """Return the plan with joins in place of the sets that did not fit the memory."""
    return bottom_up(root, lambda node: _joined(node, context))


def _joined(node: Node, context: ExecutionContext) -> Node:
    """Return the node, its children done, over rows that are marked for its own large sets."""
    if isinstance(node, Scan):
        return _joined_scan(node, context)
    is_single = isinstance(node, Filter | Project) or (
        isinstance(node, Aggregate) and node.totals is None
    )
    if not is_single:
        return node
    sets = {s.number: s for e in expressions_of(node) for s in _large_sets(e, context)}
    if not sets:
        return node
    (marked,) = node.children()
    for number in sorted(sets):
        marked = _marked(marked, sets[number], context)

    def by_mark(expression: Expression) -> Expression | None:
        """Return the expression over the mark that stands for IN of a large set, None for any other expression."""
        if isinstance(expression, InSubquery) and expression.number in sets:
            return _by_mark(expression)
        return None

    changed = map_expressions(
        with_inputs(node, (marked,)), lambda expression: transform(expression, by_mark)
    )
    return with_columns(changed, node.schema)


def _joined_scan(scan: Scan, context: ExecutionContext) -> Node:
    """Return a scan without its conditions on large sets, below joins that mark the rows in these sets and a Filter by
    the marks.

    Returns the scan itself if it has no such condition, and if one is in PREWHERE of FINAL, which comes before rows
    are combined."""
    if scan.final and any(True for _ in _large_sets(scan.prewhere, context)):
        return scan
    conditions = [*conjuncts(scan.prewhere), *conjuncts(scan.predicate)]
    above = [c for c in conditions if any(True for _ in _large_sets(c, context))]
    if not above:
        return scan
    below, condition = scan_without(scan, above)
    return with_columns(_joined(Filter(below, condition), context), scan.schema)


def _large_sets(expression: Expression | None, context: ExecutionContext) -> Iterator[InSubquery]:
    """Yield the parts of an expression that look a row up in a large set."""
    for part in walk(expression) if expression is not None else ():
        if (
            isinstance(part, InSubquery)
            and isinstance(context.subqueries.get(part.number), LargeSet)
            and not any(isinstance(e, LambdaParameter) for a in part.arguments for e in walk(a))
        ):
            yield part


def _mark(condition: InSubquery) -> str:
    """Return the name of the column that says whether a row is in the set."""
    return f"-set {condition.number}"


def _marked(rows: Node, condition: InSubquery, context: ExecutionContext) -> Node:
    """Return the rows with a column that is 1 where a row is in the set, else 0."""
    mark = _mark(condition)
    keys = [
        (f"{mark} {at}", ColumnRef(field.type, field.name))
        for at, field in enumerate(condition.plan.schema)
    ]
    one = Constant(UINT8, pa.scalar(1, UINT8.arrow))
    members = Project(join_large_sets(condition.plan, context), (*keys, (mark, one)))
    return Join(
        left=rows,
        right=members,
        kind="LEFT",
        strictness="ANY",
        left_keys=condition.arguments,
        right_keys=tuple(ColumnRef(key.type, name) for name, key in keys),
        residual=None,
        fields=(*rows.schema, *members.schema),
    )


def _by_mark(condition: InSubquery) -> Expression:
    """Return IN or NOT IN by the mark of the rows: NULL for NULL, if the condition may be NULL."""
    value: Expression = ColumnRef(UINT8, _mark(condition))
    if condition.negated:
        value = scalar_call("not", (value,))
    if is_nullable(condition.type):
        (argument,) = condition.arguments
        null = Constant(Nullable(UINT8), pa.scalar(None, UINT8.arrow))
        value = scalar_call("if", (scalar_call("isNull", (argument,)), null, value))
    return value if value.type == condition.type else Cast(condition.type, value)
