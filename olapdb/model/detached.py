"""The databases of detached tables and views, which no statement can name."""

from __future__ import annotations

DETACHED = "\x1fdetached"
PERMANENTLY_DETACHED = "\x1fdetached permanently"

_DATABASES = frozenset({DETACHED, PERMANENTLY_DETACHED})
_SEPARATOR = "\x1f"


def is_hidden(database: str) -> bool:
    """Return whether a database is one of detached objects."""
    return database in _DATABASES


def detached_name(database: str, name: str) -> str:
    """Return the name that a detached object of a database has."""
    return f"{database}{_SEPARATOR}{name}"


def own_names(hidden_name: str) -> tuple[str, str]:
    """Return the database and the name that `detached_name` joined."""
    database, _, name = hidden_name.partition(_SEPARATOR)
    return database, name
