"""Running sums, differences, occurrences, zips and intersections of arrays beside ClickHouse."""

from __future__ import annotations

import pytest

from olapdb.dbapi.connection import Connection
from tests.harness.beside import assert_same
from tests.harness.oracle import Oracle

MADE = r"""
DROP TABLE IF EXISTS ar
CREATE TABLE ar (k UInt8, a Array(UInt8), b Array(Int32), f Array(Float64), g Array(Float32), n Array(Nullable(Int64)), s Array(String), d Array(Date), t Array(DateTime), x Array(Decimal(9,2)), e Array(Bool), m UInt64, l Array(Array(UInt8)), nk Nullable(Int8)) ENGINE Memory
INSERT INTO ar VALUES (1, [1,2,2,3], [-5,7,7], [0.1,0.2,0.3], [0.5], [1,NULL,1], ['a','b','a'], ['2024-01-01','2023-01-01'], ['2024-01-01 00:00:00','2024-01-02 00:00:00'], [1.5,2.25,-1], [true,false], 3, [[1],[1]], 2), (2, [], [], [], [], [], [], [], [], [], [], 0, [], NULL), (3, [255,255,0], [2147483647,-2147483648], [nan,1,-1], [1e30,1], [NULL,NULL], ['','a'], ['1970-01-01'], [0], [9999999.99, 0.01], [true], 2, [[],[2]], -1)
"""
ASKED = r"""
SELECT k, toString(arrayCumSum(a)), toTypeName(arrayCumSum(a)), toString(arrayCumSum(b)), toString(arrayCumSum(f)), toTypeName(arrayCumSum(g)), toString(arrayCumSum(x)), toTypeName(arrayCumSum(x)), toString(arrayCumSum(e)), toTypeName(arrayCumSum(e)) FROM ar ORDER BY k
SELECT arrayCumSum(n) FROM ar
SELECT arrayCumSum(s) FROM ar
SELECT arrayCumSum(d) FROM ar
SELECT arrayCumSum(m) FROM ar
SELECT arrayCumSum([])
SELECT arrayCumSum([18446744073709551615, 2]), arrayCumSum([1.5])
SELECT k, toString(arrayDifference(a)), toTypeName(arrayDifference(a)), toString(arrayDifference(b)), toTypeName(arrayDifference(b)), toString(arrayDifference(f)), toTypeName(arrayDifference(g)), toString(arrayDifference(d)), toString(arrayDifference(t)), toTypeName(arrayDifference(t)), toString(arrayDifference(x)), toTypeName(arrayDifference(x)), toString(arrayDifference(e)), toTypeName(arrayDifference(e)) FROM ar ORDER BY k
SELECT arrayDifference(n) FROM ar
SELECT arrayDifference(s) FROM ar
SELECT arrayDifference([18446744073709551615, 2]), arrayDifference([-128::Int8, 127]), toTypeName(arrayDifference([-128::Int8, 127])), toTypeName(arrayDifference([1::Int64])), toTypeName(arrayDifference([1::UInt16]))
SELECT arrayDifference([])
SELECT k, toString(arrayProduct(a)), toTypeName(arrayProduct(b)), toString(arrayProduct(b)), toString(arrayProduct(f)) FROM ar ORDER BY k
SELECT arrayProduct(n) FROM ar
SELECT k, toString(arrayEnumerateUniq(a)), toTypeName(arrayEnumerateUniq(a)), toString(arrayEnumerateUniq(n)), toString(arrayEnumerateUniq(s)), toString(arrayEnumerateUniq(l)), toString(arrayEnumerateUniq(a, a)) FROM ar ORDER BY k
SELECT k, toString(arrayEnumerateDense(a)), toTypeName(arrayEnumerateDense(a)), toString(arrayEnumerateDense(n)), toString(arrayEnumerateDense(s)), toString(arrayEnumerateDense(a, a)) FROM ar ORDER BY k
SELECT toString(arrayEnumerateUniq([1,1,2],['a','a','b'])), toString(arrayEnumerateDense([1,1,2],['a','b','b']))
SELECT arrayEnumerateUniq(a, b) FROM ar
SELECT arrayEnumerateUniq(k) FROM ar
SELECT arrayEnumerateUniq([]), arrayEnumerateDense([])
SELECT k, toString(arrayZip(a, a)), toTypeName(arrayZip(a, a)), toString(arrayZip(n, n)), toString(arrayZip(s)) FROM ar ORDER BY k
SELECT arrayZip(a, b) FROM ar
SELECT arrayZip(a, k) FROM ar
SELECT toString(arrayZip([1,2],['a','b'])), toTypeName(arrayZip([1,2],['a',NULL]))
SELECT k, toString(arrayResize(a, m)), toString(arrayResize(a, -2)), toString(arrayResize(a, 5, 300)), toTypeName(arrayResize(a, 5, 300)), toString(arrayResize(n, 4)), toString(arrayResize(s, 3, 'x')), toString(arrayResize(a, 6, k)), toString(arrayResize(d, 3)), toString(arrayResize(l, 3)) FROM ar ORDER BY k
SELECT toString(arrayResize([1,2,3], -5)), toString(arrayResize([1,2,3], -5, 9)), toString(arrayResize([1,2,3], 0)), toString(arrayResize([1],2,NULL)), toTypeName(arrayResize([1],2,NULL)), toString(arrayResize([1,NULL],3))
SELECT k, toString(arrayResize(a, 6, nk)), toTypeName(arrayResize(a, 6, nk)) FROM ar ORDER BY k
SELECT arrayResize(a, 3, 'x') FROM ar
SELECT arrayResize(k, 1) FROM ar
SELECT k, toString(arrayIntersect(a, b)), toTypeName(arrayIntersect(a, b)), toString(arrayIntersect(a, [3,2])), toString(arrayIntersect(n, [1,NULL])), toTypeName(arrayIntersect(n, a)), toString(arrayIntersect(s, ['a'])), toString(arrayIntersect(a, a, [2,1])), toString(arrayIntersect(a)) FROM ar ORDER BY k
SELECT toString(arrayIntersect([3,1,2],[2,3,1])), toString(arrayIntersect([3,2,1,0],[1,2])), toString(arrayIntersect([1,2],[3,2,1,0])), toString(arrayIntersect([nan],[nan])), toString(arrayIntersect([[1,2]],[[1,2]])), toString(arrayIntersect([1,300],[300::UInt16])), toTypeName(arrayIntersect([1,300],[300::UInt16]))
SELECT arrayIntersect([1],['a'])
SELECT arrayIntersect([], [1]), toTypeName(arrayIntersect([], [1]))
SELECT arrayIntersect(k, [1]) FROM ar
SELECT toTypeName(arrayIntersect([1::Int8],[1::UInt16])), toTypeName(arrayIntersect([1::Int16],[1::UInt8])), toTypeName(arrayIntersect([1::Int64],[1::Int8])), toTypeName(arrayIntersect([-1::Int8], [300::UInt16]))
"""


pytestmark = [
    pytest.mark.warehouse(*MADE.strip().splitlines(), beside_oracle=True),
    pytest.mark.feature("select", "functions"),
]


@pytest.mark.parametrize("query", ASKED.strip().splitlines())
def test_asked(connection: Connection, oracle: Oracle, query: str) -> None:
    assert_same(connection, oracle, query)
