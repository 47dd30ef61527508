"""Resets columns whose TTL has passed to their defaults, in one commit for a table.

    ip String TTL d + INTERVAL 1 WEEK       '' from a week after d on
    n Int32 DEFAULT 7 TTL d                 7

What views computed from the old values is frozen, as for rows that leave by TTL (rule 4), unless
the table sets `ttl_retain = 0`. So are the slices that the changed rows reach now: a view that
groups by the column counts them under another key when it is run again.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from olapdb.commit.staging import Staging
from olapdb.compute.batches import overwritten, single_chunk
from olapdb.dml.delete import NOTHING_DELETED, DeleteResult
from olapdb.dml.find_rows import matching_rows
from olapdb.engine.expiry import Expiry, expiry_condition
from olapdb.ingest.block_parts import layout_of
from olapdb.ingest.read_parts import read_rows
from olapdb.lineage.row_removal import RowChange, RowRemoval
from olapdb.model.changes import AddPart, RemoveParts
from olapdb.model.part import Part
from olapdb.model.requirements import PartsLive
from olapdb.model.schema import Column, Table
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.failpoints import failpoint
from olapdb.sql import nodes
from olapdb.sql.parser import parse_expression


def reset_expired_columns(
    change: RowChange, snapshot: Snapshot, table: Table, partition_id: str | None, staging: Staging
) -> DeleteResult:
    """Commit the defaults of all values that have expired by now. The result counts the rows with
    such values; `commit` is None where there are none."""
    context = change.context(snapshot)
    pending = [
        part
        for part in snapshot.parts(table.id)
        if part.rows and partition_id in (None, part.partition_id)
    ]
    changed: dict[str, _ChangedPart] = {}
    for column in table.columns:
        if not column.ttl:
            continue
        expiry = Expiry.of(parse_expression(column.ttl), table, change.origin.services)
        parts = [part for part in pending if expiry.share(part) != "none"]
        for part, offsets, values in _expired_values(
            change, snapshot, table, column, expiry, parts
        ):
            if part.id not in changed:
                changed[part.id] = _ChangedPart(part, read_rows(context, table, part))
            changed[part.id].set(column.name, offsets, values)
    if not changed:
        return NOTHING_DELETED
    removal = RowRemoval(change, snapshot, table, [rewrite.part for rewrite in changed.values()])
    staged: list[AddPart] = []
    rows = 0
    for rewrite in changed.values():
        change.origin.refuse_cancelled()
        offsets = pa.array(np.flatnonzero(rewrite.mask))
        removal.add_changed(
            rewrite.part,
            rewrite.before.take(offsets),
            rewrite.after.take(offsets),
            frozenset(rewrite.columns),
        )
        derived = layout_of(table, context).derived(rewrite.after)
        staged.append(staging.stage_replacement(table, rewrite.part, rewrite.after, derived))
        rows += len(offsets)
        failpoint("delete.part_rewritten")
    ids = tuple(sorted(changed))
    commit = removal.publish(
        staging, [PartsLive(table.id, ids)], [RemoveParts(table.id, ids), *staged]
    )
    return DeleteResult(rows, len(ids), commit)


def _expired_values(
    change: RowChange,
    snapshot: Snapshot,
    table: Table,
    column: Column,
    expiry: Expiry,
    parts: list[Part],
) -> Iterator[tuple[Part, np.ndarray, pa.Array]]:
    """Yield each of the parts with expired values of the column that are not its default yet: their
    offsets, and their defaults."""
    if not parts:
        return
    default = _default(column)
    is_other = nodes.Function("isDistinctFrom", (nodes.Identifier((column.name,)), default))
    where = nodes.Function("and", (expiry_condition([expiry]), is_other))
    matches_of_parts = matching_rows(
        table, parts, where, [(column.name, default)], change.context(snapshot), None
    )
    for part, matches in matches_of_parts:
        offsets = single_chunk(matches.column("_part_offset")).to_numpy(zero_copy_only=False)
        yield part, offsets.astype(np.int64), single_chunk(matches.column(column.name))


def _default(column: Column) -> nodes.Expression:
    """Return the expression of the column's default: its own, else the default of its type."""
    if column.default:
        return parse_expression(column.default)
    return nodes.Function("defaultValueOfTypeName", (nodes.Literal(column.type.name),))


class _ChangedPart:
    """A part while its expired values are replaced: the rows before and after, and which differ."""

    def __init__(self, part: Part, rows: pa.Table) -> None:
        self.part = part
        self.before = self.after = rows
        self.columns: set[str] = set()
        self.mask = np.zeros(part.rows, dtype=bool)

    def set(self, name: str, offsets: np.ndarray, values: pa.Array) -> None:
        """Replace the column's values at the offsets."""
        at = self.after.schema.get_field_index(name)
        field = self.after.schema.field(at)
        new = overwritten(self.after.column(at), offsets, values)
        self.after = self.after.set_column(at, field, new)
        self.columns.add(name)
        self.mask[offsets] = True
