"""One window partition, and the distinct values of one count, that memory does not take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import MemoryLimitExceeded

pytestmark = pytest.mark.feature("settings")

ROWS = 60_000
LIMITED = {"max_memory_usage": 4_000_000, "max_threads": 2}
OPERATIONS = ("group_by", "sort", "join", "distinct")
SPILLING = {
    "max_block_size": 2_000,
    **{f"max_bytes_before_external_{operation}": 10_000 for operation in OPERATIONS},
}


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    """Connect to a warehouse with a table of which partition 0 has nine tenths of the rows."""
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t ENGINE = MergeTree ORDER BY k AS SELECT number AS k,"
            " if(number % 10 = 0, 1 + number % 3, 0) AS p, toInt64(intHash32(number) % 1000) - 500 AS v,"
            f" intHash32(number) % {ROWS // 3} AS o, toString(number % 1000) AS s,"
            f" if(number % 7 = 0, NULL, number % 5) AS c FROM numbers({ROWS})"
        )
        yield connection


def run(connection: Connection, sql: str, settings: Mapping[str, object]) -> tuple[list[str], int]:
    """Return the rows as text, and the bytes that were spilled."""
    given = ", ".join(f"{name} = {value}" for name, value in settings.items())
    with connection.cursor() as cursor:
        cursor.execute(f"{sql} SETTINGS {given}")
        rows = [repr(row) for row in cursor.fetchall()]
        assert cursor.statistics.memory_peak_bytes <= int(
            str(settings.get("max_memory_usage", 1 << 40))
        )
        return rows, cursor.statistics.spilled_bytes


def check(connection: Connection, sql: str) -> None:
    """Assert that the query answers the same from disk."""
    expected, nothing = run(connection, sql, {"max_threads": 2})
    rows, spilled_bytes = run(connection, sql, LIMITED)
    assert nothing == 0
    assert spilled_bytes > 0
    assert rows == expected


IN_ORDER = "PARTITION BY p ORDER BY o, k"
CALLS = (
    f"row_number() OVER ({IN_ORDER})",
    "rank() OVER (PARTITION BY p ORDER BY o), dense_rank() OVER (PARTITION BY p ORDER BY o)",
    "sum(v) OVER (PARTITION BY p ORDER BY o), count() OVER (PARTITION BY p ORDER BY o DESC)",
    f"max(v) OVER ({IN_ORDER}), min(s) OVER ({IN_ORDER})",
    f"uniqExact(c) OVER ({IN_ORDER} ROWS UNBOUNDED PRECEDING)",
    f"avg(c) OVER ({IN_ORDER} ROWS BETWEEN 5 PRECEDING AND 3 FOLLOWING)",
    "sum(v) OVER (ORDER BY o, k ROWS BETWEEN 2 FOLLOWING AND 6 FOLLOWING)",
    f"groupArray(v) OVER ({IN_ORDER} ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING)",
    f"first_value(s) OVER ({IN_ORDER} ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)",
    f"lag(v, 3) OVER ({IN_ORDER}), lead(s, 2, 'none') OVER ({IN_ORDER})",
    "lagInFrame(v, 2) OVER (ORDER BY k ROWS BETWEEN 5 PRECEDING AND 1 FOLLOWING)",
    "sum(v) OVER (PARTITION BY p), count() OVER (), max(s) OVER ()",
    f"sum(v) OVER ({IN_ORDER} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    f"first_value(s) OVER ({IN_ORDER}), last_value(v) OVER ({IN_ORDER})",
    "last_value(s) OVER (PARTITION BY p ORDER BY o), first_value(c) OVER (PARTITION BY p ORDER BY o)",
    f"first_value(c) OVER ({IN_ORDER} {{whole}}), last_value(c) RESPECT NULLS OVER ({IN_ORDER} {{whole}})",
    f"any(c) OVER ({IN_ORDER} {{rest}}), anyLast(c) OVER ({IN_ORDER} {{rest}}), sum(v) OVER ({IN_ORDER} {{rest}})",
    f"sum(v) OVER ({IN_ORDER} {{past}} 1 PRECEDING), count() OVER ({IN_ORDER} {{past}} 7 PRECEDING)",
    f"max(v) OVER ({IN_ORDER} {{past}} 4 FOLLOWING), last_value(c) OVER ({IN_ORDER} {{past}} 2 FOLLOWING)",
    "min(v) OVER (ORDER BY k ROWS BETWEEN 3 PRECEDING AND UNBOUNDED FOLLOWING),"
    " count(c) OVER (ORDER BY k ROWS BETWEEN 5 FOLLOWING AND UNBOUNDED FOLLOWING)",
    "sum(v) OVER (PARTITION BY p ORDER BY o RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "sum(v) OVER (ORDER BY o RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)",
    "max(v) OVER (PARTITION BY p ORDER BY o DESC RANGE BETWEEN 3 PRECEDING AND 2 FOLLOWING),"
    " rank() OVER (PARTITION BY p ORDER BY o DESC)",
    "count() OVER (ORDER BY o RANGE BETWEEN 9 PRECEDING AND 4 PRECEDING),"
    " sum(v) OVER (ORDER BY o RANGE BETWEEN 4 FOLLOWING AND 9 FOLLOWING)",
    "count() OVER (ORDER BY o RANGE BETWEEN 9 PRECEDING AND 4 PRECEDING)",
    "first_value(c) OVER (PARTITION BY p ORDER BY o GROUPS BETWEEN 10 PRECEDING AND 1 PRECEDING)",
    "sum(v) OVER (PARTITION BY p ORDER BY o GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    "count() OVER (ORDER BY o RANGE BETWEEN CURRENT ROW AND CURRENT ROW)",
    f"ntile(7) OVER ({IN_ORDER}), percent_rank() OVER (PARTITION BY p ORDER BY o)",
    "cume_dist() OVER (PARTITION BY p ORDER BY o)",
    f"lagInFrame(v, 3) OVER ({IN_ORDER}), leadInFrame(s, 2, 'none') OVER ({IN_ORDER} {{whole}})",
    "rank() OVER (ORDER BY v > 100), dense_rank() OVER (ORDER BY v > 100), percent_rank() OVER (ORDER BY v > 100)",
    "sum(k) OVER (ORDER BY v > 100), last_value(c) OVER (ORDER BY v > 100), cume_dist() OVER (ORDER BY v > 100)",
    "sum(k) OVER (ORDER BY v > 100 RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING), ntile(3) OVER (ORDER BY v > 100),"
    " count() OVER (ORDER BY v > 100), row_number() OVER (ORDER BY v > 100) > 0",
    "sum(v) OVER (ORDER BY v > 100, p), sum(v) OVER (ORDER BY v > 100, p ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING) > 0",
    "sum(v) OVER (ORDER BY intDiv(k, 5000)), lead(v, 6000) OVER (ORDER BY intDiv(k, 5000))",
    "count(c) OVER (ORDER BY intDiv(k, 5000) RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING),"
    " sum(v) OVER (ORDER BY intDiv(k, 5000) ROWS BETWEEN CURRENT ROW AND 6000 FOLLOWING)",
    f"length(max(concat(toString(k), '{200 * 'x'}')) OVER ())",
    "rank() OVER (), cume_dist() OVER (PARTITION BY p)",
    f"nth_value(s, 3) OVER ({IN_ORDER}), nth_value(c, 2000) OVER ({IN_ORDER}), nth_value(c, 1) OVER ({IN_ORDER})",
    f"nth_value(s, 40) OVER ({IN_ORDER} {{whole}}), nth_value(c, 9999) OVER ({IN_ORDER} {{whole}}), nth_value(v, 7) OVER ()",
    f"nth_value(v, 5) OVER ({IN_ORDER} {{past}} 3 PRECEDING), nth_value(v, 5) OVER ({IN_ORDER} {{past}} 2 FOLLOWING)",
    f"nth_value(c, 3) OVER ({IN_ORDER} {{rest}}), nth_value(s, 1020) OVER ({IN_ORDER} {{rest}})",
    f"nth_value(v, 2000) OVER ({IN_ORDER} {{rest}})",
    "nth_value(v, 1030) OVER (ORDER BY k ROWS BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING),"
    " nth_value(s, 4) OVER (ORDER BY k ROWS BETWEEN 3 FOLLOWING AND UNBOUNDED FOLLOWING)",
    "nth_value(k, 50) OVER (PARTITION BY p ORDER BY o), nth_value(k, 2) OVER (PARTITION BY p ORDER BY o DESC)",
    "nth_value(k, 6000) OVER (ORDER BY v > 100, p), nth_value(c, 9) OVER (ORDER BY v > 100)",
    "nth_value(s, 11) OVER (PARTITION BY p ORDER BY o RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING),"
    " nth_value(k, 700) OVER (PARTITION BY p ORDER BY o RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "nth_value(k, 900) OVER (ORDER BY v > 100, p RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    f"first_value(s) OVER ({IN_ORDER} {{past}} 2 PRECEDING), last_value(c) OVER ({IN_ORDER} {{past}} 3 PRECEDING)",
    f"first_value(c) RESPECT NULLS OVER ({IN_ORDER} {{past}} 4000 PRECEDING)",
)
FRAMES = {
    "whole": "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "rest": "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "past": "ROWS BETWEEN UNBOUNDED PRECEDING AND",
}
"""A row's frame is the whole partition, from the row on, or up to a row."""


