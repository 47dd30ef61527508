"""Errors of a clause that is bound apart from its statement, such as PARTITION BY of a CREATE TABLE."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from olapdb.errors.tree import Error

__all__ = ["in_clause"]


@contextmanager
def in_clause(clause: str, *, has_positions: bool = False) -> Iterator[None]:
    """Put the clause, as it is written, before the message of each error raised inside the `with`,
    unless it is there already.

    Without `has_positions` the error's position is removed: the clause was parsed again from its
    own text, so it is no place in the statement."""
    try:
        yield
    except Error as error:
        if not error.message.startswith(f"{clause}: "):
            error.message = f"{clause}: {error.message}"
        error.position = error.position if has_positions else None
        error.args = (error.message, error.hint, error.position)
        raise
