"""Views with parameters: what follows a RENAME, what is refused, what the catalog keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb
from olapdb import errors
from olapdb.dbapi.connection import Connection
from tests.unit.views.warehouse import rows

pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE a (k UInt32, x UInt32) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO a SELECT number, number % 3 FROM numbers(10)",
        "CREATE VIEW v AS SELECT k FROM a WHERE x = {p:UInt32}",
        merges=False,
    ),
    pytest.mark.feature("schema"),
]


def test_a_rename_is_followed_by_views_and_by_those_that_call_them(connection: Connection) -> None:
    connection.execute("CREATE VIEW w AS SELECT count() AS n FROM v(p = 1)")
    connection.execute("RENAME TABLE a TO b, v TO u")
    assert rows(connection, "SELECT * FROM w") == [(3,)]
    assert rows(connection, "SHOW CREATE VIEW u") == [
        ("CREATE VIEW default.u\nAS SELECT k\nFROM default.b\nWHERE x = {p:UInt32}",)
    ]
    assert rows(connection, "SHOW CREATE VIEW w") == [
        (
            "CREATE VIEW default.w\n(\n    `n` UInt64\n)\nAS SELECT count() AS n\nFROM default.u(p = 1)",
        )
    ]


def test_a_column_that_it_names_is_not_renamed(connection: Connection) -> None:
    connection.execute("ALTER TABLE a ADD COLUMN other UInt8")
    connection.execute("ALTER TABLE a RENAME COLUMN other TO another")
    with pytest.raises(errors.AlterOfColumnIsForbidden, match=r"default\.v"):
        connection.execute("ALTER TABLE a RENAME COLUMN x TO y")
    assert rows(connection, "SELECT count() FROM v(p = 1)") == [(3,)]


def test_a_star_shows_the_columns_that_the_table_has(connection: Connection) -> None:
    connection.execute("CREATE VIEW s AS SELECT * FROM a WHERE x = {p:UInt32}")
    connection.execute("ALTER TABLE a ADD COLUMN z UInt8 DEFAULT 7")
    assert rows(connection, "SELECT * FROM s(p = 1) ORDER BY k LIMIT 1") == [(1, 1, 7)]


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT * FROM v", errors.UnknownQueryParameter),
        ("SELECT * FROM v(p = 1, q = 2)", errors.BadArguments),
        ("SELECT * FROM v(p = 1, p = 2)", errors.BadArguments),
        ("SELECT v.* FROM numbers(2) AS n, v(p = n.number)", errors.UnknownIdentifier),
        ("SELECT * FROM default.missing(p = 1)", errors.UnknownFunction),
        ("CREATE VIEW c (k UInt8) AS SELECT {k:UInt8} AS k", errors.NotSupportedError),
    ],
)
def test_what_is_refused(connection: Connection, sql: str, error: type[olapdb.Error]) -> None:
    with pytest.raises(error):
        connection.execute(sql)


def test_a_materialized_view_cannot_read_one_through_another_view(connection: Connection) -> None:
    connection.execute("CREATE VIEW w AS SELECT k FROM v(p = 1)")
    with pytest.raises(errors.QueryNotSupportedInMaterializedView, match=r"default\.v"):
        connection.execute(
            "CREATE MATERIALIZED VIEW m ENGINE = MergeTree ORDER BY k AS "
            "SELECT a.k FROM a JOIN w USING k"
        )


def test_it_is_there_when_the_warehouse_is_opened_again(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path / "w") as connection:
        connection.execute("CREATE VIEW v AS SELECT {p:UInt8} AS p, {q:String} AS q")
    with olapdb.connect(tmp_path / "w") as connection:
        assert rows(connection, "SELECT * FROM v(p = 3, q = 'x')") == [(3, "x")]


def test_a_replaced_view_answers_anew(connection: Connection) -> None:
    text = "SELECT count() FROM v(p = 1)"
    assert rows(connection, text) == [(3,)]
    connection.execute("CREATE OR REPLACE VIEW v AS SELECT k FROM a WHERE x > {p:UInt32}")
    assert rows(connection, text) == [(3,)]
    assert rows(connection, "SELECT count() FROM v(p = 0)") == [(6,)]


@pytest.mark.parametrize("condition", ["number IN (t)", "number NOT IN (t)", "in(number, t)"])
def test_a_table_right_of_in_keeps_its_database(condition: str) -> None:
    """In parentheses too: it was taken for a column, and looked up in the view's own database."""
    with olapdb.connect() as connection:
        for statement in (
            "CREATE DATABASE a",
            "CREATE DATABASE b",
            "CREATE TABLE a.t (x UInt64) ENGINE = Memory",
            "INSERT INTO a.t VALUES (1)",
            "CREATE TABLE b.t (x UInt64) ENGINE = Memory",
            "INSERT INTO b.t VALUES (2)",
            "USE a",
            f"CREATE VIEW b.p AS SELECT number FROM numbers({{n:UInt8}}) WHERE {condition}",
            "USE b",
        ):
            connection.execute(statement)
        asked = "SELECT count(), sum(number) FROM p(n = 3)"
        expected = (2, 2) if "NOT" in condition else (1, 1)
        assert tuple(connection.execute(asked).fetchone()) == expected
        connection.execute("RENAME TABLE a.t TO a.u")
        assert tuple(connection.execute(asked).fetchone()) == expected


def test_a_column_right_of_in_is_no_table() -> None:
    with olapdb.connect() as connection:
        for statement in (
            "CREATE TABLE t (x UInt64) ENGINE = Memory",
            "CREATE TABLE s (k UInt64, t UInt64) ENGINE = Memory",
            "INSERT INTO s VALUES (1, 1), (1, 2)",
            "CREATE VIEW p AS SELECT k FROM s WHERE k IN (t) AND k < {n:UInt8}",
        ):
            connection.execute(statement)
        assert connection.execute("SELECT count() FROM p(n = 3)").fetchone() == (1,)


def test_a_name_right_of_in_is_ambiguous_where_from_has_parameters() -> None:
    query = "SELECT x FROM (SELECT {n:UInt8} AS x) WHERE x IN (t)"
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE t (x UInt64) ENGINE = Memory")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute(f"CREATE VIEW p AS {query}")
        assert connection.execute("SELECT count() FROM p(n = 1)").fetchone() == (1,)