@pytest.mark.parametrize("calls", CALLS)
def test_a_window_partition_larger_than_memory(connection: Connection, calls: str) -> None:
    check(connection, f"SELECT k, {calls.format(**FRAMES)} FROM t ORDER BY k")


@pytest.mark.parametrize(
    "calls",
    [
        "nth_value(s, 1 + k % 3) OVER (ORDER BY k)",
        "nth_value(s, 70000) OVER (ORDER BY k)",
        f"sum(v) OVER (ORDER BY k ROWS BETWEEN {ROWS} PRECEDING AND CURRENT ROW)",
        f"sum(v) OVER (ORDER BY o RANGE BETWEEN {ROWS} PRECEDING AND CURRENT ROW)",
    ],
)
def test_calls_that_need_the_whole_partition_are_refused(
    connection: Connection, calls: str
) -> None:
    with pytest.raises(MemoryLimitExceeded) as error:
        run(
            connection,
            f"SELECT k, {calls} FROM t ORDER BY k",
            {**LIMITED, "max_memory_usage": 3_000_000},
        )
    assert "max_memory_usage is 3,000,000" in str(error.value)
    assert "PARTITION BY" in str(error.value)


COUNTS = (
    "uniqExact(k), sum(v), count()",
    "count(DISTINCT k, s), uniqExact(s), uniqExact(k)",
    "uniqExact(if(k % 5 = 0, NULL, k)), count(DISTINCT toString(k)) + 1",
    "uniqExact(multiIf(k % 30 = 0, nan, k % 30 = 1, -0.0, k % 30 = 2, 0.0, toFloat64(k)))",
    "uniqExact([k]), uniqExact((k, s)), any(p) > 5",
)


