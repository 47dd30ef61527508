"""Stages one block: its own parts, and those of every view that it cascades to.

Nothing here touches the catalog; the outcome is data for one commit, see `staged`.  The path of a
block is: sort and split by partition, write, then fire each attached view, by (database, name),
on the whole block as it came; what a view makes is a block of its target, and goes the same way.
A view that joins what another one writes fires after it, and joins what it wrote: see `own_rows`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field, replace

import pyarrow as pa

from olapdb.compute.shared_group_codes import SharedCodes
from olapdb.config import SESSION_SETTINGS, Settings, tuning
from olapdb.engine.combine import combine
from olapdb.engine.layout import TableLayout, shared_layout
from olapdb.engine.replacing_collapsing import check_markers
from olapdb.errors import Error, QueryWasCancelled, TooDeepRecursion, TooManyParts
from olapdb.functions.base import Environment
from olapdb.ingest.own_rows import Cascade, Joined, brought, inline_of, least, parts_with
from olapdb.ingest.parallel_views import run_branches
from olapdb.ingest.staged_insert import StagedInsert, ViewWrite, join_staged, join_views, shifted
from olapdb.ingest.trigger import NO_LIMITS, BoundView, TriggerContext, bound_view, fire, pushing_to
from olapdb.ingest.view_failure import failure_note
from olapdb.ingest.view_guardrails import Cost, ViewLimits
from olapdb.model.changes import (
    AddBlock,
    AddCoverage,
    AddPart,
    Change,
    PartsOfPartitionAre,
    Requirement,
    SchemaIs,
    ViewsAre,
)
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.part import Blocks, Contribution, NewBlock, Part, new_part_id
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.model.view_state import CoverageRow
from olapdb.result import QueryStatistics
from olapdb.runtime.cache import Cache
from olapdb.runtime.failpoints import failpoint
from olapdb.storage.part_plan import PartPlan
from olapdb.storage.store import Store
from olapdb.storage.writer import write_part
from olapdb.threads import ThreadPool

__all__ = ["BlockStager", "StagedInsert", "join_staged", "stage_insert"]

CASCADE_DEPTH_MAX = 64
INLINE_BYTES_MAX = int(SESSION_SETTINGS["inline_bytes_max"].default)
INLINE_ROWS_MAX = 10_000
INLINE_PARTS_UNCOUNTED = 256
INLINE_TABLE_BYTES_MAX = INLINE_PARTS_UNCOUNTED * INLINE_BYTES_MAX
"""What the catalog keeps of a table at most; so few parts as `UNCOUNTED` cannot be more."""


def stage_insert(
    table: Table,
    block: pa.Table,
    snapshot: Snapshot,
    store: Store,
    lease_id: str,
    *,
    settings: Mapping[str, object],
    environment: Environment,
    cache: Cache,
    cancelled: threading.Event | None = None,
) -> StagedInsert:
    """Stages a block of `table` and the cascade of its views, as they are at `snapshot`.

    The block has the table's stored columns, see `olapdb.ingest.block`.  Runs anywhere that has
    the store.  Raises what views raise, naming the view; staged files are then the lease's
    leavings, for vacuum.
    """
    around = TriggerContext(
        snapshot, store, cache, settings, environment, cancelled or threading.Event()
    )
    stager = BlockStager(around, lease_id)
    stager.add_block(table, block)
    return stager.staged(table.id, block.num_rows)


@dataclass
class BlockStager:
    """Collects the parts, coverage and requirements of blocks that one commit will publish.

    `inline` False keeps every part out of the catalog (a cluster's tasks); `swap`: of a replay, see
    `olapdb.storage.replay_manifest`.  `parallel` None: as
    the setting parallel_view_processing says; `earlier` is what the views did before, in the same
    INSERT.  `joined` None: a view that joins a table of the same commit joins what is staged of it
    so far; else these parts, which an earlier firing staged.
    """

    around: TriggerContext
    lease_id: str
    inline: bool = True
    parallel: bool | None = None
    earlier: tuple[ViewWrite, ...] = ()
    swap: str = ""
    joined: Mapping[str, Sequence[AddPart]] | None = None
    _limits: ViewLimits = field(init=False)
    _changes: list[Change] = field(default_factory=list)
    _requirements: dict[Requirement, None] = field(default_factory=dict)
    _dimensions: dict[tuple[str, str], None] = field(default_factory=dict)
    _views: list[ViewWrite] = field(default_factory=list)
    _next_index: dict[str, int] = field(default_factory=dict)
    _joined: list[Joined] = field(default_factory=list)
    _cascade: Cascade = field(init=False)
    _late: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._settings = Settings.of(self.around.settings)
        if self.parallel is None:
            self.parallel = self._settings.boolean("parallel_view_processing")
        self._limits = ViewLimits.of(self._settings)
        self._cascade = Cascade(self.around.snapshot)

    def add_block(self, table: Table, block: pa.Table) -> NewBlock:
        """A block of rows that no view made, and all that it triggers."""
        number = self._new_block(table, block.num_rows, "insert")
        self._late = self._cascade.late_tables(table.id)
        beside = block.num_rows >= tuning.BESIDE_ROWS_MIN and self._is_watched(table)
        if beside and table.id not in self._late:
            self._write_beside(table, block, number)
            return number
        self._write(table, block, number, ())
        failpoint("insert.source_staged")
        self.cascade(table, block, number, 0)
        return number

    def _is_watched(self, table: Table) -> bool:
        return any(view.attached for view in self.around.snapshot.views_on(table.id))

    def _write_beside(self, table: Table, block: pa.Table, number: NewBlock) -> None:
        """A large block is sorted and written by a thread of its own while the views fire on it.
        Whatever fails, what was written is among the changes, for whoever discards it."""
        at = len(self._changes)
        written: list[Change] = []
        with ThreadPool(1, "olapdb-write") as pool:
            writing = pool.submit(self._write, table, block, number, (), written)
            try:
                self.cascade(table, block, number, 0)
            finally:
                wait((writing,))
                self._changes[at:at] = written
            writing.result()
        failpoint("insert.source_staged")

    def adopt_block(self, table: Table, parts: tuple[AddPart, ...], block: pa.Table) -> None:
        """A block whose own parts were staged before: only its cascade is made anew."""
        mine = self._new_block(table, block.num_rows, "insert")
        self._changes.extend(replace(p, part=replace(p.part, blocks=mine)) for p in parts)
        self._late = self._cascade.late_tables(table.id)
        self.cascade(table, block, mine, 0)

    def add_view_block(
        self,
        table: Table,
        block: pa.Table,
        contributions: tuple[Contribution, ...],
        kind: str,
        booked: set[str],
        *,
        fires: bool = True,
    ) -> NewBlock:
        """A block of a view's target that a backfill or a replay made; a replay fires nothing.

        A chunk may come as several blocks: in each partition of the target its first part names
        the source blocks, so that the ledger finds each block once; `booked` remembers where."""
        number = self._new_block(table, block.num_rows, kind)
        self._write(table, block, number, contributions, booked=booked)
        if fires:
            self._late = self._cascade.late_tables(table.id)
            self.cascade(table, block, number, 0)
        return number

    def staged(self, table_id: str, rows: int) -> StagedInsert:
        return StagedInsert(
            table_id=table_id,
            snapshot=self.around.snapshot.number,
            rows=rows,
            block_count=self._next_index.get(table_id, 0),
            requirements=tuple(self._requirements),
            changes=tuple(self._changes),
            dimensions=tuple(self._dimensions),
            views=tuple(self._views),
            joined=least(self._joined),
        )

    # --- one block

    def _new_block(self, table: Table, rows: int, kind: str) -> NewBlock:
        index = self._next_index.get(table.id, 0)
        self._next_index[table.id] = index + 1
        number = NewBlock(table.id, index)
        self._changes.append(AddBlock(number, rows, kind))  # type: ignore[arg-type]
        self._require(SchemaIs(table.id, table.version))
        return number

    def _write(
        self,
        table: Table,
        block: pa.Table,
        number: Blocks,
        contributions: tuple[Contribution, ...],
        into: list[Change] | None = None,
        *,
        booked: set[str] | None = None,
        unique: bool = False,
    ) -> None:
        """Stages the block's parts; `into` (None: our changes) has each one as it is written."""
        if table.engine.name == "Null":
            return
        changes = self._changes if into is None else into
        pieces = self._pieces(table, block, unique) if block.num_rows else []
        for partition_id, partition_value, rows in pieces:
            again = booked is not None and partition_id in booked
            inline_bytes_max = self._inline_bytes(table, rows)
            in_file = rows.nbytes > inline_bytes_max
            staged = write_part(
                self.around.store,
                table,
                rows,
                PartPlan(
                    partition_id,
                    partition_value,
                    number,
                    _without_blocks(contributions) if again else contributions,
                    inline_bytes_max=inline_bytes_max,
                    swap=self.swap,
                    after=self.around.snapshot.next_block(table) - 1 if in_file else None,
                    index_values=layout_of(table, self.around).index_values(rows),
                ),
                lease_id=self.lease_id,
                threads=self._settings.threads,
            )
            changes.append(AddPart(staged.part, staged.inline_rows))
            if booked is not None:
                booked.add(partition_id)
        if not pieces and contributions:
            changes.append(AddPart(placeholder_part(table, number, contributions)))

    def _pieces(
        self, table: Table, block: pa.Table, unique: bool
    ) -> list[tuple[str, tuple[object, ...], pa.Table]]:
        """The block as sorted rows by partition; merging engines' rows combined. `unique`: no two
        rows have one sorting key."""
        check_markers(table, block)
        layout = layout_of(table, self.around)
        # A block is sorted, and combined, before it is split: once, not for each of a thousand
        # partitions.  The partitions of a large one are often sorted already.
        combines = table.engine.combines and self._settings.boolean("optimize_on_insert")
        if block.num_rows > tuning.SORTED_WHOLE_ROWS_MAX:
            split = [(i, v, layout.sort(rows)) for i, v, rows in layout.split(block)]
        elif combines and layout.keys_within_partitions:
            split = layout.split(combine(table, layout.sort(block), layout, unique=unique))
            combines = False
        else:
            split = layout.split(layout.sort(block))
        limit = self._settings.integer("max_partitions_per_insert_block")
        if limit and len(split) > limit:
            raise TooManyParts(
                f"One block of {table.database}.{table.name} has rows of {len(split)} partitions,"
                f" max_partitions_per_insert_block is {limit}.",
                hint="Partition more coarsely, insert in the order of the partition key,"
                " or raise the setting (0 is no limit).",
            )
        if combines:
            split = [(i, v, combine(table, r, layout, unique=unique)) for i, v, r in split]
        return [one for one in split if one[2].num_rows]

    def _inline_bytes(self, table: Table, rows: pa.Table) -> int:
        if not self.inline or rows.num_rows > INLINE_ROWS_MAX:
            return 0
        limit = self._settings.integer("inline_bytes_max")
        limit = min(limit, int(table.setting("inline_bytes_max")))
        parts = self.around.snapshot.parts(table.id) if limit else ()
        if len(parts) < INLINE_PARTS_UNCOUNTED:
            return limit
        held = sum(part.bytes for part in parts if part.inline)
        return limit if held + rows.nbytes <= INLINE_TABLE_BYTES_MAX else 0

    # --- views

    def cascade(self, table: Table, block: pa.Table, number: NewBlock, depth: int) -> None:
        """Fires the attached views of `table` on its new block, and theirs on what they make."""
        views = tuple(v for v in self.around.snapshot.views_on(table.id) if v.attached)
        self._require(ViewsAre(table.id, tuple((v.id, v.version) for v in views)))
        if views and depth >= CASCADE_DEPTH_MAX:
            raise TooDeepRecursion(
                f"Views below {table.database}.{table.name} cascade deeper than"
                f" {CASCADE_DEPTH_MAX}.",
                hint="Look for a circle among the views in system.view_dependencies.",
            )
        if block.num_rows == 0:
            # The block contributed nothing: an empty block triggers no view, but is covered.
            for view in views:
                self._cover_void(view, number, depth)
            return
        large = bool(views) and block.num_rows >= tuning.SHARED_CODES_ROWS_MIN
        codes = SharedCodes(block, len(views)) if large else None
        if self._late:
            views = self._cascade.ordered(views)
        elif len(views) > 1 and self.parallel:
            self._fire_in_parallel(views, block, number, depth, codes)
            return
        for view in views:
            self._fire(view, block, number, depth, codes)

    def _fire_in_parallel(
        self,
        views: tuple[MaterializedView, ...],
        block: pa.Table,
        number: NewBlock,
        depth: int,
        codes: SharedCodes | None,
    ) -> None:
        """Each view into a branch; what was staged and is not absorbed goes again."""
        branches = {
            view.id: BlockStager(self.around, self.lease_id, self.inline, False, tuple(self._views))
            for view in views
        }
        of = {view.id: view for view in views}
        absorbed: set[str] = set()

        def absorb(view_id: str) -> None:
            absorbed.add(view_id)
            self._absorb(branches[view_id])

        def fire_branch(view_id: str) -> None:
            branches[view_id]._fire(of[view_id], block, number, depth, codes)

        try:
            run_branches(list(branches), fire_branch, absorb, self.around.settings)
        finally:
            for view_id in branches.keys() - absorbed:
                branches[view_id]._undo(0, {})

    def _absorb(self, branch: BlockStager) -> None:
        """What a branch has staged, its new blocks numbered on from ours."""
        shifts = {table_id: self._next_index.get(table_id, 0) for table_id in branch._next_index}
        self._changes += [shifted(change, shifts) for change in branch._changes]
        for table_id, count in branch._next_index.items():
            self._next_index[table_id] = shifts[table_id] + count
        self._requirements.update(branch._requirements)
        self._dimensions.update(branch._dimensions)
        self._views += branch._views

    def _fire(
        self,
        view: MaterializedView,
        block: pa.Table,
        number: NewBlock,
        depth: int,
        codes: SharedCodes | None,
    ) -> None:
        started = time.perf_counter_ns()
        mark = len(self._changes), dict(self._next_index)
        statistics = QueryStatistics()
        try:
            target, made, new = self._trigger(view, block, number, statistics, codes)
            write = self._measured(view, block, made, mark[0], started, statistics)
        except Error as error:
            self._views.append(
                ViewWrite(
                    view.id,
                    block.num_rows,
                    0,
                    time.perf_counter_ns() - started,
                    bytes_read=block.nbytes,
                    exception=str(error),
                    exception_code=error.code,
                )
            )
            if not self._ignores(view, error):
                raise
            self._undo(*mark)
            self._changes.append(failure_note(view, block.num_rows, error))
            return
        self._views.append(write)
        failpoint("insert.view_fired")
        self.cascade(target, made, new, depth + 1)

    def _measured(
        self,
        view: MaterializedView,
        block: pa.Table,
        made: pa.Table,
        mark: int,
        started: int,
        statistics: QueryStatistics,
    ) -> ViewWrite:
        """What the firing came to; ViewLimitExceeded where the view has cost the INSERT too much."""
        parts = sum(isinstance(c, AddPart) and c.part.rows > 0 for c in self._changes[mark:])
        peak_bytes = max(statistics.memory_peak_bytes, made.nbytes)
        write = ViewWrite(
            view.id,
            block.num_rows,
            made.num_rows,
            time.perf_counter_ns() - started,
            bytes_read=block.nbytes,
            bytes_written=made.nbytes,
            parts=parts,
            peak_bytes=peak_bytes,
        )
        if self._limits == NO_LIMITS:
            return write
        before = [one for one in (*self.earlier, *self._views) if one.view_id == view.id]
        (total,) = join_views((*before, write))
        cost = Cost(
            total.elapsed_ns, made.num_rows / max(1, block.num_rows), total.parts, peak_bytes
        )
        return replace(write, warnings=self._limits.check(view, cost))

    def _trigger(
        self,
        view: MaterializedView,
        block: pa.Table,
        number: NewBlock,
        statistics: QueryStatistics,
        codes: SharedCodes | None,
    ) -> tuple[Table, pa.Table, NewBlock]:
        """Stages what the view makes of the block: its target, the rows, their block."""
        target = target_of(self.around.snapshot, view)
        try:
            bound = bound_view(view, self.around)
        except Error as error:
            raise pushing_to(view, error) from error
        made = self._made(view, bound, block, statistics, codes)
        self._require_dimensions(view)
        contribution = Contribution(
            view.id, view.version, view.source_id, None, (number,), made.num_rows
        )
        new = self._new_block(target, made.num_rows, "view")
        try:
            self._write(target, made, new, (contribution,), unique=bound.unique)
        except Error as error:
            raise pushing_to(view, error) from error
        self._changes.append(AddCoverage(CoverageRow(view.id, None, number)))
        return target, made, new

    def _made(
        self,
        view: MaterializedView,
        bound: BoundView,
        block: pa.Table,
        statistics: QueryStatistics,
        codes: SharedCodes | None,
    ) -> pa.Table:
        """What the view makes of the block; it joins what the commit brings to its dimensions."""
        around, parts = self.around, None
        late = self._late.intersection(view.dimension_ids)
        if late:
            staged: Mapping[str, Sequence[AddPart]] = brought(self._changes, late)
            if self.joined is not None:
                staged = {one: self.joined[one] for one in late if one in self.joined}
            parts = parts_with(around.snapshot, staged)
            inline = inline_of(one for found in staged.values() for one in found)
            around = replace(around, snapshot=OverlaySnapshot(around.snapshot, inline=inline))
            self._joined += [Joined(view.id, one, len(staged.get(one, ()))) for one in late]
        return fire(
            bound,
            block,
            around,
            parts=parts,
            limits=self._limits,
            statistics=statistics,
            codes=codes,
        )

    def _ignores(self, view: MaterializedView, error: Error) -> bool:
        """Whether the failure becomes a gap; that the statement was cancelled is no failure.

        A version beside a view never fails an INSERT: a rebuild stops at its gap."""
        ignored = self._settings.boolean("materialized_views_ignore_errors")
        return bool(ignored or view.standing) and not isinstance(error, QueryWasCancelled)

    def _undo(self, changes: int, next_index: dict[str, int]) -> None:
        """Back to `changes` staged changes; the files of the others are deleted."""
        for change in self._changes[changes:]:
            if isinstance(change, AddPart) and change.part.path:
                self.around.store.delete(change.part.path)
        del self._changes[changes:]
        self._next_index = next_index

    def _cover_void(self, view: MaterializedView, number: NewBlock, depth: int) -> None:
        target = target_of(self.around.snapshot, view)
        contribution = Contribution(view.id, view.version, view.source_id, None, (number,), 0)
        new = self._new_block(target, 0, "view")
        self._write(target, pa.table({}), new, (contribution,))
        self._changes.append(AddCoverage(CoverageRow(view.id, None, number)))
        self.cascade(target, pa.table({}), new, depth + 1)

    def _require_dimensions(self, view: MaterializedView) -> None:
        """What was read of other tables must be what they hold at the commit."""
        for requirement, pair in dimension_requirements(view, self.around.snapshot):
            self._require(requirement)
            if pair is not None:
                self._dimensions[pair] = None

    def _require(self, requirement: Requirement) -> None:
        self._requirements[requirement] = None


def dimension_requirements(
    view: MaterializedView, snapshot: Snapshot
) -> list[tuple[Requirement, tuple[str, str] | None]]:
    """(requirement, (view, table) of a dimension's rows) for every table but the source. Rows of
    dimensions that are read at_insert may change while they are read: nothing keeps up with them."""
    needed: list[tuple[Requirement, tuple[str, str] | None]] = []
    for table_id in view.dimension_ids:
        found = snapshot.by_id(table_id)
        if not isinstance(found, Table):
            continue
        ids = tuple(sorted(part.id for part in snapshot.parts(table_id)))
        needed.append((SchemaIs(table_id, found.version), None))
        if view.dimension_mode == "current":
            needed.append((PartsOfPartitionAre(table_id, None, ids), (view.id, table_id)))
    return needed


def _without_blocks(contributions: tuple[Contribution, ...]) -> tuple[Contribution, ...]:
    return tuple(replace(one, blocks=()) for one in contributions)


def layout_of(table: Table, around: TriggerContext) -> TableLayout:
    """Return the table's layout from the context's cache, under the zone of the warehouse."""
    return shared_layout(table, around.cache, around.environment.zone)


PLACEHOLDER_PARTITION = ""
"""The partition of placeholder parts, which belong to no partition of the table."""


def placeholder_part(table: Table, number: Blocks, contributions: tuple[Contribution, ...]) -> Part:
    """Return a part without rows, which records contributions that produced no rows."""
    return Part(
        id=new_part_id(),
        table_id=table.id,
        partition_id=PLACEHOLDER_PARTITION,
        partition_value=(),
        rows=0,
        bytes=0,
        blocks=number,
        schema_version=table.version,
        contributions=contributions,
        created_ms=time.time_ns() // 1_000_000,
    )
