"""The catalog as one reader sees it: everything as of one commit number."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Protocol, TypeVar

from olapdb.errors import Position, UnknownTable
from olapdb.model.damage import Damage
from olapdb.model.part import BlockRange, Part
from olapdb.model.schema import DatabaseEntry, MaterializedView, SchemaObject, Table
from olapdb.model.view_state import BlockInfo, Check, Coverage, Invalidation, Retained

Derived = TypeVar("Derived")


class Snapshot(Protocol):
    """Immutable; parts and view states are read from the catalog at first use, as of `number`.

    May raise SnapshotTooOld when that was vacuumed meanwhile.
    """

    @property
    def number(self) -> int: ...

    @property
    def databases(self) -> Mapping[str, DatabaseEntry]: ...

    def find(self, database: str, name: str) -> SchemaObject | None: ...

    def by_id(self, object_id: str) -> SchemaObject | None: ...

    def objects(self, database: str | None = None) -> Iterable[SchemaObject]:
        """By database and name, in that order."""
        ...

    def views_on(self, table_id: str) -> tuple[MaterializedView, ...]:
        """Materialized views that this table triggers, attached or not, by (database, name)."""
        ...

    def views_into(self, table_id: str) -> tuple[MaterializedView, ...]: ...

    def parts(self, table_id: str) -> tuple[Part, ...]:
        """Live parts, void ones too, by (partition_id, first block, last block)."""
        ...

    def part_count(self, table_id: str, partition_id: str) -> int:
        """Return the number of the partition's live parts, void ones too."""
        ...

    def inline_rows(self, part: Part) -> bytes:
        """The Arrow IPC file bytes of an inline part."""
        ...

    def next_block(self, table: Table) -> int: ...

    def data_version(self, table_id: str, partition_id: str) -> int:
        """0 until a row-changing commit other than INSERT touched the partition."""
        ...

    def coverage(self, view_id: str) -> Coverage:
        """Clipped to the source blocks that this snapshot has."""
        ...

    def invalidations(self, view_id: str | None = None) -> tuple[Invalidation, ...]:
        """Those not yet repaired."""
        ...

    def retained(self, view_id: str | None = None) -> tuple[Retained, ...]:
        """What left by retention, by the order in which it first did."""
        ...

    def checks(self, view_id: str | None = None) -> tuple[Check, ...]:
        """The newest for each (view, target partition)."""
        ...

    def damaged(self) -> tuple[Damage, ...]:
        """Live parts that are known, as of now, to be damaged, of all tables."""
        ...

    def blocks(self, table_id: str) -> tuple[BlockInfo, ...]: ...

    def derived(self, key: Hashable, make: Callable[[], Derived]) -> Derived:
        """Return what `make` gives; a snapshot may keep it, and give it again for the same key."""
        ...

    def block_span(self, table_id: str, blocks: BlockRange) -> tuple[int, int]:
        """(how many of these blocks there are, when the oldest of them came in milliseconds or 0),
        without reading the log of all."""
        ...


def target_of(
    snapshot: Snapshot, view: MaterializedView, position: Position | None = None
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
