"""CREATE and INSERT as SQL on several lines, as SHOW CREATE and formatQuery print them."""

from __future__ import annotations

import re
from dataclasses import replace

from olapdb.errors import NotSupportedError
from olapdb.sql import nodes
from olapdb.sql.formatter import definitions, dictionaries, queries
from olapdb.sql.formatter.lines import show, show_query
from olapdb.sql.formatter.shown import bracketed
from olapdb.sql.literals import backquote, quote_string, show_name, show_names
from olapdb.sql.trees import rewrite
from olapdb.types.indented import indented_name

_BREAK = re.compile(r"\n *")
_OPENED = re.compile(r"\(\n *")
_CLOSED = re.compile(r"\n *\)")


def show_statement(node: nodes.Statement) -> str:
    """Return the lines of a query, a CREATE statement, an INSERT or an EXPLAIN.

    Raises NotSupportedError for other statements."""
    match node:
        case nodes.Query():
            return show_query(node)
        case nodes.CreateDatabase():
            bare = replace(node, engine=None, comment="")
            return "\n".join((definitions.format_create_database(bare), *_engine(node)))
        case nodes.CreateTable():
            return _create_table(node)
        case nodes.CreateView():
            return _create_view(node)
        case nodes.CreateMaterializedView():
            return _create_materialized_view(node)
        case nodes.CreateDictionary():
            return _create_dictionary(node)
        case nodes.Insert() if node.query is not None:
            bare_insert = definitions.format_insert(replace(node, query=None))
            return f"{bare_insert} {show_query(node.query)}"
        case nodes.Insert() if node.values is not None:
            return definitions.format_insert(replace(node, values=None, format="Values"))
        case nodes.Insert():
            return definitions.format_insert(replace(node, data=None))
        case nodes.Explain() if isinstance(node.statement, nodes.Statement):
            settings = queries.format_settings(node.settings)
            words = ("EXPLAIN", "" if node.kind == "PLAN" else node.kind, settings)
            output = f"\nFORMAT {node.format}" if node.format else ""
            return f"{' '.join(w for w in words if w)}\n{show_statement(node.statement)}{output}"
        case _:
            raise NotSupportedError(
                f"A statement {type(node).__name__} is not formatted.",
                hint="Queries, CREATE, INSERT and EXPLAIN are.",
                position=node.position,
            )


def on_one_line(text: str) -> str:
    """Return lines joined by spaces; literals and names hold no line breaks, which are escaped."""
    return _BREAK.sub(" ", _CLOSED.sub(")", _OPENED.sub("(", text)))


def _engine(node: nodes.CreateDatabase) -> list[str]:
    """Return the engine and the comment of a database."""
    lines = [] if node.engine is None else [f"ENGINE = {definitions.format_engine(node.engine)}"]
    return [*lines, *_comment(node.comment)]


def _comment(comment: str) -> list[str]:
    """Return the COMMENT clause as a list of one, [] for an empty comment."""
    return [f"COMMENT {quote_string(comment)}"] if comment else []


def _as_calls(node: nodes.StorageClause) -> nodes.StorageClause:
    """Return a storage clause with intervals as calls, and an engine without empty parentheses."""
    node = rewrite(node, _interval)
    if node.engine is not None and not node.engine.arguments:
        return replace(node, engine=replace(node.engine, has_arguments=False))
    return node


def _interval(node: nodes.Node) -> nodes.Node | None:
    """Return `toIntervalDay(1)` for INTERVAL 1 DAY."""
    if not isinstance(node, nodes.IntervalLiteral):
        return None
    amount = rewrite(node.expression, _interval)
    return nodes.Function(f"toInterval{node.unit.capitalize()}", (amount,))


def _columns(columns: tuple[nodes.ColumnDefinition, ...]) -> list[str]:
    """Return columns; the elements of named tuples are on lines of their own."""
    return [_column(column) for column in columns]


def _column(column: nodes.ColumnDefinition) -> str:
    """Return a column of a table; the name of a nested one is quoted as a whole."""
    text = definitions.format_column(rewrite(column, _interval))
    if "." in column.name:
        parts = ".".join(map(backquote, column.name.split(".")))
        text = backquote(column.name) + text.removeprefix(parts)
    name = backquote(column.name)
    text = name + show_names(text.removeprefix(name))
    if column.type is None:
        return text
    written, lines = str(column.type), indented_name(column.type, unnamed=True)
    return text if written == lines else text.replace(written, lines, 1)


