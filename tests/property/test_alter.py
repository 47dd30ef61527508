"""Random ALTERs, INSERTs, mutations, merges and reopenings beside a table in plain Python.

The model keeps each row as it was given. A column that the row was not given reads its current
default until a statement writes the value: an OPTIMIZE FINAL, or an UPDATE or DELETE of the row's
part. So the model knows parts as sets of rows, and nothing else of storage."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import olapdb
from olapdb.maintenance.check import check_database

pytestmark = pytest.mark.feature("schema")

VIEW = "CREATE MATERIALIZED VIEW sums_mv TO sums AS SELECT k, count() AS n, sum(v) AS total FROM t GROUP BY k"
TYPES: dict[str, Callable[[Any], Any]] = {
    "Int64": lambda v: (int(v) + 2**63) % 2**64 - 2**63,
    "Int8": lambda v: (int(v) + 128) % 256 - 128,
    "UInt16": lambda v: int(v) % 65_536,
    "Float64": float,
    "String": lambda v: str(int(v)) if isinstance(v, float) and v == int(v) else str(v),
}
NUMBERS = ("Int64", "Int8", "UInt16")
DEFAULTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "": lambda row: 0,
    "7": lambda row: 7,
    "v * 2": lambda row: row["v"] * 2,
    "k + v": lambda row: row["k"] + row["v"],
}
NAMES = ("a", "b", "c")


@dataclass
class Column:
    """A column. Rows of parts that are older than the column lack its value."""

    key: int
    type: str
    default: str


def fits(column: Column, value: int) -> bool:
    """Return whether an INSERT or UPDATE stores the value. Values of older parts are read by
    CAST."""
    return column.type not in NUMBERS or TYPES[column.type](value) == value


@dataclass
class Part:
    rows: list[dict[int, Any]] = field(default_factory=list)


class Alters(RuleBasedStateMachine):
    """A state machine over a table `t (k UInt8, v Int64, …)` and a view of sums by k."""

    @initialize(view=st.booleans(), inline=st.booleans())
    def open(self, view: bool, inline: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.connection = olapdb.connect(self.folder.name)
        size = 262_144 if inline else 0
        self.run("SYSTEM STOP MERGES")
        self.run(
            "CREATE TABLE t (k UInt8, v Int64) ENGINE = MergeTree PARTITION BY k % 2 ORDER BY k"
            f" SETTINGS inline_bytes_max = {size}"
        )
        self.run(
            "CREATE TABLE sums (k UInt8, n UInt64, total Int64) ENGINE = SummingMergeTree ORDER BY k"
        )
        self.view = view
        if view:
            self.run(VIEW)
        self.columns: dict[str, Column] = {}
        self.parts: list[Part] = []
        self.next_key = 10

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def read(self, row: dict[int, Any], column: Column) -> Any:
        if column.key in row:
            return row[column.key]
        base = {"k": row[0], "v": row[1]}
        if not column.default and column.type == "String":
            return ""
        return TYPES[column.type](DEFAULTS[column.default](base))

    def write_down(self, part: Part) -> None:
        for row in part.rows:
            for column in self.columns.values():
                row[column.key] = self.read(row, column)

    # --- rules

    @rule(
        rows=st.lists(st.tuples(st.integers(0, 3), st.integers(-100, 100)), min_size=1, max_size=4)
    )
    def insert(self, rows: list[tuple[int, int]]) -> None:
        statement = "INSERT INTO t (k, v) VALUES " + ", ".join(f"({k}, {v})" for k, v in rows)
        given = [{"k": k, "v": v} for k, v in rows]
        if not all(
            fits(column, DEFAULTS[column.default](row))
            for column in self.columns.values()
            for row in given
        ):
            with pytest.raises(olapdb.DataError, match="Default of column"):
                self.run(statement)
            return
        self.run(statement)
        for parity in (0, 1):
            part = Part([{0: k, 1: v} for k, v in rows if k % 2 == parity])
            self.write_down(part)
            if part.rows:
                self.parts.append(part)

    @precondition(lambda self: len(self.columns) < 3)
    @rule(
        name=st.sampled_from(NAMES),
        type=st.sampled_from(NUMBERS),
        default=st.sampled_from(sorted(DEFAULTS)),
        first=st.booleans(),
    )
    def add(self, name: str, type: str, default: str, first: bool) -> None:
        if name in self.columns:
            return
        clause = f" DEFAULT {default}" if default else ""
        self.run(f"ALTER TABLE t ADD COLUMN {name} {type}{clause}{' FIRST' if first else ''}")
        self.columns[name] = Column(self.next_key, type, default)
        self.next_key += 1

    @rule(name=st.sampled_from(NAMES))
    def drop(self, name: str) -> None:
        if self.columns.pop(name, None) is not None:
            self.run(f"ALTER TABLE t DROP COLUMN {name}")

    @rule(old=st.sampled_from(NAMES), new=st.sampled_from(NAMES))
    def rename(self, old: str, new: str) -> None:
        if old in self.columns and new not in self.columns:
            self.run(f"ALTER TABLE t RENAME COLUMN {old} TO {new}")
            self.columns[new] = self.columns.pop(old)

    @rule(name=st.sampled_from(NAMES), type=st.sampled_from(sorted(TYPES)))
    def modify_type(self, name: str, type: str) -> None:
        column = self.columns.get(name)
        if column is None or column.type == "String" != type:
            return
        self.run(f"ALTER TABLE t MODIFY COLUMN {name} {type}")
        for part in self.parts:
            for row in part.rows:
                if column.key in row:
                    row[column.key] = TYPES[type](row[column.key])
        column.type = type

    @rule(name=st.sampled_from(NAMES), default=st.sampled_from(sorted(DEFAULTS)))
    def modify_default(self, name: str, default: str) -> None:
        column = self.columns.get(name)
        if column is None or not default:
            return
        self.run(f"ALTER TABLE t MODIFY COLUMN {name} DEFAULT {default}")
        column.default = default

    @rule(low=st.integers(-50, 50), name=st.sampled_from(("v", *NAMES)))
    def update(self, low: int, name: str) -> None:
        column = self.columns.get(name)
        if name != "v" and (column is None or column.type not in NUMBERS):
            return
        statement = f"ALTER TABLE t UPDATE {name} = v + k WHERE v > {low}"
        matched = [row for part in self.parts for row in part.rows if row[1] > low]
        if column is not None and not all(fits(column, row[0] + row[1]) for row in matched):
            with pytest.raises(olapdb.DataError, match=f"Column {name} of"):
                self.run(statement)
            return
        self.run(statement)
        for part in self.parts:
            if any(row[1] > low for row in part.rows):
                self.write_down(part)
            for row in part.rows:
                if row[1] > low and column is None:
                    row[1] = row[1] + row[0]
                elif row[1] > low and column is not None:
                    row[column.key] = TYPES[column.type](row[1] + row[0])

    @rule(low=st.integers(-50, 50), k=st.integers(0, 3))
    def delete(self, low: int, k: int) -> None:
        self.run(f"DELETE FROM t WHERE v < {low} AND k = {k}")
        for part in self.parts:
            kept = [row for row in part.rows if not (row[1] < low and row[0] == k)]
            if len(kept) < len(part.rows):
                self.write_down(part)
                part.rows = kept and [
                    row for row in part.rows if not (row[1] < low and row[0] == k)
                ]

    @rule(name=st.sampled_from(NAMES))
    def materialize(self, name: str) -> None:
        column = self.columns.get(name)
        if column is None or not column.default:
            return
        self.run(f"ALTER TABLE t MATERIALIZE COLUMN {name}")
        for part in self.parts:
            if any(column.key not in row for row in part.rows):
                self.write_down(part)

    @rule()
    def optimize(self) -> None:
        if self.view:
            return  # what the view has seen decides which parts merge
        self.run("OPTIMIZE TABLE t FINAL")
        for part in self.parts:
            self.write_down(part)

    @rule()
    def reopen(self) -> None:
        self.connection.close()
        self.connection = olapdb.connect(self.folder.name)
        self.run("SYSTEM STOP MERGES")

    @rule()
    def repair(self) -> None:
        if self.view:
            self.run("SYSTEM REPLAY VIEW sums_mv STALE")
            assert self.stale() == [], "a replay mends it"

    # --- invariants

    def stale(self) -> list[tuple[Any, ...]]:
        return self.run("SELECT view FROM system.view_invalidations")

    @invariant()
    def rows_are_those_of_the_model(self) -> None:
        if not hasattr(self, "parts"):
            return
        names = sorted(self.columns)
        shown = self.run(f"SELECT {', '.join(['k', 'v', *names])} FROM t")
        wanted = [
            (row[0], row[1], *(self.read(row, self.columns[name]) for name in names))
            for part in self.parts
            for row in part.rows
        ]
        assert sorted(shown) == sorted(wanted)
        for name in names:  # pruning never drops a row
            values = [row[2 + names.index(name)] for row in wanted]
            if values:
                one = values[len(values) // 2]
                literal = f"'{one}'" if isinstance(one, str) else repr(one)
                count = self.run(f"SELECT count() FROM t WHERE {name} = {literal}")
                assert count == [(values.count(one),)]

    @invariant()
    def a_view_that_is_not_stale_is_right(self) -> None:
        if not getattr(self, "view", False) or self.stale():
            return
        have = self.run(
            "SELECT k, sum(n), sum(total) FROM sums GROUP BY k HAVING sum(n) > 0 ORDER BY k"
        )
        assert have == self.run("SELECT k, count(), sum(v) FROM t GROUP BY k ORDER BY k")

    def teardown(self) -> None:
        if not hasattr(self, "folder"):
            return
        services = self.connection.database.services
        try:
            assert check_database(services.catalog, services.store) == []
        finally:
            self.connection.close()
            self.folder.cleanup()


TestAlters = Alters.TestCase
TestAlters.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
