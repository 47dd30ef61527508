"""The numbers of subqueries in the names of result columns: `_subquery_2`.

ClickHouse numbers them as it meets them: those of WITH that are values, those of FROM, the uses of
CTEs too, then those of SELECT; one inside another comes behind it, and EXISTS counts twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from olapdb.bind.syntax import children, rewrite
from olapdb.sql import nodes as sql


class SubqueryNumbers:
    """The number of the last subquery of a SELECT that has a name."""

    def __init__(self, select: sql.Select) -> None:
        """Count the subqueries in front of the columns."""
        self._queries = {item.name: item.query for item in select.with_items if item.query}
        front = [item.expression for item in select.with_items if item.expression is not None]
        relations = [] if select.source is None else [select.source]
        self._last = sum(_count(node, self._queries) for node in (*front, *relations))

    def named(self, column: sql.Expression) -> sql.Expression:
        """Return a column for its name, its subqueries as names; count those subqueries."""
        if isinstance(column, sql.Alias):
            return replace(column, expression=self.named(column.expression))

        def change(node: sql.Node) -> sql.Node | None:
            """Return the name in place of a subquery."""
            if isinstance(node, sql.Query):
                return node
            if isinstance(node, sql.Exists):
                self._last += _count(node, self._queries)
            if not isinstance(node, sql.Subquery):
                return None
            name = f"_subquery_{self._last + 1}"
            self._last += _count(node, self._queries)
            return sql.Identifier((name,), position=node.position)

        return rewrite(column, change)


def _count(node: sql.Node, queries: Mapping[str, sql.Query]) -> int:
    """Return how many numbers a node and those below it take; `queries` are the CTEs."""
    count = sum(_count(child, queries) for child in children(node))
    if isinstance(node, sql.Subquery | sql.SubqueryRelation):
        return count + 1
    if isinstance(node, sql.Exists):
        return count + 2
    if isinstance(node, sql.TableReference) and node.table.database is None:
        query = queries.get(node.table.name)
        if query is not None:  # a CTE does not count itself again
            others = {name: q for name, q in queries.items() if name != node.table.name}
            return count + 1 + _count(query, others)
    return count
