"""Functions of values at the ends of their types, of no values and of wrong text, beside
ClickHouse. Each query once gave another answer, hung, or raised an exception of Python."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

import olapdb
from olapdb.functions import display
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("insert", "types")

SAME = {
    "text_of_large_floats": "SELECT toString(12345678901.5), -123456789012345.67, 1e20, 1.5e20, 1e21,"
    " 10000000000.5, sqrt(toFloat32(1e20)), [10000000100.25], toString(1e15 + 0.5)",
    "exponents_before_signs": "SELECT 1e5+1, 2-1e3-1, 1e15+0.5, [1e5-1e4+toInt8('3')], 1e-5+1e+5-.5e1*2",
    "floats_of_decimals": "SELECT toFloat64(toDecimal32('99999.9999', 4)) = 99999.9999,"
    " sin(toDecimal32('99999.9999', 4)), toFloat64(toDecimal128('-12345678901234567890.123456789', 9)),"
    " toDecimal32('0.1', 4) / 3.0, toFloat32(toDecimal64('0.3', 9))",
    "whole_quotients_of_decimals": "SELECT intDiv(7, toDecimal32(2.5, 1)), intDiv(toInt64(7), toDecimal32(0.5, 1)),"
    " intDiv(toDecimal32(7.5, 1), 0.5), intDiv(-7.5, toDecimal32(2, 1)), intDivOrZero(7, toDecimal32(0, 1)),"
    " intDivOrZero(toDecimal32(7.5, 1), 2), intDiv(true, toDecimal64(0.5, 1))",
    "rests_of_decimals": "SELECT positiveModulo(toDecimal32(-7.5, 1), toDecimal32(2.5, 1)),"
    " positiveModulo(toDecimal32(-7.5, 1), toDecimal32(-2, 1)), positiveModulo(toDecimal256(-7.5, 1), toDecimal32(-2, 1))",
    "wide_decimals": "SELECT toDecimal256('3', 20) * toUInt8(3), toDecimal256(1.5, 5) * toDecimal256(2.5, 5),"
    " toDecimal256('123456789012345678901234567890123456789012345678901', 1) * 2,"
    " toDecimal128('123456789012345678901234567890123', 0) + toDecimal128('1.5', 5)",
    "or_zero_of_the_least": "SELECT moduloOrZero(-128, -1), intDivOrZero(toInt8(-128), -1),"
    " moduloOrZero(toInt64(-9223372036854775808), -1), moduloOrZero(1.5, 0),"
    " intDivOrZero(toInt64(-9223372036854775808), toInt8(arrayJoin([-1, 0, 2])))",
    "or_default_of_numbers": "SELECT toUInt8OrDefault(x), toInt64OrDefault(x), toUInt8OrDefault(x, y),"
    " toFloat32OrDefault(x), toUInt64OrDefault(toInt8(-1)), toInt8OrDefault('x', y::Int8)"
    " FROM (SELECT arrayJoin([1.5, 300, -1, nan, 5]) AS x, toUInt8(9) AS y)",
    "a_default_that_is_a_column": "SELECT toInt8OrDefault('x', materialize(toInt8(5))) AS v",
    "rounded_far_away": "SELECT floor(1.5, 400), floor(1.5, -400), round(15, -30), round(toDecimal32(1.5, 2), 40),"
    " round(1.5, -308), round(toFloat32(1.5), 39), round(toFloat32(1.5), -39), round(inf, -400)",
    "arrays_of_null": "SELECT arrayMin(CAST([NULL, NULL], 'Array(Nullable(String))')), arrayMax([1, NULL]),"
    " arrayMin(CAST([], 'Array(Nullable(UInt8))')), arrayMin([2, 1]), arrayMax(CAST([], 'Array(UInt8)'))",
    "if_not_finite": "SELECT ifNotFinite(toInt32(5), 1), ifNotFinite(nan, 7), ifNotFinite(1.5, NULL),"
    " ifNotFinite(materialize(inf), toFloat32(2))",
    "readable": "SELECT formatReadableSize(nan), formatReadableSize(inf), formatReadableQuantity(1e30),"
    " formatReadableQuantity(-inf), formatReadableSize(1e40), formatReadableDecimalSize(1e35),"
    " formatReadableQuantity(1e62), formatReadableSize(-1e30), formatReadableSize(192851925)",
    "positions_beyond": "SELECT position('l', '', 255), position('abc', '', 4), position('abc', '', 5),"
    " position('', '', 1), position('', '', 2), positionUTF8('äbc', '', 5), positionUTF8('äbc', 'c', 2)",
    "capitals": "SELECT initcap('1e5 abc a1b é1x'), initcap(arrayJoin(['ab', '', 'cd EF', '1a']))",
    "days_that_are_not_there": "SELECT makeDate(2024, 2, 30), makeDate(2023, 2, 31), makeDate(2024, 13, 1), makeDate(1969, 1, 1),"
    " makeDateTime(2024, 2, 30, 1, 2, 3), makeDateTime(2024, 0, 1, 1, 6, 1), makeDateTime(2023, 2, 32, 1, 1, 1)",
    "nanoseconds": "SELECT dateDiff('second', toDateTime64('1900-01-01 00:00:00', 9, 'UTC'), toDateTime('1970-01-01 00:00:01')),"
    " dateDiff('nanosecond', toDateTime64('2024-01-01 00:00:00.123456789', 9, 'UTC'), toDateTime64('2024-01-01 00:00:00.2', 9, 'UTC')),"
    " dateDiff('nanosecond', toDate('2024-01-01'), toDate('2024-01-02'))",
    "patterns_that_match_nothing": "SELECT extractAll('aaa', ''), extractAll('abxxc', 'x*'), extractAll('ab ab', '(a)?b*'),"
    " splitByRegexp('x*', 'aaxb'), splitByRegexp('x*', 'xaxb'), splitByRegexp('\\\\b', 'xa bx'), splitByRegexp('$', 'xa'),"
    " splitByRegexp('[^]]*', 'xxa] bx'), splitByRegexp('x?', ''), replaceRegexpAll('abc', '', 'x'), replaceRegexpOne('abc', '', 'x')",
    "patterns_by_row": "SELECT extractAll(t, '[1-9]*'), splitByRegexp('[1-9]?', t)"
    " FROM (SELECT toString(number) AS t FROM numbers(9, 4))",
    "sums_of_truth": "SELECT sumWithOverflow(true), sumWithOverflow(toNullable(true)), sum(true)",
    "unlimited": "SELECT groupArray(18446744073709551615)(1), groupUniqArray(18446744073709551615)(1)",
    "order_of_tuples_with_an_untyped_null": "SELECT (materialize(1), toString(NULL)) < (2, ''),"
    " (materialize(1), NULL) < (3, 'a'), (materialize(1), NULL) >= (0, materialize('a')),"
    " (1, materialize(NULL)) > (3, 'a'), (materialize(1), NULL, 2) <= (3, 'a', 2),"
    " (materialize(1), NULL) = (3, 'a'), (materialize(1), NULL) != (3, 'a'), (materialize(1), NULL) = (1, 'a'),"
    " (materialize(1), CAST(NULL AS Nullable(Int8))) < (2, 3)",
    "null_within_a_tuple": "SELECT uniq((n, 1)), uniqExact((n, 1)), groupUniqArray((n, 1)), uniq(1, NULL),"
    " uniqExact(1, NULL), uniqExact(tuple()), uniq(tuple()), groupUniqArray(tuple())"
    " FROM (SELECT arrayJoin([NULL, 0, NULL]) AS n)",
    "empty_maps": "SELECT map(), [map()], CAST(map(), 'Map(String, Int32)'), [NULL]",
}
REFUSED = (
    "SELECT range(toInt64(arrayJoin([9223372036854775807, 9223372036854775807, 5])))",
    "SELECT arrayWithConstant(toInt64(arrayJoin([9223372036854775807, 9223372036854775807, 5])), 'x')",
    "SELECT floor(1.5, 4294967296)",
    "SELECT round(1.5, -32769)",
    "SELECT map(NULL, 1)",
    "SELECT toStartOfMonth(now(), '%')",
    "SELECT formatDateTime(now(), '%H', 'second')",
    "SELECT moduloOrZero(toDecimal32(7.5, 1), 2)",
    "SELECT intDiv(toDecimal32(7.5, 1), 0.0)",
    "SELECT repeat('abc', 18446744073709551615)",
    "SELECT space(9223372036854775807)",
    "SELECT extractAll('a', '(')",
    "SELECT leftPad('a', -9223372036854775808)",
)
OURS = {
    "SELECT round(toDecimal256('99999999999999999999999999999999999999999999999999999999.5', 20), -2)": "DECIMAL_OVERFLOW",
    "SELECT 1 + toDecimal256('99999999999999999999999999999999999999999999999999999999.1', 20)": "DECIMAL_OVERFLOW",
    "SELECT match('a', unhex('ff00'))": "CANNOT_CONVERT_TYPE",
    "SELECT simpleJSONExtractInt('{}', unhex('ff00'))": "CANNOT_CONVERT_TYPE",
}
"""olapdb's answers where ClickHouse wraps around, has wider types, or takes any bytes for text."""
OUR_VALUES: dict[str, list[tuple[object, ...]]] = {
    "SELECT arrayIntersect([1.5, 2], [1, 2])": [([2],)],
    "SELECT toInt32(if(number = 0, sqrt(4), CAST(NULL AS Nullable(UInt64)))) FROM numbers(2)": [
        (2,),
        (None,),
    ],
    "SELECT if(number >= 0, NULL, toString(number)) AS k, count() FROM numbers(5) GROUP BY k": [
        (None, 5)
    ],
    "SELECT hex(leftUTF8(unhex('84C396C396'), 1)), hex(rightUTF8(unhex('84C396C396'), 2))": [
        ("C396", "C396C396")
    ],
    "SELECT hex(substringUTF8(unhex('E24142'), 2)), hex(leftUTF8(unhex('8484'), 2))": [
        ("4142", "")
    ],
    "SELECT moduloOrZero(toInt64(-5), if(number < 2, toUInt64(number * 3), toInt64(-3))),"
    " moduloOrZero(if(number = 0, toUInt64(18446744073709551615), toInt64(-7)), 2) FROM numbers(3)": [
        (0, 1),
        (-2, -1),
        (-2, -1),
    ],
}
"""olapdb's values where ClickHouse's are wrong, undefined, or an error."""


