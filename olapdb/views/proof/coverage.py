"""Coverage: which rows of its source a view has seen, computed from the catalog's ledger alone.

A source part is covered as a whole or not at all: merges never join parts of different coverage
(rule 8 of docs/invariants.md). So the gap of a view is the list of live source parts that its
coverage does not contain. A view covers a source block once it has processed the block, even if
that gave no rows. Bypass rows are rows of its target that no current view made, such as rows of a
direct INSERT.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from olapdb.model.part import BlockRange, Part, union_ranges
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Coverage
from olapdb.records import dataclass


@dataclass(frozen=True, slots=True)
class GapSlice:
    """The parts of one source partition that a view has not seen."""

    partition: str
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int:
        """Return the number of rows in all parts."""
        return sum(part.rows for part in self.parts)

    @property
    def bytes(self) -> int:
        """Return the size of all parts in bytes."""
        return sum(part.bytes for part in self.parts)

    @property
    def blocks(self) -> tuple[BlockRange, ...]:
        """Return the block ranges of all parts, joined."""
        return union_ranges(part.block_range for part in self.parts)


@dataclass(frozen=True, slots=True)
class CoverageSlice:
    """A row of system.view_coverage: the covered, gap or retained rows of one source partition.

    Retained rows have left the source by retention. What the view made of them stays.
    """

    view_id: str
    partition: str
    status: Literal["covered", "gap", "retained"]
    parts: int
    rows: int
    bytes: int
    first_block: int
    last_block: int


def gap_slices(view: MaterializedView, snapshot: Snapshot) -> tuple[GapSlice, ...]:
    """Return the source parts with rows that the view has not seen: the parts that a backfill
    reads. Grouped by source partition, in the order of the partition ids."""
    coverage = snapshot.coverage(view.id)
    by_partition: dict[str, list[Part]] = {}
    for part in _with_rows(snapshot.parts(view.source_id)):
        if not coverage.covers(part.partition_id, part.block_range):
            by_partition.setdefault(part.partition_id, []).append(part)
    return tuple(
        GapSlice(partition, tuple(parts)) for partition, parts in sorted(by_partition.items())
    )


def covered_parts(view: MaterializedView, snapshot: Snapshot) -> tuple[Part, ...]:
    """Return the source's live parts with rows that the view has seen."""
    coverage = snapshot.coverage(view.id)
    return tuple(
        part
        for part in _with_rows(snapshot.parts(view.source_id))
        if coverage.covers(part.partition_id, part.block_range)
    )


def coverage_rows(view: MaterializedView, snapshot: Snapshot) -> tuple[CoverageSlice, ...]:
    """Return the view's rows of system.view_coverage, sorted by partition and status.

    There are none for a source that stores nothing."""
    coverage = snapshot.coverage(view.id)
    grouped_parts: dict[tuple[str, Literal["covered", "gap"]], list[Part]] = {}
    for part in _with_rows(snapshot.parts(view.source_id)):
        grouped_parts.setdefault((part.partition_id, _status(coverage, part)), []).append(part)
    slices = [
        CoverageSlice(
            view.id,
            partition,
            status,
            len(parts),
            sum(live_part.rows for live_part in parts),
            sum(live_part.bytes for live_part in parts),
            min(live_part.block_range.first for live_part in parts),
            max(live_part.block_range.last for live_part in parts),
        )
        for (partition, status), parts in grouped_parts.items()
    ]
    slices += [
        CoverageSlice(
            view.id,
            entry.partition,
            "retained",
            entry.parts,
            entry.rows,
            entry.bytes,
            entry.blocks.first,
            entry.blocks.last,
        )
        for entry in snapshot.retained(view.id)
        if entry.side == "source"
    ]
    return tuple(sorted(slices, key=lambda entry: (entry.partition, entry.status)))


def _status(coverage: Coverage, part: Part) -> Literal["covered", "gap"]:
    """Return "covered" if the coverage holds all blocks of the part, else "gap"."""
    return "covered" if coverage.covers(part.partition_id, part.block_range) else "gap"


def _with_rows(parts: Iterable[Part]) -> Iterable[Part]:
    """Return the parts that have rows."""
    return (part for part in parts if part.rows)


# --- the target ----------------------------------------------------------------------------------


def is_bypass(part: Part, view_ids: frozenset[str]) -> bool:
    """Return whether none of these views made the part, so that its rows are bypass rows."""
    return not part.written_by(view_ids)


def bypass(view: MaterializedView, snapshot: Snapshot) -> Mapping[str, int]:
    """Return the number of bypass rows in each partition of the view's target: rows that none of
    its views made. Rows of a dropped view are bypass rows."""
    views = writers(view, snapshot)
    rows: dict[str, int] = {}
    for part in _with_rows(snapshot.parts(view.target_id)):
        if is_bypass(part, views):
            rows[part.partition_id] = rows.get(part.partition_id, 0) + part.rows
    return dict(sorted(rows.items()))


def writers(view: MaterializedView, snapshot: Snapshot) -> frozenset[str]:
    """Return the ids of all views that write the view's target."""
    return frozenset(writer.id for writer in snapshot.views_into(view.target_id)) | {view.id}


def stores_rows(snapshot: Snapshot, table_id: str) -> bool:
    """Return whether the id is a table's that stores its rows. A Null table stores none."""
    table = snapshot.by_id(table_id)
    return isinstance(table, Table) and table.engine.name != "Null"
