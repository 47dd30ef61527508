"""Vacuum's mark: the commit before which snapshots may lack parts."""

from __future__ import annotations

import sqlite3

from olapdb.catalog.sqlite import statements as sql
from olapdb.errors import SnapshotTooOld


def vacuumed_to(connection: sqlite3.Connection) -> int:
    """Return the mark: the oldest commit number that may still be read."""
    return int(sql.get_meta.value(connection, name="vacuumed_to"))


def raise_mark(connection: sqlite3.Connection, number: int) -> None:
    """Move the mark to `number`, never back."""
    moved = max(vacuumed_to(connection), number)
    sql.set_meta(connection, name="vacuumed_to", content=str(moved))


def refuse_vacuumed(connection: sqlite3.Connection, number: int) -> None:
    """Raise SnapshotTooOld if vacuum has removed parts that the snapshot may read."""
    if number < vacuumed_to(connection):
        raise SnapshotTooOld(
            f"Parts of snapshot {number} have been vacuumed.",
            hint="Run the query again; old_parts_lifetime keeps replaced parts longer.",
        )
