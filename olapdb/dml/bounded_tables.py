"""Memory tables with max_rows_to_keep or max_bytes_to_keep: an INSERT makes the oldest rows leave."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from olapdb.commit.origin import CommitOrigin
from olapdb.dml.move_parts import drop_chosen
from olapdb.lineage.row_removal import RowChange
from olapdb.model.part import Part
from olapdb.model.schema import Table


def drop_oldest(origin: CommitOrigin, table_id: str, inserted: int | None) -> None:
    """Remove the oldest parts of a table while its settings say that it keeps too much.

    Parts of the commit with the number `inserted` stay, as do those that the minima of the settings keep. What views
    made of the rows stays too, frozen."""
    change = RowChange(origin, "DROP PARTITION", retain=True)
    drop_chosen(change, table_id, partial(_leaving, inserted=inserted))


def _leaving(table: Table, parts: Sequence[Part], *, inserted: int | None) -> list[Part]:
    """Return the parts that leave, the oldest first; none if the table is not bounded any more. Parts of the commit
    `inserted` never leave, nor do those without which the table would have less than min_rows_to_keep or
    min_bytes_to_keep."""
    rows, size = sum(part.rows for part in parts), sum(map(_bytes, parts))
    limits = {
        name: int(table.setting(f"{name}_to_keep"))
        for name in ("min_rows", "max_rows", "min_bytes", "max_bytes")
    }
    leaving = []
    for part in sorted(parts, key=lambda part: part.block_range.first):
        passes_rows = limits["max_rows"] and rows > limits["max_rows"]
        passes_bytes = limits["max_bytes"] and size > limits["max_bytes"]
        if part.created_commit == inserted or not (passes_rows or passes_bytes):
            break
        rows, size = rows - part.rows, size - _bytes(part)
        if rows < limits["min_rows"] or size < limits["min_bytes"]:
            break
        leaving.append(part)
    return leaving


def _bytes(part: Part) -> int:
    """Return the bytes of a part's columns in memory."""
    return sum(part.uncompressed_bytes.values()) or part.bytes
