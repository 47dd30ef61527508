"""ORDER BY: NULL and NaN at the end of either direction, arrays and tuples by element."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.compute.ordering import OrderColumn, dense_ranks, equal_to_previous, sort_indices

pytestmark = pytest.mark.feature("select")


def ordered(values: list[object], arrow: pa.DataType, **options: bool) -> list[object]:
    column = pa.array(values, arrow)
    return column.take(sort_indices([OrderColumn(column, **options)], len(column))).to_pylist()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["1.0", "2.0", "nan", "None"]),
        ({"descending": True}, ["2.0", "1.0", "nan", "None"]),
        ({"nulls_first": True}, ["None", "nan", "1.0", "2.0"]),
        ({"descending": True, "nulls_first": True}, ["None", "nan", "2.0", "1.0"]),
    ],
)
def test_null_and_nan_lie_together(options: dict[str, bool], expected: list[str]) -> None:
    found = ordered([math.nan, 2.0, None, 1.0], pa.float64(), **options)
    assert [str(v) for v in found] == expected


def test_each_key_places_its_own_nulls() -> None:
    first, second = pa.array([1, None, 1, None]), pa.array([None, 5, 3, None])
    keys = [OrderColumn(first, nulls_first=True), OrderColumn(second, descending=True)]
    assert sort_indices(keys, 4).to_pylist() == [1, 3, 2, 0]


def test_texts_compare_bytewise() -> None:
    assert ordered(["b", "Z", "é", "a", ""], pa.string()) == ["", "Z", "a", "b", "é"]


@given(st.lists(st.lists(st.integers(-2, 2), max_size=3), max_size=15))
def test_arrays_compare_by_element_then_length(rows: list[list[int]]) -> None:
    assert ordered(list(rows), pa.list_(pa.int64())) == sorted(rows)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["", "a", "b"])), max_size=15))
def test_tuples_compare_by_element(rows: list[tuple[int, str]]) -> None:
    arrow = pa.struct([("1", pa.int64()), ("2", pa.string())])
    found = ordered([{"1": a, "2": b} for a, b in rows], arrow)
    assert [tuple(v.values()) for v in found] == sorted(rows)  # type: ignore[union-attr]


@given(st.lists(st.integers(0, 3), max_size=30))
def test_the_sort_is_stable(rows: list[int]) -> None:
    order = sort_indices([OrderColumn(pa.array(rows, pa.int64()), True)], len(rows)).to_pylist()
    assert order == sorted(range(len(rows)), key=lambda at: -rows[at])


def test_equal_to_previous_takes_null_and_nan_as_equal() -> None:
    column = pa.array([None, None, math.nan, math.nan, 1.0, 1.0, 2.0])
    assert equal_to_previous([column], 7).tolist() == [False, True, False, True, False, True, False]
    assert equal_to_previous([], 2).tolist() == [False, True]
    assert equal_to_previous([column], 0).tolist() == []


def test_dense_ranks() -> None:
    column = pa.array(["b", "a", "b", "c"])
    assert dense_ranks([OrderColumn(column)], 4).tolist() == [1, 0, 1, 2]
