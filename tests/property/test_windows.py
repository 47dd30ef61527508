"""Window functions over random rows and frames, beside a plain loop over each row's frame."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import olapdb

pytestmark = pytest.mark.feature("select")

Row = tuple[int, int, int | None]
"""(partition, order, value)"""

ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-6, 6), st.none() | st.integers(-100, 100)),
    max_size=24,
)
BOUNDS = st.one_of(
    st.just(("PRECEDING", None)),
    st.tuples(st.just("PRECEDING"), st.integers(0, 4)),
    st.just(("CURRENT", 0)),
    st.tuples(st.just("FOLLOWING"), st.integers(0, 4)),
    st.just(("FOLLOWING", None)),
)
UNITS = st.sampled_from(("ROWS", "RANGE", "GROUPS"))
Bound = tuple[str, int | None]


def _signed(bound: Bound) -> float:
    kind, offset = bound
    if kind == "CURRENT":
        return 0
    distance = math.inf if offset is None else offset
    return distance if kind == "FOLLOWING" else -distance


def _text(bound: Bound) -> str:
    kind, offset = bound
    if kind == "CURRENT":
        return "CURRENT ROW"
    return f"{'UNBOUNDED' if offset is None else offset} {kind}"


def _frame_of(
    unit: str, low: float, high: float, at: int, orders: Sequence[int], descending: bool
) -> list[int]:
    """Return the positions in a sorted partition that belong to the frame of the row `at`."""
    groups = [sum(orders[i] != orders[i - 1] for i in range(1, k + 1)) for k in range(len(orders))]
    sign = -1 if descending else 1

    def distance(k: int) -> float:
        if unit == "ROWS":
            return k - at
        if unit == "GROUPS":
            return groups[k] - groups[at]
        return sign * (orders[k] - orders[at])

    return [k for k in range(len(orders)) if low <= distance(k) <= high]


AGGREGATES: dict[str, Callable[[list[int | None]], object]] = {
    "count(v)": lambda values: sum(v is not None for v in values),
    "sum(v)": lambda values: (
        sum(v for v in values if v is not None) if any(v is not None for v in values) else None
    ),
    "min(v)": lambda values: min((v for v in values if v is not None), default=None),
    "max(v)": lambda values: max((v for v in values if v is not None), default=None),
    "groupArray(v)": lambda values: [v for v in values if v is not None],
    "uniqExact(v)": lambda values: len({v for v in values if v is not None}),
    "first_value(v)": lambda values: next((v for v in values if v is not None), None),
    "last_value(v)": lambda values: next((v for v in reversed(values) if v is not None), None),
    "nth_value(v, 2)": lambda values: values[1] if len(values) > 1 else None,
}


@pytest.fixture(scope="module")
def connection() -> olapdb.Connection:
    made = olapdb.connect()
    made.execute(
        "CREATE TABLE r (id UInt32, p Int32, o Int32, v Nullable(Int32)) ENGINE = MergeTree ORDER BY id"
    )
    return made


@given(rows=ROWS, unit=UNITS, bounds=st.tuples(BOUNDS, BOUNDS), descending=st.booleans())
def test_frames_are_those_of_a_loop(
    rows: list[Row],
    unit: str,
    bounds: tuple[Bound, Bound],
    descending: bool,
    connection: olapdb.Connection,
) -> None:
    start, end = sorted(bounds, key=_signed)
    if start == ("FOLLOWING", None) or end == ("PRECEDING", None):
        start, end = ("PRECEDING", None), ("FOLLOWING", None)
    connection.execute("TRUNCATE TABLE r")
    if rows:
        columns = list(zip(*rows, strict=True))
        connection.insert(
            "r",
            {
                "id": list(range(len(rows))),
                "p": list(columns[0]),
                "o": list(columns[1]),
                "v": list(columns[2]),
            },
        )
    direction = "DESC" if descending else "ASC"
    # Rows of equal order come in any order, so order-dependent results are also ordered by id. A
    # RANGE or GROUPS frame holds whole peer groups.
    tie = ", id" if unit == "ROWS" else ""
    window = (
        f"PARTITION BY p ORDER BY o {direction}{tie} {unit} BETWEEN {_text(start)} AND {_text(end)}"
    )
    names = [
        n for n in AGGREGATES if unit == "ROWS" or n[:3] in ("cou", "sum", "min", "max", "uni")
    ]
    shown = ", ".join(f"{name} OVER w" for name in names)
    answer = connection.execute(f"SELECT id, {shown} FROM r WINDOW w AS ({window}) ORDER BY id")
    expected = []
    for row_id, (partition, _, _) in enumerate(rows):
        members = [i for i, row in enumerate(rows) if row[0] == partition]
        members.sort(key=lambda i: (-rows[i][1] if descending else rows[i][1], i))
        orders = [rows[i][1] for i in members]
        frame = _frame_of(
            unit, _signed(start), _signed(end), members.index(row_id), orders, descending
        )
        values = [rows[members[k]][2] for k in frame]
        expected.append((row_id, *(AGGREGATES[name](values) for name in names)))
    assert answer.fetchall() == expected
