"""Data types inside statements: their tokens as text, read by `olapdb.functions.parse_type`."""

from __future__ import annotations

import re

from olapdb.errors import Error
from olapdb.functions import parse_type
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.types import DataType

_SECOND_WORDS = {
    "DOUBLE": ("PRECISION",),
    "CHARACTER": ("VARYING",),
    "CHAR": ("VARYING",),
    **dict.fromkeys(("INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT"), ("UNSIGNED", "SIGNED")),
}


def parse_data_type(cursor: TokenCursor) -> DataType:
    """Parse the name of a type with its arguments; raise UnknownType at its first token."""
    start = cursor.at
    second_words = _SECOND_WORDS.get(cursor.key, ())
    cursor.identifier("a data type")
    if cursor.key in second_words:
        cursor.advance()
    if cursor.key == "(":
        cursor.skip_parentheses()
        if cursor.key in second_words:
            cursor.advance()
    return type_of_text(cursor, cursor.text_since(start), start)


def written_type(text: str) -> str:
    """Return the text of a type as ClickHouse writes it in names: one blank behind a comma.

    Returns "" for a type with quoted names or texts, which is shown by its own name."""
    if "'" in text or "`" in text or '"' in text:
        return ""
    return re.sub(r"\s*\(\s*", "(", re.sub(r"\s*,\s*", ", ", " ".join(text.split()))).replace(
        " )", ")"
    )


def type_of_text(cursor: TokenCursor, text: str, start: int) -> DataType:
    """Return the type that `text` names; errors point at token number `start`."""
    try:
        return parse_type(text)
    except Error as error:
        raise error.at(cursor.position(cursor.tokens[start])) from None
