"""Aggregates whose result in ClickHouse depends on the order of rows or blocks, and here does not."""

from __future__ import annotations

import pytest

import olapdb

pytestmark = pytest.mark.feature("aggregates")

ASKED = (
    ("anyHeavy(x) FROM VALUES('x UInt8', (3), (2), (1), (2), (3))", 2),
    ("anyHeavy(number) FROM numbers(10)", 0),
    ("boundingRatio(x, y) FROM VALUES('x Float64, y UInt8', (nan, 2), (3, 4), (5, 9))", 2.5),
    ("deltaSumTimestamp(v, t) FROM VALUES('v Int8, t UInt8', (5, 2), (1, 1), (3, 3), (7, 4))", 8),
    (
        "arraySort(groupArrayIntersect(x)) FROM VALUES('x Array(UInt8)', ([3, 1, 2]), ([2, 3]))",
        [2, 3],
    ),
    ("length(arrayDistinct(groupArraySample(5)(number))) FROM numbers(100)", 5),
    ("groupArraySample(5, 1)(number) = groupArraySample(5, 2)(number) FROM numbers(100)", 0),
    (
        "arrayIntersect(groupArraySample(5)(number), range(100)) = groupArraySample(5)(number) FROM numbers(100)",
        1,
    ),
    ("sumKahan(y) FROM VALUES('y Float64', (1e100), (1), (-1e100))", 1.0),
)


@pytest.mark.parametrize(("query", "answer"), ASKED)
def test_no_order_shows(query: str, answer: object) -> None:
    with olapdb.connect() as connection:
        assert connection.execute(f"SELECT {query}").fetchall() == [(answer,)]
