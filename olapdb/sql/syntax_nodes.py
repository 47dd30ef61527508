"""A node of the syntax tree that EXPLAIN AST shows, and the small trees of names and lists."""

from __future__ import annotations

from collections.abc import Sequence

from olapdb.records import dataclass
from olapdb.sql import nodes


@dataclass(frozen=True, slots=True)
class SyntaxNode:
    """A node of the tree: its label, and the nodes below it."""

    label: str
    children: tuple[SyntaxNode, ...] = ()


def list_of(children: Sequence[SyntaxNode]) -> SyntaxNode:
    """Return an ExpressionList."""
    return SyntaxNode("ExpressionList", tuple(children))


def identifiers(names: Sequence[str]) -> list[SyntaxNode]:
    """Return an identifier for each name."""
    return [SyntaxNode(f"Identifier {name}") for name in names]


def name_parts(name: nodes.TableName) -> tuple[str, ...]:
    """Return the parts of a table's name as they were written."""
    return (name.database, name.name) if name.database else (name.name,)


def table_names(name: nodes.TableName) -> tuple[SyntaxNode, ...]:
    """Return an identifier for each part of a table's name."""
    return tuple(identifiers(name_parts(name)))


def titled(kind: str, name: nodes.TableName) -> str:
    """Return `DropQuery db t`; the place of a database that was not written is empty."""
    return f"{kind} {name.database or ''} {name.name}"
