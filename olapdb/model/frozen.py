"""A piece of a snapshot as plain data, which can be pickled and read without a catalog.

A remote task that runs a trigger, a backfill chunk or a reconciliation gets one: the tables that it
reads with the parts that it may read, and every view to which its rows cascade.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field

from olapdb.errors import InternalError
from olapdb.model.damage import Damage
from olapdb.model.named_collection import NamedCollection
from olapdb.model.part import BlockRange, Part
from olapdb.model.schema import DatabaseEntry, KindOfObject, MaterializedView, SchemaObject, Table
from olapdb.model.snapshot import Derived, Snapshot
from olapdb.model.user_function import UserFunction
from olapdb.model.view_state import BlockInfo, Check, Coverage, Invalidation, Retained
from olapdb.records import dataclass


@dataclass(frozen=True)
class FrozenSnapshot:
    """A `Snapshot` of the objects that it holds; reading the parts of any other is a bug."""

    number: int
    databases: Mapping[str, DatabaseEntry]
    items: Mapping[str, SchemaObject]
    parts_of: Mapping[str, tuple[Part, ...]]
    inline: Mapping[str, bytes] = field(default_factory=dict)
    next_blocks: Mapping[str, int] = field(default_factory=dict)
    data_versions: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def functions(self) -> Mapping[tuple[str, str], UserFunction]:
        """No functions: definitions of tables and views hold expressions without them."""
        return {}

    @property
    def named_collections(self) -> Mapping[str, NamedCollection]:
        """No collections: definitions of tables and views name none."""
        return {}

    def find(self, database: str, name: str) -> SchemaObject | None:
        """Return the held object of that name; None if the snapshot does not hold it."""
        for item in self.items.values():
            if item.name == name and item.database == database:
                return item
        return None

    def by_id(self, object_id: str) -> SchemaObject | None:
        """Return the held object with the id; None if the snapshot does not hold it."""
        return self.items.get(object_id)

    def objects(self, database: str | None = None) -> Iterable[SchemaObject]:
        """Return the held objects (of one database), by database and name."""
        chosen = (i for i in self.items.values() if database is None or i.database == database)
        return sorted(chosen, key=lambda item: (item.database, item.name))

    def objects_of(self, kind: type[KindOfObject]) -> Iterable[KindOfObject]:
        """Return the held objects of one class, by database and name."""
        return [item for item in self.objects() if isinstance(item, kind)]

    def views_on(self, table_id: str) -> tuple[MaterializedView, ...]:
        """Return the held views that the table triggers, by database and name."""
        return self._views(lambda view: view.source_id == table_id)

    def views_into(self, table_id: str) -> tuple[MaterializedView, ...]:
        """Return the held views that write the table, by database and name."""
        return self._views(lambda view: view.target_id == table_id)

    def parts(self, table_id: str) -> tuple[Part, ...]:
        """Return the parts of a table. Raise InternalError if none were frozen for it."""
        if table_id not in self.parts_of:
            raise InternalError(f"Table {table_id} has no parts in this frozen snapshot.")
        return self.parts_of[table_id]

    def part_count(self, table_id: str, partition_id: str) -> int:
        """Return the number of the partition's held parts. Raises InternalError if the table's
        parts were not frozen."""
        return sum(part.partition_id == partition_id for part in self.parts(table_id))

    def inline_rows(self, part: Part) -> bytes:
        """Return the bytes of an inline part. Raise InternalError if they were not frozen."""
        if part.id not in self.inline:
            raise InternalError(f"Part {part.id} has no inline rows in this frozen snapshot.")
        return self.inline[part.id]

    def next_block(self, table: Table) -> int:
        """Return the table's next block number; 1 if it was not frozen."""
        return self.next_blocks.get(table.id, 1)

    def data_version(self, table_id: str, partition_id: str) -> int:
        """Return the partition's data version; 0 if it was not frozen."""
        return self.data_versions.get((table_id, partition_id), 0)

    def coverage(self, view_id: str) -> Coverage:
        """Raise InternalError: a frozen snapshot holds no coverage."""
        raise InternalError("A frozen snapshot holds no coverage.")

    def invalidations(self, view_id: str | None = None) -> tuple[Invalidation, ...]:
        """Raise InternalError: a frozen snapshot holds no invalidations."""
        raise InternalError("A frozen snapshot holds no invalidations.")

    def retained(self, view_id: str | None = None) -> tuple[Retained, ...]:
        """Raise InternalError: a frozen snapshot holds no retained slices."""
        raise InternalError("A frozen snapshot holds no retained slices.")

    def checks(self, view_id: str | None = None) -> tuple[Check, ...]:
        """Raise InternalError: a frozen snapshot holds no checks."""
        raise InternalError("A frozen snapshot holds no checks.")

    def damaged(self) -> tuple[Damage, ...]:
        """Raise InternalError: a frozen snapshot holds no list of damaged parts."""
        raise InternalError("A frozen snapshot holds no list of damaged parts.")

    def blocks(self, table_id: str) -> tuple[BlockInfo, ...]:
        """Raise InternalError: a frozen snapshot holds no block log."""
        raise InternalError("A frozen snapshot holds no block log.")

    def derived(self, key: Hashable, make: Callable[[], Derived]) -> Derived:
        """Call `make` each time; nothing is cached."""
        return make()

    def block_span(self, table_id: str, blocks: BlockRange) -> tuple[int, int]:
        """Raise InternalError: a frozen snapshot holds no block log."""
        raise InternalError("A frozen snapshot holds no block log.")

    def _views(self, chosen: Callable[[MaterializedView], bool]) -> tuple[MaterializedView, ...]:
        """Return the materialized views for which `chosen(view)` holds, by database and name."""
        return tuple(
            item for item in self.objects() if isinstance(item, MaterializedView) and chosen(item)
        )


