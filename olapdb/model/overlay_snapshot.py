"""A snapshot with some objects and parts exchanged: what would hold after a change that is not
committed yet."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from olapdb.lazy import LazyModule
from olapdb.model.part import BlockRange, Part
from olapdb.model.schema import KindOfObject, MaterializedView, SchemaObject, Table
from olapdb.model.snapshot import Derived, Snapshot
from olapdb.model.stand_in_snapshot import StandInSnapshot
from olapdb.records import dataclass

if TYPE_CHECKING:
    from olapdb.model import changes
    from olapdb.model.view_state import BlockInfo
else:
    changes = LazyModule("olapdb.model.changes")


@dataclass(frozen=True)
class OverlaySnapshot(StandInSnapshot):
    """A `Snapshot` over another one. Everything that a field does not exchange is the base's.

    `changed` are new or altered objects by id, `removed` the ids of dropped ones.  `replaced` maps
    the id of a live part to the staged part that replaces it, None where it leaves.  `inline` has
    the rows of staged inline parts, as Arrow IPC file bytes by part id.
    """

    changed: Mapping[str, SchemaObject] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    replaced: Mapping[str, changes.AddPart | None] = field(default_factory=dict)
    inline: Mapping[str, bytes] = field(default_factory=dict)

    @staticmethod
    def of(base: Snapshot, *changed: SchemaObject) -> OverlaySnapshot:
        """Return an overlay in which each of the objects replaces the base's object with its id, or
        is added."""
        return OverlaySnapshot(base, {item.id: item for item in changed})

    def find(self, database: str, name: str) -> SchemaObject | None:
        """Return the object of that name, as changed by the overlay. None if there is none or the
        overlay removes it."""
        for item in self.changed.values():
            if (item.database, item.name) == (database, name):
                return item
        item_of_base = self.base.find(database, name)
        return None if item_of_base is None or self._is_hidden(item_of_base) else item_of_base

    def by_id(self, object_id: str) -> SchemaObject | None:
        """Return the object with the id, as changed by the overlay. None if there is none or the
        overlay removes it."""
        if object_id in self.removed:
            return None
        return self.changed.get(object_id) or self.base.by_id(object_id)

    def objects(self, database: str | None = None) -> Iterable[SchemaObject]:
        """Return the objects as changed by the overlay (of one database), by database and name."""
        items = [item for item in self.base.objects() if not self._is_hidden(item)]
        items = sorted((*items, *self.changed.values()), key=_qualified_name)
        return [item for item in items if database in (None, item.database)]

    def objects_of(self, kind: type[KindOfObject]) -> Iterable[KindOfObject]:
        """Return the objects of one class as changed by the overlay, by database and name."""
        items = [item for item in self.base.objects_of(kind) if not self._is_hidden(item)]
        items += [item for item in self.changed.values() if isinstance(item, kind)]
        return sorted(items, key=_qualified_name)

    def views_on(self, table_id: str) -> tuple[MaterializedView, ...]:
        """Return the views that the table triggers, as changed by the overlay."""
        return self._overlaid(self.base.views_on(table_id), lambda view: view.source_id == table_id)

    def views_into(self, table_id: str) -> tuple[MaterializedView, ...]:
        """Return the views that write the table, as changed by the overlay."""
        return self._overlaid(
            self.base.views_into(table_id), lambda view: view.target_id == table_id
        )

    def parts(self, table_id: str) -> tuple[Part, ...]:
        """Return the base's live parts, each replaced one exchanged for its staged part or left
        out."""
        live = self.base.parts(table_id)
        if not self.replaced:
            return live
        parts: list[Part] = []
        for part in live:
            staged = self.replaced.get(part.id)
            if staged is not None:
                parts.append(staged.part)
            elif part.id not in self.replaced:
                parts.append(part)
        return tuple(parts)

    def part_count(self, table_id: str, partition_id: str) -> int:
        """Return the number of the partition's live parts, as replaced by the overlay."""
        if not self.replaced:
            return self.base.part_count(table_id, partition_id)
        return sum(part.partition_id == partition_id for part in self.parts(table_id))

    def inline_rows(self, part: Part) -> bytes:
        """Return the bytes of an inline part: the overlay's if it staged the part, else the
        base's."""
        rows = self.inline.get(part.id)
        return self.base.inline_rows(part) if rows is None else rows

    def next_block(self, table: Table) -> int:
        """Return the base's next block number of the table."""
        return self.base.next_block(table)

    def data_version(self, table_id: str, partition_id: str) -> int:
        """Return the base's data version of the partition."""
        return self.base.data_version(table_id, partition_id)

    def blocks(self, table_id: str) -> tuple[BlockInfo, ...]:
        """Return the table's blocks in the base, ascending."""
        return self.base.blocks(table_id)

    def derived(self, key: Hashable, make: Callable[[], Derived]) -> Derived:
        """Return the result of `make`. The base may cache it only if the overlay changes no object
        and no part."""
        if self.changed or self.removed or self.replaced:
            return make()
        return self.base.derived(key, make)

    def block_span(self, table_id: str, blocks: BlockRange) -> tuple[int, int]:
        """Return (number of these blocks, time in ms of the oldest, or 0), from the base."""
        return self.base.block_span(table_id, blocks)

    def _is_hidden(self, item: SchemaObject) -> bool:
        """Return whether the overlay changes or removes this object of the base."""
        return item.id in self.changed or item.id in self.removed

    def _overlaid(
        self, views: Iterable[MaterializedView], is_chosen: Callable[[MaterializedView], bool]
    ) -> tuple[MaterializedView, ...]:
        """Return the base's `views`, with changed and removed ones taken out and changed ones that
        `is_chosen` added, by database and name."""
        changed = [
            item
            for item in self.changed.values()
            if isinstance(item, MaterializedView) and is_chosen(item)
        ]
        kept = [view for view in views if not self._is_hidden(view)]
        return tuple(sorted((*kept, *changed), key=_qualified_name))


def _qualified_name(item: SchemaObject) -> tuple[str, str]:
    """Return (database, name), the order of objects."""
    return item.database, item.name
