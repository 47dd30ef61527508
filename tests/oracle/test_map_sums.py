"""mapAdd and mapSubtract beside ClickHouse, and of Decimals, which it does not do."""

from __future__ import annotations

import pytest

from olapdb.dbapi.connection import Connection
from tests.harness.beside import assert_same
from tests.harness.oracle import Oracle

MADE = r"""
DROP TABLE IF EXISTS mp
CREATE TABLE mp (k UInt8, a Map(String, UInt8), b Map(String, UInt64), f Map(String, Float64), i Map(UInt8, Int32), d Map(String, Decimal(9,2))) ENGINE Memory
INSERT INTO mp VALUES (1, {'x':1,'z':2}, {'y':5,'x':7}, {'q':1.5}, {1:-5}, {'a':1.5}), (2, {}, {}, {}, {}, {}), (3, {'a':255}, {'a':18446744073709551615}, {'q':nan}, {7:2147483647}, {})
"""
ASKED = r"""
SELECT k, toString(mapAdd(a, b)), toTypeName(mapAdd(a, b)), toString(mapSubtract(a, b)), toString(mapAdd(f, f)), toString(mapSubtract(f, f)), toTypeName(mapAdd(f, f)), toString(mapAdd(i, i)), toString(mapSubtract(i, i)), toTypeName(mapAdd(i, i)), toString(mapAdd(a, a, b)), toString(mapSubtract(a, a, a)) FROM mp ORDER BY k
SELECT toString(mapAdd(map('a',1), map('b',2), map('a',5))), toString(mapSubtract(map('a',1), map('b',2))), toString(mapAdd(map('a',1,'a',2), map('b',1))), toString(mapAdd(map('a',true), map('a',true)))
SELECT mapAdd(a, i) FROM mp
SELECT mapAdd(a, f) FROM mp
SELECT mapAdd(a) FROM mp
SELECT mapAdd(map('a','x'), map('a','y'))
SELECT mapAdd(map('a',1), map('a',-1))
SELECT mapAdd(map(1::UInt8,1), map(2::UInt16,2))
SELECT toString(mapAdd(map(toDate('2020-01-01'), 1), map(toDate('2020-01-01'), 2)))
"""


pytestmark = [
    pytest.mark.warehouse(*MADE.strip().splitlines(), beside_oracle=True),
    pytest.mark.feature("functions"),
]


@pytest.mark.parametrize("query", ASKED.strip().splitlines())
def test_asked(connection: Connection, oracle: Oracle, query: str) -> None:
    assert_same(connection, oracle, query)


def test_decimals(connection: Connection) -> None:
    query = "SELECT toString(mapAdd(d, d)), toString(mapSubtract(d, d, d)) FROM mp WHERE k = 1"
    assert connection.execute(query).fetchall() == [("{'a':3}", "{'a':-1.5}")]
