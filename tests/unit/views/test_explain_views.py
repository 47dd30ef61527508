"""EXPLAIN DEPENDENCIES and EXPLAIN PROVENANCE."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import IncorrectQuery, NotSupportedError, UnknownTable
from tests.unit.views.warehouse import VIEW, add, dicts, make

pytestmark = pytest.mark.feature("views", "provability", "introspection")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        make(opened)
        yield opened


# --- impact --------------------------------------------------------------------------------------


@pytest.fixture
def graph(connection: Connection) -> Connection:
    for statement in (
        "CREATE TABLE names (kind String, name String) ENGINE = MergeTree ORDER BY kind",
        "CREATE TABLE monthly (month UInt32, events SimpleAggregateFunction(sum, UInt64))"
        " ENGINE = AggregatingMergeTree ORDER BY month",
        "CREATE MATERIALIZED VIEW monthly_mv TO monthly AS"
        " SELECT toYYYYMM(day) AS month, sum(events) AS events FROM daily GROUP BY month",
        "CREATE MATERIALIZED VIEW named ENGINE = SummingMergeTree ORDER BY name AS"
        " SELECT n.name AS name, count() AS events FROM events AS e INNER JOIN names AS n"
        " ON e.kind = n.kind GROUP BY name",
        "CREATE VIEW readable AS SELECT month, sum(events) AS events FROM monthly GROUP BY month",
    ):
        connection.execute(statement)
    return connection


def reached(connection: Connection, name: str) -> list[tuple[int, str, str, str]]:
    found = dicts(connection, f"EXPLAIN DEPENDENCIES {name}")
    return [(r["level"], r["kind"], r["name"], r["reached_from"]) for r in found]


def test_everything_below_a_table(graph: Connection) -> None:
    found = reached(graph, "events")
    inner = [name for _, kind, name, _ in found if kind == "table" and "inner" in name]
    assert [f for f in found if f[2] not in inner] == [
        (0, "table", "default.events", ""),
        (1, "materialized view", "default.daily_mv", "default.events"),
        (1, "materialized view", "default.named", "default.events"),
        (2, "table", "default.daily", "default.daily_mv"),
        (2, "dimension", "default.names", "default.named"),
        (3, "materialized view", "default.monthly_mv", "default.daily"),
        (4, "table", "default.monthly", "default.monthly_mv"),
        (5, "view", "default.readable", "default.monthly"),
    ]
    assert len(inner) == 1


def test_a_dimension_and_the_end_of_a_chain(graph: Connection) -> None:
    (_, view, *_) = dicts(graph, "EXPLAIN DEPENDENCIES names")
    assert (view["name"], view["how"]) == (
        "default.named",
        "joins it: a change makes what it made stale",
    )
    assert reached(graph, "readable") == [(0, "view", "default.readable", "")]
    graph.execute("DETACH VIEW monthly_mv")
    assert "misses each INSERT" in dicts(graph, "EXPLAIN DEPENDENCIES daily")[1]["how"]
    with pytest.raises(UnknownTable):
        reached(graph, "nothing")


# --- provenance ----------------------------------------------------------------------------------


def origins(connection: Connection, condition: str) -> list[tuple[str, int, int, str]]:
    found = dicts(connection, f"EXPLAIN PROVENANCE SELECT * FROM daily WHERE {condition}")
    return [(r["view"], r["first_block"], r["rows"], r["statement"][:20]) for r in found]


def test_from_a_row_to_its_inserts(connection: Connection) -> None:
    add(connection, ("2024-01-01", "a", 1, 10), ("2024-01-02", "b", 1, 10))
    add(connection, ("2024-01-01", "a", 2, 20))
    add(connection, ("2024-01-30", "a", 3, 30))
    add(connection, ("2024-02-01", "a", 4, 40))
    both = [("default.daily_mv", 2, 1), ("default.daily_mv", 1, 2)]
    assert sorted(origins(connection, "day = '2024-01-01'")) == sorted(
        (*one, "INSERT INTO events V") for one in both
    )
    connection.execute("OPTIMIZE TABLE daily FINAL")
    assert [o[:3] for o in origins(connection, "day = '2024-01-01' AND kind = 'a'")] == both, (
        "block 3 is in the merged part, but its rows are of another day"
    )
    assert [o[1] for o in origins(connection, "total = 30")] == [3, 2, 1], (
        "asked of the target only"
    )
    assert origins(connection, "day = '2030-01-01'") == []
    found = dicts(
        connection, "EXPLAIN PROVENANCE SELECT sum(events) FROM daily FINAL WHERE kind = 'b'"
    )
    assert found[0]["source"] == "default.events"
    assert found[0]["commit"] > 0
    assert found[0]["time"] is not None


def test_backfilled_and_by_hand(connection: Connection) -> None:
    connection.execute("DROP VIEW daily_mv")
    add(connection, ("2024-01-01", "a", 1, 10))
    connection.execute(VIEW)
    connection.execute("SYSTEM BACKFILL VIEW daily_mv")
    connection.execute("INSERT INTO daily SELECT * FROM daily WHERE day = '2024-01-01'")
    found = dicts(connection, "EXPLAIN PROVENANCE SELECT * FROM daily WHERE day = '2024-01-01'")
    assert [(r["view"], r["source"], r["kind"]) for r in found] == [
        ("default.daily_mv", "default.events", "insert"),
        ("", "default.daily", "insert"),
    ]
    assert found[1]["statement"].startswith("INSERT INTO daily SELECT")
    connection.execute("DROP VIEW daily_mv")
    found = dicts(connection, "EXPLAIN PROVENANCE SELECT * FROM daily WHERE day = '2024-01-01'")
    assert found[0]["view"] == "a view that was dropped"


def test_what_it_cannot_explain(connection: Connection) -> None:
    with pytest.raises(NotSupportedError, match="without joins"):
        connection.execute("EXPLAIN PROVENANCE SELECT 1")
    with pytest.raises(NotSupportedError, match="without joins"):
        connection.execute("EXPLAIN PROVENANCE SELECT * FROM (SELECT * FROM daily)")
    with pytest.raises(IncorrectQuery, match=r"default\.daily"):
        connection.execute("EXPLAIN PROVENANCE SELECT * FROM daily_mv")
