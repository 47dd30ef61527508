"""From rows of a view's target back to the INSERTs that they were made from.

    key  ->  parts of the target that hold it  ->  the source blocks these were made from
         ->  of those, the blocks whose parts can reach the key  ->  the INSERTs that brought them

The ledger knows blocks, not rows: each INSERT that is named may have contributed to the key, and
none that is not named has.  Where the condition can be asked of the source (its columns come through
the view unchanged) blocks whose parts lie elsewhere are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from olapdb.bind.syntax import walk
from olapdb.catalog.base import Catalog
from olapdb.model.part import BlockRange, Contribution, Part, union_ranges
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import BlockInfo
from olapdb.sql import nodes
from olapdb.transaction.services import Services
from olapdb.views.narrow import parts_reaching

ORIGINS_MAX = 1_000
"""INSERTs named for one part and view, the newest; a last row says how many older ones there are."""


@dataclass(frozen=True, slots=True)
class Origin:
    """`part` of the target holds rows of the key, `part_rows` in all. They were made by `view` from
    blocks `first_block`..`last_block` of `source`, `rows` rows, which the commit `commit` brought.

    Bypass rows have no view: the target's own blocks are named, with the statement that wrote them.
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
    """Where the rows of these parts, of which those of the condition are asked for, come from."""
    log = _Log(snapshot, services.catalog, {}, {})
    found: list[Origin] = []
    for part in parts:
        if not part.contributions:
            found += log.origins(target, part, "", target, (part.block_range,))
        for (view_id, source_id), ranges in _blocks(part.contributions).items():
            view, source = snapshot.by_id(view_id), snapshot.by_id(source_id)
            name = "a view that was dropped"
            if isinstance(view, MaterializedView):
                name = f"{view.database}.{view.name}"
                ranges = _narrowed(view, target, condition, ranges, snapshot, services)
            if isinstance(source, Table):
                found += log.origins(target, part, name, source, ranges)
    return tuple(found)


def _blocks(
    contributions: Iterable[Contribution],
) -> Mapping[tuple[str, str], tuple[BlockRange, ...]]:
    found: dict[tuple[str, str], list[BlockRange]] = {}
    for one in contributions:
        known = found.setdefault((one.view_id, one.source_id), [])
        known.extend(blocks for blocks in one.blocks if isinstance(blocks, BlockRange))
    return {key: union_ranges(ranges) for key, ranges in found.items()}


def _narrowed(
    view: MaterializedView, target: Table, condition: nodes.Expression | None,
    ranges: tuple[BlockRange, ...], snapshot: Snapshot, services: Services,
) -> tuple[BlockRange, ...]:  # fmt: skip
    """Without blocks all of whose live rows lie in parts that cannot reach the key."""
    if condition is None or not _is_plain(condition):
        return ranges
    live = snapshot.parts(view.source_id)
    kept = parts_reaching(view, target, condition, snapshot, services)
    if kept is None:
        return ranges
    numbers = {n for one in ranges for n in range(one.first, one.last + 1)}
    elsewhere = {n for part in live if part.rows for n in _numbers(part)} & numbers
    elsewhere -= {n for part in kept for n in _numbers(part)}
    return union_ranges(BlockRange(n, n) for n in numbers - elsewhere)


def _numbers(part: Part) -> range:
    return range(part.block_range.first, part.block_range.last + 1)


def _is_plain(condition: nodes.Expression) -> bool:
    """Whether the condition's names are bare columns: others mean something in their query only."""
    return not any(
        isinstance(one, nodes.Subquery)
        or (isinstance(one, nodes.Identifier) and len(one.parts) > 1)
        for one in walk(condition)
    )


@dataclass(frozen=True)
class _Log:
    """The block logs and commits that were looked at already."""

    snapshot: Snapshot
    catalog: Catalog
    blocks: dict[str, dict[int, BlockInfo]]
    statements: dict[int, str]

    def origins(
        self, target: Table, part: Part, view: str, source: Table, ranges: Iterable[BlockRange]
    ) -> Iterator[Origin]:
        """One for each commit, newest first."""
        by_commit: dict[int, list[BlockInfo]] = {}
        for block in self._named(source, ranges):
            by_commit.setdefault(block.commit, []).append(block)
        newest = sorted(by_commit.items(), reverse=True)
        for commit, blocks in newest[:ORIGINS_MAX]:
            first, last = blocks[0], blocks[-1]
            yield Origin(
                part.name, part.rows, view, f"{source.database}.{source.name}", first.number,
                last.number, sum(one.rows for one in blocks), commit, first.kind, first.query_id,
                first.created_ms, self._statement(commit),
            )  # fmt: skip
        rest = [block for _, blocks in newest[ORIGINS_MAX:] for block in blocks]
        if rest:
            numbers = [block.number for block in rest]
            yield Origin(
                part.name, part.rows, view, f"{source.database}.{source.name}", min(numbers),
                max(numbers), sum(block.rows for block in rest), 0, "older", "", 0,
                f"{len(newest) - ORIGINS_MAX} older commits",
            )  # fmt: skip

    def _named(self, source: Table, ranges: Iterable[BlockRange]) -> Iterator[BlockInfo]:
        if source.id not in self.blocks:
            known = self.snapshot.blocks(source.id)
            self.blocks[source.id] = {block.number: block for block in known}
        log = self.blocks[source.id]
        numbers = (n for one in ranges for n in range(one.first, one.last + 1))
        return (log[n] for n in numbers if n in log)

    def _statement(self, commit: int) -> str:
        if commit not in self.statements:
            known = list(self.catalog.commits(since=commit, up_to=commit))
            self.statements[commit] = known[0].statement if known else ""
        return self.statements[commit]
