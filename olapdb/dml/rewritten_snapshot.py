"""A snapshot as a mutation sees it: the table as it will be, and the parts that it has staged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from olapdb.model.changes import AddPart
from olapdb.model.part import Part
from olapdb.model.schema import SchemaObject, Table
from olapdb.model.snapshot import Snapshot


@dataclass(frozen=True)
class Rewritten:
    """Stands for a `Snapshot`; what it does not change is that of `below`. `replaced` are staged
    parts by the id of the live one that they stand for, None for one that is gone."""

    below: Snapshot
    table: Table
    replaced: Mapping[str, AddPart | None]

    def __getattr__(self, name: str) -> object:
        return getattr(self.below, name)

    def find(self, database: str, name: str) -> SchemaObject | None:
        found = self.below.find(database, name)
        return self.table if found is not None and found.id == self.table.id else found

    def by_id(self, object_id: str) -> SchemaObject | None:
        return self.table if object_id == self.table.id else self.below.by_id(object_id)

    def parts(self, table_id: str) -> tuple[Part, ...]:
        live = self.below.parts(table_id)
        if table_id != self.table.id:
            return live
        found: list[Part] = []
        for part in live:
            if part.id not in self.replaced:
                found.append(part)
                continue
            staged = self.replaced[part.id]
            if staged is not None:
                found.append(staged.part)
        return tuple(found)

    def inline_rows(self, part: Part) -> bytes:
        for staged in self.replaced.values():
            if staged is not None and staged.part.id == part.id:
                assert staged.inline_rows is not None
                return staged.inline_rows
        return self.below.inline_rows(part)
