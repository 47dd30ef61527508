"""Which rows of its source a view has seen, and which it has not: arithmetic on the ledger.

A part of the source is covered as a whole or not at all: merges never join parts of different
coverage (rule 8).  So the gap of a view is the list of live source parts that its coverage does
not contain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from olapdb.model.part import BlockRange, Part, union_ranges
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Coverage


@dataclass(frozen=True, slots=True)
class GapSlice:
    """The parts of one source partition that a view has not seen."""

    partition: str
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    @property
    def blocks(self) -> tuple[BlockRange, ...]:
        return union_ranges(part.block_range for part in self.parts)


@dataclass(frozen=True, slots=True)
class CoverageSlice:
    """One row of system.view_coverage: a source partition's covered, or uncovered, rows; or those
    that have left it by retention, while what the view made of them stays."""

    view_id: str
    partition: str
    status: Literal["covered", "gap", "retained"]
    parts: int
    rows: int
    bytes: int
    first_block: int
    last_block: int


def gap(view: MaterializedView, snapshot: Snapshot) -> tuple[GapSlice, ...]:
    """Return the parts of the source that the view has not seen, by partition, in the partitions'
    order: what a backfill reads."""
    coverage = snapshot.coverage(view.id)
    by_partition: dict[str, list[Part]] = {}
    for part in _with_rows(snapshot.parts(view.source_id)):
        if not coverage.covers(part.partition_id, part.block_range):
            by_partition.setdefault(part.partition_id, []).append(part)
    return tuple(GapSlice(p, tuple(parts)) for p, parts in sorted(by_partition.items()))


def covered_parts(view: MaterializedView, snapshot: Snapshot) -> tuple[Part, ...]:
    """Return the source's live parts that the view has seen."""
    coverage = snapshot.coverage(view.id)
    return tuple(
        part
        for part in _with_rows(snapshot.parts(view.source_id))
        if coverage.covers(part.partition_id, part.block_range)
    )


def coverage_rows(view: MaterializedView, snapshot: Snapshot) -> tuple[CoverageSlice, ...]:
    """Return covered, uncovered and retained rows by source partition; none for a source that stores
    nothing."""
    coverage = snapshot.coverage(view.id)
    slices: dict[tuple[str, Literal["covered", "gap"]], list[Part]] = {}
    for part in _with_rows(snapshot.parts(view.source_id)):
        slices.setdefault((part.partition_id, _status(coverage, part)), []).append(part)
    found = [
        CoverageSlice(
            view.id,
            partition,
            status,
            len(parts),
            sum(p.rows for p in parts),
            sum(p.bytes for p in parts),
            min(p.block_range.first for p in parts),
            max(p.block_range.last for p in parts),
        )
        for (partition, status), parts in slices.items()
    ]
    found += [
        CoverageSlice(
            view.id,
            one.partition,
            "retained",
            one.parts,
            one.rows,
            one.bytes,
            one.blocks.first,
            one.blocks.last,
        )
        for one in snapshot.retained(view.id)
        if one.side == "source"
    ]
    return tuple(sorted(found, key=lambda one: (one.partition, one.status)))


def _status(coverage: Coverage, part: Part) -> Literal["covered", "gap"]:
    return "covered" if coverage.covers(part.partition_id, part.block_range) else "gap"


def _with_rows(parts: Iterable[Part]) -> Iterable[Part]:
    return (part for part in parts if part.rows)


# --- the target ----------------------------------------------------------------------------------


def is_bypass(part: Part, view_ids: frozenset[str]) -> bool:
    """Return whether none of these views made the part's rows."""
    return not part.made_by(view_ids)


def bypass(view: MaterializedView, snapshot: Snapshot) -> Mapping[str, int]:
    """Return how many rows of the target no view of it made, by the target's partition; rows of a
    dropped view are among them."""
    views = writers(view, snapshot)
    rows: dict[str, int] = {}
    for part in _with_rows(snapshot.parts(view.target_id)):
        if is_bypass(part, views):
            rows[part.partition_id] = rows.get(part.partition_id, 0) + part.rows
    return dict(sorted(rows.items()))


def writers(view: MaterializedView, snapshot: Snapshot) -> frozenset[str]:
    """Return the ids of all views that write the view's target."""
    return frozenset(v.id for v in snapshot.views_into(view.target_id)) | {view.id}


def stores_rows(snapshot: Snapshot, table_id: str) -> bool:
    """Return whether the table stores its rows; a Null table does not."""
    found = snapshot.by_id(table_id)
    return isinstance(found, Table) and found.engine.name != "Null"
