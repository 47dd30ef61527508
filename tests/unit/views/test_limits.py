"""Guardrails: a view that makes an INSERT too expensive is refused, or named in a warning."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import NotSupportedError, SettingOutOfRange, ViewLimitExceeded
from tests.unit.views.warehouse import rows, verdict

ROWS = "INSERT INTO s SELECT number % 3, number FROM numbers(100)"
BREACHES = [
    (
        "max_view_rows_expansion = 2.5",
        r"made 3\.00 rows of each row.*max_view_rows_expansion is 2\.5",
    ),
    ("max_view_parts = 2", r"has written 3 parts.*max_view_parts is 2"),
    ("max_view_memory_usage = 1000", r"max_view_memory_usage"),
]


pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE s (p UInt8, v UInt64) ENGINE = MergeTree ORDER BY v",
        "CREATE TABLE t (p UInt8, v UInt64, i UInt8) ENGINE = MergeTree PARTITION BY p ORDER BY (p, v, i)",
        "CREATE MATERIALIZED VIEW wide TO t AS SELECT p, v, i FROM s ARRAY JOIN [1, 2, 3] AS i",
        merges=False,
    ),
    pytest.mark.feature("views", "settings"),
]


@pytest.mark.parametrize(("setting", "message"), BREACHES)
def test_throw_is_the_default_and_nothing_lands(
    connection: Connection, setting: str, message: str
) -> None:
    with pytest.raises(ViewLimitExceeded, match=message) as raised:
        connection.execute(f"{ROWS.replace('SELECT', f'SETTINGS {setting} SELECT')}")
    assert "default.wide" in str(raised.value)
    assert "view_limits_mode" in raised.value.hint
    assert rows(connection, "SELECT count() FROM s") == [(0,)]
    assert rows(connection, "SELECT count() FROM t") == [(0,)]
    connection.execute(ROWS)
    assert verdict(connection, "wide") == "covered"


@pytest.mark.parametrize(("setting", "message"), BREACHES)
def test_warn_inserts_and_says_so(connection: Connection, setting: str, message: str) -> None:
    import re

    with connection.cursor() as cursor:
        cursor.execute(
            ROWS.replace("SELECT", f"SETTINGS {setting}, view_limits_mode = 'warn' SELECT")
        )
        (warning,) = cursor.messages
    assert warning[0] is olapdb.Warning
    assert re.search(message, warning[1])
    assert rows(connection, "SELECT count() FROM t") == [(300,)]
    ((logged,),) = rows(connection, "SELECT warnings FROM system.query_views_log")
    assert list(logged) == [warning[1]]
    connection.execute(ROWS)
    assert rows(connection, "SELECT length(warnings) FROM system.query_views_log") == [(1,), (0,)]


def test_time(connection: Connection) -> None:
    connection.execute("SET max_view_milliseconds = 1")
    heavy = "SELECT p, v, toUInt8(length(arrayFilter(x -> x % 7 = 1, range(20000)))) AS i FROM s"
    connection.execute("DROP VIEW wide")
    connection.execute(f"CREATE MATERIALIZED VIEW slow TO t AS {heavy}")
    with pytest.raises(ViewLimitExceeded, match=r"default\.slow has taken .* ms of the INSERT"):
        connection.execute(ROWS)
    connection.execute("SET max_view_milliseconds = 600000")
    connection.execute(ROWS)


def test_costs_add_up_over_the_blocks_of_an_insert(connection: Connection) -> None:
    connection.execute("SET max_view_parts = 6, max_insert_block_size = 50")
    connection.execute(ROWS)  # two blocks of three parts each
    connection.execute("SET max_insert_block_size = 30")
    with pytest.raises(ViewLimitExceeded, match="has written 9 parts"):
        connection.execute(ROWS)
    connection.execute("SET parallel_view_processing = 1")
    connection.execute("CREATE MATERIALIZED VIEW another TO t AS SELECT p, v, 1 AS i FROM s")
    with pytest.raises(ViewLimitExceeded, match="has written 9 parts"):
        connection.execute(ROWS)


def test_a_view_beyond_its_limit_may_leave_a_gap(connection: Connection) -> None:
    connection.execute("SET max_view_parts = 2, materialized_views_ignore_errors = 1")
    connection.execute(ROWS)
    assert rows(connection, "SELECT count() FROM s") == [(100,)]
    assert rows(connection, "SELECT count() FROM t") == [(0,)]
    assert verdict(connection, "wide") == "partial"
    ((reason,),) = rows(connection, "SELECT reason FROM system.views")
    assert "max_view_parts is 2" in reason
    connection.execute("SYSTEM BACKFILL VIEW wide")
    assert verdict(connection, "wide") == "covered", "a backfill may take its time"


def test_values_are_checked(connection: Connection) -> None:
    with pytest.raises(SettingOutOfRange, match="at least 0"):
        connection.execute("SET max_view_parts = -1")
    with pytest.raises(NotSupportedError, match="'throw', 'warn'"):
        connection.execute("SET view_limits_mode = 'break'")


def test_the_log_has_clickhouses_columns(connection: Connection) -> None:
    connection.execute(ROWS)
    found = rows(
        connection,
        "SELECT view_name, view_type, view_target, read_rows, written_rows, status, written_parts,"
        " peak_memory_usage > 0, exception, stack_trace, length(ProfileEvents)"
        " FROM system.query_views_log",
    )
    assert found == [
        ("default.wide", "Materialized", "default.t", 100, 300, "QueryFinish", 3, 1, "", "", 0)
    ]


def test_a_view_that_cannot_be_proven_is_warned_about(connection: Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE MATERIALIZED VIEW first_rows ENGINE = MergeTree ORDER BY v AS"
            " SELECT p, v FROM s ORDER BY v LIMIT 3"
        )
        ((kind, text),) = cursor.messages
    assert kind is olapdb.Warning
    assert text.startswith("default.first_rows cannot be proven: ")
    assert verdict(connection, "first_rows") == "unproven"
