"""Points in constant polygons and in those of their rows give the same answers."""

from __future__ import annotations

import pytest

import olapdb

pytestmark = pytest.mark.feature("functions")

_RING = "[(0,0),(10,0),(10,10),(5,5),(0,10)]"
_HOLE = "[(1,1),(2,3),(3,1)]"


@pytest.mark.parametrize(
    ("constant", "by_row"), [(_RING, _RING), (f"{_RING}, {_HOLE}", f"[{_RING}, {_HOLE}]")]
)
def test_constant_polygons_agree_with_those_of_rows(constant: str, by_row: str) -> None:
    point = "(number % 30 / 2 - 2, intDiv(number, 30) / 2 - 2)"
    with olapdb.connect() as connection:
        differences, inside = connection.execute(
            f"SELECT countIf(a != b), sum(a) FROM (SELECT pointInPolygon({point}, {constant}) AS a, "
            f"pointInPolygon({point}, materialize({by_row})) AS b FROM numbers(900))"
        ).fetchall()[0]
    assert differences == 0
    assert 0 < inside < 900


def test_a_point_on_an_edge_is_inside_and_one_in_a_hole_is_not() -> None:
    with olapdb.connect() as connection:
        row = connection.execute(
            f"SELECT pointInPolygon((4, 6), {_RING}), pointInPolygon((4, 7), {_RING}), "
            f"pointInPolygon((2, 2), {_RING}, {_HOLE}), pointInPolygon((2, 1), {_RING}, {_HOLE})"
        ).fetchall()[0]
    assert tuple(row) == (1, 0, 0, 1)
