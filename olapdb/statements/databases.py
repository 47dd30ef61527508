"""Checks of the database that a statement names."""

from __future__ import annotations

import difflib

from olapdb import errors
from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.model.snapshot import Snapshot


def require_database(name: str, snapshot: Snapshot, position: errors.Position | None) -> None:
    """Raise UnknownDatabase, with the nearest name, unless the database exists."""
    if name in snapshot.databases or name in SYSTEM_DATABASES:
        return
    similar_names = difflib.get_close_matches(name, snapshot.databases, n=1)
    hint = (
        f"Did you mean {similar_names[0]}?"
        if similar_names
        else "SHOW DATABASES lists those there are."
    )
    raise errors.UnknownDatabase(f"Database {name} does not exist.", hint=hint, position=position)


def require_own_database(name: str, snapshot: Snapshot, position: errors.Position | None) -> None:
    """Raise UnsupportedMethod for a system database, and the errors of `require_database`. For a
    database that will contain a new object."""
    if name in SYSTEM_DATABASES:
        raise errors.UnsupportedMethod(
            f"The database {name} has system tables only.",
            hint="Name another database.",
            position=position,
        )
    require_database(name, snapshot, position)
