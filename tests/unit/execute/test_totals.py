"""WITH TOTALS where the answers of tests/sql/totals.slt cannot show it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import ViewNotProvable

pytestmark = pytest.mark.feature("select", "python")
GROUPED = "SELECT k, sum(v) AS s FROM t GROUP BY k WITH TOTALS"


@pytest.fixture(params=[True, False], ids=["optimizer", "as written"])
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    with olapdb.connect(settings={"optimizer": request.param}) as opened:
        opened.execute("CREATE TABLE t (k String, v Int64) ENGINE = MergeTree ORDER BY k")
        opened.execute("INSERT INTO t VALUES ('a', 1), ('a', 2), ('b', 5)")
        yield opened


def test_totals_are_no_row_of_the_result(connection: Connection) -> None:
    cursor = connection.execute(f"{GROUPED} ORDER BY k")
    assert cursor.totals == ("", 8)
    assert cursor.fetchall() == [("a", 3), ("b", 5)]
    assert cursor.totals == ("", 8)
    assert connection.execute("SELECT 1").totals is None
    assert connection.cursor().totals is None


@pytest.mark.parametrize(
    ("query", "totals"),
    [
        (f"{GROUPED} LIMIT 0", ("", 8)),
        (f"{GROUPED} HAVING 0", ("", 0)),
        (f"SELECT * FROM ({GROUPED}) WHERE 0", ("", 8)),
        ("SELECT k, sum(v) FROM t WHERE 0 GROUP BY k WITH TOTALS", ("", 0)),
        ("SELECT sum(v) FROM t WITH TOTALS", (8,)),
        (f"SELECT s * 2 FROM ({GROUPED}) WHERE k = 'a'", (16,)),
        (f"SELECT sum(s) FROM ({GROUPED})", None),
        (f"{GROUPED} UNION ALL SELECT 'c', 1", ("", 8)),
    ],
)
def test_clauses_above_the_groups(
    connection: Connection, query: str, totals: tuple[object, ...] | None
) -> None:
    assert connection.execute(query).totals == totals


def test_an_insert_takes_the_rows_alone(connection: Connection) -> None:
    connection.execute("CREATE TABLE copy (k String, s Int64) ENGINE = MergeTree ORDER BY k")
    connection.execute(f"INSERT INTO copy {GROUPED}")
    assert connection.execute("SELECT count(), sum(s) FROM copy").fetchall() == [(2, 8)]


def test_a_view_refuses_totals(connection: Connection) -> None:
    with pytest.raises(ViewNotProvable, match="WITH TOTALS makes a row apart"):
        connection.execute(
            f"CREATE MATERIALIZED VIEW v ENGINE = SummingMergeTree ORDER BY k AS {GROUPED}"
        )


def test_explain_names_totals(connection: Connection) -> None:
    lines = connection.execute(f"EXPLAIN {GROUPED} HAVING s > 3").fetchall()
    text = "\n".join(line for (line,) in lines)
    assert "Aggregating (WITH TOTALS)" in text
    assert "Totals of groups with: " in text
