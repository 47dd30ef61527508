"""Projections change no answer: random tables with random projections, random changes and queries,
each query with projections and without."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("schema", "select", "changes")

COLUMNS = ("a", "b", "c", "d", "s", "n")
KEYS = ("b", "c", "s", "n", "b % 3", "toStartOfMonth(d)", "lower(s)", "c + b", "ifNull(n, 7)")
CALLS = (
    *("count()", "sum(a)", "sum(n)", "min(s)", "max(d)", "uniqExact(s)", "count(n)", "avg(a)"),
    *("sumIf(a, b > 3)", "uniq(c)", "groupBitXor(a)", "anyLast(c % 1)", "argMax(b, (a, b))"),
)
CONDITIONS = (
    *("b = 3", "b < 4", "c IN (1, 5, 9)", "s = 'x7'", "n IS NULL", "a > 700", "lower(s) < 'x3'"),
    *("toStartOfMonth(d) = '2024-02-01'", "b % 3 = 1 AND c < 10", "c = 2 OR b = 6", "c > 1000"),
)
SEEDS = range(12)
STEPS, QUERIES = 7, 10


class Tables:
    """A table with projections under random changes."""

    def __init__(self, connection: Connection, draw: random.Random) -> None:
        self.draw = draw
        self.execute = connection.execute
        self.rows = 0
        self.grouped: list[tuple[list[str], list[str]]] = [([], ["count()"])]
        projections = "".join(f", {self.projection(f'p{at}')}" for at in range(3))
        partition = draw.choice(["", "PARTITION BY c % 3 ", "PARTITION BY toYYYYMM(d) "])
        self.execute(
            "CREATE TABLE t (a Int64, b Int32, c UInt16, d Date, s LowCardinality(String),"
            f" n Nullable(Int8){projections}) ENGINE = MergeTree {partition}ORDER BY (c, a)"
            f" SETTINGS index_granularity = {draw.choice([16, 64, 300])},"
            f" inline_bytes_max = {draw.choice([0, 0, 20_000])}"
        )
        self.insert()

    def projection(self, name: str) -> str:
        """Return the definition of a random projection."""
        draw = self.draw
        if draw.random() < 0.4:
            names = draw.choice([["*"], draw.sample(COLUMNS, draw.randint(1, 5))])
            order = draw.sample(KEYS, draw.randint(1, 2))
            return f"PROJECTION {name} (SELECT {', '.join(names)} ORDER BY {', '.join(order)})"
        keys = draw.sample(KEYS, draw.randint(0, 3))
        calls = draw.sample(CALLS, draw.randint(1, 6))
        self.grouped.append((keys, calls))
        grouping = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"PROJECTION {name} (SELECT {', '.join([*keys, *calls])}{grouping})"

    def insert(self) -> None:
        """Insert some hundreds of rows."""
        rows = self.draw.choice([50, 400, 1500])
        kinds, start = self.draw.randint(2, 40), self.rows
        self.rows += rows
        self.execute(
            f"INSERT INTO t SELECT number + {start}, number % 11, number % {kinds},"
            " toDate('2024-01-01') + number % 90, concat(if(number % 2 = 0, 'x', 'X'),"
            f" toString(number % {kinds})), if(number % 4 = 0, NULL, number % 50)"
            f" FROM numbers({rows})"
        )

    def change(self) -> None:
        """Change the table in a random way."""
        draw = self.draw
        condition = draw.choice(CONDITIONS)
        names = [r[0] for r in self.execute("SELECT name FROM system.projections").fetchall()]
        name = draw.choice(names) if names else "p0"
        match draw.randint(0, 9):
            case 0 | 1 | 2:
                self.insert()
            case 3:
                self.execute("OPTIMIZE TABLE t FINAL")
            case 4:
                self.execute(f"ALTER TABLE t UPDATE b = b + 1, s = 'x3' WHERE {condition}")
            case 5:
                self.execute(f"ALTER TABLE t DELETE WHERE {condition} AND a % 3 = 0")
            case 6:
                self.execute(f"ALTER TABLE t DROP PROJECTION IF EXISTS {name}")
                self.execute(f"ALTER TABLE t ADD {self.projection(name)}")
            case 7:
                self.execute(f"ALTER TABLE t MATERIALIZE PROJECTION IF EXISTS {name}")
            case 8:
                self.execute(f"ALTER TABLE t CLEAR PROJECTION IF EXISTS {name}")
            case 9:
                self.execute("CREATE OR REPLACE TABLE u CLONE AS t")
                self.execute("EXCHANGE TABLES t AND u")

    def query(self) -> str:
        """Return a random query over the table, whose answer has one order."""
        draw = self.draw
        where = f" WHERE {draw.choice(CONDITIONS)}" if draw.random() < 0.6 else ""
        if draw.random() < 0.3:
            names = ", ".join(draw.sample(COLUMNS, draw.randint(1, 4)))
            limit = draw.choice(["", " LIMIT 5"])
            return f"SELECT {names}, a FROM t{where} ORDER BY a{limit}"
        keys, calls = draw.sample(KEYS, draw.randint(0, 2)), draw.sample(CALLS, 3)
        if draw.random() < 0.7:  # one that a projection may serve
            keys, calls = draw.choice(self.grouped[-3:])
            keys = draw.sample(keys, draw.randint(0, len(keys)))
        calls = draw.sample(calls, min(len(calls), 3))
        grouping = f" GROUP BY {', '.join(keys)}" if keys else ""
        extra = draw.choice(["", "", " WITH TOTALS"]) if keys else ""
        return f"SELECT {', '.join([*keys, *calls])} FROM t{where}{grouping}{extra} ORDER BY ALL"


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Connection]:
    """Connect to a new warehouse."""
    with olapdb.connect(tmp_path / "warehouse") as connection:
        yield connection


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_are_those_without_projections(seed: int, warehouse: Connection) -> None:
    draw = random.Random(seed)
    tables = Tables(warehouse, draw)
    for _ in range(STEPS):
        for _ in range(QUERIES):
            query = tables.query()
            without = f"{query} SETTINGS optimize_use_projections = 0"
            expected = tables.execute(without).fetchall()
            assert str(tables.execute(query).fetchall()) == str(expected), (seed, query)
        tables.change()
    for _, is_sound, message in tables.execute("CHECK TABLE t").fetchall():
        assert is_sound, message


def test_a_projection_is_read_where_it_has_fewer_rows(warehouse: Connection) -> None:
    execute = warehouse.execute
    execute(
        "CREATE TABLE t (a Int64, b Int32, PROJECTION sums (SELECT b, sum(a) GROUP BY b),"
        " PROJECTION by_b (SELECT * ORDER BY b)) ENGINE = MergeTree ORDER BY a"
        " SETTINGS index_granularity = 100, inline_bytes_max = 0"
    )
    for start in (0, 5_000):
        execute(f"INSERT INTO t SELECT number + {start}, number % 50 FROM numbers(5000)")

    def projections(query: str) -> list[str]:
        """Return what EXPLAIN indexes = 1, and then ANALYZE, say of projections."""
        lines = [
            line.strip()
            for kind in ("EXPLAIN indexes = 1", "EXPLAIN ANALYZE")
            for (line,) in execute(f"{kind} {query}").fetchall()
        ]
        return [line for line in lines if line.startswith("Projection")]

    grouped = "Projection: sums | Parts: 2 | Granules: 2"
    assert projections("SELECT b, sum(a) FROM t GROUP BY b") == [grouped, grouped]
    assert projections("SELECT sum(a) FROM t WHERE b > 7") == [grouped, grouped]
    assert projections("SELECT max(a) FROM t GROUP BY b") == []
    assert projections("SELECT sum(a) FROM t WHERE a > 7 GROUP BY b") == []
    ordered = "Projection: by_b | Parts: 2 | Granules: 2"
    assert projections("SELECT a FROM t WHERE b = 7") == [ordered, ordered]
    assert projections("SELECT a FROM t WHERE a = 7") == []
    assert projections("SELECT a FROM t WHERE b = 7 SETTINGS optimize_use_projections = 0") == []
    execute("INSERT INTO t SELECT number, 1 FROM numbers(3)")
    execute("ALTER TABLE t CLEAR PROJECTION sums IN PARTITION tuple()")
    assert projections("SELECT b, sum(a) FROM t GROUP BY b") == []
    execute("OPTIMIZE TABLE t FINAL")
    merged = "Projection: sums | Parts: 1 | Granules: 1"
    assert projections("SELECT b, sum(a) FROM t GROUP BY b") == [merged, merged]


def test_a_damaged_projection_is_an_error_that_names_the_part(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "warehouse") as connection:
        connection.execute(
            "CREATE TABLE t (a Int64, b Int32, s String, PROJECTION p (SELECT * ORDER BY b))"
            " ENGINE = MergeTree ORDER BY a SETTINGS index_granularity = 1000, inline_bytes_max = 0"
        )
        connection.execute(
            "INSERT INTO t SELECT number, number % 1000, randomPrintableASCII(50) FROM numbers(90000)"
        )
        (rows,) = connection.execute("SELECT rows FROM system.projection_parts").fetchall()
        assert rows == (90_000,)
    (path,) = (tmp_path / "warehouse").rglob("*.parquet")
    data = bytearray(path.read_bytes())
    middle = len(data) * 3 // 4
    data[middle : middle + 5_000] = bytes(5_000)
    path.write_bytes(bytes(data))

    def read(connection: Connection) -> None:
        """Read each twentieth value of the projection's key."""
        for value in range(0, 1000, 20):
            connection.execute(f"SELECT max(s) FROM t WHERE b = {value}").fetchall()

    with olapdb.connect(tmp_path / "warehouse") as connection:
        connection.execute("SYSTEM DROP UNCOMPRESSED CACHE")
        with pytest.raises(olapdb.Error, match="cannot be read"):
            read(connection)
        ((_, is_sound, _),) = connection.execute("CHECK TABLE t").fetchall()
        assert not is_sound
