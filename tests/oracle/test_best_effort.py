"""Timestamps as texts in any format, beside ClickHouse's best effort parser."""

from __future__ import annotations

import random

import pytest

import olapdb
from tests.harness.beside import assert_same
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("functions")

TEXTS = 600
CALLS = (
    "parseDateTimeBestEffortOrNull(s)",
    "parseDateTime64BestEffortOrNull(s, 6)",
    "parseDateTimeBestEffortUSOrNull(s, 'Asia/Kolkata')",
    "parseDateTime64BestEffortUSOrNull(s, 3, 'Asia/Tokyo')",
    "parseDateTimeBestEffortOrZero(s)",
    "CAST(s AS Nullable(DateTime))",
    "CAST(s AS Nullable(DateTime64(9)))",
)
MONTHS = (
    "Jan",
    "Feb",
    "March",
    "apr",
    "May",
    "JUN",
    "July",
    "August",
    "Sep",
    "October",
    "Dec",
    "Sept",
)
WEEKDAYS = ("Mon", "Tue", "Wednesday", "thu", "FRI", "Saturday", "Sun", "Mond")
OFFSETS = (
    "",
    "",
    "Z",
    " UTC",
    " GMT",
    " MSK",
    "+03:00",
    " +0300",
    "-0530",
    "+3",
    "+330",
    " +3:30",
    " EST",
    "+123456",
    "+12345",
    "PM",
    " pm",
    " AM",
    "+3-0530",
)
MARKS = "-/.-/. :_xT,;年"


@pytest.fixture(scope="module")
def connection() -> olapdb.Connection:
    return olapdb.connect()


