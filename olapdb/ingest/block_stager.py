"""Stages one block: its own parts, and those of every view that it cascades to.

Nothing here touches the catalog; the outcome is data for one commit, see `staged`.  The path of a
block is: sort and split by partition, write, then fire each attached view, by (database, name),
on the whole block as it came; what a view makes is a block of its target, and goes the same way.
A view that joins what another one writes fires after it, and joins what it wrote: see `own_rows`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from dataclasses import field, replace
from functools import cached_property

import pyarrow as pa

from olapdb.compute.shared_group_codes import SharedCodes
from olapdb.config import tuning
from olapdb.errors import Error, QueryWasCancelled, TooDeepRecursion
from olapdb.ingest.block_writer import BlockWriter
from olapdb.ingest.dimension_requirements import dimension_requirements
from olapdb.ingest.own_rows import (
    Cascade,
    JoinedParts,
    added_parts,
    fewest_joined,
    inline_rows_by_part,
    live_and_staged_parts,
)
from olapdb.ingest.parallel_views import run_branches
from olapdb.ingest.staged_insert import (
    StagedInsert,
    ViewWrite,
    join_staged,
    join_views,
    with_shifted_blocks,
)
from olapdb.ingest.trigger import (
    NO_LIMITS,
    BoundView,
    TriggerContext,
    bound_view,
    error_in_view,
    fire,
)
from olapdb.ingest.view_failure import failure_note
from olapdb.ingest.view_guardrails import Cost, ViewLimits
from olapdb.model.changes import AddCoverage, AddPart, Change
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.part import Contribution, NewBlock
from olapdb.model.requirements import ViewsAre
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import target_of
from olapdb.model.view_state import CoverageRow
from olapdb.records import dataclass
from olapdb.result import QueryStatistics
from olapdb.runtime.failpoints import failpoint
from olapdb.threads import ThreadPool

__all__ = ["BlockStager", "StagedInsert", "join_staged", "stage_insert"]

CASCADE_DEPTH_MAX = 64


def stage_insert(
    table: Table, block: pa.Table, context: TriggerContext, lease_id: str
) -> StagedInsert:
    """Stage a block of `table` and the cascade of its views, as of the context's snapshot.

    The block has the table's stored columns, see `olapdb.ingest.block`.  Needs the store, not the
    catalog.  Raises what views raise, naming the view; vacuum then deletes the staged files when
    the lease has ended.
    """
    stager = BlockStager(context, lease_id)
    stager.add_block(table, block)
    return stager.staged(table.id, block.num_rows)


@dataclass(frozen=True)
class Firing:
    """A block on which the views of its table fire; `depth` counts the views above it. `codes` are the group
    codes that the views share."""

    block: pa.Table
    number: NewBlock
    depth: int
    codes: SharedCodes | None

    @cached_property
    def nbytes(self) -> int:
        """The block's size in memory: the same for each of its views."""
        return int(self.block.nbytes)


