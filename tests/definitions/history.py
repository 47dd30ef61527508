"""Draws the statements that follow the views: rows, tables and views are added, changed and
removed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.definitions.steps import arrow_step
from tests.definitions.tables import (
    KEY_TYPES,
    VOLATILE,
    Field,
    TableDraft,
    draw_computed,
    draw_rows,
)

if TYPE_CHECKING:
    from tests.definitions.grammar import Definition


class History:
    """A generator of steps. Each method returns statements; a weight says how often it is drawn."""

    def __init__(self, chance: random.Random, definition: Definition) -> None:
        self.chance, self.definition = chance, definition
        self.columns = 0
        self.kinds: tuple[tuple[Callable[[], list[str]], int], ...] = (
            (self.insert, 30),
            (self.insert_dimension, 15),
            (self.optimize, 20),
            (self.delete, 6),
            (self.update, 5),
            (self.add_column, 7),
            (self.change_column, 5),
            (self.partition, 6),
            (self.table_settings, 3),
            (self.by_hand, 3),
            (self.about_view, 18),
            (self.mend, 6),
            (self.replace_dimension, 2),
            (self.modify_query, 3),
            (self.copy_rows, 2),
        )

    def step(self) -> list[str]:
        """Draw one kind of step and return its statements."""
        kinds, weights = zip(*self.kinds, strict=True)
        return list(self.chance.choices(kinds, weights)[0]())

    # --- rows

    def insert(self) -> list[str]:
        """Insert into a source."""
        table = self.definition.tables[self.chance.choice(self.definition.sources)]
        return self._insert(table)

    def insert_dimension(self) -> list[str]:
        """Insert into a dimension, or into a source if there is none."""
        if not self.definition.dimensions:
            return self.insert()
        return self._insert(self.definition.tables[self.chance.choice(self.definition.dimensions)])

    def _insert(self, table: TableDraft) -> list[str]:
        chance = self.chance
        names, rows = draw_rows(chance, table, chance.choices((1, 2, 4, 8), (25, 30, 25, 20))[0])
        if chance.random() < 0.08:
            return [arrow_step(table.name, _arrow(table, names, rows))]
        cut = ""
        if chance.random() < 0.3:
            cut = f" SETTINGS max_insert_block_size = {chance.choice((1, 2))}"
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        return [f"INSERT INTO {table.name} ({', '.join(names)}){cut} VALUES {values}"]

    def copy_rows(self) -> list[str]:
        """Insert rows of a source into itself again."""
        table = self.definition.tables[self.chance.choice(self.definition.sources)]
        names = ", ".join(f.name for f in table.fields if f.is_given)
        return [f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {table.name} LIMIT 3"]

    def by_hand(self) -> list[str]:
        """Insert a row into a target, which is bypass."""
        if not self.definition.targets:
            return []
        return [f"INSERT INTO {self._target()} SELECT * FROM {self._target()} LIMIT 1"]

    def _condition(self, table: TableDraft) -> str:
        pool = [f for f in table.fields if f.values and f.role in ("key", "number")]
        if not pool:
            return "1"
        found = self.chance.choice(pool)
        value = self.chance.choice(found.values)
        return f"{found.name} IS NULL" if value == "NULL" else f"{found.name} = {value}"

    def delete(self) -> list[str]:
        """Delete rows of an input, or truncate it."""
        table = self._any_input()
        if self.chance.random() < 0.15:
            return [f"TRUNCATE TABLE {table.name}"]
        retain = " SETTINGS retain = 1" if self.chance.random() < 0.1 else ""
        return [f"DELETE FROM {table.name} WHERE {self._condition(table)}{retain}"]

    def update(self) -> list[str]:
        """Update a column of an input."""
        table = self._any_input()
        pool = [f for f in table.fields if f.values and f.role in ("number", "text", "time")]
        if not pool:
            return []
        found = self.chance.choice(pool)
        value = self.chance.choice([v for v in found.values if v != "NULL"])
        return [
            f"ALTER TABLE {table.name} UPDATE {found.name} = {value} WHERE {self._condition(table)}"
        ]

    def replace_dimension(self) -> list[str]:
        """Replace a dimension by CREATE OR REPLACE TABLE, and insert into it."""
        if not self.definition.dimensions:
            return []
        table = self.definition.tables[self.chance.choice(self.definition.dimensions)].copy()
        text = table.ddl.replace("CREATE TABLE", "CREATE OR REPLACE TABLE", 1)
        return [text, *self._insert(table)]

    # --- merges and partitions

    def optimize(self) -> list[str]:
        """Merge a table, fully or by one background merge."""
        names = list(self.definition.tables)
        if self.definition.dimensions and self.chance.random() < 0.4:
            names = self.definition.dimensions
        name = self.chance.choice(names)
        return [
            self.chance.choice(
                (f"OPTIMIZE TABLE {name} FINAL", f"OPTIMIZE TABLE {name}", f"-- merge {name}")
            )
        ]

    def partition(self) -> list[str]:
        """Drop, detach, clear, replace, move or attach a partition."""
        table = self.chance.choice(list(self.definition.tables.values()))
        which = "ALL"
        found = next((f for f in table.fields if f.name == table.partition and f.values), None)
        if found is not None and self.chance.random() < 0.8:
            which = self.chance.choice(found.values)
        action = self.chance.choice(("DROP", "DETACH", "DETACH", "CLEAR COLUMN x IN", "MOVE"))
        if action == "MOVE":
            copy = f"{table.name}_copy"
            return [
                f"CREATE TABLE {copy} AS {table.name}",
                f"ALTER TABLE {copy} ATTACH PARTITION {which} FROM {table.name}",
                self.chance.choice(
                    (
                        f"ALTER TABLE {table.name} REPLACE PARTITION {which} FROM {copy}",
                        f"ALTER TABLE {table.name} MOVE PARTITION {which} TO TABLE {copy}",
                        f"ALTER TABLE {table.name} ATTACH PARTITION {which} FROM {copy}",
                    )
                ),
            ]
        said = [f"ALTER TABLE {table.name} {action} PARTITION {which}"]
        if self.chance.random() < 0.1 and action == "DROP":
            said[0] += " SETTINGS retain = 1"
        if action == "DETACH" and self.chance.random() < 0.7:
            said += [*self.insert()] if self.chance.random() < 0.3 else []
            said.append(f"ALTER TABLE {table.name} ATTACH PARTITION {which}")
        return said

    # --- columns and settings

    def add_column(self) -> list[str]:
        """Add a column to a table, and sometimes a view that reads it."""
        self.columns += 1
        table = self.chance.choice(list(self.definition.tables.values()))
        name = f"n{self.columns}"
        keys = [f.name for f in table.fields if f.role in ("key", "number")] or ["1"]
        lot = self.chance.random()
        if lot < 0.5:
            added = draw_computed(self.chance, name, keys)
        elif lot < 0.75:
            kind = self.chance.choice(("DEFAULT", "MATERIALIZED"))
            added = Field(
                name,
                "Int64",
                ("1", "2"),
                kind,
                f"length(toString({self.chance.choice(keys)}))",
                "number",
            )
        else:
            kind = self.chance.choice(("DEFAULT", "MATERIALIZED", "ALIAS"))
            added = Field(
                name,
                "UInt64",
                ("1", "2"),
                kind,
                f"length(toString({self.chance.choice(VOLATILE)}))",
                "number",
            )
            if self.chance.random() < 0.6:
                added = Field(
                    name,
                    "UInt64",
                    ("1", "2"),
                    kind,
                    f"cityHash64({self.chance.choice(('rand()', 'now64(9)', 'generateUUIDv4()'))})",
                    "number",
                )
        if added.kind in ("MATERIALIZED", "ALIAS", "EPHEMERAL"):
            added = replace(added, values=())
        table.fields.append(added)
        said = [f"ALTER TABLE {table.name} ADD COLUMN {added.ddl}"]
        if self.chance.random() < 0.6:  # add a view that reads it
            view = self._reading_view(table, added)
            said += view
        return said

    def _reading_view(self, table: TableDraft, added: Field) -> list[str]:
        """Return statements that create a view of the new column, or make an old view read it."""
        name = f"w{self.columns}"
        function = "max" if added.role == "text" else "sum"
        kind = "String" if added.role == "text" else "UInt64" if added.type == "UInt64" else "Int64"
        if table.name in self.definition.dimensions:
            source = self.definition.sources[0]
            query = f"SELECT s.g AS g, {function}(j.{added.name}) AS m FROM {source} AS s JOIN {table.name} AS j ON s.k = j.k GROUP BY s.g"
            key = "g UInt8"
        else:
            first = next((f for f in table.fields if f.role == "key"), None)
            if first is None:
                return []
            query = f"SELECT {first.name}, {function}({added.name}) AS m FROM {table.name} GROUP BY {first.name}"
            key = f"{first.name} {first.type}"
        nullable = " SETTINGS allow_nullable_key = 1" if "Nullable" in key else ""
        target = f"tw{self.columns}"
        return [
            f"CREATE TABLE {target} ({key}, m SimpleAggregateFunction({function}, {kind})) ENGINE = AggregatingMergeTree ORDER BY {key.split()[0]}{nullable}",
            f"CREATE MATERIALIZED VIEW {name} TO {target} AS {query}",
            f"SYSTEM BACKFILL VIEW {name}",
        ]

    def change_column(self) -> list[str]:
        """Drop, rename, retype or redefine a column."""
        table = self.chance.choice(list(self.definition.tables.values()))
        if not table.fields:
            return []
        found = self.chance.choice(table.fields)
        lot = self.chance.random()
        if lot < 0.2 and table.name not in self.definition.targets:
            return [f"ALTER TABLE {table.name} DROP COLUMN {found.name}"]
        if lot < 0.35:
            return [
                f"ALTER TABLE {table.name} RENAME COLUMN {found.name} TO {found.name}_r",
                f"ALTER TABLE {table.name} RENAME COLUMN {found.name}_r TO {found.name}",
            ]
        if lot < 0.5 and found.kind:
            return [
                f"ALTER TABLE {table.name} MODIFY COLUMN {found.name} {found.type} {found.kind} {self._constant(found)}"
            ]
        if lot < 0.6 and found.kind == "":
            return [
                f"ALTER TABLE {table.name} MODIFY COLUMN {found.name} {found.type} DEFAULT {self._constant(found)}"
            ]
        if lot < 0.7 and found.kind in ("DEFAULT", "MATERIALIZED"):
            return [f"ALTER TABLE {table.name} MATERIALIZE COLUMN {found.name}"]
        wider = {
            "UInt8": "UInt32",
            "Int8": "Int64",
            "Int32": "Int64",
            "UInt16": "UInt64",
            "Float32": "Float64",
            "Int64": "Int32",
            "Float64": "Float32",
            "UInt64": "Nullable(UInt64)",
            "String": "LowCardinality(String)",
            "UInt32": "UInt8",
        }
        kind = wider.get(found.type)
        return [f"ALTER TABLE {table.name} MODIFY COLUMN {found.name} {kind}"] if kind else []

    def _constant(self, found: Field) -> str:
        if self.chance.random() < 0.4:
            text = self.chance.choice(VOLATILE)
            return f"toString({text})" if "String" in found.type else f"length(toString({text}))"
        return "'other'" if "String" in found.type else "3"

    def table_settings(self) -> list[str]:
        """Change a setting, TTL, constraint, sorting key or name of a table."""
        table = self.chance.choice(list(self.definition.tables.values()))
        times = table.of_role("time")
        keys = [f.name for f in table.fields if f.role == "key"]
        numbers = [f.name for f in table.fields if f.role == "number"] or ["1"]
        pool = [
            f"ALTER TABLE {table.name} MODIFY SETTING ttl_retain = {self.chance.choice((0, 1))}",
            f"ALTER TABLE {table.name} ADD CONSTRAINT later CHECK length(toString({self.chance.choice(numbers)})) < {self.chance.choice((2, 3, 99))}",
            f"ALTER TABLE {table.name} MODIFY TTL toDateTime(1000000000 + toInt64(length(toString({self.chance.choice(numbers)}))) * 86400, 'UTC') + INTERVAL {self.chance.choice((1, 100))} YEAR",
            f"RENAME TABLE {table.name} TO {table.name}_x, {table.name}_x TO {table.name}",
        ]
        if keys:
            self.columns += 1
            pool.append(
                f"ALTER TABLE {table.name} ADD COLUMN o{self.columns} UInt8, MODIFY ORDER BY ({', '.join(keys)}, o{self.columns})"
            )
        if times:
            pool.append(
                f"ALTER TABLE {table.name} MODIFY TTL {times[0].name} + INTERVAL {self.chance.choice((1, 100))} YEAR"
            )
        said = [self.chance.choice(pool)]
        if "TTL" in said[0]:
            said.append(f"ALTER TABLE {table.name} MATERIALIZE TTL")
        return said

    # --- views

    def about_view(self) -> list[str]:
        """Run one maintenance statement on a view."""
        view = self.chance.choice(list(self.definition.views) or ["v1"])
        return [
            self.chance.choices(
                (
                    f"SYSTEM RECONCILE VIEW {view}",
                    f"SYSTEM BACKFILL VIEW {view}",
                    f"SYSTEM REPLAY VIEW {view}",
                    f"SYSTEM REPLAY VIEW {view} STALE",
                    f"SYSTEM ADOPT VIEW {view}",
                    f"DETACH VIEW {view}",
                    f"ATTACH VIEW {view}",
                    f"SYSTEM RECONCILE VIEW {view} METADATA",
                    f"SYSTEM REBUILD VIEW {view}",
                    f"SYSTEM REPLAY VIEW {view} DISCARD BYPASS",
                    f"SYSTEM ROLLBACK VIEW {view}",
                ),
                (30, 14, 14, 14, 6, 4, 8, 3, 5, 3, 1),
            )[0]
        ]

    def modify_query(self) -> list[str]:
        """Give a view its query again, or one with another condition."""
        if not self.definition.views:
            return []
        name = self.chance.choice(list(self.definition.views))
        text = self.definition.views[name][0].text
        if " GROUP BY" not in text or " WHERE " in text or "UNION" in text:
            return [f"ALTER TABLE {name} MODIFY QUERY {text}"]
        where = self.chance.choice(("g > 0", "x != 1", "rand() >= 0", "1"))
        return [
            f"ALTER TABLE {name} MODIFY QUERY {text.replace(' GROUP BY', f' WHERE {where} GROUP BY', 1)}"
        ]

    def mend(self) -> list[str]:
        """Run the mends of all views."""
        return ["-- mend"]

    # --- choices

    def _target(self) -> str:
        return self.chance.choice(self.definition.targets)

    def _any_input(self) -> TableDraft:
        names = [*self.definition.sources, *self.definition.dimensions]
        if self.definition.targets and self.chance.random() < 0.15:
            names = self.definition.targets
        return self.definition.tables[self.chance.choice(names)]


def _arrow(table: TableDraft, names: list[str], rows: list[list[str]]) -> dict[str, list[object]]:
    """Return the rows as Python values by column; timestamps stay texts, which an INSERT parses."""
    del table
    columns: dict[str, list[object]] = {}
    for at, name in enumerate(names):
        columns[name] = [_python(row[at]) for row in rows]
    return columns


def _python(literal: str) -> object:
    if literal == "NULL":
        return None
    if literal.startswith("'"):
        return literal[1:-1]
    if literal.startswith("["):
        return [int(v) for v in literal[1:-1].split(",") if v.strip()]
    if literal.startswith("("):
        return tuple(float(v) for v in literal[1:-1].split(","))
    return float(literal) if "." in literal else int(literal)


__all__ = ["KEY_TYPES", "History"]
