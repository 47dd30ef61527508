"""Literal rows: the scan of bytes reads the same values as the grammar, or leaves them to it."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from olapdb import errors
from olapdb.native.library import library, without_kernels
from olapdb.sql import nodes
from olapdb.sql.literals import quote_string
from olapdb.sql.values.csv_values import LiteralRows, parse_value_rows, read_values
from olapdb.sql.values.scan import scan_plain_rows
from olapdb.types import (
    BOOL,
    DATE,
    FLOAT32,
    FLOAT64,
    INT64,
    STRING,
    UINT8,
    UINT64,
    Array,
    DataType,
    DateTime,
    Decimal,
    FixedString,
    Nullable,
)

pytestmark = pytest.mark.feature("sql", "insert")

_BLANKS = st.sampled_from(["", " ", "\n", " \t", "\r\n"])


def _quoted(text: str, style: int) -> str:
    if style == 0:
        return quote_string(text)
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


_TEXTS = st.text(
    alphabet=st.one_of(st.sampled_from("'\\(),;\n\r\t -#/*\"`ab0N"), st.characters(codec="utf-8")),
    max_size=8,
)
_FIELDS: dict[DataType, st.SearchStrategy[str]] = {
    STRING: st.builds(_quoted, _TEXTS, st.integers(0, 1)),
    Nullable(STRING): st.builds(_quoted, _TEXTS, st.integers(0, 1)) | st.just("NULL"),
    INT64: st.integers(-(2**63), 2**63 - 1).map(str),
    UINT64: st.integers(0, 2**64 - 1).map(str),
    Nullable(INT64): st.integers(-9, 9).map(str) | st.sampled_from(["NULL", "null"]),
    FLOAT64: st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.integers(-99, 99).map(str),
    DATE: st.dates().map(lambda d: f"'{d.isoformat()}'"),
    BOOL: st.sampled_from(["true", "false", "TRUE", "1", "0"]),
    Decimal(20, 5): st.decimals(-999, 999, places=3).map(str),
}


@st.composite
def _rows(draw: st.DrawFn) -> tuple[str, list[DataType]]:
    types = draw(st.lists(st.sampled_from(list(_FIELDS)), min_size=1, max_size=4))
    count = draw(st.integers(1, 6))
    rows = []
    for _ in range(count):
        fields = [draw(_BLANKS) + draw(_FIELDS[t]) + draw(_BLANKS) for t in types]
        rows.append(f"({','.join(fields)})")
    separator = draw(_BLANKS) + "," + draw(_BLANKS)
    return draw(_BLANKS) + separator.join(rows) + draw(
        st.sampled_from(["", ";", " ; ", ",", "\n"])
    ), types


def _value(expression: nodes.Expression | None, data_type: DataType) -> object:
    assert isinstance(expression, nodes.Literal)
    if expression.value is None or isinstance(expression.value, str):
        return expression.value
    if data_type == BOOL:
        return bool(expression.value)
    if isinstance(data_type, Decimal):
        return expression.text
    return float(expression.text) if data_type == FLOAT64 else expression.value


@settings(max_examples=300)
@given(_rows())
def test_the_scan_equals_the_grammar(made: tuple[str, list[DataType]]) -> None:
    text, types = made
    names = [f"c{index}" for index in range(len(types))]
    read = read_values(text, names, types)
    expected = parse_value_rows(text)
    if read.columns is None:
        assert read.rows == expected
        return
    assert [len(column) for column in read.columns] == [len(expected)] * len(types)
    for index, (column, data_type) in enumerate(zip(read.columns, types, strict=True)):
        assert column.type == read.types[index].arrow
        found = column.to_pylist()
        wanted = [_value(row[index], data_type) for row in expected]
        assert found == wanted


def _read(text: str, *types: DataType) -> LiteralRows:
    return read_values(text, [f"c{index}" for index in range(len(types))], types)


@pytest.mark.parametrize(
    ("text", "target", "expected", "read_as"),
    [
        ("(1),(2)", UINT8, [1, 2], INT64),
        ("(300)", UINT8, [300], INT64),
        ("(18446744073709551615),(0)", UINT64, [2**64 - 1, 0], UINT64),
        ("('1')", UINT8, ["1"], STRING),
        ("(NULL)", Nullable(UINT8), [None], Nullable(STRING)),
        ("('NULL'),(NULL)", Nullable(STRING), ["NULL", None], Nullable(STRING)),
        ("(''),('a''b')", STRING, ["", "a'b"], STRING),
        (r"('\\'),('\''),('\n\q')", STRING, ["\\", "'", "\n\\q"], STRING),
        ("('(,)'),('x;y')", STRING, ["(,)", "x;y"], STRING),
        ("('a\nb'),('c\r')", STRING, ["a\nb", "c\r"], STRING),
        ("('é'),('日本')", STRING, ["é", "日本"], STRING),
        ("(1.5),(NULL)", FLOAT32, [1.5, None], Nullable(FLOAT32)),
        ("(inf),(1)", FLOAT64, [math.inf, 1.0], FLOAT64),
        ("(1.50),(2e3),(-0.1)", Decimal(9, 2), ["1.50", "2e3", "-0.1"], STRING),
        ("(1700000000)", DateTime(), [1700000000], INT64),
        ("('2024-01-01'),('2024-01-02')", DATE, ["2024-01-01", "2024-01-02"], STRING),
        ("(true),(0)", BOOL, [True, False], BOOL),
        ("('ab')", FixedString(2), ["ab"], STRING),
        ("('[1,2]')", Array(UINT8), ["[1,2]"], STRING),
    ],
)
def test_plain_rows_become_columns(
    text: str, target: DataType, expected: list[object], read_as: DataType
) -> None:
    read = _read(text, target)
    assert read.columns is not None
    assert read.columns[0].to_pylist() == expected
    assert read.types == (read_as,)
    assert read.columns[0].type == read_as.arrow


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("(1 + 1)", INT64),
        ("([1, 2])", Array(INT64)),
        ("(f('x'))", STRING),
        ("(DEFAULT)", INT64),
        ("(?)", INT64),
        ("(:name)", INT64),
        ("(1.5)", INT64),
        ("(5)", STRING),
        ("('a'),(1)", STRING),
        ("(1)(2)", INT64),
        ("(1,)", INT64),
        ("(- 1)", INT64),
        ("(1) -- c\n, (2)", INT64),
        ("(1), /* c */ (2)", INT64),
        (r"('\x41')", STRING),
        ("(1_000)", INT64),
        ("('a' || 'b')", STRING),
        ("((1))", INT64),
        ("(now())", DateTime()),
    ],
)
def test_everything_else_goes_through_the_grammar(text: str, target: DataType) -> None:
    read = _read(text, target)
    assert read.columns is None
    assert read.rows == parse_value_rows(text)


def test_default_is_none() -> None:
    read = _read("(1, default), (DEFAULT, 'x')", INT64, STRING)
    assert read.rows == ((nodes.Literal(1), None), (None, nodes.Literal("x")))


@pytest.mark.parametrize(
    "text",
    [
        "(1 2)",
        "('a' 'b')",
        "(1,2)",
        "()",
        "(1",
        "1)",
        "",
        "(1),,(2)",
        "(1) x",
        "('a)",
        "(1);(2)",
        "((1)",
        "(1))",
    ],
)
def test_what_is_no_row_is_a_syntax_error(text: str) -> None:
    with pytest.raises((errors.SyntaxError, errors.CannotParseInput)):
        _read(text, INT64)


def test_a_bad_row_is_named() -> None:
    with pytest.raises(errors.SyntaxError, match="Row 2 of VALUES has 1 values for 2 columns"):
        _read("(1, 'a'), (2)", INT64, STRING)
    with pytest.raises(errors.UnknownIdentifier, match=r"Column c1, row 2: abc is no value"):
        _read("(1, 'a'), (2, abc)", INT64, STRING)


def test_places_are_those_of_the_whole_statement() -> None:
    with pytest.raises(errors.UnknownIdentifier) as raised:
        read_values("(1),\n (x)", ["a"], [INT64], errors.Position(3, 10, 50))
    assert raised.value.position == errors.Position(4, 3, 57)


def test_many_rows_never_meet_the_grammar() -> None:
    count = 100_000
    text = ",".join(f"({i}, 'name {i}', {i / 7:.4f})" for i in range(count))
    read = _read(text, UINT64, STRING, FLOAT64)
    assert read.columns is not None
    assert [len(column) for column in read.columns] == [count] * 3
    assert read.columns[1][count - 1].as_py() == f"name {count - 1}"


_FRAGMENTS = st.sampled_from(
    [
        "(",
        ")",
        ",",
        "'",
        "''",
        "\\",
        "\\'",
        "\\n",
        "\\x41",
        "\\q",
        " ",
        "\n",
        "1",
        "-2.5e3",
        "a",
        "é",
        "\0",
        "NULL",
    ]
)
_ROW = st.builds(
    lambda fields: f"({','.join(fields)})", st.lists(_FIELDS[STRING], min_size=2, max_size=2)
)


@pytest.mark.skipif(library() is None, reason="There are no compiled kernels to compare.")
@settings(max_examples=500)
@given(
    st.lists(_FRAGMENTS, max_size=12).map(lambda parts: f"({''.join(parts)})")
    | st.lists(_ROW).map(",".join)
)
@example(r"('\', 'a')")
@example("('a' , 'b\n') ,(1,2)")
@example("(1,2),")
def test_the_kernel_and_numpy_read_the_same(text: str) -> None:
    compiled = scan_plain_rows(text, 2)
    with without_kernels():
        read = scan_plain_rows(text, 2)
    assert (compiled is None) == (read is None)
    if compiled is not None and read is not None:
        assert compiled.csv == read.csv
        assert compiled.first.tolist() == read.first.tolist()
        assert compiled.row_bytes_max == read.row_bytes_max
        assert compiled.has_newlines == read.has_newlines
