"""A process's copy of the newest commit it knows: the schema, and the parts of tables in use.

Both are updated by each commit's differences, so that an INSERT into a table of 10,000 parts does
not read 10,000 rows.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import takewhile

from olapdb.functions import parse_type
from olapdb.model.encoding import OBJECT_KINDS, decode_object
from olapdb.model.named_collection import NamedCollection
from olapdb.model.part import Part
from olapdb.model.schema import DatabaseEntry, KindOfObject, MaterializedView, SchemaObject
from olapdb.model.user_function import UserFunction
from olapdb.records import dataclass

DELTAS_MAX = 512
"""Commits a reader may lag behind before a table's parts are read from the catalog."""


class StoredObject:
    """An object's row in the catalog. The object is decoded when something first asks for it."""

    def __init__(self, kind: str, database: str, name: str, body: str) -> None:
        self.kind = kind
        self.database = database
        self.name = name
        self.body = body
        self._decoded: dict[str, SchemaObject] = {}

    @property
    def decoded(self) -> SchemaObject:
        """The object: always the same one, also if two threads ask at once."""
        item = self._decoded.get("object")
        if item is None:
            decoded = decode_object(self.kind, self.body, parse_type)
            item = self._decoded.setdefault("object", decoded)
        return item


class StoredObjects(Mapping[str, SchemaObject]):
    """Objects by id, as the catalog stores them; each is decoded at its first use."""

    def __init__(self, rows: Mapping[str, StoredObject]) -> None:
        self._rows = rows

    def __getitem__(self, object_id: str) -> SchemaObject:
        return self._rows[object_id].decoded

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, object_id: object) -> bool:
        return object_id in self._rows

    def ids_by_name(self) -> dict[tuple[str, str], str]:
        """Return the ids by (database, name). Decode no object."""
        return {(row.database, row.name): object_id for object_id, row in self._rows.items()}

    def of_kind(self, kind: type[KindOfObject]) -> list[KindOfObject]:
        """Return the objects of one class. Decode no other object."""
        names = {name for name, cls in OBJECT_KINDS.items() if issubclass(cls, kind)}
        rows = [row.decoded for row in self._rows.values() if row.kind in names]
        return [item for item in rows if isinstance(item, kind)]


@dataclass(frozen=True)
class SchemaState:
    """Databases by name, objects by id, functions by (database, name), named collections by name;
    the other mappings are derived. None but `ordered` decodes an object that it does not return."""

    databases: Mapping[str, DatabaseEntry] = field(default_factory=dict)
    by_id: Mapping[str, SchemaObject] = field(default_factory=dict)
    functions: Mapping[tuple[str, str], UserFunction] = field(default_factory=dict)
    collections: Mapping[str, NamedCollection] = field(default_factory=dict)

    @cached_property
    def ids_by_name(self) -> Mapping[tuple[str, str], str]:
        """The objects' ids by (database, name)."""
        if isinstance(self.by_id, StoredObjects):
            return self.by_id.ids_by_name()
        return {(item.database, item.name): item.id for item in self.by_id.values()}

    @cached_property
    def ordered(self) -> tuple[SchemaObject, ...]:
        """The objects ordered by (database, name)."""
        return tuple(sorted(self.by_id.values(), key=_qualified_name))

    def named(self, database: str, name: str) -> SchemaObject | None:
        """Return the object of that name, None if there is none."""
        object_id = self.ids_by_name.get((database, name))
        return None if object_id is None else self.by_id[object_id]

    def of_kind(self, kind: type[KindOfObject]) -> tuple[KindOfObject, ...]:
        """Return the objects of one class, ordered by (database, name)."""
        if isinstance(self.by_id, StoredObjects):
            items = self.by_id.of_kind(kind)
        else:
            items = [item for item in self.by_id.values() if isinstance(item, kind)]
        return tuple(sorted(items, key=_qualified_name))

    @cached_property
    def materialized_views(self) -> tuple[MaterializedView, ...]:
        """The materialized views, ordered by (database, name)."""
        return self.of_kind(MaterializedView)

    @cached_property
    def views_on(self) -> Mapping[str, tuple[MaterializedView, ...]]:
        """The materialized views that a table triggers, by table id."""
        return self._views_by(lambda view: view.source_id)

    @cached_property
    def views_into(self) -> Mapping[str, tuple[MaterializedView, ...]]:
        """The materialized views that write a table, by table id."""
        return self._views_by(lambda view: view.target_id)

    @cached_property
    def views_joining(self) -> Mapping[str, tuple[MaterializedView, ...]]:
        """The views that read a table as a dimension, beside their source."""
        grouped: dict[str, list[MaterializedView]] = {}
        for view in self.materialized_views:
            for table_id in view.dimension_ids:
                grouped.setdefault(table_id, []).append(view)
        return {table_id: tuple(views) for table_id, views in grouped.items()}

    def _views_by(
        self, key: Callable[[MaterializedView], str]
    ) -> dict[str, tuple[MaterializedView, ...]]:
        """Group the materialized views by the table id that `key(view)` returns."""
        grouped: dict[str, list[MaterializedView]] = {}
        for view in self.materialized_views:
            grouped.setdefault(key(view), []).append(view)
        return {table_id: tuple(views) for table_id, views in grouped.items()}


