"""RENAME, EXCHANGE, DROP and UNDROP beside ClickHouse: the same statements succeed or fail with the
same errors, and leave the same names."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.errors import Error
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("sql")

STATEMENTS = (
    "CREATE TABLE s (x Int8) ENGINE = MergeTree ORDER BY x",
    "CREATE TABLE d (x Int8) ENGINE = MergeTree ORDER BY x",
    "INSERT INTO s VALUES (1)",
    "INSERT INTO d VALUES (2)",
    "RENAME TABLE d TO d",
    "RENAME TABLE d TO s",
    "RENAME TABLE nope TO x",
    "RENAME TABLE d TO nodb.d",
    "EXCHANGE TABLES d AND d",
    "EXCHANGE TABLES d AND nope",
    "EXCHANGE TABLES d AND s",
    "RENAME TABLE d TO e, e TO f",
    "RENAME TABLE f TO g, s TO f, g TO s",
    "DROP TABLE nope",
    "DROP TABLE IF EXISTS nope",
    "UNDROP TABLE nope",
    "UNDROP TABLE s",
    "DROP TABLE s",
    "CREATE TABLE s (y Int8) ENGINE = MergeTree ORDER BY y",
    "UNDROP TABLE s",
    "RENAME TABLE s TO t2",
    "UNDROP TABLE s",
    "INSERT INTO s VALUES (3)",
    "CREATE TABLE gone (x Int8) ENGINE = MergeTree ORDER BY x",
    "DROP TABLE gone SYNC",
    "UNDROP TABLE gone",
    "CREATE VIEW pv AS SELECT 1",
    "DROP VIEW pv SYNC",
    "UNDROP TABLE pv",
    "CREATE DATABASE names_one",
    "RENAME DATABASE names_one TO names_two",
    "RENAME DATABASE nodb TO names_three",
    "RENAME DATABASE names_two TO default",
    "CREATE TABLE names_two.t (x Int8) ENGINE = MergeTree ORDER BY x",
    "RENAME DATABASE names_two TO names_one",
    "RENAME TABLE f TO names_one.f",
    "RENAME TABLE names_one.f TO s",
    "CREATE TABLE names_two.t (x Int8) ENGINE = MergeTree ORDER BY x",
)
ASKED = (
    "SELECT name FROM system.tables WHERE database = currentDatabase() AND length(name) <= 2 ORDER BY name",
    "SELECT database, name FROM system.tables WHERE database LIKE 'names_%' ORDER BY name",
    "SELECT x FROM s ORDER BY x",
    "SELECT x FROM names_one.f",
)


def test_names_as_clickhouse_has_them(oracle: Oracle) -> None:
    oracle.execute("DROP DATABASE IF EXISTS apart")
    oracle.execute("CREATE DATABASE apart")
    oracle.execute("USE apart")
    with olapdb.connect() as connection:
        for statement in STATEMENTS:
            theirs = ours = ""
            try:
                oracle.execute(statement)
            except OracleError as error:
                theirs = error.name
            try:
                connection.execute(statement)
            except Error as error:
                ours = error.name
            assert ours == theirs, statement
        for query in ASKED:
            found = [tuple(map(str, row)) for row in connection.execute(query).fetchall()]
            assert found == oracle.query(query).rows, query
    oracle.execute("USE t")
    oracle.execute("DROP DATABASE apart")
    oracle.execute("DROP DATABASE names_one")
