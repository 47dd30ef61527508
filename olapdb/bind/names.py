"""Unique column names within a plan, suggestions for unknown names, positions of errors, names of sets."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from olapdb.bind.syntax import rewrite
from olapdb.errors import Error, Position
from olapdb.sql import nodes as sql


class NameAllocator:
    """An allocator of names that are unique within one plan: `x`, then `x_2`, `x_3`, …"""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def unique(self, proposed: str) -> str:
        """Return the proposed name, or `name_2`, `name_3`, … if taken; reserve what it returns."""
        name, number = proposed, 1
        while name in self._taken:
            number += 1
            name = f"{proposed}_{number}"
        self._taken.add(name)
        return name


def suggestion(name: str, candidates: Iterable[str], *, count: int = 3) -> str:
    """Return "Maybe you meant: a, b." with up to `count` similar candidates, "" if none is."""
    by_folded = {k.casefold(): k for k in candidates}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=count, cutoff=0.6)
    if not close:
        return ""
    return f"Maybe you meant: {', '.join(by_folded[c] for c in close)}."


@contextmanager
def located(position: Position | None) -> Iterator[None]:
    """Add this position to errors raised within, unless they have one already."""
    try:
        yield
    except Error as error:
        raise error.at(position) from error.__cause__


_BARE_FUNCTIONS = {
    "now": "now",
    "current_timestamp": "now",
    "localtimestamp": "now",
    "localtime": "localtime",
    "today": "today",
    "current_date": "today",
    "curdate": "today",
    "currentuser": "currentUser",
    "current_user": "currentUser",
    "session_user": "currentUser",
    "user": "currentUser",
    "currentdatabase": "currentDatabase",
    "current_database": "currentDatabase",
    "database": "currentDatabase",
    "schema": "currentDatabase",
}
"""Names in lower case that mean a call where no column, alias or parameter has them."""


def bare_function(name: str) -> str | None:
    """Return the function that a name without parentheses means, as CURRENT_DATE; None for most
    names. Columns and aliases of that name come first."""
    return _BARE_FUNCTIONS.get(name.lower())


SET_FUNCTIONS = frozenset(("in", "notIn", "globalIn", "globalNotIn"))
"""Functions of a value and a set, as IN is."""
NULL_SET_FUNCTIONS = frozenset(("nullIn", "notNullIn", "globalNullIn", "globalNotNullIn"))
"""Functions like IN for which NULL is no NULL but not in the set."""


def name_of_set(node: sql.In | sql.Function, *, bare: bool = False) -> sql.Identifier | None:
    """Return the name that is all that stands right of IN, or is the set of in(x, set): a column's or a table's. None
    for other sets and functions. It may be in parentheses, unless it is to be `bare`."""
    if isinstance(node, sql.In):
        right = node.right
    elif node.name in SET_FUNCTIONS | NULL_SET_FUNCTIONS and len(node.arguments) == 2:
        right = node.arguments[1]
    else:
        return None
    if isinstance(right, sql.TupleLiteral) and len(right.elements) == 1 and not bare:
        right = right.elements[0]
    return right if isinstance(right, sql.Identifier) else None


def with_set(
    node: sql.In | sql.Function, name: sql.Identifier, change: Callable[[sql.Node], sql.Node | None]
) -> sql.In | sql.Function:
    """Return the node with another name for its set, and its left side rewritten by `change`."""
    if isinstance(node, sql.In):
        return replace(node, left=rewrite(node.left, change), right=name)
    return replace(node, arguments=(rewrite(node.arguments[0], change), name))
