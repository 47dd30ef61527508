"""Comparing columns: states, lists, floats, NULL and NaN."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import olapdb
from olapdb.views.proof.compare import FLOAT_TOLERANCE
from olapdb.views.proof.compare_values import compare_columns

pytestmark = pytest.mark.feature("views")

NAN = float("nan")


@pytest.mark.parametrize(
    ("left", "right", "wrong", "largest"),
    [
        (pa.array([1, 2, None]), pa.array([1, 5, None]), [False, True, False], 3.0),
        (pa.array([1, None]), pa.array([None, 1]), [True, True], 0.0),
        (pa.array([1.0, NAN, 1e300]), pa.array([1.0 + 1e-12, NAN, 1e300]), [False] * 3, 0.0),
        (pa.array([0.0, 1.0]), pa.array([1e-30, 1.1]), [True, True], 0.1),
        (pa.array([float("inf")]), pa.array([1.0]), [True], 0.0),
        (pa.array(["a", "b"]), pa.array(["a", "c"]), [False, True], 0.0),
        (
            pa.array([[1, 2], [3], [], None]),
            pa.array([[1, 2], [4], [5], None]),
            [False, True, True, False],
            1.0,
        ),
        (pa.array([{"s": 4, "n": 2}]), pa.array([{"s": 2, "n": 1}]), [True], 2.0),
    ],
)
def test_columns(left: pa.Array, right: pa.Array, wrong: list[bool], largest: float) -> None:
    differs, size = compare_columns(left, right, FLOAT_TOLERANCE)
    assert differs.tolist() == wrong
    assert size == pytest.approx(largest)


def test_only_sums_of_floats_may_differ_a_little() -> None:
    left, right = pa.array([1.0, NAN]), pa.array([1.0 + 1e-12, NAN])
    assert compare_columns(left, right)[0].tolist() == [True, False]
    assert compare_columns(left, right, FLOAT_TOLERANCE)[0].tolist() == [False, False]


def test_nothing_is_equal_to_nothing() -> None:
    empty = pa.array([], pa.list_(pa.float64()))
    differs, size = compare_columns(empty, empty)
    assert not len(differs)
    assert size == 0
    assert differs.dtype == np.bool_


@pytest.mark.parametrize(
    ("data_type", "first", "second"),
    [
        ("Variant(Array(Int64), Array(String))", "[]::Array(Int64)", "[]::Array(String)"),
        ("Array(Variant(Float64, Int64))", "[1::Int64]", "[1::Float64]"),
        ("Dynamic", "1::Int64", "'1'"),
        ("Dynamic", "1::Int64", "1::UInt8"),
        ("JSON", "'{\"a\": 1}'", "'{\"a\": 1.0}'"),
        (
            "Array(DateTime('Europe/Berlin'))",
            "[toDateTime(1603584000, 'Europe/Berlin')]",
            "[toDateTime(1603587600, 'Europe/Berlin')]",
        ),
    ],
)
def test_values_of_one_text_differ_in_a_target_of_rows(
    data_type: str, first: str, second: str
) -> None:
    query = f"if(n = 1, CAST({first} AS {data_type}), CAST({second} AS {data_type}))"
    with olapdb.connect() as connection:
        for statement in (
            "CREATE TABLE s (k UInt8, n UInt8) ENGINE = MergeTree ORDER BY k",
            f"CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY k AS SELECT k, {query} AS a FROM s",
            "INSERT INTO s VALUES (1, 1)",
            "SYSTEM RECONCILE VIEW v",
            "ALTER TABLE s UPDATE n = 2 WHERE k = 1",
            "SYSTEM RECONCILE VIEW v",
        ):
            connection.execute(statement)
        (verdict,) = connection.execute("SELECT verdict FROM system.views").fetchone() or ("",)
    assert verdict == "stale"
