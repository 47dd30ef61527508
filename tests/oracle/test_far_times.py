"""Date32 and DateTime64 from the year 1 to 9999, and what is beyond, beside ClickHouse."""

from __future__ import annotations

import datetime

import pytest

import olapdb
from tests.harness.beside import assert_same
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("types")

EXPRESSIONS = (
    "toDateTime64(-3000000000, 3)",
    "toDateTime64(20000000000, 3)",
    "toDateTime64(1e12, 3)",
    "toDateTime64(1e300, 3)",
    "toDateTime64(nan, 3)",
    "toDateTime64(inf, 3)",
    "toDateTime(nan)",
    "toDateTime64(20000000000, 9)",
    "toDateTime64(-20000000000, 9)",
    "toDateTime64(toDateTime64('2500-01-01',3), 9)",
    "toDateTime64(toDate32('2500-01-01'), 9)",
    "toDateTime64(toDate32('2500-01-01'), 3)",
    "toDateTime64(20000000000.5, 9)",
    "toDateTime64(toDecimal64(20000000000.5,2), 9)",
    "toDateTime64(toDecimal64(20000000000.5,2), 3)",
    "toDateTime64(toDecimal64(-20000000000.5,2), 3)",
    "toDateTime64(toDateTime('2106-01-01'), 9)",
    "toDateTime64(toDateTime64('2200-01-01',3), 6)",
    "toDate32(-50000)",
    "toDate32(200000)",
    "toDate32(3000000)",
    "toDate32(5e9)",
    "toDate32('1850-01-02') + INTERVAL 1 DAY",
    "toDate32('2299-12-31') + INTERVAL 1 DAY",
    "addYears(toDate32('2299-12-31'), 5)",
    "addDays(toDate32('1900-01-01'), -5)",
    "addYears(toDate32('9999-12-31'), 5)",
    "addMonths(toDate32('2300-01-31'), 1)",
    "toYear(toDate32('9999-12-31'))",
    "toDate32('9999-02-30')",
    "toDate32OrNull('1850-01-02')",
    "date_trunc('week', toDateTime64('1850-05-05 01:02:03',3))",
    "date_trunc('year', toDate32('9999-05-05'))",
    "date_trunc('month', toDateTime64('2500-05-05 01:02:03',3))",
    "dateDiff('day', toDate32('0001-01-01'), toDate32('9999-12-31'))",
    "toInt32(toDate32('9999-12-31'))",
    "toDate(toDate32('1850-12-31'))",
    "toDate(toDate32('2200-12-31'))",
    "formatDateTime(toDate32('0850-12-31'), '%Y-%m-%d %j')",
    "toDayOfYear(toDate32('0850-12-31'))",
    "toDayOfWeek(toDate32('0850-12-31'))",
    "toISOYear(toDate32('2500-01-01'))",
    "toYYYYMMDD(toDate32('2500-01-01'))",
    "toQuarter(toDate32('2500-05-01'))",
    "max(toDate32('9999-12-31'))",
    "toLastDayOfMonth(toDate32('2500-02-01'))",
    "age('year', toDate32('1850-02-01'), toDate32('2500-01-01'))",
    "toDateTime(inf)",
    "toDateTime(toNullable(nan))",
    "toDate(nan)",
    "toDateTime64(toFloat32(1.5), 6)",
    "toDateTime64(1.123456789, 9)",
    "toDateTime(1e10)",
    "toDateTime(-5.5)",
    "toDateTime64(-5.5, 3)",
    "toDateTime64(9223372036.9, 9)",
    "toDateTime64(CAST(1 AS UInt64), 9)",
    "addSeconds(toDateTime64('2024-01-01', 3), 9223372036854775807)",
    "addSeconds(toDateTime64('2024-01-01', 9), 92233720368)",
    "addSeconds(toDateTime64('2024-01-01', 9), -3600)",
    "addMilliseconds(toDateTime64('2024-01-01', 3), 9223372036854775807)",
    "addSeconds(toDateTime('2024-01-01 00:00:00'), 9223372036854775807)",
    "addYears(toDateTime64('2024-01-01', 3), 1000)",
    "toDate(inf)",
    "toDate(-inf)",
    "toDateTime(-inf)",
    "toDate32OrNull('9999-01-02')",
    "toDateTime64(-3000000000.5, 3)",
    "toDate32('0850-12-31') < toDate32('1850-12-31')",
    "toDate(1e20)",
    "toDate(toFloat32(1e20))",
    "toDate(-1e20)",
    "toDate(1e19)",
    "toDate32(1e20)",
    "toDate32(inf)",
    "toDateTime64(253402300799.125, 3, 'Asia/Tokyo')",
    "toDateTime64(253402268400, 0, 'Asia/Tokyo')",
    "toDateTime64(253402268399, 0, 'Asia/Tokyo')",
    "toDateTime64('9999-12-31 23:59:59', 0, 'America/New_York')",
    "toYear(toDateTime64(253402300799, 0, 'Asia/Tokyo'))",
    "toHour(toDateTime64(253402282799, 3, 'Asia/Tokyo'))",
    "toDate32(toDateTime64(253402300799, 0, 'Asia/Tokyo'))",
    "toYYYYMMDDhhmmss(toDateTime64(253402282799, 3, 'Asia/Tokyo'))",
    "formatDateTime(toDateTime64(253402300799, 0, 'Asia/Tokyo'), '%F %T')",
    "fromUnixTimestamp(toInt64(9223372036854775807), '%F %H', 'Asia/Tokyo')",
    "toUnixTimestamp64Second(toDateTime64(253402300799, 0, 'Asia/Tokyo'))",
    "toDateTime64(253402282799, 3, 'Asia/Tokyo') + INTERVAL 1 HOUR",
    "addDays(toDateTime64(253402282799, 3, 'Asia/Tokyo'), -1)",
    "addMonths(toDateTime64(253402282799, 3, 'Asia/Tokyo'), -1)",
    "toStartOfMinute(toDateTime64(253402282799, 3, 'Asia/Tokyo'))",
    "date_trunc('month', toDateTime64(253402282799, 3, 'Asia/Tokyo'))",
    "toDateTime64(toString(toDateTime64(253402282799, 3, 'Asia/Tokyo')), 3, 'Asia/Tokyo')",
    "toTimeZone(toDateTime64('9999-12-31 23:59:59', 3, 'UTC'), 'Asia/Tokyo')",
    "dateDiff('day', toDateTime64('9999-12-30 00:00:00', 3, 'Asia/Tokyo'), toDateTime64(253402282799, 3, 'Asia/Tokyo'))",
    "[toDateTime64(253402282799, 3, 'Asia/Tokyo')]",
    "[NULL, toDateTime64(253402282799, 3, 'Asia/Tokyo')]",
    "toDateTime64(9223372036, 9, 'Asia/Tokyo')",
    "toDateTime64(-9223372036, 9, 'America/New_York')",
    "toDateTime64(9223372036, 8, 'Asia/Tokyo') - INTERVAL 1 MINUTE",
)


