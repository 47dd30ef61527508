"""SELECT … FROM (EXPLAIN …): the rows of an EXPLAIN as constant rows of the query around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from olapdb.sql import nodes
from olapdb.sql.trees import rewrite, rewrite_children, walk
from olapdb.statements.context import StatementContext
from olapdb.statements.query.explain import explain
from olapdb.types import STRING, DataType


def with_explanations(query: nodes.Query, context: StatementContext) -> nodes.Query:
    """Return the query with each `(EXPLAIN …)` in FROM replaced by a subquery over its rows, which
    this computes."""
    if not any(isinstance(node, nodes.ExplainRelation) for node in walk(query)):
        return query

    def change(node: nodes.Node) -> nodes.Node | None:
        """Return the subquery over the rows of an EXPLAIN; None for other nodes, to rewrite their
        children."""
        return _rows(node, context) if isinstance(node, nodes.ExplainRelation) else None

    changed = rewrite(query, change)
    assert isinstance(changed, nodes.Query)
    return changed


def _nothing(types: Sequence[DataType]) -> tuple[str | int, ...]:
    """Return one row of "" for String and 0 for other types. It gives an EXPLAIN without rows its
    columns."""
    return tuple("" if data_type == STRING else 0 for data_type in types)


def _from_one_row(node: nodes.Node) -> nodes.Node | None:
    """Return a SELECT without FROM with FROM system.one, as ClickHouse shows it in EXPLAIN AST and
    SYNTAX; None for other nodes."""
    if not isinstance(node, nodes.Select) or node.source is not None:
        return None
    system_one = nodes.TableReference(nodes.TableName("one", "system"))
    return rewrite_children(replace(node, source=system_one), _from_one_row)


def _rows(relation: nodes.ExplainRelation, context: StatementContext) -> nodes.SubqueryRelation:
    """Run the EXPLAIN; return its rows as `(SELECT * FROM values('explain String', …))`."""
    explained = relation.explain
    if explained.kind in ("AST", "SYNTAX"):
        explained = rewrite(explained, _from_one_row)
    with_columns = explain(explained, context)
    names, types = with_columns.names, with_columns.types
    rows = [tuple(row.values()) for b in with_columns.batches() for row in b.to_pylist()]
    structure = ", ".join(f"`{n}` {t}" for n, t in zip(names, types, strict=True))
    literals = [
        nodes.TupleLiteral(tuple(map(nodes.Literal, row))) for row in rows or [_nothing(types)]
    ]
    if len(names) == 1:
        literals = [literal.elements[0] for literal in literals]  # type: ignore[misc]
    source = nodes.TableFunction(
        "values", (nodes.Literal(structure), *literals), position=relation.position
    )
    query = nodes.Select(
        (nodes.Star(),),
        source=source,
        where=None if rows else nodes.Literal(0),
        position=relation.position,
    )
    return nodes.SubqueryRelation(
        query, relation.alias, relation.column_aliases, position=relation.position
    )
