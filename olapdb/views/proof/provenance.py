"""Provenance: from rows of a view's target back to the INSERTs that may have made them.

    key  ->  parts of the target that hold it  ->  the source blocks these were made from
         ->  of those, the blocks whose parts can reach the key  ->  the INSERTs that brought them

The ledger knows blocks, not rows: each named INSERT may have contributed to the key, and no other
INSERT has. If the condition's columns come through the view unchanged, the condition also prunes
source parts, and blocks that only pruned parts hold are left out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

from olapdb.bind.syntax import walk
from olapdb.catalog.protocol import Catalog
from olapdb.model.part import BlockRange, Contribution, Part, subtract_ranges, union_ranges
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import BlockInfo
from olapdb.records import dataclass
from olapdb.runtime.services import Services
from olapdb.sql import nodes
from olapdb.views.jobs.source_pruning import parts_reaching_condition

OLDER = "older"
ORIGINS_MAX = 1_000
"""INSERTs named for one part and view, newest first; a last row counts the older ones."""


@dataclass(frozen=True, slots=True)
class Origin:
    """An INSERT that may have contributed to rows of a key in one part of the target.

    `part` has `part_rows` rows in all. `view` made them from blocks `first_block`..`last_block` of
    `source`: `rows` rows, which the commit `commit` inserted. Bypass rows have no view: their
    origin names the target's own blocks and the statement that wrote them.
    """

    part: str
    part_rows: int
    view: str
    source: str
    first_block: int
    last_block: int
    rows: int
    commit: int
    kind: str
    query_id: str
    created_ms: int
    statement: str


def provenance(
    target: Table,
    parts: Iterable[Part],
    condition: nodes.Expression | None,
    snapshot: Snapshot,
    services: Services,
) -> tuple[Origin, ...]:
    """Return the INSERTs that may have contributed to matching rows of `parts` (None: any row)."""
    log = _BlockLogCache(snapshot, services.catalog, {}, {})
    origins: list[Origin] = []
    for part in parts:
        if not part.contributions:
            origins += log.origins(target, part, "", target, (part.block_range,))
        for (view_id, source_id), ranges in _ranges_by_origin(part.contributions).items():
            view, source = snapshot.by_id(view_id), snapshot.by_id(source_id)
            name = "a view that was dropped"
            if isinstance(view, MaterializedView):
                name = f"{view.database}.{view.name}"
                ranges = _pruned_ranges(view, target, condition, ranges, snapshot, services)
            if isinstance(source, Table):
                origins += log.origins(target, part, name, source, ranges)
    return tuple(origins)


def _ranges_by_origin(
    contributions: Iterable[Contribution],
) -> Mapping[tuple[str, str], tuple[BlockRange, ...]]:
    """Return the contributed block ranges, joined, by (view id, source id)."""
    by_origin: dict[tuple[str, str], list[BlockRange]] = {}
    for contribution in contributions:
        collected = by_origin.setdefault((contribution.view_id, contribution.source_id), [])
        collected.extend(blocks for blocks in contribution.blocks if isinstance(blocks, BlockRange))
    return {key: union_ranges(ranges) for key, ranges in by_origin.items()}


def _pruned_ranges(
    view: MaterializedView,
    target: Table,
    condition: nodes.Expression | None,
    ranges: tuple[BlockRange, ...],
    snapshot: Snapshot,
    services: Services,
) -> tuple[BlockRange, ...]:
    """Return the ranges without blocks whose live rows are all in parts that cannot match."""
    if condition is None or not _has_bare_columns(condition):
        return ranges
    live_parts = snapshot.parts(view.source_id)
    matching_parts = parts_reaching_condition(view, target, condition, snapshot, services)
    if matching_parts is None:
        return ranges
    pruned_ranges = subtract_ranges(
        (part.block_range for part in live_parts if part.rows),
        (part.block_range for part in matching_parts),
    )
    return subtract_ranges(ranges, pruned_ranges)


def _number(block: BlockInfo) -> int:
    """Return the block's number."""
    return block.number


def _has_bare_columns(condition: nodes.Expression) -> bool:
    """Return whether the condition has only bare column names and no subquery. A qualified name has
    a meaning only in its own query."""
    return not any(
        isinstance(node, nodes.Subquery)
        or (isinstance(node, nodes.Identifier) and len(node.parts) > 1)
        for node in walk(condition)
    )


@dataclass(frozen=True)
class _BlockLogCache:
    """A cache of the block logs and statements that were read already."""

    snapshot: Snapshot
    catalog: Catalog
    blocks: dict[str, tuple[BlockInfo, ...]]
    statements: dict[int, str]

    def origins(
        self, target: Table, part: Part, view: str, source: Table, ranges: Iterable[BlockRange]
    ) -> Iterator[Origin]:
        """Yield an origin for each of the newest ORIGINS_MAX commits, newest first, and one for all
        older commits together."""
        by_commit: dict[int, list[BlockInfo]] = {}
        overlapping = self._named(source, ranges)
        for block in overlapping:
            if block.kind != OLDER:
                by_commit.setdefault(block.commit, []).append(block)
        newest = sorted(by_commit.items(), reverse=True)
        for commit, blocks in newest[:ORIGINS_MAX]:
            first, last = blocks[0], blocks[-1]
            yield Origin(
                part.name,
                part.rows,
                view,
                f"{source.database}.{source.name}",
                first.number,
                last.number,
                sum(commit_block.rows for commit_block in blocks),
                commit,
                first.kind,
                first.query_id,
                first.created_ms,
                self._statement(commit),
            )
        spans = [block for block in overlapping if block.kind == OLDER]
        older_blocks = [*spans, *(block for _, blocks in newest[ORIGINS_MAX:] for block in blocks)]
        if older_blocks:
            description = f"{len(newest[ORIGINS_MAX:])} older commits"
            yield Origin(
                part.name,
                part.rows,
                view,
                f"{source.database}.{source.name}",
                min(block.range.first for block in older_blocks),
                max(block.number for block in older_blocks),
                sum(block.rows for block in older_blocks),
                0,
                OLDER,
                "",
                0,
                "commits that are older than the log of blocks" if spans else description,
            )

    def _named(self, source: Table, ranges: Iterable[BlockRange]) -> list[BlockInfo]:
        """Return the blocks, and spans of old blocks, that overlap the ranges, ascending."""
        if source.id not in self.blocks:
            self.blocks[source.id] = self.snapshot.blocks(source.id)
        log = self.blocks[source.id]
        blocks: dict[int, BlockInfo] = {}
        for block_range in union_ranges(ranges):
            for block in log[bisect_left(log, block_range.first, key=_number) :]:
                if block.range.first > block_range.last:
                    break
                blocks[block.number] = block
        return list(blocks.values())

    def _statement(self, commit: int) -> str:
        """Return the text of the commit's statement, "" if the catalog does not have it."""
        if commit not in self.statements:
            commits = list(self.catalog.commits(since=commit, up_to=commit))
            self.statements[commit] = commits[0].statement if commits else ""
        return self.statements[commit]
