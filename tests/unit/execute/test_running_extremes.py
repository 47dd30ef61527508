"""min and max over frames from the first row of a partition on: by kernels, by running maxima, by the tree of states."""

from __future__ import annotations

from typing import Any

import pytest

import olapdb
from olapdb.execute.operators import frame_aggregates

pytestmark = pytest.mark.feature("select")

COLUMNS = {
    "Int8": "toInt8(number * 37 % 256)",
    "UInt64": "number * 11400714819323198485",
    "Nullable(Int32)": "if(number % 3 = 0, NULL, toInt32(number * 7919 % 101) - 50)",
    "Decimal(18, 2)": "toDecimal64(number * 7919 % 101, 2) - 50",
    "Decimal(38, 2)": "toDecimal128(number * 7919 % 101, 2) * 100000000000000000000 - 5",
    "Nullable(Decimal(9, 1))": "if(number % 4 = 1, NULL, toDecimal32(number * 7919 % 101, 1))",
    "Date": "toDate(number * 7919 % 10007)",
    "DateTime64(3)": "toDateTime64(number * 7919 % 10007, 3, 'UTC')",
    "Float64": "if(number % 9 = 0, nan, number * 7919 % 101 - 50.5)",
    "String": "toString(number * 7919 % 101)",
}
FRAMES = (
    "ROWS UNBOUNDED PRECEDING",
    "RANGE UNBOUNDED PRECEDING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
)


@pytest.mark.parametrize("data_type", COLUMNS)
def test_running_extremes_are_those_of_the_tree(
    data_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = [
        f"{name}(x) OVER (PARTITION BY p ORDER BY o {frame})"
        for frame in FRAMES
        for name in ("min", "max")
    ]
    query = (
        f"SELECT {', '.join(functions)} FROM (SELECT number % 5 AS p, intDiv(number, 9) AS o,"
        f" {COLUMNS[data_type]} AS x, number FROM numbers(400)) ORDER BY number"
    )
    with olapdb.connect() as connection:
        as_it_comes = shown(connection, query)
        monkeypatch.setattr(frame_aggregates, "_by_kernels", lambda *_: None)
        by_running_maxima = shown(connection, query)
        monkeypatch.setattr(frame_aggregates, "running_extremes", lambda *_: None)
        assert as_it_comes == by_running_maxima == shown(connection, query)


def shown(connection: Any, query: str) -> list[str]:
    """Return the rows of a query as texts, in which NaN is NaN."""
    return [str(row) for row in connection.execute(query).fetchall()]
