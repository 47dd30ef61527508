"""A process's copy of the newest commit it knows: the schema, and the parts of tables in use.

Both are updated by each commit's differences, so that an INSERT into a table of 10,000 parts does
not read 10,000 rows.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile

from olapdb.model.part import Part
from olapdb.model.schema import DatabaseEntry, MaterializedView, SchemaObject
from olapdb.model.user_function import UserFunction

DELTAS_MAX = 512
"""Commits a reader may lag behind before a table's parts are read from the catalog."""


@dataclass(frozen=True)
class SchemaState:
    """Databases by name, objects by id, functions by (database, name); the other mappings are
    derived."""

    databases: Mapping[str, DatabaseEntry] = field(default_factory=dict)
    by_id: Mapping[str, SchemaObject] = field(default_factory=dict)
    functions: Mapping[tuple[str, str], UserFunction] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> Mapping[tuple[str, str], SchemaObject]:
        """The objects by (database, name)."""
        return {(item.database, item.name): item for item in self.by_id.values()}

    @cached_property
    def ordered(self) -> tuple[SchemaObject, ...]:
        """The objects ordered by (database, name)."""
        return tuple(sorted(self.by_id.values(), key=lambda item: (item.database, item.name)))

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
        for item in self.ordered:
            if isinstance(item, MaterializedView):
                for table_id in item.dimension_ids:
                    grouped.setdefault(table_id, []).append(item)
        return {table_id: tuple(views) for table_id, views in grouped.items()}

    def _views_by(self, key: object) -> dict[str, tuple[MaterializedView, ...]]:
        """Group the materialized views by the table id that `key(view)` returns."""
        assert callable(key)
        grouped: dict[str, list[MaterializedView]] = {}
        for item in self.ordered:
            if isinstance(item, MaterializedView):
                grouped.setdefault(key(item), []).append(item)
        return {table_id: tuple(views) for table_id, views in grouped.items()}


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
