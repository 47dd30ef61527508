"""Every fast path gives the slow path's result."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import olapdb
from olapdb.compute.evaluate import evaluate_array
from olapdb.engine.layout import TableLayout
from olapdb.engine.monotonic_keys import constant_value, key_values
from olapdb.functions import parse_type
from olapdb.functions.base import Environment
from olapdb.functions.strings.rendering import display_array
from olapdb.maintenance.merge_policy import MergeLimits, choose
from olapdb.model.part import BlockRange, Part
from olapdb.model.schema import Column
from olapdb.sql.values.csv_values import read_values
from olapdb.statements.dml.json_values import read_small_values
from tests.harness.commits import make_part, make_table

pytestmark = pytest.mark.feature("select")

# --- literal rows

_TYPES = [
    "UInt8",
    "Int64",
    "UInt64",
    "Float64",
    "Float32",
    "String",
    "Date",
    "DateTime",
    "Bool",
    "Nullable(Int32)",
    "LowCardinality(String)",
    "Decimal(10, 2)",
    "Array(Int8)",
    "UUID",
    "FixedString(3)",
]
_LITERALS = [
    "1",
    "-1",
    "-0",
    "0",
    "01",
    "1.5",
    "1e3",
    "1e999",
    "-0.0",
    ".5",
    "1.",
    "+3",
    "18446744073709551615",
    "99999999999999999999999",
    "9007199254740993",
    "NULL",
    "null",
    "true",
    "false",
    "NaN",
    "inf",
    "'a'",
    "''",
    "'it''s'",
    r"'a\nb'",
    "'a\nb'",
    "'(x)'",
    "'[x]'",
    "'a,b'",
    "'\"'",
    "'2024-01-05'",
    "'null'",
    "[1, 2]",
    "now()",
    "(1, 2)",
    "{'a': 1}",
    "'é'",
    '"q"',
    "'--'",
    "1 -- c\n",
    "DEFAULT",
    "'''x'",
    "'x'''",
    "''''",
]


@st.composite
def _rows(draw: st.DrawFn) -> tuple[list[str], str]:
    """Draw column types, and VALUES whose columns each hold one or two kinds of literals."""
    types = draw(st.lists(st.sampled_from(_TYPES), min_size=1, max_size=3))
    kinds = [draw(st.lists(st.sampled_from(_LITERALS), min_size=1, max_size=2)) for _ in types]
    rows = [
        ", ".join(draw(st.sampled_from(kind)) for kind in kinds)
        for _ in range(draw(st.integers(1, 3)))
    ]
    between = draw(st.sampled_from([", ", ",", " \n,", " ", ""]))
    end = draw(st.sampled_from(["", ";", ",", " ; ", ")"]))
    return types, between.join(f"({row})" for row in rows) + end


def _same(rows: str, names: Sequence[str]) -> bool:
    """Return whether the fast reader accepted the rows; if so, require the slow reader's
    columns."""
    types = [parse_type(name) for name in names]
    small = read_small_values(rows, types)
    if small is None:
        return False
    literal = read_values(rows, [str(at) for at in range(len(types))], types)
    assert literal.columns is not None
    assert [str(t) for t in small[1]] == [str(t) for t in literal.types]
    for ours, theirs in zip(small[0], literal.columns, strict=True):
        assert ours.type == theirs.type
        assert repr(ours.to_pylist()) == repr(theirs.to_pylist())  # -0.0 is not 0.0
    return True


@given(_rows())
@settings(max_examples=2_000)
def test_few_literal_rows(drawn: tuple[list[str], str]) -> None:
    types, rows = drawn
    _same(rows, types)


def test_plain_rows_are_read_fast() -> None:
    names = ["UInt64", "Date", "String", "Float64", "Bool"]
    assert _same("(1, '2024-01-05', '', -0.5, true),\n (2, '2024-01-06', 'é', 3, false);", names)


# --- merges


def _chosen(
    run: Sequence[Part], limits: MergeLimits, now_ms: int, partition_parts: int
) -> list[Part]:
    """Return the merge that `choose` should pick, by scoring every candidate in a loop."""
    best: list[Part] = []
    best_score = math.inf
    for start in range(len(run)):
        for end in range(start + 2, min(len(run), start + limits.parts_max) + 1):
            some = run[start:end]
            total, largest = sum(p.bytes for p in some), max(p.bytes for p in some)
            held = sum(sum(p.uncompressed_bytes.values()) for p in some)
            if total > limits.bytes_max or held > limits.memory_bytes_max:
                break
            low, high = math.log1p(1 << 20), math.log1p(100 << 30)
            size = min(1.0, max(0.0, (math.log1p(total) - low) / (high - low)))
            oldest = 3_600.0 + size * (30 * 86_400.0 - 3_600.0)
            age_seconds = max(0, now_ms - max(p.created_ms for p in some)) / 1000
            age = min(1.0, max(0.0, (age_seconds - 10.0) / (oldest - 10.0)))
            crowd = min(1.0, max(0.0, (partition_parts - 10) / 40))
            base = limits.base + min(1.0, age + crowd) * (2.0 - limits.base)
            fixed = limits.fixed_bytes
            if (total + len(some) * fixed) / (largest + fixed) < base:
                continue
            score = (total + fixed * len(some)) / (len(some) - 1.9)
            if score < best_score:
                best_score, best = score, list(some)
    return best


_SIZES = st.one_of(st.just(6_000), st.integers(100, 3 << 30))


@given(
    st.lists(st.tuples(_SIZES, st.integers(0, 10**8)), max_size=40),
    st.sampled_from([1, 3, 100]),
    st.integers(0, 4 * 10**8),
    st.integers(1, 100),
)
@settings(max_examples=200)
def test_the_best_merge(
    facts: list[tuple[int, int]], parts_max: int, now_ms: int, partition_parts: int
) -> None:
    run = [
        make_part(
            "s",
            blocks=BlockRange(n, n),
            bytes=size,
            created_ms=born_ms,
            uncompressed_bytes={"k": 2 * size},
        )
        for n, (size, born_ms) in enumerate(facts, 1)
    ]
    limits = MergeLimits(parts_max=parts_max)
    expected = _chosen(run, limits, now_ms, partition_parts)
    assert choose(run, limits, now_ms, partition_parts) == expected


# --- partition keys

_DAYS = [
    datetime.date(1970, 1, 1) + datetime.timedelta(days) for days in (0, 1, 58, 31, 365, 9_000)
]


@pytest.mark.parametrize(
    ("key", "type_name"),
    [
        ("toYYYYMM(x)", "Date"),
        ("x", "Date"),
        ("toStartOfMonth(x)", "DateTime"),
        ("toDate(x)", "DateTime('America/New_York')"),
        ("intDiv(x, 100)", "UInt64"),
        ("x", "Int8"),
        ("toYear(x)", "Nullable(Date)"),
        ("(toYYYYMM(x), x)", "Date"),
        ("x % 3", "UInt64"),
    ],
)
@given(
    st.integers(0, 2**63),
    st.sampled_from([1, 2, 40, 200, 10**6]),
    st.sampled_from([1, 999, 1_000, 5_000]),
    st.booleans(),
)
@settings(max_examples=25)
def test_partition_keys(
    key: str, type_name: str, start: int, span: int, rows: int, ordered: bool
) -> None:
    data_type = parse_type(type_name)
    values = np.arange(rows, dtype=np.uint64) * 7 % span
    ticks = np.sort(values) if ordered else values
    if data_type.arrow == pa.int8():
        column = pa.array((ticks % 256).astype(np.uint8).view(np.int8))
    elif pa.types.is_date(data_type.arrow):
        column = pa.array((start % 40_000 + ticks % 5_000).astype(np.int32)).view(pa.date32())
    elif pa.types.is_timestamp(data_type.arrow):
        seconds = (start % 10**9 + ticks * 3_600).astype(np.int64)
        column = pa.array(seconds).view(data_type.arrow)
    else:
        column = pa.array(ticks + np.uint64(start))
    table = make_table("s", columns=(Column(1, "x", data_type),), partition_key=key)
    layout, environment = TableLayout(table), Environment()
    data = pa.table({"x": column})
    batch = data.to_batches()[0]
    slow = [evaluate_array(e, batch, environment) for e in layout.partition_expressions]
    for expression, expected in zip(layout.partition_expressions, slow, strict=True):
        assert key_values(expression, batch, environment).equals(expected)
        only = constant_value(expression, batch, environment)
        if only is not None:
            assert expected.unique().equals(only)
    pieces = layout.split(data)
    ids = [
        layout.partition_id(v) for v in dict.fromkeys(zip(*(_plain(c) for c in slow), strict=True))
    ]
    assert [identity for identity, _, _ in pieces] == ids == layout.partition_ids(data)
    assert sum(piece.num_rows for _, _, piece in pieces) == rows
    for identity, _, piece in pieces:
        assert layout.partition_ids(piece) == [identity]


def _plain(column: pa.Array) -> list[object]:
    """Convert partition values to the catalog's form: dates to days, timestamps to ticks."""
    if pa.types.is_date(column.type):
        return column.view(pa.int32()).to_pylist()
    return (
        column.view(pa.int64()).to_pylist()
        if pa.types.is_timestamp(column.type)
        else (column.to_pylist())
    )


