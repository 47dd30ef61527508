"""The structure of table functions: names and types of columns as a text."""

from __future__ import annotations

import re

from olapdb import errors, functions
from olapdb.types import Array, DataType

_TOKEN = re.compile(r"'(?:[^'\\]|\\.|'')*'|`[^`]*`|\"[^\"]*\"|.", re.DOTALL)
_COLUMN = re.compile(
    r"(?:[`\"](?P<quoted>[^`\"]+)[`\"]|(?P<plain>[^\s`\"]+))\s+(?P<type>.+)", re.DOTALL
)


_NESTED = re.compile(r"Nested\s*\((?P<columns>.*)\)\s*", re.DOTALL)


def _flat(name: str, type_text: str) -> list[tuple[str, DataType]]:
    """Return the column; of a Nested, an array for each of its elements."""
    nested = _NESTED.fullmatch(type_text)
    if nested is None:
        return [(name, functions.parse_type(type_text))]
    return [(f"{name}.{inner}", Array(kind)) for inner, kind in parse_structure(nested["columns"])]


def parse_structure(text: str) -> list[tuple[str, DataType]]:
    """Return the names and types of a structure such as 'a UInt8, b Array(String)'.

    Raises BadArguments for a column without a name or a type."""
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
