"""Data types inside statements: their tokens as text, read by `olapdb.functions.parse_type`."""

from __future__ import annotations

import re

from olapdb.errors import Error
from olapdb.functions import parse_type
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.types import DataType
from olapdb.types.aliases import continues


def parse_data_type(cursor: TokenCursor) -> DataType:
    """Parse the name of a type with its arguments; raise UnknownType at its first token."""
    start = cursor.at
    cursor.identifier("a data type")
    _skip_words(cursor, start)
    if cursor.key == "(":
        name_end = cursor.at
        cursor.skip_parentheses()
        if continues(_words(cursor, start, name_end), cursor.key):  # INT(11) UNSIGNED
            cursor.advance()
    return type_of_text(cursor, cursor.text_since(start), start)


def _skip_words(cursor: TokenCursor, start: int) -> None:
    """Skip the further words of a name such as DOUBLE PRECISION, whose first token is `start`."""
    while continues(_words(cursor, start, cursor.at), cursor.key):
        cursor.advance()


def _words(cursor: TokenCursor, start: int, end: int) -> str:
    """Return the tokens from `start` to `end` as one name."""
    return " ".join(token.text for token in cursor.tokens[start:end])


def written_type(text: str) -> str:
    """Return the text of a type as ClickHouse writes it in names: one blank behind a comma and around `=`.

    Returns "" for a type with quoted names, which is shown by its own name."""
    if "`" in text or '"' in text:
        return ""
    pieces = _QUOTED.split(text)
    pieces[::2] = (_with_blanks(piece) for piece in pieces[::2])
    return "".join(pieces).strip()


_QUOTED = re.compile(r"('(?:[^'\\]|\\.|'')*')", re.DOTALL)
"""A text in quotes, such as a value of an Enum."""


_QUOTED_OR_COMMENT = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.|'')*'|`(?:[^`\\]|\\.|``)*`|"(?:[^"\\]|\\.|"")*")|/\*.*?\*/|--[^\n]*""",
    re.DOTALL,
)


_NO_ARGUMENTS = re.compile(
    r"(?i)\b(u?int\d+|(?:big|medium|small|tiny)?int|integer)\s*\(\s*\d*\s*\)"
    r"|\b(\w+)\s*\(\s*\)"
)
"""The width of an integer, as in INT(11), and empty brackets."""


def _with_blanks(text: str) -> str:
    """Return a piece of a type without quotes, with the blanks that ClickHouse writes, and without the width of integers,
    empty brackets and a comma before a closing bracket, which it leaves out."""
    text = re.sub(r",\s*\)", ")", _NO_ARGUMENTS.sub(r"\1\2", text))
    text = re.sub(r"\s*,\s*", ", ", re.sub(r"\s+", " ", text))
    return re.sub(r"\s*=\s*", " = ", re.sub(r"\s*\(\s*", "(", text)).replace(" )", ")")


def type_of_text(cursor: TokenCursor, text: str, start: int) -> DataType:
    """Return the type that `text` names, with comments or without; errors point at token number `start`."""
    if "/*" in text or "--" in text:
        text = _QUOTED_OR_COMMENT.sub(lambda match: match["quoted"] or " ", text)
    try:
        return parse_type(text)
    except Error as error:
        raise error.at(cursor.position(cursor.tokens[start])) from None
