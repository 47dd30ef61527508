"""Syntax tree to text: `to_sql` for statements and expressions, `column_name` for result columns."""

from __future__ import annotations

from olapdb.errors import NotSupportedError
from olapdb.sql import nodes
from olapdb.sql.column_names import column_name
from olapdb.sql.formatter import definition_lines, definitions, dictionaries, expressions, queries

__all__ = ["column_name", "to_lines", "to_sql"]


def to_lines(node: nodes.Statement, *, single: bool = False) -> str:
    """Return a statement as SHOW CREATE and formatQuery show it, on one line if `single`.

    Takes queries, the CREATE statements, INSERT and EXPLAIN. Raises NotSupportedError for others."""
    text = definition_lines.show_statement(node)
    return definition_lines.on_one_line(text) if single else text


def to_sql(node: nodes.Node) -> str:
    """Return the SQL of a node, on one line, as ClickHouse formats it.

    Takes expressions, queries, relations, names, the CREATE statements, INSERT and EXPLAIN.
    Parsing the text gives an equal node; numbers keep the text they were written with.  Raises
    NotSupportedError for other statements.
    """
    match node:
        case nodes.Expression():
            return expressions.format_expression(node)
        case nodes.Query():
            return queries.format_query(node)
        case nodes.Relation():
            return queries.format_relation(node)
        case nodes.TableName():
            return queries.format_table(node)
        case nodes.OrderItem():
            return expressions.format_order_items((node,))
        case nodes.ColumnDefinition():
            return definitions.format_column(node)
        case nodes.TtlItem():
            return definitions.format_ttl(node)
        case nodes.StorageClause():
            return " ".join(definitions.format_storage(node))
        case nodes.CreateDatabase():
            return definitions.format_create_database(node)
        case nodes.CreateTable():
            return definitions.format_create_table(node)
        case nodes.CreateView():
            return definitions.format_create_view(node)
        case nodes.CreateMaterializedView():
            return definitions.format_create_materialized_view(node)
        case nodes.CreateDictionary():
            return dictionaries.format_create_dictionary(node)
        case nodes.RefreshClause():
            return definitions.format_refresh(node)
        case nodes.Insert():
            return definitions.format_insert(node)
        case nodes.OutFile():
            return definitions.format_outfile(node)
        case nodes.Explain():
            settings = queries.format_settings(node.settings)
            output = f"FORMAT {node.format}" if node.format else ""
            words = ("EXPLAIN", node.kind, settings, to_sql(node.statement), output)
            return " ".join(word for word in words if word)
        case _:
            raise NotSupportedError(
                f"The text of a statement {type(node).__name__} is not kept.",
                position=node.position,
            )
