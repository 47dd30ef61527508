"""The path from the source to the target: trigger, clauses, joins, and the one GROUP BY.

A trigger sends only the rows of one block up this path. So each node must distribute over blocks:
its output for two blocks together must be its outputs for each, joined. Above the source's GROUP
BY, the groups of the two outputs must merge to that.
"""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.plan import nodes
from olapdb.plan.expressions import Expression, columns_of
from olapdb.plan.tree import expressions_of
from olapdb.views.definition.query_shape import QueryShape, occurrences
from olapdb.views.provability.judgement import (
    JudgedItem,
    provable_item,
    refused,
    refused_if_merging,
    unproven_item,
)
from olapdb.views.provability.parts import BoundDefinition

_ROW_BY_ROW = {
    nodes.Scan: "FROM",
    nodes.Filter: "WHERE",
    nodes.Project: "SELECT",
    nodes.ArrayJoin: "ARRAY JOIN",
    nodes.Sort: "ORDER BY",
    nodes.Join: "JOIN",
    nodes.Aggregate: "GROUP BY",
    nodes.Limit: "LIMIT",
    nodes.RelativeLimit: "LIMIT",
    nodes.Paste: "PASTE JOIN",
    nodes.LimitBy: "LIMIT BY",
    nodes.Distinct: "DISTINCT",
    nodes.Window: "OVER",
    nodes.Fill: "WITH FILL",
    nodes.Union: "UNION ALL",
    nodes.RecursiveUnion: "WITH RECURSIVE",
    nodes.SetDifference: "EXCEPT or INTERSECT",
}
"""Nodes that the rules know. `QueryShape.above` names those that look at several rows."""


def query_items(
    parts: BoundDefinition, branch: nodes.Plan, shape: QueryShape
) -> Iterator[JudgedItem]:
    """Yield items about one branch of the query, from the source up to the target."""
    items = [*_repeated_source(parts, branch), *_joins(parts, shape), *_block_clauses(parts, shape)]
    if not shape.above:
        items += _conditions_on_groups(parts, branch)
    items += _totals(branch)
    for node in path(branch.root):
        if type(node) not in _ROW_BY_ROW:
            items.append(
                unproven_item(
                    "query", f"{type(node).__name__} is not known to work block by block."
                )
            )
    yield from items
    if not items:
        result = "each row by itself" if shape.aggregate is None else "each group by itself"
        yield provable_item("query", f"It makes of the rows of {parts.source_name} {result}.")


def path(node: nodes.Node) -> list[nodes.Node]:
    """Return the nodes from this one down to the left-most table."""
    path_nodes = [node]
    while node.children():
        node = node.children()[0]
        path_nodes.append(node)
    return path_nodes


def _totals(branch: nodes.Plan) -> Iterator[JudgedItem]:
    """Refuse WITH TOTALS: a target has no place for the totals."""
    if any(isinstance(n, nodes.Aggregate) and n.totals is not None for n in path(branch.root)):
        yield refused(
            "WITH TOTALS",
            "WITH TOTALS makes a row apart from the result, which no target takes.",
            "Leave it out of the view and put it into the query that reads the target.",
        )


def _repeated_source(parts: BoundDefinition, branch: nodes.Plan) -> Iterator[JudgedItem]:
    """Refuse a branch that reads its source more than once."""
    if occurrences(branch.root, parts.source.id) > 1:
        yield refused(
            f"source {parts.source_name}",
            f"it reads its source {parts.source_name} twice; every occurrence is the inserted"
            " block alone, so rows of different INSERTs would never meet.",
            "Read the source once; for a self-join keep one side in another table.",
        )


def _joins(parts: BoundDefinition, shape: QueryShape) -> Iterator[JudgedItem]:
    """Yield an item for each RIGHT or FULL JOIN, and one for an ANY or ASOF JOIN."""
    for kind in shape.joins:
        if kind.endswith(("RIGHT", "FULL")):
            yield refused(
                "JOIN",
                f"{kind} JOIN adds the unmatched rows of the other table once for each block.",
                "Use LEFT or INNER JOIN from the source.",
            )
    arbitrary_joins = [join for join in shape.joins if join.startswith(("ANY", "ASOF"))]
    if arbitrary_joins:
        yield refused_if_merging(
            parts.merges,
            "JOIN",
            f"{arbitrary_joins[0]} JOIN takes whichever partner comes first.",
            "Make the joined table unique by its key and use a plain JOIN.",
        )


def _block_clauses(parts: BoundDefinition, shape: QueryShape) -> Iterator[JudgedItem]:
    """Yield an item for a clause that looks at several rows, or for a second GROUP BY."""
    if shape.above:
        clause = shape.above[0]
        yield refused_if_merging(
            parts.merges,
            clause,
            f"{clause} looks at the rows of one block, not of the table.",
            f"Leave {clause} out of the view and put it into the query that reads"
            f" {parts.target_name}.",
        )
    elif shape.aggregations > 1:
        yield refused_if_merging(
            parts.merges,
            "GROUP BY",
            "its inner GROUP BY sees one block at a time, so the outer one aggregates pieces.",
            "Make the inner query a view of its own; the outer one belongs in the query that reads.",
        )


# --- above the GROUP BY ---------------------------------------------------------------------------


def _conditions_on_groups(parts: BoundDefinition, branch: nodes.Plan) -> Iterator[JudgedItem]:
    """Yield an item for a WHERE, JOIN or ARRAY JOIN above the GROUP BY that reads an aggregate: its
    value is that of one block. Such a clause may read the group's keys, which are the same in every
    block."""
    for node in path(branch.root):
        if isinstance(node, nodes.Aggregate):
            return
        clause = {nodes.Filter: "HAVING", nodes.Join: "JOIN", nodes.ArrayJoin: "ARRAY JOIN"}.get(
            type(node)
        )
        if clause is None:
            continue
        below = node.children()[0]
        below_names = {field.name for field in below.schema}
        for expression in expressions_of(node):
            aggregated = [
                name
                for name in sorted(columns_of(expression) & below_names)
                if _is_aggregate(below, name)
            ]
            if aggregated:
                yield refused_if_merging(
                    parts.merges,
                    clause,
                    f"{clause} looks at {aggregated[0]}, an aggregate of the rows of one block, not"
                    " of the table.",
                    f"Put the condition into the query that reads {parts.target_name}.",
                )
                return


def _is_aggregate(node: nodes.Node, column: str) -> bool:
    """Return whether a column of the node is computed from an aggregate below, on this path."""
    match node:
        case nodes.Aggregate(aggregates=aggregates):
            return any(name == column for name, _ in aggregates)
        case nodes.Project(child=child, expressions=pairs):
            expression: Expression | None = dict(pairs).get(column)
            return expression is not None and any(
                _is_aggregate(child, column_name) for column_name in columns_of(expression)
            )
        case nodes.ArrayJoin(child=child, arrays=arrays):
            array = dict(arrays).get(column)
            names = frozenset((column,)) if array is None else columns_of(array)
            return any(_is_aggregate(child, column_name) for column_name in names)
        case nodes.Join(left=left):
            return any(field.name == column for field in left.schema) and _is_aggregate(
                left, column
            )
        case nodes.Scan():
            return False
        case nodes.Filter() | nodes.Sort():
            return _is_aggregate(node.children()[0], column)
        case _:
            return True
