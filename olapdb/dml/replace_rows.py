"""INSERT … REPLACE: rows leave a table and others come, in one commit.

    leaving    rows with a key of a new row (USING), and for which the condition is true (WHERE)
    coming     the rows of the INSERT, on which the views of the table fire
    staying    rows that are equal on both sides: they are not touched, and no view is notified of them

The commit requires that the table has the parts that were read: a row that another statement
inserts meanwhile may have a key of a new row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.commit.draft import CommitDraft
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import RetryPolicy, retry_commit
from olapdb.commit.staging import Staging
from olapdb.compute.batches import single_chunk
from olapdb.compute.group_codes import factorise
from olapdb.config import Settings
from olapdb.dml.find_rows import Parameters, matching_offsets
from olapdb.dml.insert_writer import InsertResult
from olapdb.dml.replacement_keys import ReplacementKeys
from olapdb.dml.staged_effects import log_executions, wait_for_merges
from olapdb.errors import HaveDependentObjects, NotSupportedError
from olapdb.ingest.block_parts import layout_of
from olapdb.ingest.block_stager import BlockStager
from olapdb.ingest.read_parts import read_rows
from olapdb.ingest.staged_insert import StagedInsert
from olapdb.ingest.trigger import TriggerContext
from olapdb.ingest.view_failure import with_statements
from olapdb.lineage.effects import TableWrite, effects_of
from olapdb.lineage.row_removal import RowChange, RowRemoval, stored_table
from olapdb.model.changes import AddPart, RemoveParts
from olapdb.model.part import Part
from olapdb.model.requirements import PartsOfPartitionAre, Requirement
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint
from olapdb.sql import nodes
from olapdb.types.arrow_values import from_numpy

ATTEMPTS_MAX = 30
"""Statements that replace disjoint rows of one table at once conflict with each other."""
COMPARED_BYTES_MAX = 256 << 20
COMPARED_ROWS_MAX = 8_000_000
"""New bytes and old rows that are compared in memory. More are exchanged as they are, so that more
slices of views become stale."""

Blocks = Callable[[Snapshot], Iterable[pa.Table]]
Also = Callable[[Snapshot, int], CommitDraft]
"""A function from the snapshot and the number of new rows to what the same commit also requires and
changes."""


def replace_rows(
    origin: CommitOrigin,
    table_id: str,
    replacing: nodes.Replacing,
    blocks: Blocks,
    parameters: Parameters = None,
    *,
    also: Also | None = None,
) -> InsertResult:
    """Insert the rows of `blocks`, and remove those that they replace, in one commit with every
    view.

    `blocks` gives the rows, complete blocks of the table, at a pinned snapshot; it is called again
    after a conflict. Slices of views which removed rows had reached become stale; views fire on the
    added rows. Two NULL keys are equal. Nothing is committed if the same rows leave and
    come, and `also` is None.

    Raises HaveDependentObjects for the target of a view, NotSupportedError for a table that
    deduplicates, and the errors of INSERT and DELETE.
    """
    origin = origin.of_kind("REPLACE")
    policy = RetryPolicy(
        "INSERT … REPLACE",
        f"Other statements wrote to the table {ATTEMPTS_MAX} times while this one ran.",
        "Nothing was changed; run it again.",
        ATTEMPTS_MAX,
        pinned=True,
    )

    def attempt(snapshot: Snapshot) -> InsertResult:
        """Make one attempt with its own staged files; delete them if it does not commit."""
        table = stored_table(snapshot, table_id, "INSERT … REPLACE")
        _refuse(table, snapshot)
        with Staging(origin) as staging:
            exchange = _Exchange(origin, staging, snapshot, table, replacing, parameters, also)
            return exchange.run(blocks(snapshot))

    return retry_commit(origin.services, attempt, policy)


def _refuse(table: Table, snapshot: Snapshot) -> None:
    """Raise the error for a table whose rows no INSERT may replace."""
    name = f"{table.database}.{table.name}"
    views = snapshot.views_into(table.id)
    if views:
        raise HaveDependentObjects(
            f"INSERT … REPLACE: {name} is written by view {views[0].database}.{views[0].name}, which"
            " claims to hold what its query makes.",
            hint=f"Change the source and run SYSTEM REPLAY VIEW"
            f" {views[0].database}.{views[0].name} STALE.",
        )
    if table.is_bounded:
        raise NotSupportedError(
            f"INSERT … REPLACE: {name} has max_rows_to_keep or max_bytes_to_keep, by which other"
            " rows would leave too.",
            hint="Make the table without these settings.",
        )
    if table.engine.is_merge_tree and table.setting("deduplicate_by"):
        raise NotSupportedError(
            f"INSERT … REPLACE: {name} has deduplicate_by, whose remembered keys would reject the"
            " new rows.",
            hint="Say DELETE and INSERT with other keys, or make the table without the setting.",
        )


@dataclass
class _Exchange:
    """One attempt of the statement at one snapshot."""

    origin: CommitOrigin
    staging: Staging
    snapshot: Snapshot
    table: Table
    replacing: nodes.Replacing
    parameters: Parameters
    also: Also | None = None
    _around: TriggerContext = field(init=False)
    _keys: ReplacementKeys = field(init=False)

    def __post_init__(self) -> None:
        self._around = TriggerContext.of(self.origin, self.snapshot)
        self._keys = ReplacementKeys(self.table, self.replacing, self._around, self.parameters)

    def run(self, blocks: Iterable[pa.Table]) -> InsertResult:
        """Stage the new rows, find those that leave, and commit both."""
        stager = BlockStager(self._around, self.origin.services.lease_id)
        try:
            coming, rows = self._draw(blocks, stager)
            leaving = self._leaving()
            if coming is not None:
                coming, leaving = self._without_equal_rows(coming, leaving)
                rows += sum(block.num_rows for block in coming)
                for block in coming:
                    stager.add_block(self.table, block)
        except BaseException:
            staged = stager.staged(self.table.id, 0)
            self.staging.adopt(staged.paths)
            log_executions(self.origin, staged, self.snapshot, committed=False)
            raise
        staged = stager.staged(self.table.id, rows)
        self.staging.adopt(staged.paths)
        if not rows and not leaving and self.also is None:
            return InsertResult(0, 0, None)
        failpoint("insert.staged")
        wait_for_merges(staged, self.snapshot, Settings.of(self.origin.settings))
        also = CommitDraft() if self.also is None else self.also(self.snapshot, rows)
        commit = self._publish(staged, leaving, also)
        failpoint("insert.committed")
        log_executions(self.origin, staged, self.snapshot, committed=True)
        return InsertResult(rows, staged.block_count, commit, views=staged.views)

    def _draw(
        self, blocks: Iterable[pa.Table], stager: BlockStager
    ) -> tuple[list[pa.Table] | None, int]:
        """Note the keys of all blocks. Return the blocks and the number of their rows. If the
        blocks do not fit into memory, stage them and return None with the number."""
        held: list[pa.Table] | None = [] if self._compares() else None
        rows, held_bytes = 0, 0
        for block in blocks:
            self.origin.refuse_cancelled()
            if not block.num_rows:
                continue
            self._keys.note(block)
            if held is not None:
                held.append(block)
                held_bytes += block.nbytes
                if held_bytes <= COMPARED_BYTES_MAX:
                    continue
                waiting, held = held, None
            else:
                waiting = [block]
            for waiting_block in waiting:
                stager.add_block(self.table, waiting_block)
                rows += waiting_block.num_rows
        return held, rows

    def _compares(self) -> bool:
        """Return whether rows that leave and rows that come may be compared, so that equal ones
        stay. They may not in an engine that combines rows: the order of insertion may matter there.
        """
        return not self.table.engine.combines

    # --- what leaves

    def _leaving(self) -> list[tuple[Part, np.ndarray]]:
        """Return the parts with rows that leave, with a mask of these rows."""
        if self._keys.matches_none:
            return []
        parts = [part for part in self.snapshot.parts(self.table.id) if part.rows]
        where = self._keys.condition()
        candidates: Iterable[tuple[Part, np.ndarray | None]] = [(part, None) for part in parts]
        if where is not None:
            candidates = matching_offsets(self._around, self.table, parts, where, self.parameters)
        leaving: list[tuple[Part, np.ndarray]] = []
        for part, offsets in candidates:
            self.origin.refuse_cancelled()
            gone = np.full(part.rows, offsets is None)
            if offsets is not None:
                gone[offsets] = True
            gone &= self._keys.matches(part)
            if gone.any():
                leaving.append((part, gone))
        return leaving

    def _without_equal_rows(
        self, coming: Sequence[pa.Table], leaving: list[tuple[Part, np.ndarray]]
    ) -> tuple[list[pa.Table], list[tuple[Part, np.ndarray]]]:
        """Return what comes and leaves without the rows that are equal: these stay. Return both
        unchanged where more than COMPARED_ROWS_MAX rows leave, or where values of a column cannot be compared.
        """
        rows = sum(int(gone.sum()) for _, gone in leaving)
        new_rows = sum(block.num_rows for block in coming)
        if not rows or not new_rows or rows > COMPARED_ROWS_MAX:
            return list(coming), leaving
        before = [
            read_rows(self._around, self.table, part).filter(from_numpy(gone))
            for part, gone in leaving
        ]
        names = [column.name for column in self.table.stored_columns]
        try:
            both = pa.concat_tables([*before, *coming]).select(names)
            groups = factorise([single_chunk(c) for c in both.columns], both.num_rows)
        except pa.ArrowNotImplementedError:
            return list(coming), leaving
        stays = _stays(groups.codes, rows, groups.count)
        staying_rows = iter(np.split(stays, np.cumsum([t.num_rows for t in (*before, *coming)])))
        still_leaving = []
        for part, gone in leaving:
            left = gone.copy()
            left[gone] = ~next(staying_rows)
            if left.any():
                still_leaving.append((part, left))
        still_coming = [block.filter(from_numpy(~next(staying_rows))) for block in coming]
        return [block for block in still_coming if block.num_rows], still_leaving

    # --- the commit

    def _publish(
        self, staged: StagedInsert, leaving: Sequence[tuple[Part, np.ndarray]], also: CommitDraft
    ) -> int:
        """Commit the staged rows with the removal of those in `leaving` and with `also`; return the
        commit's number."""
        unchanged = PartsOfPartitionAre(
            self.table.id,
            None,
            tuple(sorted(part.id for part in self.snapshot.parts(self.table.id))),
        )
        requirements: list[Requirement] = [*staged.requirements, unchanged, *also.requirements]
        changes = [*with_statements(staged.changes, self.origin), *also.changes]
        if not leaving:
            draft = CommitDraft([self.origin.lease, *requirements], changes)
            write = TableWrite(
                frozenset((self.table.id,)), staged.rows, unsettled=frozenset(staged.unsettled)
            )
            draft.merge(effects_of(self.origin, self.snapshot, write, changes))
            failpoint("insert.before_commit")
            return self.staging.publish(draft).number
        change = RowChange(self.origin, "DELETE")
        removal = RowRemoval(change, self.snapshot, self.table, [part for part, _ in leaving])
        rewritten = [
            replacement
            for part, gone in leaving
            if (replacement := self._remove(removal, part, gone)) is not None
        ]
        removed = RemoveParts(self.table.id, tuple(sorted(part.id for part, _ in leaving)))
        return removal.publish(
            self.staging, requirements, [removed, *rewritten, *changes], frozenset(staged.unsettled)
        )

    def _remove(self, removal: RowRemoval, part: Part, gone: np.ndarray) -> AddPart | None:
        """Add the part's rows in the mask `gone` to `removal`. Stage and return the part of the
        remaining rows; return None if none remain."""
        self.origin.refuse_cancelled()
        if gone.all():
            rows = read_rows(self._around, self.table, part) if removal.reads_rows else None
            removal.add(part, rows, part.rows)
            return None
        rows = read_rows(self._around, self.table, part)
        mask = from_numpy(gone)
        removal.add(part, rows.filter(mask), int(gone.sum()))
        remaining = rows.filter(pc.invert(mask))
        derived = layout_of(self.table, self._around).derived(remaining)
        staged = self.staging.stage_replacement(self.table, part, remaining, derived)
        failpoint("delete.part_rewritten")
        return staged


def _stays(codes: np.ndarray, old_rows: int, groups: int) -> np.ndarray:
    """Return a mask of the rows that stay, since both sides have them. Equal rows have equal
    `codes`; the first `old_rows` rows leave, the others come. Of a row that occurs n times on one
    side and m times on the other, min(n, m) stay on each."""
    old, new = codes[:old_rows], codes[old_rows:]
    common = np.minimum(np.bincount(old, minlength=groups), np.bincount(new, minlength=groups))
    return np.concatenate([_occurrence(side) < common[side] for side in (old, new)])


def _occurrence(codes: np.ndarray) -> np.ndarray:
    """Return for each row how many rows before it have the same code."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(codes) else ordered
    lengths = np.diff(np.r_[starts, len(codes)])
    occurrence = np.empty(len(codes), dtype=np.int64)
    occurrence[order] = np.arange(len(codes)) - np.repeat(starts, lengths)
    return occurrence
