"""Statements with a FORMAT and settings of formats: their text, or their error, is ClickHouse's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("formats")

_SETUP = (
    "CREATE TABLE counted (a UInt32, b String) ENGINE = MergeTree ORDER BY a",
    "INSERT INTO counted SELECT number, toString(number) FROM numbers(10)",
)
_BEFORE_LIMIT = (
    "SELECT number FROM numbers(10) LIMIT 3",
    "SELECT a FROM counted LIMIT 3",
    "SELECT a FROM counted WHERE a % 2 = 0 LIMIT 3",
    "SELECT a FROM counted ORDER BY a LIMIT 3 OFFSET 2",
    "SELECT a FROM counted ORDER BY b DESC LIMIT 3",
    "SELECT a FROM counted ORDER BY a OFFSET 8",
    "SELECT a % 3 AS k, count() AS c FROM counted GROUP BY k ORDER BY c, k LIMIT 2",
    "SELECT a % 3 AS k, count() FROM counted GROUP BY k WITH TOTALS ORDER BY k LIMIT 2",
    "SELECT DISTINCT a % 3 AS k FROM counted ORDER BY k LIMIT 2",
    "SELECT a FROM (SELECT a FROM counted ORDER BY a LIMIT 3)",
    "SELECT 1 AS one FROM counted ORDER BY a LIMIT 2 UNION ALL SELECT 1",  # in any order
    "SELECT a, row_number() OVER (ORDER BY a) AS r FROM counted ORDER BY a LIMIT 2",
    "SELECT count() FROM counted",
)


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as oracle:
        for statement in _SETUP:
            oracle.execute(statement)
        yield oracle


@pytest.fixture(scope="module")
def connection() -> Iterator[olapdb.Connection]:
    with olapdb.connect() as connection:
        for statement in _SETUP:
            connection.execute(statement)
        yield connection


def _expected(oracle: Oracle, sql: str) -> bytes | str:
    """Return ClickHouse's text of a statement, or the name of its error."""
    try:
        return oracle.text(sql, "TSVWithNamesAndTypes")
    except OracleError as error:
        return error.name


def _answer(connection: olapdb.Connection, sql: str) -> bytes | str:
    """Return olapdb's text of a statement, or the name of its error."""
    try:
        cursor = connection.execute(sql)
        return (
            cursor.fetch_text() if " FORMAT " in sql else cursor.fetch_text("TSVWithNamesAndTypes")
        )
    except olapdb.Error as error:
        return error.name


@pytest.mark.parametrize("output_format", ["JSON", "JSONCompact", "JSONColumnsWithMetadata", "XML"])
def test_rows_before_limit(
    output_format: str, oracle: Oracle, connection: olapdb.Connection
) -> None:
    for query in _BEFORE_LIMIT:
        sql = f"{query} FORMAT {output_format} SETTINGS output_format_write_statistics = 0"
        assert _answer(connection, sql) == _expected(oracle, sql), query


@pytest.mark.parametrize(
    ("row", "result"),
    [
        ("${a:XML} ${b:JSON} ${b:CSV} ${b:Quoted} ${b:Escaped} ${b:Raw} $$", ""),
        ("a=${a:CSV}, ${1:Quoted}", "<${data}> ${rows:XML} of ${rows_before_limit:CSV}"),
        ("${a:CSV}", "[${data}] T ${totals}"),
        ("${a:CSV}", "${data} ${min} ${max}"),
        ("${a:CSV}", "${rows:CSV} ${data}"),
        ("${a:CSV}", "no rows"),
        ("${a:CSV}", "${data} ${nope:CSV}"),
        ("${a:Nope}", ""),
        ("${a}", ""),
        ("${nope:CSV}", ""),
        ("", ""),
    ],
)
def test_template(row: str, result: str, oracle: Oracle, connection: olapdb.Connection) -> None:
    settings = (
        f"format_template_row_format = '{row}', format_template_resultset_format = '{result}'"
    )
    for query in (
        "SELECT a, 'x\"y' AS b FROM counted ORDER BY a LIMIT 3",
        "SELECT a, '' AS b FROM counted WHERE a > 99",
        "SELECT intDiv(a, 3) AS a, count() AS b FROM counted GROUP BY a WITH TOTALS ORDER BY a",
    ):
        for more in ("", ", extremes = 1, format_template_rows_between_delimiter = ';'"):
            sql = f"{query} FORMAT Template SETTINGS {settings}{more}"
            assert _answer(connection, sql) == _expected(oracle, sql), sql


