"""MODIFY QUERY and REBUILD keep the settings of a view unless the statement gives others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import (
    BadArguments,
    NotSupportedError,
    QueryNotSupportedInMaterializedView,
    ViewNotProvable,
)
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("views", "settings")

QUERY = "SELECT k, sum({} * w) AS n FROM events JOIN weights USING k GROUP BY k"
MODE = "SELECT mode FROM system.view_dependencies WHERE view = 'totals' AND kind = 'dimension'"


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("CREATE TABLE events (k String, n Int64) ENGINE = MergeTree ORDER BY k")
        opened.execute("CREATE TABLE weights (k String, w Int64) ENGINE = MergeTree ORDER BY k")
        opened.execute("CREATE TABLE sums (k String, n Int64) ENGINE = SummingMergeTree ORDER BY k")
        opened.execute(
            f"CREATE MATERIALIZED VIEW totals TO sums AS {QUERY.format('n')}"
            " SETTINGS dimensions = 'at_insert'"
        )
        opened.execute("INSERT INTO weights VALUES ('a', 2)")
        opened.execute("INSERT INTO events VALUES ('a', 5)")
        yield opened


def mode(connection: Connection) -> list[tuple[str]]:
    return rows(connection, MODE)


def test_another_query_keeps_them(connection: Connection) -> None:
    connection.execute(f"ALTER TABLE totals MODIFY QUERY {QUERY.format('10 * n')}")
    assert mode(connection) == [("at_insert",)]
    connection.execute("SYSTEM REPLAY VIEW totals STALE")
    connection.execute("INSERT INTO weights VALUES ('b', 3)")
    assert rows(connection, "SELECT count() FROM system.view_invalidations") == [(0,)]


@pytest.mark.parametrize(
    "statement",
    [
        f"ALTER TABLE totals MODIFY QUERY {QUERY.format('n')} SETTINGS dimensions = 'current'",
        f"SYSTEM REBUILD VIEW totals AS {QUERY.format('n')} SETTINGS dimensions = 'current'",
        "SYSTEM REBUILD VIEW totals SETTINGS dimensions = 'current'",
    ],
)
def test_the_statement_may_name_others(connection: Connection, statement: str) -> None:
    connection.execute(statement)
    assert set(mode(connection)) == {("current",)}


def test_the_session_may_name_others(connection: Connection) -> None:
    connection.execute("SET dimensions = 'current'")
    connection.execute(f"ALTER TABLE totals MODIFY QUERY {QUERY.format('n')}")
    assert mode(connection) == [("current",)]


@pytest.mark.parametrize("query", ["", f" AS {QUERY.format('10 * n')}"])
def test_a_rebuild_keeps_them_and_so_cannot_be_proven(connection: Connection, query: str) -> None:
    with pytest.raises(ViewNotProvable, match="dimensions = 'current'"):
        connection.execute(f"SYSTEM REBUILD VIEW totals{query}")


def test_a_null_of_a_join_stays_null(connection: Connection) -> None:
    connection.execute("CREATE TABLE joined (k String, w Nullable(Int64)) ORDER BY k")
    query = "SELECT k, w FROM events LEFT JOIN weights USING k"
    nulls = "SETTINGS join_use_nulls = 1"
    connection.execute(f"CREATE MATERIALIZED VIEW pairs TO joined AS {query} {nulls}")
    connection.execute(f"ALTER TABLE pairs MODIFY QUERY {query} WHERE n > 0")
    connection.execute("INSERT INTO events VALUES ('z', 5)")
    assert rows(connection, "SELECT k, w FROM joined") == [("z", None)]


@pytest.mark.parametrize(
    ("expression", "setting", "value"),
    [
        ("toJSONString(n)", "output_format_json_quote_64bit_integers = 1", '"5"'),
        ("formatDateTime(toDateTime(n, 'UTC'), '%M')", "compatibility = '21.1'", "00"),
        ("toString(getSetting('join_use_nulls'))", "join_use_nulls = 1", "true"),
    ],
)
def test_a_setting_in_the_query_holds_in_the_view(
    connection: Connection, expression: str, setting: str, value: str
) -> None:
    connection.execute("CREATE TABLE texts (k String, v String) ORDER BY k")
    query = f"SELECT k, {expression} AS v FROM events"
    connection.execute(f"CREATE MATERIALIZED VIEW written TO texts AS {query} SETTINGS {setting}")
    connection.execute("INSERT INTO events VALUES ('z', 5)")
    written = rows(connection, "SELECT v FROM texts")
    assert written == [(value,)]
    assert rows(connection, f"{query} WHERE k = 'z' SETTINGS {setting}") == [("z", value)]
    connection.execute("SYSTEM BACKFILL VIEW written")
    connection.execute("SYSTEM RECONCILE VIEW written")
    verdict = "SELECT verdict FROM system.views WHERE name = 'written'"
    assert rows(connection, verdict) == [("proven",)]


@pytest.mark.parametrize(
    ("setting", "refused"),
    [
        ("limit = 1", NotSupportedError),
        ("offset = 1", NotSupportedError),
        ("session_timezone = 'Asia/Tokyo'", BadArguments),
        ("snapshot = 1", BadArguments),
    ],
)
def test_a_setting_of_one_select_is_refused(
    connection: Connection, setting: str, refused: type[Exception]
) -> None:
    with pytest.raises(refused, match="view"):
        connection.execute(
            f"CREATE MATERIALIZED VIEW w TO sums AS {QUERY.format('n')} SETTINGS {setting}"
        )


@pytest.mark.parametrize("name", ["shown", "events"])
def test_a_setting_of_each_session_is_no_value_of_a_view(connection: Connection, name: str) -> None:
    value = "toInt64(getSetting('max_block_size'))"
    connection.execute(f"CREATE VIEW shown AS SELECT k, {value} AS n FROM events")
    query = f"SELECT k, sum({value}) AS n FROM events GROUP BY k"
    if name == "shown":
        query = "SELECT k, sum(n) AS n FROM events WHERE k IN (SELECT k FROM shown) GROUP BY k"
    with pytest.raises(QueryNotSupportedInMaterializedView, match="max_block_size"):
        connection.execute(f"CREATE MATERIALIZED VIEW w TO sums AS {query}")