@dataclass
class BlockStager(BlockWriter):
    """Collects the parts, coverage and requirements of blocks that one commit will publish.

    With `inline` False no part is kept in the catalog (a cluster's tasks).  `parallel` overrides
    the setting parallel_view_processing; None follows it.  `earlier_writes` is the work of the
    views in the same INSERT so far, for its guardrails.  `swap` names a replay, see
    `olapdb.storage.replay_manifest`.  A view that joins a table of the same commit joins the parts
    that are staged of it so far, or those of `joined`, which an earlier firing staged.
    """

    parallel: bool | None = None
    earlier_writes: tuple[ViewWrite, ...] = ()
    joined: Mapping[str, Sequence[AddPart]] | None = None
    _limits: ViewLimits = field(init=False)
    _dimensions: dict[tuple[str, str], None] = field(default_factory=dict)
    _views: list[ViewWrite] = field(default_factory=list)
    _joined: list[JoinedParts] = field(default_factory=list)
    _cascade: Cascade = field(init=False)
    _written_dimensions: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.parallel is None:
            self.parallel = self._settings.boolean("parallel_view_processing")
        self._limits = ViewLimits.of(self._settings)
        self._cascade = Cascade(self.context.snapshot)

    def add_block(self, table: Table, block: pa.Table) -> NewBlock:
        """Stage a block of inserted rows and its cascade; return the block's number in the
        commit."""
        number = self._new_block(table, block.num_rows, "insert")
        self._written_dimensions = self._cascade.written_dimensions(table.id)
        beside = block.num_rows >= tuning.BESIDE_ROWS_MIN and self._has_attached_views(table)
        if beside and table.id not in self._written_dimensions:
            self._write_concurrently(table, block, number)
            return number
        self._write(table, block, number, ())
        failpoint("insert.source_staged")
        self.cascade(table, block, number, 0)
        return number

    def _has_attached_views(self, table: Table) -> bool:
        """Return whether an attached materialized view reads the table."""
        return any(view.attached for view in self.context.snapshot.views_on(table.id))

    def _write_concurrently(self, table: Table, block: pa.Table, number: NewBlock) -> None:
        """Sort and write a large block in a thread while the views fire on it.

        After a failure the parts that were written are among the changes, so that the caller can
        delete them."""
        position = len(self._changes)
        written: list[Change] = []
        with ThreadPool(1, "olapdb-write") as pool:
            writing = pool.submit(self._write, table, block, number, (), written)
            try:
                self.cascade(table, block, number, 0)
            finally:
                wait((writing,))
                self._changes[position:position] = written
            writing.result()
        failpoint("insert.source_staged")

    def adopt_block(self, table: Table, parts: tuple[AddPart, ...], block: pa.Table) -> None:
        """Add a block whose own parts were staged before, and stage its cascade again."""
        number = self._new_block(table, block.num_rows, "insert")
        self._changes.extend(replace(p, part=replace(p.part, blocks=number)) for p in parts)
        self._written_dimensions = self._cascade.written_dimensions(table.id)
        self.cascade(table, block, number, 0)

    def add_view_block(
        self,
        table: Table,
        block: pa.Table,
        contributions: tuple[Contribution, ...],
        kind: str,
        booked_partitions: set[str],
        *,
        fires: bool = True,
        unique: bool = False,
    ) -> NewBlock:
        """Stage a block of a view's target that a backfill or a replay computed; return its number.

        A replay passes `fires` False: views of the target do not process its blocks.  A chunk may
        consist of several blocks.  In each partition of the target only its first part names the
        source blocks, so that the ledger counts each block once; `booked_partitions` collects these
        partitions. `unique` says that no two rows have one sorting key.
        """
        number = self._new_block(table, block.num_rows, kind)
        self._write(
            table, block, number, contributions, booked_partitions=booked_partitions, unique=unique
        )
        if fires:
            self._written_dimensions = self._cascade.written_dimensions(table.id)
            self.cascade(table, block, number, 0)
        return number

    def add_empty_block(self, table: Table) -> NewBlock:
        """Stage a block of a replay without rows, which no view processes; return its number."""
        return self._new_block(table, 0, "backfill")

    def staged(self, table_id: str, rows: int) -> StagedInsert:
        """Return what was staged so far; `rows` are those inserted into `table_id` itself."""
        return StagedInsert(
            table_id=table_id,
            snapshot=self.context.snapshot.number,
            rows=rows,
            block_count=self._next_index.get(table_id, 0),
            requirements=tuple(self._requirements),
            changes=tuple(self._changes),
            dimensions=tuple(self._dimensions),
            views=tuple(self._views),
            joined=fewest_joined(self._joined),
        )

    # --- views

    def cascade(self, table: Table, block: pa.Table, number: NewBlock, depth: int) -> None:
        """Fire the attached views of `table` on its new block, and recursively theirs on their
        output.

        Raises TooDeepRecursion below CASCADE_DEPTH_MAX levels of views.
        """
        views = tuple(v for v in self.context.snapshot.views_on(table.id) if v.attached)
        self._require(ViewsAre(table.id, tuple((v.id, v.version) for v in views)))
        if views and depth >= CASCADE_DEPTH_MAX:
            raise TooDeepRecursion(
                f"Views below {table.database}.{table.name} cascade deeper than"
                f" {CASCADE_DEPTH_MAX}.",
                hint="Look for a circle among the views in system.view_dependencies.",
            )
        if block.num_rows == 0:
            # An empty block triggers no view, but the views cover it.
            for view in views:
                self._cover_empty(view, number, depth)
            return
        large = bool(views) and block.num_rows >= tuning.SHARED_CODES_ROWS_MIN
        firing = Firing(block, number, depth, SharedCodes(block, len(views)) if large else None)
        if self._written_dimensions:
            views = self._cascade.ordered(views)
        elif len(views) > 1 and self.parallel:
            self._fire_in_parallel(views, firing)
            return
        for view in views:
            self._fire(view, firing)

    def _fire_in_parallel(self, views: tuple[MaterializedView, ...], firing: Firing) -> None:
        """Fire each view into a stager of its own; delete what a failing INSERT does not absorb."""
        branches = {
            view.id: BlockStager(
                self.context,
                self.lease_id,
                self.inline,
                parallel=False,
                earlier_writes=tuple(self._views),
                owns_blocks=self.owns_blocks,
            )
            for view in views
        }
        views_by_id = {view.id: view for view in views}
        absorbed: set[str] = set()

        def absorb(view_id: str) -> None:
            """Take over what the view's branch staged."""
            absorbed.add(view_id)
            self._absorb(branches[view_id])

        def fire_branch(view_id: str) -> None:
            """Fire the view in its own branch, whose results stay apart until they are absorbed."""
            branches[view_id]._fire(views_by_id[view_id], firing)

        try:
            run_branches(list(branches), fire_branch, absorb, self.context.settings)
        finally:
            for view_id in branches.keys() - absorbed:
                branches[view_id]._roll_back(0, {})

    def _absorb(self, branch: BlockStager) -> None:
        """Append what a branch staged; its new blocks are numbered after those of this stager."""
        shifts = {table_id: self._next_index.get(table_id, 0) for table_id in branch._next_index}
        self._changes += [with_shifted_blocks(change, shifts) for change in branch._changes]
        for table_id, count in branch._next_index.items():
            self._next_index[table_id] = shifts[table_id] + count
        self._requirements.update(branch._requirements)
        self._dimensions.update(branch._dimensions)
        self._views += branch._views

    def _fire(self, view: MaterializedView, firing: Firing) -> None:
        """Run one view on the block, stage its rows and fire its own cascade. A failure that is
        ignored is staged as a note instead."""
        started = time.perf_counter_ns()
        mark = len(self._changes), dict(self._next_index)
        statistics = QueryStatistics()
        try:
            target, view_rows, view_block = self._trigger(view, firing, statistics)
            write = self._view_write(view, firing, view_rows, mark[0], started, statistics)
        except Error as error:
            self._views.append(
                ViewWrite(
                    view.id,
                    firing.block.num_rows,
                    0,
                    time.perf_counter_ns() - started,
                    bytes_read=firing.nbytes,
                    exception=str(error),
                    exception_code=error.code,
                )
            )
            if not self._ignores_failure(view, error):
                raise
            self._roll_back(*mark)
            self._changes.append(failure_note(view, firing.block.num_rows, error))
            return
        self._views.append(write)
        failpoint("insert.view_fired")
        self.cascade(target, view_rows, view_block, firing.depth + 1)

    def _view_write(
        self,
        view: MaterializedView,
        firing: Firing,
        view_rows: pa.Table,
        first_change: int,
        started: int,
        statistics: QueryStatistics,
    ) -> ViewWrite:
        """Return the view's work on the block, from the changes staged after the first
        `first_change`.

        `started` is in nanoseconds of the performance counter. Raises ViewLimitExceeded if the work
        exceeds a guardrail of the INSERT.
        """
        parts = sum(
            isinstance(c, AddPart) and c.part.rows > 0 for c in self._changes[first_change:]
        )
        written_bytes, read_rows = view_rows.nbytes, firing.block.num_rows
        peak_bytes = max(statistics.memory_peak_bytes, written_bytes)
        write = ViewWrite(
            view.id,
            read_rows,
            view_rows.num_rows,
            time.perf_counter_ns() - started,
            bytes_read=firing.nbytes,
            bytes_written=written_bytes,
            parts=parts,
            peak_bytes=peak_bytes,
        )
        if self._limits == NO_LIMITS:
            return write
        before = [
            earlier
            for earlier in (*self.earlier_writes, *self._views)
            if earlier.view_id == view.id
        ]
        (total,) = join_views((*before, write))
        cost = Cost(
            total.elapsed_ns, view_rows.num_rows / max(1, read_rows), total.parts, peak_bytes
        )
        return replace(write, warnings=self._limits.check(view, cost))

    def _trigger(
        self, view: MaterializedView, firing: Firing, statistics: QueryStatistics
    ) -> tuple[Table, pa.Table, NewBlock]:
        """Run the view on the block and stage its rows; return its target, the rows and their
        block."""
        target = target_of(self.context.snapshot, view)
        try:
            bound = bound_view(view, self.context)
        except Error as error:
            raise error_in_view(view, error) from error
        rows = self._view_rows(view, bound, firing, statistics)
        self._require_dimensions(view)
        contribution = Contribution(
            view.id, view.version, view.source_id, None, (firing.number,), rows.num_rows
        )
        view_block = self._new_block(target, rows.num_rows, "view")
        try:
            self._write(target, rows, view_block, (contribution,), unique=bound.unique)
        except Error as error:
            raise error_in_view(view, error) from error
        self._changes.append(AddCoverage(CoverageRow(view.id, None, firing.number)))
        return target, rows, view_block

    def _view_rows(
        self, view: MaterializedView, bound: BoundView, firing: Firing, statistics: QueryStatistics
    ) -> pa.Table:
        """Run the view on the block and return its rows.

        Its dimensions include the parts that the same commit adds to them.
        """
        context, parts = self.context, None
        late_tables = self._written_dimensions.intersection(view.dimension_ids)
        if late_tables:
            staged: Mapping[str, Sequence[AddPart]] = added_parts(self._changes, late_tables)
            if self.joined is not None:
                staged = {
                    table_id: self.joined[table_id]
                    for table_id in late_tables
                    if table_id in self.joined
                }
            parts = live_and_staged_parts(context.snapshot, staged)
            inline = inline_rows_by_part(
                table_id for tables in staged.values() for table_id in tables
            )
            context = replace(context, snapshot=OverlaySnapshot(context.snapshot, inline=inline))
            self._joined += [
                JoinedParts(view.id, table_id, len(staged.get(table_id, ())))
                for table_id in late_tables
            ]
        return fire(
            bound,
            firing.block,
            context,
            parts=parts,
            limits=self._limits,
            statistics=statistics,
            codes=firing.codes,
        )

    def _ignores_failure(self, view: MaterializedView, error: Error) -> bool:
        """Return whether the view's failure becomes its gap instead of failing the INSERT.

        A cancelled statement is no failure.  A version that a rebuild makes beside a view never
        fails an INSERT: the rebuild stops at its gap."""
        ignored = self._settings.boolean("materialized_views_ignore_errors")
        return bool(ignored or view.standing) and not isinstance(error, QueryWasCancelled)

    def _cover_empty(self, view: MaterializedView, number: NewBlock, depth: int) -> None:
        """Record that the view covers the empty source block `number`.

        Stages an empty target block with a placeholder part, then cascades it to the views of the
        target at `depth` + 1.
        """
        target = target_of(self.context.snapshot, view)
        contribution = Contribution(view.id, view.version, view.source_id, None, (number,), 0)
        new = self._new_block(target, 0, "view")
        self._write(target, pa.table({}), new, (contribution,))
        self._changes.append(AddCoverage(CoverageRow(view.id, None, number)))
        self.cascade(target, pa.table({}), new, depth + 1)

    def _require_dimensions(self, view: MaterializedView) -> None:
        """Require at the commit that the view's dimensions are unchanged since they were read."""
        for requirement, pair in dimension_requirements(view, self.context.snapshot):
            self._require(requirement)
            if pair is not None:
                self._dimensions[pair] = None
