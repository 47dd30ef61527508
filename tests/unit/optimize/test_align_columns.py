"""Joins that differ in their columns alone: which run once, and that no answer changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import olapdb
from olapdb.config import tuning

pytestmark = pytest.mark.feature("select")

JOINED = "supplies AS s JOIN suppliers AS p ON s.supplier = p.id"


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with olapdb.connect() as made:
        made.execute(
            "CREATE TABLE supplies (part UInt32, supplier UInt32, cost Int64, note Nullable(String))"
            " ENGINE = MergeTree ORDER BY part"
        )
        made.execute(
            "INSERT INTO supplies SELECT number % 37, number % 11, number * 7 % 101,"
            " if(number % 5 = 0, NULL, concat('n', toString(number % 13))) FROM numbers(500)"
        )
        made.execute(
            "CREATE TABLE suppliers (id UInt32, nation String, balance Int64)"
            " ENGINE = MergeTree ORDER BY id"
        )
        made.execute(
            "INSERT INTO suppliers SELECT number, concat('t', toString(number % 3)), number * 10"
            " FROM numbers(8)"
        )
        yield made


def shared(connection: Any, query: str) -> int:
    """Return how many places of a query read a shared subplan."""
    lines = connection.execute(f"EXPLAIN {query}").fetchall()
    return sum(line.strip().startswith("Shared (") for (line,) in lines)


ALIGNED = {
    "a sum by part and one of all": f"SELECT part, sum(cost) AS c FROM {JOINED} GROUP BY part"
    f" HAVING c > (SELECT sum(cost) / 40 FROM {JOINED}) ORDER BY part",
    "another column of the same table": f"SELECT max(nation) FROM {JOINED} UNION ALL"
    f" SELECT max(note) FROM {JOINED} UNION ALL SELECT toString(sum(balance)) FROM {JOINED}",
    "a column that the others only compare": "SELECT count() FROM supplies AS s JOIN suppliers AS p"
    " ON s.supplier = p.id AND s.cost > p.balance WHERE note != 'n3' UNION ALL SELECT count(note)"
    " FROM supplies AS s JOIN suppliers AS p ON s.supplier = p.id AND s.cost > p.balance"
    " WHERE note != 'n3'",
    "three tables, in both of two joins": "SELECT a.m, b.n FROM (SELECT max(cost) AS m FROM"
    f" {JOINED} JOIN suppliers AS q ON q.id = s.part) AS a CROSS JOIN (SELECT min(q.nation) AS n"
    f" FROM {JOINED} JOIN suppliers AS q ON q.id = s.part) AS b",
    "conditions in another order": f"SELECT sum(cost) FROM {JOINED} WHERE note = 'n3' AND part > 5"
    f" AND nation != 't0' UNION ALL SELECT sum(balance) FROM {JOINED} WHERE 't0' != nation AND"
    " part > 5 AND 'n3' = note",
    "joins without keys": "SELECT sum(cost) FROM supplies CROSS JOIN suppliers UNION ALL"
    " SELECT sum(balance) FROM supplies CROSS JOIN suppliers",
}


@pytest.mark.parametrize("query", ALIGNED.values(), ids=ALIGNED)
def test_joins_that_differ_in_columns_run_once(connection: Any, query: str) -> None:
    if "UNION" in query:
        query = f"SELECT * FROM ({query}) AS u ORDER BY ALL"
    assert shared(connection, query) >= 2
    apart = f"{query} SETTINGS share_common_subplans = 0"
    assert shared(connection, apart) == 0
    rows = connection.execute(query).fetchall()
    assert rows
    assert rows == connection.execute(apart).fetchall()
    unoptimized = connection.execute(f"{query} SETTINGS optimizer = 0").fetchall()
    assert rows == unoptimized


APART = {
    "other conditions": f"SELECT sum(cost) FROM {JOINED} WHERE nation = 't1' UNION ALL"
    f" SELECT sum(balance) FROM {JOINED} WHERE nation = 't2'",
    "conditions on other columns": f"SELECT sum(cost) FROM {JOINED} WHERE part = 1 UNION ALL"
    f" SELECT sum(balance) FROM {JOINED} WHERE supplier = 1",
    "other keys": f"SELECT sum(cost) FROM {JOINED} UNION ALL"
    " SELECT sum(balance) FROM supplies AS s JOIN suppliers AS p ON s.part = p.id",
    "another kind": f"SELECT sum(cost) FROM {JOINED} UNION ALL"
    " SELECT sum(balance) FROM supplies AS s LEFT JOIN suppliers AS p ON s.supplier = p.id",
}


@pytest.mark.parametrize("query", APART.values(), ids=APART)
def test_joins_that_differ_otherwise_stay_apart(connection: Any, query: str) -> None:
    assert shared(connection, query) == 0


def test_a_large_table_below_another_join_is_filtered_instead(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = (
        f"SELECT sum(c), max(n) FROM (SELECT part, sum(cost) AS c FROM {JOINED} GROUP BY part) AS a"
        f" JOIN (SELECT part, max(nation) AS n FROM {JOINED} GROUP BY part) AS b USING (part)"
    )
    assert shared(connection, query) == 2
    monkeypatch.setattr(tuning, "JOIN_FILTER_ROWS_MIN", 500)  # as many rows as supplies has
    assert shared(connection, f"{query} SETTINGS max_threads = 1") == 0


def test_rows_that_would_not_be_kept_are_read_apart(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = f"SELECT sum(cost) FROM {JOINED} UNION ALL SELECT sum(balance) FROM {JOINED}"
    monkeypatch.setattr(tuning, "SHARED_BYTES_MAX", 100)
    assert shared(connection, f"{query} SETTINGS max_threads = 1") == 0
