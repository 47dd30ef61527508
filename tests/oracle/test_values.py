"""Scalar functions, IN, common types and aggregates whose values once differed from ClickHouse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.functions import display
from tests.harness.oracle import Oracle
from tests.oracle.random_compare import Comparison

pytestmark = pytest.mark.feature("insert")

NY, TOKYO = (
    "toDateTime('2024-01-01 00:00:00', 'America/New_York')",
    "toDateTime('2024-01-01 00:00:00', 'Asia/Tokyo')",
)
FIXED = "toFixedString('a', 3)"
SAME = (
    # the argument's zone
    f"SELECT toDateTime({NY}), toDateTime(toDateTime64('2024-01-01 00:00:00', 3, 'Asia/Tokyo'))",
    f"SELECT toDateTime64({NY}, 3), toDateTime(toNullable({NY})), toDateTime({NY}, 'Asia/Tokyo')",
    f"SELECT toDateTimeOrDefault({NY}), toDateTime64OrDefault({NY}, 3)",
    f"SELECT CAST({NY} AS DateTime), {NY}::DateTime64(3), CAST({NY} AS Nullable(DateTime))",
    f"SELECT accurateCast({NY}, 'DateTime'), [{NY}]::Array(DateTime)",
    # the zone of a common type
    f"SELECT least({NY}, {TOKYO}), greatest(toDateTime('2024-01-01 00:00:00'), {TOKYO})",
    f"SELECT if(number = 7, {NY}, {TOKYO}), if(number = 1, toDateTime('2024-01-01 00:00:00'), {TOKYO}) FROM numbers(0)",
    f"SELECT least({TOKYO}, toDateTime64('2024-01-01 00:00:00', 3)), least(toDateTime64('2024-01-01 00:00:00', 3), {TOKYO})",
    f"SELECT if(number = 1, toDate('2024-01-01'), {TOKYO}), if(number = 1, toDate32('2024-01-01'), {TOKYO}) FROM numbers(2)",
    "SELECT [toDateTime64('2024-01-01 00:00:00', 1, 'Asia/Tokyo'), toDateTime64('2024-01-01 00:00:00', 3, 'UTC')]",
    # before 1970
    "SELECT toDate(toDateTime64('1950-12-31 00:00:00', 3)), toDate(materialize(toDateTime64('1969-12-31 00:00:00', 0)))",
    "SELECT toDate(toDateTime64('1969-12-31 23:59:59.5', 1, 'UTC')), CAST(toDateTime64('1959-12-31 23:59:59.5', 3, 'Asia/Tokyo') AS Date)",
    "SELECT toDate32(toDateTime64('1959-12-31 23:59:59.5', 3)), toDate(materialize(toDateTime64('1959-12-31 23:59:59.5', 3)))",
    "SELECT toRelativeDayNum(toDate32('1960-01-01')), toRelativeDayNum(materialize(toDate32('1960-01-01')))",
    "SELECT toRelativeDayNum(toDateTime64('1960-01-01 00:00:00', 3)), toRelativeDayNum(toDate32('2024-01-01'))",
    "SELECT toRelativeDayNum(materialize(toDate32('2200-01-03'))), toRelativeDayNum(toDateTime64('2200-01-03 00:00:00', 3))",
    # zero bytes
    f"SELECT hex(if(number = 0, {FIXED}, 'b')), hex(ifNull(toNullable({FIXED}), 'b')) FROM numbers(2)",
    f"SELECT hex(coalesce(toNullable({FIXED}), 'b')), hex(if(number = 0, {FIXED}, toFixedString('a', 5))) FROM numbers(2)",
    f"SELECT hex(multiIf(number = 0, {FIXED}, number = 1, 'b', 'c')), hex(CASE number WHEN 0 THEN {FIXED} ELSE 'b' END) FROM numbers(2)",
    f"SELECT hex(CASE WHEN number = 0 THEN {FIXED} ELSE 'b' END) FROM numbers(2)",
    f"SELECT hex(leftPad({FIXED}, 5, '*')), hex(rightPad({FIXED}, 5, '*')), hex(leftPad(materialize({FIXED}), 5, '*'))",
    f"SELECT transform({FIXED}, ['a'], ['z'], 'q'), transform('a', [{FIXED}], ['z'], 'q'), hex(transform(2, [1], ['q'], {FIXED}))",
    # IN
    "SELECT toInt8(-1) IN (255), toUInt8(255) IN (-1), toInt8(-1) IN [255], toUInt8(1) IN (257), toUInt8(1) IN (1.5, 1.0)",
    "SELECT materialize(toInt64(-1)) IN (18446744073709551615), materialize(toUInt64(18446744073709551615)) IN (-1)",
    "SELECT toInt8(-1) IN (SELECT 255), toUInt8(255) IN (SELECT -1), toUInt64(1) IN (SELECT toInt64(1))",
    "SELECT toInt64(-1) IN (SELECT 18446744073709551615), toUInt64(18446744073709551615) IN (SELECT toInt64(-1))",
    "SELECT toUInt64(1) IN (SELECT toNullable(toInt8(1))), (toInt8(-1), 1) IN (SELECT 255, 1), (toInt8(-1), 1) IN ((255, 1))",
    "SELECT toFloat64(1) IN (SELECT toInt64(1)), toInt64(1) IN (SELECT 1.5), toFloat32(0.1) IN (0.1), toFloat32(0.1) IN (SELECT 0.1)",
    "SELECT toInt64(9007199254740993) IN (SELECT 9007199254740992.0), toFloat64(9007199254740992) IN (9007199254740993)",
    "SELECT toDate('2020-01-01') IN (SELECT '2020-01-01'), '1' IN (SELECT 1), 1 IN (SELECT '1'), materialize('x') IN (SELECT 1)",
    "SELECT '1' IN (1), 'abc' IN (1), true IN (2), true IN (1), toUInt8(2) IN (true), 'a' IN (toFixedString('a', 3))",
    "SELECT toNullable('b') IN ('a'), toNullable(1) NOT IN (2), NULL IN (SELECT 1), CAST(NULL AS Nullable(UInt8)) IN (1)",
    # UInt64 and Int64
    "SELECT if(number = 0, toUInt64(18446744073709551615), toInt64(-1)) FROM numbers(2)",
    "SELECT toUInt64(1) AS x UNION ALL SELECT toInt64(-1)",
    "SELECT toUInt64(1) AS x EXCEPT SELECT toInt64(-1)",
    "SELECT [toUInt64(18446744073709551615), toInt64(-1)], map('a', toUInt64(1), 'b', toInt64(-1))",
    "SELECT CASE WHEN number = 0 THEN toUInt64(1) WHEN number = 1 THEN NULL ELSE toInt64(-1) END FROM numbers(3)",
    "SELECT ifNull(toNullable(toUInt64(1)), toInt64(-1)), coalesce(toNullable(toInt64(-1)), toUInt64(1))",
    "SELECT least(toUInt64(1), toInt64(-1)), greatest(toUInt64(1), toInt64(-1)), greatest(toUInt64(18446744073709551615), toInt64(-1))",
    "SELECT has([toUInt64(1)], toInt64(1)), has([toUInt64(18446744073709551615)], toInt64(-1)), indexOf([1.5], toInt64(1))",
    # a 64-bit integer and a float
    "SELECT if(number = 0, toInt64(5), 1.5), [toUInt64(5), 1.5], ifNull(toNullable(1.5), toInt64(-5)) FROM numbers(2)",
    "SELECT if(number = 9, toInt64(9007199254740993), 1.5) FROM numbers(2)",
    "SELECT toInt64(5) AS x UNION ALL SELECT 1.5",
    "SELECT materialize(toInt64(9007199254740993)) = 9007199254740992.0, materialize(toUInt64(18446744073709551615)) < 18446744073709551616.0",
    "SELECT arrayIntersect([toInt64(-1), 5], [0.5, 2, 5]), arrayIntersect([1.5], [toFloat32(1.5)])",
    # no row matched
    "SELECT sumIfOrNull(number, number > 5), sumOrNullIf(number, number > 5), avgIfOrNull(number, number > 5) FROM numbers(3)",
    "SELECT maxIfOrNull(number, number > 5), countIfOrNull(number > 5), countOrNullIf(number > 5), uniqIfOrNull(number, number > 5) FROM numbers(3)",
    "SELECT avgIfOrDefault(number, number > 5), avgOrDefaultIf(number, number > 5), maxIfOrDefault(number, number > 5) FROM numbers(3)",
    "SELECT number % 2, sumIfOrNull(number, number = 1), anyIfOrNull(number, number = 1), quantileIfOrNull(0.5)(number, number = 1) FROM numbers(3) GROUP BY 1",
    "SELECT sumDistinctIfOrNull(number, number > 5), sumArrayIfOrNull([number], number > 5), argMinIfOrNull(number, number, number > 5) FROM numbers(3)",
    "SELECT sumIfOrNull(number, NULL), sumIfOrNull(number, toNullable(number > 5)), sumIfOrNull(toNullable(number), number > 5) FROM numbers(3)",
    "SELECT sum(NULL), avg(NULL), uniqExact(NULL), covarPop(NULL, 1), argMin(1, NULL), groupArray(NULL), uniqOrNull(NULL)",
    # a line break
    r"SELECT match('a\nb', 'a.b'), match('a\nb', '^b'), match('a\nb', 'a$'), match('a\nb', '(?-s)a.b'), 'a\nb' REGEXP 'a.b'",
    r"SELECT extract('a\nb', 'a.b'), extract('a\nb', 'a(.)b'), replaceRegexpAll('a\nb', 'a.b', 'x'), replaceRegexpOne('a\nb', '.b', 'x')",
    r"SELECT extractAll('a\nb a\tb', 'a(.)b'), splitByRegexp('.', 'a\nb'), splitByRegexp('a.b', '1a\nb2'), 'a\nb' LIKE 'a_b'",
    # found by the random statements
    "SELECT map('a', toInt64(1)) = map('a', 1), map('a', [1]) != map('a', [toInt64(1)])",
    "SELECT (x, 'x') = (0, ''), (x, 'x') = (0, 'x') FROM (SELECT NULL AS x)",
    "SELECT (NULL, 'a') IN ((1, 'a')), round(NULL, -1), dateDiff('hour', now(), NULL), toUUIDOrNull(NULL)",
    "SELECT substring('hello', toInt64('-9223372036854775808')), substring('hello', 2, toInt64('9223372036854775807'))",
    "SELECT toFixedString(materialize(toNullable('abcde')), 3)",
    "SELECT toBool(materialize(toNullable('abc')))",
    "SELECT transform(NULL, [0, 1], [7, 8], 3), toBool(NULL)",
    "SELECT x, CASE x WHEN 1 THEN 10 WHEN x THEN 20 END, CASE x WHEN NULL THEN 1 ELSE 2 END FROM (SELECT arrayJoin([1, 2, NULL]) AS x)",
    "SELECT countDistinctMerge(s) FROM (SELECT number % 2 AS k, countDistinctState(number % 3) AS s FROM numbers(10) GROUP BY k)",
    "SELECT countDistinctMerge(s) FROM (SELECT number % 2 AS k, countDistinctState(toFloat64(number % 3)) AS s FROM numbers(10) GROUP BY k)",
    "SELECT countDistinctOrNull(number), countDistinctIf(number, number > 1), countDistinct(number, 1) FROM numbers(3)",
)
OURS = (
    ("SELECT toUInt64(1) AS x EXCEPT SELECT toInt64(1)", []),
    ("SELECT toUInt64(1) AS x INTERSECT SELECT toInt64(1)", ["1"]),
    (
        "SELECT toTypeName(if(number = 0, toUInt64(1), toInt64(-1))) FROM numbers(1)",
        ["Decimal(20, 0)"],
    ),
    ("SELECT if(number = 0, toUInt64(7), toInt64(-7)) / 2 FROM numbers(2)", ["3.5", "-3.5"]),
    (
        "SELECT sum(x) / 2 FROM (SELECT if(number = 0, toUInt64(7), toInt64(-6)) AS x FROM numbers(2))",
        ["0.5"],
    ),
    (
        "SELECT x FROM (SELECT toUInt64(1) AS x UNION ALL SELECT toInt64(-1)) ORDER BY x",
        ["-1", "1"],
    ),
    ("SELECT count() FROM (SELECT toUInt64(1) AS x UNION DISTINCT SELECT toInt64(1))", ["1"]),
    (
        "SELECT (sum(x), min(x), max(x)) FROM (SELECT if(number = 0, toUInt64(5), toInt8(-2)) AS x FROM numbers(3))",
        ["(1,-2,5)"],
    ),
    ("SELECT toTypeName(if(number = 0, toInt64(1), 1.5)) FROM numbers(1)", ["Float64"]),
    (
        "SELECT sumIfOrNullMerge(s) FROM (SELECT sumIfOrNullState(number, number > 5) AS s FROM numbers(3))",
        [None],
    ),
    ("SELECT finalizeAggregation(sumIfOrNullState(number, number > 1)) FROM numbers(3)", ["2"]),
)


@pytest.fixture(scope="module")
def connection() -> Iterator[olapdb.Connection]:
    opened = olapdb.connect()
    yield opened
    opened.close()


@pytest.mark.parametrize("statement", SAME)
def test_the_answer_is_clickhouses(
    statement: str, connection: olapdb.Connection, oracle: Oracle
) -> None:
    verdict = Comparison(connection, oracle).judge(statement)
    assert verdict.outcome in ("same", "both_refuse"), f"{verdict.ours}\n{verdict.theirs}"


@pytest.mark.parametrize(("statement", "expected"), OURS)
def test_the_answer_is_as_documented(
    statement: str, expected: list[str | None], connection: olapdb.Connection
) -> None:
    result = connection.session.execute(statement)
    column = result.read_all().column(0).combine_chunks()
    assert display(column, result.types[0]) == expected


def test_an_integer_that_no_float_is_is_refused_where_it_is_chosen(
    connection: olapdb.Connection,
) -> None:
    with pytest.raises(olapdb.DataError, match="9007199254740993"):
        connection.execute(
            "SELECT if(number = 0, toInt64(9007199254740993), 1.5) FROM numbers(2)"
        ).fetchall()
    with pytest.raises(olapdb.DataError, match="9007199254740993"):
        connection.execute("SELECT toInt64(9007199254740993) UNION ALL SELECT 1.5").fetchall()


def test_what_holds_both_integers_is_stored_as_a_decimal(connection: olapdb.Connection) -> None:
    connection.execute(
        "CREATE TABLE wide ENGINE = MergeTree ORDER BY tuple() AS"
        " SELECT if(number = 0, toUInt64(18446744073709551615), toInt64(-1)) AS x,"
        " [toInt64(number), 0.5] AS y FROM numbers(2)"
    )
    described = connection.execute("DESCRIBE TABLE wide").fetchall()
    assert [(row[0], row[1]) for row in described] == [
        ("x", "Decimal(20, 0)"),
        ("y", "Array(Float64)"),
    ]
    rows = connection.execute("SELECT toString(x), toString(y) FROM wide ORDER BY x").fetchall()
    assert rows == [("-1", "[1,0.5]"), ("18446744073709551615", "[0,0.5]")]
    connection.execute(
        "INSERT INTO wide SELECT if(number = 0, toUInt64(5), toInt64(-5)), [] FROM numbers(2)"
    )
    assert connection.execute("SELECT toString(sum(x)) FROM wide").fetchall() == [
        ("18446744073709551614",)
    ]


def test_a_view_holds_what_its_query_gives_of_both_integers(connection: olapdb.Connection) -> None:
    for statement in (
        "CREATE TABLE mixed (k UInt8, u UInt64, i Int64) ENGINE = MergeTree ORDER BY k",
        "CREATE MATERIALIZED VIEW mixed_states ENGINE = AggregatingMergeTree ORDER BY k AS SELECT k,"
        " sumState(if(k = 1, u, i)) AS x, sumIfOrNullState(u, i > 100) AS y FROM mixed GROUP BY k",
        "INSERT INTO mixed VALUES (1, 18446744073709551615, -1), (2, 3, -4)",
        "INSERT INTO mixed VALUES (1, 1, 200), (2, 3, -4)",
    ):
        connection.execute(statement)
    rows = connection.execute(
        "SELECT k, toString(sumMerge(x)), sumIfOrNullMerge(y) FROM mixed_states GROUP BY k ORDER BY k"
    ).fetchall()
    assert rows == [(1, "18446744073709551616", 1), (2, "-8", None)]
