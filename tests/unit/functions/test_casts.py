"""Casts as INSERT uses them: the row of a bad value, strictness about NULL, and defaults."""

from __future__ import annotations

import decimal
import pickle
import random

import pyarrow as pa
import pytest

import olapdb
from olapdb import functions
from olapdb.errors import (
    CannotInsertNull,
    CannotParse,
    CannotParseDateTime,
    DataError,
    DecimalOverflow,
    TooLargeStringSize,
    UnknownAggregateFunction,
    UnknownFunction,
    ValueOutOfBound,
)
from olapdb.functions import Argument, Environment
from olapdb.functions.casts.parsing import parse_decimals
from olapdb.functions.kernels import columns
from olapdb.types import STRING, Decimal, make_nullable

pytestmark = pytest.mark.feature("functions", "types")


def _cast(values: list[object], source: str, target: str, *, strict: bool = True) -> pa.Array:
    source_type = functions.parse_type(source)
    array = pa.array(values, source_type.arrow)
    target_type = functions.parse_type(target)
    return functions.cast_column(array, source_type, target_type, Environment(), strict=strict)


@pytest.mark.parametrize(
    ("values", "source", "target", "row", "kind"),
    [
        (["1", "2", "x"], "String", "UInt8", 2, CannotParse),
        (["1", "2x"], "String", "Int64", 1, CannotParse),
        (["1.5", "abc"], "String", "Decimal(9, 2)", 1, CannotParse),
        (
            ["2024-01-01 00:00:00", "2024-02-30 00:00:00"],
            "String",
            "DateTime",
            1,
            CannotParseDateTime,
        ),
        (["ab", "abcd"], "String", "FixedString(3)", 1, TooLargeStringSize),
        ([None, "1", None, "x"], "Nullable(String)", "Nullable(UInt8)", 3, CannotParse),
        ([1, None], "Nullable(UInt8)", "UInt8", 1, CannotInsertNull),
        ([1, 10**8], "Int64", "Decimal(9, 2)", 1, DecimalOverflow),
        ([["1"], ["2", "x"]], "Array(String)", "Array(UInt8)", 1, CannotParse),
    ],
)
def test_an_error_names_the_row_and_the_bad_value(
    values: list[object], source: str, target: str, row: int, kind: type[DataError]
) -> None:
    with pytest.raises(kind) as caught:
        _cast(values, source, target)
    assert caught.value.row == row
    assert pickle.loads(pickle.dumps(caught.value)).row == row
    if kind is not CannotInsertNull:
        bad = values[row][-1] if isinstance(values[row], list) else values[row]  # type: ignore[index]
        assert str(bad) in str(caught.value)


def test_a_plain_cast_gives_null_for_a_bad_text_and_insert_refuses_it() -> None:
    assert _cast(["1", "x"], "String", "Nullable(UInt8)", strict=False).to_pylist() == [1, None]
    with pytest.raises(CannotParse):
        _cast(["1", "x"], "String", "Nullable(UInt8)", strict=True)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_integers_wrap_to_their_width(width: int) -> None:
    wrapped = _cast([-1, 2**width % 2**63], "Int64", f"UInt{width}").to_pylist()
    assert wrapped == [2**width - 1, 0]


def test_long_digit_texts_wrap_exactly() -> None:
    texts = [str(v) for v in (2**64 - 1, 2**64, 10**40 + 7, 0)]
    assert _cast(list(texts), "String", "UInt64").to_pylist() == [int(t) % 2**64 for t in texts]


@pytest.mark.parametrize(
    "type_name",
    [
        "UInt8",
        "Nullable(String)",
        "Array(Date)",
        "Tuple(a UInt8, b String)",
        "Map(String, Int8)",
        "UUID",
        "DateTime64(3)",
        "Decimal(50, 2)",
        "FixedString(4)",
        "LowCardinality(String)",
        "Bool",
        "AggregateFunction(sum, UInt8)",
        "AggregateFunction(uniq, String)",
        "AggregateFunction(quantile(0.9), Float64)",
        "AggregateFunction(max, Nullable(Date))",
    ],
)
def test_every_type_has_a_default_of_its_arrow_type(type_name: str) -> None:
    data_type = functions.parse_type(type_name)
    assert functions.default_value(data_type).type == data_type.arrow
    assert functions.parse_type(data_type.name) == data_type


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("sum, UInt8", 0),
        ("avg, Int64", "nan"),
        ("uniq, String", 0),
        ("uniqExact, UInt8", 0),
        ("max, String", ""),
        ("argMax, String, Int64", ""),
        ("quantile(0.5), Float64", "nan"),
        ("groupArray, UInt8", []),
    ],
)
def test_the_default_of_a_state_is_the_state_of_no_rows(call: str, result: object) -> None:
    data_type = functions.parse_type(f"AggregateFunction({call})")
    state = functions.default_value(data_type)
    finalize = functions.resolve_scalar("finalizeAggregation", [Argument(data_type, state)])
    value = columns.single(finalize.kernel([state], 1, Environment()))[0].as_py()
    assert (str(value) if result == "nan" else value) == result


