"""The setting readonly beside ClickHouse: which statements it refuses, with which error."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.errors import Error, ReadOnly
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("settings")

STATEMENTS = (
    "SELECT 1 SETTINGS readonly = 1",
    "INSERT INTO r SETTINGS readonly = 1 VALUES (1)",
    "SELECT 1 SETTINGS readonly = 1, max_threads = 2",
    "SET readonly = {level}",
    "SELECT 1",
    "SELECT 1 SETTINGS max_threads = 1",
    "SELECT * FROM (SELECT 1 SETTINGS join_use_nulls = 1)",
    "INSERT INTO r VALUES (1)",
    "INSERT INTO r SELECT 1",
    "CREATE TABLE r2 (a Int8) ENGINE = MergeTree ORDER BY a SETTINGS index_granularity = 100",
    "SET max_threads = 1",
    "SET readonly = 0",
    "SET readonly = {level}",
    "SET readonly = {other}",
    "SHOW TABLES",
    "DESCRIBE TABLE r",
    "DESCRIBE TABLE r SETTINGS describe_compact_output = 1",
    "EXPLAIN SELECT 1",
    "EXISTS TABLE r",
    "USE wrong",
    "CHECK TABLE r",
    "OPTIMIZE TABLE r",
    "TRUNCATE TABLE r",
    "ALTER TABLE r ADD COLUMN b Int8",
    "ALTER TABLE r DELETE WHERE 1",
    "DELETE FROM r WHERE 1",
    "RENAME TABLE r TO r3",
    "DROP TABLE r",
    "CREATE VIEW r4 AS SELECT 1",
    "CREATE DATABASE other",
)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_same_is_refused(level: int) -> None:
    """Uses an oracle of its own, because readonly lasts as long as the oracle."""
    oracle = Oracle()
    try:
        with olapdb.connect() as connection:
            for text in (
                "CREATE DATABASE wrong",
                "USE wrong",
                "CREATE TABLE r (a Int8) ENGINE = MergeTree ORDER BY a",
            ):
                oracle.execute(text)
                connection.execute(text)
            for template in STATEMENTS:
                text = template.format(level=level, other=max(3 - level, 1))
                theirs = ours = ""
                try:
                    oracle.query(text)
                except OracleError as error:
                    theirs = error.name
                try:
                    cursor = connection.execute(text)
                    if cursor.description:
                        cursor.fetchall()
                except Error as error:
                    ours = error.name
                assert ours == theirs, text
    finally:
        oracle.close()


def test_every_way_in_is_refused() -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE r (a Int8) ENGINE = MergeTree ORDER BY a")
        connection.execute("CREATE TABLE t (a Int8) ENGINE = MergeTree ORDER BY a")
        connection.execute("CREATE MATERIALIZED VIEW v TO t AS SELECT a FROM r")
        connection.execute("SET readonly = 1")
        with pytest.raises(ReadOnly):
            connection.insert("r", {"a": [1]})
        with pytest.raises(ReadOnly):
            connection.cursor().executemany("INSERT INTO r VALUES (?)", [[1], [2]])
        with pytest.raises(ReadOnly):
            connection.execute("SYSTEM BACKFILL VIEW v")
        with pytest.raises(ReadOnly):
            connection.views["v"].backfill()
        assert connection.execute("SELECT count() FROM r").fetchone() == (0,)
