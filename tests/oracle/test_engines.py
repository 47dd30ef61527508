"""Engines whose merges combine rows, beside ClickHouse: rows of FINAL and after OPTIMIZE FINAL."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import pytest

import olapdb
from olapdb.functions import display
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("engines")

BLOCKS, ROWS_MAX = 6, 12
Make = Callable[[random.Random], str]

VALUES: Mapping[str, Make] = {
    "UInt64": lambda r: str(r.choice((0, 1, 2, 2**63, 2**64 - 1))),
    "Int16": lambda r: str(r.randint(-2, 2)),
    "Bool": lambda r: r.choice(("true", "false")),
    "Date": lambda r: f"'2024-02-{r.randint(27, 29)}'",
    "Date32": lambda r: f"'19{r.randint(68, 71)}-01-01'",
    "DateTime": lambda r: f"'2024-01-01 00:00:0{r.randint(0, 2)}'",
    "DateTime64(3)": lambda r: f"'1969-12-31 23:59:59.99{r.randint(8, 9)}'",
    "Float64": lambda r: r.choice(("nan", "-inf", "inf", "0", "-0.0", "-1.5", "-2.5", "2.5")),
    "Float32": lambda r: r.choice(("nan", "-inf", "0", "-0.0", "-1.5", "1e30")),
}


@dataclass(frozen=True)
class Case:
    """A table to compare. `columns` are name -> (type, SQL of a random value); `x` numbers the
    rows."""

    engine: str
    columns: Mapping[str, tuple[str, Make]]
    order_by: str = "(k, g)"
    partition_by: str = "tuple()"

    def __str__(self) -> str:
        types = "-".join(t for n, (t, _) in self.columns.items() if n == "v")
        return f"{self.engine}-{types}-{self.order_by}-{self.partition_by}".replace(" ", "")


KEY: Mapping[str, tuple[str, Make]] = {
    "k": ("UInt8", lambda r: str(r.randint(0, 3))),
    "g": ("String", lambda r: r.choice(("''", "'a'", "'b'"))),
}
SIGN: tuple[str, Make] = ("Int8", lambda r: r.choice(("1", "1", "-1")))
FLAG: tuple[str, Make] = ("UInt8", lambda r: r.choice(("0", "0", "1")))
SMALL: tuple[str, Make] = ("UInt8", lambda r: str(r.randint(0, 2)))
BOOL: tuple[str, Make] = ("Bool", VALUES["Bool"])

CASES = (
    Case("ReplacingMergeTree", KEY),
    Case("ReplacingMergeTree()", KEY, order_by="tuple()"),
    *(Case("ReplacingMergeTree(v)", {**KEY, "v": (t, make)}) for t, make in VALUES.items()),
    Case("ReplacingMergeTree(k)", KEY, order_by="g"),
    Case("ReplacingMergeTree(v, d)", {**KEY, "v": SMALL, "d": FLAG}),
    Case("ReplacingMergeTree(v, d)", {**KEY, "v": SMALL, "d": BOOL}, partition_by="k % 2"),
    Case("ReplacingMergeTree(v, d)", {**KEY, "v": SMALL, "d": FLAG}, order_by="k * 2"),
    Case("CollapsingMergeTree(s)", {**KEY, "s": SIGN}),
    Case("CollapsingMergeTree(s)", {**KEY, "s": SIGN}, order_by="(g, k DESC)"),
    Case("CollapsingMergeTree(s)", {**KEY, "s": SIGN}, order_by="k", partition_by="k"),
    Case("CollapsingMergeTree(s)", {**KEY, "s": SIGN}, order_by="tuple()"),
    Case("VersionedCollapsingMergeTree(s, v)", {**KEY, "s": SIGN, "v": SMALL}, order_by="k"),
    Case("VersionedCollapsingMergeTree(s, v)", {**KEY, "s": SIGN, "v": ("Date", VALUES["Date"])}),
    Case("VersionedCollapsingMergeTree(s, v)", {**KEY, "s": SIGN, "v": SMALL}, order_by="(v, k)"),
    Case("VersionedCollapsingMergeTree(s, v)", {**KEY, "s": SIGN, "v": SMALL}, order_by="tuple()"),
)

_DATABASES = count(1)


class Both:
    """olapdb and ClickHouse with the same statements; each case has a database of its own."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle, self.connection = oracle, olapdb.connect()
        self.database = f"engines_{next(_DATABASES)}"
        self.connection.execute("SYSTEM STOP MERGES")
        self.connection.execute(f"CREATE DATABASE {self.database}")
        oracle.execute(f"CREATE DATABASE {self.database} ENGINE = Atomic")

    def close(self) -> None:
        self.connection.close()
        self.oracle.execute(f"DROP DATABASE {self.database}")

    @property
    def table(self) -> str:
        return f"{self.database}.t"

    def create(self, definition: str) -> None:
        for_both = f"CREATE TABLE {self.table} {definition}"
        self.run(for_both)
        if "MergeTree" in definition:
            self.oracle.execute(f"SYSTEM STOP MERGES {self.table}")

    def run(self, statement: str) -> None:
        self.connection.execute(statement)
        self.oracle.execute(statement)

    def optimize(self) -> None:
        self.oracle.execute(f"SYSTEM START MERGES {self.table}")
        self.run(f"OPTIMIZE TABLE {self.table} FINAL")

    def same(self, query: str) -> list[tuple[str | None, ...]]:
        result = self.connection.session.execute(query)
        columns = [
            display(column.combine_chunks(), data_type)
            for column, data_type in zip(result.read_all().columns, result.types, strict=True)
        ]
        found: list[tuple[str | None, ...]] = list(zip(*columns, strict=True))
        assert found == self.oracle.query(query).rows
        return found

    def refused(self, statement: str) -> str:
        """Require that both refuse with the same error; return its name."""
        with pytest.raises(OracleError) as theirs:
            self.oracle.execute(statement)
        with pytest.raises(olapdb.Error) as ours:
            self.connection.execute(statement)
        assert (ours.value.name, ours.value.code) == (theirs.value.name, theirs.value.code)
        return str(ours.value.name)


