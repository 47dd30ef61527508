"""The outcome of staging an INSERT: the plain data of its commit.

It can be pickled: tasks of a cluster stage blocks, and the driver joins the staged data into one
commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from olapdb.ingest.own_rows import JoinedParts, fewest_joined, unsettled_views
from olapdb.model.changes import AddBlock, AddCoverage, AddPart, Change
from olapdb.model.part import Blocks, Contribution, NewBlock
from olapdb.model.requirements import PartsOfPartitionAre, Requirement
from olapdb.records import dataclass


@dataclass(frozen=True, slots=True)
class ViewWrite:
    """One view's work in an INSERT: rows of blocks that it read, rows that it wrote.

    `exception` is the text of its first error, with its code; "" where it succeeded.  `parts`
    counts the parts that it wrote itself, `peak_bytes` is the most that it held, and `warnings`
    name the guardrails that it exceeded."""

    view_id: str
    rows_read: int
    rows_written: int
    elapsed_ns: int
    blocks: int = 1
    bytes_read: int = 0
    bytes_written: int = 0
    exception: str = ""
    exception_code: int = 0
    parts: int = 0
    peak_bytes: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StagedInsert:
    """Files and inline rows that are written but invisible, and what their commit needs.

    `rows` and `block_count` count `table_id` itself.  `dimensions` are the (view id, table id)
    pairs whose rows were read as of the commit `snapshot`; the requirements hold their
    PartsOfPartitionAre.
    """

    table_id: str
    snapshot: int
    rows: int
    block_count: int
    requirements: tuple[Requirement, ...]
    changes: tuple[Change, ...]
    dimensions: tuple[tuple[str, str], ...] = ()
    views: tuple[ViewWrite, ...] = ()
    joined: tuple[JoinedParts, ...] = ()
    """How many parts of the tables that the same commit writes each view joined."""

    @property
    def unsettled(self) -> frozenset[str]:
        """Return the ids of views that joined fewer parts of their dimensions than this adds."""
        return unsettled_views(self.joined, self.changes)

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the staged files, which the caller deletes if the commit fails."""
        return tuple(c.part.path for c in self.changes if isinstance(c, AddPart) and c.part.path)

    def parts_of(self, table_id: str) -> tuple[AddPart, ...]:
        """Return the staged parts of one table."""
        return tuple(
            c for c in self.changes if isinstance(c, AddPart) and c.part.table_id == table_id
        )

    def without_dimension_requirements(self) -> tuple[Requirement, ...]:
        """Return the requirements except those that the rows of dimensions are unchanged."""
        return tuple(r for r in self.requirements if not isinstance(r, PartsOfPartitionAre))


def join_staged(staged: Sequence[StagedInsert]) -> StagedInsert:
    """Join several staged INSERTs into one, in the given order.

    New blocks are numbered on from one to the next; equal requirements are kept once."""
    if len(staged) == 1:
        return staged[0]
    counts: dict[str, int] = {}
    changes: list[Change] = []
    for insert in staged:
        shifts = dict(counts)
        for change in insert.changes:
            if isinstance(change, AddBlock):
                table_id = change.block.table_id
                counts[table_id] = counts.get(table_id, 0) + 1
            changes.append(with_shifted_blocks(change, shifts))
    return StagedInsert(
        table_id=staged[0].table_id,
        snapshot=min(insert.snapshot for insert in staged),
        rows=sum(insert.rows for insert in staged),
        block_count=sum(insert.block_count for insert in staged),
        requirements=_unique(r for insert in staged for r in insert.requirements),
        changes=tuple(changes),
        dimensions=_unique(d for insert in staged for d in insert.dimensions),
        views=join_views(w for insert in staged for w in insert.views),
        joined=fewest_joined(j for insert in staged for j in insert.joined),
    )


def with_shifted_blocks(change: Change, shifts: Mapping[str, int]) -> Change:
    """Return the change with the indices of its new blocks raised.

    `shifts` is by table id; a table that it lacks is not shifted.
    """
    match change:
        case AddBlock(block=block):
            return replace(change, block=_shift_block(block, shifts))
        case AddPart(part=part):
            contributions = tuple(_shift_contribution(c, shifts) for c in part.contributions)
            blocks = _shift_blocks(part.blocks, shifts)
            return replace(change, part=replace(part, blocks=blocks, contributions=contributions))
        case AddCoverage(row=row):
            return AddCoverage(replace(row, blocks=_shift_blocks(row.blocks, shifts)))
        case _:
            return change


def _shift_block(block: NewBlock, shifts: Mapping[str, int]) -> NewBlock:
    """Return the block with its index raised by its table's shift (0 if it has none)."""
    return NewBlock(block.table_id, block.index + shifts.get(block.table_id, 0))


def _shift_blocks(blocks: Blocks, shifts: Mapping[str, int]) -> Blocks:
    """Return a new block shifted; return a range of committed blocks unchanged."""
    return _shift_block(blocks, shifts) if isinstance(blocks, NewBlock) else blocks


def _shift_contribution(contribution: Contribution, shifts: Mapping[str, int]) -> Contribution:
    """Return the contribution with its new blocks shifted."""
    return replace(
        contribution, blocks=tuple(_shift_blocks(b, shifts) for b in contribution.blocks)
    )


def join_views(writes: Iterable[ViewWrite]) -> tuple[ViewWrite, ...]:
    """Sum the work of each view; the first error counts, and the highest peak of memory."""
    joined: dict[str, ViewWrite] = {}
    for write in writes:
        earlier = joined.get(write.view_id)
        joined[write.view_id] = (
            write
            if earlier is None
            else ViewWrite(
                write.view_id,
                earlier.rows_read + write.rows_read,
                earlier.rows_written + write.rows_written,
                earlier.elapsed_ns + write.elapsed_ns,
                earlier.blocks + write.blocks,
                earlier.bytes_read + write.bytes_read,
                earlier.bytes_written + write.bytes_written,
                earlier.exception or write.exception,
                earlier.exception_code or write.exception_code,
                earlier.parts + write.parts,
                max(earlier.peak_bytes, write.peak_bytes),
                _unique((*earlier.warnings, *write.warnings)),
            )
        )
    return tuple(joined.values())


Item = TypeVar("Item")


def _unique(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return the items without repetitions, in the order of their first occurrences."""
    return tuple(dict.fromkeys(items))
