"""Quantiles of several levels of one expression are finished from one state."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

import olapdb
from olapdb.functions.aggregates.exact_quantile import ExactQuantiles
from olapdb.functions.aggregates.quantile import Quantiles
from olapdb.functions.base import Groups

pytestmark = pytest.mark.feature("select")


@pytest.fixture
def connection() -> olapdb.Connection:
    connection = olapdb.connect()
    connection.execute(
        "CREATE TABLE t (g UInt8, x Float64, n Nullable(Int32), s String)"
        " ENGINE = MergeTree ORDER BY g"
    )
    connection.execute(
        "INSERT INTO t SELECT number % 3, number, if(number % 2 = 0, NULL, toInt32(number)),"
        " toString(number) FROM numbers(1000)"
    )
    return connection


@pytest.mark.parametrize(
    ("aggregates", "states"),
    [
        (["quantile(0.5)(x)", "quantile(0.9)(x)", "median(x)", "quantiles(0.1, 0.7)(x)"], 1),
        (["quantile(0.5)(x)", "quantile(0.9)(x + 1)", "quantile(0.9)(x + 2)"], 3),
        (["quantile(0.5)(x)", "quantileExact(0.5)(x)", "quantileExact(0.3)(x)"], 2),
        (["quantile(0.5)(n)", "count()", "quantile(0.9)(n)", "sum(n)"], 1),
        (
            ["quantileIf(0.5)(x, x > 7)", "quantileIf(0.9)(x, x > 7)", "quantileIf(0.9)(x, x > 8)"],
            2,
        ),
        (["quantileOrNull(0.5)(x)", "quantileOrNull(0.9)(x)", "quantile(0.9)(x)"], 2),
        (["quantileResample(0.5, 0, 2, 1)(x, g)", "quantileResample(0.5, 0, 3, 1)(x, g)"], 2),
        (["quantile(0.5)(toFloat64(s))", "quantile(0.9)(toInt32(s))"], 2),
        (["quantileExact(0.5)(x IN (0, 1, 2))", "quantileExact(0.5)(x IN (999))"], 2),
        (["quantile(0.5)(x + (SELECT 1))", "quantile(0.5)(x + (SELECT 2))"], 2),
    ],
)
@pytest.mark.parametrize(
    "tail", ["", "GROUP BY g ORDER BY g", "WHERE x < 3 GROUP BY g ORDER BY g", "WHERE x < 0"]
)
def test_a_state_for_each_expression(
    connection: olapdb.Connection,
    monkeypatch: pytest.MonkeyPatch,
    aggregates: list[str],
    states: int,
    tail: str,
) -> None:
    apart = [
        connection.execute(f"SELECT {aggregate} FROM t {tail}").fetchall()
        for aggregate in aggregates
    ]
    made: list[int] = []
    for kind in (Quantiles, ExactQuantiles):

        def counted(
            self: Quantiles, arguments: Sequence[pa.Array], groups: Groups, plain=kind.state
        ) -> pa.Array:
            made.append(len(groups.codes))
            return plain(self, arguments, groups)

        monkeypatch.setattr(kind, "state", counted)
    together = connection.execute(f"SELECT {', '.join(aggregates)} FROM t {tail}").fetchall()
    assert repr(together) == repr([tuple(v for (v,) in row) for row in zip(*apart)])
    if "x < " not in tail:  # else those of -If may have no rows
        assert len([rows for rows in made if rows]) == states
