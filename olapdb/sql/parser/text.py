"""Whole texts: statements apart, the data of INSERT cut off before anything reads them as tokens.

What follows VALUES or FORMAT is data, often megabytes of it, and not for a tokenizer.  So the head
of an INSERT is found first, by a scan that knows quotes, comments and parentheses only.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from olapdb.errors import SyntaxError
from olapdb.sql.nodes import Expression, Insert, Query, Statement, TableName, ValuesData
from olapdb.sql.parser.statements import StatementParser
from olapdb.sql.tokens import SourceText, tokenize

_QUOTED = (
    r"'(?:[^'\\]|\\.|'')*+'|\"(?:[^\"\\]|\\.|\"\")*+\"|`(?:[^`\\]|\\.|``)*+`"
    r"|--[^\n]*+|\#[ !][^\n]*+|/\*.*?\*/|(\$\w*\$).*?\1"
)
_LEXEME = re.compile(_QUOTED + r"|\w+|[^\s\w]", re.DOTALL)
_BLANK = re.compile(r"(?:\s|--[^\n]*|\#[ !][^\n]*|/\*.*?\*/)*", re.DOTALL)
_STATEMENT_END = re.compile(r"(?:[^;'\"`\-#/$]++|" + _QUOTED + r"|[\"'`\-#/$])*+", re.DOTALL)
_DATA_END = re.compile(
    r"(?:[^;'\-#/]++|'(?:[^'\\]++|\\.|'')*+'|--[^\n]*+|/\*.*?\*/|[\-#/])*+", re.DOTALL
)
_INSERT = re.compile(r"INSERT\b", re.IGNORECASE)
_QUERY_WORDS = frozenset({"SELECT", "WITH", "FROM"})


class _Data(NamedTuple):
    """Where the data of an INSERT begin: behind the word VALUES, or FORMAT and its name."""

    head_end: int
    start: int
    format: str


def parse(text: str) -> tuple[Statement, ...]:
    """The statements of a text, which semicolons separate.

    Raises SyntaxError with its place, NotSupportedError for what ClickHouse has and olapdb does
    not, UnknownType for a type that it does not know.
    """
    source = SourceText(text)
    statements: list[Statement] = []
    at = _skip_blank(text, 0)
    while at < len(text):
        if text[at] == ";":
            at = _skip_blank(text, at + 1)
            continue
        statement, at = _next_statement(source, at)
        statements.append(statement)
        at = _skip_blank(text, at)
    return tuple(statements)


def parse_one(text: str) -> Statement:
    """The one statement of a text."""
    statements = parse(text)
    if len(statements) != 1:
        found = "none" if not statements else f"{len(statements)}"
        position = statements[1].position if len(statements) > 1 else None
        raise SyntaxError(
            f"Expected one statement, found {found}.",
            hint="Send one statement after the other." if statements else "",
            position=position,
        )
    return statements[0]


def parse_query(text: str) -> Query:
    """A SELECT or set operation."""
    parser = _parser(SourceText(text))
    query = parser.query()
    _expect_end(parser)
    return query


def parse_expression(text: str) -> Expression:
    """One expression, with or without an alias."""
    parser = _parser(SourceText(text))
    expression = parser.aliased()
    _expect_end(parser)
    return expression


def parse_table_name(text: str) -> TableName:
    """`table` or `database.table`, each quoted or not."""
    parser = _parser(SourceText(text))
    name = parser.table_name()
    _expect_end(parser)
    return name


def parser_of(source: SourceText, start: int, end: int) -> StatementParser:
    """A parser over a piece of a text."""
    return StatementParser(source, tokenize(source, start, end))


def _parser(source: SourceText) -> StatementParser:
    return parser_of(source, 0, len(source.text))


def _expect_end(parser: StatementParser) -> None:
    parser.take(";")
    if not parser.ended:
        raise parser.expected("the end of the statement")


def _skip_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return at if match is None else match.end()


def _next_statement(source: SourceText, start: int) -> tuple[Statement, int]:
    """The statement at `start`, and where it ends (at a semicolon or at the end of the text)."""
    text = source.text
    if _INSERT.match(text, start):
        data = _find_data(text, start)
        if data is not None:
            return _insert_with_data(source, start, data)
    end = _end_of_statement(text, start, _STATEMENT_END)
    parser = parser_of(source, start, end)
    statement = parser.statement()
    if not parser.ended:
        raise parser.expected("the end of the statement")
    return statement, end


def _end_of_statement(text: str, start: int, pattern: re.Pattern[str]) -> int:
    """The first semicolon that is in no quotes or comment, or the end of the text."""
    semicolon = text.find(";", start)
    if semicolon < 0:
        return len(text)
    match = pattern.match(text, start)
    return len(text) if match is None else match.end()


def _find_data(text: str, start: int) -> _Data | None:
    """None where the INSERT has a query, or no data in the text."""
    depth = 0
    words = 0
    previous = ""
    for match in _LEXEME.finditer(text, start):
        lexeme = match[0]
        if lexeme in ("(", "["):
            depth += 1
        elif lexeme in (")", "]"):
            depth -= 1
        elif lexeme == ";" and depth == 0:
            return None
        if lexeme.startswith(("--", "# ", "#!", "/*")):
            continue
        upper = lexeme.upper()
        # INSERT INTO [TABLE] name: the name may be any word
        is_name = previous in ("INTO", "TABLE", ".") and upper != "TABLE"
        if depth == 0 and words >= 2 and not is_name:
            if upper == "VALUES":
                return _Data(match.start(), match.end(), "")
            if upper == "FORMAT":
                return _format_data(text, match.start(), match.end())
            if upper in _QUERY_WORDS:
                return None
        elif depth == 1 and previous == "(" and upper in ("SELECT", "WITH"):
            return None
        words += 1
        previous = upper
    return None


def _format_data(text: str, head_end: int, at: int) -> _Data | None:
    """Behind FORMAT: a name, and one space or line end; `FORMAT Values` is VALUES."""
    name = re.compile(r"\s*(\w+)[ \t]*(;\s*\Z)?\r?\n?").match(text, at)
    if name is None or name[2] is not None or name.end() >= len(text):
        return None
    return _Data(head_end, name.end(), name[1])


def _insert_with_data(source: SourceText, start: int, data: _Data) -> tuple[Statement, int]:
    text = source.text
    parser = parser_of(source, start, data.head_end)
    insert = parser.insert()
    if not parser.ended:
        raise parser.expected("VALUES, SELECT or FORMAT")
    position = source.position(data.start)
    if not data.format or data.format.upper() == "VALUES":
        end = _end_of_statement(text, data.start, _DATA_END)
        values = ValuesData(text[data.start : end], position=position)
        return _with_values(insert, values), end
    return replace(insert, format=data.format, data=text[data.start :]), len(text)


def _with_values(insert: Insert, values: ValuesData) -> Insert:
    """The INSERT with these literal rows, of which there must be at least a beginning."""
    if not values.text.strip():
        raise SyntaxError("Expected rows behind VALUES, found none.", position=values.position)
    return replace(insert, values=values)
