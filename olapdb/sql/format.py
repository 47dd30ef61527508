"""Syntax tree to text: `to_sql` for statements and expressions, `column_name` for result columns."""

from __future__ import annotations

from olapdb.errors import NotSupportedError
from olapdb.sql import nodes
from olapdb.sql.column_names import column_name
from olapdb.sql.formatter.definitions import DefinitionFormatter

__all__ = ["column_name", "to_sql"]


def to_sql(node: nodes.Node) -> str:
    """The SQL of a node, on one line, as ClickHouse formats it.

    Expressions, queries, relations, names, the CREATE statements, INSERT and EXPLAIN; reading the
    text gives an equal node.  Numbers keep the text that they had.  Raises NotSupportedError for
    other statements.
    """
    formatter = DefinitionFormatter()
    match node:
        case nodes.Expression():
            return formatter.expression(node)
        case nodes.Query():
            return formatter.query(node)
        case nodes.Relation():
            return formatter.relation(node)
        case nodes.TableName():
            return formatter.table(node)
        case nodes.OrderItem():
            return formatter.order_items((node,))
        case nodes.ColumnDefinition():
            return formatter.column(node)
        case nodes.StorageClause():
            return " ".join(formatter.storage(node))
        case nodes.CreateDatabase():
            return formatter.create_database(node)
        case nodes.CreateTable():
            return formatter.create_table(node)
        case nodes.CreateView():
            return formatter.create_view(node)
        case nodes.CreateMaterializedView():
            return formatter.create_materialized_view(node)
        case nodes.Insert():
            return formatter.insert(node)
        case nodes.Explain():
            settings = formatter.settings(node.settings)
            words = ("EXPLAIN", node.kind, settings, to_sql(node.statement))
            return " ".join(word for word in words if word)
        case _:
            raise NotSupportedError(
                f"The text of a statement {type(node).__name__} is not kept.",
                position=node.position,
            )