@pytest.fixture(scope="module")
def connection() -> Iterator[olapdb.Connection]:
    with olapdb.connect() as opened:
        yield opened


@pytest.mark.timeout(60)
@pytest.mark.parametrize("title", SAME)
def test_the_answer_is_clickhouses(
    title: str, connection: olapdb.Connection, oracle: Oracle
) -> None:
    expected = oracle.query(SAME[title])
    result = connection.session.execute(SAME[title])
    shown = [
        display(column.combine_chunks(), data_type)
        for column, data_type in zip(result.read_all().columns, result.types, strict=True)
    ]
    assert tuple(str(t) for t in result.types) == expected.types
    assert list(zip(*shown, strict=True)) == expected.rows


@pytest.mark.parametrize("query", REFUSED)
def test_the_error_is_clickhouses(
    query: str, connection: olapdb.Connection, oracle: Oracle
) -> None:
    with pytest.raises(OracleError) as theirs:
        oracle.query(query)
    with pytest.raises(olapdb.Error) as ours:
        connection.execute(query).fetchall()
    assert ours.value.name == theirs.value.name


@pytest.mark.parametrize("query", OURS)
def test_the_error_is_ours(query: str, connection: olapdb.Connection) -> None:
    with pytest.raises(olapdb.Error) as raised:
        connection.execute(query).fetchall()
    assert raised.value.name == OURS[query]


