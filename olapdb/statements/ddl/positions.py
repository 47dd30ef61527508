"""The place of a new index or projection among those of its table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from olapdb.errors import Error
from olapdb.sql import nodes


class Named(Protocol):
    """An index or a projection."""

    @property
    def name(self) -> str:
        """The name, by which AFTER refers to it."""


NamedT = TypeVar("NamedT", bound=Named)


def newest_moved(
    items: tuple[NamedT, ...],
    action: nodes.IndexAction | nodes.ProjectionAction,
    missing: Callable[[str, str], Error],
) -> tuple[NamedT, ...]:
    """Return the items with the last one moved FIRST or AFTER another one, as the action says.

    Raises `missing(message, hint)` if there is no item to come after."""
    *others, newest = items
    if action.first:
        return (newest, *others)
    if action.after is None:
        return items
    names = [item.name for item in others]
    if action.after not in names:
        raise missing(
            f"{action.after} to add {newest.name} after", f"It has {', '.join(names) or 'none'}."
        )
    at = names.index(action.after) + 1
    return (*others[:at], newest, *others[at:])