def _create_table(node: nodes.CreateTable) -> str:
    """Return the lines of CREATE TABLE."""
    head = replace(
        node,
        columns=(),
        indexes=(),
        constraints=(),
        projections=(),
        storage=nodes.StorageClause(),
        query=None,
        like=None,
        function=None,
        comment="",
    )
    lines = [definitions.format_create_table(head)]
    elements = [
        *_columns(node.columns),
        *(show_names(definitions.format_index(rewrite(i, _interval))) for i in node.indexes),
        *(
            show_names(definitions.format_constraint(rewrite(c, _interval)))
            for c in node.constraints
        ),
        *(
            f"PROJECTION {show_name(p.name)}\n{bracketed(_projection(p.query))}"
            for p in node.projections
        ),
    ]
    if elements:
        lines.append(bracketed(",\n".join(elements)))
    if node.like is not None:
        lines[-1] += f" {'CLONE AS' if node.clone else 'AS'} {queries.format_table(node.like)}"
    if node.function is not None:
        lines[-1] += f" AS {queries.format_relation(node.function)}"
    lines += map(show_names, definitions.format_storage(_as_calls(node.storage)))
    lines += _comment(node.comment)
    if node.query is not None:
        word = "EMPTY AS" if node.empty else "AS"
        lines.append(f"{word} {show_query(node.query)}")
    return "\n".join(lines)


def _projection(query: nodes.Select) -> str:
    """Return the lines of a projection's query. Its ORDER BY has expressions, without ASC."""
    lines = show_query(replace(query, order_by=()))
    items = () if isinstance(query.order_by, nodes.OrderByAll) else query.order_by
    texts = [show(item.expression) for item in items]
    if not texts:
        return lines
    if len(texts) == 1:
        return f"{lines}\nORDER BY {texts[0]}"
    return lines + "\nORDER BY\n" + ",\n".join(f"    {text}" for text in texts)


def _create_view(node: nodes.CreateView) -> str:
    """Return the lines of CREATE VIEW."""
    parts = ["CREATE OR REPLACE" if node.or_replace else "CREATE"]
    parts += ["TEMPORARY VIEW" if node.temporary else "VIEW"]
    parts += ["IF NOT EXISTS"] if node.if_not_exists else []
    lines = [" ".join([*parts, queries.format_table(node.name)])]
    if node.columns:
        lines.append(bracketed(",\n".join(_columns(node.columns))))
    lines += _comment(node.comment)
    return "\n".join([*lines, f"AS {show_query(node.query)}"])


def _create_materialized_view(node: nodes.CreateMaterializedView) -> str:
    """Return the lines of CREATE MATERIALIZED VIEW."""
    parts = ["CREATE OR REPLACE" if node.or_replace else "CREATE", "MATERIALIZED VIEW"]
    parts += ["IF NOT EXISTS"] if node.if_not_exists else []
    lines = [" ".join([*parts, queries.format_table(node.name)])]
    if node.refresh is not None:
        lines.append(definitions.format_refresh(node.refresh))
    if node.target is not None:
        lines[-1] += f" TO {queries.format_table(node.target)}"
    if node.columns:
        elements = (*_columns(node.columns), *map(definitions.format_constraint, node.constraints))
        lines.append(bracketed(",\n".join(elements)))
    if node.storage is not None:
        lines += map(show_names, definitions.format_storage(_as_calls(node.storage)))
    if node.settings:
        lines.append(f"SETTINGS {queries.format_settings(node.settings)}")
    lines += _comment(node.comment)
    lines += definitions.format_read_view(node)
    lines[-1] += " POPULATE" if node.populate else ""
    lines[-1] += " EMPTY" if node.empty else ""
    return "\n".join([*lines, f"AS {show_query(node.query)}"])


def _create_dictionary(node: nodes.CreateDictionary) -> str:
    """Return the lines of CREATE DICTIONARY."""
    head, attributes, clauses = dictionaries.format_parts(node)
    for at, attribute in enumerate(node.attributes):  # tuples of a key of polygons
        lines = indented_name(attribute.type, unnamed=True)
        attributes[at] = attributes[at].replace(attribute.type.name, lines, 1)
    return "\n".join([head, bracketed(",\n".join(attributes)), *clauses])
