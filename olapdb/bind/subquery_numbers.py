"""The numbers of subqueries, and of secrets, in the names of result columns: `_subquery_2`.

ClickHouse numbers them as it meets them: those of WITH that are values, those of FROM, the uses of
CTEs too, then those of SELECT; one inside another comes behind it, and EXISTS counts twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb.bind.syntax import children, rewrite
from olapdb.lazy import LazyModule
from olapdb.sql import nodes as sql

if TYPE_CHECKING:
    from olapdb.bind import secret_names
    from olapdb.bind.secret_names import SecretNames
else:
    secret_names = LazyModule("olapdb.bind.secret_names")


_CIPHERS = frozenset(
    {
        *("encrypt", "decrypt", "tryDecrypt", "aes_encrypt_mysql", "aes_decrypt_mysql"),
        *("HMAC", "hmac"),
    }
)
"""The functions whose constants a column's name hides."""


class SubqueryNumbers:
    """The number of the last subquery of a SELECT that has a name, and its secrets."""

    def __init__(self, select: sql.Select) -> None:
        """Count the subqueries in front of the columns."""
        self._queries = {item.name: item.query for item in select.with_items if item.query}
        front = [item.expression for item in select.with_items if item.expression is not None]
        relations = [] if select.source is None else [select.source]
        self._secrets: SecretNames | None = None
        self._last = sum(_count(node, self._queries) for node in (*front, *relations))

    def named(self, column: sql.Expression) -> sql.Expression:
        """Return a column of SELECT as its name shows it: each subquery as the name `_subquery_n`, n counted on through
        the columns."""
        if isinstance(column, sql.Alias):
            return replace(column, expression=self.named(column.expression))
        has_secrets = False

        def change(node: sql.Node) -> sql.Node | None:
            """Return the identifier in place of a scalar subquery, counting the subqueries in it; other queries
            unchanged; None to go on with a node's children."""
            nonlocal has_secrets
            has_secrets |= isinstance(node, sql.Function) and node.name in _CIPHERS
            if isinstance(node, sql.Query):
                return node
            if isinstance(node, sql.Exists):
                self._last += _count(node, self._queries)
            if not isinstance(node, sql.Subquery):
                return None
            name = f"_subquery_{self._last + 1}"
            self._last += _count(node, self._queries)
            return sql.Identifier((name,), position=node.position)

        named = rewrite(column, change)
        if not has_secrets:
            return named
        self._secrets = self._secrets or secret_names.SecretNames()
        return self._secrets.named(named, _CIPHERS)


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
