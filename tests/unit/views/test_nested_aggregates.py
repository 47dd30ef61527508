"""Views over arrays and maps, stored as simple aggregates or states and proven by recomputation."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import ViewNotProvable

pytestmark = pytest.mark.feature("views", "aggregates")

SOURCE = (
    "CREATE TABLE events (k UInt8, tag String, hits Map(String, UInt64), seen Array(UInt32)) "
    "ENGINE = MergeTree ORDER BY k"
)
TARGET = (
    "CREATE TABLE totals (k UInt8, tags SimpleAggregateFunction(groupUniqArrayArray, "
    "Array(String)), hits SimpleAggregateFunction(sumMap, Map(String, UInt64)), "
    "sum SimpleAggregateFunction(sum, UInt64), each AggregateFunction(sumForEach, Array(UInt32)), "
    "users AggregateFunction(uniqArray, Array(UInt32)), "
    "first AggregateFunction(countArgMin, Int64), both AggregateFunction(sumTuple, Tuple(UInt8, Int64)), "
    "pairs SimpleAggregateFunction(sumMap, Tuple(Array(UInt32), Array(UInt64), Array(UInt64)))) ENGINE = AggregatingMergeTree ORDER BY k"
)
QUERY = (
    "SELECT k, groupUniqArray(tag) AS tags, sumMap(hits) AS hits, sumArray(seen) AS sum, "
    "sumForEachState(seen) AS each, uniqArrayState(seen) AS users, "
    "countArgMinState(toInt64(length(seen))) AS first, sumTupleState((k, toInt64(length(seen)))) AS both, "
    "sumMap(seen, seen, seen) AS pairs FROM events GROUP BY k"
)
READ = (
    "SELECT k, tags, hits, sum, sumForEachMerge(each), uniqArrayMerge(users), countArgMinMerge(first), "
    "sumTupleMerge(both), pairs FROM totals FINAL GROUP BY k, tags, hits, sum, pairs ORDER BY k"
)
PLAIN = (
    "SELECT k, arraySort(groupUniqArray(tag)), sumMap(hits), sumArray(seen), sumForEach(seen), "
    "uniqArray(seen), countArgMin(toInt64(length(seen))), sumTuple((k, toInt64(length(seen)))), "
    "sumMap(seen, seen, seen) FROM events GROUP BY k ORDER BY k"
)


@pytest.fixture
def connection() -> Connection:
    opened = olapdb.connect()
    opened.execute("SYSTEM STOP MERGES")
    opened.execute(SOURCE)
    return opened


def test_trigger_backfill_merge_and_proof_agree(connection: Connection) -> None:
    connection.execute("INSERT INTO events VALUES (1, 'a', {'p': 1}, [1, 2]), (2, 'c', {}, [])")
    connection.execute(TARGET)
    connection.execute(f"CREATE MATERIALIZED VIEW v TO totals AS {QUERY}")
    connection.execute("INSERT INTO events VALUES (1, 'b', {'p': 2, 'q': 3}, [2, 5, 9])")
    connection.execute("SYSTEM BACKFILL VIEW v").fetchall()
    connection.execute("INSERT INTO events VALUES (1, 'a', {'q': 1}, [7]), (2, 'd', {'r': 0}, [1])")
    expected = connection.execute(PLAIN).fetchall()
    assert connection.execute(READ).fetchall() == expected
    connection.execute("OPTIMIZE TABLE totals FINAL")
    assert connection.execute(READ.replace(" FINAL", "")).fetchall() == expected
    connection.execute("SYSTEM RECONCILE VIEW v").fetchall()
    (verdict,) = connection.execute("SELECT verdict FROM system.views").fetchall()
    assert verdict == ("proven",)


def test_without_group_by_nothing_is_added_by_nothing(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE one (m SimpleAggregateFunction(sumMap, Map(String, UInt64))) "
        "ENGINE = AggregatingMergeTree ORDER BY tuple()"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW v TO one AS SELECT sumMap(hits) AS m FROM events WHERE k > 3"
    )
    for row in ("(1, '', {'p': 1}, [])", "(4, '', {'p': 2}, [])", "(2, '', {'p': 1}, [])"):
        connection.execute(f"INSERT INTO events VALUES {row}")
    assert connection.execute("SELECT m FROM one FINAL").fetchall() == [({"p": 2},)]


@pytest.mark.parametrize(
    ("column", "made"),
    [
        ("SimpleAggregateFunction(groupArrayArray, Array(String))", "groupArray(tag)"),
        ("SimpleAggregateFunction(groupUniqArrayArray, Array(String))", "groupUniqArray(2)(tag)"),
        ("SimpleAggregateFunction(sumMap, Map(String, UInt64))", "maxMap(hits)"),
        ("SimpleAggregateFunction(anyLast, String)", "anyLast(tag)"),
    ],
)
def test_what_merging_would_corrupt_is_refused(
    connection: Connection, column: str, made: str
) -> None:
    connection.execute(
        f"CREATE TABLE t (k UInt8, x {column}) ENGINE = AggregatingMergeTree ORDER BY k"
    )
    with pytest.raises(ViewNotProvable):
        connection.execute(
            f"CREATE MATERIALIZED VIEW v TO t AS SELECT k, {made} AS x FROM events GROUP BY k"
        )
