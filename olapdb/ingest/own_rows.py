"""Views that join tables which the same commit writes.

Such a view must join the table's state after the commit: the rows from before, and those that the
commit adds.

    s -> a -> hi        a and v fire on one block of s, v joins hi
    s -> v -> t         a fires first; v joins hi with the rows that a wrote for the block

`Cascade` orders the views of one table so that a view that writes a table fires before those that
join it.  Where no order does (a circle, or a later block of the INSERT adds more), `JoinedParts`
records which views joined too few parts.  The INSERT fires them again, or invalidates their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from olapdb.model.changes import AddPart, Change
from olapdb.model.part import BlockRange, NewBlock, Part
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass

AddedParts: TypeAlias = Mapping[str, tuple[AddPart, ...]]
"""The staged parts with rows that a commit brings, by table."""


OTHER_PARTS = -1
"""The count of a view that joined other parts than the commit adds."""


@dataclass(frozen=True, slots=True)
class JoinedParts:
    """The number of parts that a view joined, of those that its own commit adds to a table.

    With fewer parts than the commit adds, or with other ones (`OTHER_PARTS`), the view joined a
    state that no snapshot ever has."""

    view_id: str
    table_id: str
    parts: int


def fewest_joined(joined: Iterable[JoinedParts]) -> tuple[JoinedParts, ...]:
    """Return for each view and table the firing that joined the fewest parts."""
    fewest: dict[tuple[str, str], JoinedParts] = {}
    for firing in joined:
        key = (firing.view_id, firing.table_id)
        if key not in fewest or firing.parts < fewest[key].parts:
            fewest[key] = firing
    return tuple(fewest.values())


def added_parts(changes: Iterable[Change], table_ids: frozenset[str]) -> AddedParts:
    """Return, by table id, the staged parts that have rows, in the order of staging.

    Only tables in `table_ids` count.
    """
    parts_of: dict[str, list[AddPart]] = {}
    for change in changes:
        if isinstance(change, AddPart) and change.part.rows and change.part.table_id in table_ids:
            parts_of.setdefault(change.part.table_id, []).append(change)
    return {table_id: tuple(parts) for table_id, parts in parts_of.items()}


def unsettled_views(joined: Sequence[JoinedParts], changes: Iterable[Change]) -> frozenset[str]:
    """Return the ids of the views that joined fewer parts than the commit adds."""
    if not joined:
        return frozenset()
    added = added_parts(changes, frozenset(firing.table_id for firing in joined))
    return frozenset(
        firing.view_id for firing in joined if firing.parts < len(added.get(firing.table_id, ()))
    )


@dataclass
class Cascade:
    """The attached views below tables, and the order in which those of one table fire."""

    snapshot: Snapshot
    _writes: dict[str, frozenset[str]] = field(default_factory=dict)
    _reads: dict[str, frozenset[str]] = field(default_factory=dict)
    _written_dimensions: dict[str, frozenset[str]] = field(default_factory=dict)
    _order: dict[str, tuple[MaterializedView, ...]] = field(default_factory=dict)

    def written_dimensions(self, table_id: str) -> frozenset[str]:
        """Return the ids of the tables that an INSERT into this one both writes and joins."""
        tables = self._written_dimensions.get(table_id)
        if tables is None:
            writes, reads = {table_id}, set[str]()
            waiting = [table_id]
            while waiting:
                for view in self._attached_views(waiting.pop()):
                    reads.update(view.dimension_ids)
                    if view.target_id not in writes:
                        writes.add(view.target_id)
                        waiting.append(view.target_id)
            tables = self._written_dimensions[table_id] = frozenset(writes & reads)
        return tables

    def ordered(self, views: tuple[MaterializedView, ...]) -> tuple[MaterializedView, ...]:
        """Return the views of one table in the order of firing.

        A view that writes what another one joins comes first; otherwise the order stays.  In a
        circle no order is right, and the first of its views stays first."""
        if len(views) < 2:
            return views
        table_id = views[0].source_id
        if table_id not in self._order:
            waiting = list(views)
            done: list[MaterializedView] = []
            while waiting:
                ready = (view for view in waiting if not self._must_wait(view, waiting))
                chosen = next(ready, waiting[0])
                waiting.remove(chosen)
                done.append(chosen)
            self._order[table_id] = tuple(done)
        return self._order[table_id]

    def _must_wait(self, view: MaterializedView, others: Sequence[MaterializedView]) -> bool:
        """Return whether another of the views, or a view below that one, writes a table that this view or a view below it
        joins."""
        reads = self._tables_joined_below(view)
        return bool(reads) and any(
            other is not view and not reads.isdisjoint(self._tables_written_below(other))
            for other in others
        )

    def _attached_views(self, table_id: str) -> list[MaterializedView]:
        """Return the attached materialized views that read the table."""
        return [view for view in self.snapshot.views_on(table_id) if view.attached]

    def _tables_written_below(self, view: MaterializedView) -> frozenset[str]:
        """Return the tables that the view and the views below it write."""
        if view.id not in self._writes:
            self._collect_tables(view)
        return self._writes[view.id]

    def _tables_joined_below(self, view: MaterializedView) -> frozenset[str]:
        """Return the tables that the view and the views below it join."""
        if view.id not in self._reads:
            self._collect_tables(view)
        return self._reads[view.id]

    def _collect_tables(self, view: MaterializedView) -> None:
        """Collect in the caches the tables that the view's cascade writes and joins."""
        writes, reads = set[str](), set[str]()
        waiting = [view]
        while waiting:
            current = waiting.pop()
            reads.update(current.dimension_ids)
            if current.target_id not in writes:
                writes.add(current.target_id)
                waiting += self._attached_views(current.target_id)
        self._writes[view.id], self._reads[view.id] = frozenset(writes), frozenset(reads)


def with_block_number(part: Part, first: int) -> Part:
    """Return the staged part with the block number that it gets if its commit is the next one.

    `first` is the table's next block number.
    """
    if not isinstance(part.blocks, NewBlock):
        return part
    number = first + part.blocks.index
    return replace(part, blocks=BlockRange(number, number))


def inline_rows_by_part(staged: Iterable[AddPart]) -> dict[str, bytes]:
    """Return the Arrow IPC bytes of the staged inline parts, by part id."""
    return {
        part_added.part.id: part_added.inline_rows
        for part_added in staged
        if part_added.inline_rows is not None
    }


def live_and_staged_parts(
    snapshot: Snapshot, staged: Mapping[str, Sequence[AddPart]]
) -> dict[str, Sequence[Part]]:
    """Return the live and the staged parts of each table in `staged`, by the table's id.

    Staged parts have the block number that the next commit would give them. The parts are sorted by
    block, then by partition."""
    parts_of: dict[str, Sequence[Part]] = {}
    for table_id, more in staged.items():
        table = snapshot.by_id(table_id)
        assert isinstance(table, Table)
        first = snapshot.next_block(table)
        parts = [
            *snapshot.parts(table_id),
            *(with_block_number(part_added.part, first) for part_added in more),
        ]
        parts_of[table_id] = sorted(parts, key=lambda p: (p.block_range, p.partition_id))
    return parts_of
