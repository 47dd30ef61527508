"""What a star is where it is stored, or calls a function of a user."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.sql.formatter.definition_lines import on_one_line

pytestmark = pytest.mark.feature("select", "views")


def test_a_view_stores_the_columns_of_apply() -> None:
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE s (k UInt8, a Int32, b Int64) ENGINE = MergeTree ORDER BY k"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW m ENGINE = SummingMergeTree ORDER BY k"
            " AS SELECT k, COLUMNS('a|b') APPLY(sum) FROM s GROUP BY k"
        )
        connection.execute(
            "CREATE VIEW v AS SELECT * REPLACE (a + 1 AS a) APPLY(x -> x * 2) FROM s"
        )
        connection.execute("INSERT INTO s VALUES (1, 2, 3), (1, 4, 5)")
        ((text,),) = connection.execute("SHOW CREATE TABLE m").fetchall()
        assert "SELECT k, sum(a) AS `sum(a)`, sum(b) AS `sum(b)` FROM default.s" in on_one_line(
            text
        )
        assert connection.execute("SELECT * FROM m FINAL").fetchall() == [(1, 6, 8)]
        assert connection.execute("SELECT * FROM v ORDER BY ALL").fetchall() == [
            (2, 6, 6),
            (2, 10, 10),
        ]


def test_apply_takes_a_function_of_a_user() -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE FUNCTION twice AS x -> x * 2")
        cursor = connection.execute("SELECT * APPLY(twice) FROM numbers(2)")
        assert cursor.fetchall() == [(0,), (2,)]
