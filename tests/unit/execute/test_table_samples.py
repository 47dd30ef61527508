"""Samples of tables: estimates of what bounds and sketches do not tell."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import olapdb

pytestmark = pytest.mark.feature("select")

ROWS = 200_000


@pytest.fixture(scope="module")
def cursor() -> Iterator[olapdb.Cursor]:
    with olapdb.connect() as connection, connection.cursor() as made:
        made.execute(
            "CREATE TABLE visits (id UInt64, day Date, left_day Date, country String, url String) "
            "ENGINE = MergeTree ORDER BY id"
        )
        made.execute(
            "INSERT INTO visits SELECT number, toDate('2020-01-01') + intHash64(number) % 1000 AS day, "
            "day + 1 + number % 5, if(intHash64(number) % 100 < 90, 'DE', concat('C', toString(number % 50))), "
            f"concat('/', hex(number % 7)) FROM numbers({ROWS})"
        )
        yield made


def estimates(cursor: olapdb.Cursor, query: str) -> list[tuple[int, int]]:
    """Return the rows and the estimate of each node of a query, from the top."""
    cursor.execute(f"EXPLAIN ANALYZE {query}")
    text = "\n".join(line for (line,) in cursor.fetchall())
    return [(int(a), int(b)) for a, b in re.findall(r"Rows: (\d+) · estimated (\d+)", text)]


@pytest.mark.parametrize(
    "condition",
    [
        "country = 'DE'",
        "url LIKE '%3'",
        "day <= left_day",
        "left_day < '2021-01-01' AND day < '2020-12-31'",
        "toDayOfWeek(day) = 3",
        "country = 'DE' AND url IN ('/01', '/02')",
        "id < 20000 AND country = 'DE'",
    ],
)
def test_conditions_are_tried_on_the_sample(cursor: olapdb.Cursor, condition: str) -> None:
    met, estimated = estimates(cursor, f"SELECT id FROM visits WHERE {condition}")[-1]
    assert estimated == pytest.approx(met, rel=0.15)


@pytest.mark.parametrize(
    ("keys", "condition"),
    [
        ("toYear(day), toMonth(day)", "1"),
        ("toYear(day)", "day >= '2021-01-01' AND day < '2022-01-01'"),
        ("country, length(country)", "1"),
        ("id % 11", "1"),
    ],
)
def test_values_of_expressions_are_counted_on_the_sample(
    cursor: olapdb.Cursor, keys: str, condition: str
) -> None:
    query = f"SELECT {keys}, count() FROM visits WHERE {condition} GROUP BY {keys}"
    met, estimated = estimates(cursor, query)[0]
    assert estimated == pytest.approx(met, rel=0.15)


def test_a_condition_that_fails_is_estimated_without_the_sample(cursor: olapdb.Cursor) -> None:
    """The error is the query's, not the estimate's."""
    joined = "SELECT count() FROM visits AS a JOIN visits AS b ON a.id = b.id"
    cursor.execute(f"{joined} WHERE if(a.id < {ROWS}, 1, toInt8(a.url)) AND a.id < 10")
    assert cursor.fetchall() == [(10,)]
    with pytest.raises(olapdb.Error, match="Cannot parse"):
        cursor.execute(f"{joined} WHERE toInt8(a.url) > 0")


def test_reading_a_sample_counts_for_no_query(cursor: olapdb.Cursor) -> None:
    cursor.execute(
        "SELECT count() FROM visits AS a JOIN (SELECT 1 AS id) AS b ON a.id = b.id "
        f"WHERE country = 'C1' SETTINGS max_rows_to_read = {ROWS}"
    )
    assert cursor.fetchall() == [(0,)]


def test_rows_near_a_join_are_estimated_with_its_filter(cursor: olapdb.Cursor) -> None:
    query = (
        "SELECT count() FROM visits AS a JOIN (SELECT id FROM visits WHERE id % 1000 = 7) AS b "
        "ON a.id = b.id"
    )
    for met, estimated in estimates(cursor, query):
        assert estimated == pytest.approx(met, rel=0.5)
