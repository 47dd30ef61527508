"""Which definitions are provable: each part must be a function of the source's blocks and of inputs
whose every change is reported. Any other definition is refused or unproven."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import AlterOfColumnIsForbidden, Error, TooDeepRecursion, ViewNotProvable
from olapdb.model.changes import Commit, PutObject
from olapdb.model.schema import MaterializedView
from olapdb.views.definition.judgement import functions_changed_since
from tests.unit.views.warehouse import dicts, rows

pytestmark = pytest.mark.feature("views", "reconcile", "provability")

TABLES = (
    "CREATE TABLE s (k UInt64, g String, v Int64, d Date, a Array(UInt64)) ENGINE = MergeTree ORDER BY k",
    "CREATE TABLE plain (k UInt64, n Int64) ENGINE = MergeTree ORDER BY k",
    "CREATE TABLE summing (k UInt64, n Int64) ENGINE = SummingMergeTree ORDER BY k",
    "CREATE TABLE counts (k UInt64, n UInt64) ENGINE = SummingMergeTree ORDER BY k",
    "CREATE TABLE maxima (k UInt64, m SimpleAggregateFunction(max, Int64)) ENGINE = AggregatingMergeTree ORDER BY k",
    "CREATE TABLE sums (k UInt64, n SimpleAggregateFunction(sum, Int64)) ENGINE = AggregatingMergeTree ORDER BY k",
    "CREATE TABLE states (k UInt64, u AggregateFunction(uniq, UInt64)) ENGINE = AggregatingMergeTree ORDER BY k",
    # dimensions of every engine
    "CREATE TABLE mt (k UInt64, w Int64) ENGINE = MergeTree ORDER BY k",
    "CREATE TABLE memory (k UInt64, w Int64) ENGINE = Memory",
    "CREATE TABLE log (k UInt64, w Int64) ENGINE = Log",
    "CREATE TABLE nothing (k UInt64, w Int64) ENGINE = Null",
    "CREATE TABLE repl (k UInt64, w Int64, ver UInt64) ENGINE = ReplacingMergeTree(ver) ORDER BY k",
    "CREATE TABLE spread (k UInt64, w Int64, p UInt8) ENGINE = ReplacingMergeTree PARTITION BY p ORDER BY k",
    "CREATE TABLE parted (k UInt64, w Int64) ENGINE = ReplacingMergeTree PARTITION BY k % 2 ORDER BY k",
    "CREATE TABLE summ (k UInt64, w Int64, note String) ENGINE = SummingMergeTree(w) ORDER BY k",
    "CREATE TABLE aggr (k UInt64, w SimpleAggregateFunction(max, Int64), x AggregateFunction(sum, Int64), note SimpleAggregateFunction(anyLast, String)) ENGINE = AggregatingMergeTree ORDER BY k",
    "CREATE TABLE coll (k UInt64, w Int64, sign Int8) ENGINE = CollapsingMergeTree(sign) ORDER BY k",
    "CREATE TABLE vers (k UInt64, w Int64, sign Int8, ver UInt64) ENGINE = VersionedCollapsingMergeTree(sign, ver) ORDER BY k",
    "CREATE TABLE prices (k UInt64, f Float64, i Int64) ENGINE = MergeTree ORDER BY k",
    "CREATE TABLE scaled (k UInt64, x Float64) ENGINE = MergeTree ORDER BY k",
    "CREATE TABLE texts (k UInt64, x String) ENGINE = MergeTree ORDER BY k",
    "CREATE TABLE narrow (k UInt64, x Float32) ENGINE = MergeTree ORDER BY k",
    "CREATE TABLE spelled (k UInt64, x Float64, y String MATERIALIZED toString(x)) ENGINE = MergeTree ORDER BY k",
    "CREATE TABLE tenths (k UInt64, x Float64) ENGINE = MergeTree PARTITION BY toUInt64(x * 10) ORDER BY k",
    "CREATE TABLE by_x (x Float64, n Int64) ENGINE = SummingMergeTree ORDER BY x",
    "CREATE TABLE totals (k UInt64, f Float64) ENGINE = SummingMergeTree ORDER BY k",
    "CREATE TABLE means (k UInt64, f AggregateFunction(avg, Float64)) ENGINE = AggregatingMergeTree ORDER BY k",
    "CREATE TABLE nullable_s (k UInt64, v Nullable(Int64)) ENGINE = MergeTree ORDER BY k",
    "CREATE TABLE nullable_maxima (k UInt64, n SimpleAggregateFunction(max, Nullable(Int64))) ENGINE = AggregatingMergeTree ORDER BY k",
    "CREATE TABLE unsigned_maxima (k UInt64, n SimpleAggregateFunction(max, UInt64)) ENGINE = AggregatingMergeTree ORDER BY k",
    "CREATE VIEW top_of_mt AS SELECT k, w FROM mt LIMIT 1",
    "CREATE VIEW dice AS SELECT k, rand() AS w FROM mt",
    "CREATE TABLE dicey (k UInt64, w Int64, r UInt64 ALIAS rand()) ENGINE = MergeTree ORDER BY k",
)


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        for statement in TABLES:
            opened.execute(statement)
        yield opened


def judged(connection: Connection, target: str, query: str) -> tuple[str, str]:
    """Create a view of the query, return its verdict and reason, and drop it."""
    connection.execute(f"CREATE MATERIALIZED VIEW judged TO {target} AS {query}")
    try:
        status = dicts(connection, "SELECT * FROM system.views WHERE name = 'judged'")[0]
        return str(status["verdict"]), str(status["reason"])
    finally:
        connection.execute("DROP VIEW judged")


PROVABLE = [
    ("plain", "SELECT s.k AS k, w AS n FROM s JOIN mt ON s.k = mt.k"),
    ("plain", "SELECT s.k AS k, w AS n FROM s JOIN memory AS m ON s.k = m.k"),
    ("plain", "SELECT s.k AS k, w AS n FROM s JOIN log AS m ON s.k = m.k"),
    ("plain", "SELECT s.k AS k, w AS n FROM s LEFT JOIN nothing AS m ON s.k = m.k"),
    ("plain", "SELECT s.k AS k, w AS n FROM s JOIN repl FINAL ON s.k = repl.k"),
    ("plain", "SELECT s.k AS k, w AS n FROM s JOIN parted FINAL ON s.k = parted.k"),
    ("plain", "SELECT s.k AS k, w AS n FROM s JOIN summ FINAL ON s.k = summ.k"),
    ("plain", "SELECT s.k AS k, w AS n FROM s JOIN aggr FINAL ON s.k = aggr.k"),
    ("plain", "SELECT k, v AS n FROM s WHERE k IN (SELECT k FROM repl)"),
    ("plain", "SELECT k, v AS n FROM s WHERE k IN (SELECT k FROM aggr WHERE k > 3)"),
    ("plain", "SELECT s.k AS k, v AS n FROM s LEFT SEMI JOIN repl ON s.k = repl.k"),
    (
        "plain",
        "SELECT s.k AS k, v AS n FROM s JOIN (SELECT DISTINCT k FROM repl) AS r ON s.k = r.k",
    ),
    (
        "plain",
        "SELECT s.k AS k, w AS n FROM s JOIN (SELECT k, max(w) AS w FROM aggr GROUP BY k) AS r ON s.k = r.k",
    ),
    (
        "plain",
        "SELECT s.k AS k, w AS n FROM s JOIN (SELECT k, sumMerge(x) AS w FROM aggr GROUP BY k) AS r ON s.k = r.k",
    ),
    ("plain", "SELECT k, v AS n FROM s WHERE v > (SELECT sum(w) FROM summ)"),
    ("plain", "SELECT k, v AS n FROM s WHERE v > (SELECT max(w) FROM mt LIMIT 1)"),
    ("plain", "SELECT k, v AS n FROM s WHERE k IN (SELECT k FROM mt ORDER BY k LIMIT 3)"),
    ("plain", "SELECT k, v AS n FROM s WHERE EXISTS (SELECT 1 FROM mt WHERE w > 3)"),
    ("plain", "SELECT k, v AS n FROM s WHERE k IN (SELECT k FROM mt ORDER BY w LIMIT 1 WITH TIES)"),
    (
        "plain",
        "SELECT k, v AS n FROM s WHERE k IN (SELECT k FROM mt GROUP BY k WITH CUBE ORDER BY k LIMIT 2)",
    ),
    (
        "plain",
        "SELECT s.k AS k, w AS n FROM s JOIN (SELECT k, max(w) AS w FROM mt GROUP BY k ORDER BY k LIMIT 9) AS r ON s.k = r.k",
    ),
    ("plain", "SELECT k, v AS n FROM s WHERE k IN (SELECT number FROM numbers(10))"),
    ("plain", "SELECT k, v AS n FROM s WHERE v = (SELECT any(w) FROM mt)"),
    ("summing", "SELECT k, sum(w) AS n FROM s JOIN repl FINAL ON s.k = repl.k GROUP BY k"),
    (
        "counts",
        "SELECT a.k AS k, c AS n FROM (SELECT k, count() AS c FROM s GROUP BY k) AS a JOIN mt ON a.k = mt.k WHERE mt.w > 1",
    ),
    # finished values that merge as the states behind them do
    ("summing", "SELECT k, sumMerge(x) AS n FROM aggr GROUP BY k"),
    ("sums", "SELECT k, sumMerge(x) AS n FROM aggr GROUP BY k"),
    # what aggregates of no rows write changes nothing
    ("sums", "SELECT k, sumIf(v, v > 0) AS n FROM s GROUP BY k"),
    ("nullable_maxima", "SELECT k, maxIf(v, v > 0) AS n FROM nullable_s GROUP BY k"),
    ("unsigned_maxima", "SELECT k, maxIf(toUInt64(abs(v)), v > 0) AS n FROM s GROUP BY k"),
    # sums of stored floats that decide nothing
    ("scaled", "SELECT k, v * (SELECT sum(f) FROM prices) AS x FROM s"),
    (
        "scaled",
        "SELECT s.k AS k, p.x / 2 AS x FROM s JOIN (SELECT k, avg(f) AS x FROM prices GROUP BY k) AS p ON s.k = p.k",
    ),
    ("scaled", "SELECT k, (SELECT sum(f) FROM prices) / 7 AS x FROM s"),
    ("scaled", "SELECT s.k AS k, f + 1 AS x FROM s JOIN totals FINAL ON s.k = totals.k"),
    (
        "scaled",
        "SELECT k, (SELECT max(x) FROM (SELECT k, avg(f) AS x FROM prices GROUP BY k)) AS x FROM s",
    ),
    ("scaled", "SELECT k, v * (SELECT f FROM prices ORDER BY f LIMIT 1) + 1 AS x FROM s"),
    ("plain", "SELECT k, v AS n FROM s WHERE v > (SELECT f FROM prices ORDER BY f LIMIT 1)"),
    ("texts", "SELECT k, (SELECT toString(min(f)) FROM prices) AS x FROM s"),
    (
        "texts",
        "SELECT k, (SELECT max(toString(f)) FROM (SELECT f FROM prices ORDER BY f LIMIT 1 WITH TIES)) AS x FROM s",
    ),
    ("plain", "SELECT k, v AS n FROM s WHERE v > (SELECT avg(i) FROM prices)"),
    ("plain", "SELECT k, v AS n FROM s WHERE v > (SELECT max(f) FROM prices)"),
    # sources that merge their rows
    ("summing", "SELECT k, sum(w) AS n FROM summ GROUP BY k"),
    ("summing", "SELECT k, sumIf(w, k > 3) AS n FROM summ GROUP BY k"),
    ("maxima", "SELECT k, max(w) AS m FROM aggr GROUP BY k"),
    ("states", "SELECT k, uniqState(k) AS u FROM repl GROUP BY k"),
]


@pytest.mark.parametrize(("target", "query"), PROVABLE)
def test_provable(connection: Connection, target: str, query: str) -> None:
    assert judged(connection, target, query) == ("covered", "")


MARKED = [
    # merges change which rows a dimension has
    ("plain", "SELECT s.k AS k, w AS n FROM s JOIN repl ON s.k = repl.k", "FINAL"),
    ("plain", "SELECT s.k AS k, w AS n FROM s JOIN summ ON s.k = summ.k", "FINAL"),
    ("plain", "SELECT s.k AS k, w AS n FROM s JOIN aggr ON s.k = aggr.k", "FINAL"),
    ("plain", "SELECT s.k AS k, w AS n FROM s JOIN coll ON s.k = coll.k", "default.coll"),
    ("plain", "SELECT s.k AS k, w AS n FROM s JOIN spread FINAL ON s.k = spread.k", "partitions"),
    ("plain", "SELECT s.k AS k, w AS n FROM s JOIN coll FINAL ON s.k = coll.k", "cancelled"),
    ("plain", "SELECT s.k AS k, w AS n FROM s JOIN vers FINAL ON s.k = vers.k", "cancelled"),
    ("plain", "SELECT s.k AS k, length(note) AS n FROM s JOIN summ FINAL ON s.k = summ.k", "note"),
    ("plain", "SELECT s.k AS k, length(note) AS n FROM s JOIN aggr FINAL ON s.k = aggr.k", "note"),
    ("plain", "SELECT k, v AS n FROM s WHERE k IN (SELECT k FROM summ)", "FINAL"),
    ("plain", "SELECT k, v AS n FROM s WHERE k IN (SELECT k FROM repl WHERE w > 1)", "FINAL"),
    ("plain", "SELECT k, v AS n FROM s WHERE v > (SELECT count() FROM repl)", "FINAL"),
    (
        "plain",
        "SELECT s.k AS k, w AS n FROM s JOIN (SELECT k, sum(w) AS w FROM summ GROUP BY k) AS r ON s.k = r.k",
        "FINAL",
    ),
    (
        "plain",
        "SELECT k, v AS n FROM s WHERE v > (SELECT max(n) FROM (SELECT k, count() AS n FROM aggr GROUP BY k))",
        "FINAL",
    ),
    ("summing", "SELECT k, sum(w) AS n FROM s JOIN repl ON s.k = repl.k GROUP BY k", "FINAL"),
    # rows that depend on their order
    ("plain", "SELECT k, v AS n FROM s WHERE k IN (SELECT k FROM mt LIMIT 3)", "LIMIT"),
    ("plain", "SELECT k, v AS n FROM s WHERE k IN (SELECT k FROM mt ORDER BY w LIMIT 3)", "LIMIT"),
    ("plain", "SELECT k, v AS n FROM s WHERE k IN (SELECT k FROM top_of_mt)", "LIMIT"),
    # rows of two sets may have equal keys: the rolled-up 0 and a real one
    (
        "plain",
        "SELECT k, v + (SELECT max(w) FROM mt GROUP BY k WITH ROLLUP ORDER BY k LIMIT 1) AS n FROM s",
        "LIMIT",
    ),
    (
        "plain",
        "SELECT k, v + (SELECT max(w) FROM mt GROUP BY GROUPING SETS ((k), ()) ORDER BY k LIMIT 1) AS n FROM s",
        "LIMIT",
    ),
    (
        "plain",
        "SELECT k, v AS n FROM s WHERE k IN (SELECT k FROM mt ORDER BY w LIMIT 1 BY w)",
        "LIMIT BY",
    ),
    ("plain", "SELECT k, v AS n FROM s WHERE k IN (SELECT DISTINCT ON (w) k FROM mt)", "LIMIT BY"),
    ("plain", "SELECT k, v AS n FROM s WHERE v = (SELECT anyLast(w) FROM mt)", "anyLast"),
    (
        "plain",
        "SELECT k, v AS n FROM s WHERE v = (SELECT length(groupArray(w)) FROM mt)",
        "groupArray",
    ),
    (
        "plain",
        "SELECT s.k AS k, r.w AS n FROM s JOIN (SELECT mt.k AS k, log.w AS w FROM mt ANY JOIN log ON mt.k = log.k) AS r ON s.k = r.k",
        "ANY",
    ),
    (
        "plain",
        "SELECT k, v AS n FROM s WHERE k IN (SELECT k FROM mt WHERE _part_offset = 0)",
        "merges",
    ),
    # the last bits of a sum of floats
    ("plain", "SELECT k, v AS n FROM s WHERE v > (SELECT sum(f) FROM prices)", "floats"),
    ("plain", "SELECT k, toInt64((SELECT avg(f) FROM prices)) AS n FROM s", "toInt64"),
    (
        "plain",
        "SELECT k, v AS n FROM s WHERE k IN (SELECT k FROM prices GROUP BY k HAVING sum(f) > 1)",
        "floats",
    ),
    (
        "plain",
        "SELECT s.k AS k, v AS n FROM s JOIN (SELECT k, sum(f) AS x FROM prices GROUP BY k) AS p ON s.v = p.x",
        "JOIN",
    ),
    ("plain", "SELECT k, v AS n FROM s WHERE v > (SELECT stddevPop(i) FROM prices)", "floats"),
    ("scaled", "SELECT k, v / (SELECT sum(f) FROM prices) AS x FROM s", "divide"),
    ("texts", "SELECT k, (SELECT sum(f) FROM prices) AS x FROM s", "column x String"),
    ("narrow", "SELECT k, (SELECT sum(f) FROM prices) AS x FROM s", "column x Float32"),
    ("narrow", "SELECT k, toFloat32((SELECT sum(f) FROM prices)) AS x FROM s", "toFloat32"),
    ("spelled", "SELECT k, (SELECT sum(f) FROM prices) AS x FROM s", "MATERIALIZED of y"),
    ("tenths", "SELECT k, (SELECT sum(f) FROM prices) AS x FROM s", "PARTITION BY of"),
    ("by_x", "SELECT (SELECT sum(f) FROM prices) AS x, v AS n FROM s", "ORDER BY of"),
    ("plain", "SELECT k, v AS n FROM s WHERE v > (SELECT max(f) FROM totals FINAL)", "floats"),
    (
        "texts",
        "SELECT s.k AS k, toString(f) AS x FROM s JOIN totals FINAL ON s.k = totals.k",
        "toString",
    ),
    (
        "texts",
        "SELECT s.k AS k, toString(finalizeAggregation(f)) AS x FROM s JOIN means FINAL ON s.k = means.k",
        "toString",
    ),
    (
        "scaled",
        "SELECT k, (SELECT argMax(f, t) FROM (SELECT f, sum(f) AS t FROM prices GROUP BY f)) AS x FROM s",
        "argMax",
    ),
    (
        "scaled",
        "SELECT k, (SELECT sumDistinct(x) FROM (SELECT k, sum(f) AS x FROM prices GROUP BY k)) AS x FROM s",
        "sumDistinct",
    ),
    # zeros of two signs
    (
        "texts",
        "SELECT k, (SELECT toString(f) FROM prices ORDER BY f LIMIT 1) AS x FROM s",
        "tells 0 from -0",
    ),
    (
        "scaled",
        "SELECT k, 1 / (SELECT f FROM prices ORDER BY f LIMIT 1) AS x FROM s",
        "tells 0 from -0",
    ),
    (
        "plain",
        "SELECT s.k AS k, v AS n FROM s JOIN (SELECT f FROM prices ORDER BY f LIMIT 1) AS p ON s.v = p.f",
        "tells 0 from -0",
    ),
    # functions that give another value at each call, wherever they occur
    ("plain", "SELECT k, hasColumnInTable('default', 'mt', 'w') AS n FROM s", "hasColumnInTable()"),
    ("plain", "SELECT s.k AS k, dice.w AS n FROM s JOIN dice ON s.k = dice.k", "rand()"),
    ("plain", "SELECT s.k AS k, dicey.r AS n FROM s JOIN dicey ON s.k = dicey.k", "rand()"),
    ("plain", "SELECT k, arrayShuffle(a, 42)[1] AS n FROM s", "arrayShuffle()"),
    ("plain", "SELECT k, arrayPartialShuffle(a, 1, 42)[1] AS n FROM s", "arrayPartialShuffle()"),
    ("plain", "WITH now() AS t SELECT k, toInt64(t) AS n FROM s", "now()"),
    # sources whose merges drop rows
    ("sums", "SELECT k, sum(w) AS n FROM summ GROUP BY k", "zero"),
    ("summing", "SELECT k, sumIf(w, w > 3) AS n FROM summ GROUP BY k", "sumIf"),
    ("summing", "SELECT k, sumIf(w, note = 'a') AS n FROM summ GROUP BY k", "sumIf"),
    ("states", "SELECT k, uniqState(k) AS u FROM summ GROUP BY k", "summ"),
    ("summing", "SELECT k, sum(w * sign) AS n FROM coll GROUP BY k", "coll"),
    ("summing", "SELECT k, sum(sign) AS n FROM coll GROUP BY k", "coll"),
    ("counts", "SELECT k, count() AS n FROM repl GROUP BY k", "repl"),
    (
        "summing",
        "SELECT summ.k AS k, sum(summ.w) AS n FROM summ JOIN mt ON summ.w = mt.w GROUP BY k",
        "joins",
    ),
]


@pytest.mark.parametrize(("target", "query", "says"), MARKED)
def test_unproven(connection: Connection, target: str, query: str, says: str) -> None:
    verdict, reason = judged(connection, target, query)
    assert verdict == "unproven"
    assert says in reason


TARGETS_REFUSED = [
    # computed from aggregated columns
    ("(k UInt64, n Int64, big UInt8 DEFAULT n > 5) ENGINE = SummingMergeTree(n) ORDER BY k", "big"),
    (
        "(k UInt64, n Int64, twice Int64 MATERIALIZED n * n) ENGINE = SummingMergeTree ORDER BY k",
        "twice",
    ),
    (
        "(k UInt64, n SimpleAggregateFunction(sum, Int64), t SimpleAggregateFunction(max, String) DEFAULT toString(n)) ENGINE = AggregatingMergeTree ORDER BY k",
        "DEFAULT",
    ),
    (
        "(k UInt64, n Int64 EPHEMERAL, t SimpleAggregateFunction(max, UInt8) DEFAULT n > 5) ENGINE = AggregatingMergeTree ORDER BY k",
        "column t",
    ),
    (
        "(k UInt64, n Int64, al Int64 ALIAS n + 1, t Int64 DEFAULT al * 2) ENGINE = SummingMergeTree(n) ORDER BY k",
        "column t",
    ),
    ("(k UInt64, n Int64, blocks UInt64 DEFAULT 1) ENGINE = SummingMergeTree ORDER BY k", "blocks"),
    (
        "(k UInt64, n Int64 EPHEMERAL, ver Int64 DEFAULT n) ENGINE = ReplacingMergeTree(ver) ORDER BY k",
        "column ver",
    ),
    # keys, TTLs and constraints over aggregated columns
    ("(k UInt64, n Int64) ENGINE = SummingMergeTree PARTITION BY n % 2 ORDER BY k", "PARTITION BY"),
    (
        "(k UInt64, n SimpleAggregateFunction(sum, Int64), p SimpleAggregateFunction(any, Int64) MATERIALIZED toInt64(n) % 2) ENGINE = AggregatingMergeTree PARTITION BY toInt64(p) ORDER BY k",
        "",
    ),
    ("(k UInt64, n Int64) ENGINE = SummingMergeTree ORDER BY (k, n)", "ORDER BY"),
    ("(k UInt64, n Int64) ENGINE = ReplacingMergeTree(n) ORDER BY k", "arbitrary"),
    ("(k UInt64, n Int8) ENGINE = CollapsingMergeTree(n) ORDER BY k", ""),
    (
        "(k UInt64, n Int64) ENGINE = SummingMergeTree ORDER BY k TTL toDateTime(0) + toIntervalSecond(n)",
        "TTL",
    ),
    (
        "(k UInt64, n Int64, CONSTRAINT small CHECK n < 100) ENGINE = SummingMergeTree ORDER BY k",
        "small",
    ),
]


@pytest.mark.parametrize(("table", "says"), TARGETS_REFUSED)
def test_targets_that_a_cut_into_blocks_would_change_are_refused(
    connection: Connection, table: str, says: str
) -> None:
    connection.execute(f"CREATE TABLE other {table}")
    try:
        with pytest.raises(ViewNotProvable) as caught:
            judged(connection, "other", "SELECT k, toInt64(sum(v)) AS n FROM s GROUP BY k")
        assert says in str(caught.value)
        assert caught.value.hint
    finally:
        connection.execute("DROP TABLE other")


def test_a_zero_sum_would_take_another_columns_value_with_it(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE other (k UInt64, n Int64, m SimpleAggregateFunction(max, Int64))"
        " ENGINE = SummingMergeTree(n) ORDER BY k"
    )
    try:
        with pytest.raises(ViewNotProvable, match="zero"):
            judged(connection, "other", "SELECT k, sum(v) AS n, max(v) AS m FROM s GROUP BY k")
    finally:
        connection.execute("DROP TABLE other")


TARGETS_PROVABLE = [
    "(k UInt64, n Int64, odd UInt8 DEFAULT k % 2) ENGINE = SummingMergeTree(n) ORDER BY k",
    "(k UInt64, n Int64, t String MATERIALIZED toString(k)) ENGINE = SummingMergeTree ORDER BY k",
    "(k UInt64, n Int64, twice Int64 ALIAS n * 2) ENGINE = SummingMergeTree ORDER BY k",
    "(k UInt64, n Int64, spare Int64) ENGINE = SummingMergeTree ORDER BY k",
    "(k UInt64, n Int64) ENGINE = SummingMergeTree PARTITION BY k % 4 ORDER BY k",
    "(k UInt64, n Int64) ENGINE = SummingMergeTree ORDER BY k TTL toDateTime('2100-01-01') + toIntervalSecond(k)",
    "(k UInt64, n Int64, CONSTRAINT small CHECK k < 100) ENGINE = SummingMergeTree ORDER BY k",
]


@pytest.mark.parametrize("table", TARGETS_PROVABLE)
def test_targets_that_are_functions_of_the_key_are_provable(
    connection: Connection, table: str
) -> None:
    connection.execute(f"CREATE TABLE other {table}")
    try:
        query = "SELECT k, toInt64(sum(v)) AS n FROM s GROUP BY k"
        assert judged(connection, "other", query) == ("covered", "")
    finally:
        connection.execute("DROP TABLE other")


@pytest.mark.parametrize("kind", ["DEFAULT", "MATERIALIZED"])
def test_a_target_that_fills_a_column_with_another_value_each_time_is_unproven(
    connection: Connection, kind: str
) -> None:
    connection.execute(
        f"CREATE TABLE other (k UInt64, n Int64, r UInt64 {kind} rand()) ENGINE = MergeTree ORDER BY k"
    )
    try:
        verdict, reason = judged(connection, "other", "SELECT k, v AS n FROM s")
        assert (verdict, "rand()" in reason) == ("unproven", True)
    finally:
        connection.execute("DROP TABLE other")


def test_a_condition_on_an_aggregate_above_a_join_is_a_having(connection: Connection) -> None:
    grouped = "(SELECT k, count() AS c FROM s GROUP BY k) AS a"
    for query in (
        f"SELECT a.k AS k, c AS n FROM {grouped} JOIN mt ON a.k = mt.k WHERE c > 1",
        f"SELECT a.k AS k, c AS n FROM {grouped} JOIN mt ON a.c = mt.w",
    ):
        with pytest.raises(ViewNotProvable):
            judged(connection, "counts", query)


# --- circles --------------------------------------------------------------------------------------


def test_a_view_that_reads_its_own_target_is_refused(connection: Connection) -> None:
    connection.execute("CREATE VIEW over_plain AS SELECT k FROM plain")
    try:
        for query in (
            "SELECT k, v AS n FROM s WHERE k NOT IN (SELECT k FROM plain)",
            "SELECT k, v AS n FROM s WHERE k NOT IN (SELECT k FROM over_plain)",
            "SELECT s.k AS k, v AS n FROM s LEFT JOIN plain ON s.k = plain.k",
            "SELECT k, v + (SELECT sum(n) FROM plain) AS n FROM s",
        ):
            with pytest.raises(TooDeepRecursion, match="circle"):
                judged(connection, "plain", query)
    finally:
        connection.execute("DROP VIEW over_plain")


def test_a_circle_through_dimensions_is_refused_from_either_side(connection: Connection) -> None:
    for name in ("s2", "upper", "lower"):
        connection.execute(f"CREATE TABLE {name} (k UInt64, n Int64) ENGINE = MergeTree ORDER BY k")
    # upper -> lower by its INSERTs, lower -> upper by a join
    connection.execute("CREATE MATERIALIZED VIEW down TO lower AS SELECT k, n FROM upper")
    try:
        joins = "SELECT s2.k AS k, lower.n AS n FROM s2 JOIN lower ON s2.k = lower.k"
        with pytest.raises(TooDeepRecursion, match="circle"):
            judged(connection, "upper", joins)
        connection.execute("DROP VIEW down")
        connection.execute(f"CREATE MATERIALIZED VIEW up TO upper AS {joins}")
        with pytest.raises(TooDeepRecursion, match="circle"):
            judged(connection, "lower", "SELECT k, n FROM upper")
        # A circle through two joins of two sources.
        with pytest.raises(TooDeepRecursion, match="circle"):
            judged(connection, "lower", "SELECT s.k AS k, n FROM s JOIN upper ON s.k = upper.k")
        with pytest.raises(TooDeepRecursion, match="circle"):
            connection.execute(
                "ALTER TABLE up MODIFY QUERY SELECT s2.k AS k, upper.n AS n FROM s2 JOIN upper USING k"
            )
        connection.execute("DROP VIEW up")
    finally:
        for name in ("s2", "upper", "lower"):
            connection.execute(f"DROP TABLE {name}")


# --- what an ALTER changes ------------------------------------------------------------------------


@pytest.fixture
def altered() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        for statement in (
            "CREATE TABLE s (k UInt64, v Int64) ENGINE = MergeTree ORDER BY k",
            "CREATE TABLE d (k UInt64, w Int64) ENGINE = MergeTree ORDER BY k",
            "CREATE TABLE t (k UInt64, n Int64) ENGINE = MergeTree ORDER BY k",
            "CREATE TABLE total (k UInt64, n Int64) ENGINE = SummingMergeTree ORDER BY k",
            "CREATE MATERIALIZED VIEW v TO t AS SELECT s.k AS k, w AS n FROM s JOIN d ON s.k = d.k",
            "CREATE MATERIALIZED VIEW sum_v TO total AS SELECT k, sum(v) AS n FROM s GROUP BY k",
            "INSERT INTO d VALUES (1, 10)",
            "INSERT INTO s VALUES (1, 5)",
        ):
            opened.execute(statement)
        yield opened


def health(connection: Connection, name: str = "v") -> tuple[str, str]:
    """Return the view's verdict and reason."""
    status = dicts(connection, f"SELECT * FROM system.views WHERE name = '{name}'")[0]
    return str(status["verdict"]), str(status["reason"])


