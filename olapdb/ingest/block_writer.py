"""Writes the parts of blocks for one commit: each block is sorted, split by partition and written.

Nothing here touches the catalog; the changes and requirements are data for the commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

import pyarrow as pa

from olapdb.config import Settings, tuning
from olapdb.ingest.block_parts import (
    has_own_memory,
    inline_bytes_limit,
    layout_of,
    partition_pieces,
    placeholder_part,
)
from olapdb.ingest.trigger import TriggerContext
from olapdb.model.changes import AddBlock, AddPart, Change
from olapdb.model.part import Blocks, Contribution, NewBlock
from olapdb.model.requirements import Requirement, SchemaIs
from olapdb.model.schema import Table
from olapdb.records import dataclass
from olapdb.storage.part_plan import PartPlan
from olapdb.storage.writer import write_part


@dataclass
class BlockWriter:
    """Collects the parts of blocks, and the requirements of the commit that publishes them.

    With `inline` False no part is kept in the catalog (a cluster's tasks). `swap` names a replay,
    see `olapdb.storage.replay_manifest`. `owns_blocks` says that nothing but the engine has the
    memory of the blocks, so that the column cache may keep it: rows of a query or of parts, not
    those of the caller."""

    context: TriggerContext
    lease_id: str
    inline: bool = True
    swap: str = ""
    owns_blocks: bool = False
    _changes: list[Change] = field(default_factory=list)
    _requirements: dict[Requirement, None] = field(default_factory=dict)
    _next_index: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._settings = Settings.of(self.context.settings)

    def _new_block(self, table: Table, rows: int, kind: str) -> NewBlock:
        """Add the table's next block, of `rows` rows, and require that its schema is unchanged."""
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
        changes_to: list[Change] | None = None,
        *,
        booked_partitions: set[str] | None = None,
        unique: bool = False,
    ) -> None:
        """Stage the block's parts; append each to `changes_to` (None: the stager's changes) once
        written.

        Parts of partitions in `booked_partitions` leave out the source blocks of `contributions`;
        `booked_partitions` grows by the block's partitions. `unique` says that no two rows have one
        sorting key. A Null table stores nothing; a block without rows gives a placeholder part if
        it has contributions.
        """
        if table.engine.name == "Null":
            return
        changes = self._changes if changes_to is None else changes_to
        pieces = (
            partition_pieces(table, block, self.context, self._settings, unique=unique)
            if block.num_rows
            else []
        )
        for partition_id, partition_value, rows in pieces:
            again = booked_partitions is not None and partition_id in booked_partitions
            plan = PartPlan(
                partition_id,
                partition_value,
                number,
                _without_blocks(contributions) if again else contributions,
                swap=self.swap,
                derived=layout_of(table, self.context).derived(rows),
            )
            changes.append(self._written(table, block, rows, plan))
            if booked_partitions is not None:
                booked_partitions.add(partition_id)
        if not pieces and contributions:
            changes.append(AddPart(placeholder_part(table, number, contributions)))

    def add_empty_slices(
        self,
        table: Table,
        number: Blocks,
        slices: Mapping[str, tuple[object, ...]],
        contributions: tuple[Contribution, ...],
    ) -> None:
        """Stage a placeholder part in each of these partitions (value by id), whose rows of the
        block `number` have combined to nothing, and which still depend on the contributions."""
        for partition_id, value in slices.items():
            placeholder = placeholder_part(table, number, contributions)
            self._changes.append(
                AddPart(replace(placeholder, partition_id=partition_id, partition_value=value))
            )

    def _written(self, table: Table, block: pa.Table, rows: pa.Table, plan: PartPlan) -> AddPart:
        """Write a part of these rows of the block by the plan, inline or as a file; return the change that adds
        it."""
        inline_bytes_max = (
            inline_bytes_limit(table, rows, self.context.snapshot, self._settings)
            if self.inline
            else 0
        )
        in_file = rows.nbytes > inline_bytes_max
        keeps_rows = in_file and rows.nbytes <= tuning.KEPT_BLOCK_BYTES_MAX
        placed = replace(
            plan,
            inline_bytes_max=inline_bytes_max,
            after=self.context.snapshot.next_block(table) - 1 if in_file else None,
            owns_rows=keeps_rows and (self.owns_blocks or has_own_memory(rows, block)),
            keeps_rows=keeps_rows,
        )
        staged = write_part(
            self.context.store,
            table,
            rows,
            placed,
            lease_id=self.lease_id,
            threads=self._settings.threads,
        )
        return AddPart(staged.part, staged.inline_rows)

    def _roll_back(self, changes: int, next_index: dict[str, int]) -> None:
        """Keep the first `changes` staged changes; delete the files of the others.

        The numbers of the next blocks become those in `next_index`.
        """
        for change in self._changes[changes:]:
            if isinstance(change, AddPart) and change.part.path:
                self.context.store.delete(change.part.path)
        del self._changes[changes:]
        self._next_index = next_index

    def _require(self, requirement: Requirement) -> None:
        """Add the requirement to the commit's, each once, in the order of the first."""
        self._requirements[requirement] = None


def _without_blocks(contributions: tuple[Contribution, ...]) -> tuple[Contribution, ...]:
    """Return the contributions without their blocks."""
    return tuple(replace(contribution, blocks=()) for contribution in contributions)