# --- functions


@given(
    st.sampled_from([pa.int8(), pa.uint8(), pa.int32(), pa.uint64(), pa.int64()]),
    st.integers(-(2**63), 2**64 - 1),
    st.integers(1, 5),
    st.booleans(),
)
def test_few_integers_as_text(kind: pa.DataType, start: int, span: int, with_null: bool) -> None:
    info = np.iinfo(kind.to_pandas_dtype())
    low = max(int(info.min), min(int(info.max) - span, start))
    values: list[int | None] = [low + at % span for at in range(700)]
    if with_null:
        values[3] = None
    column = pa.array(values, kind)
    assert display_array(column, parse_type(_NAMES[kind])).equals(column.cast(pa.string()))


_NAMES = {
    pa.int8(): "Int8",
    pa.uint8(): "UInt8",
    pa.int32(): "Int32",
    pa.uint64(): "UInt64",
    pa.int64(): "Int64",
}


@pytest.mark.parametrize("divisor", [1, 2, 28, 255, 256, 2**32, 2**63, 2**64 - 1])
@pytest.mark.parametrize("type_name", ["UInt8", "UInt16", "UInt64"])
def test_the_rest_of_a_division_by_a_constant(divisor: int, type_name: str) -> None:
    values = [0, 1, 27, 28, 29, 200, 255]
    if type_name == "UInt64":
        values += [2**32, 2**63, 2**64 - 1]
    with olapdb.connect() as connection:
        connection.execute(f"CREATE TABLE t (x {type_name}) ENGINE = MergeTree ORDER BY x")
        connection.insert("t", pa.table({"x": pa.array(values, parse_type(type_name).arrow)}))
        found = connection.execute(f"SELECT x % {divisor} FROM t ORDER BY x").fetchall()
    assert [rest for (rest,) in found] == [value % divisor for value in values]