def test_a_random_column_of_the_target_ends_the_promise_and_a_replay_brings_it_back(
    altered: Connection,
) -> None:
    altered.execute("ALTER TABLE t ADD COLUMN r UInt64 DEFAULT rand()")
    verdict, reason = health(altered)
    assert (verdict, "rand()" in reason) == ("unproven", True)
    altered.execute("INSERT INTO s VALUES (1, 6)")
    altered.execute("ALTER TABLE t DROP COLUMN r")
    # Rows that were made meanwhile are not trusted.
    assert health(altered)[0] == "stale"
    altered.execute("SYSTEM REPLAY VIEW v STALE")
    altered.execute("SYSTEM RECONCILE VIEW v")
    assert health(altered) == ("proven", "")


def test_a_default_that_older_parts_take_at_each_read_ends_the_promise(altered: Connection) -> None:
    altered.execute("ALTER TABLE d ADD COLUMN r Int64 DEFAULT toInt64(rand())")
    assert health(altered)[0] == "covered"  # no view reads the column yet
    altered.execute(
        "ALTER TABLE v MODIFY QUERY SELECT s.k AS k, d.r AS n FROM s JOIN d ON s.k = d.k"
    )
    verdict, reason = health(altered)
    assert (verdict, "rand()" in reason, "column r" in reason) == ("unproven", True, True)