@pytest.fixture
def both(oracle: Oracle) -> Iterator[Both]:
    made = Both(oracle)
    yield made
    made.close()


def fill(both: Both, case: Case, seed: int, optimize_on_insert: int) -> None:
    """Create the table in both and insert random blocks.

    With `optimize_on_insert` each state is cancelled before the next one. From other signs a merge
    would leave pairs that ClickHouse does not combine again."""
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in case.columns.items())
    both.create(
        f"({columns}, x UInt32) ENGINE = {case.engine} PARTITION BY {case.partition_by}"
        f" ORDER BY {case.order_by}"
    )
    draw, numbers = random.Random(seed), count()
    stated: set[tuple[str, ...]] = set()

    def row() -> str:
        values = {name: make(draw) for name, (_, make) in case.columns.items()}
        if "s" in values and optimize_on_insert:
            key = tuple(value for name, value in values.items() if name in case.order_by)
            values["s"] = "-1" if key in stated else "1"
            stated.symmetric_difference_update({key})
        return ", ".join([*values.values(), str(next(numbers))])

    for _ in range(BLOCKS):
        rows = [row() for _ in range(draw.randint(1, ROWS_MAX))]
        both.run(
            f"INSERT INTO {both.table} SETTINGS optimize_on_insert = {optimize_on_insert} VALUES"
            f" {', '.join(f'({one})' for one in rows)}"
        )


@pytest.mark.parametrize("optimize_on_insert", [0, 1])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_final_and_a_full_merge(both: Both, case: Case, optimize_on_insert: int) -> None:
    fill(both, case, CASES.index(case), optimize_on_insert)
    t = both.table
    both.same(f"SELECT * FROM {t} ORDER BY x")
    shown = both.same(f"SELECT * FROM {t} FINAL ORDER BY x")
    both.same(f"SELECT count() FROM {t} FINAL")
    both.same(f"SELECT x FROM {t} FINAL WHERE k > 1 AND g != 'a' AND x % 2 = 0 ORDER BY x")
    both.same(f"SELECT k, max(x), count() FROM {t} FINAL GROUP BY k ORDER BY k")
    both.optimize()
    both.same(f"SELECT * FROM {t} ORDER BY x")
    assert both.same(f"SELECT * FROM {t} FINAL ORDER BY x") == shown


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("case", [c for c in CASES if "Collapsing" in c.engine][::4], ids=str)
def test_any_signs_in_any_order(both: Both, case: Case, seed: int) -> None:
    fill(both, case, seed, optimize_on_insert=0)
    both.same(f"SELECT * FROM {both.table} FINAL ORDER BY x")
    both.optimize()
    both.same(f"SELECT * FROM {both.table} ORDER BY x")


