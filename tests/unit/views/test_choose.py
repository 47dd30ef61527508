"""REPLAY … WHERE and FROM: a condition on the target's key chooses partitions."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BadArguments, UnknownIdentifier
from tests.unit.views.warehouse import DIRECT, READ, add, make, rows

pytestmark = pytest.mark.feature("views")


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        make(opened)
        for month in (1, 2, 3):
            add(opened, *((f"2024-0{month}-0{d}", "abc"[month - 1], d, d * 10) for d in (1, 2, 3)))
        yield opened


def replayed(connection: Connection, clause: str, *parameters: object) -> list[str]:
    cursor = connection.execute(f"SYSTEM REPLAY VIEW daily_mv {clause}", parameters or None)
    return [row[0] for row in cursor.fetchall()]


@pytest.mark.parametrize(
    ("clause", "partitions"),
    [
        ("WHERE day = '2024-02-02'", ["202402"]),
        ("WHERE day >= '2024-02-03'", ["202402", "202403"]),
        ("WHERE kind = 'a'", ["202401"]),
        ("WHERE kind IN ('a', 'c') AND day < '2024-03-01'", ["202401"]),
        ("WHERE toYYYYMM(day) = 202403", ["202403"]),
        ("WHERE day = '2025-01-01'", []),
        ("WHERE 0", []),
        ("WHERE 1", ["202401", "202402", "202403"]),
        ("FROM '2024-03-02'", ["202403"]),
        ("FROM toDate('2024-01-31')", ["202402", "202403"]),
        ("FROM '2030-01-01'", []),
    ],
)
def test_what_a_condition_touches(
    connection: Connection, clause: str, partitions: list[str]
) -> None:
    assert replayed(connection, clause) == partitions
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_parameters(connection: Connection) -> None:
    assert replayed(connection, "WHERE kind = ?", "b") == ["202402"]
    assert replayed(connection, "FROM ?", datetime.date(2024, 3, 1)) == ["202403"]


def test_from_python(connection: Connection) -> None:
    view = connection.views["daily_mv"]
    assert [r.partition for r in view.replay(where="kind = 'a' OR kind = 'b'")] == [
        "202401",
        "202402",
    ]
    assert [r.partition for r in view.replay(since=datetime.date(2024, 3, 1))] == ["202403"]
    assert view.replay(since=datetime.date(2024, 4, 1)) == ()
    with pytest.raises(BadArguments, match="one of"):
        view.replay(where="kind = 'a'", stale=True)


def test_bypass_rows_stay(connection: Connection) -> None:
    connection.execute("INSERT INTO daily SELECT * FROM daily WHERE day = '2024-02-01'")
    row = connection.execute("SYSTEM REPLAY VIEW daily_mv WHERE kind = 'b'").fetchall()[0]
    assert (row[0], row[4], row[5]) == ("202402", 1, "bypass kept")
    row = connection.execute(
        "SYSTEM REPLAY VIEW daily_mv WHERE kind = 'b' DISCARD BYPASS"
    ).fetchall()[0]
    assert row[5] == "bypass discarded"
    assert rows(connection, READ) == rows(connection, DIRECT)


def test_only_keys_choose(connection: Connection) -> None:
    with pytest.raises(BadArguments, match=r"total is no part") as refused:
        replayed(connection, "WHERE total > 5")
    assert "day, kind" in str(refused.value.hint)
    with pytest.raises(UnknownIdentifier):
        replayed(connection, "WHERE device = 5")


def test_from_needs_one_date() -> None:
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE s (k UInt64, a Date, b Date) ENGINE = MergeTree ORDER BY k"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW v ENGINE = SummingMergeTree ORDER BY (k, a, b)"
            " AS SELECT k, a, b, count() AS n FROM s GROUP BY k, a, b"
        )
        with pytest.raises(BadArguments, match="has a, b"):
            connection.execute("SYSTEM REPLAY VIEW v FROM '2024-01-01'")
