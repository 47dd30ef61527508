"""Walking and rewriting syntax trees without knowing every node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar, cast

from olapdb.sql import nodes as sql

NodeT = TypeVar("NodeT", bound=sql.Node)


def children(node: sql.Node) -> list[sql.Node]:
    """Return the child nodes in the order of the fields, those inside tuples too."""
    nodes_below: list[sql.Node] = []
    for name in _fields(type(node)):  # type: ignore[arg-type]  # a class hashes as an object
        value = getattr(node, name)
        if isinstance(value, sql.Node):
            nodes_below.append(value)
        elif isinstance(value, tuple):
            _add_nodes(value, nodes_below)
    return nodes_below


def elements_of_tuple(expression: sql.Expression) -> tuple[sql.Expression, ...]:
    """Return the elements of `(a, b)` or `tuple(a, b)`; any other expression as its only element."""
    if isinstance(expression, sql.TupleLiteral):
        return expression.elements
    if isinstance(expression, sql.Function) and expression.name == "tuple":
        return expression.arguments
    return (expression,)


_LEAVES = frozenset(
    [
        *("bool", "int", "float", "str", "bool | None", "int | None", "str | None"),
        *("bool | int | float | str | None", "tuple[str, ...]", "tuple[str, ...] | None"),
        *("DataType", "DataType | None", "Position | None"),
    ]
)
"""Annotations of fields that hold no nodes."""


@cache
def _fields(kind: type[sql.Node]) -> tuple[str, ...]:
    """Return the names of the fields of a kind of nodes that may hold nodes."""
    fields = kind.__dataclass_fields__.values()
    return tuple(field.name for field in fields if field.type not in _LEAVES)


def _add_nodes(values: tuple[object, ...], nodes_below: list[sql.Node]) -> None:
    """Add the nodes in a tuple, in tuples inside it too, but not the nodes below them."""
    for value in values:
        if isinstance(value, sql.Node):
            nodes_below.append(value)
        elif isinstance(value, tuple):
            _add_nodes(value, nodes_below)


def walk(node: sql.Node, descend: Callable[[sql.Node], bool] | None = None) -> Iterator[sql.Node]:
    """Yield the node and its descendants, outermost first; below a node only if `descend` allows."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        if descend is None or descend(current):
            waiting.extend(reversed(children(current)))


def is_not_query(node: sql.Node) -> bool:
    """Return whether a node is no query; as `descend` of `walk` it stays within one query."""
    return not isinstance(node, sql.Query)


def rewrite(node: NodeT, change: Callable[[sql.Node], sql.Node | None]) -> NodeT:
    """Return the tree with each node replaced by `change(node)`, outermost first.

    Where `change` returns None, the node stays and its children are rewritten."""
    changed = change(node)
    if changed is not None:
        return cast(NodeT, changed)
    return rewrite_children(node, change)


def rewrite_children(node: NodeT, change: Callable[[sql.Node], sql.Node | None]) -> NodeT:
    """Return the node with its children rewritten as by `rewrite`."""
    updates: dict[str, Any] = {}
    for name in _fields(type(node)):  # type: ignore[arg-type]  # a class hashes as an object
        old = getattr(node, name)
        new = _rewritten(old, change)
        if new is not old:
            updates[name] = new
    return replace(node, **updates) if updates else node


def _rewritten(value: object, change: Callable[[sql.Node], sql.Node | None]) -> object:
    """Return a field's value with the nodes in it rewritten; the same object if none changed."""
    if isinstance(value, sql.Node):
        return rewrite(value, change)
    if isinstance(value, tuple) and value:
        items = tuple(_rewritten(item, change) for item in value)
        if any(new is not old for new, old in zip(items, value, strict=True)):
            return items
    return value


def is_current_database(node: sql.Expression) -> bool:
    """Return whether the expression is a call of currentDatabase(), by any of its names."""
    names = ("currentdatabase", "current_database", "database", "schema")
    return isinstance(node, sql.Function) and node.name.lower() in names and not node.arguments
