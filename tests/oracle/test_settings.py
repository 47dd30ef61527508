"""Settings of ClickHouse are implemented, refused, or known to mean nothing; never ignored."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.config import SESSION_SETTINGS
from olapdb.errors import NotSupportedError
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("settings")

# Neutral settings whose default says what olapdb does: it waits, and each read sees what is committed.
OTHER_DEFAULTS = {
    "alter_sync",
    "async_insert",
    # "auto" here; there the number of this machine's cores stands beside it
    "max_download_threads",
    "max_insert_threads",
    "max_parsing_threads",
    "mutations_sync",
    "select_sequential_consistency",
}


def test_each_is_known_with_its_default() -> None:
    with Oracle() as oracle:
        there = oracle.query(
            "SELECT name, default FROM system.settings WHERE name LIKE '%view%' ORDER BY name"
        )
    assert len(there.rows) > 30
    ours = {name: SESSION_SETTINGS.get(name) for name, _ in there.rows if name}
    assert [name for name, definition in ours.items() if definition is None] == []
    other = {
        name
        for name, default in there.rows
        if name and (one := ours[name]) is not None and one.parse(default) != one.default
    }
    assert other == set()


def test_neutral_settings_are_those_of_clickhouse() -> None:
    """A name that ClickHouse lacks is a typing error; a default of another type parses wrong."""
    with Oracle() as oracle:
        there = dict(oracle.query("SELECT name, default FROM system.settings").rows)
    ours = {name: d for name, d in SESSION_SETTINGS.items() if d.neutral}
    assert len(ours) > 400
    assert {name for name in ours if name not in there} == {"replicated_deduplication_window"}
    other = {
        name
        for name, definition in ours.items()
        if name in there and definition.parse(there[name]) != definition.default
    }
    assert other == OTHER_DEFAULTS


def test_all_settings_of_clickhouse_are_known() -> None:
    with Oracle() as oracle:
        rows = oracle.query("SELECT name FROM system.settings").rows
    assert len(rows) > 1_800
    assert {name for (name,) in rows if name and name not in SESSION_SETTINGS} == set()


def test_what_clients_send_is_accepted_and_what_would_be_ignored_is_refused() -> None:
    with olapdb.connect() as connection:
        connection.execute(
            "SELECT 1 SETTINGS log_comment = 'daily', join_algorithm = 'grace_hash',"
            " max_query_size = 1000000, max_result_bytes = 0, read_overflow_mode = 'throw'"
        )
        for setting in ("join_any_take_last_row = 1", "insert_allow_materialized_columns = 1"):
            with pytest.raises(NotSupportedError, match=setting.split()[0]):
                connection.execute(f"SELECT 1 SETTINGS {setting}")
        with pytest.raises(olapdb.Error, match="Unknown setting"):
            connection.execute("SELECT 1 SETTINGS no_such_setting = 1")


@pytest.mark.parametrize("mode", ["throw", "break", "any"])
def test_a_limit_fails_in_every_mode(mode: str) -> None:
    """An answer without some of its groups is none: the mode is accepted, and the query fails."""
    query = "SELECT number, count() FROM numbers(100) GROUP BY number"
    with olapdb.connect() as connection:
        connection.execute(f"SET group_by_overflow_mode = '{mode}', max_rows_to_group_by = 99")
        with pytest.raises(olapdb.Error, match="max_rows_to_group_by"):
            connection.execute(query).fetchall()
        connection.execute("SET max_rows_to_group_by = 100")
        assert len(connection.execute(query).fetchall()) == 100


def test_a_session_without_ddl_defines_and_removes_nothing() -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a")
        connection.execute("SET allow_ddl = 0")
        for statement in (
            "CREATE TABLE u (a UInt8) ENGINE = Memory",
            "ALTER TABLE t ADD COLUMN b UInt8",
            "RENAME TABLE t TO u",
            "TRUNCATE TABLE t",
            "DELETE FROM t WHERE 1",
            "DROP TABLE t",
            "SET allow_ddl = 1",
        ):
            with pytest.raises(olapdb.Error) as refused:
                connection.execute(statement)
            assert refused.value.name == "QUERY_IS_PROHIBITED", statement
        connection.execute("INSERT INTO t VALUES (1)")
        assert connection.execute("SELECT count() FROM t").fetchall() == [(1,)]


def test_default_unsets_a_setting() -> None:
    with olapdb.connect() as connection:
        query = "SELECT changed, value FROM system.settings WHERE name = 'max_block_size'"
        connection.execute("SET max_block_size = 7")
        assert connection.execute(query).fetchall() == [(1, "7")]
        connection.execute("SET max_block_size = DEFAULT")
        assert connection.execute(query).fetchall() == [(0, "65409")]


def test_numbers_with_units() -> None:
    with olapdb.connect() as connection:
        connection.execute("SET max_block_size = '64Ki', max_memory_usage = '2G'")
        rows = connection.execute(
            "SELECT getSetting('max_block_size'), getSetting('max_memory_usage')"
        ).fetchall()
    assert rows == [(65_536, 2_000_000_000)]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("SET allow_materialized_view_with_bad_select = 1", "would never fire"),
        ("SET materialized_views_populate_atomically = 0", "missed or doubled"),
        ("SET min_insert_block_size_rows_for_materialized_views = 9", "min_insert_block_size_rows"),
        ("SET wait_for_part_commit_in_dependent_materialized_views = 1", "one commit"),
    ],
)
def test_what_would_not_be_done_is_refused_with_the_reason(statement: str, why: str) -> None:
    with olapdb.connect() as connection:
        with pytest.raises(NotSupportedError) as refused:
            connection.execute(statement)
        assert why in str(refused.value.hint)
        connection.execute("SET use_async_executor_for_materialized_views = 1")