def test_partitions_are_joined_by_final_alone_and_only_if_asked(both: Both) -> None:
    both.create(
        "(k UInt8, p UInt8, v UInt8) ENGINE = ReplacingMergeTree(v) PARTITION BY p ORDER BY k"
    )
    both.run(f"INSERT INTO {both.table} VALUES (1, 1, 9), (2, 1, 1), (3, 1, 1)")
    both.run(f"INSERT INTO {both.table} VALUES (1, 2, 8), (2, 2, 2)")
    one = both.same(f"SELECT * FROM {both.table} FINAL ORDER BY ALL")
    assert one == [("1", "1", "9"), ("2", "2", "2"), ("3", "1", "1")]
    apart = "SETTINGS do_not_merge_across_partitions_select_final = 1"
    assert len(both.same(f"SELECT * FROM {both.table} FINAL ORDER BY ALL {apart}")) == 5
    both.optimize()
    both.same(f"SELECT * FROM {both.table} ORDER BY ALL")


def test_wrong_markers_are_refused(both: Both) -> None:
    both.create("(k UInt8, v UInt8, d UInt8) ENGINE = ReplacingMergeTree(v, d) ORDER BY k")
    assert both.refused(f"INSERT INTO {both.table} VALUES (1, 1, 7)") == "INCORRECT_DATA"
    both.run(f"DROP TABLE {both.table}")
    both.create("(k UInt8, s Int8) ENGINE = CollapsingMergeTree(s) ORDER BY k")
    assert both.refused(f"INSERT INTO {both.table} VALUES (1, 1), (1, 5)") == "INCORRECT_DATA"
    assert both.same(f"SELECT * FROM {both.table}") == []


def test_columns_that_are_not_stored_stand_beside_aggregates(both: Both) -> None:
    both.create(
        "(k UInt8, v SimpleAggregateFunction(sum, UInt64), a UInt64 ALIAS v * 2, e UInt8 EPHEMERAL) "
        "ENGINE = AggregatingMergeTree ORDER BY k"
    )
    both.run(f"INSERT INTO {both.table} (k, v) VALUES (1, 2)")
    both.run(f"INSERT INTO {both.table} (k, v) VALUES (1, 3)")
    assert len(both.same(f"SELECT k, v, a FROM {both.table} FINAL")) == 1


