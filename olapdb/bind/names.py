"""Unique column names within a plan, suggestions for unknown names, positions of errors."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from olapdb.errors import Error, Position


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
