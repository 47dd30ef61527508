"""The stages of one INSERT: stage its blocks, commit, and fire the views again after a conflict.

If views, targets or dimension tables changed between staging and the commit (rule 1), the staged
source parts remain and the views fire again on them. The same happens where a view joined only a
part of what the INSERT itself brings to a dimension (see `own_rows`): the views fire again on all
that the previous firing brought, until two firings agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import pyarrow as pa

from olapdb import errors
from olapdb.commit.draft import CommitDraft, publish
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import ATTEMPTS_MAX, RetryPolicy, retry_commit
from olapdb.config import Settings
from olapdb.dml.delivery import Delivery
from olapdb.dml.settle import settle_cascade
from olapdb.dml.staged_effects import log_executions, wait_for_merges
from olapdb.ingest.block_stager import BlockStager
from olapdb.ingest.deduplicate import Admission
from olapdb.ingest.own_rows import AddedParts
from olapdb.ingest.read_parts import Pin, discard, read_staged
from olapdb.ingest.staged_insert import StagedInsert, ViewWrite
from olapdb.ingest.trigger import TriggerContext
from olapdb.ingest.view_failure import with_statements
from olapdb.lineage.effects import TableWrite, effects_of
from olapdb.lineage.invalidation import invalidate
from olapdb.model.changes import AddBlock, AddPart, Committed
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint
from olapdb.runtime.services import Services

KEY_ATTEMPTS_MAX = 100
"""The limit of attempts where rows are deduplicated: each conflict about keys leaves fewer rows."""
DIMENSION_ATTEMPTS_MAX = 5
"""Attempts after which a changed dimension is no conflict: the commit invalidates the view's
slices."""
BLOCKS_IN_MEMORY_BYTES_MAX = 64 << 20
"""Bytes of an INSERT's blocks to keep in memory for a second firing; larger ones are read back."""


@dataclass(frozen=True, slots=True)
class InsertResult:
    """The outcome of an INSERT. `commit` is None if there was nothing to insert, or where all
    of it was inserted before, by its token or its offsets (`duplicate`). `rows` excludes
    `duplicates_dropped`, the rows whose key already existed."""

    rows: int
    blocks: int
    commit: int | None
    duplicate: bool = False
    views: tuple[ViewWrite, ...] = ()
    duplicates_dropped: int = 0


DUPLICATE = InsertResult(0, 0, None, duplicate=True)


def reads_dimensions(snapshot: Snapshot, table_id: str) -> bool:
    """Return whether a view along the cascade of the table reads another table."""
    waiting, seen = [table_id], set[str]()
    while waiting:
        current_id = waiting.pop()
        if current_id in seen:
            continue
        seen.add(current_id)
        for view in snapshot.views_on(current_id):
            if view.dimension_ids:
                return True
            waiting.append(view.target_id)
    return False


def insert_table(snapshot: Snapshot, table_id: str) -> Table:
    """Return the table with that id in the snapshot. Raise UnknownTable if it is gone."""
    table = snapshot.by_id(table_id)
    if not isinstance(table, Table):
        raise errors.UnknownTable("The table of this INSERT does not exist any more.")
    return table


