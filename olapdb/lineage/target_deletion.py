"""Removes rows that views wrote from their target (rule 5).

A source part becomes the view's gap again if its rows had reached only partitions from which
everything that the view wrote is removed; a backfill then restores them.  A source part that also
reached other partitions cannot be a gap, for a backfill would insert those rows a second time.
Neither can a source part whose partition keeps some rows, nor one whose blocks too many parts of
other partitions name.  Such a slice becomes stale (TARGET CHANGED), and a replay restores it.  Rows
that cancelled each other out (sums of zero) also reached their partition, though no row of it shows
that. The view is run on their source parts, because a backfill of only some of them would leave rows.

    source part 7..7 -> target 202401 only         DROP PARTITION 202401    7 is the view's gap
    source part 8..9 -> target 202401 and 202402                            202401 is stale

Rows that leave by retention must not come back: the slice is frozen, and its blocks stay covered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.commit.draft import CommitDraft
from olapdb.commit.origin import CommitOrigin
from olapdb.errors import RetainedRows
from olapdb.ingest.block_parts import PLACEHOLDER_PARTITION, layout_of, placeholder_part
from olapdb.ingest.trigger import TriggerContext
from olapdb.lineage.gap_search import GapSearch, NamedSlices
from olapdb.lineage.invalidation import invalidate
from olapdb.lineage.part_lookup import PartLookup
from olapdb.lineage.retention import (
    DISCARD_HINT,
    FrozenKeys,
    frozen_keys_stale,
    frozen_verdict,
    joined_bounds,
    key_bounds,
    retained_record,
)
from olapdb.model.changes import (
    AddPart,
    Change,
    ClearInvalidations,
    ReleaseRetained,
    RemoveCoverage,
    RemoveParts,
    Retain,
)
from olapdb.model.contributions import BlocksRemoved, contributed_blocks, wrote_rows
from olapdb.model.part import BlockRange, Contribution, Part, new_part_id
from olapdb.model.requirements import (
    DataVersionIs,
    PartsLive,
    PartsWithinRanges,
    Requirement,
    ViewIs,
)
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Cause, KeyBounds, RetainedSlice
from olapdb.records import dataclass

REMOVAL_CAUSES: frozenset[Cause] = frozenset(
    ("DELETE", "TTL", "DROP PARTITION", "DETACH PARTITION", "MOVE PARTITION", "QUARANTINE PART")
)
"""Causes of invalidations that only mean removed source rows."""

CONTRIBUTIONS_MAX = 100_000
"""The most contributions that a gap may add to the target's parts. A part that names a block for
all partitions must name each other partition instead. Past the limit the slices become stale: a
replay restores them, and names in each slice only what reached it."""


@dataclass
class TargetRows:
    """The rows that a commit removes from a table which views write, gathered part by part."""

    snapshot: Snapshot
    table: Table
    context: TriggerContext
    retain: bool
    discard_retained: bool
    _rows: dict[str, int] = field(default_factory=dict)
    _parts: dict[str, Part] = field(default_factory=dict)
    _bounds: dict[str, list[KeyBounds | None]] = field(default_factory=dict)
    _stale_frozen: set[str] = field(default_factory=set)

    @cached_property
    def frozen(self) -> FrozenKeys:
        """Return the frozen keys of the table."""
        return FrozenKeys.of(self.snapshot, self.table.id)

    @property
    def reads_rows(self) -> bool:
        """Return whether `add` needs the rows, and not only their number."""
        return self.retain or bool(self.frozen)

    def add(self, part: Part, rows: pa.Table | None, count: int) -> None:
        """Note that the commit removes `count` rows of the part: `rows`, which may be None if
        `reads_rows` is False.

        Raises RetainedRows if retention froze one of the rows, unless they leave by retention
        themselves (`retain`) or `discard_retained` is set."""
        self._parts[part.id] = part
        self._rows[part.id] = count
        if rows is None:
            return
        layout = layout_of(self.table, self.context)
        if self.retain:
            self._bounds.setdefault(part.partition_id, []).append(key_bounds(layout, rows))
        elif not self.discard_retained and part.contributions:
            is_frozen = self.frozen.frozen_mask(layout, part.partition_id, rows)
            if pc.any(is_frozen).as_py():
                refuse_frozen(self.table, part.partition_id)

    def add_unread(self, part: Part) -> None:
        """Add all rows of a part that cannot be read; the verdict on frozen rows of its
        partition becomes stale."""
        self._parts[part.id] = part
        self._rows[part.id] = part.rows
        if part.contributions and self.frozen.holds(part.partition_id):
            self._stale_frozen.add(part.partition_id)

    def finish(self, draft: CommitDraft, origin: CommitOrigin, cause: Cause) -> CommitDraft:
        """Return the statement's draft with its effects on the views that write the table; parts
        in it name only the source blocks whose rows they still hold."""
        effects = CommitDraft(
            DataVersionIs(self.table.id, p, self.snapshot.data_version(self.table.id, p))
            for p in sorted({PLACEHOLDER_PARTITION, *(x.partition_id for x in self._target_parts)})
        )
        lost: dict[str, BlocksRemoved] = {}
        for view in self.snapshot.views_into(self.table.id):
            own = [part for part in self._parts.values() if part.written_by({view.id})]
            if not own:
                continue
            # A concurrent retention of source rows could freeze the rows that we remove.
            version = self.snapshot.data_version(view.source_id, PLACEHOLDER_PARTITION)
            effects.require(
                ViewIs(view.id, view.version),
                DataVersionIs(view.source_id, PLACEHOLDER_PARTITION, version),
            )
            if self.retain:
                effects.change(*self._retention_changes(view, own, origin, cause))
            else:
                lost[view.id] = self._removed_blocks(view, own, origin, effects)
        contribution_changes, live = self._contribution_changes(lost)
        return CommitDraft(
            (*draft.requirements, *effects.requirements, *live),
            (
                *self._with_remaining_contributions(draft.changes, lost),
                *effects.changes,
                *contribution_changes,
            ),
        )

    def _removed_blocks(
        self,
        view: MaterializedView,
        own: Sequence[Part],
        origin: CommitOrigin,
        effects: CommitDraft,
    ) -> BlocksRemoved:
        """Return the source blocks that become the view's gap, since everything that it wrote for
        them is in `own`; add the view's other changes and the requirements to `effects`."""
        partitions = dict.fromkeys(part.partition_id for part in own)
        kept = self._partitions_kept(view)
        emptied = [p for p in partitions if p not in kept]
        if self._stale_frozen:
            effects.change(*frozen_keys_stale(view, self.snapshot, self._stale_frozen))
        if self.discard_retained:
            effects.change(*(ReleaseRetained(view.id, p, self.snapshot.number) for p in emptied))
        traced = self._traced_slices(view)
        effects.change(
            *(
                ClearInvalidations(view.id, p, self.snapshot.number)
                for p in emptied
                if p not in traced
            )
        )
        gaps, stale, read = self._gaps_and_stale(view, own, frozenset(emptied))
        effects.require(*read)
        live = {part.partition_id for part in self.snapshot.parts(view.source_id) if part.rows}
        lost = BlocksRemoved(gaps, live)
        if gaps and lost.count_added(view.id, self._target_parts) > CONTRIBUTIONS_MAX:
            gaps, lost, stale = {}, BlocksRemoved({}, live), list(partitions)
        if gaps:
            effects.change(RemoveCoverage(view.id, tuple(gaps.items())))
        effects.require(
            *(PartsWithinRanges(view.source_id, p, blocks) for p, blocks in gaps.items())
        )
        rows = Counter[str]()
        for part in own:
            rows[part.partition_id] += self._rows[part.id]
        effects.change(*(invalidate(origin, view.id, p, "TARGET CHANGED", rows[p]) for p in stale))
        return lost

    @property
    def _target_parts(self) -> tuple[Part, ...]:
        """Return all parts of the target at the snapshot."""
        return self.snapshot.parts(self.table.id)

    def _traced_slices(self, view: MaterializedView) -> set[str | None]:
        """Return the slices with an invalidation whose cause is not the removal of source rows. It
        may be the only trace of rows that no part here names. Other invalidations are void once the
        whole slice is a gap."""
        return {
            invalidation.target_partition
            for invalidation in self.snapshot.invalidations(view.id)
            if invalidation.cause not in REMOVAL_CAUSES
        }

    def _is_removed(self, part: Part) -> bool:
        """Return whether the commit removes the part with all its rows."""
        return self._rows.get(part.id) == part.rows

    def _partitions_kept(self, view: MaterializedView) -> set[str]:
        """Return the partitions in which rows that the view wrote remain."""
        return {
            part.partition_id
            for part in self._target_parts
            if part.rows and part.written_by({view.id}) and not self._is_removed(part)
        }

    def _gaps_and_stale(
        self, view: MaterializedView, own: Sequence[Part], emptied: AbstractSet[str]
    ) -> tuple[dict[str, tuple[BlockRange, ...]], list[str], list[Requirement]]:
        """Return (blocks by source partition that become a gap, partitions of the target that
        become stale, requirements on what was read to decide it)."""
        source = self.snapshot.by_id(view.source_id)
        if not isinstance(source, Table) or not source.engine.stores_rows:
            return {}, [], []
        if any(_of_another_source(view, part) for part in own):
            # They name blocks of the source before: only the replay that is due makes them again.
            return {}, sorted({part.partition_id for part in own}), []
        kept = {part.partition_id for part in own} - emptied
        if not emptied:
            return {}, sorted(kept), []
        left = [
            part
            for part in self._target_parts
            if part.rows and not (part.partition_id in emptied and self._is_removed(part))
        ]
        search = GapSearch(
            view,
            source,
            self.table,
            PartLookup(view, source, self.context),
            left=contributed_blocks(view.id, left, view.source_id),
            cancelled=contributed_blocks(view.id, self._cancelled_parts(), view.source_id),
            named=NamedSlices.of(view.id, (part for part in own if part.partition_id in emptied)),
            retired=self._retained_partitions(view, emptied),
        )
        gaps, stale = search.run()
        return gaps, sorted(kept | stale), search.asked.requirements

    def _cancelled_parts(self) -> Iterator[Part]:
        """Yield the parts whose rows combined to nothing."""
        return (part for part in self._target_parts if not part.rows and wrote_rows(part))

    def _retained_partitions(
        self, view: MaterializedView, emptied: Iterable[str]
    ) -> frozenset[str | None]:
        """Return the slices whose rows left by the target's own retention (None: the whole target).

        A backfill would bring them back, though no part names their blocks any more. Slices in
        `emptied` are left out if the statement discards retained rows.
        """
        records = (record for record in self.snapshot.retained(view.id) if record.side == "target")
        partitions = frozenset(s.partition for record in records for s in record.slices)
        return partitions.difference(emptied) if self.discard_retained else partitions

    # --- names

    def _contribution_changes(
        self, lost: Mapping[str, BlocksRemoved]
    ) -> tuple[list[Change], list[Requirement]]:
        """Return the changes, and their requirements, that keep the names of source blocks right.

        `lost` has the blocks that become a gap, by view id: no part names them any more.
        Placeholder parts name the other blocks of removed parts. Remaining parts that name a lost
        block are replaced by ones of the same bytes.
        """
        changes: list[Change] = []
        requirements: list[Requirement] = []
        for part in self._target_parts:
            contributions = self._remaining_contributions(part, lost)
            if self._is_removed(part) and part.rows:
                if contributions:
                    changes.append(
                        AddPart(placeholder_part(self.table, part.block_range, contributions))
                    )
                continue
            if contributions == part.contributions or part.id in self._rows:
                continue
            requirements.append(PartsLive(self.table.id, (part.id,)))
            changes.append(RemoveParts(self.table.id, (part.id,)))
            if part.rows:
                renamed = replace(
                    part, id=new_part_id(), contributions=contributions, created_commit=0
                )
                inline = self.snapshot.inline_rows(part) if part.inline else None
                changes.append(AddPart(renamed, inline))
            elif contributions:
                changes.append(
                    AddPart(placeholder_part(self.table, part.block_range, contributions))
                )
        return changes, requirements

    def _with_remaining_contributions(
        self, changes: Sequence[Change], lost: Mapping[str, BlocksRemoved]
    ) -> list[Change]:
        """Return the changes with the names of gap blocks removed from their new parts."""
        remaining_parts = {
            (part.partition_id, part.blocks): part
            for part in self._parts.values()
            if not self._is_removed(part)
        }
        new_changes: list[Change] = []
        for change in changes:
            before = None
            if isinstance(change, AddPart):
                before = remaining_parts.get((change.part.partition_id, change.part.blocks))
            if isinstance(change, AddPart) and before is not None:
                names = self._remaining_contributions(before, lost)
                change = replace(change, part=replace(change.part, contributions=names))
            new_changes.append(change)
        return new_changes

    def _remaining_contributions(
        self, part: Part, lost: Mapping[str, BlocksRemoved]
    ) -> tuple[Contribution, ...]:
        """Return the part's contributions without blocks that become a gap, and without rows
        where it goes."""
        contributions: list[Contribution] = []
        for contribution in part.contributions:
            removed = lost.get(contribution.view_id)
            contributions += removed.without(contribution) if removed else [contribution]
        if part.rows == 0:
            return tuple(contributions)
        if self._is_removed(part):
            return tuple(
                replace(contribution, rows=0)
                for contribution in contributions
                if contribution.blocks
            )
        lost_rows = sum(contribution.rows for contribution in part.contributions) - sum(
            contribution.rows for contribution in contributions
        )
        if not lost_rows:
            return tuple(contributions)
        # A remaining part remembers how many rows were written to it, under any name.
        first = (
            contributions[0] if contributions else replace(part.contributions[0], blocks=(), rows=0)
        )
        return (replace(first, rows=first.rows + lost_rows), *contributions[1:])

    # --- retention

    def _retention_changes(
        self, view: MaterializedView, own: Iterable[Part], origin: CommitOrigin, cause: Cause
    ) -> list[Change]:
        """Return changes that record the view's removed rows as retained, one for each partition.

        The parts in `own` lose these rows to retention on the target's side.
        """
        by_partition: dict[str, list[Part]] = {}
        for part in own:
            by_partition.setdefault(part.partition_id, []).append(part)
        changes: list[Change] = []
        for partition, parts in by_partition.items():
            rows = sum(self._rows[part.id] for part in parts)
            slice_ = RetainedSlice(
                partition,
                rows,
                joined_bounds(self._bounds.get(partition, [None])),
                frozen_verdict(view, self.snapshot, partition),
            )
            changes.append(
                Retain(retained_record(view, "target", parts, rows, (slice_,), origin, cause))
            )
        return changes


def refuse_frozen(table: Table, partition: str) -> None:
    """Raise RetainedRows about this partition, which has frozen rows."""
    raise RetainedRows(
        f"Partition {partition} of {table.database}.{table.name} holds rows whose source rows have"
        " left by retention: they could not be made again.",
        hint=f"{DISCARD_HINT} SETTINGS retain = 1 on DROP PARTITION removes them as the target's"
        " own retention.",
    )


def _of_another_source(view: MaterializedView, part: Part) -> bool:
    """Return whether the view made rows of the part from another source than it reads now."""
    return any(
        made.view_id == view.id and made.source_id != view.source_id for made in part.contributions
    )
