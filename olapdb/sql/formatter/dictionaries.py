"""CREATE DICTIONARY as SQL, on one line, as ClickHouse writes it."""

from __future__ import annotations

from olapdb.sql import nodes
from olapdb.sql.formatter import expressions, queries
from olapdb.sql.literals import backquote, quote_name, quote_string

_HIDDEN = "'[HIDDEN]'"


def format_create_dictionary(node: nodes.CreateDictionary) -> str:
    """Return `CREATE DICTIONARY …`, with a password shown as [HIDDEN]."""
    head, attributes, clauses = format_parts(node)
    return " ".join([head, f"({', '.join(attributes)})", *clauses])


def format_parts(node: nodes.CreateDictionary) -> tuple[str, list[str], list[str]]:
    """Return the words before the parentheses, the attributes in them, the clauses behind them."""
    parts = ["CREATE OR REPLACE DICTIONARY" if node.or_replace else "CREATE DICTIONARY"]
    if node.must_exist:
        parts = ["REPLACE DICTIONARY"]
    if node.if_not_exists:
        parts.append("IF NOT EXISTS")
    parts.append(queries.format_table(node.name))
    clauses: list[str] = []
    if node.primary_key:
        clauses.append(f"PRIMARY KEY {', '.join(map(quote_name, node.primary_key))}")
    if node.source is not None:
        clauses.append(f"SOURCE({_format_clause(node.source)})")
    if node.lifetime is not None:
        clauses.append(f"LIFETIME(MIN {node.lifetime[0]} MAX {node.lifetime[1]})")
    if node.layout is not None:
        clauses.append(f"LAYOUT({_format_clause(node.layout)})")
    if node.range is not None:
        clauses.append(f"RANGE(MIN {quote_name(node.range[0])} MAX {quote_name(node.range[1])})")
    if node.settings:
        clauses.append(f"SETTINGS({queries.format_settings(node.settings)})")
    if node.comment:
        clauses.append(f"COMMENT {quote_string(node.comment)}")
    return " ".join(parts), [_format_attribute(a) for a in node.attributes], clauses


def _format_attribute(attribute: nodes.DictionaryAttribute) -> str:
    """Return a column with its default, expression and flags."""
    parts = [backquote(attribute.name), attribute.type.name]
    if attribute.default is not None:
        parts += ["DEFAULT", expressions.format_expression(attribute.default)]
    if attribute.expression is not None:
        parts += ["EXPRESSION", expressions.format_expression(attribute.expression)]
    return " ".join([*parts, *attribute.flags])


def _format_clause(clause: nodes.DictionaryClause) -> str:
    """Return `KIND(NAME value …)`."""
    parameters = (
        f"{name} {_HIDDEN if name == 'PASSWORD' else expressions.format_expression(value)}"
        for name, value in clause.parameters
    )
    return f"{clause.kind}({' '.join(parameters)})"
