"""quantileExact, sumCount, avgWeighted, covariances and corr beside ClickHouse."""

from __future__ import annotations

import pytest

from olapdb.dbapi.connection import Connection
from tests.harness.beside import assert_same
from tests.harness.oracle import Oracle

MADE = r"""
DROP TABLE IF EXISTS qe
CREATE TABLE qe (g UInt8, i Int32, u UInt8, f Float64, n Nullable(Int64), d Date, t DateTime, x Decimal(9,2), b Bool, s String) ENGINE Memory
INSERT INTO qe SELECT number % 3, (number * 7919) % 101 - 50, number % 7, if(number % 5 = 0, nan, number / 3), if(number % 4 = 0, NULL, number * 3 % 17), toDate('2020-01-01') + number % 40, toDateTime(number * 1000), toDecimal32(number, 2) / 8, number % 2, toString(number) FROM numbers(50)
"""
ASKED = r"""
SELECT g, toString(quantileExact(i)), toString(quantileExact(0.9)(u)), toString(quantileExact(0.25)(f)), toString(quantileExact(n)), toString(quantileExact(0.1)(d)), toString(quantileExact(t)), toString(quantileExact(0.75)(x)), toString(quantileExact(b)), toString(quantilesExact(0, 0.3333, 1)(i)), toString(quantilesExact(0.5)(n)), toString(medianExact(f)) FROM qe GROUP BY g ORDER BY g
SELECT toTypeName(quantileExact(i)), toTypeName(quantileExact(n)), toTypeName(quantilesExact(0.5)(n)), toTypeName(quantileExact(x)), toTypeName(quantileExact(b)), toTypeName(quantileExactState(0.5)(i)), toTypeName(medianExactState(i)) FROM qe
SELECT quantileExact(i), toString(quantileExact(f)), quantileExact(n), toString(quantilesExact(0.5, 0.1)(f)), toString(quantilesExact(0.5, 0.1)(i)), toString(quantileExact(d)), toString(quantileExact(x)) FROM qe WHERE i > 1000
SELECT toString(quantileExact(f)) FROM qe WHERE isNaN(f)
SELECT quantileExact(s) FROM qe
SELECT quantileExact(1.5)(i) FROM qe
SELECT quantilesExact(i) FROM qe
SELECT quantileExact(0.5, 0.6)(i) FROM qe
SELECT quantileExactMerge(0.5)(s) FROM (SELECT quantileExactState(0.5)(i) AS s FROM qe GROUP BY g)
SELECT toString(quantilesExactMerge(0.5, 0.9)(s)) FROM (SELECT quantilesExactState(0.5, 0.9)(i) AS s FROM qe GROUP BY g)
SELECT quantileExactIf(i, u > 3), quantileExactOrNull(i), quantileExactDistinct(i) FROM qe
SELECT g, toString(sumCount(i)), toString(sumCount(u)), toString(sumCount(n)), toString(sumCount(x)), toTypeName(sumCount(i)), toTypeName(sumCount(u)), toTypeName(sumCount(n)), toTypeName(sumCount(x)), toTypeName(sumCount(f)) FROM qe GROUP BY g ORDER BY g
SELECT toString(sumCount(i)), toString(sumCount(n)) FROM qe WHERE i > 1000
SELECT sumCount(s) FROM qe
SELECT toString(sumCountMerge(s)) FROM (SELECT sumCountState(i) AS s FROM qe GROUP BY g)
SELECT toTypeName(sumCountState(i)) FROM qe
SELECT g, toString(avgWeighted(u, g)), toString(avgWeighted(u, u)), toTypeName(avgWeighted(u, g)), toString(avgWeighted(n, u)), toTypeName(avgWeighted(n, u)) FROM qe GROUP BY g ORDER BY g
SELECT toString(avgWeighted(u, u)), toString(avgWeighted(n, u)) FROM qe WHERE i > 1000
SELECT avgWeighted(s, u) FROM qe
SELECT avgWeighted(u) FROM qe
SELECT avgWeighted(x, u) FROM qe
SELECT toString(avgWeightedMerge(s)) FROM (SELECT avgWeightedState(u, u) AS s FROM qe GROUP BY g)
SELECT g, round(covarPop(i, u), 9), round(covarSamp(i, u), 9), round(corr(i, u), 9), round(COVAR_POP(n, i), 9), round(CORR(n, i), 9) FROM qe GROUP BY g
SELECT toTypeName(corr(i, u)), toTypeName(covarPop(toFloat32(i), toFloat32(u))), toTypeName(covarSamp(toFloat32(i), u)), toTypeName(corr(n, u)), toTypeName(corrState(i, u)) FROM qe
SELECT corr(i, u), covarPop(i, u), covarSamp(i, u), corr(n, u) FROM qe WHERE i > 1000
SELECT corr(i, u), covarPop(i, u), covarSamp(i, u) FROM qe WHERE i = -50
SELECT corr(i, 1), covarPop(i, 1), round(corr(b, u), 9) FROM qe
SELECT round(corrMerge(s), 9), round(covarSampMerge(v), 9) FROM (SELECT corrState(i, u) AS s, covarSampState(i, u) AS v FROM qe GROUP BY g)
SELECT corr(s, u) FROM qe
SELECT corr(x, u) FROM qe
SELECT covarPop(d, u) FROM qe
SELECT corr(i) FROM qe
"""


pytestmark = [
    pytest.mark.warehouse(*MADE.strip().splitlines(), beside_oracle=True),
    pytest.mark.feature("aggregates"),
]


@pytest.mark.parametrize("query", ASKED.strip().splitlines())
def test_asked(connection: Connection, oracle: Oracle, query: str) -> None:
    assert_same(connection, oracle, query)