_UNREADABLE = (
    ("CSV", "s String, x {0}", "q,{1}"),
    ("CSV", "x {0}, s String", "{1},q"),
    ("TSV", "s String, x {0}", "q\\t{1}"),
    ("TSV", "x {0}, s String", "{1}\\tq"),
    ("JSONEachRow", "x {0}", '{{"x":"{1}"}}'),
    ("JSONCompactEachRow", "x {0}", '["{1}"]'),
    ("Values", "x {0}", "(\\'{1}\\')"),
)


@pytest.mark.parametrize(
    ("data_type", "text"),
    [
        ("UInt8", "abc"),
        ("UInt8", "1x"),
        ("Int32", "1.5"),
        ("Nullable(Int64)", "1 2"),
        ("Float64", "1.2x"),
        ("Float64", "abc"),
        ("Decimal(9, 2)", "abc"),
        ("Date", "2020-01-01x"),
        ("Date", "foo"),
        ("Bool", "abc"),
        ("UUID", "abc"),
        ("Array(UInt8)", "abc"),
    ],
)
def test_errors_of_values(
    data_type: str, text: str, oracle: Oracle, connection: olapdb.Connection
) -> None:
    """A value that cannot be read has the error of the character at which ClickHouse stops."""
    for name, structure, data in _UNREADABLE:
        if name == "Values" and data_type.startswith("Nullable"):
            continue  # NULL in ClickHouse
        source = f"'{structure.format(data_type)}', '{data.format('', text)}'"
        sql = f"SELECT * FROM format({name}, {source})"
        assert _answer(connection, sql) == _expected(oracle, sql), sql


@pytest.mark.parametrize(
    "data",
    ["FORMAT CSV 1,abc", "FORMAT CSV abc,1", "FORMAT TSV 1\tabc", 'FORMAT JSONEachRow {"b":"x"}'],
)
def test_errors_of_inserted_values(
    data: str, oracle: Oracle, connection: olapdb.Connection
) -> None:
    for database in (oracle, connection):
        database.execute("CREATE TABLE IF NOT EXISTS numbered (a UInt8, b Int32) ENGINE = Memory")
    with pytest.raises(OracleError) as expected:
        oracle.execute(f"INSERT INTO numbered {data}")
    with pytest.raises(olapdb.Error) as refused:
        connection.execute(f"INSERT INTO numbered {data}")
    assert refused.value.name == expected.value.name


@pytest.mark.parametrize(
    "row",
    ['{"x" 1}', "{x:1}", '{"x":1,}', '{"x":1', "foo", '{"x":1}}', '{"x":abc}', '{"y":1}', "[1]"],
)
def test_errors_of_rows(row: str, oracle: Oracle, connection: olapdb.Connection) -> None:
    sql = f"SELECT * FROM format(JSONEachRow, 'x UInt8', '{row}')"
    assert _answer(connection, sql) == _expected(oracle, sql)


@pytest.mark.parametrize(
    "source",
    [
        "CSV, 'x String, s String', '  a , b \\n'",
        "CSV, 'x UInt8, s String', '1, a \\n 2 ,c'",
        "CSV, 'x Float64, d Date, s String', ' 1.5 , 2024-01-01 , \\tz\\n'",
        "CSV, ' a , 1 \\n b , 2 \\n'",
        "CSV, 'x String, s String', '\"a , b\", c \\n'",
        "CSV, 'x String, s String', ' a , b '",
        "CSV, 'x String, s String', ' a ,\t\"b\" '",
        "CSV, 'x String, s String', 'a, '",
        "CSV, 'x String, n UInt8', 'a, 1 '",
        "CSV, 'd Date', '2024-01-01 '",
        "CSV, 'n Nullable(Float64)', '1.5\\t'",
        "CSV, 's FixedString(3)', 'y '",
        "CSV, 'x, 1 '",
    ],
)
def test_blanks_around_values_of_csv(
    source: str, oracle: Oracle, connection: olapdb.Connection
) -> None:
    for trims in (0, 1):
        settings = f"SETTINGS input_format_csv_trim_whitespaces = {trims}"
        sql = f"SELECT * FROM format({source}) {settings}"
        assert _answer(connection, sql) == _expected(oracle, sql), sql