@pytest.fixture(scope="module")
def connection() -> olapdb.Connection:
    return olapdb.connect()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_far_moments(connection: olapdb.Connection, oracle: Oracle, expression: str) -> None:
    assert_same(connection, oracle, f"SELECT {expression} AS v")


BEYOND = {
    "addYears(toDateTime64('2024-01-01', 3), 100000)": "9999-12-31 00:00:00.000",
    "addDays(toDateTime64('2024-01-01 01:00:00', 3), -9223372036854775807)": "0001-01-01 01:00:00.000",
    "subtractQuarters(toDateTime64('2024-01-01', 6), 9223372036854775807)": "0001-01-01 00:00:00.000000",
    "addYears(toDateTime64('2024-01-01', 9), 1000)": "2262-04-11 23:47:15.000000000",
    "addSeconds(toDateTime64('2024-01-01', 3), 1000000000000)": "9999-12-31 23:59:59.999",
    "addYears(toDate32('2024-01-01'), 9223372036854775807)": "9999-12-31",
    "addMonths(toDate32('2024-01-01'), -9223372036854775807)": "0001-01-01",
    "fromUnixTimestamp64Milli(9223372036854775807)": "9999-12-31 23:59:59.999",
    "fromUnixTimestamp64Milli(toUInt64(18446744073709551615))": "9999-12-31 23:59:59.999",
    "toDateTime64(toUInt64(18446744073709551615), 3)": "9999-12-31 23:59:59.999",
    "fromUnixTimestamp(toInt8(-1), '%F %T', 'UTC')": "1969-12-31 23:59:59",
    "fromUnixTimestamp(toUInt64(18446744073709551615), '%F %T', 'UTC')": "9999-12-31 23:59:59",
    "fromUnixTimestamp(toInt64(-9223372036854775808), '%F', 'UTC')": "0001-01-01",
}
"""olapdb's answers where ClickHouse stops at 0000-01-01, at a January, or wraps around."""


@pytest.mark.parametrize(("expression", "end"), BEYOND.items())
def test_what_is_moved_too_far_stops(
    connection: olapdb.Connection, expression: str, end: str
) -> None:
    assert connection.execute(f"SELECT toString({expression})").fetchall() == [(end,)]


def test_far_days_in_a_table(connection: olapdb.Connection) -> None:
    """Far days are stored, pruned by their bounds, and read back."""
    connection.execute(
        "CREATE TABLE far (d Date32, t DateTime64(3)) ORDER BY d PARTITION BY toYear(d)"
    )
    connection.execute(
        "INSERT INTO far VALUES ('0001-01-01', '0001-01-01 00:00:00.5'), ('1850-02-03', '1850-02-03 04:05:06'),"
        " ('9999-12-31', '9999-12-31 23:59:59.999')"
    )
    connection.execute("OPTIMIZE TABLE far FINAL")
    rows = connection.execute("SELECT d, toString(t) FROM far ORDER BY d").fetchall()
    assert rows == [
        (datetime.date(1, 1, 1), "0001-01-01 00:00:00.500"),
        (datetime.date(1850, 2, 3), "1850-02-03 04:05:06.000"),
        (datetime.date(9999, 12, 31), "9999-12-31 23:59:59.999"),
    ]
    assert connection.execute("SELECT count() FROM far WHERE d < '1900-01-01'").fetchall() == [(2,)]
    assert connection.execute("SELECT count() FROM far WHERE t > '2300-01-01'").fetchall() == [(1,)]
    assert connection.execute("SELECT min(d), max(t) FROM far").fetchall() == [
        (datetime.date(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_000))
    ]
    connection.execute("ALTER TABLE far DROP PARTITION 9999")
    assert connection.execute("SELECT count() FROM far").fetchall() == [(2,)]
    connection.execute("DROP TABLE far")
