"""Decides which source blocks become a view's gap when slices of its target lose all rows (rule 5).

See `olapdb.lineage.target_deletion` for the rules. The cost is that of the source's parts and of the
target's names, not their product: the parts of one INSERT name the same blocks, and are asked as
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from olapdb.lineage.invalidation import partitions_moved_above
from olapdb.lineage.part_lookup import PartLookup
from olapdb.model.contributions import SharedBlocks, contributed_blocks
from olapdb.model.part import BlockRange, Part, union_ranges
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.view_state import Coverage
from olapdb.records import dataclass


@dataclass(frozen=True)
class NamedSlices:
    """The source blocks that the parts of a target name. `all` are those of all slices; `groups`
    has (blocks, slices): every slice of a group names the same blocks."""

    all: Coverage
    groups: tuple[tuple[Coverage, tuple[str, ...]], ...]

    @classmethod
    def of(cls, view_id: str, parts: Iterable[Part]) -> NamedSlices:
        """Return the source blocks that parts of a view's target were made from: all of them together, and those of each
        slice, slices with the same ones as one."""
        by_slice: dict[str, list[Part]] = {}
        for part in parts:
            by_slice.setdefault(part.partition_id, []).append(part)
        groups: dict[object, tuple[Coverage, list[str]]] = {}
        for slice_, own in by_slice.items():
            names = contributed_blocks(view_id, own)
            key = names.everywhere, tuple(sorted(names.by_partition.items()))
            groups.setdefault(key, (names, []))[1].append(slice_)
        everything = contributed_blocks(view_id, (p for own in by_slice.values() for p in own))
        return cls(everything, tuple((names, tuple(same)) for names, same in groups.values()))

    @property
    def slices(self) -> frozenset[str]:
        """Return all slices."""
        return frozenset(slice_ for _, same in self.groups for slice_ in same)

    def reached(self, part: Part) -> Iterator[str]:
        """Yield the slices that name blocks of this source part."""
        for names, same in self.groups:
            if names.touches(part.partition_id, part.block_range):
                yield from same


@dataclass(frozen=True)
class GapSearch:
    """A search for the source blocks whose rows had reached only the slices in `named`, from which
    the commit removes everything.

    `left` are the blocks that the remaining parts of the target name, `cancelled` those of parts
    without rows, `retired` the slices whose rows had left by retention."""

    view: MaterializedView
    source: Table
    target: Table
    asked: PartLookup
    left: Coverage
    cancelled: Coverage
    named: NamedSlices
    retired: frozenset[str | None]

    @cached_property
    def _live(self) -> list[Part]:
        """Return the source's parts with rows."""
        return [part for part in self.asked.context.snapshot.parts(self.source.id) if part.rows]

    @cached_property
    def _shared(self) -> SharedBlocks | None:
        """Return the blocks of several partitions, if the target drops keys whose sum is zero."""
        return SharedBlocks(self._live) if self.target.engine.drops_keys else None

    def run(self) -> tuple[dict[str, tuple[BlockRange, ...]], set[str]]:
        """Return (blocks by source partition that become a gap, slices that become stale)."""
        snapshot = self.asked.context.snapshot
        coverage = snapshot.coverage(self.view.id)
        moved = partitions_moved_above(self.view, snapshot, [self.named.all])
        emptied = self.named.slices
        gaps: dict[str, list[BlockRange]] = {}
        stale: set[str] = set()
        for part in self._live:
            partition, blocks = part.partition_id, part.block_range
            if not coverage.covers(partition, blocks):
                continue
            reaches = self.named.all.touches(partition, blocks)
            cancels = self.cancelled.touches(partition, blocks)
            if not reaches and not cancels and partition not in moved:
                continue
            if reaches and not cancels and self._reaches_no_other(part):
                gaps.setdefault(partition, []).append(blocks)
                continue
            there = self.asked.reached(part)
            if there is None:
                stale.update(self.named.reached(part) if reaches else emptied)
            elif there and there <= emptied.difference(self.retired):
                gaps.setdefault(partition, []).append(blocks)
            else:
                stale.update(there & emptied)
        return {p: union_ranges(ranges) for p, ranges in gaps.items()}, stale

    def _reaches_no_other(self, part: Part) -> bool:
        """Return whether the names alone say that the part's rows reached no slice that keeps rows,
        or whose rows had left by retention."""
        if self.retired or self.left.touches(part.partition_id, part.block_range):
            return False
        return self._shared is None or not self._shared.holds(part)
