"""What window functions do with rows that are in order already, counted by the calls of the kernels that sort."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.native.library import library
from olapdb.observation import Counts, counting

pytestmark = pytest.mark.feature("select")

ROWS = 20_000


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