@pytest.mark.parametrize("query", OUR_VALUES)
def test_the_values_are_ours(query: str, connection: olapdb.Connection) -> None:
    assert connection.execute(query).fetchall() == OUR_VALUES[query]


def test_many_texts_that_do_not_parse(connection: olapdb.Connection) -> None:
    """A cast once set failing texts aside one by one, each with a pass over the rest."""
    started = time.monotonic()
    query = (
        "SELECT count(toDateOrNull(t)), count(toDateTimeOrNull(t)), count(toUInt8OrNull(t)),"
        " count(toDecimal32OrNull(t, 2)), count(toFloat64OrNull(t)), count(toUUIDOrNull(t)) FROM"
        " (SELECT multiIf(number % 3 = 0, 'a' || toString(number), number % 3 = 1,"
        " toString(number), '2024-01-02') AS t FROM numbers(30000))"
    )
    found = connection.execute(query).fetchall()
    assert found[0][2:] == (85, 10_000, 10_000, 0)
    assert found[0][0] >= 10_000
    assert time.monotonic() - started < 20


def test_a_moment_that_python_does_not_have(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE far_away (t DateTime64(0)) ORDER BY t")
    connection.insert("far_away", pa.table({"t": pa.array([10**12], pa.timestamp("s"))}))
    with pytest.raises(olapdb.DataError, match="toString") as raised:
        connection.execute("SELECT t FROM far_away").fetchall()
    assert raised.value.name == "CANNOT_CONVERT_TYPE"
    connection.execute("DROP TABLE far_away")
