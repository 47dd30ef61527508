"""The structure of table functions: names and types of columns as a text."""

from __future__ import annotations

import re

from olapdb import errors, functions
from olapdb.types import Array, DataType

_TOKEN = re.compile(r"'(?:[^'\\]|\\.|'')*'|`[^`]*`|\"[^\"]*\"|.", re.DOTALL)
_COLUMN = re.compile(
    r"(?:[`\"](?P<quoted>[^`\"]+)[`\"]|(?P<plain>[^\s`\"]+))\s+(?P<type>.+)", re.DOTALL
)


_CLAUSE = re.compile(
    r"\s(DEFAULT|MATERIALIZED|ALIAS|EPHEMERAL|COMMENT|CODEC|TTL|NOT\s+NULL|NULL)\b", re.IGNORECASE
)
"""What may stand behind the type of a column of CREATE TABLE."""
_NESTED = re.compile(r"Nested\s*\((?P<columns>.*)\)\s*", re.DOTALL)


def _flat(name: str, type_text: str) -> list[tuple[str, DataType]]:
    """Return the column; of a Nested, an array for each of its elements."""
    nested = _NESTED.fullmatch(type_text)
    if nested is None:
        return [(name, _type(name, type_text))]
    return [(f"{name}.{inner}", Array(kind)) for inner, kind in parse_structure(nested["columns"])]


def _type(name: str, text: str) -> DataType:
    """Return the type of a column. Raise NotSupportedError for a clause behind it, such as DEFAULT."""
    try:
        return functions.parse_type(text)
    except errors.SyntaxError:
        clause = _CLAUSE.search(text)
        if clause is None:
            raise
        raise errors.NotSupportedError(
            f"{clause[1].upper()} of column {name} in the structure of a table function is not supported.",
            hint="Write 'name Type', and compute the value in SELECT or in the table of the INSERT.",
        ) from None


def parse_structure(text: str) -> list[tuple[str, DataType]]:
    """Return the names and types of a structure such as 'a UInt8, b Array(String)'.

    Raises BadArguments for a column without a name or a type, NotSupportedError for DEFAULT and other
    clauses behind a type."""
    columns: list[tuple[str, DataType]] = []
    depth, start = 0, 0
    for token in _TOKEN.finditer(text + ","):
        depth += (token[0] == "(") - (token[0] == ")")
        if token[0] == "," and depth == 0:
            column = _COLUMN.match(text[start : token.start()].strip())
            if column is None:
                raise errors.BadArguments(
                    f"Cannot read the structure {text!r}.", hint="Write 'name Type, name Type'."
                )
            name = column["quoted"] or column["plain"]
            columns.extend(_flat(name, column["type"]))
            start = token.end()
    return columns
