"""Integers of any width into columns of any other: stored as they are, or refused."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import DataError
from olapdb.functions import cast_column, parse_type
from olapdb.functions.base import Environment
from olapdb.functions.casts.cast import store_column
from olapdb.types import String

pytestmark = pytest.mark.feature("insert", "types")

RANGES = {
    f"{'' if signed else 'U'}Int{bits}": (
        (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    )
    for bits, signed in itertools.product((8, 32, 64, 128, 256), (True, False))
}
RANGES["UInt256"] = (0, (1 << 255) - 1)  # docs/differences.md
RANGES |= {"Decimal(38, 0)": (1 - 10**38, 10**38 - 1), "Decimal(76, 0)": (1 - 10**76, 10**76 - 1)}
EDGES = sorted(
    {edge + step for low, high in RANGES.values() for edge in (low, high) for step in (-1, 0, 1)}
    | {-1, 0, 1, 10**20, -(10**20)}
)


def fits(value: int, name: str) -> bool:
    low, high = RANGES[name]
    return low <= value <= high


@pytest.mark.parametrize("target", RANGES)
@pytest.mark.parametrize("source", RANGES)
def test_an_integer_is_stored_as_it_is_or_refused(source: str, target: str) -> None:
    of, to, environment = parse_type(source), parse_type(target), Environment()
    for value in (value for value in EDGES if fits(value, source)):
        column = cast_column(pa.array([str(value)]), String(), of, environment, strict=True)
        if not fits(value, target):
            with pytest.raises(DataError) as refused:
                store_column(column, of, to, environment)
            assert refused.value.row == 0
            continue
        stored = store_column(column, of, to, environment)
        found = cast_column(stored, to, String(), environment, strict=True)
        assert found.to_pylist() == [str(value)]


def test_a_view_that_stores_a_negative_sum_into_an_unsigned_wide_column_fails_the_insert(
    connection: Connection,
) -> None:
    connection.execute("CREATE TABLE s (k UInt8, x Int64) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE TABLE t (k UInt8, x UInt128) ENGINE = MergeTree ORDER BY k")
    connection.execute("CREATE MATERIALIZED VIEW v TO t AS SELECT k, x FROM s")
    with pytest.raises(DataError, match=r"Column x of default\.t"):
        connection.execute("INSERT INTO s VALUES (1, -1)")
    assert connection.execute("SELECT count() FROM s").fetchall() == [(0,)]
