"""One statement of any kind: the choice of its parser by the first word."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeGuard, get_args

from olapdb.errors import (
    Error,
    InvalidConfigParameter,
    NotSupportedError,
    SyntaxError,
    UnknownIdentifier,
)
from olapdb.lazy import lazy_modules
from olapdb.sql import nodes
from olapdb.sql.parser import access, clauses, queries
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.lookahead import query_follows

if TYPE_CHECKING:
    from olapdb.sql.parser import (
        administration,
        alter,
        create,
        data,
        objects,
        outfile,
        show,
        system,
    )
else:
    administration, alter, create, data, objects, outfile, show, system = lazy_modules(
        "olapdb.sql.parser",
        "administration",
        "alter",
        "create",
        "data",
        "objects",
        "outfile",
        "show",
        "system",
    )

ExplainKind = Literal[
    "PLAN", "ANALYZE", "SYNTAX", "AST", "PIPELINE", "ESTIMATE", "DEPENDENCIES", "PROVENANCE", "VIEW"
]
_REFUSED_EXPLAINS = {"TABLE OVERRIDE": "There are no tables of other servers."}
"""What EXPLAIN does not take, with what to use instead."""
AnyKind = Literal[ExplainKind, "QUERY TREE"]
_EXPLAIN_KINDS: tuple[ExplainKind, ...] = get_args(ExplainKind)
_REFUSED = {
    "BACKUP": "SYSTEM BACKUP TO 'folder' copies an open warehouse.",
    "RESTORE": "SYSTEM RESTORE FROM 'folder' fills a new warehouse from a backup.",
    "WATCH": "Query the view again.",
    "MOVE": "Use RENAME.",
    "MERGE": "Use INSERT into a ReplacingMergeTree.",
    "CALL": "There are no procedures.",
}


_CHANGES = frozenset(
    [
        "ALTER",
        "ATTACH",
        "CREATE",
        "DELETE",
        "DETACH",
        "DROP",
        "EXCHANGE",
        "OPTIMIZE",
        "RENAME",
        "REPLACE",
        "TRUNCATE",
        "UNDROP",
        "UPDATE",
    ]
)
"""First words of statements without rows behind which SETTINGS and FORMAT may stand."""
_OF_TRANSACTIONS = ("SAVEPOINT", "RELEASE", "ROLLBACK")
"""Words of libraries that expect transactions: their errors say why there are none."""


def _names_a_disk(cursor: TokenCursor) -> bool:
    """Return whether BACKUP or RESTORE is next, with Disk(…) or File(…): no server allows these."""
    words = [token.text.upper() for token in cursor.tokens[cursor.at :]]
    place = {("TO", "DISK"), ("TO", "FILE"), ("FROM", "DISK"), ("FROM", "FILE")}
    return cursor.key in ("BACKUP", "RESTORE") and not place.isdisjoint(pairwise(words))


def parse_statement(cursor: TokenCursor) -> nodes.Statement:
    """Parse one statement, up to the end of the tokens or a semicolon, which stays next."""
    changes = cursor.key in _CHANGES
    statement = _parse_unwrapped(cursor)
    return _with_settings(cursor, statement) if changes else statement


def _parse_unwrapped(cursor: TokenCursor) -> nodes.Statement:
    """Parse one statement. SETTINGS and FORMAT behind one without rows stay next: behind EXPLAIN they are its own."""
    access.refuse_access_management(cursor)
    key = cursor.key
    if key in ("SELECT", "WITH", "FROM") or query_follows(cursor):
        return _parse_query_or_insert(cursor)
    start, parse = cursor.at, _parser_of(key)
    if parse is not None:
        try:
            return _parse_output(cursor, parse(cursor))
        except (SyntaxError, NotSupportedError) as error:
            if key not in _OF_TRANSACTIONS:
                _refuse_bare_words(cursor, start, error)
            raise
    if key in _REFUSED:
        kind = InvalidConfigParameter if _names_a_disk(cursor) else NotSupportedError
        refused = kind(
            f"The statement {key} is not supported.", hint=_REFUSED[key], position=cursor.position()
        )
        _refuse_bare_words(cursor, start, refused)
        raise refused
    return _parse_expressions(cursor)


def _refuse_bare_words(cursor: TokenCursor, start: int, error: Error) -> None:
    """Raise UnknownIdentifier if the statement from token number `start` on is one or two words, as
    `SHOW x`: ClickHouse reads it as `SELECT SHOW AS x`. `error` says what the statement lacks."""
    words = [token for token in cursor.tokens[start:] if token.text and token.text != ";"]
    if len(words) > 2 or any(token.kind not in ("word", "name") for token in words):
        return
    raise UnknownIdentifier(
        f"Unknown expression identifier {words[0].text}.",
        hint=f"It is no whole statement: {error.message}",
        position=cursor.position(words[0]),
    ) from error


def _parse_expressions(cursor: TokenCursor) -> nodes.Query:
    """Parse a query whose SELECT is left out, as in `1 + 1` (ClickHouse: implicit_select). Raises SyntaxError at the
    first token if the text is no such query."""
    error = cursor.expected("a statement", _similar_statement(cursor.key))
    if cursor.ended:
        raise error
    try:
        query = queries.parse_without_select(cursor)
    except SyntaxError:
        raise error from None
    if not cursor.ended and cursor.key not in (";", "PARALLEL"):
        raise error
    return query


def _similar_statement(word: str) -> str:
    """Return "Maybe you meant SELECT." if a statement begins with a word like this one, "" if none does."""
    known = (
        "SELECT",
        "INSERT",
        "SHOW",
        "DESCRIBE",
        "EXPLAIN",
        "EXISTS",
        "SYSTEM",
        "SET",
        *_CHANGES,
    )
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.7)
    return f"Maybe you meant {close[0]}." if close else ""


def answers_with_rows(
    statement: nodes.Statement,
) -> TypeGuard[
    nodes.Show | nodes.Describe | nodes.ExistsObject | nodes.CheckTable | nodes.Explain | nodes.Kill
]:
    """Return whether a statement that is no query answers with rows."""
    return isinstance(
        statement,
        nodes.Show
        | nodes.Describe
        | nodes.ExistsObject
        | nodes.CheckTable
        | nodes.Explain
        | nodes.Kill,
    )


def _parse_output(cursor: TokenCursor, statement: nodes.Statement) -> nodes.Statement:
    """Parse FORMAT and SETTINGS behind a statement that answers with rows, such as SHOW TABLES.

    The FORMAT of a query inside it, as in EXPLAIN SELECT … FORMAT x, is the statement's own."""
    if not answers_with_rows(statement):
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
    statement = replace(statement, format=output)
    if settings:
        return nodes.WithSettings(statement, settings, output, position=statement.position)
    return statement