def test_the_same_default_is_a_value_once_the_parts_hold_it(altered: Connection) -> None:
    altered.execute("ALTER TABLE d ADD COLUMN r Int64 DEFAULT toInt64(rand())")
    altered.execute("ALTER TABLE d MATERIALIZE COLUMN r")
    altered.execute(
        "ALTER TABLE v MODIFY QUERY SELECT s.k AS k, d.r AS n FROM s JOIN d ON s.k = d.k"
    )
    altered.execute("SYSTEM REPLAY VIEW v STALE")
    altered.execute("SYSTEM RECONCILE VIEW v")
    assert health(altered) == ("proven", "")


def test_a_default_that_is_random_from_now_on_is_seen_where_parts_lack_the_column(
    altered: Connection,
) -> None:
    altered.execute("ALTER TABLE d ADD COLUMN r Int64 DEFAULT 7")
    altered.execute(
        "ALTER TABLE v MODIFY QUERY SELECT s.k AS k, d.r AS n FROM s JOIN d ON s.k = d.k"
    )
    altered.execute("SYSTEM REPLAY VIEW v STALE")
    assert health(altered)[0] == "covered"
    altered.execute("ALTER TABLE d MODIFY COLUMN r Int64 DEFAULT toInt64(rand())")
    assert health(altered)[0] == "unproven"