# --- text keys read as dictionaries


@pytest.mark.parametrize("distinct", [1, 7, 60_000])
@pytest.mark.parametrize("nullable", [False, True])
def test_groups_of_a_text_column(distinct: int, nullable: bool) -> None:
    """Groups of a dictionary-encoded key equal those read as text, as `length(name)` in the key
    forces."""
    rows = 150_000
    names: pa.Array = pc.cast(pa.array(np.arange(rows) * 7 % distinct), pa.string())
    if nullable:
        names = pc.if_else(pa.array(np.arange(rows) % 5 == 0), None, names)
    data = pa.table({"k": np.arange(rows, dtype=np.uint64), "name": names})
    kind = "Nullable(String)" if nullable else "String"
    with olapdb.connect() as connection:
        connection.execute(f"CREATE TABLE t (k UInt64, name {kind}) ENGINE = MergeTree ORDER BY k")
        connection.insert("t", data)
        connection.insert("t", data.slice(0, 50))  # an inline part, which has no dictionary
        for where in ("", "WHERE k % 3 = 1", "WHERE name != '3'"):
            for aggregates in ("count(), sum(k)", "count(), avg(k / 3)", "uniqExact(k)"):
                fast = f"SELECT name, {aggregates} FROM t {where} GROUP BY name ORDER BY name"
                slow = fast.replace("GROUP BY name", "GROUP BY name, length(name)")
                assert connection.execute(fast).fetchall() == connection.execute(slow).fetchall()
