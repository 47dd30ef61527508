"""Pruning loses no row: WHERE keeps exactly the rows for which the same condition, selected as a
column, is true. Functions that are declared monotonic never decrease."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import olapdb
from olapdb import functions
from olapdb.config import tuning
from olapdb.dbapi.connection import Connection
from olapdb.functions import Argument, Environment
from olapdb.types import DataType, Interval

pytestmark = pytest.mark.feature("select")

Draw = random.Random
PLACES = 40
"""Values of one column are drawn around a place from 0 to PLACES, so that neighbouring rows are
alike and granules have narrow bounds."""
TABLES_PER_RUN, CONDITIONS_PER_TABLE = 60, 40
RUN_SECONDS = 20

WORDS = (
    "",
    "a",
    "ab",
    "abc",
    "abd",
    "b",
    "ba",
    "Z",
    "z",
    "é",
    "éa",
    "%",
    "_",
    "a%",
    "a_b",
    "a\\\\b",
    "k1",
    "k10",
    "k2",
    "\U0010ffff",
    "\uffff",
    " ",
    "0",
    "10",
    "2024-01-05",
)


def _time(draw: Draw, place: int) -> str:
    year = draw.choice((2024, 2024, 1971 + place))
    if draw.random() < 0.4:  # New York's clocks go back
        return f"'2024-11-03 0{draw.randint(0, 9)}:{draw.randint(0, 59):02}:30'"
    day = draw.choice((3, 10, 27, 28))
    return f"'{year}-{1 + place * 11 // PLACES:02}-{day:02} {draw.randint(0, 23):02}:15:00'"


def _moment(draw: Draw, place: int) -> str:
    year = draw.choice((2024, 1960 + place, 2200 + place))
    return f"'{year}-03-{draw.choice((9, 10, 27)):02} 0{draw.randint(0, 9)}:00:00.{draw.choice((0, 500)):03}'"


VALUES: Mapping[str, Callable[[Draw, int], str]] = {
    "Int8": lambda draw, place: str(place * 3 - 60),
    "Int32": lambda draw, place: str((place - 20) * draw.choice((1, 1, 100_000_000))),
    "UInt64": lambda draw, place: str(place * draw.choice((1, 1, 460_000_000_000_000_000))),
    "Float64": lambda draw, place: draw.choice(
        [str((place - 20) / 2)] * 6 + ["nan", "inf", "-inf", "-0.0", "0.0"]
    ),
    "Decimal(9, 2)": lambda draw, place: str((place - 20) * draw.choice((1, 0.5))),
    "String": lambda draw, place: (
        "'"
        + draw.choice((WORDS[place * (len(WORDS) - 1) // PLACES], "a" * place * 3, f"k{place:02}"))
        + "'"
    ),
    "Date": lambda draw, place: (
        f"'{2001 + place}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}'"
    ),
    "Date32": lambda draw, place: (
        f"'{draw.choice((1900 + place * 9, 2024))}-02-{draw.randint(1, 28):02}'"
    ),
    "DateTime": _time,
    "DateTime('America/New_York')": _time,
    "DateTime64(3)": _moment,
    "Bool": lambda draw, place: draw.choice(("true", "false")),
    "Array(Int32)": lambda draw, place: str(
        [place + draw.randint(-1, 1) for _ in range(place % 3)]
    ),
}
TYPES = (
    *VALUES,
    "Nullable(Int32)",
    "Nullable(Float64)",
    "Nullable(String)",
    "LowCardinality(String)",
    "LowCardinality(Nullable(String))",
    "Nullable(Date)",
    "Nullable(Decimal(9, 2))",
)
_COUNTED = (
    "{c}",
    "-{c}",
    "{c} + 1",
    "{c} * -3",
    "100 - {c}",
    "intDiv({c}, 3)",
    "{c} % 7",
    "abs({c})",
    "toInt8({c})",
    "toInt64({c})",
    "toUInt64({c})",
    "toDate({c})",
    "toDate32({c})",
    "toDateTime({c})",
    "toString({c})",
    "round({c}, -1)",
    "if({c} > 3, {c}, -{c})",
    "CAST({c} AS Nullable(Int64))",
)
_DATES = (
    "{c}",
    "toYear({c})",
    "toYYYYMM({c})",
    "toYYYYMMDD({c})",
    "toStartOfMonth({c})",
    "toMonday({c})",
    "toStartOfWeek({c}, 1)",
    "toDayOfWeek({c})",
    "{c} + 3",
    "{c} - INTERVAL 1 YEAR",
    "toDate({c})",
    "addDays({c}, 100000)",
    "addMonths({c}, -13)",
    "toDateTime({c})",
    "toRelativeDayNum({c})",
    "toStartOfInterval({c}, INTERVAL 10 DAY)",
    "dateTrunc('month', {c})",
    "toInt32({c})",
)
EXPRESSIONS: Mapping[str, Sequence[str]] = {
    "Int": _COUNTED,
    "Float": (
        "{c}",
        "-{c}",
        "floor({c})",
        "{c} * 2",
        "abs({c})",
        "toString({c})",
        "ifNull({c}, 0)",
    ),
    "Decimal": ("{c}", "-{c}", "{c} * 2", "floor({c})", "toFloat64({c})", "toInt32({c})"),
    "String": (
        "{c}",
        "{c}",
        "lower({c})",
        "length({c})",
        "reverse({c})",
        "concat('a', {c})",
        "substring({c}, 1, 2)",
        "ifNull({c}, 'a')",
        "toFixedString(substring({c}, 1, 1), 4)",
    ),
    "Date": _DATES,
    "DateTime": (
        *_DATES,
        "toHour({c})",
        "toStartOfHour({c})",
        "toYYYYMMDDhhmmss({c}, 'America/New_York')",
        "toStartOfInterval({c}, INTERVAL 6 HOUR, 'America/New_York')",
        "addHours({c}, 3)",
        "toStartOfDay({c}, 'Asia/Tokyo')",
        "toUnixTimestamp({c})",
        "toTimezone({c}, 'Asia/Kolkata')",
    ),
    "Bool": ("{c}", "not {c}"),
    "Array": ("length({c})", "{c}[1]"),
}
CONSTANTS: Mapping[str, Sequence[str]] = {
    "number": (
        "0",
        "-0.0",
        "1",
        "-1",
        "5",
        "10",
        "-20",
        "255",
        "65536",
        "0.5",
        "nan",
        "inf",
        "NULL",
        "2024",
        "202403",
        "'5'",
        "18446744073709551615",
        "toDecimal64(1.5, 2)",
    ),
    "text": ("''", "'a'", "'ab'", "'k1'", "'é'", "'%'", "NULL", "toFixedString('ab', 3)"),
    "time": (
        "'2024-03-10'",
        "toDate('2024-03-05')",
        "'2024-11-03 01:30:00'",
        "toDate32('1960-05-05')",
        "toDateTime('2024-11-03 01:30:00', 'America/New_York')",
        "NULL",
        "'1969-01-01'",
        "19800",
        "toDateTime64('2024-11-03 01:30:00.5', 3)",
        "202403",
        "2024",
        "10",
    ),
}
PATTERNS = ("'a%'", "'%a'", "'a_b'", "'a\\\\%%'", "'é%'", "'%'", "''", "'k1%'", "'\U0010ffff%'")


def kind_of(data_type: str) -> str:
    """Return the key of EXPRESSIONS for the type."""
    inner = data_type.removeprefix("LowCardinality(").removeprefix("Nullable(")
    if "Int" in inner and not inner.startswith("Array"):
        return "Int"
    found = [kind for kind in EXPRESSIONS if inner.startswith(kind)]
    return max(found, key=len)


def value(draw: Draw, data_type: str, place: int) -> str:
    for outer in ("LowCardinality(", "Nullable("):
        if data_type.startswith(outer):
            if outer == "Nullable(" and draw.random() < 0.2:
                return "NULL"
            return value(draw, data_type[len(outer) : -1], place)
    return VALUES[data_type](draw, min(max(place + draw.randint(-2, 2), 0), PLACES))


def constant(draw: Draw, data_type: str) -> str:
    if draw.random() < 0.4:
        return value(draw, data_type, draw.randint(0, PLACES))
    kind = kind_of(data_type)
    pool = "text" if kind == "String" else "time" if kind.startswith("Date") else "number"
    return draw.choice(CONSTANTS[pool])


def condition(draw: Draw, columns: Mapping[str, str], depth: int = 0) -> str:
    chance = draw.random()
    if depth < 2 and chance < 0.3:
        joined = draw.choice(("AND", "OR")).join(
            f" {condition(draw, columns, depth + 1)} " for _ in range(2)
        )
        return draw.choice(("({})", "({})", "NOT ({})", "ifNull(({}), 1)")).format(joined)
    column = draw.choice(list(columns))
    data_type = columns[column]
    shown = draw.choice(EXPRESSIONS[kind_of(data_type)]).format(c=column)
    if kind_of(data_type) == "String" and chance < 0.5:
        test = draw.choice(("{} LIKE {}", "{} NOT LIKE {}", "startsWith({}, {})", "{} ILIKE {}"))
        return test.format(shown, draw.choice(PATTERNS))
    if kind_of(data_type) == "Array" and chance < 0.6:
        return f"has({column}, {draw.randint(0, PLACES)})"
    if chance < 0.4:
        return f"{shown} IS {draw.choice(('', 'NOT '))}NULL"
    if chance < 0.55:
        items = ", ".join(constant(draw, data_type) for _ in range(draw.randint(1, 4)))
        return f"{shown} {draw.choice(('', 'NOT '))}IN ({items})"
    if chance < 0.6:
        other = draw.choice(list(columns))
        pair = f"({constant(draw, data_type)}, {constant(draw, columns[other])})"
        return f"({column}, {other}) {draw.choice(('<', '=', '>=', 'IN'))} {pair}"
    sides = [shown, constant(draw, data_type)]
    if draw.random() < 0.2:
        sides.reverse()
    return f"{sides[0]} {draw.choice(('=', '!=', '<', '>', '<=', '>='))} {sides[1]}"


def create(draw: Draw, columns: Mapping[str, str]) -> str:
    def expression(column: str) -> str:
        return draw.choice(EXPRESSIONS[kind_of(columns[column])]).format(c=column)

    keyable = [c for c, t in columns.items() if not t.startswith("Array")] or ["id"]
    typed = {"id": "UInt32", **columns}
    keys = [
        (c if c == "id" or draw.random() < 0.6 else expression(c)) + draw.choice(("", "", " DESC"))
        for c in draw.sample(keyable, min(len(keyable), draw.randint(1, 2)))
    ]
    indexes = [
        f"INDEX i{at} {expression(draw.choice(list(columns)))}"
        f" TYPE {draw.choice(('minmax', 'set(0)', 'set(3)', 'bloom_filter'))}"
        f" GRANULARITY {draw.randint(1, 3)}"
        for at in range(draw.randint(0, 3))
    ]
    partition = draw.choice(keyable)
    by = f"PARTITION BY {partition} " if draw.random() < 0.3 else ""
    defined = ", ".join([*(f"{c} {t}" for c, t in typed.items()), *indexes])
    return (
        f"CREATE TABLE t ({defined}) ENGINE = MergeTree {by}ORDER BY ({', '.join(keys)})"
        f" SETTINGS index_granularity = {draw.randint(1, 6)}, allow_nullable_key = 1"
    )


def fill(connection: Connection, draw: Draw) -> dict[str, str]:
    """Create a table with rows; return its columns except `id`. Draw again where olapdb refuses
    it."""
    while True:
        connection.execute("DROP TABLE IF EXISTS t")
        columns = {f"c{at}": draw.choice(TYPES) for at in range(draw.randint(2, 4))}
        places = [draw.randint(0, PLACES) for _ in range(draw.randint(20, 60))]
        if draw.random() < 0.7:
            places.sort()
        rows = [
            f"({at}, {', '.join(value(draw, t, place) for t in columns.values())})"
            for at, place in enumerate(places)
        ]
        try:
            connection.execute(create(draw, columns))
            for some in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
                connection.execute(f"INSERT INTO t VALUES {', '.join(some)}")
        except olapdb.Error:  # the type cannot have such a key or index
            continue
        return columns


def check(connection: Connection, where: str) -> bool:
    """Return False if the condition is refused or fails on a value; otherwise require equal
    rows."""
    try:
        shown = connection.execute(
            f"SELECT id, ifNull(toBool({where}), false) FROM t ORDER BY id"
        ).fetchall()
        kept = connection.execute(f"SELECT id FROM t WHERE {where} ORDER BY id").fetchall()
    except olapdb.Error:
        return False
    assert [row[0] for row in kept] == [row[0] for row in shown if row[1]], where
    return True


def run(seeds: Iterator[int], seconds: float) -> int:
    checked = 0
    deadline = time.monotonic() + seconds
    with olapdb.connect(":memory:", settings={"inline_bytes_max": 0}) as connection:
        connection.execute("SYSTEM STOP MERGES")
        for seed in seeds:
            draw = random.Random(seed)
            columns = fill(connection, draw)
            for _ in range(CONDITIONS_PER_TABLE):
                checked += check(connection, condition(draw, columns))
            if time.monotonic() > deadline and checked > CONDITIONS_PER_TABLE:
                break
    return checked


def test_no_row_is_lost() -> None:
    assert run(iter(range(TABLES_PER_RUN)), RUN_SECONDS) > CONDITIONS_PER_TABLE


def test_no_row_is_lost_to_long_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pruning compares only the ends of long lists."""
    monkeypatch.setattr(tuning, "LISTED_VALUES_MAX", 0)
    assert run(iter(range(TABLES_PER_RUN)), RUN_SECONDS // 4) > CONDITIONS_PER_TABLE


@pytest.mark.soak
@pytest.mark.timeout(1_200)
def test_no_row_is_lost_for_long() -> None:
    run(iter(range(1_000_000, 2_000_000)), 600)


# --- bugs that pruning once had


@pytest.mark.parametrize(
    ("data_type", "values", "where"),
    [
        ("Float64", "nan, nan, 0, 0", "c != 0"),
        ("Nullable(Float64)", "NULL, nan, 0, 0", "NOT (c = 5)"),
        ("Float64", "0, 0, -0.0, -0.0", "c NOT IN (-0.0)"),
        ("Int8", "1, 1, 2, 3", "c != nan"),
        ("UInt64", "5, 5, 18446744073709551615, 9223372036854775808", "toInt64(c) BETWEEN 1 AND 9"),
        ("UInt64", "100, 65535, 65536, 2000000000", "toDate(c) > '2100-01-01'"),
        (
            "DateTime64(0)",
            "'1960-01-01', '1975-01-01', '2024-01-01', '2200-01-01'",
            "toDate(c) < '2000-01-01'",
        ),
        (
            "DateTime",
            "5, 7, '2024-01-01 00:00:00', '2030-01-01 00:00:00'",
            "addHours(c, -1) > '2100-01-01'",
        ),
        ("Nullable(Int32)", "NULL, NULL, 1, 2", "(c, c) > (-16, 5)"),
    ],
)
def test_bounds_that_said_too_much(data_type: str, values: str, where: str) -> None:
    rows = ", ".join(f"({at}, {v})" for at, v in enumerate(values.split(", ")))
    for index in ("", ", INDEX i c TYPE minmax", ", INDEX i c TYPE set(0)"):
        with olapdb.connect(":memory:", settings={"inline_bytes_max": 0}) as connection:
            connection.execute(
                f"CREATE TABLE t (id UInt8, c {data_type}{index}) ENGINE = MergeTree ORDER BY id"
                " SETTINGS index_granularity = 2"
            )
            connection.execute(f"INSERT INTO t VALUES {rows}")
            assert check(connection, where)


# --- functions that never decrease

ZONES = ("UTC", "America/New_York", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia")
_NEAR = [np.arange(start, start + 200_000, 600) for start in (1_710_000_000, 1_730_500_000)]
_SECONDS = np.concatenate([np.arange(0, 2**32 - 1, 86_400 * 9 + 5_000), *_NEAR, [2**32 - 1]])
_WIDE = np.concatenate([np.arange(-2_208_988_800, 10_413_791_999, 86_400 * 13 + 5_000), *_NEAR])
_ENDS = (0, 7, 65_535, 65_536, 120_529, 120_530, 2**31, 2**32, 5 * 10**9, 2**63, 2**64 - 1)


def _series(data_type: DataType) -> pa.Array:
    """Return values over the whole range of a type, ascending."""
    name = str(data_type)
    if name.startswith("DateTime64"):
        return pa.array(np.unique(_WIDE) * 1_000).cast(data_type.arrow)
    if name.startswith("DateTime"):
        return pa.array(np.unique(_SECONDS)).cast(data_type.arrow)
    if name.startswith("Date"):
        days = np.arange(-25_567, 120_530) if name == "Date32" else np.arange(65_536)
        return pa.array(days.astype(np.int32)).cast(data_type.arrow)
    bits = int(name.removeprefix("U").removeprefix("Int"))
    low = 0 if name.startswith("U") else -(2 ** (bits - 1))
    high = 2**bits - 1 if name.startswith("U") else 2 ** (bits - 1) - 1
    found = {n for end in _ENDS for near in (end - 1, end, end + 1) for n in (near, -near)}
    return pa.array(sorted(n for n in found if low <= n <= high), data_type.arrow)


def _calls() -> Iterator[tuple[str, list[Argument]]]:
    text, number = functions.parse_type("String"), functions.parse_type("Int32")
    extra: list[list[Argument]] = [[], [Argument(text, pa.scalar("America/New_York"))]]
    extra += [[Argument(number, pa.scalar(n, pa.int32()))] for n in (1, -13, 100_000)]
    extra += [
        [Argument(Interval(unit), pa.scalar(n, pa.int64()))]
        for unit, n in (("Hour", 6), ("Minute", 90), ("Day", 10), ("Month", 2), ("Year", 3))
    ]
    names = ["Date", "Date32", *(f"{s}Int{b}" for s in ("", "U") for b in (8, 16, 32, 64))]
    names += [f"DateTime{kind}'{zone}')" for kind in ("(", "64(3, ") for zone in ZONES]
    for name in functions.function_names():
        for type_name in names:
            for more in extra:
                yield name, [Argument(functions.parse_type(type_name)), *more]


def test_functions_that_never_decrease() -> None:
    """A function may decrease by wrapping once, so that its last value is below its first."""
    checked = 0
    for name, arguments in _calls():
        try:
            call = functions.resolve_scalar(name, arguments)
        except olapdb.Error:
            continue
        if not call.monotonic:
            continue
        series = _series(arguments[0].type)
        constants = [a.constant for a in arguments[1:]]
        try:
            made = call.kernel([series, *constants], len(series), Environment())
        except olapdb.DataError:  # the kernel refuses values at the far ends
            series = series.slice(len(series) // 3, len(series) // 6)
            made = call.kernel([series, *constants], len(series), Environment())
        if pa.types.is_date32(made.type) or pa.types.is_timestamp(made.type):
            made = made.view(pa.int32() if pa.types.is_date32(made.type) else pa.int64())
        values = made.to_numpy()
        falls = np.flatnonzero(values[1:] < values[:-1])
        wraps = len(falls) <= 1 and values[-1] < values[0]
        assert not len(falls) or wraps, (name, arguments, series[int(falls[0])])
        assert not pc.any(pc.is_null(made)).as_py()
        checked += 1
    assert checked > 500
