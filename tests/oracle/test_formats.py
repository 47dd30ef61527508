"""Output formats: the bytes that ClickHouse writes for the same query."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import pytest

import olapdb
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("formats")

_VALUES = r"""SELECT 1 AS i, -2.5 AS f, nan AS n, inf AS inf_, 'it\'s "q"\ttab\nl\\b/<&>|\r\0\b\f\x01'
 AS s, NULL AS nul, [1, 2] AS a, ['x\'"\n', 'y'] AS sa, map('k', 1) AS m, (1, 't"') AS t,
 toDecimal64('1.50', 2) AS d, toDate('2024-01-02') AS dt, toDateTime('2024-01-02 03:04:05') AS dtm,
 toDateTime64('2024-01-02 03:04:05.678', 3) AS d64, CAST('a', 'Enum8(\'a\' = 1)') AS e, true AS b,
 toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0') AS u, CAST((1, 'n'), 'Tuple(x UInt8, y String)') AS nt,
 toFixedString('ab', 4) AS fs, CAST(1 AS Nullable(UInt8)) AS ni, toUInt64(18446744073709551615) AS big,
 [toDate('2024-01-02')] AS da, [(1, NULL)] AS an, [nan] AS fa, map(1, toDate('2024-01-02')) AS md,
 toDateTime('2024-01-02 03:04:05', 'Asia/Tokyo') AS z, 1 AS `we"ird name`"""
_NESTED = """SELECT [[1, 2], []] AS a, [map('k', [1, 2])] AS b, CAST([] AS Array(Tuple(UInt8))) AS c,
 map() AS d, tuple() AS e, map('x', (1, 2)) AS g, CAST((1,) AS Tuple(a Nullable(UInt8))) AS h,
 (1, (2, 'x')) AS t, [(1, 2)] AS u, ((1, 2), 3) AS v"""
_QUERIES = {
    "values": _VALUES,
    "nested": _NESTED,
    "some rows": "SELECT number AS n, toString(number) AS s, number * 1.5 AS f,"
    " if(number = 1, NULL, number) AS x FROM numbers(3)",
    "no rows": "SELECT number AS n FROM numbers(0)",
    "extremes": "SELECT number % 2 AS k, count() AS c, if(k = 1, NULL, k + 1) AS a FROM numbers(3)"
    " GROUP BY k WITH TOTALS ORDER BY k SETTINGS extremes = 1",
    "extremes of objects": "SELECT CAST((number, 2), 'Tuple(x UInt8, y Int64)') AS t, map('a', t.1) AS m,"
    " [number, 1] AS a, NULL AS n FROM numbers(3) SETTINGS extremes = 1",
    "totals": "SELECT k, count() AS c FROM values('k UInt8', 1, 1, 2) GROUP BY k WITH TOTALS ORDER BY k",
    "large numbers": "SELECT 2000000 AS a, number * 1000000 AS b FROM numbers(3)",
    "a large number": "SELECT 12345678 AS big",
    "many rows": "SELECT number AS a, number % 2 = 0 ? NULL : toString(number) AS b FROM numbers(1500)",
    "sixty rows": "SELECT number FROM numbers(60)",
    "wide letters": "SELECT '日本' AS w, repeat('x', 60) AS l",
    "long names": "SELECT toDateTime('2025-01-01 00:00:00'), toString('aaaaaaaaaaaaaaaaaaaaaaaaaaa'),"
    " 1 AS abcdefghijklmnopqrstuvwxyz01234567, 2 AS `a b c d e f g h i j k l m no`",
    "numbers of all widths": "SELECT toInt128(-5) AS a, toUInt256(7) AS b, toDecimal32(1.5, 2) AS c,"
    " toDecimal128(-1.5, 2) AS d, toDecimal256(1.5, 20) AS e, toDate32('1950-01-02') AS f,"
    " toDateTime64('1950-01-02 03:04:05.67891', 5) AS g, toIPv4('1.2.3.4') AS h, toIPv6('::1') AS i,"
    " CAST('b' AS Enum16('b' = 300)) AS j, toInt8(-1) AS k, toFloat32(1.5) AS l, toIntervalDay(3) AS m,"
    " repeat('x', 300) AS n, CAST(number % 2 ? 'u' : NULL AS LowCardinality(Nullable(String))) AS o,"
    " [[1, NULL], []] AS p, map('k', [(1, 'z')]) AS q FROM numbers(3)",
    "short texts within": "SELECT map('a', toLowCardinality('b')) AS m, toLowCardinality('x') AS l",
    "two lines": "SELECT 'a\nbbb\nc' AS y, 'aa' AS m, 1 AS q",
}
_FORMATS = [
    "ODBCDriver2",
    "TabSeparated",
    "TSVRaw",
    "TSVWithNames",
    "TSVWithNamesAndTypes",
    "CSV",
    "CSVWithNames",
    "CSVWithNamesAndTypes",
    "JSON",
    "JSONCompact",
    "JSONStrings",
    "JSONCompactStrings",
    "JSONColumns",
    "JSONColumnsWithMetadata",
    "JSONCompactColumns",
    "JSONEachRow",
    "JSONStringsEachRow",
    "JSONCompactEachRow",
    "JSONCompactEachRowWithNames",
    "JSONCompactEachRowWithNamesAndTypes",
    "JSONCompactStringsEachRow",
    "JSONObjectEachRow",
    "PrettyJSONEachRow",
    "Values",
    "SQLInsert",
    "Pretty",
    "PrettyCompact",
    "PrettySpace",
    "Vertical",
    "Markdown",
    "XML",
    "TSKV",
    "RowBinary",
    "RowBinaryWithNames",
    "RowBinaryWithNamesAndTypes",
    "LineAsString",
    "LineAsStringWithNames",
    "LineAsStringWithNamesAndTypes",
    "CustomSeparated",
    "CustomSeparatedWithNames",
    "CustomSeparatedWithNamesAndTypes",
    "Null",
]
_SETTINGS = (
    "output_format_json_quote_64bit_integers = 1",
    "output_format_json_quote_64bit_floats = 1",
    "output_format_json_quote_decimals = 1",
    "output_format_json_quote_denormals = 1",
    "output_format_json_escape_forward_slashes = 0",
    "output_format_json_named_tuples_as_objects = 0",
    "output_format_json_array_of_rows = 1",
    "output_format_json_map_as_array_of_tuples = 1",
    "output_format_json_pretty_print = 0",
    "output_format_json_skip_null_value_in_named_tuples = 1",
    "output_format_json_validate_utf8 = 1",
    "output_format_markdown_escape_special_characters = 1",
    "output_format_values_escape_quote_with_quote = 1",
    "output_format_decimal_trailing_zeros = 1",
    "output_format_trim_fixed_string = 1",
    "date_time_output_format = 'iso'",
    "date_time_output_format = 'unix_timestamp'",
    "output_format_pretty_fallback_to_vertical = 0",
    "output_format_pretty_fallback_to_vertical_min_columns = 50",
    "output_format_pretty_multiline_fields = 0",
    "output_format_pretty_named_tuples_as_json = 0",
    "output_format_pretty_max_value_width = 4",
    "output_format_pretty_max_column_pad_width = 4",
    "output_format_pretty_grid_charset = 'ASCII'",
    "output_format_pretty_display_footer_column_names_min_rows = 2",
    "output_format_pretty_single_large_number_tip_threshold = 0",
    "output_format_pretty_max_rows = 1",
    "output_format_csv_serialize_tuple_into_separate_columns = 0",
    "format_csv_delimiter = ';'",
    "format_csv_null_representation = 'NULL'",
    "format_tsv_null_representation = 'NULL'",
    "bool_true_representation = 'T'",
    "output_format_csv_crlf_end_of_line = 1",
    "output_format_tsv_crlf_end_of_line = 1",
    "output_format_write_statistics = 0",
    "output_format_sql_insert_table_name = 'x'",
    "output_format_sql_insert_max_batch_size = 2",
    "output_format_sql_insert_include_column_names = 0",
    "output_format_sql_insert_quote_names = 0",
    "output_format_sql_insert_use_replace = 1",
)
_TIMES_QUERY = r"""SELECT toDateTime('2024-01-31 10:11:12', 'Asia/Tokyo') AS t, [t] AS a,
 toDateTime64('1924-01-31 10:11:12.340', 3, 'UTC') AS old, map(t, old) AS m, (old, t) AS tu,
 toDateTime64('2024-01-31 10:11:12', 0, 'UTC') AS t0, toDate('2024-01-31') AS d, 'bad' AS bad,
 CAST((1, NULL, (NULL, 2)), 'Tuple(a Nullable(Int8), b Nullable(String), c Tuple(x Nullable(String),
 y Int8))') AS n, CAST(tuple(NULL), 'Tuple(a Nullable(Int8))') AS e, 'it''s_*\\x\n' AS q, ['it''s'] AS qa,
 toFixedString('ab', 4) AS fs, [fs] AS fsa, [toDecimal64(1.5, 3)] AS da, map('a', map('b', [1])) AS ma,
 repeat('wide ', 20) AS w, toUInt32(number) * 1234567 AS last FROM numbers(4)"""
_SETTINGS_QUERY = """SELECT toUInt64(1) AS a, toInt64(2) AS b, 1.5 AS f, nan AS d,
 toDecimal32(1.5, 2) AS e, 'a/b;' AS s, CAST((1, 2), 'Tuple(x UInt8, y Int64)') AS t, NULL AS n,
 true AS bo, map(toInt64(1), toUInt64(2)) AS m, inf AS i, toFloat32(1.5) AS f32 FROM numbers(3)"""
_WITH_SETTINGS = (
    "JSON",
    "JSONEachRow",
    "JSONCompactEachRow",
    "JSONObjectEachRow",
    "CSV",
    "TSV",
    "SQLInsert",
    "Vertical",
    "Values",
    "Markdown",
    "Pretty",
    "PrettyCompact",
    "PrettySpace",
    "CustomSeparated",
)
_MEASURED = (
    rb'"elapsed": [0-9.e-]+',
    rb"<elapsed>[^<]+",
    rb'"(rows|bytes)_read": \d+',
    rb"<(rows|bytes)_read>\d+",
)


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as oracle:
        yield oracle


@pytest.fixture(scope="module")
def connection() -> Iterator[olapdb.Connection]:
    with olapdb.connect() as connection:
        yield connection


def _without_measures(text: bytes) -> bytes:
    """Drop times, and what was read of numbers(): this differs with the plan."""
    for pattern in _MEASURED:
        text = re.sub(pattern, b"", text)
    return text


@pytest.mark.parametrize("name", _QUERIES)
def test_text_equals_clickhouse(name: str, oracle: Oracle, connection: olapdb.Connection) -> None:
    sql = _QUERIES[name]
    for output_format in _FORMATS:
        expected = _without_measures(oracle.text(sql, output_format))
        text = _without_measures(connection.execute(sql).fetch_text(output_format))
        assert text == expected, output_format


@pytest.mark.parametrize("setting", _SETTINGS)
def test_settings_of_formats(setting: str, oracle: Oracle, connection: olapdb.Connection) -> None:
    for sql, output_format in product((_SETTINGS_QUERY, _TIMES_QUERY), _WITH_SETTINGS):
        asked = f"{sql} SETTINGS {setting}"
        expected = _without_measures(oracle.text(asked, output_format))
        text = _without_measures(connection.execute(asked).fetch_text(output_format))
        assert text == expected, output_format


@pytest.mark.parametrize("rule", ["Escaped", "Quoted", "CSV", "JSON", "XML", "Raw"])
@pytest.mark.parametrize("query", ["values", "nested", "some rows", "no rows", "totals"])
def test_custom_separated(
    query: str, rule: str, oracle: Oracle, connection: olapdb.Connection
) -> None:
    """Delimiters stand around the result, its rows and values, in every rule of escaping."""
    delimiters = (
        "field",
        "row_before",
        "row_after",
        "row_between",
        "result_before",
        "result_after",
    )
    settings = ", ".join(f"format_custom_{name}_delimiter = '<{name}>'" for name in delimiters)
    sql = f"{_QUERIES[query]} SETTINGS {settings}, format_custom_escaping_rule = '{rule}'"
    for head in ("", "WithNames", "WithNamesAndTypes"):
        expected = oracle.text(sql, f"CustomSeparated{head}")
        assert connection.execute(sql).fetch_text(f"CustomSeparated{head}") == expected, head


@pytest.mark.parametrize(
    "statement",
    [
        "SHOW TABLES FROM system LIKE 'one' FORMAT CSVWithNames",
        "SHOW DATABASES LIKE 'system' FORMAT JSONEachRow",
        "DESCRIBE TABLE (SELECT 1 AS a, 'x' AS b) FORMAT Vertical SETTINGS describe_compact_output = 1",
        "EXISTS TABLE nowhere FORMAT JSONCompactEachRow",
    ],
)
def test_format_of_statements_that_are_no_query(
    statement: str, oracle: Oracle, connection: olapdb.Connection
) -> None:
    """FORMAT stands behind SHOW, DESCRIBE and EXISTS too."""
    assert connection.execute(statement).fetch_text() == oracle.text(statement, "TabSeparated")


def test_names_of_objects(oracle: Oracle, connection: olapdb.Connection) -> None:
    """A column of texts names the rows of JSONObjectEachRow."""
    sql = (
        "SELECT number AS n, 'row ' || toString(number) AS name FROM numbers(3)"
        " SETTINGS format_json_object_each_row_column_for_object_name = 'name'"
    )
    expected = oracle.text(sql, "JSONObjectEachRow")
    assert connection.execute(sql).fetch_text("JSONObjectEachRow") == expected


@pytest.mark.parametrize("output_format", ["JSON", "JSONCompact", "JSONEachRow", "JSONColumns"])
@pytest.mark.parametrize("checked", [0, 1])
def test_bytes_that_are_no_utf8(
    output_format: str, checked: int, oracle: Oracle, connection: olapdb.Connection
) -> None:
    """Documents always have the replacement character for them, rows if the setting says so."""
    sql = (
        "SELECT unhex('61FFFE62') AS s, [unhex('C328')] AS a, 'é' AS e"
        f" SETTINGS output_format_json_validate_utf8 = {checked}"
    )
    expected = _without_measures(oracle.text(sql, output_format))
    assert _without_measures(connection.execute(sql).fetch_text(output_format)) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS a, 'x' AS b, NULL AS c, [1, 2] AS d, map('k', 1, 'l', 2) AS e, (1, 'z') AS t,"
        " [[1], [2, 3]] AS f, map('k', [1, 2]) AS g, (1, map('a', (1, 'x'))) AS h FROM numbers(2)",
        "SELECT 'a\\tb\\nc\\\\d' AS s, true AS b, -1.5 AS f, toDate('2024-01-01') AS d,"
        " toDateTime('2024-01-01 00:00:00', 'UTC') AS t, [NULL, 'q'] AS n, toDecimal32(1.5, 2) AS de,"
        " [nan, inf, -inf] AS na, if(number = 1, NULL, number) AS nn, toDate32('1950-01-01') AS d32,"
        " toDateTime64('2024-01-01 00:00:00.123', 3, 'UTC') AS t64 FROM numbers(2)",
        "SELECT 1 AS a WHERE 0",
    ],
)
def test_hive_text(sql: str, oracle: Oracle, connection: olapdb.Connection) -> None:
    """Each depth has a control character of its own between its values."""
    expected = oracle.text(sql, "HiveText")
    assert connection.execute(sql).fetch_text("HiveText") == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT toInt8(-number) FROM numbers(11)",
        "SELECT [[toFloat32(number), 2]] FROM numbers(3)",
        "SELECT repeat('x', number) FROM numbers(4)",
        "SELECT toFixedString('a', 3)",
        "SELECT true",
        "SELECT [1, 2] FROM numbers(0)",
        "SELECT toUInt64(number) FROM numbers(5)",
    ],
)
def test_npy(sql: str, oracle: Oracle, connection: olapdb.Connection) -> None:
    assert connection.execute(sql).fetch_text("Npy") == oracle.text(sql, "Npy")


def test_format_null_has_no_text(connection: olapdb.Connection) -> None:
    """The text of a query with FORMAT Null is empty."""
    assert connection.execute("SELECT 1 FORMAT Null").fetch_text() == b""


@pytest.mark.parametrize("output_format", ["Vertical", "PrettyJSONEachRow", "JSONEachRow", "CSV"])
def test_objects_of_json_equal_clickhouse(oracle: Oracle, output_format: str) -> None:
    """Objects in arrays have lines of their own where the format has a line for each member."""
    query = (
        """SELECT '{"o":[{"k":1,"z":{"y":[{"w":1}]}},{}],"p":[],"q":[1,[{"a":1}]]}'::JSON AS j,"""
        " '{}'::JSON AS e, ['{}'::JSON, j] AS a, map('x', j) AS m"
    )
    with olapdb.connect() as connection:
        ours = connection.execute(query).fetch_text(output_format)
    assert ours == oracle.text(query, output_format)


_METRICS = "SELECT * FROM values('name String, type String, labels Map(String, String), value Float64', {})"


@pytest.mark.parametrize(
    "rows",
    [
        "('h', 'histogram', map('le', '20'), 3), ('h', '', map('le', '5', 'a', 'b'), 1), ('h', '', map('count', ''), 9),"
        " ('h', '', map('sum', ''), 70)",
        "('h', '', map('le', '+Inf', 'a', 'b'), 3), ('h', 'histogram', map('le', '5'), 1), ('h', '', map('sum', ''), 7)",
        "('h', 'histogram', map('le', '+Inf'), 3), ('h', '', map('count', ''), 4), ('h', '', map('x', 'y'), 2)",
        "('s', 'summary', map('quantile', '0.9'), 3), ('s', '', map('quantile', '0.5'), 1), ('s', '', map('count', ''), 9),"
        " ('s', '', map('sum', ''), 70)",
        "('g', 'gauge', map('b', '1', 'a', '2'), 4), ('g', '', map('sum', ''), 5), ('h', '', map('le', '2'), 1)",
    ],
)
def test_prometheus(rows: str, oracle: Oracle, connection: olapdb.Connection) -> None:
    """Histograms and summaries are written as Prometheus wants them: buckets in order, sum and count by name."""
    sql = _METRICS.format(rows)
    assert connection.execute(sql).fetch_text("Prometheus") == oracle.text(sql, "Prometheus")