@dataclass(frozen=True)
class InsertWriter:
    """The stages of one INSERT or commit of staged rows: stage, settle, commit, fire again."""

    origin: CommitOrigin
    delivery: Delivery
    owns_files: bool = True
    """Whether this call staged the files, so that nothing else can refer to them."""
    owns_blocks: bool = False
    """The answer whether the engine alone refers to the memory of the blocks, which then needs no copy."""

    @property
    def services(self) -> Services:
        """Return the services of the origin."""
        return self.origin.services

    def pinned(self, snapshot: Snapshot, table_id: str) -> AbstractContextManager[None]:
        """Pin the snapshot where the cascade reads other tables; most cascades read none."""
        if reads_dimensions(snapshot, table_id):
            return Pin(self.services, snapshot.number)
        return nullcontext()

    def discard(self, paths: Iterable[str]) -> None:
        """Delete files of a commit that certainly did not happen. Leave files that the caller
        staged to vacuum: the caller may have committed them before."""
        if self.owns_files:
            discard(self.services, paths)

    def insert(self, table: Table, blocks: Iterable[pa.Table], snapshot: Snapshot) -> InsertResult:
        """Stage the blocks and their views' rows, wait for merges if needed, then publish.

        Raises QueryWasCancelled."""
        stager = self._stager(snapshot)
        kept: list[pa.Table] | None = []
        rows, kept_bytes = 0, 0
        try:
            for given in blocks:
                if self.origin.cancelled.is_set():
                    raise errors.QueryWasCancelled(
                        "The INSERT was cancelled; nothing was inserted."
                    )
                block = self.delivery.admit(given)
                if block.num_rows == 0:
                    continue
                stager.add_block(table, block)
                rows += block.num_rows
                kept_bytes += block.nbytes
                if kept is not None:
                    kept.append(block)
                    kept = kept if kept_bytes <= BLOCKS_IN_MEMORY_BYTES_MAX else None
        except BaseException:
            failed = stager.staged(table.id, rows)
            self.log(failed, snapshot, committed=False)
            self.discard(failed.paths)
            raise
        if rows == 0 and not self.delivery.has_records:
            return InsertResult(0, 0, None)
        failpoint("insert.staged")
        staged = stager.staged(table.id, rows)
        try:
            wait_for_merges(staged, snapshot, Settings.of(self.origin.settings))
        except errors.Error:
            self.discard(staged.paths)
            raise
        return self.publish(staged, kept, snapshot)

    def publish(
        self, staged: StagedInsert, blocks: list[pa.Table] | None, snapshot: Snapshot
    ) -> InsertResult:
        """Commit, and fire the views again after each conflict. After a few conflicts the INSERT
        takes the catalog's turn, so that frequent changes of views cannot starve it. `blocks`
        holds the blocks where they are in memory; the snapshot is pinned."""
        publication = InsertPublication(
            self, self.settle(staged, blocks, snapshot), blocks, snapshot
        )
        attempts_max = ATTEMPTS_MAX if self.delivery.admission is None else KEY_ATTEMPTS_MAX
        policy = RetryPolicy(
            "INSERT",
            f"The views of this INSERT's table changed {attempts_max} times while it ran.",
            "Nothing was inserted; run it again when they are at rest.",
            attempts_max,
        )
        try:
            return retry_commit(self.services, publication.attempt, policy, first=snapshot)
        except errors.DuplicateInsert:
            return DUPLICATE
        except (errors.CatalogBusy, errors.CommitConflict):  # no further attempt needs them
            self.discard(publication.staged.paths)
            raise

    def commit(
        self, staged: StagedInsert, snapshot: Snapshot, invalidate_joined: bool
    ) -> Committed:
        """Commit what was staged. Any error except CommitConflict (the views fire again) and
        CommitUnknown (the files may belong to the table) deletes the staged files."""
        failpoint("insert.before_commit")
        try:
            return publish(self._draft(staged, snapshot, invalidate_joined), self.origin)
        except (errors.CommitConflict, errors.CommitUnknown):
            raise
        except errors.Error:
            self.discard(staged.paths)
            raise

    def _draft(
        self, staged: StagedInsert, snapshot: Snapshot, invalidate_joined: bool
    ) -> CommitDraft:
        """Compose the commit. With `invalidate_joined` it does not require the joined dimensions to
        be unchanged, and invalidates the views that join them instead."""
        draft = CommitDraft((*self.delivery.requirements(), self.origin.lease))
        draft.change(*with_statements(staged.changes, self.origin))
        if invalidate_joined:
            draft.require(*staged.without_dimension_requirements())
            for view_id in dict.fromkeys(view_id for view_id, _ in staged.dimensions):
                draft.change(
                    invalidate(self.origin, view_id, None, "DIMENSION CHANGE", staged.rows)
                )
        else:
            draft.require(*staged.requirements)
        write = TableWrite(
            frozenset(c.block.table_id for c in staged.changes if isinstance(c, AddBlock)),
            staged.rows,
            compares_rows=not invalidate_joined,
            unsettled=frozenset(staged.unsettled),
        )
        draft.merge(effects_of(self.origin, snapshot, write, staged.changes))
        draft.change(*self.delivery.changes())
        return draft

    def fire_again(
        self,
        staged: StagedInsert,
        kept: list[pa.Table] | None,
        fired_snapshot: Snapshot,
        snapshot: Snapshot,
    ) -> tuple[StagedInsert, list[pa.Table] | None]:
        """Fire the cascade of the current views on the same source parts. Return the new
        staging, and the blocks where they are in memory. Restage a block where a concurrent
        commit inserted some of its keys. Raises TableAltered."""
        table, before = (insert_table(seen, staged.table_id) for seen in (snapshot, fired_snapshot))
        source_parts = staged.parts_of(staged.table_id)
        versions = {p.part.schema_version for p in source_parts}
        same_rows = (
            replace(before.renamed(table.database, table.name), version=table.version) == table
        )
        if versions - {table.version} and not (versions == {before.version} and same_rows):
            self.discard(staged.paths)
            raise errors.TableAltered(
                f"{table.database}.{table.name} was altered while the INSERT ran.",
                hint="Nothing was inserted; run it again.",
            )
        stager = self._stager(snapshot)
        kept_paths: set[str] = set()
        blocks: list[pa.Table] = []
        rows = 0
        try:
            self.delivery.restart(table)
            for index in range(staged.block_count):
                parts = tuple(
                    p for p in source_parts if getattr(p.part.blocks, "index", -1) == index
                )
                kept_block = kept[index] if kept is not None else self._read_back(table, parts)
                block = self.delivery.admit(kept_block)
                if block is kept_block:
                    stager.adopt_block(table, parts, block)
                    kept_paths |= {p.part.path for p in parts}
                elif block.num_rows:
                    stager.add_block(table, block)
                rows += block.num_rows
                if kept is not None and block.num_rows:
                    blocks.append(block)
        except BaseException:
            self.discard((*staged.paths, *stager.staged(table.id, 0).paths))
            raise
        self.discard([path for path in staged.paths if path not in kept_paths])
        return stager.staged(table.id, rows), None if kept is None else blocks

    def settle(
        self, staged: StagedInsert, blocks: list[pa.Table] | None, snapshot: Snapshot
    ) -> StagedInsert:
        """Return the staging after the cascade has joined what the INSERT itself brings, see
        `settle.settled`. Where the blocks cannot be read back, leave the views unsettled; their
        rows become stale."""
        if not staged.unsettled:
            return staged
        if blocks is None and not self._can_read_back(insert_table(snapshot, staged.table_id)):
            return staged

        def fire(joined: AddedParts, before: StagedInsert) -> StagedInsert:
            """Fire the views with the rows that `joined` brings, on top of `before`."""
            return self._fire_with(joined, before, blocks, snapshot)

        return settle_cascade(staged, fire, snapshot, self.services.store, self.discard)

    def _fire_with(
        self,
        joined: AddedParts,
        staged: StagedInsert,
        blocks: list[pa.Table] | None,
        snapshot: Snapshot,
    ) -> StagedInsert:
        """Return the same source parts with the output of a cascade that joins the parts of
        `joined`."""
        table = insert_table(snapshot, staged.table_id)
        source_parts = staged.parts_of(table.id)
        stager = self._stager(snapshot, joined)
        try:
            for index in range(staged.block_count):
                parts = tuple(
                    p for p in source_parts if getattr(p.part.blocks, "index", -1) == index
                )
                block = blocks[index] if blocks is not None else self._read_back(table, parts)
                stager.adopt_block(table, parts, block)
        except BaseException:
            self.discard((*staged.paths, *stager.staged(table.id, 0).paths))
            raise
        return stager.staged(table.id, staged.rows)

    def is_duplicate(self, staged: StagedInsert) -> bool:
        """Return whether another attempt of this INSERT has committed.

        Deletes the staged files if so, and if the check raises.
        """
        try:
            duplicate = self.delivery.is_duplicate()
        except errors.Error:
            self.discard(staged.paths)
            raise
        if duplicate:
            self.discard(staged.paths)
        return duplicate

    def admit_staged(
        self, staged: StagedInsert, table: Table, admission: Admission, snapshot: Snapshot
    ) -> StagedInsert:
        """Return the staging without rows whose key exists already. Usually there are none, and it
        is returned unchanged."""
        trial = Admission.of(self.services, table)
        assert trial is not None
        for part_added in staged.parts_of(table.id):
            trial.admit(read_staged(self.services.store, table, part_added, trial.rule.columns))
        if trial.dropped:
            return self.fire_again(staged, None, snapshot, snapshot)[0]
        admission.take_over(trial)
        return staged

    def _can_read_back(self, table: Table) -> bool:
        """Return whether the staged parts hold the rows of their block unchanged."""
        if not table.engine.stores_rows:
            return False
        settings = Settings.of(self.origin.settings)
        return not (table.engine.combines and settings.boolean("optimize_on_insert"))

    def _read_back(self, table: Table, parts: tuple[AddPart, ...]) -> pa.Table:
        """Read a block back from its staged parts: the same rows, sorted. Raises Aborted if
        it cannot."""
        if not self._can_read_back(table):
            raise errors.Aborted(
                f"The views on {table.database}.{table.name} changed while a large INSERT ran.",
                hint="Nothing was inserted; run it again.",
            )
        pieces = [read_staged(self.services.store, table, part) for part in parts]
        return pa.concat_tables(pieces)

    def _stager(self, snapshot: Snapshot, joined: AddedParts | None = None) -> BlockStager:
        """Return a new block stager at the snapshot, with the rows of `joined` if there are any."""
        context = TriggerContext.of(self.origin, snapshot)
        return BlockStager(
            context, self.services.lease_id, joined=joined, owns_blocks=self.owns_blocks
        )

    def log(self, staged: StagedInsert, snapshot: Snapshot, *, committed: bool) -> None:
        """Record the executions of views, see `log_executions`."""
        log_executions(self.origin, staged, snapshot, committed=committed)


