"""Random statements on a few tables, with merges, vacuums, backups and reopenings between them,
beside the same tables in plain Python (`tables_model.py`)."""

from __future__ import annotations

import shutil
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import olapdb
from olapdb.dml import attach_parts
from olapdb.maintenance.check import check_database
from olapdb.maintenance.merge_planner import merge_worthwhile
from olapdb.maintenance.merge_policy import MergeLimits
from olapdb.maintenance.vacuum import vacuum
from tests.property.tables_model import DEFAULTS, ENGINES, Column, Model, Row

pytestmark = pytest.mark.feature("changes")

NAMES = ("a", "b", "c", "d", "e")
COLUMNS = ("x", "y")
PAST_MAX = 30

NUMBER = st.integers(0, 1_000)
"""Selects one of the existing tables, columns or names, modulo their number."""
PARTITION = st.integers(0, 2)
KEY = st.integers(0, 3)
BLOCK_ROWS = st.sampled_from((1, 2, 100))
ROWS = st.lists(st.tuples(PARTITION, KEY, st.integers(-9, 9)), min_size=1, max_size=6)


class Tables(RuleBasedStateMachine):
    """A state machine over tables and their models.

    `tables` are the models by name, `dropped` the dropped ones in order, and `past` the rows by
    commit."""

    @initialize()
    def open(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.places = count()
        self.folder = self.root / f"warehouse{next(self.places)}"
        self.connection = olapdb.connect(str(self.folder))
        self.tables: dict[str, Model] = {}
        self.dropped: list[tuple[str, Model]] = []
        self.past: dict[int, dict[str, tuple[str, list[tuple[Any, ...]]]]] = {}
        self.keys, self.versions, self.arrivals = count(1), count(1), count(1)
        self.run("SYSTEM STOP MERGES")
        for name, engine in zip(NAMES, ("MergeTree", *ENGINES), strict=False):
            self.create(name, engine)
        for number in range(4):
            self.insert(number, [(p, k, p + k) for p in (0, 1, 2) for k in (0, 1)], 4, False)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def create(self, name: str, engine: str) -> None:
        self.run(
            f"CREATE TABLE {name} (p UInt8, k UInt8, v Int64, version UInt64)"
            f" ENGINE = {ENGINES[engine]} PARTITION BY p ORDER BY (p, k)"
        )
        self.tables[name] = Model(engine)

    def chosen(self, number: int) -> tuple[str, Model]:
        names = sorted(self.tables)
        name = names[number % len(names)]
        return name, self.tables[name]

    def free(self, number: int) -> str | None:
        names = [name for name in NAMES if name not in self.tables]
        return names[number % len(names)] if names else None

    def taking(self, number: int) -> tuple[str, str] | None:
        """Return a table and another one that may take its partitions, or None."""
        pairs = [
            (table, other)
            for table in sorted(self.tables)
            for other in sorted(self.tables)
            if table != other and self.tables[other].may_take(self.tables[table])
        ]
        return pairs[number % len(pairs)] if pairs else None

    def columns(self) -> list[tuple[str, str]]:
        """Return (table, column) of the added columns."""
        return [
            (at, name) for at in sorted(self.tables) for name in sorted(self.tables[at].columns)
        ]

    def column(self, number: int) -> tuple[str, str]:
        found = self.columns()
        return found[number % len(found)]

    # --- rows

    @rule(number=NUMBER, given=ROWS, block_rows=BLOCK_ROWS, inline=st.booleans())
    def insert(
        self, number: int, given: list[tuple[int, int, int]], block_rows: int, inline: bool
    ) -> None:
        name, table = self.chosen(number)
        added = [Row(p, k, v, next(self.versions), next(self.arrivals)) for p, k, v in given]
        values = ", ".join(f"({row.p}, {row.k}, {row.v}, {row.version})" for row in added)
        self.run(
            f"INSERT INTO {name} (p, k, v, version) SETTINGS max_insert_block_size = {block_rows},"
            " min_insert_block_size_rows = 0, min_insert_block_size_bytes = 0,"
            f" inline_bytes_max = {100_000 if inline else 0} VALUES {values}"
        )
        before, table.rows = table.rows, added
        for column, one in table.columns.items():
            table.add_column(column, one)
        table.rows = before + table.rows

    @rule(given=st.lists(ROWS, min_size=1, max_size=4), block_rows=BLOCK_ROWS, inline=st.booleans())
    def insert_into_all(
        self, given: list[list[tuple[int, int, int]]], block_rows: int, inline: bool
    ) -> None:
        for number, some in enumerate(given):
            self.insert(number, some, block_rows, inline)

    @rule(number=NUMBER, p=PARTITION, k=KEY, lightweight=st.booleans())
    def delete(self, number: int, p: int, k: int, lightweight: bool) -> None:
        name, table = self.chosen(number)
        start = f"DELETE FROM {name}" if lightweight else f"ALTER TABLE {name} DELETE"
        # MergeTree alone can delete by value: merges change the values of the other engines.
        low = " AND v < 0" if table.engine == "MergeTree" else ""
        self.run(f"{start} WHERE p = {p} AND k >= {k}{low}")
        table.leave(lambda row: row.p == p and row.k >= k and (not low or row.v < 0))

    @rule(number=NUMBER, k=KEY)
    def update(self, number: int, k: int) -> None:
        name, table = self.chosen(number)
        self.run(f"ALTER TABLE {name} UPDATE v = -v WHERE k = {k}")
        table.change(
            lambda row: row.k == k,
            lambda row: Row(row.p, row.k, -row.v, row.version, row.arrival, row.more),
        )

    @precondition(lambda self: self.columns())
    @rule(number=NUMBER, k=KEY)
    def update_column(self, number: int, k: int) -> None:
        at, name = self.column(number)
        key = self.tables[at].columns[name].key
        self.run(f"ALTER TABLE {at} UPDATE {name} = v + 1 WHERE k >= {k}")
        self.tables[at].change(lambda row: row.k >= k, lambda row: row.given(key, row.v + 1))

    @rule(number=NUMBER, p=PARTITION, how=st.sampled_from(("TRUNCATE", "DROP", "DROP DETACHED")))
    def remove(self, number: int, p: int, how: str) -> None:
        name, table = self.chosen(number)
        match how:
            case "TRUNCATE":
                self.run(f"TRUNCATE TABLE {name}")
                table.rows = []
            case "DROP":
                self.run(f"ALTER TABLE {name} DROP PARTITION {p}")
                table.leave(lambda row: row.p == p)
            case _:
                given = "SETTINGS allow_drop_detached = 1"
                self.run(f"ALTER TABLE {name} DROP DETACHED PARTITION {p} {given}")
                table.detached = [row for row in table.detached if row.p != p]

    # --- columns

    @rule(number=NUMBER, name=st.sampled_from(COLUMNS), everywhere=st.booleans())
    def add_column(self, number: int, name: str, everywhere: bool) -> None:
        """Add a column to one table, or to all that lack it, so that partitions can still move."""
        for at in sorted(self.tables) if everywhere else [self.chosen(number)[0]]:
            if name in self.tables[at].columns:
                continue
            default = sorted(DEFAULTS)[number % len(DEFAULTS)]
            number += 1  # the next table gets another default; the rows of a part keep theirs
            clause = f" DEFAULT {default}" if default else ""
            self.run(f"ALTER TABLE {at} ADD COLUMN {name} Int64{clause}")
            self.tables[at].add_column(name, Column(next(self.keys), "Int64", default))

    @precondition(lambda self: self.columns())
    @rule(number=NUMBER)
    def drop_column(self, number: int) -> None:
        at, name = self.column(number)
        self.run(f"ALTER TABLE {at} DROP COLUMN {name}")
        del self.tables[at].columns[name]

    @precondition(lambda self: self.columns())
    @rule(number=NUMBER, new=st.sampled_from(COLUMNS))
    def rename_column(self, number: int, new: str) -> None:
        at, old = self.column(number)
        table = self.tables[at]
        if new not in table.columns:
            self.run(f"ALTER TABLE {at} RENAME COLUMN {old} TO {new}")
            table.columns[new] = table.columns.pop(old)

    @precondition(lambda self: self.columns())
    @rule(number=NUMBER, type=st.sampled_from(("Int64", "Int32", "Int16")))
    def modify_column(self, number: int, type: str) -> None:
        at, name = self.column(number)
        column = self.tables[at].columns[name]
        self.run(f"ALTER TABLE {at} MODIFY COLUMN {name} {type}")
        self.tables[at].columns[name] = Column(column.key, type, column.default)

    # --- partitions

    @rule(number=NUMBER, p=PARTITION, all=st.booleans())
    def detach_partition(self, number: int, p: int, all: bool) -> None:
        name, table = self.chosen(number)
        self.run(f"ALTER TABLE {name} DETACH PARTITION {'ALL' if all else p}")
        table.detached += table.leave(lambda row: all or row.p == p)

    @rule(number=NUMBER, p=PARTITION)
    def attach_partition(self, number: int, p: int) -> None:
        name, table = self.chosen(number)
        self.run(f"ALTER TABLE {name} ATTACH PARTITION {p}")
        table.take([row for row in table.detached if row.p == p], table, self.arrivals)
        table.detached = [row for row in table.detached if row.p != p]

    @rule(number=NUMBER, p=PARTITION)
    def move_partition(self, number: int, p: int) -> None:
        if (pair := self.taking(number)) is not None:
            source, target = pair
            self.run(f"ALTER TABLE {source} MOVE PARTITION {p} TO TABLE {target}")
            gone = self.tables[source].leave(lambda row: row.p == p)
            self.tables[target].take(gone, self.tables[source], self.arrivals)

    @rule(number=NUMBER, p=PARTITION, replaces=st.booleans())
    def copy_partition(self, number: int, p: int, replaces: bool) -> None:
        if (pair := self.taking(number)) is None:
            return
        source, target = self.tables[pair[0]], self.tables[pair[1]]
        action = "REPLACE" if replaces else "ATTACH"
        self.run(
            f"ALTER TABLE {pair[1]} {action} PARTITION {p} FROM {pair[0]}"
            " SETTINGS allow_replace_partition_from_empty_source = 1"
        )
        if replaces:
            target.leave(lambda row: row.p == p)
        target.take([row for row in source.rows if row.p == p], source, self.arrivals)

    # --- tables

    @rule(number=NUMBER, other=NUMBER)
    def exchange(self, number: int, other: int) -> None:
        (one, _), (two, _) = self.chosen(number), self.chosen(other)
        if one != two:
            self.run(f"EXCHANGE TABLES {one} AND {two}")
            self.tables[one], self.tables[two] = self.tables[two], self.tables[one]

    @rule(number=NUMBER, other=NUMBER)
    def rename(self, number: int, other: int) -> None:
        name, new = self.chosen(number)[0], self.free(other)
        if new is not None:
            self.run(f"RENAME TABLE {name} TO {new}")
            self.tables[new] = self.tables.pop(name)

    @rule(number=NUMBER, other=NUMBER)
    def clone(self, number: int, other: int) -> None:
        (name, table), new = self.chosen(number), self.free(other)
        if new is None:
            return
        self.run(f"CREATE TABLE {new} CLONE AS {name}")
        self.tables[new] = Model(table.engine, dict(table.columns))
        self.tables[new].take(table.rows, table, self.arrivals)

    @precondition(lambda self: len(self.tables) > 2)
    @rule(number=NUMBER)
    def drop(self, number: int) -> None:
        name, _ = self.chosen(number)
        self.run(f"DROP TABLE {name}")
        self.dropped.append((name, self.tables.pop(name)))

    @precondition(lambda self: self.dropped)
    @rule(number=NUMBER)
    def undrop(self, number: int) -> None:
        """Undrop the last dropped table of a name, if the name is free."""
        name = self.dropped[number % len(self.dropped)][0]
        if name not in self.tables:
            self.run(f"UNDROP TABLE {name}")
            last = max(at for at, one in enumerate(self.dropped) if one[0] == name)
            self.tables[name] = self.dropped.pop(last)[1]

    @rule(number=NUMBER, engine=st.sampled_from(sorted(ENGINES)))
    def create_another(self, number: int, engine: str) -> None:
        if (name := self.free(number)) is not None:
            self.create(name, engine)

    # --- maintenance: nothing that a reader sees may change

    @rule(number=NUMBER)
    def merge(self, number: int) -> None:
        """Do what the merge scheduler does, at most three times."""
        limits = MergeLimits(base=2.0, inline_age_ms_max=0)
        name, _ = self.chosen(number)
        services = self.connection.database.services
        table = services.catalog.snapshot().find("default", name)
        assert table is not None
        for _ in range(3):
            if not merge_worthwhile(services, table.id, limits):
                return

    @rule(number=NUMBER, p=PARTITION, final=st.booleans(), whole=st.booleans())
    def optimize(self, number: int, p: int, final: bool, whole: bool) -> None:
        name, _ = self.chosen(number)
        partition = "" if whole else f" PARTITION {p}"
        self.run(f"OPTIMIZE TABLE {name}{partition}{' FINAL' if final else ''}")
        if final:
            of = "" if whole else f" AND partition = '{p}'"
            parts = self.run(
                "SELECT count(), uniqExact(partition) FROM system.parts WHERE active AND rows > 0"
                f" AND table = '{name}'{of}"
            )
            assert parts[0][0] == parts[0][1], "one part of each partition"

    @rule()
    def vacuum(self) -> None:
        """Delete dropped tables and past snapshots at once."""
        vacuum(self.connection.database.services, lifetime_seconds=0)
        self.dropped, self.past = [], {}
        self.sound()

    @rule()
    def reopen(self) -> None:
        self.connection.close()
        self.connection = olapdb.connect(str(self.folder))
        self.run("SYSTEM STOP MERGES")
        self.sound()

    @rule(updates=st.booleans())
    def back_up_and_restore(self, updates: bool) -> None:
        """Back up; with `updates` update an earlier backup, otherwise continue in a restored
        warehouse."""
        backup = self.root / f"backup{self.folder.name}"
        if not updates:
            shutil.rmtree(backup, ignore_errors=True)
        self.run(f"SYSTEM BACKUP TO '{backup}'")
        if updates:
            return
        self.connection.close()
        self.folder = self.root / f"warehouse{next(self.places)}"
        self.connection = olapdb.connect(str(self.folder))
        self.run("SYSTEM STOP MERGES")
        self.run(f"SYSTEM RESTORE FROM '{backup}'")
        self.dropped, self.past = [], {}

    @precondition(lambda self: self.past)
    @rule(number=NUMBER)
    def read_the_past(self, number: int) -> None:
        commit = sorted(self.past)[number % len(self.past)]
        for name, (query, wanted) in self.past[commit].items():
            shown = self.run(f"{query.format(name=name)} SETTINGS snapshot = {commit}")
            assert sorted(shown) == wanted, (commit, name)

    # --- invariants

    @invariant()
    def tables_are_those_of_the_model(self) -> None:
        if not hasattr(self, "tables"):
            return
        names = self.run("SELECT name FROM system.tables WHERE database = 'default' ORDER BY name")
        assert [name for (name,) in names] == sorted(self.tables)
        now = {}
        for name, table in self.tables.items():
            wanted = table.shown()
            assert sorted(self.run(table.query.format(name=name))) == wanted, name
            now[name] = (table.query, wanted)
        ((commit,),) = self.run("SELECT max(number) FROM system.snapshots")
        self.past[commit] = now
        if len(self.past) > PAST_MAX:
            del self.past[min(self.past)]

    @invariant()
    def parts_are_counted(self) -> None:
        if not hasattr(self, "tables"):
            return
        counted = self.run(
            "SELECT table, sum(rows), uniqExact(partition) FROM system.parts"
            " WHERE active AND rows > 0 GROUP BY table"
        )
        found = {name: (rows, partitions) for name, rows, partitions in counted}
        detached = dict(
            self.run("SELECT table, sum(rows) FROM system.detached_parts GROUP BY table")
        )
        for name, table in self.tables.items():
            rows, partitions = found.get(name, (0, 0))
            assert self.run(f"SELECT count() FROM {name}") == [(rows,)]
            if table.engine == "MergeTree":
                assert (rows, partitions) == (len(table.rows), len(table.partitions))
                assert detached.get(name, 0) == len(table.detached)
            else:
                assert rows <= len(table.rows)
                assert detached.get(name, 0) <= len(table.detached)
            if table.engine == "Summing":
                query = f"SELECT p, k, sum(v) AS s FROM {name} GROUP BY p, k HAVING s != 0"
                assert sorted(self.run(query)) == table.shown()

    def sound(self) -> None:
        services = self.connection.database.services
        assert check_database(services.catalog, services.store) == []

    def teardown(self) -> None:
        if not hasattr(self, "connection"):
            return
        try:
            self.sound()
        finally:
            self.connection.close()
            shutil.rmtree(self.root)


class ManyTables(Tables):
    """The same machine, for longer runs."""


def _settings(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


TestTables = Tables.TestCase
TestTables.settings = _settings(30, 25)
TestManyTables = pytest.mark.timeout(7_200)(pytest.mark.soak(ManyTables.TestCase))
TestManyTables.settings = _settings(400, 50)


def test_it_bites(monkeypatch: pytest.MonkeyPatch) -> None:
    """The invariants catch a planted bug: a part that lacks a column is attached to a table where
    that column has another default."""
    machine = Tables()
    machine.open()
    machine.add_column(1, "x", everywhere=True)
    machine.copy_partition(0, 1, replaces=False)
    machine.tables_are_those_of_the_model()
    monkeypatch.setattr(attach_parts, "can_share_file", lambda *given: True)
    machine.copy_partition(0, 1, replaces=False)
    with pytest.raises(AssertionError):
        machine.tables_are_those_of_the_model()
    machine.teardown()


def test_a_row_too_many_is_noticed() -> None:
    machine = Tables()
    machine.open()
    machine.run("INSERT INTO a (p, k, v, version) VALUES (0, 0, 1, 99)")
    with pytest.raises(AssertionError):
        machine.tables_are_those_of_the_model()
    with pytest.raises(AssertionError):
        machine.parts_are_counted()
    machine.teardown()
