"""LIMIT and OFFSET from the end and as a share, and PASTE JOIN, where tests/sql/limits.slt cannot show
it: past the memory, in views, and as text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import ViewNotProvable
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query

pytestmark = pytest.mark.feature("select")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect(settings={"max_memory_usage": 16_000_000}) as opened:
        opened.execute("CREATE TABLE t (k UInt8, v UInt64) ENGINE = MergeTree ORDER BY v")
        yield opened


@pytest.mark.parametrize(
    ("limit", "answer"),
    [
        ("LIMIT 0.25 OFFSET 0.5", (500_000, 1_000_000, 1_499_999)),
        ("LIMIT -3 OFFSET -2", (3, 1_999_995, 1_999_997)),
        ("OFFSET -5", (1_999_995, 0, 1_999_994)),
        ("LIMIT -1 OFFSET -1 BY number % 2", (2, 1_999_996, 1_999_997)),
    ],
)
def test_rows_that_memory_does_not_take(
    connection: Connection, limit: str, answer: tuple[int, ...]
) -> None:
    query = f"SELECT count(), min(number), max(number) FROM (SELECT number FROM numbers(2000000) {limit})"
    assert connection.execute(query).fetchone() == answer


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT k, v FROM t ORDER BY v LIMIT -1", "LIMIT"),
        ("SELECT k, v FROM t ORDER BY v LIMIT 0.5", "LIMIT"),
        ("SELECT k, v FROM t ORDER BY v LIMIT -1 BY k", "LIMIT BY"),
        ("SELECT a.k AS k, b.v AS v FROM t AS a PASTE JOIN (SELECT 1 AS v) AS b", "PASTE JOIN"),
    ],
)
def test_no_view_takes_rows_by_their_position(
    connection: Connection, query: str, reason: str
) -> None:
    connection.execute(
        "CREATE TABLE target (k UInt8, v UInt64) ENGINE = SummingMergeTree ORDER BY k"
    )
    with pytest.raises(ViewNotProvable, match=reason):
        connection.execute(f"CREATE MATERIALIZED VIEW m TO target AS {query}")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM t ORDER BY ALL DESC NULLS FIRST",
        "SELECT a FROM t ORDER BY ALL NULLS LAST LIMIT 1 BY ALL",
        "SELECT a FROM t LIMIT -1 OFFSET -2",
        "SELECT * FROM t NATURAL INNER JOIN u",
        "SELECT * FROM t PASTE JOIN u",
        "SELECT * FROM t SEMI LEFT JOIN u USING (a)",
    ],
)
def test_the_text_of_a_query_is_the_same_query(query: str) -> None:
    assert to_sql(parse_query(query)) == query
