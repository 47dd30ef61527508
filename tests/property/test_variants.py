"""Columns of Variant against a plain Python model: whatever blocks, parts, merges and files the values went through,
each keeps its type and its value."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import olapdb
from olapdb.functions import parse_type, store_column
from olapdb.functions.base import Environment
from olapdb.functions.variants.values import alternatives_of, assembled, numbers_of
from olapdb.types import STRING, Variant

pytestmark = pytest.mark.feature("insert", "types")

NAME = "Variant(UInt64, String, Array(String), Date, DateTime('UTC'), Decimal(9, 2), Tuple(a UInt8, b Nullable(String)))"
MODERN = datetime.date(2000, 1, 1), datetime.date(2100, 1, 1)
Value: TypeAlias = tuple[str, object]
"""The name of a type and a value of it; ("None", None) for NULL."""

VALUES: st.SearchStrategy[Value] = st.one_of(
    st.just(("None", None)),
    st.tuples(st.just("UInt64"), st.integers(0, 2**64 - 1)),
    st.tuples(st.just("String"), st.text(st.characters(codec="utf-8"), max_size=5)),
    st.tuples(st.just("Array(String)"), st.lists(st.text("ab", max_size=2), max_size=3)),
    st.tuples(st.just("Date"), st.dates(*MODERN)),
    st.tuples(
        st.just("DateTime('UTC')"),
        st.datetimes(datetime.datetime(2000, 1, 1), datetime.datetime(2100, 1, 1)).map(
            lambda moment: moment.replace(microsecond=0, tzinfo=datetime.UTC)
        ),
    ),
    st.tuples(
        st.just("Decimal(9, 2)"), st.integers(-999, 999).map(lambda n: Decimal(n).scaleb(-2))
    ),
    st.tuples(
        st.just("Tuple(a UInt8, b Nullable(String))"),
        st.tuples(st.integers(0, 255), st.none() | st.text("xy", max_size=2)),
    ),
)


def column_of(rows: list[Value]) -> pa.Array:
    """Return values as a column in the engine's form."""
    variant = parse_type(NAME)
    assert isinstance(variant, Variant)
    numbers = np.array(
        [255 if name == "None" else variant.field_names.index(name) for name, _ in rows], np.uint8
    )
    values = {}
    for place, alternative in enumerate(variant.alternatives):
        own = [value for name, value in rows if name == alternative.name]
        if alternative.name.startswith("Tuple"):
            own = [{"a": a, "b": b} for a, b in own]  # type: ignore[misc]
        values[place] = pa.array(own, alternative.arrow)
    return assembled(variant, numbers, values)


def read(connection: olapdb.Connection, query: str) -> list[Value]:
    """Return (type, value) of each row of a query of variantType(v) and v."""
    rows = connection.execute(query).fetchall()
    return [(name, value) for name, value in rows]


@settings(max_examples=12, deadline=None)
@given(st.lists(st.lists(VALUES, min_size=1, max_size=12), min_size=1, max_size=4))
def test_values_survive_parts_merges_and_a_reopened_warehouse(blocks: list[list[Value]]) -> None:
    expected = [value for block in blocks for value in block]
    query = "SELECT variantType(v), v FROM t ORDER BY k"
    with TemporaryDirectory() as folder:
        with olapdb.connect(folder) as connection:
            connection.execute("SET allow_suspicious_variant_types = 1")
            connection.execute(
                f"CREATE TABLE t (k UInt64, v {NAME}) ENGINE = MergeTree ORDER BY k"
                " SETTINGS index_granularity = 2"
            )
            at = 0
            for block in blocks:
                keys = pa.array(range(at, at + len(block)), pa.uint64())
                at += len(block)
                data = pa.table({"k": keys, "v": column_of(block)})
                connection.insert("t", data)
            assert read(connection, query) == expected
            connection.execute("OPTIMIZE TABLE t FINAL")
            assert read(connection, query) == expected
        with olapdb.connect(folder) as connection:
            assert read(connection, query) == expected
            for name in {name for name, _ in expected} - {"None"}:
                escaped = name.replace("'", "\\'")
                found = connection.execute(
                    f"SELECT v.`{name}` FROM t WHERE variantType(v) = '{escaped}' ORDER BY k"
                ).fetchall()
                assert found == [(value,) for own, value in expected if own == name]


@settings(max_examples=10, deadline=None)
@given(
    st.lists(VALUES, min_size=1, max_size=12),
    st.sampled_from(["Native", "RowBinaryWithNamesAndTypes", "RowBinary"]),
)
def test_binary_formats_give_back_what_was_written(rows: list[Value], format_name: str) -> None:
    with (
        TemporaryDirectory() as folder,
        olapdb.connect(settings={"user_files_path": folder}) as connection,
    ):
        connection.execute("SET allow_suspicious_variant_types = 1")
        connection.execute(f"CREATE TABLE t (k UInt64, v {NAME}) ENGINE = MergeTree ORDER BY k")
        data = pa.table({"k": pa.array(range(len(rows)), pa.uint64()), "v": column_of(rows)})
        connection.insert("t", data)
        escaped = NAME.replace("'", "\\'")
        source = f"file('x.bin', {format_name}, 'k UInt64, v {escaped}')"
        connection.execute(f"INSERT INTO FUNCTION {source} SELECT k, v FROM t")
        assert Path(folder, "x.bin").stat().st_size > 0
        assert read(connection, f"SELECT variantType(v), v FROM {source} ORDER BY k") == rows


@settings(max_examples=25, deadline=None)
@given(st.lists(VALUES, max_size=20))
def test_a_column_is_taken_apart_and_put_together(rows: list[Value]) -> None:
    variant = parse_type(NAME)
    assert isinstance(variant, Variant)
    column = column_of([*rows, ("None", None)]).slice(0, len(rows))
    parts = list(alternatives_of(column, variant))
    assert sum(len(part.rows) for part in parts) == sum(name != "None" for name, _ in rows)
    again = assembled(variant, numbers_of(column), {part.place: part.values for part in parts})
    assert again.to_pylist() == column.to_pylist()


def expected_type(text: str) -> str:
    """Return the type of Variant(Int32, Float64, Bool, Date, String) that a text is read as."""
    if text in ("true", "false"):
        return "Bool"
    digits = text.removeprefix("-").removeprefix("+")
    if digits.isdigit() and -(2**31) <= int(text) < 2**31:
        return "Int32"
    try:
        float(text)
        return "Float64"
    except ValueError:
        return "Date" if text == "2020-02-03" else "String"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.sampled_from(["true", "false", "2020-02-03", "", "x", "1.5", "-7", "[1]", "99999999999"])
        | st.integers(-(2**40), 2**40).map(str),
        max_size=20,
    )
)
def test_a_text_is_of_the_first_type_that_reads_it_whole(texts: list[str]) -> None:
    variant = parse_type("Variant(Int32, Float64, Bool, Date, String)")
    assert isinstance(variant, Variant)
    column = store_column(pa.array(texts, pa.string()), STRING, variant, Environment())
    assert isinstance(column, pa.Array)
    names = [variant.field_names[number] for number in numbers_of(column).tolist()]
    assert names == list(map(expected_type, texts))
