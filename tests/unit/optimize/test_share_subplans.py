"""Common subplans: which are shared, by the plan that EXPLAIN shows, and that no answer changes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

import olapdb
from olapdb.config import tuning
from olapdb.optimize import optimize
from olapdb.optimize.share_subplans import share_subplans
from olapdb.plan.explain import explain
from olapdb.plan.nodes import Scan, Shared
from olapdb.plan.tree import all_nodes
from tests.unit.bind.warehouse import bind

pytestmark = pytest.mark.feature("select")

SUMS = "SELECT carrier, sum(delay) AS s FROM flights GROUP BY carrier"
CASES = {
    "a grouping whose greatest value chooses among its rows": (
        f"WITH sums AS ({SUMS}) SELECT carrier FROM sums WHERE s = (SELECT max(s) FROM sums)",
        """
        Expression
            Columns: carrier
          Filter
              Condition: sum(delay) = (subquery)
              Subquery 1:
                Aggregating
                    Keys: none
                    Aggregates: max(sum(delay_2))
                  Shared (1)
                      Runs once for all places of this number
                    Aggregating
                        Keys: carrier
                        Aggregates: sum(delay)
                      ReadFromMergeTree (default.flights)
                          Columns: carrier, delay
            Shared (1)
                Runs once for all places of this number
        """,
    ),
    "both sides of a join, with what is above the grouping in both": (
        f"WITH sums AS (SELECT s * 2 AS d FROM ({SUMS})) SELECT a.d FROM sums AS a JOIN sums AS b"
        " ON a.d = b.d",
        """
        Expression
            Columns: d
          Join (INNER)
              Keys: d = d_2
            Shared (1)
                Runs once for all places of this number
              Expression
                  Columns: sum(delay) * 2 AS d
                Aggregating
                    Keys: carrier
                    Aggregates: sum(delay)
                  ReadFromMergeTree (default.flights)
                      Columns: carrier, delay
            Shared (1)
                Runs once for all places of this number
        """,
    ),
    "a volatile function above a grouping is not shared, the grouping is": (
        "WITH r AS (SELECT k, rand() AS x FROM (SELECT DISTINCT carrier AS k FROM flights))"
        " SELECT x FROM r UNION ALL SELECT x FROM r",
        """
        Union
          Expression
              Columns: rand() AS x
            Shared (1)
                Runs once for all places of this number
              Distinct
                  Columns: all
                ReadFromMergeTree (default.flights)
                    Columns: carrier
          Expression
              Columns: rand() AS x_2
            Shared (1)
                Runs once for all places of this number
        """,
    ),
}


@pytest.mark.parametrize(("query", "expected"), CASES.values(), ids=CASES)
def test_plan(query: str, expected: str) -> None:
    plan = optimize(bind(query))
    shared = share_subplans(plan)
    assert "\n".join(explain(shared)) == textwrap.dedent(expected).strip()
    assert shared.root.schema == plan.root.schema
    assert share_subplans(shared) == shared


UNSHARED = {
    "scans alone": "SELECT day FROM flights UNION ALL SELECT day FROM flights",
    "other conditions": "SELECT count() FROM flights WHERE delay > 1 UNION ALL"
    " SELECT count() FROM flights WHERE delay > 2",
    "an aggregate and a column that bear each other's names": "SELECT min FROM"
    " (SELECT carrier, max(delay) AS min FROM flights GROUP BY carrier) UNION ALL SELECT max FROM"
    " (SELECT carrier, min(delay) AS max FROM flights GROUP BY carrier)",
    "other parameters": "SELECT quantile(0.5)(delay) FROM flights UNION ALL"
    " SELECT quantile(0.9)(delay) FROM flights",
    "other constant rows": "SELECT sum(x) FROM (SELECT arrayJoin([1, 2]) AS x) UNION ALL"
    " SELECT sum(x) FROM (SELECT arrayJoin([1, 3]) AS x)",
    "zeros of other signs": "SELECT max(delay / 0.) FROM flights UNION ALL"
    " SELECT max(delay / -0.) FROM flights",
    "columns in another order": "SELECT max(tuple(day, delay)) FROM flights GROUP BY carrier, origin"
    " UNION ALL SELECT max(tuple(day, delay)) FROM flights GROUP BY origin, carrier",
    "random numbers below the grouping": "WITH r AS (SELECT max(rand()) AS x FROM flights)"
    " SELECT x FROM r UNION ALL SELECT x FROM r",
}


@pytest.mark.parametrize("query", UNSHARED.values(), ids=UNSHARED)
def test_nothing_is_shared(query: str) -> None:
    plan = optimize(bind(query))
    assert share_subplans(plan) is plan


def test_a_part_of_a_shared_subplan_is_shared_with_others() -> None:
    query = (
        f"WITH sums AS ({SUMS}), counts AS (SELECT s, count() AS n FROM sums GROUP BY s) SELECT"
        " (SELECT max(s) FROM sums), (SELECT sum(n) FROM counts), (SELECT max(n) FROM counts)"
    )
    root = share_subplans(optimize(bind(query))).root
    runs = {n.number: n.child for n in all_nodes(root) if isinstance(n, Shared)}
    assert len(runs) == 2
    scans = {id(n) for n in all_nodes(root) if isinstance(n, Scan)}
    assert len(scans) == 1


QUERIES = [query for query, _ in CASES.values() if "rand" not in query] + [
    f"WITH sums AS ({SUMS}) SELECT a.carrier, b.s FROM sums AS a, sums AS b WHERE a.s < b.s",
    f"WITH sums AS ({SUMS}) SELECT * FROM sums UNION ALL SELECT * FROM sums",
    f"WITH sums AS ({SUMS}) SELECT * FROM (SELECT * FROM sums LIMIT 1000) AS a, sums AS b"
    " WHERE a.carrier = b.carrier",
    "WITH numbered AS (SELECT delay, row_number() OVER (ORDER BY day, carrier) AS n FROM flights)"
    " SELECT a.delay - b.delay FROM numbered AS a JOIN numbered AS b ON a.n = b.n + 1",
    f"WITH sums AS ({SUMS}) SELECT carrier FROM flights WHERE (carrier, delay) IN (SELECT carrier,"
    " toInt32(s) FROM sums) OR delay < (SELECT avg(s) FROM sums)",
]


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with olapdb.connect() as made:
        made.execute(
            "CREATE TABLE flights (day Date, carrier String, delay Int32) ENGINE = MergeTree"
            " ORDER BY (carrier, day)"
        )
        made.execute(
            "INSERT INTO flights SELECT toDate('2024-01-01') + number % 50, concat('c',"
            " toString(number % 97)), number % 31 - 5 FROM numbers(3000)"
        )
        yield made


@pytest.mark.parametrize("bytes_max", [-1, 1_500, tuning.SHARED_BYTES_MAX])
@pytest.mark.parametrize("query", QUERIES)
def test_no_answer_changes(
    query: str, bytes_max: int, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "SHARED_BYTES_MAX", bytes_max)
    shown = connection.execute(f"EXPLAIN {query}").fetchall()
    assert any("Shared (1)" in line for (line,) in shown)
    alone = connection.execute(f"{query} SETTINGS share_common_subplans = 0").fetchall()
    assert sorted(connection.execute(query).fetchall()) == sorted(alone)
    assert alone


def test_the_setting_turns_it_off(connection: Any) -> None:
    shown = connection.execute(f"EXPLAIN {QUERIES[0]} SETTINGS share_common_subplans = 0")
    assert not any("Shared" in line for (line,) in shown.fetchall())


@pytest.mark.parametrize(("bytes_max", "runs"), [(tuning.SHARED_BYTES_MAX, 1), (10, 2)])
def test_the_table_is_read_once_unless_the_rows_are_too_many(
    bytes_max: int, runs: int, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "SHARED_BYTES_MAX", bytes_max)
    lines = connection.execute(f"EXPLAIN ANALYZE {QUERIES[0]}").fetchall()
    assert any(f"Read: {3000 * runs} rows" in line for (line,) in lines)


def test_a_side_that_stops_early_keeps_nothing(connection: Any) -> None:
    query = (
        f"WITH sums AS ({SUMS}) SELECT carrier FROM (SELECT * FROM sums LIMIT 1) UNION ALL"
        " SELECT carrier FROM sums"
    )
    rows = connection.execute(f"{query} SETTINGS max_block_size = 10").fetchall()
    assert len(rows) == 98


def test_system_tables_are_not_shared(connection: Any) -> None:
    counted = "SELECT count() AS n FROM system.tables"
    query = f"WITH r AS ({counted}) SELECT n FROM r UNION ALL SELECT n FROM r"
    shown = connection.execute(f"EXPLAIN {query}").fetchall()
    assert not any("Shared" in line for (line,) in shown)
