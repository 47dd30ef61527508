"""The structure of table functions: names and types of columns as a text."""

from __future__ import annotations

from olapdb import errors, functions
from olapdb.types import DataType


def parse_structure(text: str) -> list[tuple[str, DataType]]:
    """Return the names and types of a structure such as 'a UInt8, b Array(String)'.

    Raises BadArguments for a column without a name or a type."""
    columns: list[tuple[str, DataType]] = []
    depth, start = 0, 0
    for at, character in enumerate(text + ","):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            name, _, type_name = text[start:at].strip().partition(" ")
            if not name or not type_name.strip():
                raise errors.BadArguments(
                    f"Cannot read the structure {text!r}.", hint="Write 'name Type, name Type'."
                )
            columns.append((name.strip("`"), functions.parse_type(type_name.strip())))
            start = at + 1
    return columns
