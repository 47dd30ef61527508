"""A dictionary of polygons finds the smallest polygon that contains a point, as pointInPolygon says."""

from __future__ import annotations

import random

import pytest

import olapdb

pytestmark = pytest.mark.feature("functions", "dimensions")


@pytest.mark.parametrize("seed", range(4))
def test_the_smallest_polygon_counts(seed: int) -> None:
    chosen = random.Random(seed)
    rows = []
    for number in range(30):
        x, y, width, height = (chosen.randint(1, 20) for _ in range(4))
        ring = [(x, y), (x, y + height), (x + width, y + height), (x + width, y)]
        polygon = [ring]
        if width > 4 and height > 4:
            polygon.append([(x + 1, y + 1), (x + 2, y + 1), (x + 2, y + 2), (x + 1, y + 2)])
        rows.append(f"([{polygon}], {number}, {width * height - len(polygon) + 1})")
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE shapes (key Array(Array(Array(Tuple(Float64, Float64)))), n UInt64,"
            " area UInt64) ENGINE = Memory"
        )
        connection.execute(f"INSERT INTO shapes VALUES {', '.join(rows)}")
        connection.execute(
            "CREATE DICTIONARY areas (key Array(Array(Array(Tuple(Float64, Float64)))), n UInt64)"
            " PRIMARY KEY key SOURCE(CLICKHOUSE(TABLE 'shapes')) LAYOUT(POLYGON()) LIFETIME(0)"
        )
        differing = connection.execute(
            """
            WITH points AS (SELECT number % 45 + 0.3 AS x, intDiv(number, 45) + 0.6 AS y FROM numbers(2025)),
                least AS (
                    SELECT x, y, min(area) AS least
                    FROM points CROSS JOIN shapes WHERE pointInPolygon((x, y), key) GROUP BY x, y
                ),
                looked_up AS (
                    SELECT x, y, dictHas('areas', (x, y)) AS has, dictGet('areas', 'n', (x, y)) AS n FROM points
                )
            SELECT count() FROM looked_up AS l
            LEFT JOIN least AS a ON l.x = a.x AND l.y = a.y
            LEFT JOIN shapes AS s ON s.n = l.n
            WHERE l.has != (a.least > 0) OR (l.has AND s.area != a.least)
            """
        ).fetchall()
    assert differing == [(0,)]