@pytest.mark.parametrize(
    "action",
    [
        "ADD COLUMN big UInt8 MATERIALIZED n > 5",
        "ADD CONSTRAINT small CHECK n < 100",
        "MODIFY TTL toDateTime(0) + toIntervalSecond(n)",
    ],
)
def test_an_alter_that_would_make_a_merging_target_wrong_is_refused(
    altered: Connection, action: str
) -> None:
    with pytest.raises(AlterOfColumnIsForbidden) as caught:
        altered.execute(f"ALTER TABLE total {action}")
    assert "sum_v" in str(caught.value)
    assert health(altered, "sum_v")[0] == "covered"


def test_a_check_that_is_added_later_is_asked_of_new_rows_only(altered: Connection) -> None:
    altered.execute("ALTER TABLE t ADD CONSTRAINT later CHECK n < 10")
    altered.execute("SYSTEM RECONCILE VIEW v")
    assert health(altered) == ("proven", "")
    altered.execute("ALTER TABLE d UPDATE w = 20 WHERE k = 1")
    altered.execute("SYSTEM REPLAY VIEW v STALE")
    assert rows(altered, "SELECT k, n FROM t") == [(1, 20)]
    with pytest.raises(Error, match="later"):
        altered.execute("INSERT INTO s VALUES (1, 5)")
    altered.execute("SYSTEM RECONCILE VIEW v")
    assert health(altered) == ("proven", "")


