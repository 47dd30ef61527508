"""A snapshot of a warehouse, with a session's temporary tables beside its tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

from olapdb.model.part import BlockRange, Part
from olapdb.model.schema import KindOfObject, MaterializedView, SchemaObject, Table
from olapdb.model.snapshot import Derived, Snapshot
from olapdb.model.stand_in_snapshot import StandInSnapshot
from olapdb.model.view_state import BlockInfo
from olapdb.records import dataclass

TEMPORARY_DATABASE = ""
"""The database of temporary tables: no statement can name it, system tables show it so."""


def temporary_ids(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the id of each temporary table of the snapshot by name; {} if its session has none."""
    if not isinstance(snapshot, SessionSnapshot):
        return {}
    return {item.name: item.id for item in snapshot.objects(TEMPORARY_DATABASE)}


@dataclass(frozen=True)
class SessionSnapshot(StandInSnapshot):
    """A `Snapshot` of two catalogs: `base` is the warehouse's, `temporary` the session's own.

    Temporary tables are in the database `TEMPORARY_DATABASE`. `objects()` of all databases leaves
    them out, because only their session may see them; `objects("")` lists them. The number is the
    base's.
    """

    temporary: Snapshot

    def find(self, database: str, name: str) -> SchemaObject | None:
        """Return the object of that name, a temporary table for the database ""; or None."""
        owner = self.temporary if database == TEMPORARY_DATABASE else self.base
        return owner.find(database, name)

    def by_id(self, object_id: str) -> SchemaObject | None:
        """Return the object with the id, temporary or not; or None."""
        return self.temporary.by_id(object_id) or self.base.by_id(object_id)

    def objects(self, database: str | None = None) -> Iterable[SchemaObject]:
        """Return the warehouse's objects (of one database), or the temporary tables for ""."""
        return (self.temporary if database == TEMPORARY_DATABASE else self.base).objects(database)

    def objects_of(self, kind: type[KindOfObject]) -> Iterable[KindOfObject]:
        """Return the warehouse's objects of one class, without temporary tables."""
        return self.base.objects_of(kind)

    def views_on(self, table_id: str) -> tuple[MaterializedView, ...]:
        """Return the views that the table triggers: none for a temporary table."""
        return self._owner(table_id).views_on(table_id)

    def views_into(self, table_id: str) -> tuple[MaterializedView, ...]:
        """Return the views that write the table: none for a temporary table."""
        return self._owner(table_id).views_into(table_id)

    def parts(self, table_id: str) -> tuple[Part, ...]:
        """Return the live parts of the table."""
        return self._owner(table_id).parts(table_id)

    def part_count(self, table_id: str, partition_id: str) -> int:
        """Return the number of the partition's live parts."""
        return self._owner(table_id).part_count(table_id, partition_id)

    def inline_rows(self, part: Part) -> bytes:
        """Return the bytes of an inline part, from the catalog that has its table."""
        return self._owner(part.table_id).inline_rows(part)

    def next_block(self, table: Table) -> int:
        """Return the number that the table's next block will get."""
        return self._owner(table.id).next_block(table)

    def data_version(self, table_id: str, partition_id: str) -> int:
        """Return how many commits other than INSERTs and merges changed the partition's rows."""
        return self._owner(table_id).data_version(table_id, partition_id)

    def blocks(self, table_id: str) -> tuple[BlockInfo, ...]:
        """Return the table's blocks, ascending."""
        return self._owner(table_id).blocks(table_id)

    def derived(self, key: Hashable, make: Callable[[], Derived]) -> Derived:
        """Return the result of `make`, cached by the snapshot whose table the key names."""
        names = key if isinstance(key, tuple) else (key,)
        ids = (name for name in names if isinstance(name, str))
        owner = self.temporary if any(map(self.temporary.by_id, ids)) else self.base
        return owner.derived(key, make)

    def block_span(self, table_id: str, blocks: BlockRange) -> tuple[int, int]:
        """Return (number of these blocks, time in ms of the oldest or 0)."""
        return self._owner(table_id).block_span(table_id, blocks)

    def _owner(self, table_id: str) -> Snapshot:
        """Return the snapshot of the catalog that has the table."""
        return self.base if self.temporary.by_id(table_id) is None else self.temporary
