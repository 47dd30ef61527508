"""Parts that are older than their table's schema: which of its columns they hold, under which name.

A part says the schema version that it was written with, a column since which version parts hold
it, and the table what its columns were before: so what a part lacks is known without opening it.

    version 3   ADD COLUMN c                c.since = 3
    version 5   RENAME COLUMN a TO b        past (a's id, before 5, "a")
    a part of version 4 holds a, as "a", and c; one of version 2 lacks c
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from olapdb.model.part import ColumnBounds, Part
from olapdb.model.schema import Column, PastColumn, Table


def settled_version(table: Table) -> int:
    """Parts of this schema version or a newer one are as if they had been written today: all
    columns there, under their names, of their types."""
    return max(
        1, *(column.since for column in table.stored_columns), *(past.before for past in table.past)
    )


def lacks(part: Part, column: Column) -> bool:
    """Whether the part was written before the column was stored, so that its default is read."""
    return part.rows > 0 and part.schema_version < column.since


def next_column_id(table: Table) -> int:
    """Ids are never given twice: parts of a dropped column keep its values under its id."""
    return 1 + max(table.last_column_id, *(column.id for column in table.columns))


class PartColumns:
    """What parts of older versions know of a table's columns; immutable."""

    def __init__(self, table: Table) -> None:
        self._settled = settled_version(table)
        self._columns = table.stored_columns
        self._past: dict[int, list[PastColumn]] = {}
        for past in sorted(table.past, key=lambda one: one.before):
            self._past.setdefault(past.column_id, []).append(past)

    def name_in(self, part: Part, column: Column) -> str | None:
        """What the part calls the column; None where it lacks it."""
        if lacks(part, column):
            return None
        renamed = self._since(part, column)
        return renamed[0].name if renamed else column.name

    def types_in(self, part: Part, column: Column) -> list[str]:
        """The types that the column has had since the part was written, the part's first; not the
        one that it has now. A value was converted to each in turn."""
        return [one.type for one in self._since(part, column)]

    def bounds(self, part: Part) -> Mapping[str, ColumnBounds]:
        """The part's bounds by the table's names; a column whose type has changed in a way that
        orders values otherwise has none."""
        if part.schema_version >= self._settled or not part.bounds:
            return part.bounds
        found: dict[str, ColumnBounds] = {}
        for column in self._columns:
            name = self.name_in(part, column)
            bounds = part.bounds.get(name) if name is not None else None
            if bounds is not None and all(one.bounds_hold for one in self._since(part, column)):
                found[column.name] = bounds
        return found

    def sizes(self, part: Part, sizes: Mapping[str, int], column: Column) -> int:
        """The bytes that `sizes` (by the part's names) has of the column."""
        name = self.name_in(part, column)
        return 0 if name is None else sizes.get(name, 0)

    def _since(self, part: Part, column: Column) -> list[PastColumn]:
        """What became of the column after the part was written, the oldest first."""
        return [p for p in self._past.get(column.id, ()) if part.schema_version < p.before]


def fresh_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The same columns for a table that has no parts yet."""
    return tuple(replace(column, id=at, since=1) for at, column in enumerate(columns, 1))