def test_a_dimension_replaced_by_a_merging_one_ends_the_promise(altered: Connection) -> None:
    altered.execute(
        "CREATE OR REPLACE TABLE d (k UInt64, w Int64) ENGINE = ReplacingMergeTree ORDER BY k"
        " AS SELECT toUInt64(1) AS k, toInt64(10) AS w"
    )
    verdict, reason = health(altered)
    assert (verdict, "FINAL" in reason) == ("unproven", True)
    altered.execute(
        "CREATE OR REPLACE TABLE d (k UInt64, w Int64) ENGINE = MergeTree ORDER BY k"
        " AS SELECT toUInt64(1) AS k, toInt64(10) AS w"
    )
    assert health(altered)[0] == "stale"
    altered.execute("SYSTEM REPLAY VIEW v STALE")
    altered.execute("SYSTEM RECONCILE VIEW v")
    assert health(altered) == ("proven", "")


def test_an_alter_that_changes_nothing_of_it_leaves_the_promise(altered: Connection) -> None:
    altered.execute("SYSTEM RECONCILE VIEW v")
    altered.execute("ALTER TABLE s ADD COLUMN seen DateTime DEFAULT now()")
    altered.execute("ALTER TABLE d ADD COLUMN note String")
    assert health(altered)[0] in ("covered", "proven")
    altered.execute("INSERT INTO s (k, v) VALUES (1, 7)")
    assert health(altered)[0] == "covered"


# --- FINAL dimensions -----------------------------------------------------------------------------


def test_a_new_version_of_a_row_reaches_what_was_made_with_the_old_one() -> None:
    with olapdb.connect() as connection:
        for statement in (
            "CREATE TABLE s (k UInt64, v Int64) ENGINE = MergeTree ORDER BY k",
            "CREATE TABLE d (k UInt64, w Int64, ver UInt64) ENGINE = ReplacingMergeTree(ver) ORDER BY k",
            "CREATE TABLE t (k UInt64, n Int64) ENGINE = MergeTree PARTITION BY k ORDER BY k",
            "INSERT INTO d VALUES (1, 10, 1), (2, 20, 1)",
            "CREATE MATERIALIZED VIEW v TO t AS SELECT s.k AS k, w AS n FROM s JOIN d FINAL ON s.k = d.k",
            "INSERT INTO s VALUES (1, 0), (2, 0)",
            "INSERT INTO d VALUES (1, 11, 2), (2, 0, 0)",
        ):
            connection.execute(statement)
        stale = dicts(connection, "SELECT * FROM system.view_invalidations WHERE view = 'v'")
        assert [row["partition_id"] for row in stale] == ["1"]  # key 2 keeps its newer version
        connection.execute("OPTIMIZE TABLE d FINAL")
        connection.execute("SYSTEM REPLAY VIEW v STALE")
        connection.execute("SYSTEM RECONCILE VIEW v")
        assert health(connection) == ("proven", "")
        assert rows(connection, "SELECT k, n FROM t ORDER BY k") == [(1, 11), (2, 20)]


# --- EXPLAIN VIEW ---------------------------------------------------------------------------------


def test_explain_view_says_of_each_part_why(connection: Connection) -> None:
    connection.execute(
        "CREATE MATERIALIZED VIEW explained TO summing AS"
        " SELECT k, sum(w) AS n FROM s JOIN repl ON s.k = repl.k GROUP BY k"
    )
    try:
        found = dicts(connection, "EXPLAIN VIEW explained")
        assert {tuple(row) for row in found} == {("item", "provable", "because", "fix")}
        wrong = [row for row in found if not row["provable"]]
        assert ["default.repl" in str(row["item"]) for row in wrong] == [True]
        assert any("default.s" in str(row["item"]) and row["provable"] for row in found)
        assert any("column n" in str(row["item"]) and row["provable"] for row in found)
    finally:
        connection.execute("DROP VIEW explained")


def test_explain_create_materialized_view_makes_nothing(connection: Connection) -> None:
    found = dicts(
        connection,
        "EXPLAIN VIEW CREATE MATERIALIZED VIEW idea TO summing AS SELECT k, uniq(v) AS n FROM s GROUP BY k",
    )
    wrong = [row for row in found if not row["provable"]]
    assert any("uniq" in str(row["because"]) for row in wrong)
    assert rows(connection, "SELECT count() FROM system.views WHERE name = 'idea'") == [(0,)]
    with pytest.raises(Error):
        connection.execute("EXPLAIN VIEW s")


def test_merges_decide_between_rows_of_one_key_in_two_partitions(connection: Connection) -> None:
    """This is why FINAL alone does not make such a dimension provable."""
    for p, w in ((1, 1), (2, 2), (1, 3)):
        connection.execute(f"INSERT INTO spread VALUES (1, {w}, {p})")
    before = rows(connection, "SELECT w FROM spread FINAL")
    connection.execute("OPTIMIZE TABLE spread FINAL")
    assert rows(connection, "SELECT w FROM spread FINAL") != before


# --- what merges change, as a reader sees it ------------------------------------------------------


