"""A snapshot in which some objects are other ones: what would hold after an ALTER, before it is
made."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from olapdb.model.damage import Damage
from olapdb.model.part import BlockRange, Part
from olapdb.model.schema import DatabaseEntry, MaterializedView, SchemaObject, Table
from olapdb.model.snapshot import Derived, Snapshot
from olapdb.model.view_state import BlockInfo, Check, Coverage, Invalidation, Retained


@dataclass(frozen=True)
class Overlay:
    """Implements `Snapshot`: `changed` (by id) stand for the objects of `below`, or beside them,
    those `removed` are gone; rows and ledger are those of `below`."""

    below: Snapshot
    changed: Mapping[str, SchemaObject] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()

    @staticmethod
    def of(below: Snapshot, *changed: SchemaObject) -> Overlay:
        return Overlay(below, {item.id: item for item in changed})

    @property
    def number(self) -> int:
        return self.below.number

    @property
    def databases(self) -> Mapping[str, DatabaseEntry]:
        return self.below.databases

    def find(self, database: str, name: str) -> SchemaObject | None:
        for item in self.changed.values():
            if (item.database, item.name) == (database, name):
                return item
        found = self.below.find(database, name)
        return None if found is None or self._hidden(found) else found

    def by_id(self, object_id: str) -> SchemaObject | None:
        if object_id in self.removed:
            return None
        return self.changed.get(object_id) or self.below.by_id(object_id)

    def objects(self, database: str | None = None) -> Iterable[SchemaObject]:
        kept = [item for item in self.below.objects() if not self._hidden(item)]
        every = sorted((*kept, *self.changed.values()), key=lambda one: (one.database, one.name))
        return [item for item in every if database in (None, item.database)]

    def views_on(self, table_id: str) -> tuple[MaterializedView, ...]:
        return tuple(v for v in self._views() if v.source_id == table_id)

    def views_into(self, table_id: str) -> tuple[MaterializedView, ...]:
        return tuple(v for v in self._views() if v.target_id == table_id)

    def parts(self, table_id: str) -> tuple[Part, ...]:
        return self.below.parts(table_id)

    def inline_rows(self, part: Part) -> bytes:
        return self.below.inline_rows(part)

    def next_block(self, table: Table) -> int:
        return self.below.next_block(table)

    def data_version(self, table_id: str, partition_id: str) -> int:
        return self.below.data_version(table_id, partition_id)

    def coverage(self, view_id: str) -> Coverage:
        return self.below.coverage(view_id)

    def invalidations(self, view_id: str | None = None) -> tuple[Invalidation, ...]:
        return self.below.invalidations(view_id)

    def checks(self, view_id: str | None = None) -> tuple[Check, ...]:
        return self.below.checks(view_id)

    def retained(self, view_id: str | None = None) -> tuple[Retained, ...]:
        return self.below.retained(view_id)

    def damaged(self) -> tuple[Damage, ...]:
        return self.below.damaged()

    def blocks(self, table_id: str) -> tuple[BlockInfo, ...]:
        return self.below.blocks(table_id)

    def derived(self, key: Hashable, make: Callable[[], Derived]) -> Derived:
        return make()

    def block_span(self, table_id: str, blocks: BlockRange) -> tuple[int, int]:
        return self.below.block_span(table_id, blocks)

    def _hidden(self, item: SchemaObject) -> bool:
        return item.id in self.changed or item.id in self.removed

    def _views(self) -> list[MaterializedView]:
        return [item for item in self.objects() if isinstance(item, MaterializedView)]
