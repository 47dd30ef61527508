"""The text of a request: its statements, which are cached, its parameters, and their kinds."""

from __future__ import annotations

from functools import lru_cache

from olapdb.bind.placeholders import positional_count
from olapdb.sql import nodes
from olapdb.sql.parser import parse

_CACHED_TEXT_MAX = 16_384
"""Keep the statements of texts of at most so many characters; longer ones hold literal VALUES."""

KINDS = {
    "OutFile": "Select",
    "CreateDatabase": "Create",
    "AlterDatabase": "Alter",
    "CreateTable": "Create",
    "CreateView": "Create",
    "CreateDictionary": "Create",
    "CreateMaterializedView": "Create",
    "CreateFunction": "Create",
    "CreateNamedCollection": "Create",
    "AlterNamedCollection": "Alter",
    "DropNamedCollection": "Drop",
    "SystemView": "System",
    "CheckTable": "Check",
    "SetSettings": "Set",
    "Kill": "KillQuery",
    "TruncateAll": "Truncate",
    "DropFunction": "Drop",
}
"""Kinds by the name of a statement's class, where that is not the kind."""


def kind_of(statement: nodes.Statement) -> str:
    """Return the statement's kind for the query log, such as "Select"."""
    if isinstance(statement, nodes.Query):
        return "Select"
    if isinstance(statement, nodes.WithSettings):
        return kind_of(statement.statement)
    name = type(statement).__name__
    return KINDS.get(name, name)


def parse_text(text: str) -> tuple[nodes.Statement, ...]:
    """Parse a text, or return the statements that were cached for it: these are frozen."""
    return _parse(text) if len(text) <= _CACHED_TEXT_MAX else parse(text)


@lru_cache(maxsize=512)
def _parse(text: str) -> tuple[nodes.Statement, ...]:
    """Parse a short text. Cached."""
    return parse(text)


def positional_parameters(text: str) -> int:
    """Return the number of `?` parameters in the text."""
    if len(text) <= _CACHED_TEXT_MAX:
        return _counted(text)
    return positional_count(parse(text))


@lru_cache(maxsize=512)
def _counted(text: str) -> int:
    """Return the number of `?` parameters in a short text. Cached."""
    return positional_count(_parse(text))
