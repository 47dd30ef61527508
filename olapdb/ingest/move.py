"""Whole parts leave a table: DROP, DETACH, MOVE and REPLACE of partitions and parts.

One commit each.  Files are never copied or renamed: a part that goes elsewhere is another row of
the catalog about the same file, see `attach`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from olapdb.errors import NoSuchDataPart
from olapdb.ingest.attach import Attached, detached_copies
from olapdb.ingest.delete import NOTHING_LEFT, DeleteResult
from olapdb.ingest.leave import RowChange, stored_table
from olapdb.model.changes import (
    PartsLive,
    PartsOfPartitionAre,
    Requirement,
)  # fmt: skip
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Selection:
    """Parts of a table: a partition, a part by its name, or (neither given) all of them."""

    partition: str | None = None
    part: str | None = None

    def choose(self, snapshot: Snapshot, table: Table, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Of these parts; NoSuchDataPart where a part of that name is not among them."""
        if self.part is not None:
            found = tuple(p for p in parts if p.rows and p.name == self.part)
            if not found:
                raise NoSuchDataPart(
                    f"{table.database}.{table.name} has no part {self.part}.",
                    hint="system.parts lists the parts; a merge may have joined it with others.",
                )
            return found
        chosen = (p for p in parts if self.partition in (None, p.partition_id))
        return tuple(p for p in chosen if p.rows)

    def requirements(self, table: Table, parts: Sequence[Part]) -> list[Requirement]:
        """That these are still the parts that were asked for."""
        ids = tuple(sorted(part.id for part in parts))
        if self.part is not None:
            return [PartsLive(table.id, ids)]
        if self.partition is not None:
            return [PartsOfPartitionAre(table.id, self.partition, ids)]
        partitions: dict[str, list[str]] = {}
        for part in parts:
            partitions.setdefault(part.partition_id, []).append(part.id)
        return [PartsOfPartitionAre(table.id, p, tuple(sorted(i))) for p, i in partitions.items()]


def drop_parts(change: RowChange, table_id: str, selection: Selection) -> DeleteResult:
    """Removes them; the views' slices that their rows reached become stale, or frozen where the
    change is retention.  A view's target: see `target_rows`."""

    def attempt(snapshot: Snapshot) -> DeleteResult:
        table = stored_table(snapshot, table_id, change.cause)
        parts = selection.choose(snapshot, table, snapshot.parts(table.id))
        return remove(change, snapshot, table, selection, parts, (), ())

    return change.until_published(attempt)


def detach_parts(change: RowChange, table_id: str, selection: Selection) -> DeleteResult:
    """As `drop_parts`, but the rows can be attached again."""

    def attempt(snapshot: Snapshot) -> DeleteResult:
        table = stored_table(snapshot, table_id, change.cause)
        parts = selection.choose(snapshot, table, snapshot.parts(table.id))
        return remove(
            change, snapshot, table, selection, parts, (), detached_copies(snapshot, table, parts)
        )

    return change.until_published(attempt)


def move_parts(
    change: RowChange, table_id: str, selection: Selection, target_id: str
) -> DeleteResult:
    """They leave the table and are new blocks of the other one, in one commit."""

    def attempt(snapshot: Snapshot) -> DeleteResult:
        table = stored_table(snapshot, table_id, change.cause)
        target = stored_table(snapshot, target_id, change.cause)
        parts = selection.choose(snapshot, table, snapshot.parts(table.id))
        if not parts:
            return NOTHING_LEFT
        with Attached(change, snapshot, table, target) as attached:
            return remove(
                change, snapshot, table, selection, parts, *attached.bring(parts), attached
            )

    return change.until_published(attempt)
