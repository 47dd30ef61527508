"""The 22 queries of TPC-H, as the specification writes them, beside ClickHouse and DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import duckdb
import pytest

import olapdb
from tests.harness import tpch
from tests.harness.oracle import Oracle
from tests.harness.shuffle import has_joins, shuffled

pytestmark = pytest.mark.feature("select")

ORDERS = 15_000
ONLY_CLICKHOUSE = {
    6: "0.06 - 0.01 is a float in ClickHouse, a decimal in DuckDB",
    8: "the quotient of decimals is a decimal in ClickHouse, a float in DuckDB",
    13: "a customer without orders counts one row in ClickHouse, whose LEFT JOIN fills in defaults",
    14: "as 8",
    17: "as 8",
}
QUERIES = tpch.queries()


@pytest.fixture(scope="module")
def cursor() -> Iterator[olapdb.Cursor]:
    with olapdb.connect() as connection, connection.cursor() as made:
        for statement in tpch.statements(ORDERS):
            made.execute(statement)
        yield made


@pytest.fixture(scope="module")
def clickhouse() -> Iterator[Oracle]:
    with Oracle() as running:
        for statement in tpch.statements(ORDERS):
            running.execute(statement)
        yield running


@pytest.fixture(scope="module")
def duck(cursor: olapdb.Cursor) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for table in tpch.SCHEMA:
            cursor.execute(f"SELECT * FROM {table}")
            rows = cursor.fetch_arrow_table()
            connection.register("rows", rows)
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM rows")
            connection.unregister("rows")
        yield connection


def rounded(rows: Sequence[Sequence[object]]) -> list[tuple[object, ...]]:
    """Return the rows with numbers, also those printed as text, as floats of ten digits."""
    return [tuple(_rounded(value) for value in row) for row in rows]


def _rounded(value: object) -> object:
    try:
        return float(f"{float(str(value)):.10g}")
    except ValueError:
        return str(value)


@pytest.mark.parametrize("number", QUERIES)
def test_clickhouse_answers_the_same(
    number: int, cursor: olapdb.Cursor, clickhouse: Oracle
) -> None:
    cursor.execute(QUERIES[number])
    ours = rounded(cursor.fetchall())
    assert ours == rounded(clickhouse.query(QUERIES[number]).rows)
    assert ours


@pytest.mark.parametrize("number", [n for n in QUERIES if n not in ONLY_CLICKHOUSE])
def test_duckdb_answers_the_same(
    number: int, cursor: olapdb.Cursor, duck: duckdb.DuckDBPyConnection
) -> None:
    cursor.execute(QUERIES[number])
    assert rounded(cursor.fetchall()) == rounded(duck.execute(QUERIES[number]).fetchall())


@pytest.mark.parametrize("number", QUERIES)
def test_the_order_of_joins_changes_no_answer(number: int, cursor: olapdb.Cursor) -> None:
    cursor.execute(QUERIES[number])
    rows = rounded(cursor.fetchall())
    cursor.execute(f"{QUERIES[number]} SETTINGS query_plan_optimize_join_order_limit = 0")
    assert rounded(cursor.fetchall()) == rows


@pytest.mark.parametrize("number", [n for n in QUERIES if has_joins(QUERIES[n])])
def test_the_order_of_tables_and_conditions_changes_no_answer(
    number: int, cursor: olapdb.Cursor
) -> None:
    cursor.execute(QUERIES[number])
    rows = rounded(cursor.fetchall())
    random = Random(number)
    orders = {shuffled(QUERIES[number], random) for _ in range(3)}
    assert len(orders) > 1
    for order in orders:
        cursor.execute(order)
        assert rounded(cursor.fetchall()) == rows, order
