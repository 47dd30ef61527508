"""The recipe of ClickHouse's documents: a key is added to a view's target, then to the view."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import olapdb
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("views", "schema")

DAYS = "toStartOfDay(at) AS at"
SOURCE = (
    "CREATE TABLE events (at DateTime('UTC'), kind String) ENGINE = MergeTree ORDER BY (kind, at)"
)
QUERY = f"SELECT {DAYS}, kind, count() AS n FROM events GROUP BY at, kind"
NEW_QUERY = (
    f"SELECT {DAYS}, kind, browser, count() AS n, sum(cost) AS cost FROM events"
    " GROUP BY at, kind, browser"
)
NEW_COLUMNS = "ADD COLUMN browser String, ADD COLUMN cost Float64"


def insert(columns: str, values: str) -> str:
    """Return an INSERT of 24 rows, one an hour."""
    return (
        f"INSERT INTO events ({columns}) SELECT toDateTime('2020-01-01 00:00:00', 'UTC')"
        f" + 3600 * number, {values} FROM numbers(24)"
    )


def run_recipe(execute: Callable[[str], object], target: str) -> None:
    """Run the documented statements after CREATE; the view `mv` writes `target`."""
    execute(insert("at, kind", "['imp', 'click'][number % 2 + 1]"))
    execute(f"ALTER TABLE events {NEW_COLUMNS}")
    execute(f"ALTER TABLE {target} {NEW_COLUMNS}, MODIFY ORDER BY (kind, at, browser)")
    later = "['imp', 'click'][number % 2 + 1], ['firefox', 'safari', 'chrome'][number % 3 + 1], 10"
    execute(insert("at, kind, browser, cost", later))
    execute(f"ALTER TABLE mv MODIFY QUERY {NEW_QUERY}")
    execute(insert("at, kind, browser, cost", later))


READ = "SELECT toString(at), kind, browser, toString(n), toString(cost) FROM {} FINAL ORDER BY ALL"


def test_a_key_is_added_as_documented() -> None:
    create = (
        SOURCE,
        "CREATE TABLE days (at DateTime('UTC'), kind String, n UInt64) ENGINE = SummingMergeTree ORDER BY (kind, at)",
        f"CREATE MATERIALIZED VIEW mv TO days AS {QUERY}",
    )
    with Oracle() as oracle, olapdb.connect() as connection:
        for execute in (oracle.execute, connection.execute):
            for statement in create:
                execute(statement)
            run_recipe(execute, "days")
        rows = connection.execute(READ.format("days")).fetchall()
        assert [tuple(row) for row in rows] == oracle.query(READ.format("days")).rows


def test_a_key_of_an_inner_table_is_added_likewise() -> None:
    create = (
        SOURCE,
        f"CREATE MATERIALIZED VIEW mv ENGINE = SummingMergeTree ORDER BY (kind, at) AS {QUERY}",
    )
    names = "SELECT name FROM system.tables WHERE name LIKE '.inner%'"
    with Oracle() as oracle, olapdb.connect() as connection:
        for execute in (oracle.execute, connection.execute):
            for statement in create:
                execute(statement)
        run_recipe(oracle.execute, f"`{oracle.query(names).value}`")
        ((inner,),) = connection.execute(names).fetchall()
        run_recipe(connection.execute, f"`{inner}`")
        rows = connection.execute(READ.format("mv")).fetchall()
        assert [tuple(row) for row in rows] == oracle.query(READ.format("mv")).rows