class Texts:
    """A generator of texts that are timestamps, or almost."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def text(self) -> str:
        draw = self.draw
        kind = draw.random()
        if kind < 0.08:
            number = draw.randint(0, 10 ** draw.choice((9, 10, 13, 16, 19)))
            return str(number) + draw.choice(("", "", ".5", ".123456789", " ", "."))
        if kind < 0.85:
            day, clock, offset = self._day(), self._clock(), draw.choice(OFFSETS)
            mark = draw.choice((" ", " ", " ", "T", ", ", ",", "  ", "", ":", "-"))
            made = draw.choice(
                (
                    day + mark + clock + offset,
                    day + mark + clock + offset,
                    day + offset,
                    clock + mark + day + offset,
                )
            )
        else:
            pieces = (
                "1",
                "20",
                "2020",
                "03",
                "12",
                *"-/.: ,TZ+",
                "Jan",
                "Mon",
                "PM",
                "UTC",
                "00",
                "ü",
            )
            made = "".join(draw.choices(pieces, k=draw.randint(1, 9)))
        if made and draw.random() < 0.15:
            at = draw.randrange(len(made))
            made = made[:at] + draw.choice("0129 :-/.,TZxa+@'") + made[at + draw.randint(0, 1) :]
        return made

    def _day(self) -> str:
        draw, mark = self.draw, self.draw.choice(MARKS)
        year = f"{draw.choice((1850, 1970, 2000, 2024, 2106, 2299, 9999, 0, draw.randint(1900, 2199))):04d}"
        month = draw.choice((f"{draw.randint(0, 13)}", f"{draw.randint(1, 12):02d}"))
        day = draw.choice((f"{draw.randint(0, 32)}", f"{draw.randint(1, 28):02d}"))
        name, weekday = draw.choice(MONTHS), draw.choice(WEEKDAYS)
        return draw.choice(
            (
                f"{year}{mark}{month}{mark}{day}",
                f"{day}{mark}{month}{mark}{year}",
                f"{day}/{month}/{draw.randint(0, 99):02d}",
                f"{day} {name} {year}",
                f"{name} {day}, {year}",
                f"{day}{mark}{name}{mark}{year}",
                f"{weekday}, {day} {name} {year}",
                f"{year} {name} {day}",
                f"{year}{int(month):02d}{int(day):02d}",
                f"{year}{int(month):02d}",
                year,
                f"{year}{mark}{month}",
            )
        )

    def _clock(self) -> str:
        draw = self.draw
        hour, minute, second = draw.randint(0, 25), draw.randint(0, 61), draw.randint(0, 61)
        fraction = draw.choice(("", "5", "123456", "123456789", "1234567890123456789012"))
        return draw.choice(
            (
                f"{hour:02d}:{minute:02d}:{second:02d}",
                f"{hour}:{minute}:{second}",
                f"{hour}:{minute}",
                f"{hour:02d}:{minute:02d}:{second:02d}.{fraction}",
                f"{hour:02d}{minute:02d}{second:02d}",
                f"{hour}",
            )
        )


def literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@pytest.mark.parametrize("call", CALLS)
def test_random_texts(connection: olapdb.Connection, oracle: Oracle, call: str) -> None:
    texts = Texts(3)
    drawn = [texts.text() for _ in range(TEXTS)]
    query = (
        f"SELECT toString({call}) FROM (SELECT arrayJoin([{', '.join(map(literal, drawn))}]) AS s)"
    )
    there = [row[0] for row in oracle.query(query).rows]
    here = [row[0] for row in connection.execute(query).fetchall()]
    this_year = oracle.query("SELECT toYear(now())").value or ""
    years = (this_year, str(int(this_year) - 1))
    read = 0
    for text, expected, found in zip(drawn, there, here, strict=True):
        yearless = (
            expected is not None
            and expected.startswith(years)
            and not any(year in text for year in years)
        )
        if not yearless:
            assert found == expected, text
            read += found is not None
    assert read > TEXTS / 4


WRONG = (
    "",
    "abc",
    "2020-01-02 xyz",
    "2020-01-02 @",
    "1600000000.5",
    "1600000000123 ",
    "12345",
    "-1600000000",
    "2020-02-30",
    "2020-13-01",
    "2020-01-02 10:00:00 Married",
    "1:2:3 4:5:6 2020",
    "Mon Tue 2020,",
    "2020/01",
    "02/Jan/2020:10:00:00 +0300",
    "32/32/2020",
    "2020 aM pm x",
    "1.1.1.2020",
    "Tuesday",
    "2020-01-02,",
)


@pytest.mark.parametrize("text", WRONG)
def test_wrong_texts(connection: olapdb.Connection, oracle: Oracle, text: str) -> None:
    for call in (f"parseDateTimeBestEffort({literal(text)})", f"toDateTime64({literal(text)}, 3)"):
        assert_same(connection, oracle, f"SELECT {call} AS v")


@pytest.mark.parametrize(
    "expression",
    [
        "parseDateTimeBestEffort('2020-01-02', 3)",
        "parseDateTimeBestEffort('2020-1-2', 3, 'Asia/Tokyo')",
        "parseDateTime32BestEffort('2020-01-02', 'Asia/Tokyo')",
        "parseDateTime64BestEffort('2020-01-02')",
        "parseDateTime32BestEffortOrNull('x')",
        "parseDateTime64BestEffortUSOrZero('1/2/2020 3:4', 3)",
        "parseDateTimeBestEffort(toFixedString('2020-01-02', 12))",
        "parseDateTimeBestEffortOrZero(toNullable('x'))",
        "parseDateTimeBestEffortOrNull(NULL)",
        "parseDateTime64BestEffort(NULL, 3)",
        "parseDateTimeBestEffort(5)",
        "parseDateTimeBestEffort([''])",
        "parseDateTime64BestEffort('2020-01-02', 10)",
        "parseDateTime64BestEffort('2020-01-02', 'UTC')",
        "parseDateTime64BestEffort('2020-01-02', materialize(3))",
        "parseDateTimeBestEffortUS('2020-01-02', 4)",
        "parseDateTimeBestEffort('2020-01-02', 'Nope')",
        "parseDateTime32BestEffort('2020-01-02', 'UTC', 1)",
        "parseDateTime64BestEffort('2299-12-31 23:59:59.25', 9)",
        "toDateTime64('2299-12-31 23:59:59.25', 9)",
        "parseDateTime64BestEffortOrNull('2299-12-31 23:59:59.25', 9)",
        "toDateTime64('1850-01-02 10:00:00.25', 3)",
        "toDateTime('2020-03-29 02:30:00', 'Europe/Berlin')",
        "toDateTime('2018-11-04 00:30:00', 'America/Sao_Paulo')",
        "toDateTimeOrNull('12/31/20 5:06 PM')",
        "toDateTimeOrNull('2020-1-2')",
        "toDateTimeOrNull('2020/01/02 03:04:05')",
        "toDateTimeOrZero('123456')",
        "toDateTime64OrNull('-1600000000.25', 3)",
        "toDateTime64OrNull('1600000000123', 3)",
        "toDateTimeOrNull('2020-01-02 03:04:05.5')",
        "toDateTime64OrNull('2020-01-02 03:04:05.5', 3)",
        "toDateTimeOrDefault('1 Jan 2020')",
        "toDateTime('2020-01-02') = '2 Jan 2020'",
    ],
)
def test_calls(connection: olapdb.Connection, oracle: Oracle, expression: str) -> None:
    assert_same(connection, oracle, f"SELECT {expression} AS v")


def test_an_insert_reads_any_format(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE read (t DateTime, u Nullable(DateTime64(3))) ORDER BY t")
    connection.execute(
        "INSERT INTO read VALUES ('12/31/20 5:06 PM', 'Tue, 18 Aug 2020 14:13:20.5 GMT'),"
        " ('2020-1-2', NULL), ('1600000000', '1600000000123')"
    )
    connection.execute("INSERT INTO read SELECT '2 Jan 2021', '20210203 040506'")
    rows = connection.execute("SELECT toString(t), toString(u) FROM read ORDER BY t").fetchall()
    assert rows == [
        ("2020-01-02 00:00:00", None),
        ("2020-09-13 12:26:40", "2020-09-13 12:26:40.123"),
        ("2020-12-31 17:06:00", "2020-08-18 14:13:20.500"),
        ("2021-01-02 00:00:00", "2021-02-03 04:05:06.000"),
    ]
    with pytest.raises(olapdb.Error) as raised:
        connection.execute("INSERT INTO read VALUES ('2020-1-2', NULL), ('2 Foo 2020', NULL)")
    assert raised.value.name == "CANNOT_PARSE_DATETIME"
    connection.execute("DROP TABLE read")


@pytest.mark.parametrize("text", ["Mar  3 01:33:48", "10:00:00", "5", "0000-01-02 10:00:00", "Jan"])
def test_a_text_without_a_year_is_refused(connection: olapdb.Connection, text: str) -> None:
    with pytest.raises(olapdb.Error, match="year"):
        connection.execute(f"SELECT parseDateTimeBestEffort('{text}')").fetchall()
    rows = connection.execute(f"SELECT parseDateTime64BestEffortOrNull('{text}')").fetchall()
    assert rows == [(None,)]


def test_rows_of_one_shape_part_where_some_are_zero(
    connection: olapdb.Connection, oracle: Oracle
) -> None:
    texts = "['2020-00-07', '2020-01-00', '2020-01-07', '2020-00-00', '0000-01-07', '2020-13-07']"
    for call in ("parseDateTimeBestEffortOrNull(s)", "parseDateTimeBestEffortUSOrNull(s)"):
        query = f"SELECT arrayJoin({texts}) AS s, {call} AS v WHERE s != '0000-01-07'"
        assert_same(connection, oracle, query)