MANY = (
    "(SELECT number AS k, toString(number % 1000) AS s, number % 4 AS p, -toInt64(number) AS v"
    " FROM numbers(300000))"
)


@pytest.mark.parametrize("calls", COUNTS)
def test_distinct_values_past_memory(connection: Connection, calls: str) -> None:
    sql = f"SELECT {calls} FROM {MANY}"
    expected, _ = run(connection, sql, {"max_threads": 2})
    rows, spilled_bytes = run(connection, sql, {**LIMITED, "max_memory_usage": 2_400_000})
    assert rows == expected
    assert spilled_bytes > 0


FEW_GROUPS = (
    "uniqExact(k), sum(v), count(), min(s)",
    "count(DISTINCT k, s), uniqExact(s), uniqExactIf(k, v < 0)",
    "quantileExact(0.3)(v), quantileExact(0.9)(v), quantilesExact(0.1, 0.5, 1)(toFloat64(v) / 7)",
    "medianExactLow(k), medianExactHigh(k), quantileExactInclusive(0.77)(v), quantileExactExclusive(0.2)(v)",
    "quantileExact(if(k % 4 = 0, NULL, k)), quantileExactOrNull(0.5)(toDecimal64(k, 3))",
    "quantileExact(multiIf(k % 30 = 0, nan, k % 30 < 20, -0.0, 0.0)), quantileExact(toFloat32(k))",
    "quantilesExact(0.5, 0.9)(toDateTime('2024-01-01 00:00:00', 'UTC') + k), quantileExact(toInt128(v) * 1000000000000000)",
    "topK(3)(toString(k)), topK(2)(if(k % 3 = 0, 77, k)), anyHeavy(if(k % 3 = 0, 8, k))",
    "topKWeighted(4)(k, k % 9), topK(5, 3, 'counts')(if(k % 2, k % 1000, k))",
    "sumDistinct(k), avgDistinct(v % 50000), countDistinct(k), sumDistinct(toDecimal64(k, 2))",
    "uniqExact(if(k % 5 = 0, NULL, k)), groupBitmap(k), uniqExactOrNull(k)",
    "uniqExact((k, s)), uniqExact([k]), uniqExact(toLowCardinality(toString(k)))",
)


