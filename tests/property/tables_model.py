"""The model that `test_tables.py` compares tables with: rows in lists, tables in a dictionary.

A column has a number that is never reused, by which a row holds its values. A column's default
never changes, so rows older than the column get its value at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

ENGINES = {
    "MergeTree": "MergeTree",
    "Replacing": "ReplacingMergeTree(version)",
    "Summing": "SummingMergeTree(v)",
}
DEFAULTS: dict[str, Callable[[Row], int]] = {
    "": lambda row: 0,
    "7": lambda row: 7,
    "v * 2": lambda row: row.v * 2,
    "k + p": lambda row: row.k + row.p,
}
BASE = ("p", "k", "v", "version")


@dataclass(frozen=True)
class Row:
    """A row. `version` is unique among inserted rows; `arrival` is its position in its table."""

    p: int
    k: int
    v: int
    version: int
    arrival: int
    more: tuple[tuple[int, int], ...] = ()

    def value(self, key: int) -> int:
        return dict(self.more)[key]

    def given(self, key: int, value: int) -> Row:
        """Return the row with a value for the column `key`."""
        return replace(self, more=tuple({**dict(self.more), key: value}.items()))


@dataclass(frozen=True)
class Column:
    """A column; `key` is its number."""

    key: int
    type: str
    default: str


@dataclass
class Model:
    """One table. `detached` holds the rows of its detached parts."""

    engine: str
    columns: dict[str, Column] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    detached: list[Row] = field(default_factory=list)

    def copy(self) -> Model:
        return Model(self.engine, dict(self.columns), list(self.rows), list(self.detached))

    # --- columns

    def add_column(self, name: str, column: Column) -> None:
        """Add a column and give each row, detached ones too, its default."""
        self.columns[name] = column

        def filled(row: Row) -> Row:
            return row.given(column.key, DEFAULTS[column.default](row))

        self.rows = [filled(row) for row in self.rows]
        self.detached = [filled(row) for row in self.detached]

    @property
    def structure(self) -> set[tuple[str, str]]:
        return {(name, column.type) for name, column in self.columns.items()}

    # --- rows

    def leave(self, leaves: Callable[[Row], bool]) -> list[Row]:
        """Remove the rows that match `leaves` and return them."""
        gone = [row for row in self.rows if leaves(row)]
        self.rows = [row for row in self.rows if not leaves(row)]
        return gone

    def change(self, matches: Callable[[Row], bool], change: Callable[[Row], Row]) -> None:
        """Replace the rows that match by `change(row)`."""
        self.rows = [change(row) if matches(row) else row for row in self.rows]

    def take(self, rows: Iterable[Row], source: Model, arrivals: count[int]) -> None:
        """Add rows of parts that come from another table, matching columns by name."""
        for row in sorted(rows, key=lambda row: row.arrival):
            more = {
                self.columns[name].key: row.value(column.key)
                for name, column in source.columns.items()
            }
            came = replace(row, arrival=next(arrivals), more=tuple(more.items()))
            self.rows.append(came)

    def may_take(self, source: Model) -> bool:
        """Return whether the table may take the source's partitions.

        Which rows a Replacing or Summing source holds depends on its merges. Only a table of the
        same engine gives the same answer for all of them."""
        same = source.structure == self.structure
        return same and source.engine in ("MergeTree", self.engine)

    # --- what a reader sees

    @property
    def columns_read(self) -> tuple[str, ...]:
        return ("p", "k", "v") if self.engine == "Summing" else (*BASE, *sorted(self.columns))

    @property
    def query(self) -> str:
        """Return a SELECT from `{name}` of the rows that `shown` gives."""
        final = "" if self.engine == "MergeTree" else " FINAL"
        condition = " WHERE v != 0" if self.engine == "Summing" else ""
        return f"SELECT {', '.join(self.columns_read)} FROM {{name}}{final}{condition}"

    def shown(self) -> list[tuple[Any, ...]]:
        """Return the rows that a reader sees, sorted."""
        match self.engine:
            case "Summing":
                sums: dict[tuple[int, int], int] = defaultdict(int)
                for row in self.rows:
                    sums[row.p, row.k] += row.v
                return sorted((p, k, v) for (p, k), v in sums.items() if v)
            case "Replacing":
                newest = {
                    (row.p, row.k): row
                    for row in sorted(self.rows, key=lambda row: (row.version, row.arrival))
                }
                return self._tuples(list(newest.values()))
            case _:
                return self._tuples(self.rows)

    def _tuples(self, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
        names = sorted(self.columns)
        return sorted(
            (row.p, row.k, row.v, row.version, *(row.value(self.columns[n].key) for n in names))
            for row in rows
        )

    @property
    def partitions(self) -> set[int]:
        return {row.p for row in self.rows}
