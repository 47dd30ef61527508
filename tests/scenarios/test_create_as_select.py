"""CREATE TABLE … AS SELECT is one commit: the table with all its rows, or nothing at all."""

import pytest

import olapdb

pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE s (k UInt32, v String) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO s SELECT number, toString(number) FROM numbers(100000)",
        on_disk=True,
    ),
    pytest.mark.feature("views", "select"),
]


def commits(connection):
    return connection.execute("SELECT max(number) FROM system.snapshots").fetchone()[0]


def test_it_is_one_commit(connection):
    before = commits(connection)
    cursor = connection.execute(
        "CREATE TABLE c ENGINE = MergeTree PARTITION BY k % 3 ORDER BY v AS SELECT * FROM s"
    )
    assert cursor.rowcount == 100_000
    assert commits(connection) == before + 1
    assert connection.execute("SELECT count(), sum(k) FROM c").fetchone() == (
        100_000,
        4_999_950_000,
    )
    connection.execute("INSERT INTO c VALUES (1, 'more')")
    assert connection.execute("SELECT count() FROM c").fetchone() == (100_001,)


def test_a_select_that_fails_leaves_nothing(connection, tmp_path):
    files = sorted((tmp_path / "warehouse" / "data").rglob("*.parquet"))
    with pytest.raises(olapdb.Error, match="boom"):
        connection.execute(
            "CREATE TABLE c ENGINE = MergeTree ORDER BY k AS "
            "SELECT k, throwIf(k = 99999, 'boom') AS t FROM s SETTINGS max_insert_block_size = 1000"
        )
    assert connection.execute("SHOW TABLES").fetchall() == [("s",)]
    assert sorted((tmp_path / "warehouse" / "data").rglob("*.parquet")) == files


def test_or_replace_keeps_the_old_table_until_the_new_one_is_whole(connection):
    connection.execute("CREATE TABLE c ENGINE = MergeTree ORDER BY k AS SELECT 1 AS k")
    with pytest.raises(olapdb.Error):
        connection.execute(
            "CREATE OR REPLACE TABLE c ENGINE = MergeTree ORDER BY k AS SELECT throwIf(k > 5) AS k FROM s"
        )
    assert connection.execute("SELECT * FROM c").fetchall() == [(1,)]
    connection.execute(
        "CREATE OR REPLACE TABLE c ENGINE = MergeTree ORDER BY k AS SELECT k FROM s WHERE k < 3"
    )
    assert connection.execute("SELECT * FROM c ORDER BY k").fetchall() == [(0,), (1,), (2,)]


def test_no_rows_make_an_empty_table(connection):
    connection.execute(
        "CREATE TABLE c ENGINE = MergeTree ORDER BY k AS SELECT k FROM s WHERE k < 0"
    )
    assert connection.execute("SELECT count() FROM c").fetchone() == (0,)
    assert connection.execute("DESCRIBE c").fetchone()[:2] == ("k", "UInt32")
