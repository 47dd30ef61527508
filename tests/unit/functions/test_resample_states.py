"""-Resample: states of other buckets do not merge, and buckets may span the whole of a type."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.functions.base import Groups

pytestmark = pytest.mark.feature("functions")


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        yield opened


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sumResampleMerge(0, 3, 1)(s) FROM (SELECT sumResampleState(0, 4, 1)(number, number)"
        " AS s FROM numbers(4))",
        "SELECT k, sumResampleMergeState(0, 3, 1)(s) FROM (SELECT 1 AS k,"
        " sumResampleState(0, 3000, 1)(number, number) AS s FROM numbers(3000)) GROUP BY k",
        "SELECT finalizeAggregation(CAST(s AS AggregateFunction(sumResample(0, 3, 1), UInt64, UInt64)))"
        " FROM (SELECT sumResampleState(0, 4, 1)(number, number) AS s FROM numbers(4))",
    ],
)
def test_states_of_other_buckets_are_refused(connection: Connection, query: str) -> None:
    with pytest.raises(olapdb.Error):
        connection.execute(query).fetchall()


def test_a_table_takes_no_states_of_other_buckets(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE t (k UInt8, s AggregateFunction(sumResample(0, 3, 1), UInt64, UInt64))"
        " ENGINE = AggregatingMergeTree ORDER BY k"
    )
    state = "sumResampleState(0, {end}, 1)(number, number)"
    with pytest.raises(olapdb.Error):
        connection.execute(f"INSERT INTO t SELECT 1, {state.format(end=1000)} FROM numbers(1000)")
    for _ in range(2):
        connection.execute(f"INSERT INTO t SELECT 1, {state.format(end=3)} FROM numbers(3)")
    connection.execute("OPTIMIZE TABLE t FINAL")
    merged = connection.execute("SELECT sumResampleMerge(0, 3, 1)(s) FROM t").fetchall()
    assert merged == [([0, 2, 4],)]


def test_buckets_may_span_all_signed_numbers(connection: Connection) -> None:
    query = (
        "SELECT countResample(-9223372036854775808, 9223372036854775807, 4611686018427387904)(x, x)"
        " FROM values('x Int64', (9223372036854775800), (-9223372036854775808), (0), (-1))"
    )
    assert connection.execute(query).fetchall() == [([1, 1, 1, 1],)]


def test_codes_beyond_the_groups_are_an_error_not_a_write_elsewhere() -> None:
    for codes in ([5], [-1]):
        with pytest.raises(IndexError):
            _ = Groups(np.array(codes, np.int64), 3).kernel_codes


@pytest.mark.parametrize(
    ("range_", "expected"),
    [
        ("(2, 9223372036854775807)", 5),
        ("(-2, 9223372036854775807)", 5),
        ("(-5, 4)", 0),
        ("(0, 2)", 0),
        ("(1, 2)", 3),
        ("(-1, 1)", 3),
    ],
)
def test_ranges_of_an_array(connection: Connection, range_: str, expected: int) -> None:
    query = f"SELECT arrayReduceInRanges('sum', [{range_}], [1, 2, 3])"
    assert connection.execute(query).fetchall() == [([expected],)]
