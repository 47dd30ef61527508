"""RENAME DATABASE and what follows its tables: views inside and outside it, rows, coverage."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import DatabaseAlreadyExists, IncorrectQuery, UnknownDatabase, UnsupportedMethod
from olapdb.maintenance.check import check_database
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("schema")


def shop(connection: Connection) -> None:
    connection.execute("CREATE DATABASE shop COMMENT 'sales'")
    connection.execute("CREATE TABLE shop.s (k String, n Int64) ENGINE = MergeTree ORDER BY k")
    connection.execute(
        "CREATE TABLE shop.names (k String, name String) ENGINE = MergeTree ORDER BY k"
    )
    for where in ("shop", "default"):
        connection.execute(
            f"CREATE TABLE {where}.t (name String, n Int64) ENGINE = SummingMergeTree ORDER BY name"
        )
        connection.execute(
            f"CREATE MATERIALIZED VIEW {where}.mv TO {where}.t AS SELECT name, sum(n) AS n"
            " FROM shop.s LEFT JOIN shop.names ON s.k = names.k WHERE k IN (SELECT k FROM shop.names)"
            " GROUP BY name"
        )
    connection.execute("CREATE VIEW default.v AS SELECT s.k, shop.s.n FROM shop.s")
    connection.execute("INSERT INTO shop.names VALUES ('a', 'Ann'), ('b', 'Bob')")
    connection.execute("INSERT INTO shop.s VALUES ('a', 1), ('b', 2)")


def test_everything_follows_a_renamed_database(tmp_path: Path) -> None:
    with olapdb.connect(str(tmp_path)) as connection:
        shop(connection)
        ids = rows(connection, "SELECT name, uuid FROM system.tables WHERE database = 'shop'")
        connection.execute("RENAME DATABASE shop TO store")
        assert rows(
            connection, "SELECT name, comment FROM system.databases WHERE name LIKE 's%o%'"
        ) == [("store", "sales")]
        assert (
            rows(connection, "SELECT name, uuid FROM system.tables WHERE database = 'store'") == ids
        )
    with olapdb.connect(str(tmp_path)) as connection:
        connection.execute("INSERT INTO store.s VALUES ('a', 10)")
        for target in ("store.t", "default.t"):
            found = rows(
                connection, f"SELECT name, sum(n) FROM {target} GROUP BY name ORDER BY name"
            )
            assert found == [("Ann", 11), ("Bob", 2)]
        assert rows(connection, "SELECT sum(n) FROM v") == [(13,)]
        for view in ("store.mv", "default.mv"):
            connection.execute(f"SYSTEM RECONCILE VIEW {view}")
        assert rows(connection, "SELECT DISTINCT verdict FROM system.views") == [("proven",)]
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []


def test_databases_are_renamed_one_after_the_other() -> None:
    with olapdb.connect() as connection:
        for name, value in (("a", 1), ("b", 2)):
            connection.execute(f"CREATE DATABASE {name}")
            connection.execute(f"CREATE TABLE {name}.t (x Int8) ENGINE = MergeTree ORDER BY x")
            connection.execute(f"INSERT INTO {name}.t VALUES ({value})")
        connection.execute("CREATE VIEW v AS SELECT x FROM a.t")
        connection.execute("RENAME DATABASE a TO c, b TO a, c TO b")
        assert rows(
            connection, "SELECT (SELECT x FROM a.t), (SELECT x FROM b.t), (SELECT x FROM v)"
        ) == [(2, 1, 1)]


def test_an_empty_database_is_renamed() -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE DATABASE a")
        connection.execute("RENAME DATABASE a TO b")
        connection.execute("CREATE TABLE b.t (x Int8) ENGINE = Memory")
        with pytest.raises(UnknownDatabase):
            connection.execute("CREATE TABLE a.t (x Int8) ENGINE = Memory")


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("RENAME DATABASE nothing TO b", UnknownDatabase),
        ("RENAME DATABASE a TO default", DatabaseAlreadyExists),
        ("RENAME DATABASE a TO a", DatabaseAlreadyExists),
        ("RENAME DATABASE a TO system", IncorrectQuery),
        ("RENAME DATABASE system TO b", IncorrectQuery),
        ("RENAME DATABASE a TO information_schema", IncorrectQuery),
        ("RENAME DATABASE information_schema TO b", IncorrectQuery),
        ("RENAME DATABASE a TO b, INFORMATION_SCHEMA TO a", IncorrectQuery),
    ],
)
def test_what_is_refused(statement: str, error: type[Exception]) -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE DATABASE a")
        with pytest.raises(error):
            connection.execute(statement)
        assert rows(connection, "SELECT count() FROM system.databases WHERE name = 'a'") == [(1,)]


@pytest.mark.parametrize("database", ["system", "information_schema", "INFORMATION_SCHEMA"])
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE {0}.t (x Int8) ENGINE = MergeTree ORDER BY x",
        "CREATE OR REPLACE TABLE {0}.tables (x Int8) ENGINE = MergeTree ORDER BY x",
        "CREATE VIEW {0}.t AS SELECT 1 AS x",
        "CREATE MATERIALIZED VIEW {0}.t ENGINE = MergeTree ORDER BY x AS SELECT x FROM s",
        "RENAME TABLE s TO {0}.s",
        "EXCHANGE TABLES s AND {0}.tables",
        "INSERT INTO {0}.tables VALUES (1)",
        "TRUNCATE TABLE {0}.tables",
        "DROP TABLE {0}.tables",
    ],
)
def test_nothing_is_stored_beside_the_system_tables(database: str, statement: str) -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE s (x Int8) ENGINE = MergeTree ORDER BY x")
        with pytest.raises(UnsupportedMethod, match="system tables only"):
            connection.execute(statement.format(database))
        assert rows(connection, "SHOW TABLES") == [("s",)]


def test_a_statement_that_always_loses_says_so() -> None:
    """Attempts are bounded: endless concurrent commits end it with a clear error and no change."""
    from olapdb.errors import CommitConflict

    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE t (x Int8) ENGINE = MergeTree ORDER BY x")
        catalog = connection.database.services.catalog
        apply, count = catalog.apply, iter(range(100))

        def meddled(commit):  # type: ignore[no-untyped-def]
            if commit.kind == "RENAME":
                connection.execute(f"ALTER TABLE t MODIFY COMMENT '{next(count)}'")
            return apply(commit)

        catalog.apply = meddled  # type: ignore[method-assign]
        try:
            with pytest.raises(CommitConflict, match="10 times"):
                connection.execute("RENAME TABLE t TO u")
        finally:
            del catalog.apply
        assert rows(
            connection, "SELECT name, comment FROM system.tables WHERE database = 'default'"
        ) == [("t", "9")]