@dataclass
class InsertPublication:
    """The attempts to commit a staged INSERT; each one after the first fires the views again.

    `kept` holds the blocks where they are in memory; the views fired on `snapshot`, which is
    pinned.
    """

    writer: InsertWriter
    staged: StagedInsert
    kept: list[pa.Table] | None
    snapshot: Snapshot
    attempts: int = 0

    def attempt(self, newest: Snapshot) -> InsertResult:
        """Commit once; after the first attempt fire the views again on the newest snapshot first.

        Returns DUPLICATE if another attempt of the same delivery was committed meanwhile.
        """
        writer = self.writer
        if self.attempts:
            if writer.is_duplicate(self.staged):
                return DUPLICATE
            with writer.pinned(newest, self.staged.table_id):
                self.staged, self.kept = writer.fire_again(
                    self.staged, self.kept, self.snapshot, newest
                )
                self.staged = writer.settle(self.staged, self.kept, newest)
            self.snapshot = newest
        self.attempts += 1
        staged = self.staged
        committed = writer.commit(staged, newest, self.attempts > DIMENSION_ATTEMPTS_MAX)
        failpoint("insert.committed")
        writer.log(staged, newest, committed=True)
        return InsertResult(
            staged.rows,
            staged.block_count,
            committed.number,
            views=staged.views,
            duplicates_dropped=writer.delivery.dropped,
        )