def _qualified_name(item: SchemaObject) -> tuple[str, str]:
    """Return (database, name), by which objects are sorted."""
    return item.database, item.name


def part_order(part: Part) -> tuple[str, int, int, str]:
    """Return the sort key of parts: partition, first block, last block, id."""
    blocks = part.block_range
    return (part.partition_id, blocks.first, blocks.last, part.id)


@dataclass(frozen=True, slots=True)
class PartsDelta:
    """The parts that one commit added to a table and removed from it."""

    commit: int
    added: Sequence[Part]
    removed: Sequence[Part]


class TableParts:
    """The live parts of a table as of the newest applied commit, and the deltas to step back.

    Not thread-safe: the catalog's head lock guards it.
    """

    def __init__(self, as_of: int, parts: Iterable[Part]) -> None:
        self._ordered = sorted(parts, key=part_order)
        self._by_id = {part.id: part for part in self._ordered}
        self._counts = Counter(part.partition_id for part in self._ordered)
        self._deltas: deque[PartsDelta] = deque(maxlen=DELTAS_MAX)
        self._oldest = self._newest = as_of
        self._whole: tuple[Part, ...] | None = None

    def advance(self, commit: int, added: Sequence[Part], removed_ids: Iterable[str]) -> None:
        """Apply a commit's changes to the table; do nothing if the parts were read after it."""
        if commit <= self._newest:
            return
        self._newest = commit
        removed = [self._by_id.pop(part_id) for part_id in removed_ids if part_id in self._by_id]
        if len(self._deltas) == DELTAS_MAX:
            self._oldest = self._deltas[0].commit
        self._deltas.append(PartsDelta(commit, tuple(added), tuple(removed)))
        for part in removed:
            _remove(self._ordered, part)
            self._counts[part.partition_id] -= 1
        for part in added:
            insort(self._ordered, part, key=part_order)
            self._by_id[part.id] = part
            self._counts[part.partition_id] += 1
        self._whole = None

    def reached(self, commit: int) -> None:
        """Record that all commits up to this one have been applied, whether they changed the table
        or not."""
        self._newest = max(self._newest, commit)

    def at(self, number: int) -> tuple[Part, ...] | None:
        """Return the live parts as of a commit, None if it is older than the deltas."""
        if number < self._oldest:
            return None
        if self._whole is None:
            self._whole = tuple(self._ordered)
        later = self._deltas_after(number)
        if not later:
            return self._whole
        ordered = list(self._ordered)
        for delta in later:
            for part in delta.added:
                _remove(ordered, part)
            for part in delta.removed:
                insort(ordered, part, key=part_order)
        return tuple(ordered)

    def count(self, partition_id: str, number: int) -> int | None:
        """Return the number of live parts of a partition as of a commit, None if it is older than
        the deltas."""
        if number < self._oldest:
            return None
        count = self._counts[partition_id]
        for delta in self._deltas_after(number):
            count -= sum(part.partition_id == partition_id for part in delta.added)
            count += sum(part.partition_id == partition_id for part in delta.removed)
        return count

    def _deltas_after(self, number: int) -> list[PartsDelta]:
        """Return the deltas after a commit, the newest first."""
        return list(takewhile(lambda delta: delta.commit > number, reversed(self._deltas)))


def _remove(ordered: list[Part], part: Part) -> None:
    """Remove a part from a list in the order of `part_order`. The part must be in it."""
    del ordered[bisect_left(ordered, part_order(part), key=part_order)]
