"""Conditions on a view for replacing another version, checked in the commit that swaps their
names."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from olapdb.catalog.sqlite import statements as sql
from olapdb.model.encoding import decode_part
from olapdb.model.part import Part
from olapdb.model.view_state import Coverage


def has_no_gap(connection: sqlite3.Connection, number: int, source_id: str, seen: Coverage) -> bool:
    """Return whether the view has covered every live part with rows."""
    return all(
        seen.covers(part.partition_id, part.block_range)
        for part in _parts(connection, number, source_id)
        if part.rows
    )


def has_no_stale_slice(connection: sqlite3.Connection, number: int, view_id: str) -> bool:
    """Return whether the view has no open invalidation and no record of a failure."""
    return all(row[0] != view_id for row in sql.invalidations_at(connection, number=number))


def has_no_bypass(
    connection: sqlite3.Connection, number: int, table_id: str, view_ids: Iterable[str]
) -> bool:
    """Return whether every live part with rows was made by any of the views."""
    ids = frozenset(view_ids)
    return all(part.written_by(ids) for part in _parts(connection, number, table_id) if part.rows)


def _parts(connection: sqlite3.Connection, number: int, table_id: str) -> Iterator[Part]:
    """Yield the parts of a table as of commit `number`."""
    rows = sql.parts_at(connection, of_table=table_id, number=number)
    return (decode_part(row) for row in rows)
