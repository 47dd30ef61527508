"""Unique column names within a plan, and suggestions for names that were not found."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from olapdb.errors import Error, Position


class NameAllocator:
    """Names that are unique within one plan: `x`, then `x_2`, `x_3`, …"""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def unique(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name


def suggestion(name: str, known: Iterable[str], *, count: int = 3) -> str:
    """ "Maybe you meant: a, b." or ""."""
    by_folded = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=count, cutoff=0.6)
    if not close:
        return ""
    return f"Maybe you meant: {', '.join(by_folded[c] for c in close)}."


@contextmanager
def located(position: Position | None) -> Iterator[None]:
    """Errors from within get this position, unless they have a nearer one."""
    try:
        yield
    except Error as error:
        raise error.at(position) from error.__cause__
