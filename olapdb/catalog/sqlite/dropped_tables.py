"""Dropped tables, which UNDROP recovers until vacuum purges their parts."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace

from olapdb.catalog.protocol import DroppedTable
from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.part_rows import insert_live_part
from olapdb.functions import parse_type
from olapdb.model.encoding import decode_object, decode_part, encode_object
from olapdb.model.part import Part, detached_table
from olapdb.model.schema import Table


def remember(connection: sqlite3.Connection, table: Table, commit: int, now_ms: int) -> None:
    """Record the table as recoverable in the commit that drops it. The caller has dropped its parts
    before."""
    sql.remember_dropped_table(
        connection,
        table_id=table.id,
        body=encode_object(table),
        dropped_commit=commit,
        part_count=len(_parts(connection, table.id, commit)),
        dropped_ms=now_ms,
    )


def list_dropped(connection: sqlite3.Connection) -> tuple[DroppedTable, ...]:
    """Return the dropped tables, the oldest drop first."""
    return tuple(
        DroppedTable(
            _table(body),
            commit,
            dropped_ms,
            len(_parts(connection, table_id, commit)) == part_count,
        )
        for table_id, body, part_count, commit, dropped_ms in sql.list_dropped_tables(connection)
    )


def recover(
    connection: sqlite3.Connection, table_id: str, commit: int
) -> tuple[Table, tuple[Part, ...]] | None:
    """Make a dropped table's parts live again, detached ones too. Return the table and its parts;
    None if vacuum has purged any part. The parts get new rows, so that older snapshots do not
    change."""
    dropped = next((d for d in list_dropped(connection) if d.table.id == table_id), None)
    if dropped is None or not dropped.complete:
        return None
    sql.forget_dropped_table(connection, of_table=table_id)
    parts = tuple(
        replace(part, created_commit=commit)
        for part in _parts(connection, table_id, dropped.dropped_commit)
    )
    for part in parts:
        insert_live_part(connection, part)
    return replace(dropped.table, revision=0), parts


def _table(body: str) -> Table:
    """Decode a table from its JSON text in the catalog."""
    table = decode_object("table", body, parse_type)
    assert isinstance(table, Table)
    return table


def _parts(connection: sqlite3.Connection, table_id: str, commit: int) -> tuple[Part, ...]:
    """Return the parts, attached and detached, that commit number `commit` dropped with the
    table."""
    owners = json.dumps([table_id, detached_table(table_id)])
    rows = sql.parts_dropped_with(connection, of_tables=owners, at_commit=commit)
    return tuple(decode_part(row) for row in rows)
