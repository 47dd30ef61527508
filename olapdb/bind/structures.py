"""The structure of table functions: names and types of columns as a text."""

from __future__ import annotations

import re

from olapdb import errors, functions
from olapdb.types import DataType

_TOKEN = re.compile(r"'(?:[^'\\]|\\.|'')*'|`[^`]*`|\"[^\"]*\"|.", re.DOTALL)
_COLUMN = re.compile(
    r"(?:[`\"](?P<quoted>[^`\"]+)[`\"]|(?P<plain>[^\s`\"]+))\s+(?P<type>.+)", re.DOTALL
)


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
            columns.append((name, functions.parse_type(column["type"])))
            start = token.end()
    return columns