def freeze(
    snapshot: Snapshot,
    table_ids: Iterable[str],
    *,
    parts: Mapping[str, Sequence[Part]] | None = None,
    view_ids: Iterable[str] = (),
) -> FrozenSnapshot:
    """Freeze what the cascades from `table_ids` and the views `view_ids` need.

    `parts` limits the parts of a table that is read.  Dimension tables are frozen with all parts,
    even if `parts` has them, because a view below may join that very table; tables that only
    receive rows are frozen without parts.  The plain views in a view's `references` are frozen too.
    """
    parts_by_table = dict(parts or {})
    items: dict[str, SchemaObject] = {}
    read: set[str] = set()
    for view_id in view_ids:
        _add_view(snapshot, view_id, items, read)
    for table_id in table_ids:
        _add_cascade(snapshot, table_id, items, read)
    parts_of = {
        table_id: snapshot.parts(table_id)
        if table_id in read
        else tuple(parts_by_table.get(table_id, ()))
        for table_id, item in items.items()
        if isinstance(item, Table)
    }
    inline = {
        part.id: snapshot.inline_rows(part)
        for parts_of_table in parts_of.values()
        for part in parts_of_table
        if part.inline
    }
    tables = [item for item in items.values() if isinstance(item, Table)]
    return FrozenSnapshot(
        number=snapshot.number,
        databases=dict(snapshot.databases),
        items=items,
        parts_of=parts_of,
        inline=inline,
        next_blocks={table.id: snapshot.next_block(table) for table in tables},
    )


def _add_cascade(
    snapshot: Snapshot, table_id: str, items: dict[str, SchemaObject], read: set[str]
) -> None:
    """Add the table and everything that an INSERT into it reaches: views on it, their targets,
    views on those, and so on. `read` collects the ids of dimension tables, whose rows the views
    read."""
    waiting, seen = [table_id], set[str]()
    while waiting:
        current_id = waiting.pop()
        if current_id in seen:
            continue
        seen.add(current_id)
        _add_object(snapshot, current_id, items)
        for view in snapshot.views_on(current_id):
            _add_view(snapshot, view.id, items, read)
            waiting.append(view.target_id)


def _add_view(
    snapshot: Snapshot, view_id: str, items: dict[str, SchemaObject], read: set[str]
) -> None:
    """Add a view (if it exists) with its source, target, dimension tables and references to
    `items`. `read` collects the ids of its dimension tables."""
    _add_object(snapshot, view_id, items)
    view = items.get(view_id)
    if not isinstance(view, MaterializedView):
        return
    read.update(view.dimension_ids)
    for object_id in (view.source_id, view.target_id, *view.dimension_ids, *view.references):
        _add_object(snapshot, object_id, items)


def _add_object(snapshot: Snapshot, object_id: str, items: dict[str, SchemaObject]) -> None:
    """Add the table or view to `items`, unless it is there already or does not exist."""
    if object_id in items:
        return
    item = snapshot.by_id(object_id)
    if item is not None:
        items[object_id] = item
