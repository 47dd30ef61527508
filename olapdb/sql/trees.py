"""Walking and rewriting syntax trees without knowing every node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, cast

from olapdb.sql import nodes as sql

NodeT = TypeVar("NodeT", bound=sql.Node)


def children(node: sql.Node) -> Iterator[sql.Node]:
    """Yield the child nodes in the order of the fields, those inside tuples too."""
    for name in node.__dataclass_fields__:
        if name != "position":
            yield from _nodes_in(getattr(node, name))


def _nodes_in(value: object) -> Iterator[sql.Node]:
    """Yield the nodes in a field's value, in tuples too, but not the nodes below them."""
    if isinstance(value, sql.Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes_in(item)


def walk(
    node: sql.Node, descend: Callable[[sql.Node], bool] = lambda node: True
) -> Iterator[sql.Node]:
    """Yield the node and its descendants, outermost first; below a node only if `descend` allows."""
    yield node
    if descend(node):
        for child in children(node):
            yield from walk(child, descend)


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
    for name in node.__dataclass_fields__:
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
