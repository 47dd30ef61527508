"""Reads beside ClickHouse, drawn at random over two tables of every type, and bugs that this
found."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence

import pytest

import olapdb
from olapdb.functions import display
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("select")

RUN_SECONDS, QUERIES_PER_PAIR = 20, 40
DATABASE = "random_reads"
COLUMNS: Mapping[str, str] = {
    "i": "Int32",
    "u": "UInt8",
    "n": "Nullable(Int32)",
    "s": "String",
    "ns": "Nullable(String)",
    "f": "Float64",
    "d": "Date",
    "lc": "LowCardinality(String)",
    "nd": "Nullable(Date)",
    "ln": "LowCardinality(Nullable(String))",
    "dec": "Decimal(9, 2)",
    "a": "Array(Int32)",
    "tp": "Tuple(Int32, Nullable(String))",
    "dt": "DateTime",
    "u64": "UInt64",
    "b": "Bool",
}
VALUES: Mapping[str, Sequence[str]] = {
    "Int32": ("-3", "-1", "0", "1", "2", "3"),
    "UInt8": ("0", "1", "2", "3"),
    "String": ("''", "'a'", "'b'", "'ab'", "'B'"),
    "Float64": ("0", "1.5", "-1.5", "2", "nan", "inf"),
    "Date": ("'2024-01-01'", "'2024-01-02'", "'2024-02-01'"),
    "Bool": ("true", "false"),
    "Decimal(9, 2)": ("0", "1.5", "-1.25", "2"),
    "Array(Int32)": ("[]", "[1]", "[2, 1]", "[0, 0, 3]"),
    "Tuple(Int32, Nullable(String))": ("(1, 'a')", "(1, NULL)", "(0, 'b')"),
    "DateTime": ("'2024-01-01 00:00:00'", "'2024-01-01 10:00:00'"),
    "UInt64": ("0", "1", "2", "18446744073709551615"),
}
KEYS = (
    ("i", "i"),
    ("i", "n"),
    ("n", "n"),
    ("s", "s"),
    ("s", "ns"),
    ("ns", "ns"),
    ("lc", "s"),
    ("ln", "ns"),
    ("ln", "ln"),
    ("d", "d"),
    ("d", "nd"),
    ("u", "i"),
    ("u", "n"),
    ("u64", "u"),
    ("i", "u64"),
    ("dec", "dec"),
    ("tp", "tp"),
    ("f", "f"),
    ("dt", "dt"),
    ("d", "dt"),
    ("i", "f"),
    ("dec", "i"),
)
JOINS = ("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "RIGHT SEMI", "RIGHT ANTI")
AGGREGATES = (
    "count()",
    "count({n})",
    "sum({n})",
    "min({any})",
    "max({any})",
    "avg({i})",
    "uniqExact({any})",
    "countIf({where})",
    "sumIf({i}, {where})",
    "arraySort(groupArray({i}))",
    "minIf({i}, {where})",
    "count(DISTINCT {any})",
    "sum(DISTINCT {i})",
    "maxOrNull({i})",
    "avgOrNull({n})",
    "sum({i}) FILTER (WHERE {where})",
    "uniqExact({i}, {s})",
    "sumArray({a})",
    "groupBitOr({u})",
)


class Queries:
    """A generator of statements over `one AS x` and `two AS y`."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def insert(self, table: str) -> str:
        rows = ", ".join(
            "(" + ", ".join(self.value(t) for t in COLUMNS.values()) + ")"
            for _ in range(self.draw.randint(1, 9))
        )
        return f"INSERT INTO {table} VALUES {rows}"

    def value(self, data_type: str) -> str:
        inner = data_type.removeprefix("LowCardinality(")
        if inner.startswith("Nullable("):
            null = self.draw.random() < 0.3
            return "NULL" if null else self.value(inner.removeprefix("Nullable(").rstrip(")"))
        return self.draw.choice(VALUES[inner.rstrip(")") if inner != data_type else inner])

    def column(self, sides: Sequence[str], *names: str) -> str:
        return f"{self.draw.choice(sides)}.{self.draw.choice(names or tuple(COLUMNS))}"

    def number(self, sides: Sequence[str], depth: int = 0) -> str:
        shapes = (
            "{i}",
            "{i}",
            "{m} + 1",
            "if({where}, {i}, {n})",
            "coalesce({n}, {i})",
            "{m} * -1",
            "nullIf({i}, 1)",
            "CASE WHEN {where} THEN {i} WHEN {i} > 0 THEN {n} END",
            "CASE {n} WHEN 1 THEN 10 WHEN 2 THEN NULL ELSE 30 END",
            "length({s})",
        )
        return self.fill(self.draw.choice(shapes if depth < 2 else shapes[:2]), sides, depth)

    def shown(self, sides: Sequence[str]) -> str:
        shapes = ("{any}", "{any}", "{m}", "upper({s})", "concat({s}, 'x')", "toString({n})")
        return self.fill(self.draw.choice(shapes), sides, 0)

    def where(self, sides: Sequence[str], depth: int = 0) -> str:
        simple = (
            "{m} > 0",
            "{i} = {n}",
            "{any} IS NULL",
            "{any} IS NOT NULL",
            "{n} IN (0, 1, NULL)",
            "{n} NOT IN (1, NULL)",
            "{s} NOT IN ('a', NULL)",
            "{s} LIKE 'a%'",
            "{s} >= 'a'",
            "({n}, {s}) IN ((1, 'a'), (NULL, 'b'))",
            "({i}, {s}) NOT IN ((1, 'a'), (2, NULL))",
            "({n}, {s}) < (1, 'a')",
            "({i}, {n}) != ({n}, {i})",
            "{n} NOT IN (SELECT n FROM two)",
            "{i} IN (SELECT n FROM two WHERE i > 0)",
            "({n}, {s}) NOT IN (SELECT i, ns FROM two)",
            "({i}, {s}) IN (SELECT n, s FROM two)",
            "{i} >= (SELECT min(n) FROM two)",
            "{dt} > 1704067200",
        )
        several = ("({where} AND {where})", "({where} OR {where})", "NOT ({where})")
        deep = depth < 2 and self.draw.random() < 0.35
        return self.fill(self.draw.choice(several if deep else simple), sides, depth + 1)

    def fill(self, shape: str, sides: Sequence[str], depth: int) -> str:
        made = shape
        for name, names in (
            ("i", ("i", "u", "n")),
            ("n", ("n",)),
            ("s", ("s", "ns")),
            ("a", ("a",)),
            ("u", ("u",)),
            ("dt", ("dt",)),
            ("any", ("i", "n", "s", "ns", "d", "nd", "dec", "ln", "dt", "u64")),
        ):
            while f"{{{name}}}" in made:
                made = made.replace(f"{{{name}}}", self.column(sides, *names), 1)
        while "{m}" in made:
            made = made.replace("{m}", self.number(sides, depth + 1), 1)
        while "{where}" in made:
            made = made.replace("{where}", self.where(sides, depth + 1), 1)
        return made

    def source(self) -> tuple[str, tuple[str, ...]]:
        """Draw a FROM clause; return it and the aliases whose columns it has."""
        kind = self.draw.choice((None, None, "CROSS", *JOINS))
        if kind is None:
            source = self.draw.choice(
                ("one AS x", "(SELECT * FROM one UNION ALL SELECT * FROM two) AS x")
            )
            return source, ("x",)
        if kind == "CROSS":
            return "one AS x CROSS JOIN two AS y", ("x", "y")
        on = [f"x.{a} = y.{b}" for a, b in self.draw.sample(KEYS, self.draw.choice((1, 1, 2)))]
        if kind in ("INNER", "LEFT") and self.draw.random() < 0.3:
            on.append(self.draw.choice(("x.i > 0", "y.i < 2", "x.n IS NULL", "y.s = 'a'")))
        one_sided = kind.endswith(("SEMI", "ANTI"))
        sides = (("x",) if kind.startswith("LEFT") else ("y",)) if one_sided else ("x", "y")
        return f"one AS x {kind} JOIN two AS y ON {' AND '.join(on)}", sides

    def query(self) -> tuple[str, bool]:
        """Draw a query; return it and whether the order of its rows matters."""
        draw = self.draw
        if draw.random() < 0.1:
            names = ", ".join(draw.sample(("i", "n", "s", "ns", "d", "u", "dec", "ln"), 2))
            operation = draw.choice(("UNION ALL", "UNION DISTINCT", "INTERSECT", "EXCEPT"))
            return f"SELECT {names} FROM one {operation} SELECT {names} FROM two", False
        source, sides = self.source()
        nulls = " SETTINGS join_use_nulls = 1" if draw.random() < 0.4 else ""
        where = f" WHERE {self.where(sides)}" if draw.random() < 0.5 else ""
        items = [self.shown(sides) for _ in range(draw.randint(0, 3))]
        grouped = draw.random() < 0.5 or not items
        keys = len(items)
        if grouped:
            items += [
                self.fill(draw.choice(AGGREGATES), sides, 1) for _ in range(draw.randint(1, 3))
            ]
        shown = ", ".join(f"{item} AS e{at}" for at, item in enumerate(items))
        group = f" GROUP BY {', '.join(f'e{at}' for at in range(keys))}" if grouped and keys else ""
        distinct = "DISTINCT " if not grouped and draw.random() < 0.3 else ""
        ordered = draw.random() < 0.4
        order = ", ".join(f"e{at}{draw.choice(('', ' DESC'))}" for at in range(len(items)))
        tail = f" ORDER BY {order} LIMIT {draw.randint(0, 3)}, 4" if ordered else ""
        return f"SELECT {distinct}{shown} FROM {source}{where}{group}{tail}{nulls}", ordered


