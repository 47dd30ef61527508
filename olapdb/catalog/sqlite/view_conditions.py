"""Whether a view is whole: what a version must be in the very commit that gives it the view's name."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from olapdb.catalog.sqlite import statements as sql
from olapdb.model.encoding import decode_part
from olapdb.model.part import Part
from olapdb.model.view_state import Coverage


def nothing_missed(
    connection: sqlite3.Connection, number: int, source_id: str, seen: Coverage
) -> bool:
    """Every live part with rows is covered."""
    return all(
        seen.covers(part.partition_id, part.block_range)
        for part in _parts(connection, number, source_id)
        if part.rows
    )


def nothing_stale(connection: sqlite3.Connection, number: int, view_id: str) -> bool:
    """No invalidation of the view is open, a note of a failure neither."""
    return all(row[0] != view_id for row in sql.invalidations_at(connection, number=number))


def no_bypass(
    connection: sqlite3.Connection, number: int, table_id: str, view_ids: Iterable[str]
) -> bool:
    """Every live part with rows was made by one of the views."""
    known = frozenset(view_ids)
    return all(part.made_by(known) for part in _parts(connection, number, table_id) if part.rows)


def _parts(connection: sqlite3.Connection, number: int, table_id: str) -> Iterator[Part]:
    rows = sql.parts_at(connection, of_table=table_id, number=number)
    return (decode_part(*row) for row in rows)
