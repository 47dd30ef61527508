"""ORDER BY: NULL and NaN at the end of either direction, arrays and tuples by element."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.compute.ordering import (
    OrderColumn,
    dense_ranks,
    equal_to_previous,
    is_sorted,
    sort_indices,
)
from olapdb.config import tuning

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


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from("aéz"), st.integers(-1, 1)), max_size=8),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.integers(1, 4),
)
def test_rows_in_order_are_seen(
    rows: list[tuple[int, str, int]], descending: tuple[bool, bool, bool], tried: int
) -> None:
    arrows = (pa.uint32(), pa.string(), pa.int64())
    columns = [
        OrderColumn(pa.array([row[at] for row in rows], arrow), is_descending)
        for at, (arrow, is_descending) in enumerate(zip(arrows, descending, strict=True))
    ]
    with patch.object(tuning, "ORDERED_ROWS_TRIED", tried):
        for count in (1, 2, 3):
            order = sort_indices(columns[:count], len(rows)).to_pylist()
            assert is_sorted(columns[:count], len(rows)) == (order == list(range(len(rows))))


@pytest.mark.parametrize(
    ("arrow", "values"),
    [
        (pa.int8(), [-1, 0, 1, None]),
        (pa.float64(), [-1.0, -0.0, 0.0, math.nan, None]),
        (pa.string(), ["", "a", "é", None]),
        (pa.binary(), [b"", b"a", None]),
        (pa.bool_(), [False, True, None]),
        (pa.decimal128(10, 2), [Decimal("-1.25"), Decimal("0.00"), None]),
        (pa.date32(), [date(1969, 1, 1), date(1970, 1, 1), None]),
        (pa.timestamp("s"), [datetime(1969, 1, 1), datetime(1970, 1, 1), None]),
    ],
)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
@given(data=st.data())
def test_rows_in_order_are_seen_with_null_and_nan(
    arrow: pa.DataType,
    values: list[object],
    descending: bool,
    nulls_first: bool,
    data: st.DataObject,
) -> None:
    rows = data.draw(
        st.lists(st.tuples(st.sampled_from(values), st.sampled_from(values)), max_size=5)
    )
    columns = [
        OrderColumn(pa.array([row[at] for row in rows], arrow), descending, nulls_first)
        for at in (0, 1)
    ]
    order = sort_indices(columns, len(rows))
    assert is_sorted(columns, len(rows)) == (order.to_pylist() == list(range(len(rows))))
    ordered = [replace(column, values=column.values.take(order)) for column in columns]
    assert is_sorted(ordered, len(rows))


def test_equal_to_previous_takes_null_and_nan_as_equal() -> None:
    column = pa.array([None, None, math.nan, math.nan, 1.0, 1.0, 2.0])
    assert equal_to_previous([column], 7).tolist() == [False, True, False, True, False, True, False]
    assert equal_to_previous([], 2).tolist() == [False, True]
    assert equal_to_previous([column], 0).tolist() == []


def test_dense_ranks() -> None:
    column = pa.array(["b", "a", "b", "c"])
    assert dense_ranks([OrderColumn(column)], 4).tolist() == [1, 0, 1, 2]
