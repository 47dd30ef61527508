"""One statement of any kind: the choice of its parser by the first word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

from olapdb.errors import NotSupportedError
from olapdb.sql import nodes
from olapdb.sql.parser import (
    access,
    administration,
    alter,
    clauses,
    create,
    data,
    objects,
    outfile,
    queries,
    show,
    system,
)
from olapdb.sql.parser.cursor import TokenCursor

ExplainKind = Literal[
    "PLAN", "ANALYZE", "SYNTAX", "AST", "PIPELINE", "ESTIMATE", "DEPENDENCIES", "PROVENANCE", "VIEW"
]
_EXPLAIN_KINDS: tuple[ExplainKind, ...] = get_args(ExplainKind)
_REFUSED = {
    "BACKUP": "SYSTEM BACKUP TO 'folder' copies an open warehouse.",
    "RESTORE": "SYSTEM RESTORE FROM 'folder' fills a new warehouse from a backup.",
    "WATCH": "Query the view again.",
    "MOVE": "Use RENAME.",
    "MERGE": "Use INSERT into a ReplacingMergeTree.",
    "CALL": "There are no procedures.",
}


def parse_statement(cursor: TokenCursor) -> nodes.Statement:
    """Parse one statement, up to the end of the tokens or a semicolon, which stays next."""
    access.refuse_access_management(cursor)
    key = cursor.key
    if key in ("SELECT", "WITH", "FROM", "("):
        return _parse_query_or_insert(cursor)
    parse = _STATEMENTS.get(key)
    if parse is not None:
        return _parse_output(cursor, parse(cursor))
    if key in _REFUSED:
        raise NotSupportedError(
            f"The statement {key} is not supported.", hint=_REFUSED[key], position=cursor.position()
        )
    raise cursor.expected("a statement")


Answer: TypeAlias = (
    nodes.Show | nodes.Describe | nodes.ExistsObject | nodes.CheckTable | nodes.Explain
)
"""Statements other than queries that answer with rows."""


def _parse_output(cursor: TokenCursor, statement: nodes.Statement) -> nodes.Statement:
    """Parse FORMAT and SETTINGS behind a statement that answers with rows, such as SHOW TABLES.

    The FORMAT of a query inside it, as in EXPLAIN SELECT … FORMAT x, is the statement's own."""
    if not isinstance(statement, Answer):
        return statement
    settings, output = queries.parse_output(cursor)
    inner = _query_inside(statement)
    if isinstance(inner, nodes.Select | nodes.SetOperation) and inner.format is not None:
        output = output or inner.format
        bare = replace(inner, format=None)
        if isinstance(statement, nodes.Describe):
            settings = inner.settings + settings
            statement = replace(statement, query=bare)
        elif isinstance(statement, nodes.Explain):
            statement = replace(statement, statement=bare)
    if isinstance(statement, nodes.Describe | nodes.CheckTable):
        return replace(statement, settings=statement.settings + settings, format=output)
    if settings:
        raise cursor.expected("the end of the statement instead of SETTINGS")
    return replace(statement, format=output)


def _query_inside(statement: nodes.Statement) -> nodes.Node | None:
    """Return what DESCRIBE or EXPLAIN is about; None for other statements."""
    if isinstance(statement, nodes.Explain):
        return statement.statement
    return statement.query if isinstance(statement, nodes.Describe) else None


def _parse_query_or_insert(cursor: TokenCursor) -> nodes.Statement:
    """Parse a query, with INTO OUTFILE or without, or `WITH … INSERT INTO t SELECT …`.

    The WITH before an INSERT belongs to its SELECT."""
    if cursor.key == "WITH":
        start = cursor.at
        items, recursive = queries.parse_with(cursor)
        if cursor.key == "INSERT":
            insert = data.parse_insert(cursor)
            if insert.query is None:
                raise cursor.expected("a query behind WITH … INSERT")
            return replace(insert, query=queries.add_with(insert.query, items, recursive))
        cursor.move_to(start)
    query = queries.parse_query(cursor)
    return outfile.parse_outfile(cursor, query) if cursor.sees("INTO", "OUTFILE") else query


def _parse_explain(cursor: TokenCursor) -> nodes.Explain:
    """Parse `EXPLAIN [kind] [settings] statement`, whose statement is a name for some kinds."""
    position = cursor.position(cursor.advance())
    if cursor.sees("QUERY", "TREE") or cursor.sees("TABLE", "OVERRIDE") or cursor.key == "CURRENT":
        raise cursor.refused(
            f"EXPLAIN {cursor.token.text.upper()}", "Use EXPLAIN PLAN or EXPLAIN SYNTAX."
        )
    kind = cursor.take_one_of(*_EXPLAIN_KINDS) or "PLAN"
    settings: tuple[nodes.Setting, ...] = ()
    if cursor.token.kind == "word" and cursor.key_after(1) == "=":
        settings = clauses.parse_settings(cursor)
    if kind == "DEPENDENCIES" or (kind == "VIEW" and cursor.key != "CREATE"):
        return nodes.Explain(kind, cursor.table_name(), settings, position=position)
    cursor.enter()  # EXPLAIN of EXPLAIN of …
    explained = parse_statement(cursor)
    cursor.leave()
    return nodes.Explain(kind, explained, settings, position=position)


_STATEMENTS: dict[str, Callable[[TokenCursor], nodes.Statement]] = {
    "INSERT": data.parse_insert,
    "CREATE": create.parse_create,
    "REPLACE": create.parse_replace,
    "ALTER": alter.parse_alter,
    "DROP": objects.parse_drop,
    "DETACH": objects.parse_detach,
    "ATTACH": objects.parse_attach,
    "UNDROP": objects.parse_undrop,
    "TRUNCATE": objects.parse_truncate,
    "RENAME": objects.parse_rename,
    "EXCHANGE": objects.parse_exchange,
    "DELETE": data.parse_delete,
    "UPDATE": data.parse_update,
    "OPTIMIZE": administration.parse_optimize,
    "SYSTEM": system.parse_system,
    "SHOW": show.parse_show,
    "DESCRIBE": administration.parse_describe,
    "DESC": administration.parse_describe,
    "EXPLAIN": _parse_explain,
    "EXISTS": administration.parse_exists,
    "USE": administration.parse_use,
    "SET": administration.parse_set,
    "KILL": administration.parse_kill,
    "CHECK": administration.parse_check,
    "BEGIN": administration.parse_transaction,
    "START": administration.parse_transaction,
    "COMMIT": administration.parse_transaction,
    "ROLLBACK": administration.parse_transaction,
}