@pytest.mark.parametrize("keys", ["", "p", "p, toString(p)"])
@pytest.mark.parametrize("calls", FEW_GROUPS)
def test_few_groups_with_states_past_memory(connection: Connection, calls: str, keys: str) -> None:
    clauses = f"GROUP BY {keys} ORDER BY {keys}" if keys else ""
    sql = f"SELECT {keys}{',' * bool(keys)} {calls} FROM {MANY} {clauses}"
    expected, _ = run(connection, sql, {"max_threads": 2})
    rows, spilled_bytes = run(connection, sql, {**LIMITED, "max_memory_usage": 2_400_000})
    assert rows == expected
    assert spilled_bytes > 0


@pytest.mark.parametrize(
    "group",
    [
        "p WITH TOTALS",
        "ROLLUP(p)",
        "GROUPING SETS ((s), ())",
        "CUBE(p)",
        "p WITH TOTALS HAVING p > 1",
    ],
)
def test_totals_and_grouping_sets_with_states_past_memory(
    connection: Connection, group: str
) -> None:
    sql = (
        f"SELECT p, uniqExact(k), quantileExact(v), sum(v) FROM (SELECT k, v, s, k % 40 AS p FROM {MANY})"
        f" GROUP BY {group} ORDER BY ALL"
    )
    sql = sql.replace("SELECT p,", "SELECT s,", 1) if "(s)" in group else sql
    expected, _ = run(connection, sql, {"max_threads": 2})
    rows, spilled_bytes = run(connection, sql, {**LIMITED, "max_memory_usage": 2_400_000})
    assert rows == expected
    assert spilled_bytes > 0


@pytest.mark.parametrize("group", ["ROLLUP(p)", "GROUPING SETS ((p), ())"])
def test_grouping_sets_of_groups_whose_states_are_past_memory(
    connection: Connection, group: str
) -> None:
    sql = f"SELECT p, uniqExact(k), quantileExact(v), sum(v) FROM {MANY} GROUP BY {group} ORDER BY ALL"
    expected, _ = run(connection, sql, {"max_threads": 2})
    rows, spilled_bytes = run(connection, sql, {**LIMITED, "max_memory_usage": 2_400_000})
    assert rows == expected
    assert spilled_bytes > 0


