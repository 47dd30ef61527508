"""EXPLAIN ANALYZE, ESTIMATE and PIPELINE: what a query takes, and would take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import olapdb
from olapdb.compute.context import ExecutionContext
from olapdb.execute import explain_pipeline
from olapdb.native.library import library, without_kernels
from olapdb.plan import nodes

pytestmark = pytest.mark.feature("introspection", "select")

ROWS = 20_000


@pytest.fixture
def warehouse(tmp_path) -> Iterator[Any]:
    with olapdb.connect(tmp_path / "warehouse") as connection:
        connection.execute(
            "CREATE TABLE events (id UInt32, kind String, size UInt32) ENGINE = MergeTree"
            " ORDER BY id SETTINGS index_granularity = 1000, inline_bytes_max = 0"
        )
        connection.execute(
            "INSERT INTO events SELECT number, concat('k', toString(number % 4)), number % 10"
            f" FROM numbers({ROWS})"
        )
        connection.execute("CREATE TABLE kinds (kind String) ENGINE = MergeTree ORDER BY kind")
        connection.execute("INSERT INTO kinds VALUES ('k1'), ('k2')")
        yield connection


def explained(connection: Any, form: str, query: str) -> list[str]:
    return [row[0] for row in connection.execute(f"EXPLAIN {form} {query}").fetchall()]


def below(lines: list[str], title: str) -> list[str]:
    """Return the facts of the first node of this title."""
    at = next(i for i, line in enumerate(lines) if line.strip().startswith(title))
    depth = len(lines[at]) - len(lines[at].lstrip())
    facts = []
    for line in lines[at + 1 :]:
        if not line.startswith(" " * (depth + 4)):
            break
        facts.append(line.strip())
    return facts


def test_each_node_shows_rows_met_beside_those_estimated(warehouse) -> None:
    query = "SELECT kind, sum(size) FROM events WHERE id < 5000 GROUP BY kind"
    lines = explained(warehouse, "ANALYZE", query)
    scan = below(lines, "ReadFromMergeTree")
    rows = next(fact for fact in scan if fact.startswith("Rows: "))
    assert re.match(r"Rows: 5000 · estimated \d+ · q-error 1\.0\d · ", rows)
    assert "Parts: 1/1 | Granules: 5/20" in scan
    groups = next(f for f in below(lines, "Aggregating") if f.startswith("Rows: "))
    assert groups.startswith("Rows: 4 ·")
    assert any(fact.startswith("Time: ") for fact in scan)
    assert lines[0] == "Query summary:"
    assert any(line.strip().startswith("Read: 5000 rows") for line in lines)


def test_the_column_cache_is_counted_for_each_scan(warehouse) -> None:
    query = "SELECT sum(size) FROM events WHERE id >= 10000"
    warehouse.execute("SYSTEM DROP UNCOMPRESSED CACHE")
    first = below(explained(warehouse, "ANALYZE", query), "ReadFromMergeTree")
    again = below(explained(warehouse, "ANALYZE", query), "ReadFromMergeTree")
    assert "Column cache: 0 hits, 20 misses" in first
    assert "Column cache: 20 hits, 0 misses" in again


def test_a_query_that_is_not_analyzed_is_not_watched(warehouse, monkeypatch) -> None:
    made: list[ExecutionContext] = []
    before = ExecutionContext.__post_init__
    monkeypatch.setattr(
        ExecutionContext, "__post_init__", lambda self: (made.append(self), before(self))[1]
    )
    warehouse.execute("SELECT kind, count() FROM events GROUP BY kind").fetchall()
    assert made
    assert all(context.profile is None for context in made)


def test_kernels_are_named_where_they_run(warehouse) -> None:
    query = "SELECT size, sum(id) FROM events GROUP BY size"
    groups = below(explained(warehouse, "ANALYZE", query), "Aggregating")
    assert any(fact.startswith("Kernels: ") for fact in groups)
    if library() is not None:
        assert any("group_totals" in fact for fact in groups)
    with without_kernels():
        groups = below(explained(warehouse, "ANALYZE", query), "Aggregating")
    assert "Kernels: none, numpy and Arrow" in groups


def test_nodes_of_a_late_read_say_where_they_run(warehouse) -> None:
    lines = explained(warehouse, "ANALYZE", "SELECT * FROM events ORDER BY size, id LIMIT 3")
    assert "Runs within: Sort" in below(lines, "ReadFromMergeTree")
    assert any(fact.startswith("Late rows") for fact in below(lines, "Sorting"))


def test_late_rows_are_not_most_of_the_table(connection: Any) -> None:
    connection.execute("CREATE TABLE most (a UInt64, s String) ENGINE = MergeTree ORDER BY a")
    connection.execute("INSERT INTO most SELECT number, toString(number) FROM numbers(8000)")
    for limit, is_late in ((2000, True), (2001, False)):
        query = f"SELECT s FROM most ORDER BY cityHash64(a) LIMIT {limit}"
        lines = [row[0] for row in connection.execute(f"EXPLAIN ANALYZE {query}").fetchall()]
        assert any("Late rows" in line for line in lines) is is_late


def test_bytes_of_a_late_read_are_those_of_stored_columns(warehouse) -> None:
    """Addresses of rows are computed, not read."""
    cursor = warehouse.execute("SELECT id FROM events ORDER BY id DESC LIMIT 1")
    assert cursor.fetchall() == [(ROWS - 1,)]
    assert cursor.statistics.bytes_read == 4 * cursor.statistics.rows_read > 0


def test_subqueries_are_measured_too(warehouse) -> None:
    query = "SELECT count() FROM events WHERE kind IN (SELECT kind FROM kinds)"
    lines = explained(warehouse, "ANALYZE", query)
    at = next(i for i, line in enumerate(lines) if "Subquery 1:" in line)
    assert any(line.strip().startswith("Rows: 2 ·") for line in lines[at:])


def test_spilled_bytes_are_in_the_summary(warehouse) -> None:
    query = (
        "SELECT id FROM events ORDER BY size, id"
        " SETTINGS max_bytes_before_external_sort = 1000, max_block_size = 500"
    )
    lines = explained(warehouse, "ANALYZE", query)
    assert any(line.strip().startswith("Spilled: ") for line in lines)


def test_estimate_has_a_row_for_each_table_that_would_be_read(warehouse) -> None:
    cursor = warehouse.execute(
        "EXPLAIN ESTIMATE SELECT count() FROM events JOIN kinds USING kind WHERE id < 1500"
    )
    assert [column[0] for column in cursor.description] == [
        "database",
        "table",
        "parts",
        "rows",
        "marks",
    ]
    assert cursor.fetchall() == [("default", "events", 1, 2000, 2), ("default", "kinds", 1, 2, 1)]
    assert explained(warehouse, "ESTIMATE", "SELECT count() FROM events") == []
    assert explained(warehouse, "ESTIMATE", "SELECT number FROM numbers(3)") == []


def test_pipeline_shows_the_operators(warehouse) -> None:
    query = "SELECT kind, count() FROM events WHERE size > 3 GROUP BY kind SETTINGS max_threads = 3"
    assert explained(warehouse, "PIPELINE", query) == [
        "(Aggregating)",
        "aggregate × 3",
        "  (ReadFromMergeTree)",
        "  scan × 3",
    ]


@pytest.mark.parametrize(
    ("query", "operator"),
    [
        ("SELECT id FROM events ORDER BY id LIMIT 0.1", "relative_limit"),
        (
            "SELECT * FROM (SELECT id FROM events) AS a PASTE JOIN (SELECT kind FROM kinds) AS b",
            "paste",
        ),
    ],
)
def test_pipeline_knows_rare_operators(warehouse, query: str, operator: str) -> None:
    assert operator in [line.strip() for line in explained(warehouse, "PIPELINE", query)]


def test_pipeline_knows_every_node() -> None:
    known = {node for node in vars(nodes).values() if isinstance(node, type)}
    concrete = {node for node in known if issubclass(node, nodes.Node)} - {
        nodes.Node,
        nodes.UnaryNode,
    }
    assert concrete == explain_pipeline._OPERATORS.keys()


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("EXPLAIN foo = 1 SELECT 1", "UNKNOWN_SETTING"),
        ("EXPLAIN QUERY TREE SELECT 1", "NOT_IMPLEMENTED"),
        ("EXPLAIN ANALYZE indexes = 1 SELECT 1", "NOT_IMPLEMENTED"),
        ("EXPLAIN PIPELINE graph = 1 SELECT 1", "NOT_IMPLEMENTED"),
        ("EXPLAIN ANALYZE INSERT INTO kinds SELECT 'k9'", "INCORRECT_QUERY"),
        ("EXPLAIN ESTIMATE INSERT INTO kinds SELECT 'k9'", "INCORRECT_QUERY"),
    ],
)
def test_what_cannot_be_explained_is_refused(warehouse, statement: str, name: str) -> None:
    with pytest.raises(olapdb.Error) as raised:
        warehouse.execute(statement)
    assert raised.value.name == name


def test_a_condition_on_a_calendar_is_judged_on_the_days_that_sales_have(warehouse) -> None:
    """Of 100 years of the calendar ten are in the sales, so a year is a tenth of these, and no hundredth."""
    warehouse.execute("CREATE TABLE days (day UInt32, year UInt32) ENGINE = MergeTree ORDER BY day")
    warehouse.execute("INSERT INTO days SELECT number, intDiv(number, 365) FROM numbers(36500)")
    warehouse.execute(
        "CREATE TABLE sales (day UInt32, size UInt8) ENGINE = MergeTree ORDER BY size"
    )
    warehouse.execute(
        "INSERT INTO sales SELECT 18250 + number * 7 % 3650, number % 7 FROM numbers(100000)"
    )
    query = "SELECT sum(size) FROM sales JOIN days ON sales.day = days.day WHERE days.year = 52"
    join = below(explained(warehouse, "ANALYZE", query), "Join")
    rows = next(fact for fact in join if fact.startswith("Rows: "))
    met, q_error = re.match(r"Rows: (\d+) · .* q-error (\d+\.\d+)", rows).groups()  # type: ignore[union-attr]
    assert 9_000 < int(met) < 11_000
    assert float(q_error) < 3
