"""Small helpers for tests of views: rows as sorted tuples, and tables like the flights example."""

from __future__ import annotations

from typing import Any

from olapdb.dbapi.connection import Connection

SOURCE = """
    CREATE TABLE events (day Date, kind String, user UInt64, amount Int64)
    ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY (day, kind)
"""
TARGET = """
    CREATE TABLE daily (
        day Date, kind String,
        events SimpleAggregateFunction(sum, UInt64), total SimpleAggregateFunction(sum, Int64),
        users AggregateFunction(uniqExact, UInt64), mean AggregateFunction(avg, Int64)
    ) ENGINE = AggregatingMergeTree PARTITION BY toYYYYMM(day) ORDER BY (day, kind)
"""
QUERY = """
    SELECT day, kind, count() AS events, sum(amount) AS total, uniqExactState(user) AS users,
           avgState(amount) AS mean
    FROM events GROUP BY day, kind
"""
VIEW = f"CREATE MATERIALIZED VIEW daily_mv TO daily AS {QUERY}"
READ = """
    SELECT day, kind, sum(events), sum(total), uniqExactMerge(users), avgMerge(mean)
    FROM daily GROUP BY day, kind ORDER BY day, kind
"""
COLUMNS, STORAGE = TARGET.removeprefix("\n    CREATE TABLE daily ").split(") ENGINE")
CREATE = f"""
    CREATE MATERIALIZED VIEW daily_mv TO daily {COLUMNS}) ENGINE{STORAGE}
    READ VIEW daily_read AS ({READ.partition(" ORDER BY")[0]}) POPULATE AS {QUERY}
"""
"""One statement that creates the target, the view and a plain view, and backfills."""
DIRECT = """
    SELECT day, kind, count(), sum(amount), uniqExact(user), avg(amount)
    FROM events GROUP BY day, kind ORDER BY day, kind
"""


def rows(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(query).fetchall()]


def dicts(connection: Connection, query: str) -> list[dict[str, Any]]:
    """Return the rows as dictionaries by column name."""
    cursor = connection.execute(query)
    assert cursor.description is not None
    names = [d[0] for d in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def make(connection: Connection, *, view: bool = True) -> None:
    """Create source and target and, if `view` is true, the view."""
    connection.execute(SOURCE)
    connection.execute(TARGET)
    if view:
        connection.execute(VIEW)


def add(connection: Connection, *values: tuple[str, str, int, int]) -> None:
    """Insert rows of (day, kind, user, amount) into the source."""
    text = ", ".join(f"('{d}', '{k}', {u}, {a})" for d, k, u, a in values)
    connection.execute(f"INSERT INTO events VALUES {text}")


def verdict(connection: Connection, view: str = "daily_mv") -> str:
    return str(rows(connection, f"SELECT verdict FROM system.views WHERE name = '{view}'")[0][0])