@pytest.mark.parametrize("call", ["groupArray(k)", "length(groupUniqArray(k))"])
def test_a_large_state_is_refused_with_advice(connection: Connection, call: str) -> None:
    with pytest.raises(MemoryLimitExceeded) as error:
        run(connection, f"SELECT {call} FROM t", {**LIMITED, "max_memory_usage": 300_000})
    assert "max_memory_usage is 300,000" in str(error.value)
    assert "state of one group" in str(error.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT ON (o) o FROM t",
        "SELECT o, count() FROM (SELECT DISTINCT ON (o, p) o, p FROM t) GROUP BY o",
        "SELECT k FROM t ORDER BY k * 3 WITH FILL STEP 1 LIMIT 20000",
        "SELECT o FROM t ORDER BY o LIMIT 7 WITH TIES",
        "SELECT k, o FROM (SELECT * FROM t ORDER BY o, k) LIMIT -1 BY o",
        "SELECT o FROM t EXCEPT ALL SELECT o FROM t WHERE k % 3 = 0",
        "SELECT o FROM t INTERSECT ALL SELECT o FROM t WHERE k % 3 = 0",
        "SELECT l.k, r.k FROM t AS l ASOF LEFT JOIN t AS r ON l.p = r.p AND l.o > r.o WHERE l.k < 900",
        "SELECT l.k FROM t AS l LEFT ANTI JOIN t AS r ON l.o = r.o AND r.k % 9 = 0",
        "SELECT l.o, r.s FROM t AS l INNER ANY JOIN (SELECT o, max(s) AS s FROM t GROUP BY o) AS r ON l.o = r.o",
    ],
)
def test_other_operators_answer_the_same_from_disk(connection: Connection, sql: str) -> None:
    expected, _ = run(connection, sql, {"max_threads": 2})
    rows, spilled_bytes = run(connection, sql, SPILLING)
    assert sorted(rows) == sorted(expected)
    assert spilled_bytes > 0


MANY_OF_ONE_KEY = (
    "(SELECT if(number % 10 = 0, number, 7) AS k, toString(number % 1000) AS s, intHash32(number) % 20000 AS v,"
    " if(number % 11 = 0, NULL, number % 9) AS c FROM numbers(60000))"
)


@pytest.mark.parametrize(
    "join",
    [
        "ASOF JOIN {right} AS r ON l.k = r.k AND l.v >= r.v",
        "ASOF JOIN {right} AS r ON l.k = r.k AND l.v > r.v",
        "ASOF JOIN {right} AS r ON l.k = r.k AND l.v <= r.v",
        "ASOF LEFT JOIN {right} AS r ON l.k = r.k AND l.v < r.v",
        "ASOF LEFT JOIN {right} AS r ON l.k = r.k AND l.c >= r.c",
        "ASOF JOIN {right} AS r ON l.c = r.c AND toFloat64(l.v) / 3 >= if(r.v % 13 = 0, nan, toFloat64(r.v) / 2)",
        "ASOF JOIN {right} AS r ON if(l.k = 7, nan, 1.5) = if(r.k = 7, nan, 1.5) AND l.v >= r.v",
        "INNER ANY JOIN {right} AS r ON l.k = r.k",
        "LEFT ANY JOIN {right} AS r ON l.k = r.k",
        "LEFT SEMI JOIN {right} AS r ON l.k = r.k",
        "LEFT ANTI JOIN (SELECT * FROM {right} WHERE k = 7) AS r ON l.k = r.k",
    ],
)
def test_joins_of_one_key_past_memory(connection: Connection, join: str) -> None:
    """Rows that no hash divides are sorted, or their first row is enough, or they are joined by pieces."""
    sql = (
        f"SELECT l.k, l.v, r.k, r.v, r.s FROM {MANY_OF_ONE_KEY} AS l {join.format(right=MANY_OF_ONE_KEY)}"
        " ORDER BY ALL"
    )
    expected, _ = run(connection, sql, {"max_threads": 2})
    limited = {**LIMITED, "max_memory_usage": 2_500_000, "max_block_size": 2_000}
    rows, spilled_bytes = run(connection, sql, limited)
    assert rows == expected
    assert spilled_bytes > 0
