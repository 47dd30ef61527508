"""Attaches whole parts to a table: its detached ones, or parts of another table by reference.

An attached part is a new block of the table and a row of the catalog about the same file. Vacuum
keeps the file as long as any row names it.  Views of the table have not processed the block: it is
their gap, as are rows that are older than the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from olapdb.commit.draft import CommitDraft
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.staging import Staging
from olapdb.dml.null_fill import formerly_nullable, has_retyped_column, read_without_nulls
from olapdb.dml.part_selection import NamedParts
from olapdb.errors import BadArguments, IncompatibleColumns, SupportIsDisabled
from olapdb.ingest.block_parts import layout_of
from olapdb.ingest.staged_insert import StagedInsert
from olapdb.ingest.trigger import TriggerContext
from olapdb.lineage.effects import TableWrite, effects_of
from olapdb.lineage.row_removal import RowChange, stored_table
from olapdb.model.changes import AddBlock, AddPart, Change, RemoveParts
from olapdb.model.columns import next_column_id, settled_version
from olapdb.model.part import NewBlock, Part, detached_table, new_part_id
from olapdb.model.requirements import PartsLive, Requirement, SchemaIs
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint
from olapdb.storage.part_plan import PartPlan, inline_limit


@dataclass(frozen=True, slots=True)
class MoveResult:
    """The outcome of a partition command: rows and parts that were attached, removed or moved;
    `commit` is None if there was nothing to do."""

    rows: int
    parts: int
    commit: int | None


@dataclass
class Incoming:
    """Parts of `source` on their way to `target`, composed as one commit.

    `detached`: they are detached parts of the target itself.
    """

    change: RowChange
    snapshot: Snapshot
    source: Table
    target: Table
    staging: Staging
    detached: bool = False
    draft: CommitDraft = field(default_factory=CommitDraft)

    def add_parts(self, parts: Sequence[Part]) -> None:
        """Add the parts to the draft in the order of their blocks, each as a block of its own.
        Rewrite a part whose file does not fit the target's columns."""
        ordered = sorted(parts, key=lambda p: (p.block_range.first, p.block_range.last, p.id))
        context = self.change.context(self.snapshot)
        for index, part in enumerate(ordered):
            block = NewBlock(self.target.id, index)
            self.draft.change(AddBlock(block, part.rows, "attach"))
            self.draft.change(self._attached_part(part, block, context))
            failpoint("attach.part_staged")
        owner = detached_table(self.source.id) if self.detached else self.source.id
        self.draft.require(
            SchemaIs(self.source.id, self.source.version),
            PartsLive(owner, tuple(sorted(part.id for part in ordered))),
            SchemaIs(self.target.id, self.target.version),
        )

    def add_dimension_effects(self) -> None:
        """Add the effects of the new rows on views that join the target; call it after all other
        changes."""
        rows = sum(c.rows for c in self.draft.changes if isinstance(c, AddBlock))
        write = TableWrite(frozenset((self.target.id,)), rows)
        origin = self.change.origin
        self.draft.merge(effects_of(origin, self.snapshot, write, self.draft.changes))

    def publish(self, parts: Sequence[Part], *requirements: Requirement) -> MoveResult:
        """Commit the draft, with its effects on views that join the target."""
        self.add_dimension_effects()
        draft = CommitDraft((self.change.origin.lease, *self.draft.requirements, *requirements))
        draft.change(*self.draft.changes)
        failpoint("delete.before_commit")
        commit = self.staging.publish(draft)
        return MoveResult(sum(part.rows for part in parts), len(parts), commit.number)

    def _attached_part(self, part: Part, block: NewBlock, context: TriggerContext) -> AddPart:
        """Return the change that adds the part to the target as `block`: the same file if its
        columns fit, else a new part of its rows."""
        same_engine = (
            self.source.engine == self.target.engine
            and self.source.sorting_key == self.target.sorting_key
        )
        level = part.level if same_engine else 0
        converted = self._same_table and has_retyped_column(self.target, part)
        if can_share_file(part, self.source, self.target) and not converted:
            version = part.schema_version if self._same_table else _newest_version(self.target)
            names = {column.name for column in self.target.stored_columns}
            bounds = {name: ends for name, ends in part.bounds.items() if name in names}
            attached = replace(
                part,
                id=new_part_id(),
                table_id=self.target.id,
                blocks=block,
                level=level,
                bounds=bounds,
                contributions=(),
                schema_version=version,
                created_commit=0,
                detached_reason="",
                created_ms=self.change.origin.now_ms(),
            )
            return AddPart(attached, self.snapshot.inline_rows(part) if part.inline else None)
        rows, _ = read_without_nulls(
            context, self.source, part, formerly_nullable(self.source, part)
        )
        rows = rows.select([column.name for column in self.target.stored_columns])
        plan = PartPlan(
            part.partition_id,
            part.partition_value,
            block,
            level=level,
            inline_bytes_max=inline_limit(self.target, (part,)),
            after=self.snapshot.next_block(self.target) - 1,
            derived=layout_of(self.target, context).derived(rows),
        )
        return self.staging.stage_part(self.target, rows, plan)

    @property
    def _same_table(self) -> bool:
        """Return whether the parts come from the target table itself (its detached parts)."""
        return self.source.id == self.target.id


def _newest_version(table: Table) -> int:
    """Return a version that has all of the table's columns (a table in creation has version 1,
    while its columns may be newer)."""
    return max(table.version, settled_version(table))


