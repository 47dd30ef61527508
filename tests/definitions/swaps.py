"""Draws statements that put another thing under a name: EXCHANGE TABLES, CREATE OR REPLACE of plain
views and dictionaries, and views that are refreshed. They have a random source of their own: the other
seeds keep their scripts."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.definitions.tables import TableDraft

if TYPE_CHECKING:
    from tests.definitions.grammar import Definition


class Swaps:
    """A source of such statements for one script; a quarter of the scripts have some."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"swaps {seed}")
        self.used = self.lot(0.25)
        self.copies: list[tuple[str, str]] = []
        """Tables and their copies, which are exchanged."""
        self.refreshed = ""

    def lot(self, share: float) -> bool:
        """Return True with the given probability."""
        return self.chance.random() < share

    def refreshed_view(self, source: TableDraft) -> list[str]:
        """Return the statements for a view that is refreshed, and one that joins it; mostly none."""
        keys = [f for f in source.of_role("key") if not f.kind and "Nullable" not in f.type]
        if not self.used or not keys or not self.lot(0.3):
            return []
        self.refreshed, key = "rf", keys[0]
        rows = f"SELECT {key.name}, count() AS z FROM {source.name} GROUP BY {key.name}"
        return [
            f"CREATE MATERIALIZED VIEW rf REFRESH EVERY 10 YEAR ENGINE = MergeTree"
            f" ORDER BY {key.name} AS {rows}",
            "SYSTEM WAIT VIEW rf",
            f"CREATE TABLE trf ({key.name} {key.type}, m UInt64) ENGINE = SummingMergeTree"
            f" ORDER BY {key.name}",
            f"CREATE MATERIALIZED VIEW vrf TO trf AS SELECT s.{key.name} AS {key.name},"
            f" sum(j.z) AS m FROM {source.name} AS s JOIN rf AS j ON s.{key.name} = j.{key.name}"
            f" GROUP BY s.{key.name}",
        ]

    def step(self, definition: Definition) -> list[str]:
        """Return the statements of a step; mostly none."""
        if not self.used or not self.lot(0.3):
            return []
        kinds = [self._exchanged, self._exchanged, self._replaced_view]
        if self.refreshed:
            kinds += [self._refreshed] * 2
        return self.chance.choice(kinds)(definition)

    def _exchanged(self, definition: Definition) -> list[str]:
        """Exchange a table with a copy of it, or with one of other rows; or exchange it back."""
        if self.copies and self.lot(0.5):
            table, copy = self.chance.choice(self.copies)
            return [f"EXCHANGE TABLES {table} AND {copy}"]
        names = [*definition.sources, *definition.dimensions]
        if self.lot(0.2):
            names = definition.targets or names
        table = self.chance.choice(names)
        copy = f"{table}_y{len(self.copies)}"
        self.copies.append((table, copy))
        given = ", ".join(f.name for f in definition.tables[table].fields if f.is_given)
        rows = self.chance.choice(("", " LIMIT 2", " LIMIT 0"))
        made = [
            f"CREATE TABLE {copy} AS {table}",
            f"INSERT INTO {copy} ({given}) SELECT {given} FROM {table}{rows}",
        ]
        if self.lot(0.3):
            made = [f"CREATE TABLE {copy} CLONE AS {table}"]
        return [*made, f"EXCHANGE TABLES {table} AND {copy}"]

    def _replaced_view(self, definition: Definition) -> list[str]:
        """Give a plain view another query."""
        plain = [(name, table) for name, table in definition.plain if name.startswith("pv_")]
        if not plain:
            return []
        name, table = self.chance.choice(plain)
        of = name.removeprefix("pv_")
        numbers = [f.name for f in table.of_role("number")]
        condition = f" WHERE {self.chance.choice(numbers)} > 0" if numbers and self.lot(0.6) else ""
        return [
            self.chance.choice(
                (
                    f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM {of}{condition}",
                    f"CREATE OR REPLACE VIEW {name} AS SELECT DISTINCT * FROM {of}",
                    f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM {of} UNION ALL SELECT * FROM {of}",
                )
            )
        ]

    def _refreshed(self, definition: Definition) -> list[str]:
        """Refresh the view, or change its query."""
        del definition
        return self.chance.choice(
            (
                ["SYSTEM REFRESH VIEW rf", "SYSTEM WAIT VIEW rf"],
                ["SYSTEM STOP VIEW rf", "SYSTEM REFRESH VIEW rf", "SYSTEM START VIEW rf"],
            )
        )
