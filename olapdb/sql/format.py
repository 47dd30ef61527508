"""Syntax tree to text: `to_sql` for statements and expressions, `column_name` for result columns."""

from __future__ import annotations

from olapdb.errors import NotSupportedError
from olapdb.sql.column_names import column_name
from olapdb.sql.formatter.definitions import DefinitionFormatter
from olapdb.sql.nodes import (
    ColumnDefinition,
    CreateDatabase,
    CreateMaterializedView,
    CreateTable,
    CreateView,
    Explain,
    Expression,
    Insert,
    Node,
    OrderItem,
    Query,
    Relation,
    StorageClause,
    TableName,
)

__all__ = ["column_name", "to_sql"]


def to_sql(node: Node) -> str:
    """The SQL of a node, on one line, as ClickHouse formats it.

    Expressions, queries, relations, names, the CREATE statements, INSERT and EXPLAIN; reading the
    text gives an equal node.  Numbers keep the text that they had.  Raises NotSupportedError for
    other statements.
    """
    formatter = DefinitionFormatter()
    match node:
        case Expression():
            return formatter.expression(node)
        case Query():
            return formatter.query(node)
        case Relation():
            return formatter.relation(node)
        case TableName():
            return formatter.table(node)
        case OrderItem():
            return formatter.order_items((node,))
        case ColumnDefinition():
            return formatter.column(node)
        case StorageClause():
            return " ".join(formatter.storage(node))
        case CreateDatabase():
            return formatter.create_database(node)
        case CreateTable():
            return formatter.create_table(node)
        case CreateView():
            return formatter.create_view(node)
        case CreateMaterializedView():
            return formatter.create_materialized_view(node)
        case Insert():
            return formatter.insert(node)
        case Explain():
            settings = formatter.settings(node.settings)
            words = ("EXPLAIN", node.kind, settings, to_sql(node.statement))
            return " ".join(word for word in words if word)
        case _:
            raise NotSupportedError(
                f"The text of a statement {type(node).__name__} is not kept.",
                position=node.position,
            )