def can_share_file(part: Part, source: Table, target: Table) -> bool:
    """Return whether the part's bytes read the same through the target: columns are found by id,
    and missing ones are filled by the table's own defaults. The part may hold columns that the
    source dropped: their ids must differ from those that the target gives next."""
    if source.id == target.id:
        return True
    if part.schema_version < settled_version(source):
        return False
    if next_column_id(source) > next_column_id(target):
        return False
    ids = {(c.name, c.id) for c in source.stored_columns}
    return ids == {(c.name, c.id) for c in target.stored_columns}


def check_structure(source: Table, target: Table) -> None:
    """Raise IncompatibleColumns or BadArguments unless parts of the one table can be parts of the
    other, as in ClickHouse (MergeTreeData::checkStructureAndGetMergeTreeData)."""
    own = {(c.name, c.type.name) for c in source.stored_columns}
    wanted = {(c.name, c.type.name) for c in target.stored_columns}
    names = f"{source.database}.{source.name} and {target.database}.{target.name}"
    if own != wanted:
        differing = ", ".join(sorted({f"{name} {kind}" for name, kind in own ^ wanted}))
        raise IncompatibleColumns(
            f"Tables {names} have different structure: {differing}.",
            hint="Partitions go between tables of the same columns; INSERT … SELECT converts.",
        )
    for what, source_key, target_key in (
        ("ordering", source.sorting_key, target.sorting_key),
        ("partition key", source.partition_key, target.partition_key),
        ("primary key", source.primary_key, target.primary_key),
    ):
        if source_key != target_key:
            raise BadArguments(
                f"Tables {names} have different {what}.",
                hint="Partitions go between tables of the same keys; INSERT … SELECT sorts anew.",
            )


# --- statements ----------------------------------------------------------------------------------


def attach_detached(change: RowChange, table_id: str, selection: NamedParts) -> MoveResult:
    """Attach the detached parts of the table that `selection` names as new blocks."""

    def attempt(snapshot: Snapshot, staging: Staging) -> MoveResult:
        """Attach the chosen detached parts in one commit."""
        table = stored_table(snapshot, table_id, change.cause, any_engine=True)
        parts = selection.choose(table, snapshot.parts(detached_table(table.id)), detached=True)
        incoming = Incoming(change, snapshot, table, table, staging, detached=True)
        gone = RemoveParts(detached_table(table.id), tuple(sorted(p.id for p in parts)))
        return _publish(incoming, parts, [gone])

    return change.until_published(attempt)


def attach_from(
    change: RowChange, table_id: str, selection: NamedParts, source_id: str
) -> MoveResult:
    """Attach the selected parts of another table by reference; the other table keeps them."""

    def attempt(snapshot: Snapshot, staging: Staging) -> MoveResult:
        """Attach the source's chosen parts by reference, in one commit; the source keeps them."""
        table = stored_table(snapshot, table_id, change.cause)
        source = stored_table(snapshot, source_id, change.cause)
        check_structure(source, table)
        parts = selection.choose(source, snapshot.parts(source.id))
        return _publish(Incoming(change, snapshot, source, table, staging), parts, [])

    return change.until_published(attempt)


def drop_detached(change: RowChange, table_id: str, selection: NamedParts) -> MoveResult:
    """Remove the selected detached parts of the table for good; nothing happens without any."""

    def attempt(snapshot: Snapshot, staging: Staging) -> MoveResult:
        """Remove the chosen detached parts in one commit; commit nothing if there are none."""
        table = stored_table(snapshot, table_id, change.cause, any_engine=True)
        owner = detached_table(table.id)
        parts = selection.choose(table, snapshot.parts(owner), detached=True)
        if not parts:
            return MoveResult(0, 0, None)
        ids = tuple(sorted(part.id for part in parts))
        draft = CommitDraft([change.origin.lease, PartsLive(owner, ids)], [RemoveParts(owner, ids)])
        failpoint("delete.before_commit")
        commit = staging.publish(draft)
        return MoveResult(sum(part.rows for part in parts), len(parts), commit.number)

    return change.until_published(attempt)


def with_columns_of(table: Table, source: Table | None) -> Table:
    """Return the table of CLONE AS with the column ids of the source, so that it can share the
    source's parts. Without a source return it unchanged."""
    if source is None:
        return table
    columns = tuple(replace(column, since=1) for column in source.columns)
    return replace(table, columns=columns, last_column_id=source.last_column_id)


def cloned_parts(
    staging: Staging, origin: CommitOrigin, snapshot: Snapshot, source: Table, target: Table
) -> StagedInsert:
    """Return all parts of the source as an INSERT into a table that the same commit creates (CLONE
    AS).

    `staging` owns the files written for it; `StagedInsert.paths` includes the source's files.

    Raises SupportIsDisabled.
    """
    if not source.engine.is_merge_tree:
        raise SupportIsDisabled(
            f"CLONE AS needs a table of the MergeTree family, not {source.engine.name}.",
            hint="CREATE TABLE … AS SELECT * FROM it copies the rows.",
        )
    check_structure(source, target)
    incoming = Incoming(RowChange(origin, "ATTACH PARTITION"), snapshot, source, target, staging)
    parts = [part for part in snapshot.parts(source.id) if part.rows]
    incoming.add_parts(parts)
    return StagedInsert(
        target.id,
        snapshot.number,
        sum(part.rows for part in parts),
        len(parts),
        incoming.draft.requirements,
        tuple(incoming.draft.changes),
    )


def _publish(incoming: Incoming, parts: Sequence[Part], changes: Sequence[Change]) -> MoveResult:
    """Add `parts` and `changes` to the draft and commit it; commit nothing without parts."""
    if not parts:
        return MoveResult(0, 0, None)
    incoming.draft.change(*changes)
    incoming.add_parts(parts)
    return incoming.publish(parts)
