"""SAMPLE: what the catalog keeps, what a changed table changes, what views may read."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb
from olapdb import errors
from olapdb.dbapi.connection import Connection
from olapdb.sql.formatter.definition_lines import on_one_line
from tests.unit.views.warehouse import rows

pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE a (k UInt8, x UInt32) ENGINE = MergeTree ORDER BY (x, k) SAMPLE BY k",
        "INSERT INTO a SELECT number, 1 FROM numbers(200)",
        merges=False,
    ),
    pytest.mark.feature("select", "schema"),
]


def test_a_number_of_rows_is_a_share_of_the_rows_that_the_table_has_now(
    connection: Connection,
) -> None:
    text = "SELECT count(), any(_sample_factor) FROM a SAMPLE 100"
    assert rows(connection, text) == [(128, 2.0)]
    connection.execute("INSERT INTO a SELECT number, 2 FROM numbers(200)")
    assert rows(connection, text) == [(128, 4.0)]


def test_show_create_has_the_key(tmp_path: Path) -> None:
    text = (
        "CREATE TABLE default.s (`k` UInt8) ENGINE = MergeTree ORDER BY k SAMPLE BY k"
        " SETTINGS index_granularity = 8192"
    )
    with olapdb.connect(tmp_path / "w") as connection:
        connection.execute(text)
    with olapdb.connect(tmp_path / "w") as connection:
        ((shown,),) = rows(connection, "SHOW CREATE TABLE s")
        assert on_one_line(shown) == text
        connection.execute("ALTER TABLE s REMOVE SAMPLE BY")
        assert rows(connection, "SELECT sampling_key FROM system.tables WHERE name = 's'") == [
            ("",)
        ]


def test_the_range_is_a_condition_on_the_primary_key(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE p (k UInt8) ENGINE = MergeTree ORDER BY k SAMPLE BY k "
        "SETTINGS index_granularity = 16"
    )
    connection.execute("INSERT INTO p SELECT number FROM numbers(256)")
    text = "\n".join(
        row[0] for row in rows(connection, "EXPLAIN indexes = 1 SELECT k FROM p SAMPLE 1/16")
    )
    assert "Condition: (k < 16)" in text


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT * FROM a SAMPLE 1/0", errors.BadArguments),
        ("SELECT * FROM v SAMPLE 1/2", errors.SamplingNotSupported),
        ("WITH w AS (SELECT 1) SELECT * FROM w SAMPLE 1/2", errors.SamplingNotSupported),
        ("ALTER TABLE a MODIFY SAMPLE BY intHash32(x)", errors.BadArguments),
        (
            "CREATE MATERIALIZED VIEW m ENGINE = MergeTree ORDER BY k AS SELECT a.k FROM a JOIN n USING k",
            errors.QueryNotSupportedInMaterializedView,
        ),
    ],
)
def test_what_is_refused(connection: Connection, sql: str, error: type[olapdb.Error]) -> None:
    connection.execute("CREATE VIEW v AS SELECT * FROM a SAMPLE 1/2")
    connection.execute("CREATE VIEW n AS SELECT * FROM a SAMPLE 100")
    with pytest.raises(error):
        connection.execute(sql)


def test_a_materialized_view_joins_a_share_and_is_told_of_its_changes(
    connection: Connection,
) -> None:
    connection.execute("CREATE VIEW half AS SELECT k, x FROM a SAMPLE 1/2")
    connection.execute("CREATE TABLE events (k UInt8) ENGINE = MergeTree ORDER BY k")
    connection.execute(
        "CREATE MATERIALIZED VIEW m ENGINE = SummingMergeTree ORDER BY k AS "
        "SELECT events.k AS k, sum(half.x) AS s FROM events JOIN half ON events.k = half.k "
        "GROUP BY events.k"
    )
    connection.execute("INSERT INTO events VALUES (1), (130)")
    assert rows(connection, "SELECT * FROM m") == [(1, 1)]
    connection.execute("DELETE FROM a WHERE k = 1")
    assert rows(connection, "SELECT count() > 0 FROM system.view_invalidations") == [(True,)]
