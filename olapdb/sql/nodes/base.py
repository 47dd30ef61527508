"""What every node of the tree is, and what its kinds have in common."""

from __future__ import annotations

from dataclasses import dataclass, field

from olapdb.errors import Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TableName(Node):
    """`database` is None where it was not written."""

    name: str
    database: str | None = None

    def __str__(self) -> str:
        return f"{self.database}.{self.name}" if self.database else self.name


@dataclass(frozen=True, slots=True)
class Expression(Node):
    pass


@dataclass(frozen=True, slots=True)
class Relation(Node):
    pass


@dataclass(frozen=True, slots=True)
class Statement(Node):
    pass


@dataclass(frozen=True, slots=True)
class Setting(Node):
    name: str
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Query(Statement):
    """Base of Select and SetOperation."""
