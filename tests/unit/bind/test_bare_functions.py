"""Names that mean a function without its parentheses: what stored definitions and caches make of
them."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.bind.analysis import is_deterministic
from olapdb.dbapi.connection import Connection
from olapdb.sql.parser import parse_query
from tests.unit.views.warehouse import rows

pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE events (user String, at DateTime DEFAULT CURRENT_TIMESTAMP)"
        " ENGINE = MergeTree ORDER BY user",
        "INSERT INTO events (user) VALUES ('ann')",
    ),
    pytest.mark.feature("select", "views"),
]


def test_a_default_and_a_plain_view_may_use_them(connection: Connection) -> None:
    connection.execute("CREATE VIEW recent AS SELECT user FROM events WHERE at > NOW - 600")
    assert rows(connection, "SELECT * FROM recent") == [("ann",)]


def test_a_column_comes_first_in_a_materialized_view(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW m ENGINE = SummingMergeTree ORDER BY user POPULATE AS"
        " SELECT user, count() AS n FROM events GROUP BY user"
    )
    assert rows(connection, "SELECT * FROM m") == [("ann", 1)]


@pytest.mark.parametrize("name", ["CURRENT_DATE", "now", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP"])
def test_a_materialized_view_is_refused(connection: Connection, name: str) -> None:
    with pytest.raises(olapdb.Error, match=r"now|today"):
        connection.execute(
            "CREATE MATERIALIZED VIEW m ENGINE = SummingMergeTree ORDER BY day AS"
            f" SELECT toDate({name}) AS day, count() AS n FROM events GROUP BY day"
        )


def test_a_plan_that_is_used_again_reads_the_clock_again(connection: Connection) -> None:
    query = "SELECT toUnixTimestamp(CURRENT_TIMESTAMP) * 0 + toUnixTimestamp(NOW) >= toUnixTimestamp(now())"
    for _ in range(3):
        assert rows(connection, query) == [(1,)]
    assert not is_deterministic(parse_query("SELECT CURRENT_DATE"))
    assert is_deterministic(parse_query("SELECT user FROM events"))