COLUMNS = "(k UInt32, v UInt64, s Int8, d UInt8, n Nullable(UInt8), t String, a UInt8 ALIAS 1)"
REFUSED = (
    "ReplacingMergeTree(nope) ORDER BY k",
    "ReplacingMergeTree(v, nope) ORDER BY k",
    "ReplacingMergeTree(a) ORDER BY k",
    "ReplacingMergeTree(v, v) ORDER BY k",
    "ReplacingMergeTree(v, d, k) ORDER BY k",
    "ReplacingMergeTree(v + 1) ORDER BY k",
    "ReplacingMergeTree('v') ORDER BY k",
    "ReplacingMergeTree((v, d)) ORDER BY k",
    "ReplacingMergeTree(t) ORDER BY k",
    "ReplacingMergeTree(n) ORDER BY k",
    "ReplacingMergeTree(v, s) ORDER BY k",
    "ReplacingMergeTree(v, n) ORDER BY k",
    "ReplacingMergeTree(v)",
    "CollapsingMergeTree ORDER BY k",
    "CollapsingMergeTree() ORDER BY k",
    "CollapsingMergeTree(nope) ORDER BY k",
    "CollapsingMergeTree(s, v) ORDER BY k",
    "CollapsingMergeTree(v) ORDER BY k",
    "CollapsingMergeTree(d) ORDER BY k",
    "CollapsingMergeTree(s)",
    "VersionedCollapsingMergeTree ORDER BY k",
    "VersionedCollapsingMergeTree(s) ORDER BY k",
    "VersionedCollapsingMergeTree(v, s) ORDER BY k",
    "VersionedCollapsingMergeTree(s, s) ORDER BY k",
    "VersionedCollapsingMergeTree(s, t) ORDER BY k",
    "VersionedCollapsingMergeTree(s, nope) ORDER BY k",
    "VersionedCollapsingMergeTree(s, v, k) ORDER BY k",
    "MergeTree(k) ORDER BY k",
    "AggregatingMergeTree(k) ORDER BY k",
    "SummingMergeTree(nope) ORDER BY k",
    "SummingMergeTree(v, d) ORDER BY k",
    "SummingMergeTree(k) ORDER BY k",
    "SummingMergeTree(v)",
    "Memory(k)",
    "Log(1)",
    "Null(1)",
    "Memory ORDER BY k",
    "Log PARTITION BY k",
    "TinyLog PRIMARY KEY k",
    "Nonsense",
    "memory",
    "ReplicatedMemory",
)


@pytest.mark.parametrize("engine", REFUSED)
def test_refused_with_the_same_error(both: Both, engine: str) -> None:
    both.refused(f"CREATE TABLE {both.table} {COLUMNS} ENGINE = {engine}")


SORTED = (
    "ReplacingMergeTree(v, d) ORDER BY k",
    "CollapsingMergeTree(s) ORDER BY (k, s)",
    "VersionedCollapsingMergeTree(s, v) ORDER BY k",
    "VersionedCollapsingMergeTree(s, v) ORDER BY (k, v)",
    "VersionedCollapsingMergeTree(s, v) PRIMARY KEY v ORDER BY (v, k)",
    "VersionedCollapsingMergeTree(s, v) ORDER BY tuple()",
    "VersionedCollapsingMergeTree(s, k) ORDER BY k",
)


@pytest.mark.parametrize("engine", SORTED)
def test_how_a_table_is_described(both: Both, engine: str) -> None:
    both.create(f"{COLUMNS} ENGINE = {engine}")
    query = (
        "SELECT engine, replaceOne(engine_full, ' SETTINGS index_granularity = 8192', ''), sorting_key,"
        f" primary_key FROM system.tables WHERE database = '{both.database}' AND name = 't'"
    )
    ((name, full, *_),) = both.same(query)
    assert name == engine.split("(")[0]
    both.run(f"DROP TABLE {both.table}")
    both.create(f"{COLUMNS} ENGINE = {full}")
    both.same(query)


@pytest.mark.parametrize("engine", ["Memory", "Log", "TinyLog", "StripeLog"])
def test_rows_stay_in_the_order_of_their_insertion(both: Both, engine: str) -> None:
    both.create(f"(k UInt32, t String) ENGINE = {engine}")
    for values in ("(3, 'a'), (1, 'b')", "(2, 'c')", "(1, 'd'), (9, '')"):
        both.run(f"INSERT INTO {both.table} VALUES {values}")
    one_reader = "SETTINGS max_threads = 1"
    everything = both.same(f"SELECT * FROM {both.table} {one_reader}")
    assert [row[0] for row in everything] == ["3", "1", "2", "1", "9"]
    both.same(f"SELECT k FROM {both.table} WHERE t > 'a' {one_reader}")
    both.same(f"SELECT count(), sum(k) FROM {both.table}")
    both.same(f"SELECT * FROM {both.table} SETTINGS final = 1, max_threads = 1")
    assert both.refused(f"SELECT * FROM {both.table} FINAL") == "ILLEGAL_FINAL"
    assert both.refused(f"OPTIMIZE TABLE {both.table} FINAL") == "NOT_IMPLEMENTED"
    both.run(f"TRUNCATE TABLE {both.table}")
    assert both.same(f"SELECT * FROM {both.table}") == []
