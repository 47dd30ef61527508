"""The structure of table functions: names and types of columns as a text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from olapdb import errors, functions
from olapdb.sql import nodes as sql
from olapdb.sql.parser import parse_one
from olapdb.types import Array, DataType

_TOKEN = re.compile(r"'(?:[^'\\]|\\.|'')*'|`[^`]*`|\"[^\"]*\"|.", re.DOTALL)
_COLUMN = re.compile(
    r"(?:[`\"](?P<quoted>[^`\"]+)[`\"]|(?P<plain>[^\s`\"]+))\s+(?P<type>.+)", re.DOTALL
)


_DEFAULT = re.compile(r"\bDEFAULT\b", re.IGNORECASE)
_NESTED = re.compile(r"Nested\s*\((?P<columns>.*)\)\s*", re.DOTALL)


def parse_structure(text: str, *, with_defaults: bool = False) -> list[tuple[str, DataType]]:
    """Return the names and types of a structure such as 'a UInt8, b Array(String)'.

    COMMENT and CODEC behind a type have no meaning for data. `with_defaults`: so has DEFAULT, or the
    caller takes it from `structure_defaults`. Raises BadArguments for a column without a name or a type,
    NotSupportedError for other clauses."""
    columns: list[tuple[str, DataType]] = []
    for name, type_text in _columns(text):
        nested = _NESTED.fullmatch(type_text)
        if nested is not None:
            inside = parse_structure(nested["columns"])
            columns.extend((f"{name}.{inner}", Array(kind)) for inner, kind in inside)
        else:
            columns.append((name, _type(name, type_text, with_defaults=with_defaults)))
    return columns


def structure_defaults(text: str) -> dict[str, sql.Expression]:
    """Return the DEFAULT expressions of a structure by the names of their columns."""
    if _DEFAULT.search(text) is None:
        return {}
    definitions = ((name, _definition(type_text)) for name, type_text in _columns(text))
    return {
        name: definition.default
        for name, definition in definitions
        if definition is not None and definition.default is not None
    }


def _columns(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each column of a structure, and the text behind it."""
    depth, start = 0, 0
    for token in _TOKEN.finditer(text + ","):
        depth += (token[0] in "([") - (token[0] in ")]")
        if token[0] == "," and depth == 0:
            column = _COLUMN.match(text[start : token.start()].strip())
            if column is None:
                raise errors.BadArguments(
                    f"Cannot read the structure {text!r}.", hint="Write 'name Type, name Type'."
                )
            yield column["quoted"] or column["plain"], column["type"]
            start = token.end()


def _type(name: str, text: str, *, with_defaults: bool) -> DataType:
    """Return the type of a column. Raise NotSupportedError for a clause that has a meaning here."""
    try:
        return functions.parse_type(text)
    except errors.SyntaxError:
        definition = _definition(text)
        if definition is None:
            raise
    clause = "TTL" if definition.ttl is not None else definition.default_kind
    if definition.type is None or (clause and not (clause == "DEFAULT" and with_defaults)):
        raise errors.NotSupportedError(
            f"{clause} of column {name} in the structure of a table function is not supported.",
            hint="Write 'name Type', and compute the value in SELECT or in the table of the INSERT.",
        )
    return definition.type


def _definition(text: str) -> sql.ColumnDefinition | None:
    """Return the column definition that CREATE TABLE would make of a type and the clauses behind it; None if the text
    does not parse as one."""
    try:
        statement = parse_one(f"CREATE TABLE t (c {text}) ENGINE = Memory")
    except errors.SyntaxError:
        return None
    assert isinstance(statement, sql.CreateTable)
    return statement.columns[0]