def test_sums_of_a_source_that_drops_zeros_stay_right_in_a_target_that_drops_them_too() -> None:
    with olapdb.connect() as connection:
        for statement in (
            "CREATE TABLE s (k UInt64, g UInt64, v Int64) ENGINE = SummingMergeTree(v) ORDER BY (k, g)",
            "CREATE TABLE t (k UInt64, n Int64) ENGINE = SummingMergeTree ORDER BY k",
            "CREATE TABLE u (k UInt64, n Int64) ENGINE = SummingMergeTree ORDER BY k",
            "CREATE MATERIALIZED VIEW v TO t AS SELECT k, sum(v) AS n FROM s GROUP BY k",
            "CREATE MATERIALIZED VIEW w TO u AS SELECT k, sum(n) AS n FROM t GROUP BY k",
            "INSERT INTO s VALUES (1, 1, 5), (2, 1, 0), (3, 1, 7)",
            "INSERT INTO s VALUES (1, 1, -5), (3, 2, -7), (4, 1, 2)",
            "OPTIMIZE TABLE s FINAL",
            "OPTIMIZE TABLE t FINAL",
            "SYSTEM RECONCILE VIEW v",
            "SYSTEM RECONCILE VIEW w",
        ):
            connection.execute(statement)
        assert (health(connection, "v"), health(connection, "w")) == (("proven", ""),) * 2
        assert rows(connection, "SELECT k, n FROM u FINAL ORDER BY k") == [(4, 2)]


def test_a_group_that_a_summing_source_dropped_is_why_a_view_is_unproven() -> None:
    with olapdb.connect() as connection:
        for statement in (
            "CREATE TABLE s (k UInt64, v Int64) ENGINE = SummingMergeTree ORDER BY k",
            "CREATE TABLE t (k UInt64, n SimpleAggregateFunction(sum, Int64)) ENGINE = AggregatingMergeTree ORDER BY k",
            "CREATE MATERIALIZED VIEW v TO t AS SELECT k, sum(v) AS n FROM s GROUP BY k",
            "INSERT INTO s VALUES (1, 5), (2, 0)",
            "INSERT INTO s VALUES (1, -5)",
            "OPTIMIZE TABLE s FINAL",
        ):
            connection.execute(statement)
        assert rows(connection, "SELECT k, n FROM t FINAL ORDER BY k") == [(1, 0), (2, 0)]
        assert rows(connection, "SELECT k, sum(v) FROM s GROUP BY k") == []
        assert health(connection)[0] == "unproven"


def test_rows_of_a_dimension_that_leave_by_ttl_are_told() -> None:
    with olapdb.connect() as connection:
        for statement in (
            "CREATE TABLE s (k UInt64) ENGINE = MergeTree ORDER BY k",
            "CREATE TABLE d (k UInt64, w Int64, at DateTime) ENGINE = MergeTree ORDER BY k"
            " TTL at + INTERVAL 1 DAY",
            "CREATE TABLE t (k UInt64, n Int64) ENGINE = MergeTree ORDER BY k",
            "CREATE MATERIALIZED VIEW v TO t AS SELECT s.k AS k, w AS n FROM s LEFT JOIN d ON s.k = d.k",
            "INSERT INTO d VALUES (1, 10, '2001-01-01 00:00:00'), (2, 20, '2100-01-01 00:00:00')",
            "INSERT INTO s VALUES (1), (2)",
            "ALTER TABLE d MATERIALIZE TTL",
        ):
            connection.execute(statement)
        assert health(connection)[0] == "stale"
        connection.execute("SYSTEM REPLAY VIEW v STALE")
        connection.execute("SYSTEM RECONCILE VIEW v")
        assert health(connection) == ("proven", "")
        assert rows(connection, "SELECT k, n FROM t ORDER BY k") == [(1, 0), (2, 20)]


def test_reconcile_keeps_the_reason_of_a_view_that_is_older_than_the_rule(
    altered: Connection,
) -> None:
    altered.execute("ALTER TABLE t ADD COLUMN r UInt64 DEFAULT rand()")
    database = altered.database
    snapshot = database.services.catalog.snapshot()
    view = snapshot.find("default", "v")
    assert isinstance(view, MaterializedView)
    older = PutObject(replace(view, unprovable=""))
    database.services.catalog.apply(Commit((), (older,), "ALTER"))
    assert health(altered)[0] == "covered"
    (row,) = dicts(altered, "SYSTEM RECONCILE VIEW v")
    assert row["verdict"] == "unverifiable"
    verdict, reason = health(altered)
    assert (verdict, "rand()" in reason) == ("unproven", True)


def test_views_of_a_catalog_older_than_the_rules_are_judged_when_it_is_opened(
    tmp_path: Path,
) -> None:
    script = (
        "CREATE TABLE s (k UInt64) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k",
        "CREATE MATERIALIZED VIEW right TO t AS SELECT k FROM s",
        "CREATE TABLE u (k UInt64, r UInt64) ENGINE = MergeTree ORDER BY k",
        "CREATE MATERIALIZED VIEW wrong TO u AS SELECT k, rand() AS r FROM s",
    )
    with olapdb.connect(str(tmp_path)) as connection:
        for statement in script:
            connection.execute(statement)
        catalog = connection.database.services.catalog
        views = [o for o in catalog.snapshot().objects() if isinstance(o, MaterializedView)]
        older = tuple(PutObject(replace(view, unprovable="", judged_by=0)) for view in views)
        catalog.apply(Commit((), older, "ALTER"))
    query = "SELECT name, verdict FROM system.views ORDER BY name"
    # a reader cannot store verdicts
    with olapdb.connect(str(tmp_path), read_only=True) as connection:
        assert rows(connection, query) == [("right", "covered"), ("wrong", "unproven")]
    with olapdb.connect(str(tmp_path)) as connection:
        assert rows(connection, query) == [("right", "covered"), ("wrong", "unproven")]
        commit = connection.database.services.catalog.snapshot().number
    with olapdb.connect(str(tmp_path)) as connection:
        assert connection.database.services.catalog.snapshot().number == commit


def test_views_of_functions_whose_answers_changed_are_stale_when_the_release_opens_them(
    tmp_path: Path,
) -> None:
    script = (
        "CREATE TABLE s (k UInt64, t DateTime('Europe/Berlin'), u DateTime) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE same (k UInt64) ENGINE = MergeTree ORDER BY k",
        "CREATE MATERIALIZED VIEW a TO same AS SELECT addDays(u, 1) = u ? 0 : k AS k FROM s",
        "CREATE TABLE moved (k DateTime) ENGINE = MergeTree ORDER BY k",
        "CREATE MATERIALIZED VIEW b TO moved AS SELECT t + INTERVAL 1 DAY AS k FROM s",
        "CREATE TABLE widths (k UInt64) ENGINE = MergeTree ORDER BY k",
        "CREATE MATERIALIZED VIEW c TO widths AS SELECT visibleWidth(toString(k)) AS k FROM s",
        "CREATE TABLE unread (k UInt64) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO s VALUES (1, '2024-03-30 02:30:00', '2024-03-30 02:30:00')",
        "CREATE MATERIALIZED VIEW d TO unread AS SELECT visibleWidth('a') + k AS k FROM s",
    )
    with olapdb.connect(str(tmp_path)) as connection:
        for statement in script:
            connection.execute(statement)
        catalog = connection.database.services.catalog
        views = [o for o in catalog.snapshot().objects() if isinstance(o, MaterializedView)]
        catalog.apply(
            Commit((), tuple(PutObject(replace(view, judged_by=4)) for view in views), "ALTER")
        )
    query = "SELECT name, verdict FROM system.views ORDER BY name"
    with olapdb.connect(str(tmp_path), read_only=True) as connection:  # a reader cannot mark them
        assert dict(rows(connection, query))["b"] == "unproven"
    with olapdb.connect(str(tmp_path)) as connection:
        assert rows(connection, query) == [
            ("a", "covered"),
            ("b", "stale"),
            ("c", "stale"),
            ("d", "partial"),  # it made no row yet
        ]
        causes = "SELECT view, cause, statement FROM system.view_invalidations ORDER BY view"
        (moved, widths) = rows(connection, causes)
        assert moved[:2] == ("b", "FUNCTION CHANGED")
        assert (widths[0], "visibleWidth" in widths[2]) == ("c", True)
        for view in "bc":
            connection.execute(f"SYSTEM REPLAY VIEW {view} STALE")
        assert [verdict for _, verdict in rows(connection, query)][1:3] == ["covered", "covered"]
        commit = connection.database.services.catalog.snapshot().number
    with olapdb.connect(str(tmp_path)) as connection:
        assert connection.database.services.catalog.snapshot().number == commit


