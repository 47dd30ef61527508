"""RECONCILE … METADATA: a consistency check of the ledger that reads no row.

The ledger has three facts about a view: which source blocks it has seen (coverage), which source
blocks the target's parts were made from (contributions), and how many rows each made. They must
agree:

    complete    each covered block is booked: some part of the target names it
    disjoint    within a partition of the target no two parts name the same block
    honest      no part names a block that counts as the gap: a backfill would double it
    preserved   no part has more rows than its contributions made: merges only ever join rows

Then the ledger is sound. The check reads no values, so the view is covered, not proven.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

from olapdb.model.contributions import contributed_blocks
from olapdb.model.part import BlockRange, Contribution, Part, union_ranges
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Coverage
from olapdb.records import dataclass
from olapdb.views.proof.coverage import covered_parts

__all__ = ["LedgerRow", "check_ledger", "contributed_blocks", "unbooked_parts"]

PROBLEMS_MAX = 10
"""Problems that a row names; a last entry counts the rest."""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """The outcome for one partition of the view's `table`, "source" or "target".

    Of the source: its live parts and rows, the rows of the gap, and the covered rows that the
    target's parts name (`booked_rows`). Of the target: the parts and rows that the view made, and
    the rows that its contributions brought before merges (`booked_rows`). `verdict` "partial":
    there is a gap.
    """

    table: Literal["source", "target"]
    partition: str
    parts: int
    rows: int
    gap_rows: int
    booked_rows: int
    problems: tuple[str, ...]
    verdict: Literal["covered", "partial", "broken"]


def check_ledger(view: MaterializedView, snapshot: Snapshot) -> tuple[LedgerRow, ...]:
    """Return a row for each source partition, then each target one. Both tables must store rows."""
    target_parts = snapshot.parts(view.target_id)
    books = contributed_blocks(view.id, target_parts, view.source_id)
    return (
        *_source_rows(view, snapshot, books),
        *_target_rows(view, [part for part in target_parts if part.rows]),
    )


def unbooked_parts(view: MaterializedView, snapshot: Snapshot, books: Coverage) -> tuple[Part, ...]:
    """Return the covered source parts whose blocks `books` (the contributions) do not name."""
    return tuple(
        part
        for part in covered_parts(view, snapshot)
        if not books.covers(part.partition_id, part.block_range)
    )


def _contributions(view_id: str, parts: Iterable[Part]) -> Iterator[Contribution]:
    """Yield the view's contributions to the parts, in their order."""
    return (entry for part in parts for entry in part.contributions if entry.view_id == view_id)


# --- the source ----------------------------------------------------------------------------------


def _source_rows(
    view: MaterializedView, snapshot: Snapshot, books: Coverage
) -> Iterator[LedgerRow]:
    """Yield the outcome for each source partition with rows, sorted by partition."""
    coverage = snapshot.coverage(view.id)
    live: dict[str, list[Part]] = {}
    for part in snapshot.parts(view.source_id):
        if part.rows:
            live.setdefault(part.partition_id, []).append(part)
    for partition, parts in sorted(live.items()):
        yield _source_row(partition, parts, coverage, books)


def _source_row(
    partition: str, parts: Sequence[Part], coverage: Coverage, books: Coverage
) -> LedgerRow:
    """Check a source partition: covered blocks must be booked, gap blocks must not."""
    gap_rows = booked_rows = 0
    problems: list[str] = []
    for part in parts:
        blocks = part.block_range
        if coverage.covers(partition, blocks):
            if books.covers(partition, blocks):
                booked_rows += part.rows
            else:
                problems.append(
                    f"{_range_text(blocks)} ({part.rows} rows) are covered, but no part of the target"
                    " was made from them"
                )
            continue
        gap_rows += part.rows
        if coverage.touches(partition, blocks):
            problems.append(f"{_range_text(blocks)} are one part, but covered only in part")
        if books.touches(partition, blocks):
            problems.append(
                f"{_range_text(blocks)} ({part.rows} rows) count as the gap, but a part of the target"
                " was made from them"
            )
    rows = sum(part.rows for part in parts)
    return LedgerRow(
        "source",
        partition,
        len(parts),
        rows,
        gap_rows,
        booked_rows,
        _truncated(problems),
        _verdict(problems, gap_rows),
    )


# --- the target ----------------------------------------------------------------------------------


def _target_rows(view: MaterializedView, parts: Sequence[Part]) -> Iterator[LedgerRow]:
    """Yield the outcome for each target partition that the view wrote, sorted by partition."""
    parts_by_partition: dict[str, list[Part]] = {}
    for part in parts:
        if part.written_by({view.id}):
            parts_by_partition.setdefault(part.partition_id, []).append(part)
    for partition, written in sorted(parts_by_partition.items()):
        problems = [*_duplicate_blocks(view.id, written), *_oversized_parts(written)]
        brought = sum(entry.rows for entry in _contributions(view.id, written))
        yield LedgerRow(
            "target",
            partition,
            len(written),
            sum(part.rows for part in written),
            0,
            brought,
            _truncated(problems),
            _verdict(problems, 0),
        )


def _duplicate_blocks(view_id: str, parts: Sequence[Part]) -> Iterator[str]:
    """Yield a problem for each source block that two parts of the target partition name. Ranges
    that span all source partitions are also compared with the ranges of each single partition."""
    everywhere: list[BlockRange] = []
    single: dict[str, list[BlockRange]] = {}
    for part in parts:
        books = contributed_blocks(view_id, (part,))
        everywhere += books.everywhere
        for partition, ranges in books.by_partition.items():
            single.setdefault(partition, []).extend(ranges)
    for overlap in _overlaps(everywhere):
        yield f"{_range_text(overlap)} of the source are in two parts"
    for partition, partition_ranges in sorted(single.items()):
        for overlap in _overlaps([*partition_ranges, *union_ranges(everywhere)]):
            yield f"{_range_text(overlap)} of the source's partition {partition} are in two parts"


def _overlaps(ranges: Sequence[BlockRange]) -> Iterator[BlockRange]:
    """Yield the blocks that two of the ranges share."""
    reached = 0
    for previous, current in pairwise(sorted(ranges)):
        reached = max(reached, previous.last)
        if current.first <= reached:
            yield BlockRange(current.first, min(current.last, reached))


def _oversized_parts(parts: Sequence[Part]) -> Iterator[str]:
    """Yield a problem for each part with more rows than its contributions made."""
    for part in parts:
        brought = sum(contribution.rows for contribution in part.contributions)
        if part.rows > brought:
            yield f"part {part.name} has {part.rows} rows, but only {brought} were brought to it"


# --- words ---------------------------------------------------------------------------------------


def _range_text(blocks: BlockRange) -> str:
    """Return "block 3" or "blocks 3..5"."""
    if blocks.first == blocks.last:
        return f"block {blocks.first}"
    return f"blocks {blocks.first}..{blocks.last}"


def _truncated(problems: Sequence[str]) -> tuple[str, ...]:
    """Return the first PROBLEMS_MAX problems, and an entry that counts the rest."""
    if len(problems) <= PROBLEMS_MAX:
        return tuple(problems)
    return (*problems[:PROBLEMS_MAX], f"and {len(problems) - PROBLEMS_MAX} more")


def _verdict(problems: Sequence[str], gap_rows: int) -> Literal["covered", "partial", "broken"]:
    """Return "broken" if there are problems, else "partial" if there is a gap, else "covered"."""
    if problems:
        return "broken"
    return "partial" if gap_rows else "covered"