@pytest.mark.parametrize(
    "columns",
    [
        "(1.5, 2)::Point AS g, 'a' AS name, [1, 2] AS arr, map('a', 1) AS m, NULL AS z, nan AS f",
        "(number, 2)::Point AS g, number AS id, number AS geometry",
        "(1, 1)::Point AS g, NULL AS id",
        "(1, 1)::Point AS g, 'x' AS id, tuple(1 AS p, 'y' AS q) AS t",
        "(1, 1)::Point AS g, [1] AS id",
        "[(0, 0), (1, 1)]::LineString AS g",
        "[(0, 0), (1, 1), (1, 0), (0, 0)]::Ring AS g",
        "[[(0, 0), (1, 1), (1, 0), (0, 0)]]::Polygon AS g",
        "[[[(0, 0), (1, 1), (1, 0), (0, 0)]]]::MultiPolygon AS g",
        "[[(0, 0), (1, 1), (1, 0)]]::MultiLineString AS g",
        "[(0, 0), (1, 1)]::MultiPoint AS g",
        "[]::MultiPoint AS g",
        "[(0, 0)]::LineString AS g",
        "[(0, 0), (1, 1), (0, 0)]::Ring AS g",
        "[(0, 0), (1, 1), (1, 0), (0, 1)]::Ring AS g",
        "[]::Polygon AS g",
        "[]::MultiLineString AS g",
        "(1, 1)::Point AS g, nan AS id",
        "(1, 1)::Point AS g, if(number = 1, 1.5, NULL) AS id",
        "(nan, 1)::Point AS g",
        "(1, 1)::Point AS g, (1, 1)::Point AS h",
        "1.5 AS a, (1, 2) AS b",
        "arrayJoin([(1, 1)::Point::Geometry, [(0, 0), (1, 1)]::LineString::Geometry, NULL]) AS g",
    ],
)
def test_geojson(columns: str, oracle: Oracle, connection: olapdb.Connection) -> None:
    """Rows become Features; shapes that GeoJSON does not have are refused."""
    for rows in (2, 0):
        sql = f"SELECT {columns} FROM numbers({rows}) FORMAT GeoJSON"
        assert _answer(connection, sql) == _expected(oracle, sql), sql


def test_geojson_has_numbers_as_the_settings_say(
    oracle: Oracle, connection: olapdb.Connection
) -> None:
    sql = (
        "SELECT (1, 1)::Point AS g, toUInt64(5) AS id, nan AS x, toUInt64(7) AS y FORMAT GeoJSON"
        " SETTINGS output_format_json_quote_64bit_integers = 1, output_format_json_quote_denormals = 1"
    )
    assert _answer(connection, sql) == _expected(oracle, sql)


@pytest.mark.parametrize(
    "output_format", ["JSONCompactEachRowWithProgress", "JSONCompactStringsEachRowWithProgress"]
)
def test_compact_rows_with_progress(
    output_format: str, oracle: Oracle, connection: olapdb.Connection
) -> None:
    for query in (
        "SELECT 1 AS n, 'a' AS s, [1, 2] AS l",
        "SELECT n, count() AS c FROM values('n UInt8', 1, 1, 2) GROUP BY n WITH TOTALS ORDER BY n",
    ):
        sql = f"{query} FORMAT {output_format}"
        assert _without_progress(_answer(connection, sql)) == _without_progress(
            _expected(oracle, sql)
        )


def _without_progress(text: bytes | str) -> list[bytes]:
    """Return the lines of a text but those that say what was read, and how long it took."""
    assert isinstance(text, bytes)
    return [line for line in text.splitlines() if b'"progress"' not in line]