def test_views_that_sort_arrays_with_null_are_stale_when_the_release_opens_them(
    tmp_path: Path,
) -> None:
    with olapdb.connect(str(tmp_path)) as connection:
        for statement in (
            "CREATE TABLE s (k UInt64) ENGINE = MergeTree ORDER BY k",
            "CREATE TABLE d (a Array(Nullable(Int32)), b Array(Int32)) ENGINE = MergeTree ORDER BY b",
            "INSERT INTO d VALUES ([1], [1]), ([NULL], [2])",
        ):
            connection.execute(statement)
        for name, key in (
            ("down", "a DESC"),
            ("first", "a NULLS FIRST"),
            ("up", "a"),
            ("whole", "b DESC"),
        ):
            connection.execute(
                f"CREATE TABLE {name}_t (k UInt64, n UInt64) ENGINE = MergeTree ORDER BY k"
            )
            connection.execute(
                f"CREATE MATERIALIZED VIEW {name} TO {name}_t AS SELECT k,"
                f" (SELECT b[1] FROM d ORDER BY {key}, b LIMIT 1) AS n FROM s"
            )
        connection.execute("INSERT INTO s VALUES (1)")
        catalog = connection.database.services.catalog
        views = [o for o in catalog.snapshot().objects() if isinstance(o, MaterializedView)]
        older = tuple(PutObject(replace(view, judged_by=8)) for view in views)
        catalog.apply(Commit((), older, "ALTER"))
    with olapdb.connect(str(tmp_path)) as connection:
        assert dict(rows(connection, "SELECT name, verdict FROM system.views")) == {
            "down": "stale",
            "first": "stale",
            "up": "covered",
            "whole": "covered",
        }


@pytest.mark.parametrize(
    ("column", "query", "changed"),
    [
        ("Decimal(9, 1)", "SELECT x AS n FROM s", ("INSERT",)),
        ("Array(Decimal(9, 1))", "SELECT [x] AS n FROM s", ("INSERT",)),
        ("Float32", "SELECT x AS n FROM s", ()),
        (
            "Decimal(9, 1)",
            "SELECT toDecimal32OrDefault(x, 1) AS n FROM s",
            ("toDecimal32OrDefault",),
        ),
        ("Decimal(9, 1)", "SELECT accurateCast(x, 'Decimal(9, 1)') AS n FROM s", ("accurateCast",)),
        ("UInt8", "SELECT greatest(b, a, 3) AS n FROM s", ("greatest",)),
        ("UInt8", "SELECT greatest(b, a) AS n FROM s", ()),
        ("UInt8", "SELECT clamp(b, a, 7) AS n FROM s", ("clamp",)),
        ("UInt8", "SELECT transform(a, [1], [true], 5) AS n FROM s", ("transform",)),
        ("UInt8", "SELECT transform(a, [1], [true], b) AS n FROM s", ()),
        ("Array(UInt8)", "SELECT arrayPushBack([b], a) AS n FROM s", ("arrayPushBack",)),
        ("Array(UInt8)", "SELECT arrayResize([b], 2, a) AS n FROM s", ("arrayResize",)),
        ("Array(UInt8)", "SELECT arrayResize([b], 2, true) AS n FROM s", ()),
        ("UInt8", "SELECT b AS n FROM s UNION ALL SELECT a FROM s", ("UNION",)),
        ("UInt8", "SELECT a AS n FROM s UNION ALL SELECT a + 1 FROM s", ()),
        ("UInt8", "SELECT [a] IN ([259]) AS n FROM s", ("IN",)),
        ("UInt8", "SELECT a IN (3) AS n FROM s", ()),
    ],
)
def test_answers_that_changed_with_rules_10(
    column: str, query: str, changed: tuple[str, ...]
) -> None:
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE s (a UInt8, b Bool, x Float32) ENGINE = MergeTree ORDER BY a"
        )
        connection.execute(f"CREATE TABLE t (n {column}) ENGINE = MergeTree ORDER BY tuple()")
        connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")
        snapshot = connection.database.services.catalog.snapshot()
        view = snapshot.find("default", "v")
        assert isinstance(view, MaterializedView)
        assert functions_changed_since(replace(view, judged_by=9), snapshot) == changed
        assert functions_changed_since(view, snapshot) == ()


@pytest.mark.parametrize(
    ("query", "changed"),
    [
        ("SELECT YYYYMMDDToDate(f) AS n FROM s", ("YYYYMMDDToDate",)),
        ("SELECT YYYYMMDDToDate(i) AS n FROM s", ()),
        ("SELECT isIPv4String(t) AS n FROM s", ("isIPv4String",)),
        ("SELECT isValidJSON(t) AS n FROM s", ("isValidJSON",)),
        ("SELECT JSONExtractInt(t, 'a') AS n FROM s", ("JSONExtractInt",)),
    ],
)
def test_answers_that_changed_with_rules_13(query: str, changed: tuple[str, ...]) -> None:
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE s (i UInt32, f Float64, t String) ENGINE = MergeTree ORDER BY i"
        )
        connection.execute(f"CREATE MATERIALIZED VIEW v ENGINE = Log AS {query}")
        snapshot = connection.database.services.catalog.snapshot()
        view = snapshot.find("default", "v")
        assert isinstance(view, MaterializedView)
        assert functions_changed_since(replace(view, judged_by=12), snapshot) == changed
        assert functions_changed_since(view, snapshot) == ()


@pytest.mark.parametrize(
    ("column", "query", "changed"),
    [
        (
            "Array(Array(String))",
            "SELECT extractAllGroupsVertical(t, '(x*)') AS n FROM s",
            ("extractAllGroupsVertical",),
        ),
        ("Date", "SELECT toStartOfISOYear(toDate32(t)) AS n FROM s", ("toStartOfISOYear",)),
        ("Date", "SELECT toStartOfISOYear(toDate(t)) AS n FROM s", ()),
        (
            "DateTime64(3)",
            "SELECT toStartOfInterval(toDateTime64(t, 6), INTERVAL 1 MILLISECOND, "
            "toDateTime64('1970-01-01 00:00:00', 6)) AS n FROM s",
            ("toStartOfInterval",),
        ),
        (
            "DateTime64(6)",
            "SELECT toStartOfInterval(toDateTime64(t, 6), INTERVAL 1 SECOND, "
            "toDateTime64('1970-01-01 00:00:00', 6)) AS n FROM s",
            (),
        ),
        ("Int128", "SELECT intDiv(a::Decimal(30, 2), 3) AS n FROM s", ("intDiv",)),
        ("Int64", "SELECT intDiv(a::Decimal(18, 2), 3) AS n FROM s", ()),
        ("Float64", "SELECT exp10(a) AS n FROM s", ("exp10",)),
        ("Float64", "SELECT cbrt(a) AS n FROM s", ("cbrt",)),
        ("DateTime64(8)", "SELECT toDateTime64(t, 8, 'UTC') AS n FROM s", ("toDateTime64",)),
        ("DateTime64(4)", "SELECT t::DateTime64(4) AS n FROM s", ("CAST",)),
        ("DateTime64(6)", "SELECT toDateTime64(t, 6, 'UTC') AS n FROM s", ()),
        (
            "Decimal(18, 9)",
            "SELECT toDateTime64(t, 9, 'UTC') - toDateTime64('1970-01-01', 9, 'UTC') AS n FROM s",
            ("minus",),
        ),
        ("Date", "SELECT toDateOrZero(t) AS n FROM s", ("toDateOrZero",)),
        ("Date", "SELECT toDate(t) AS n FROM s", ()),
        ("Int64", "SELECT ifNull(CAST(t AS Nullable(Int64)), 0) AS n FROM s", ("CAST",)),
        ("Int64", "SELECT toInt64(t) AS n FROM s", ()),
        ("Array(UInt64)", "SELECT range(a, a::UInt64 * 2) AS n FROM s", ("range",)),
        ("Array(UInt64)", "SELECT range(a::UInt64) AS n FROM s", ()),
        ("String", "SELECT toString(b AND a) AS n FROM s", ("and",)),
        ("UInt8", "SELECT a AS n FROM s WHERE b AND a > 1", ()),
        ("String", "SELECT toString(c AND a) AS n FROM s", ()),
        ("UInt8", "SELECT a AS n FROM s WHERE a = '257'", ("equals",)),
        ("UInt8", "SELECT a AS n FROM s WHERE a = '255'", ()),
        ("UInt8", "SELECT a AS n FROM s WHERE a IN ('257')", ("IN",)),
        ("UInt8", "SELECT a AS n FROM s WHERE a IN (257, 3)", ()),
        (
            "UInt8",
            "SELECT arrayMap(x -> x + (1 AS c), [a])[1] AS n FROM s WHERE c",
            ("AS in a lambda",),
        ),
        ("UInt8", "SELECT arrayMap(x -> (x + 1 AS y) * y, [a])[1] AS n FROM s WHERE c", ()),
        ("UInt8", "SELECT a + 1 AS k, a AS n FROM s JOIN d ON k = d.k", ("JOIN ON",)),
        ("UInt8", "SELECT d.k AS k, s.a AS n FROM s JOIN d ON s.a = k", ()),
    ],
)
def test_answers_that_changed_after_rules_10(
    column: str, query: str, changed: tuple[str, ...]
) -> None:
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE s (a UInt8, b Nullable(Bool), c Bool, t String) ENGINE = MergeTree ORDER BY a"
        )
        connection.execute("CREATE TABLE d (k UInt8) ENGINE = MergeTree ORDER BY k")
        connection.execute(f"CREATE TABLE t (n {column}, k UInt16) ENGINE = MergeTree ORDER BY k")
        connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")
        snapshot = connection.database.services.catalog.snapshot()
        view = snapshot.find("default", "v")
        assert isinstance(view, MaterializedView)
        assert functions_changed_since(replace(view, judged_by=10), snapshot) == changed
        assert functions_changed_since(view, snapshot) == ()


