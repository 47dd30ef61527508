"""Rows that window functions and LIMIT BY need not sort, counted by calls of kernels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.config import tuning
from olapdb.dbapi.connection import Connection
from olapdb.native.library import library, without_kernels
from olapdb.observation import Counts, counting

pytestmark = pytest.mark.feature("select")

ROWS = 20_000


@pytest.fixture(autouse=True)
def few_rows_use_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "RADIX_SORT_ROWS_MIN", 2)


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with olapdb.connect(settings={"max_threads": 1}) as opened:
        opened.execute(
            "CREATE TABLE t (host String, time DateTime, u Float64, n Nullable(Int32))"
            " ENGINE = MergeTree ORDER BY (host, time)"
        )
        opened.execute(
            "INSERT INTO t SELECT concat('host', toString(number % 7)), number DIV 7, intHash64(number) % 1000,"
            f" if(number % 11 = 0, NULL, number % 5) FROM numbers({ROWS})"
        )
        yield opened


def sorts(connection: Connection, sql: str) -> int:
    """Run a query and return how often a kernel sorted rows."""
    counts = Counts()
    with counting(counts):
        connection.execute(sql).fetchall()
    return sum(count for name, count in counts.kernels.items() if "sort" in name)


@pytest.mark.skipif(library() is None, reason="kernels are counted")
@pytest.mark.parametrize(
    ("window", "is_sorted"),
    [
        ("PARTITION BY host ORDER BY time", True),
        ("PARTITION BY host", True),
        ("ORDER BY host, time", True),
        ("PARTITION BY host ORDER BY time DESC", False),
        ("PARTITION BY host ORDER BY u", False),
        ("PARTITION BY n ORDER BY u", False),
    ],
)
def test_rows_in_the_order_of_the_window_are_not_sorted(
    connection: Connection, window: str, is_sorted: bool
) -> None:
    sql = f"SELECT sum(s) FROM (SELECT sum(u) OVER ({window}) AS s FROM t)"
    assert (sorts(connection, sql) == 0) == is_sorted


TYPES = ("n", "u", "host", "floats", "day", "decimal", "big", "pair")
SOURCE = (
    "SELECT if(number % 7 = 0, NULL, toInt32(number * 37 % 11)) AS n, (number * 53 % 101) / 4 - 9 AS u,"
    " concat('host', toString(number * 31 % 5)) AS host, if(number % 13 = 0, NULL, if(number % 5 = 0, nan, number % 8)) AS floats,"
    " if(number % 9 = 0, NULL, toDate('1970-01-01') + number * 17 % 23) AS day, toDecimal64(number * 71 % 29, 2) - 7 AS decimal,"
    " if(number % 4 = 0, 18446744073709551615, number * 41 % 17) AS big, (number % 3, number % 4) AS pair,"
    " number AS at FROM numbers(400)"
)


@pytest.mark.parametrize("function", ["row_number", "rank", "dense_rank"])
@pytest.mark.parametrize("direction", ["", "DESC", "NULLS FIRST", "DESC NULLS FIRST"])
@pytest.mark.parametrize("key", TYPES)
def test_the_first_ranks_are_those_of_all_rows(
    connection: Connection, function: str, direction: str, key: str
) -> None:
    for partition in ("host", "n, host", "1"):
        window = f"PARTITION BY {partition} ORDER BY {key} {direction}, at % 3"
        ranked = f"SELECT at, {function}() OVER ({window}) AS r, rank() OVER ({window}) AS s FROM ({SOURCE})"
        ranks = connection.execute(ranked).fetchall()
        for condition, keeps in (("r <= 3", range(4)), ("2 > r", range(2)), ("r = 2", (2,))):
            few = connection.execute(f"SELECT * FROM ({ranked}) WHERE {condition}").fetchall()
            assert few == [row for row in ranks if row[1] in keeps]


@pytest.mark.parametrize(
    ("calls", "drops"),
    [
        ("row_number() OVER w AS r", True),
        ("dense_rank() OVER w AS r, rank() OVER w AS s", True),
        ("row_number() OVER w AS r, count() OVER (PARTITION BY host) AS s", False),
        ("row_number() OVER w AS r, leadInFrame(u) OVER w AS s", False),
    ],
)
@pytest.mark.skipif(library() is None, reason="kernels are counted")
def test_rows_of_later_ranks_are_dropped_where_no_call_reads_them(
    connection: Connection, calls: str, drops: bool
) -> None:
    sql = f"SELECT * FROM (SELECT host, {calls} FROM t WINDOW w AS (PARTITION BY host ORDER BY u DESC)) WHERE r <= 2"
    counts = Counts()
    with counting(counts):
        rows = connection.execute(sql).fetchall()
    assert len(rows) >= 14
    assert (any("first_of_groups" in name for name in counts.kernels)) == drops


@pytest.mark.parametrize("direction", ["", "DESC", "NULLS FIRST", "DESC NULLS FIRST"])
@pytest.mark.parametrize("key", TYPES)
def test_limit_by_of_sorted_rows_keeps_the_same_rows_without_kernels(
    connection: Connection, key: str, direction: str
) -> None:
    statements = [
        f"SELECT * FROM ({SOURCE}) ORDER BY {order} LIMIT {limits}"
        for order, limits in (
            (f"host, {key} {direction}, at", "2 BY host"),
            (f"{key} {direction}, at", "1, 2 BY host"),
            (f"{key} {direction}", f"1 BY {key}"),
            (f"{key} {direction}, at % 3", "3 BY host, n LIMIT 5"),
            (f"{key} {direction}, u", f"2 BY {key} LIMIT 4"),
            (f"{key} {direction}, u", f"2 BY {key} LIMIT 2 OFFSET 3"),
            (f"{key} {direction}, u", f"1, 2 BY {key} LIMIT 4"),
            (f"{key} {direction}", f"2 BY {key} LIMIT 3 WITH TIES"),
            (f"{key} {direction}, host", f"2 BY host, {key} LIMIT 3"),
            (f"{key} {direction}, host", "-2 BY host LIMIT 3"),
        )
    ]
    answers = [repr(connection.execute(sql).fetchall()) for sql in statements]
    with without_kernels():
        assert [repr(connection.execute(sql).fetchall()) for sql in statements] == answers


@pytest.mark.skipif(library() is None, reason="kernels are counted")
@pytest.mark.parametrize(
    ("limits", "times"),
    [
        ("ORDER BY host, time DESC LIMIT 1 BY host", 1),
        ("ORDER BY time DESC LIMIT 1, 2 BY host", 1),
        ("ORDER BY host, u DESC LIMIT 2 BY host LIMIT 3", 2),
        ("ORDER BY u, host LIMIT 2 BY host LIMIT 3", 1),
        ("ORDER BY host, time LIMIT -1 BY host", 0),
        ("ORDER BY u, time LIMIT 10000 BY u", 0),
    ],
)
def test_rows_that_limit_by_drops_are_not_sorted(
    connection: Connection, limits: str, times: int
) -> None:
    counts = Counts()
    with counting(counts):
        connection.execute(f"SELECT host, time, u FROM t {limits}").fetchall()
    assert sum(n for name, n in counts.kernels.items() if "first_of_groups" in name) == times


@pytest.mark.parametrize(
    "query",
    [
        "SELECT g, n FROM m ORDER BY g, n DESC LIMIT 1 BY g",
        "SELECT s, n FROM m ORDER BY n DESC LIMIT 1 BY s LIMIT 10",
        "SELECT s, n FROM (SELECT *, row_number() OVER (PARTITION BY s ORDER BY n DESC) AS r FROM m)"
        " WHERE r <= 1",
    ],
)
def test_rows_are_sorted_where_memory_does_not_take_what_drops_them(query: str) -> None:
    """From a limit at which rows spill to one at which everything fits, each has the rows."""
    with olapdb.connect(settings={"max_threads": 1}) as connection:
        connection.execute("CREATE TABLE m (g UInt32, s String, n UInt64) ENGINE = Log")
        connection.execute(
            "INSERT INTO m SELECT cityHash64(number) % 20000 AS k, toString(k), number FROM numbers(60000)"
        )
        expected = sorted(connection.execute(query).fetchall())
        for limit in range(4_000_000, 14_000_000, 1_000_000):
            limited = f"{query} SETTINGS max_memory_usage = {limit}"
            assert sorted(connection.execute(limited).fetchall()) == expected, limit
