"""The base classes of the tree's nodes, names of tables, settings."""

from __future__ import annotations

from dataclasses import field

from olapdb.errors import Position
from olapdb.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of the tree; `position` is where it begins, None where it was not parsed."""

    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TableName(Node):
    """The name of a table, view or dictionary; `database` is None where it was not written."""

    name: str
    database: str | None = None

    def __str__(self) -> str:
        return f"{self.database}.{self.name}" if self.database else self.name


@dataclass(frozen=True, slots=True)
class Expression(Node):
    """Base of everything that has a value."""


@dataclass(frozen=True, slots=True)
class Relation(Node):
    """Base of the sources in FROM."""


@dataclass(frozen=True, slots=True)
class Statement(Node):
    """Base of whole statements."""


@dataclass(frozen=True, slots=True)
class Setting(Node):
    """`name = value`; `value` is None for DEFAULT."""

    name: str
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Query(Statement):
    """Base of Select and SetOperation."""
