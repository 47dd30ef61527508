"""The columns of parts that are older than their table's schema: which ones they hold, under which
name.

A part records the schema version it was written with, a column the version since which parts hold
it, and the table its columns' former names and types.  So the columns that a part lacks are known
without opening it.

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
    """Return the lowest schema version whose parts have all columns under their present names and
    types."""
    return max(
        1, *(column.since for column in table.stored_columns), *(past.before for past in table.past)
    )


def lacks(part: Part, column: Column) -> bool:
    """Return whether the part has rows that were written before the column was stored. Readers use
    the column's default for them."""
    return part.rows > 0 and part.schema_version < column.since


def next_column_id(table: Table) -> int:
    """Return an unused column id. Ids are never reused: parts keep a dropped column's values under
    its id."""
    return 1 + max(table.last_column_id, *(column.id for column in table.columns))


class PartColumns:
    """The former names and types of a table's columns in older parts; immutable."""

    def __init__(self, table: Table) -> None:
        self._settled = settled_version(table)
        self._columns = table.stored_columns
        self._past: dict[int, list[PastColumn]] = {}
        for past in sorted(table.past, key=lambda column: column.before):
            self._past.setdefault(past.column_id, []).append(past)

    def name_in(self, part: Part, column: Column) -> str | None:
        """Return the part's name for the column; None if the part lacks it."""
        if lacks(part, column):
            return None
        changes = self._changes_since(part, column)
        return changes[0].name if changes else column.name

    def types_in(self, part: Part, column: Column) -> list[str]:
        """Return the types of the column from when the part was written, oldest first, without its
        present type. Each of them converted the values of the one before."""
        return [past.type for past in self._changes_since(part, column)]

    def bounds(self, part: Part) -> Mapping[str, ColumnBounds]:
        """Return the part's bounds under the table's names, without columns whose type change
        reordered values."""
        if part.schema_version >= self._settled or not part.bounds:
            return part.bounds
        part_bounds: dict[str, ColumnBounds] = {}
        for column in self._columns:
            name = self.name_in(part, column)
            bounds = part.bounds.get(name) if name is not None else None
            if bounds is not None and all(
                past.bounds_hold for past in self._changes_since(part, column)
            ):
                part_bounds[column.name] = bounds
        return part_bounds

    def sizes(self, part: Part, sizes: Mapping[str, int], column: Column) -> int:
        """Return the column's bytes in `sizes`, a mapping by the part's names; 0 if the part lacks
        the column."""
        name = self.name_in(part, column)
        return 0 if name is None else sizes.get(name, 0)

    def _changes_since(self, part: Part, column: Column) -> list[PastColumn]:
        """Return the changes of the column after the part was written, oldest first."""
        return [p for p in self._past.get(column.id, ()) if part.schema_version < p.before]


def fresh_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return the columns of a table without parts: ids from 1 on, `since` 1."""
    return tuple(replace(column, id=at, since=1) for at, column in enumerate(columns, 1))
