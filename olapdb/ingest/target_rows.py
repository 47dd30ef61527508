"""Rows that views made leave their target (rule 5).

Where all that a view made of a partition goes, and a source part had reached nothing else of the
target, the view has that part's rows before it again: they are a gap, by name, and a backfill
restores them.  A source part that had reached other partitions too cannot be a gap, for a backfill
would bring those rows a second time; neither can what a partition keeps rows of.  There the slice is
stale (TARGET CHANGED), and a replay restores it.

    source block 7 -> target 202401 only         DROP PARTITION 202401    7 is the view's gap
    source block 8 -> target 202401 and 202402                            202401 is stale

Rows that leave by retention are not to come back: the slice is frozen, and its blocks stay covered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import RetainedRows
from olapdb.ingest.retained import (
    DISCARD_HINT,
    FrozenKeys,
    frozen_verdict,
    joined_bounds,
    key_bounds,
    retained_of,
)
from olapdb.ingest.stage import VOID_PARTITION, layout_of, void_part
from olapdb.ingest.trigger import Surroundings
from olapdb.model.books import booked, meets, without_names
from olapdb.model.changes import (
    AddPart,
    Change,
    DataVersionIs,
    Invalidate,
    NoPartStraddles,
    PartsLive,
    ReleaseRetained,
    RemoveCoverage,
    RemoveParts,
    Requirement,
    Retain,
    ViewIs,
)  # fmt: skip
from olapdb.model.part import BlockRange, Contribution, Part, union_ranges
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Cause, Invalidation, KeyBounds, RetainedSlice


@dataclass
class TargetRows:
    """What leaves a table that views write, gathered part by part."""

    snapshot: Snapshot
    table: Table
    around: Surroundings
    retain: bool
    discard_retained: bool
    _rows: dict[str, int] = field(default_factory=dict)
    _parts: dict[str, Part] = field(default_factory=dict)
    _bounds: dict[str, list[KeyBounds | None]] = field(default_factory=dict)

    @property
    def frozen(self) -> FrozenKeys:
        return FrozenKeys.of(self.snapshot, self.table.id)

    @property
    def reads_rows(self) -> bool:
        return self.retain or bool(self.frozen)

    def add(self, part: Part, rows: pa.Table | None, count: int) -> None:
        """Raises RetainedRows where a row is among those that retention froze."""
        self._parts[part.id] = part
        self._rows[part.id] = count
        if rows is None:
            return
        layout = layout_of(self.table, self.around)
        if self.retain:
            self._bounds.setdefault(part.partition_id, []).append(key_bounds(layout, rows))
        elif not self.discard_retained and part.contributions:
            inside = self.frozen.inside(layout, part.partition_id, rows)
            if pc.any(inside).as_py():
                refuse_frozen(self.table, part.partition_id)

    def finish(
        self, cause: Cause, statement: str, query_id: str, since_ms: int
    ) -> tuple[list[Change], list[Requirement]]:
        """What the commit changes beside the parts, and what must still hold."""
        changes: list[Change] = []
        requirements: list[Requirement] = [
            DataVersionIs(self.table.id, p, self.snapshot.data_version(self.table.id, p))
            for p in sorted({VOID_PARTITION, *(x.partition_id for x in self._all)})
        ]
        lost: dict[str, dict[str, tuple[BlockRange, ...]]] = {}
        for view in self.snapshot.views_into(self.table.id):
            own = [part for part in self._parts.values() if part.made_by({view.id})]
            if not own:
                continue
            requirements.append(ViewIs(view.id, view.version))
            if self.retain:
                changes += self._frozen(view, own, cause, statement, query_id, since_ms)
                continue
            partitions = dict.fromkeys(part.partition_id for part in own)
            if self.discard_retained:
                changes += [
                    ReleaseRetained(view.id, p, self.snapshot.number) for p in partitions
                    if self._empties(view, p)
                ]  # fmt: skip
            gaps, stale = self._reached(view, own)
            lost[view.id] = gaps
            for partition, blocks in gaps.items():
                changes.append(RemoveCoverage(view.id, partition, blocks))
                requirements.append(NoPartStraddles(view.source_id, partition, blocks))
            changes += [
                Invalidate(
                    Invalidation(view.id, p, "TARGET CHANGED", statement, query_id,
                                 sum(self._rows[x.id] for x in own if x.partition_id == p), since_ms)
                )
                for p in stale
            ]  # fmt: skip
        more, live = self._renamed(lost)
        return [*changes, *more], [*requirements, *live]

    @property
    def _all(self) -> tuple[Part, ...]:
        return self.snapshot.parts(self.table.id)

    def _gone(self, part: Part) -> bool:
        return self._rows.get(part.id) == part.rows

    def _empties(self, view: MaterializedView, partition: str) -> bool:
        """Whether nothing that the view made is left in the partition."""
        return all(
            self._gone(part) for part in self._all
            if part.rows and part.partition_id == partition and part.made_by({view.id})
        )  # fmt: skip

    # --- gap or stale

    def _reached(
        self, view: MaterializedView, own: Sequence[Part]
    ) -> tuple[dict[str, tuple[BlockRange, ...]], list[str]]:
        """(blocks by source partition that are a gap now, partitions of the target that are
        stale)."""
        source = self.snapshot.by_id(view.source_id)
        if not isinstance(source, Table) or not source.engine.stores_rows:
            return {}, []
        emptied = [p for p in dict.fromkeys(x.partition_id for x in own) if self._empties(view, p)]
        stale = {part.partition_id for part in own} - set(emptied)
        left = booked(view.id, (p for p in self._all if p.rows and not self._gone(p)))
        names = {p: booked(view.id, (x for x in own if x.partition_id == p)) for p in emptied}
        coverage = self.snapshot.coverage(view.id)
        gaps: dict[str, list[BlockRange]] = {}
        ranges: dict[str, tuple[tuple[BlockRange, ...], dict[str, tuple[BlockRange, ...]]]] = {}
        for part in self.snapshot.parts(view.source_id):
            one, blocks = part.partition_id, part.block_range
            if not part.rows or not coverage.covers(one, blocks):
                continue
            if one not in ranges:
                ranges[one] = (left.ranges(one), {p: n.ranges(one) for p, n in names.items()})
            elsewhere, by_slice = ranges[one]
            reached = [p for p, named in by_slice.items() if meets(named, blocks)]
            if not reached:
                continue
            if meets(elsewhere, blocks):
                stale.update(reached)
            else:
                gaps.setdefault(one, []).append(blocks)
        return {p: union_ranges(found) for p, found in gaps.items()}, sorted(stale)

    # --- names

    def _renamed(
        self, lost: Mapping[str, Mapping[str, tuple[BlockRange, ...]]]
    ) -> tuple[list[Change], list[Requirement]]:
        """Void parts go on to name the blocks of parts that are gone, but for those that are a gap
        now; void parts that name such a one are replaced."""
        changes: list[Change] = []
        requirements: list[Requirement] = []
        for part in self._all:
            if part.rows and not self._gone(part):
                continue
            kept = self._names_left(part, lost)
            if part.rows == 0:
                if kept == part.contributions:
                    continue
                requirements.append(PartsLive(self.table.id, (part.id,)))
                changes.append(RemoveParts(self.table.id, (part.id,)))
            if kept:
                changes.append(AddPart(void_part(self.table, part.block_range, kept)))
        return changes, requirements

    def _names_left(
        self, part: Part, lost: Mapping[str, Mapping[str, tuple[BlockRange, ...]]]
    ) -> tuple[Contribution, ...]:
        kept = list(part.contributions)
        for view_id, gaps in lost.items():
            view = self.snapshot.by_id(view_id)
            assert isinstance(view, MaterializedView)
            partitions = {p.partition_id for p in self.snapshot.parts(view.source_id) if p.rows}
            for partition, blocks in gaps.items():
                others = sorted(partitions - {partition})
                kept = [
                    left for one in kept
                    for left in (
                        without_names(one, partition, blocks, others)
                        if one.view_id == view_id else [one]
                    )
                ]  # fmt: skip
        if part.rows == 0:
            return tuple(kept)
        return tuple(replace(one, rows=0) for one in kept if one.blocks)

    # --- retention

    def _frozen(
        self, view: MaterializedView, own: Iterable[Part], cause: Cause, statement: str,
        query_id: str, since_ms: int,
    ) -> list[Change]:  # fmt: skip
        by_partition: dict[str, list[Part]] = {}
        for part in own:
            by_partition.setdefault(part.partition_id, []).append(part)
        found: list[Change] = []
        for partition, parts in by_partition.items():
            rows = sum(self._rows[part.id] for part in parts)
            slice_ = RetainedSlice(
                partition, rows, joined_bounds(self._bounds.get(partition, [None])),
                frozen_verdict(view, self.snapshot, partition),
            )  # fmt: skip
            found.append(
                Retain(
                    retained_of(
                        view, "target", parts, rows, (slice_,), cause, statement, query_id, since_ms
                    )
                )
            )
        return found


def refuse_frozen(table: Table, partition: str) -> None:
    raise RetainedRows(
        f"Partition {partition} of {table.database}.{table.name} holds rows whose source rows have"
        " left by retention: they could not be made again.",
        hint=f"{DISCARD_HINT} SETTINGS retain = 1 on DROP PARTITION removes them as the target's"
        " own retention.",
    )
