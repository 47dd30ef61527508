"""The interface of a snapshot: the catalog as of one commit number."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Protocol, TypeVar

from olapdb.errors import Position, UnknownTable
from olapdb.model.damage import Damage
from olapdb.model.named_collection import NamedCollection
from olapdb.model.part import BlockRange, Part
from olapdb.model.schema import (
    Column,
    DatabaseEntry,
    KindOfObject,
    MaterializedView,
    RefreshableView,
    SchemaObject,
    Table,
    View,
)
from olapdb.model.user_function import UserFunction
from olapdb.model.view_state import BlockInfo, Check, Coverage, Invalidation, Retained

Derived = TypeVar("Derived")


class Snapshot(Protocol):
    """The catalog as of the commit `number`. Immutable; parts and view states are read at first
    use.

    Any method may raise SnapshotTooOld if vacuum has removed the snapshot meanwhile.
    """

    @property
    def number(self) -> int:
        """The commit number."""
        ...

    @property
    def databases(self) -> Mapping[str, DatabaseEntry]:
        """The databases by name."""
        ...

    @property
    def functions(self) -> Mapping[tuple[str, str], UserFunction]:
        """The functions that users made by (database, name), ("", name) of those without one."""
        ...

    @property
    def named_collections(self) -> Mapping[str, NamedCollection]:
        """The named collections by name."""
        ...

    def find(self, database: str, name: str) -> SchemaObject | None:
        """Return the object of that name, or None."""
        ...

    def by_id(self, object_id: str) -> SchemaObject | None:
        """Return the object with the id, or None."""
        ...

    def objects(self, database: str | None = None) -> Iterable[SchemaObject]:
        """Return the objects (of one database), ordered by database and name."""
        ...

    def objects_of(self, kind: type[KindOfObject]) -> Iterable[KindOfObject]:
        """Return the objects of one class, ordered by database and name. A catalog then reads no
        others."""
        ...

    def views_on(self, table_id: str) -> tuple[MaterializedView, ...]:
        """Return the materialized views that this table triggers, attached or not, by (database,
        name)."""
        ...

    def views_into(self, table_id: str) -> tuple[MaterializedView, ...]:
        """Return the materialized views that write this table, by (database, name)."""
        ...

    def parts(self, table_id: str) -> tuple[Part, ...]:
        """Return the live parts, placeholders included, by (partition_id, first block, last
        block)."""
        ...

    def part_count(self, table_id: str, partition_id: str) -> int:
        """Return the number of the partition's live parts, placeholders included."""
        ...

    def inline_rows(self, part: Part) -> bytes:
        """Return the Arrow IPC file bytes of an inline part."""
        ...

    def next_block(self, table: Table) -> int:
        """Return the number that the table's next block will get."""
        ...

    def data_version(self, table_id: str, partition_id: str) -> int:
        """Return how many commits other than INSERTs and merges changed the partition's rows."""
        ...

    def coverage(self, view_id: str) -> Coverage:
        """Return the view's coverage, clipped to the source blocks of this snapshot."""
        ...

    def invalidations(self, view_id: str | None = None) -> tuple[Invalidation, ...]:
        """Return the invalidations that were not repaired (of one view)."""
        ...

    def retained(self, view_id: str | None = None) -> tuple[Retained, ...]:
        """Return the ledger of rows removed by retention, in the order of their first removal."""
        ...

    def checks(self, view_id: str | None = None) -> tuple[Check, ...]:
        """Return the newest check for each (view, target partition)."""
        ...

    def damaged(self) -> tuple[Damage, ...]:
        """Return the live parts of all tables that are known now to be damaged."""
        ...

    def blocks(self, table_id: str) -> tuple[BlockInfo, ...]:
        """Return the table's blocks, ascending."""
        ...

    def derived(self, key: Hashable, make: Callable[[], Derived]) -> Derived:
        """Return the result of `make`, which a snapshot may cache under `key`."""
        ...

    def block_span(self, table_id: str, blocks: BlockRange) -> tuple[int, int]:
        """Return (number of these blocks, time in ms of the oldest or 0) without reading the log of
        all."""
        ...


def columns_of(snapshot: Snapshot, item: SchemaObject) -> tuple[Column, ...]:
    """Return the columns of an object; those of an Alias are its table's, () if that is gone."""
    if isinstance(item, View) and item.alias_of:
        database, name = item.alias_of
        table = snapshot.find(database, name)
        return () if table is None else table.columns
    return item.columns


def target_of(
    snapshot: Snapshot, view: MaterializedView | RefreshableView, position: Position | None = None
) -> Table:
    """Return the table that the view writes.

    Raises UnknownTable where it was dropped; `position` is the place in the SQL to point at.
    """
    target = snapshot.by_id(view.target_id)
    if isinstance(target, Table):
        return target
    name = f"{view.database}.{view.name}"
    raise UnknownTable(
        f"The target of view {name} does not exist.",
        hint=f"DROP VIEW {name}, or create it anew with a target.",
        position=position,
    )
