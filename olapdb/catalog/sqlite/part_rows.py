"""Rows of the catalog's table of parts."""

from __future__ import annotations

import sqlite3

from olapdb.catalog.sqlite import statements as sql
from olapdb.model.encoding import encode_part_rest
from olapdb.model.part import Part


def insert_live_part(connection: sqlite3.Connection, part: Part) -> None:
    """Write the row of a part that is live from its commit on."""
    blocks = part.block_range
    sql.insert_part(
        connection,
        id=part.id,
        table_id=part.table_id,
        partition_id=part.partition_id,
        first_block=blocks.first,
        last_block=blocks.last,
        level=part.level,
        rows=part.rows,
        bytes=part.bytes,
        path=part.path,
        inline=int(part.inline),
        created_commit=part.created_commit,
        dropped_commit=None,
        dropped_ms=None,
        rest=encode_part_rest(part),
    )
