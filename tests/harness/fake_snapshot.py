"""A catalog in memory for tests that need names and types only."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

from olapdb.model.damage import Damage
from olapdb.model.named_collection import NamedCollection
from olapdb.model.part import BlockRange, Part
from olapdb.model.schema import (
    Column,
    DatabaseEntry,
    Engine,
    KeyItem,
    KindOfObject,
    MaterializedView,
    SchemaObject,
    Table,
)
from olapdb.model.snapshot import Derived
from olapdb.model.user_function import UserFunction
from olapdb.model.view_state import BlockInfo, Check, Coverage, Invalidation, Retained
from olapdb.types import DataType


class FakeSnapshot:
    """A `Snapshot` of the given objects, without parts."""

    def __init__(self, *objects: SchemaObject, databases: Iterable[str] = ("default",)) -> None:
        names = {*databases, *(o.database for o in objects)}
        self.databases: Mapping[str, DatabaseEntry] = {
            n: DatabaseEntry(n, n) for n in sorted(names)
        }
        self._objects = tuple(sorted(objects, key=lambda o: (o.database, o.name)))
        self.number = 1
        self.functions: Mapping[tuple[str, str], UserFunction] = {}
        self.named_collections: Mapping[str, NamedCollection] = {}

    def find(self, database: str, name: str) -> SchemaObject | None:
        return next((o for o in self._objects if (o.database, o.name) == (database, name)), None)

    def by_id(self, object_id: str) -> SchemaObject | None:
        return next((o for o in self._objects if o.id == object_id), None)

    def objects(self, database: str | None = None) -> Iterable[SchemaObject]:
        return [o for o in self._objects if database in (None, o.database)]

    def objects_of(self, kind: type[KindOfObject]) -> Iterable[KindOfObject]:
        return [o for o in self._objects if isinstance(o, kind)]

    def views_on(self, table_id: str) -> tuple[MaterializedView, ...]:
        views = (o for o in self._objects if isinstance(o, MaterializedView))
        return tuple(v for v in views if v.source_id == table_id)

    def views_into(self, table_id: str) -> tuple[MaterializedView, ...]:
        views = (o for o in self._objects if isinstance(o, MaterializedView))
        return tuple(v for v in views if v.target_id == table_id)

    def parts(self, table_id: str) -> tuple[Part, ...]:
        return ()

    def part_count(self, table_id: str, partition_id: str) -> int:
        return sum(part.partition_id == partition_id for part in self.parts(table_id))

    def inline_rows(self, part: Part) -> bytes:
        raise KeyError(part.id)

    def next_block(self, table: Table) -> int:
        return 1

    def data_version(self, table_id: str, partition_id: str) -> int:
        return 0

    def coverage(self, view_id: str) -> Coverage:
        raise KeyError(view_id)

    def retained(self, view_id: str | None = None) -> tuple[Retained, ...]:
        return ()

    def invalidations(self, view_id: str | None = None) -> tuple[Invalidation, ...]:
        return ()

    def checks(self, view_id: str | None = None) -> tuple[Check, ...]:
        return ()

    def damaged(self) -> tuple[Damage, ...]:
        return ()

    def blocks(self, table_id: str) -> tuple[BlockInfo, ...]:
        return ()

    def derived(self, key: Hashable, make: Callable[[], Derived]) -> Derived:
        return make()

    def block_span(self, table_id: str, blocks: BlockRange) -> tuple[int, int]:
        return 0, 0


def table(
    name: str,
    columns: Mapping[str, DataType] | Iterable[Column],
    *,
    engine: str = "MergeTree",
    order_by: Iterable[str] = (),
    database: str = "default",
) -> Table:
    """Return a table whose id is its name."""
    if isinstance(columns, Mapping):
        columns = [Column(i, n, t) for i, (n, t) in enumerate(columns.items(), start=1)]
    return Table(
        id=f"{database}.{name}",
        database=database,
        name=name,
        engine=Engine(engine),
        columns=tuple(columns),
        sorting_key=tuple(KeyItem(k) for k in order_by),
        primary_key=len(tuple(order_by)),
    )
