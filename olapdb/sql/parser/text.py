"""Whole texts: splits them into statements and cuts off the data of INSERT before tokenizing.

What follows VALUES or FORMAT is data, often megabytes of it, and not for a tokenizer.  So a scan
that knows quotes, comments and parentheses only finds the head of an INSERT first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from olapdb.errors import IncorrectQuery, NoDataToInsert, SyntaxError
from olapdb.lazy import lazy_modules
from olapdb.sql import nodes
from olapdb.sql.parser import operands, queries, statements
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.tokens import COMMENT, HEREDOC, QUOTED, SourceText
from olapdb.sql.trees import rewrite

if TYPE_CHECKING:
    from olapdb.sql.parser import data, refresh
else:
    data, refresh = lazy_modules("olapdb.sql.parser", "data", "refresh")

Parsed = TypeVar("Parsed")

_OPAQUE = f"{QUOTED}|{HEREDOC}"
_LEXEME = re.compile(_OPAQUE + r"|\w+|[^\s\w]", re.DOTALL)
_BLANK = re.compile(rf"(?:\s|{COMMENT})*", re.DOTALL)
_STATEMENT_END = re.compile(r"(?:[^;'\"`\-#/$]++|" + _OPAQUE + r"|[\"'`\-#/$])*+", re.DOTALL)
_DATA_END = re.compile(
    r"(?:[^;'\-#/]++|'(?:[^'\\]++|\\.|'')*+'|--[^\n]*+|/\*.*?\*/|[\-#/])*+", re.DOTALL
)
_INSERT = re.compile(r"INSERT\b", re.IGNORECASE)
_FORMAT_NAME = re.compile(r"\s*(\w+)[ \t]*(;\s*\Z)?\r?\n?")
_INPUT = re.compile(r"\binput\s*\(", re.IGNORECASE)
_QUERY_WORDS = frozenset({"SELECT", "WITH", "FROM"})


class _InsertData(NamedTuple):
    """Where the head of an INSERT ends, and where its data start, behind VALUES or FORMAT name.

    `format` is "" for VALUES.
    """

    head_end: int
    start: int
    format: str


def parse(text: str) -> tuple[nodes.Statement, ...]:
    """Parse the statements of a text, which semicolons separate.

    Raises SyntaxError with its position, NotSupportedError for what ClickHouse has and olapdb does
    not, UnknownType for a type that does not exist.
    """
    source = SourceText(text)
    parsed: list[nodes.Statement] = []
    at = _skip_blank(text, 0)
    while at < len(text):
        if text[at] == ";":
            at = _skip_blank(text, at + 1)
            continue
        several, at = _parse_next(source, at)
        parsed += several
        at = _skip_blank(text, at)
    return tuple(parsed)


def parse_one(text: str) -> nodes.Statement:
    """Parse a text that is one statement; raise SyntaxError if it has none or several."""
    parsed = parse(text)
    if not parsed:
        raise SyntaxError("Expected one statement, found none.")
    if len(parsed) > 1:
        raise SyntaxError(
            f"Expected one statement, found {len(parsed)}.",
            hint="Send one statement after the other.",
            position=parsed[1].position,
        )
    return parsed[0]


def parse_query(text: str) -> nodes.Query:
    """Parse a text that is one SELECT or set operation."""
    return _parse_whole(text, queries.parse_query)


def parse_expression(text: str) -> nodes.Expression:
    """Parse a text that is one expression, with or without an alias."""
    return _parse_whole(text, operands.parse_aliased)


def parse_table_name(text: str) -> nodes.TableName:
    """Parse a text that is `table` or `database.table`, each quoted or not."""
    return _parse_whole(text, TokenCursor.table_name)


def parse_replacing(text: str) -> nodes.Replacing:
    """Parse a text that is the REPLACE clause of an INSERT: `REPLACE USING (k) WHERE …`."""
    return _parse_whole(text, data.parse_replacing)


def parse_refresh(text: str) -> nodes.RefreshClause:
    """Parse a text that is the REFRESH clause of a materialized view."""
    return _parse_whole(text, refresh.parse_refresh)


def _parse_whole(text: str, parse_part: Callable[[TokenCursor], Parsed]) -> Parsed:
    """Parse all of `text` with `parse_part`; a semicolon may end it."""
    cursor = TokenCursor.over(SourceText(text))
    parsed = parse_part(cursor)
    cursor.take(";")
    if not cursor.ended:
        raise cursor.expected("the end of the statement")
    return parsed


# --- one statement of several


def _skip_blank(text: str, at: int) -> int:
    """Return the offset behind the white space and comments that begin at `at`."""
    match = _BLANK.match(text, at)
    return at if match is None else match.end()


def _parse_next(source: SourceText, start: int) -> tuple[Sequence[nodes.Statement], int]:
    """Parse the statement at `start`, or several that PARALLEL WITH joins; return them and the
    offset of the semicolon or the end."""
    text = source.text
    if _INSERT.match(text, start):
        insert_data = _find_data(text, start)
        if insert_data is not None:
            statement, end = _parse_insert_with_data(source, start, insert_data)
            return (statement,), end
    end = _end_of_statement(text, start, _STATEMENT_END)
    cursor = TokenCursor.over(source, start, end)
    parsed = [statements.parse_statement(cursor)]
    while cursor.take("PARALLEL", "WITH"):
        parsed.append(statements.parse_statement(cursor))
    if not cursor.ended:
        raise cursor.expected("the end of the statement")
    if len(parsed) > 1:
        _refuse_answers(parsed)
    return parsed, end


def _refuse_answers(parsed: Sequence[nodes.Statement]) -> None:
    """Raise IncorrectQuery if one of the statements that PARALLEL WITH joins answers with rows."""
    for statement in parsed:
        bare = statement.statement if isinstance(statement, nodes.WithSettings) else statement
        if isinstance(bare, nodes.Query) or statements.answers_with_rows(bare):
            raise IncorrectQuery(
                "A statement that answers with rows cannot be combined by PARALLEL WITH.",
                hint="UNION ALL combines queries.",
                position=statement.position,
            )


def _end_of_statement(text: str, start: int, pattern: re.Pattern[str]) -> int:
    """Return where the first semicolon outside quotes and comments is, or the end of the text."""
    if text.find(";", start) < 0:
        return len(text)
    match = pattern.match(text, start)
    return len(text) if match is None else match.end()


# --- the data of INSERT


def _find_data(text: str, start: int) -> _InsertData | None:
    """Find the data of the INSERT at `start`; None where it has a query, or none in the text."""
    depth = 0
    lexemes = 0
    previous = ""
    in_query = False  # of a query that calls input(), whose FORMAT has data
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
        is_name = previous == "." or (previous in ("INTO", "TABLE") and upper != "TABLE")
        if depth == 0 and lexemes >= 2 and not is_name:
            if upper == "VALUES" and not in_query:
                return _InsertData(match.start(), match.end(), "")
            if upper == "FORMAT":
                return _find_format_data(text, match.start(), match.end())
            if upper in _QUERY_WORDS and not in_query:
                if _INPUT.search(text, match.end()) is None:
                    return None
                in_query = True
        elif depth == 1 and not in_query and previous == "(" and upper in ("SELECT", "WITH"):
            return None
        lexemes += 1
        previous = "" if is_name else upper
    return None


def _find_format_data(text: str, head_end: int, at: int) -> _InsertData | None:
    """Find the data behind FORMAT, a name, and one space or line end; None where there are none."""
    name = _FORMAT_NAME.match(text, at)
    if name is None or name[2] is not None or name.end() >= len(text):
        return None
    return _InsertData(head_end, name.end(), name[1])


def _with_input(query: nodes.Query, format_name: str, rows: str) -> nodes.Query:
    """Return the query with its input(structure) as format(name, structure, data)."""

    def change(node: nodes.Node) -> nodes.Node | None:
        """Return the table function format(name, structure, rows) in place of input(structure); None for other
        nodes."""
        if not isinstance(node, nodes.TableFunction) or node.name.lower() != "input":
            return None
        given = (nodes.Literal(format_name), *node.arguments, nodes.Literal(rows))
        alias = node.alias or node.name
        return replace(node, name="format", arguments=given, alias=alias)

    return rewrite(query, change)


def _parse_insert_with_data(
    source: SourceText, start: int, insert_data: _InsertData
) -> tuple[nodes.Statement, int]:
    """Parse the head of an INSERT and cut off its data; return it and the offset of its end.

    Rows of VALUES end at a semicolon, data of another FORMAT at the end of the text.
    """
    text = source.text
    cursor = TokenCursor.over(source, start, insert_data.head_end)
    insert = data.parse_insert(cursor)
    if not cursor.ended:
        raise cursor.expected("VALUES, SELECT or FORMAT")
    if insert.query is not None:
        rows = text[insert_data.start :]
        return replace(insert, query=_with_input(insert.query, insert_data.format, rows)), len(text)
    if insert_data.format and insert_data.format.upper() != "VALUES":
        insert = replace(insert, format=insert_data.format, data=text[insert_data.start :])
        return insert, len(text)
    position = source.position(insert_data.start)
    end = _end_of_statement(text, insert_data.start, _DATA_END)
    rows = text[insert_data.start : end]
    if not rows.strip():
        raise NoDataToInsert(
            "There are no rows behind VALUES.", hint="Write them: (1, 'a').", position=position
        )
    return replace(insert, values=nodes.ValuesData(rows, position=position)), end
