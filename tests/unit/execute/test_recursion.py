"""WITH RECURSIVE in stored queries and plans; its answers are in tests/sql/recursive.slt."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import TooDeepRecursion, ViewNotProvable

pytestmark = pytest.mark.feature("select", "views")
TREE = (
    "WITH RECURSIVE r AS (SELECT id, 0 AS depth FROM tree WHERE parent = 0 UNION ALL"
    " SELECT t.id, r.depth + 1 FROM tree AS t JOIN r ON t.parent = r.id) SELECT id, depth FROM r"
)


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("CREATE TABLE tree (id Int32, parent Int32) ENGINE = MergeTree ORDER BY id")
        opened.execute("INSERT INTO tree VALUES (1, 0), (2, 1), (3, 2), (4, 1)")
        yield opened


def test_a_stored_view_keeps_the_recursion(connection: Connection) -> None:
    connection.execute(f"CREATE VIEW depths AS {TREE}")
    shown = connection.execute("SHOW CREATE VIEW depths").fetchone()
    assert shown is not None
    assert "WITH RECURSIVE\n    r AS\n" in shown[0]
    assert "JOIN r ON" in shown[0]
    rows = connection.execute("SELECT * FROM depths ORDER BY id").fetchall()
    assert rows == [(1, 0), (2, 1), (3, 2), (4, 1)]
    connection.execute("INSERT INTO tree VALUES (5, 3)")
    assert connection.execute("SELECT depth FROM depths WHERE id = 5").fetchall() == [(3,)]


def test_the_depth_is_limited(connection: Connection) -> None:
    connection.execute("INSERT INTO tree VALUES (10, 11), (11, 10), (10, 0)")
    with pytest.raises(TooDeepRecursion, match="max_recursive_cte_evaluation_depth = 1000"):
        connection.execute(TREE).fetchall()
    cursor = connection.execute(f"{TREE} LIMIT 6")
    assert len(cursor.fetchall()) == 6


def test_explain_shows_both_steps(connection: Connection) -> None:
    lines = [line.strip() for (line,) in connection.execute(f"EXPLAIN {TREE}").fetchall()]
    assert "RecursiveUnion (recursion r)" in lines
    assert "ReadFromLastStep (recursion r)" in lines


def test_a_view_that_reads_its_source_in_both_steps_is_refused(connection: Connection) -> None:
    with pytest.raises(ViewNotProvable, match="reads its source"):
        connection.execute(f"CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY id AS {TREE}")


def test_a_merging_view_refuses_recursion_and_another_is_unproven(connection: Connection) -> None:
    query = (
        "WITH RECURSIVE r AS (SELECT id FROM tree UNION ALL SELECT id - 1 FROM r WHERE id > 1)"
        " SELECT id, 1 AS n FROM r"
    )
    with pytest.raises(ViewNotProvable, match="WITH RECURSIVE looks at the rows of one block"):
        connection.execute(
            f"CREATE MATERIALIZED VIEW s ENGINE = SummingMergeTree ORDER BY id AS {query}"
        )
    connection.execute(f"CREATE MATERIALIZED VIEW m ENGINE = MergeTree ORDER BY id AS {query}")
    connection.execute("INSERT INTO tree VALUES (3, 0)")
    assert connection.execute("SELECT id FROM m ORDER BY id").fetchall() == [(1,), (2,), (3,)]


def test_a_subquery_of_a_step_reads_the_rows_of_the_step_before(connection: Connection) -> None:
    query = (
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r"
        " WHERE n <= (SELECT max(n) FROM r) AND n IN (SELECT n FROM r) AND n + 1 NOT IN (SELECT 5))"
        " SELECT count(), max(n) FROM r"
    )
    assert connection.execute(query).fetchall() == [(4, 4)]