def test_casts_of_slices_read_only_their_own_values() -> None:
    values = pa.array(["x", "10", "20", "30"]).slice(1, 2)
    assert functions.cast_column(
        values, STRING, functions.parse_type("UInt8"), Environment(), strict=True
    ).to_pylist() == [10, 20]
    lists = pa.array([["0"], ["1", "2"], []]).slice(1)
    cast = functions.cast_column(
        lists,
        functions.parse_type("Array(String)"),
        functions.parse_type("Array(UInt8)"),
        Environment(),
        strict=True,
    )
    assert cast.to_pylist() == [[1, 2], []]


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(UnknownFunction, match="toStartOfMonth"):
        functions.resolve_scalar("toStartOfMonht", [Argument(make_nullable(STRING))])
    with pytest.raises(UnknownAggregateFunction, match="quantile"):
        functions.resolve_aggregate("quantil", (), [STRING])


def test_if_multi_if_and_and_or_are_lazy() -> None:
    number = functions.parse_type("UInt8")
    for name, count in (("if", 3), ("multiIf", 3), ("and", 2), ("or", 2)):
        assert functions.resolve_scalar(name, [Argument(number)] * count).lazy


def test_exponents_in_texts_of_decimals_move_the_point() -> None:
    """Compare with Python's decimals, with digits beyond the scale cut off."""
    generator = random.Random(5)
    tiny = ["1e-2147483647", "0e99999999999999999999", "-0.0e-99999999999999999999"]
    texts = ["-0.0e5", "0" * 90 + "1", ".5", "5.", "+.5e1"]
    for _ in range(2_000):
        digits = "".join(generator.choices("0123456789", k=generator.randint(1, 18)))
        at = generator.randint(0, len(digits))
        mark = generator.choice(
            ["", f"e{generator.randint(-25, 9)}", f"E+{generator.randint(0, 9)}"]
        )
        texts.append(f"{generator.choice(['', '-', '+'])}{digits[:at]}.{digits[at:]}{mark}")
    step = decimal.Decimal("1e-10")
    with decimal.localcontext(prec=100):
        expected = [
            decimal.Decimal(text).quantize(step, rounding=decimal.ROUND_DOWN) for text in texts
        ]
    parsed = parse_decimals(pa.array([*texts, *tiny]), Decimal(38, 10)).to_pylist()
    assert parsed == expected + [decimal.Decimal(0)] * len(tiny)
    for text in ("1e2147483647", "1e30", "99999999999999999999999999999"):
        with pytest.raises(ValueOutOfBound):
            parse_decimals(pa.array(["1", text]), Decimal(38, 10))


TEXTS = (
    "2024-01-02",
    "2024-01-02 03:04:05",
    "2024-01-02T03:04:05",
    "2024-01-02 03:04:05.123",
    "20240102",
    "2024/1/2",
    "2024-01-02 ",
    "2024-01-02 xx",
    "12:30:00",
    "-0",
    "+7",
    "0x1F",
    "1.5",
    "1e3",
    "inf",
    "true",
    "a,b",
    "",
    "10.0.0.1",
    "::1",
    "00010203-0405-0607-0809-0a0b0c0d0e0f",
    "9999999999",
    "99999999999999999999",
)


@pytest.mark.parametrize(
    "conversion",
    [
        *(f"toDate{bits}Or{fallback}(b)" for bits in ("", "32") for fallback in ("Null", "Zero")),
        *(f"to{kind}OrNull(b)" for kind in ("DateTime", "Int64", "UInt8", "Float64", "Int256")),
        *(f"to{kind}OrNull(b)" for kind in ("UUID", "IPv4", "IPv6")),
        "toDateOrDefault(b)",
        "toInt32OrNull(toFixedString(substring(b, 1, 10), 10))",
        "toDecimal64OrNull(b, 2)",
        "toDateTime64OrNull(b, 3)",
        "accurateCastOrNull(b, 'Date')",
        "CAST(b AS Nullable(Date))",
        *(f"CAST(b AS Nullable({kind}))" for kind in ("Bool", "Int64", "UInt8", "UInt128")),
        *(f"CAST(b AS Nullable({kind}))" for kind in ("Float64", "Decimal(9, 2)", "DateTime")),
        *(f"CAST(b AS Nullable({kind}))" for kind in ("DateTime64(3)", "Time", "UUID", "IPv6")),
    ],
)
def test_a_text_is_read_as_it_is_without_the_other_texts_of_its_block(conversion: str) -> None:
    with olapdb.connect() as connection:
        texts = f"(SELECT arrayJoin({list(TEXTS)}) AS b)"
        together = connection.execute(f"SELECT toString({conversion}) FROM {texts}").fetchall()
        for text, found in zip(TEXTS, together, strict=True):
            one = f"SELECT toString({conversion}) FROM (SELECT materialize('{text}') AS b)"
            assert connection.execute(one).fetchall() == [found], text


def test_digits_beyond_a_nullable_integer_are_null() -> None:
    """As in ClickHouse; those beyond an integer that is not Nullable wrap."""
    with olapdb.connect() as connection:
        texts = "(SELECT materialize('300') AS b)"
        casts = "CAST(b AS Nullable(UInt8)), CAST(b AS Nullable(Int256)), CAST(b AS UInt8)"
        assert connection.execute(f"SELECT {casts} FROM {texts}").fetchall() == [(None, 300, 44)]


def test_zero_of_float32_has_any_scale() -> None:
    # 10^50 is infinite as a Float32, and zero times infinity NaN
    with olapdb.connect() as connection:
        rows = connection.execute(
            "SELECT toDecimal256(toFloat32(0), 50), toDecimal256(materialize(toFloat32(-0.0)), 60)"
        ).fetchall()
    assert rows == [(0, 0)]