class Both:
    """olapdb and ClickHouse with the same statements."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.connection = olapdb.connect(":memory:", settings={"inline_bytes_max": 0})

    def run(self, statement: str) -> None:
        self.connection.execute(statement)
        self.oracle.execute(statement)

    def ours(self, query: str) -> tuple[tuple[str, ...], list[tuple[str | None, ...]]]:
        result = self.connection.session.execute(query)
        columns = [
            display(column.combine_chunks(), data_type)
            for column, data_type in zip(result.read_all().columns, result.types, strict=True)
        ]
        return tuple(str(t) for t in result.types), list(zip(*columns, strict=True))

    def same(self, query: str, *, ordered: bool = True) -> None:
        expected = self.oracle.query(query)
        types, rows = self.ours(query)
        assert types == expected.types, query
        found, wanted = _rounded(rows, types), _rounded(expected.rows, types)
        if not ordered:
            found, wanted = sorted(found, key=str), sorted(wanted, key=str)
        assert found == wanted, query


def _rounded(
    rows: Sequence[tuple[str | None, ...]], types: Sequence[str]
) -> list[tuple[str | None, ...]]:
    """Round floats to 12 digits, since the engines add in different orders."""
    return [
        tuple(
            f"{float(v):.12g}" if v is not None and "Float" in t and "Array" not in t else v
            for v, t in zip(row, types, strict=True)
        )
        for row in rows
    ]


@pytest.fixture
def both(oracle: Oracle) -> Iterator[Both]:
    made = Both(oracle)
    made.connection.execute(f"CREATE DATABASE {DATABASE}")
    oracle.execute(f"CREATE DATABASE {DATABASE} ENGINE = Atomic")
    made.run(f"USE {DATABASE}")
    yield made
    made.connection.close()
    oracle.execute("USE t")
    oracle.execute(f"DROP DATABASE {DATABASE}")


def compare(both: Both, seeds: Iterator[int], seconds: float) -> int:
    defined = ", ".join(f"{c} {t}" for c, t in COLUMNS.items())
    deadline = time.monotonic() + seconds
    compared = 0
    for seed in seeds:
        queries = Queries(random.Random(seed))
        for table in ("one", "two"):
            both.connection.execute(f"DROP TABLE IF EXISTS {table}")
            both.oracle.execute(f"DROP TABLE IF EXISTS {table} SYNC")
            key = queries.draw.choice(("i", "(u, s)", "tuple()", "(d, i)"))
            both.run(
                f"CREATE TABLE {table} ({defined}) ENGINE = MergeTree ORDER BY {key}"
                f" SETTINGS index_granularity = {queries.draw.choice((2, 8_192))}"
            )
            for _ in range(queries.draw.choice((0, 1, 1, 2))):
                both.run(queries.insert(table))
        for _ in range(QUERIES_PER_PAIR):
            query, ordered = queries.query()
            try:
                both.same(query, ordered=ordered)
            except (OracleError, olapdb.Error) as error:
                raise AssertionError(f"{query}: {error}") from error
            compared += 1
            if time.monotonic() > deadline and compared > QUERIES_PER_PAIR:
                return compared
    return compared


def test_random_reads(both: Both) -> None:
    assert compare(both, iter(range(1_000)), RUN_SECONDS) > QUERIES_PER_PAIR


@pytest.mark.soak
@pytest.mark.timeout(1_200)
def test_random_reads_for_long(both: Both) -> None:
    compare(both, iter(range(1_000_000, 2_000_000)), 600)


def test_a_state_of_median_is_one_of_quantile(both: Both) -> None:
    both.run("CREATE TABLE m (k UInt8, v AggregateFunction(median, Int32)) ORDER BY k")
    both.run("INSERT INTO m SELECT 1, medianState(toInt32(number)) FROM numbers(4)")
    both.same("SELECT k, medianMerge(v) FROM m GROUP BY k")


def test_text_that_is_not_utf_8(both: Both) -> None:
    both.run("CREATE TABLE bytes (k UInt8, s String, INDEX i s TYPE minmax) ORDER BY (s, k)")
    both.run("INSERT INTO bytes SELECT 1, unhex('ff00aa')")
    both.run("INSERT INTO bytes SELECT 2, unhex('61')")
    both.run("INSERT INTO bytes VALUES (3, unhex('c3'))")
    both.run("OPTIMIZE TABLE bytes FINAL")
    both.same("SELECT k, hex(s), s > 'b' FROM bytes ORDER BY k")
    both.same("SELECT k FROM bytes WHERE s > 'b' ORDER BY k")
    rows = both.connection.execute("SELECT s FROM bytes ORDER BY k").fetchall()
    assert rows == [(b"\xff\x00\xaa",), ("a",), (b"\xc3",)]
    with pytest.raises(olapdb.DataError, match=r"not UTF-8.*hex"):
        both.connection.execute("SELECT [s] FROM bytes ORDER BY k").fetchall()
    both.connection.execute("CREATE TABLE parted (s String) PARTITION BY s ORDER BY s")
    with pytest.raises(olapdb.DataError, match="partition key is not UTF-8"):
        both.connection.execute("INSERT INTO parted SELECT unhex('ff')")
