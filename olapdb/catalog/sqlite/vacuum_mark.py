"""Vacuum's mark: up to which commit the past may be gone."""

from __future__ import annotations

import sqlite3

from olapdb.catalog.sqlite import statements as sql
from olapdb.errors import SnapshotTooOld


def vacuumed_to(connection: sqlite3.Connection) -> int:
    """Return the mark; snapshots before it are read no more."""
    return int(sql.get_meta.value(connection, name="vacuumed_to"))


def raise_mark(connection: sqlite3.Connection, number: int) -> None:
    """Move the mark to `number`, never back."""
    moved = max(vacuumed_to(connection), number)
    sql.set_meta(connection, name="vacuumed_to", content=str(moved))


def refuse_vacuumed(connection: sqlite3.Connection, number: int) -> None:
    """Raise SnapshotTooOld where parts that the snapshot may read have been removed."""
    if number < vacuumed_to(connection):
        raise SnapshotTooOld(
            f"Parts of snapshot {number} have been vacuumed.",
            hint="Run the query again; old_parts_lifetime keeps replaced parts longer.",
        )