def _with_settings(cursor: TokenCursor, statement: nodes.Statement) -> nodes.Statement:
    """Parse the SETTINGS and the FORMAT behind a statement without rows. FORMAT says nothing of it."""
    position = cursor.position()
    settings, output = queries.parse_output(cursor)
    if not settings and output is None:
        return statement
    return nodes.WithSettings(statement, settings, output, position=position)


def _query_inside(statement: nodes.Statement) -> nodes.Node | None:
    """Return the query or table that DESCRIBE or the statement that EXPLAIN is about; None for other statements."""
    if isinstance(statement, nodes.Explain):
        return statement.statement
    return statement.query if isinstance(statement, nodes.Describe) else None


def _parse_query_or_insert(cursor: TokenCursor) -> nodes.Statement:
    """Parse a query, with INTO OUTFILE or without, or `WITH … INSERT INTO t SELECT …`.

    The WITH before an INSERT belongs to its SELECT."""
    if cursor.key == "WITH":
        items, recursive = queries.parse_with(cursor)
        if cursor.key == "INSERT":
            insert = data.parse_insert(cursor)
            if insert.query is None:
                raise cursor.expected("a query behind WITH … INSERT")
            return replace(insert, query=queries.add_with(insert.query, items, recursive))
        query = queries.parse_behind_with(cursor, items, recursive)
    else:
        query = queries.parse_query(cursor)
    return outfile.parse_outfile(cursor, query) if cursor.sees("INTO", "OUTFILE") else query


def parse_explain(cursor: TokenCursor) -> nodes.Explain:
    """Parse `EXPLAIN [kind] [settings] statement`, whose statement is a name for some kinds."""
    position = cursor.position(cursor.advance())
    for words, instead in _REFUSED_EXPLAINS.items():
        if cursor.sees(*words.split()):
            raise cursor.refused(f"EXPLAIN {words}", instead)
    if cursor.take("CURRENT", "TRANSACTION"):
        return nodes.Explain(
            "CURRENT TRANSACTION", nodes.TableName("TRANSACTION"), position=position
        )
    kind: AnyKind = cursor.take_one_of(*_EXPLAIN_KINDS) or "PLAN"
    if cursor.take("QUERY", "TREE"):
        kind = "QUERY TREE"
    settings: tuple[nodes.Setting, ...] = ()
    if cursor.token.kind == "word" and cursor.key_after(1) == "=":
        settings = clauses.parse_settings(cursor)
    if kind == "DEPENDENCIES" or (kind == "VIEW" and cursor.key != "CREATE"):
        return nodes.Explain(kind, cursor.table_name(), settings, position=position)
    cursor.enter()  # EXPLAIN of EXPLAIN of …
    if kind in ("AST", "SYNTAX") and cursor.key == "INSERT":
        explained: nodes.Statement = data.parse_explained_insert(cursor)
    else:
        explained = _parse_unwrapped(cursor)
    cursor.leave()
    return nodes.Explain(kind, explained, settings, position=position)


def _parser_of(word: str) -> Callable[[TokenCursor], nodes.Statement] | None:
    """Return the parser of the statements that begin with a word; None if none do. Imports no other."""
    match word:
        case "INSERT":
            return data.parse_insert_without_data
        case "CREATE":
            return create.parse_create
        case "REPLACE":
            return create.parse_replace
        case "ALTER":
            return alter.parse_alter
        case "DROP":
            return objects.parse_drop
        case "DETACH":
            return objects.parse_detach
        case "ATTACH":
            return objects.parse_attach
        case "UNDROP":
            return objects.parse_undrop
        case "TRUNCATE":
            return objects.parse_truncate
        case "RENAME":
            return objects.parse_rename
        case "EXCHANGE":
            return objects.parse_exchange
        case "DELETE":
            return data.parse_delete
        case "UPDATE":
            return data.parse_update
        case "OPTIMIZE":
            return administration.parse_optimize
        case "SYSTEM":
            return system.parse_system
        case "SHOW":
            return show.parse_show
        case "DESCRIBE" | "DESC":
            return administration.parse_describe
        case "EXPLAIN":
            return parse_explain
        case "EXISTS":
            return administration.parse_exists
        case "USE":
            return administration.parse_use
        case "SET":
            return administration.parse_set
        case "KILL":
            return administration.parse_kill
        case "CHECK":
            return administration.parse_check
        case "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE":
            return administration.parse_transaction
        case _:
            return None