def test_views_of_answers_that_changed_with_rules_10_are_stale_when_the_release_opens_them(
    tmp_path: Path,
) -> None:
    expressions = {
        "beside": "if(k > 1, flag, n)",
        "bools": "if(n > 1, flag, true)",
        "condition": "if(flag, n, 1)",
        "joined": "toUInt8(p.a)",
        "weeks": "toRelativeWeekNum(day)",
        "narrow": "toDecimal64(x, 1)",
        "cast": "CAST(x, 'Decimal(9, 1)')",
        "wide": "toDecimal64(toFloat64(x), 1)",
    }
    types = dict.fromkeys(("narrow", "cast", "wide"), "Decimal(18, 1)")
    with olapdb.connect(str(tmp_path)) as connection:
        connection.execute(
            "CREATE TABLE s (k UInt64, flag Bool, n UInt8, p Tuple(a Array(UInt8)), day Date32,"
            " x Float32) ENGINE = MergeTree ORDER BY k"
        )
        for name, expression in expressions.items():
            connection.execute(
                f"CREATE TABLE {name}_t (k UInt64, n {types.get(name, 'UInt32')})"
                " ENGINE = MergeTree ORDER BY k"
            )
            connection.execute(
                f"CREATE MATERIALIZED VIEW {name} TO {name}_t AS SELECT k, {expression} AS n FROM s"
                + (" ARRAY JOIN p.a" if name == "joined" else "")
            )
        connection.execute("INSERT INTO s VALUES (1, true, 2, tuple([1]), '2024-01-01', 2)")
        catalog = connection.database.services.catalog
        views = [o for o in catalog.snapshot().objects() if isinstance(o, MaterializedView)]
        older = tuple(PutObject(replace(view, judged_by=9)) for view in views)
        catalog.apply(Commit((), older, "ALTER"))
    with olapdb.connect(str(tmp_path)) as connection:
        assert dict(rows(connection, "SELECT name, verdict FROM system.views")) == {
            "beside": "stale",
            "bools": "covered",
            "cast": "stale",
            "condition": "covered",
            "joined": "stale",
            "narrow": "stale",
            "weeks": "stale",
            "wide": "covered",
        }


def test_what_older_rules_compared_less_exactly_is_stale_when_the_release_opens_it(
    tmp_path: Path,
) -> None:
    with olapdb.connect(str(tmp_path)) as connection:
        connection.execute("CREATE TABLE s (k UInt64, x Float64) ENGINE = MergeTree ORDER BY k")
        connection.execute("INSERT INTO s VALUES (1, 0.5)")
        for name, state in (
            ("kept", "maxState(x)"),
            ("added", "sumState(x)"),
            ("counted", "uniqExactState(k)"),
            ("unread", "maxState(x)"),
        ):
            connection.execute(
                f"CREATE MATERIALIZED VIEW {name} ENGINE = AggregatingMergeTree ORDER BY k POPULATE AS"
                f" SELECT k, {state} AS a FROM s GROUP BY k"
            )
            if name != "unread":
                connection.execute(f"SYSTEM RECONCILE VIEW {name}")
        connection.execute(
            "CREATE MATERIALIZED VIEW rows ENGINE = MergeTree ORDER BY k POPULATE AS"
            " SELECT k, CAST(x AS Variant(Float64, String)) AS a FROM s"
        )
        connection.execute("SYSTEM RECONCILE VIEW rows")
        catalog = connection.database.services.catalog
        views = [o for o in catalog.snapshot().objects() if isinstance(o, MaterializedView)]
        older = tuple(PutObject(replace(view, judged_by=9)) for view in views)
        catalog.apply(Commit((), older, "ALTER"))
    query = "SELECT name, verdict FROM system.views"
    with olapdb.connect(str(tmp_path), read_only=True) as connection:
        assert dict(rows(connection, query))["kept"] == "unproven"
    with olapdb.connect(str(tmp_path)) as connection:
        assert dict(rows(connection, query)) == {
            "added": "proven",
            "counted": "proven",
            "kept": "stale",
            "rows": "stale",
            "unread": "covered",
        }
        connection.execute("SYSTEM RECONCILE VIEW kept")
        assert dict(rows(connection, query))["kept"] == "proven"


def test_a_changed_function_of_constants_in_a_column_or_a_plain_view_makes_views_stale(
    tmp_path: Path,
) -> None:
    script = (
        "CREATE FUNCTION width AS x -> visibleWidth(x)",
        "CREATE TABLE s (k UInt64, a UInt64 ALIAS visibleWidth('ab')) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE d (k UInt64) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO d VALUES (1)",
        "CREATE VIEW p AS SELECT k, width('abc') AS w FROM d",
        *(f"CREATE TABLE t{n} (k UInt64) ENGINE = MergeTree ORDER BY k" for n in range(3)),
        "CREATE MATERIALIZED VIEW v0 TO t0 AS SELECT k + a AS k FROM s",
        "CREATE MATERIALIZED VIEW v1 TO t1 AS SELECT s.k + w AS k FROM s JOIN p ON s.k = p.k",
        "CREATE MATERIALIZED VIEW v2 TO t2 AS SELECT s.k AS k FROM s",
        "INSERT INTO s VALUES (1)",
    )
    with olapdb.connect(str(tmp_path)) as connection:
        for statement in script:
            connection.execute(statement)
        catalog = connection.database.services.catalog
        views = [o for o in catalog.snapshot().objects() if isinstance(o, MaterializedView)]
        catalog.apply(
            Commit((), tuple(PutObject(replace(view, judged_by=4)) for view in views), "ALTER")
        )
    with olapdb.connect(str(tmp_path)) as connection:
        assert rows(
            connection, "SELECT view, cause FROM system.view_invalidations ORDER BY view"
        ) == [("v0", "FUNCTION CHANGED"), ("v1", "FUNCTION CHANGED")]
