"""WITH FILL where tests/sql/with_fill.slt cannot show it: plans, limits, views."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import (
    InvalidWithFillExpression,
    MemoryLimitExceeded,
    NotSupportedError,
    ViewNotProvable,
)

pytestmark = pytest.mark.feature("select", "views")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("CREATE TABLE t (k String, n UInt8, v Int64) ENGINE = MergeTree ORDER BY k")
        opened.execute("INSERT INTO t VALUES ('a', 1, 10), ('a', 4, 40), ('b', 2, 20)")
        yield opened


def test_explain_shows_what_is_filled(connection: Connection) -> None:
    query = "SELECT n, v FROM t ORDER BY k, n WITH FILL FROM 0 TO 9 STEP 2 INTERPOLATE (v AS v + 1)"
    lines = [line.strip() for (line,) in connection.execute(f"EXPLAIN {query}").fetchall()]
    assert "Filling" in lines
    assert "Fill: n ASC FROM 0 TO 9 STEP 2" in lines
    assert any(line.startswith("Interpolate: v + 1") for line in lines)


def test_a_limit_does_not_cut_the_rows_to_fill_between(connection: Connection) -> None:
    rows = connection.execute("SELECT n FROM t ORDER BY n DESC WITH FILL LIMIT 3").fetchall()
    assert rows == [(4,), (3,), (2,)]


@pytest.mark.parametrize(
    ("clause", "error", "reason"),
    [
        ("TO 300", InvalidWithFillExpression, "beyond the type UInt8"),
        ("FROM v", InvalidWithFillExpression, "must be a constant"),
        ("FROM NULL", InvalidWithFillExpression, "must be a constant"),
        ("STEP 1.5", InvalidWithFillExpression, "integer or an INTERVAL"),
        (", v WITH FILL INTERPOLATE", NotSupportedError, "several keys"),
        (", k, v WITH FILL", NotSupportedError, "between two"),
    ],
)
def test_what_cannot_be_filled(
    connection: Connection, clause: str, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        connection.execute(f"SELECT n, v FROM t ORDER BY n WITH FILL {clause}")


def test_memory_is_limited(connection: Connection) -> None:
    query = "SELECT v FROM t ORDER BY v WITH FILL TO 100000000 SETTINGS max_memory_usage = 10000000"
    with pytest.raises(MemoryLimitExceeded, match="WITH FILL"):
        connection.execute(query)


def test_a_merging_view_refuses_it_and_another_is_unproven(connection: Connection) -> None:
    query = "SELECT n, v FROM t ORDER BY n WITH FILL"
    with pytest.raises(ViewNotProvable, match="WITH FILL looks at the rows of one block"):
        connection.execute(
            f"CREATE MATERIALIZED VIEW s ENGINE = SummingMergeTree ORDER BY n AS {query}"
        )
    connection.execute(f"CREATE MATERIALIZED VIEW m ENGINE = MergeTree ORDER BY n AS {query}")
    shown = connection.execute("SHOW CREATE TABLE m").fetchone()
    assert shown is not None
    assert "WITH FILL" in shown[0]
    connection.execute("INSERT INTO t VALUES ('c', 1, 5), ('c', 3, 6)")
    rows = connection.execute("SELECT * FROM m ORDER BY n").fetchall()
    assert rows == [(1, 5), (2, 0), (3, 6)]


def test_the_last_value_of_a_type_has_nothing_to_fill_behind_it() -> None:
    with olapdb.connect() as connection:
        query = "SELECT 18446744073709551615 AS u ORDER BY u WITH FILL"
        assert connection.execute(query).fetchall() == [(2**64 - 1,)]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (
            "SELECT x FROM values('x Int64', (-9223372036854775808), (9223372036854775807))"
            " ORDER BY x WITH FILL STEP 4611686018427387904",
            InvalidWithFillExpression,
        ),
        (
            "SELECT x FROM values('x Int64', (-9223372036854775808), (0)) ORDER BY x DESC"
            " WITH FILL STEP -4611686018427387904",
            InvalidWithFillExpression,
        ),
        (
            "SELECT x FROM values('x Float64', (1), (3)) ORDER BY x WITH FILL STEP 1e-300",
            MemoryLimitExceeded,
        ),
    ],
)
def test_ranges_beyond_64_bits_and_beyond_memory_are_refused(
    query: str, error: type[olapdb.Error]
) -> None:
    with olapdb.connect() as connection, pytest.raises(error):
        connection.execute(query).fetchall()
