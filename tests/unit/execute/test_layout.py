"""Sorting and splitting of rows, and the names of partitions."""

from __future__ import annotations

import datetime
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.config import tuning
from olapdb.engine.layout import TableLayout, partition_id
from olapdb.model.schema import Column, Engine, KeyItem, Table
from olapdb.types import DATE, DATETIME, INT64, STRING, UINT32, DataType

pytestmark = pytest.mark.feature("select")


def layout(
    columns: dict[str, DataType], order_by: list[KeyItem], partition_by: str = ""
) -> TableLayout:
    return TableLayout(
        Table(
            id="t",
            database="default",
            name="t",
            engine=Engine("MergeTree"),
            columns=tuple(Column(i, n, t) for i, (n, t) in enumerate(columns.items(), 1)),
            sorting_key=tuple(order_by),
            partition_key=partition_by,
        )
    )


def test_partition_ids_are_clickhouses() -> None:
    days = (datetime.date(2024, 1, 5) - datetime.date(1970, 1, 1)).days
    assert partition_id((), ()) == ""
    assert partition_id((days,), (DATE,)) == "20240105"
    assert partition_id((202401,), (UINT32,)) == "202401"
    assert partition_id((-3, 7), (INT64, INT64)) == "-3-7"
    assert len(partition_id(("eu",), (STRING,))) == 32
    assert partition_id(("eu", 1), (STRING, INT64)) != partition_id(("us", 1), (STRING, INT64))


def test_split_by_month_keeps_the_order_of_rows() -> None:
    table = layout({"d": DATE, "v": INT64}, [KeyItem("v")], "toYYYYMM(d)")
    days = [datetime.date(2024, 2, 1), datetime.date(2024, 1, 1), datetime.date(2024, 2, 29)]
    rows = pa.table({"d": pa.array(days), "v": [3, 2, 1]})
    pieces = table.split(rows)
    assert [(i, v, r.column("v").to_pylist()) for i, v, r in pieces] == [
        ("202402", (202402,), [3, 1]),
        ("202401", (202401,), [2]),
    ]
    assert table.partition_ids(rows) == ["202402", "202401"]
    assert table.partition_id((202402,)) == "202402"


def test_a_tuple_of_keys_and_no_key() -> None:
    table = layout({"d": DATE, "v": INT64}, [], "(v, toYYYYMM(d))")
    rows = pa.table({"d": pa.array([datetime.date(2024, 2, 1)]), "v": [5]})
    assert [(i, v) for i, v, _ in table.split(rows)] == [("5-202402", (5, 202402))]
    plain = layout({"v": INT64}, [])
    ((identity, value, same),) = plain.split(rows)
    assert (identity, value, same.num_rows) == ("all", (), 1)
    assert layout({"v": INT64}, [], "tuple()").split(rows)[0][0] == "all"
    assert plain.split(rows.slice(0, 0)) == []


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b"])), max_size=20))
def test_sort_by_an_expression_and_downwards(rows: list[tuple[int, str]]) -> None:
    table = layout({"x": INT64, "s": STRING}, [KeyItem("intDiv(x, 2)", True), KeyItem("s")])
    columns = pa.table(
        {"x": pa.array([r[0] for r in rows], pa.int64()), "s": pa.array([r[1] for r in rows])},
        schema=pa.schema([("x", pa.int64()), ("s", pa.string())]),
    )
    found = table.sort(columns)
    expected = sorted(rows, key=lambda r: (-(r[0] // 2), r[1]))
    assert list(zip(*(c.to_pylist() for c in found.columns), strict=True)) == expected


@pytest.mark.parametrize("chunks", [1, 3])
def test_columns_are_sorted_in_threads_as_in_one(chunks: int) -> None:
    table = layout({"a": INT64, "s": STRING}, [KeyItem("a")])
    piece = pa.table({"a": [3, 1, None, 2], "s": ["c", "a", None, ""]})
    rows = pa.concat_tables([piece] * chunks)
    with patch.object(tuning, "PARALLEL_COLUMNS_ROWS_MIN", 0):
        assert table.sort(rows, threads=2).equals(table.sort(rows))


def test_rows_in_order_are_left_alone() -> None:
    table = layout({"t": DATETIME}, [KeyItem("t")])
    rows = pa.table({"t": pa.array([1, 1, 2], pa.timestamp("s", "UTC"))})
    assert table.order(rows) is None
    assert table.order(rows.take(pa.array([2, 0, 1]))).to_pylist() == [1, 2, 0]  # type: ignore[union-attr]


def test_columns_of_the_keys() -> None:
    table = layout({"d": DATE, "k": INT64}, [KeyItem("k"), KeyItem("toYear(d)")], "toYYYYMM(d)")
    assert table.key_columns == {"k"}
    assert table.sorting_columns == {"k", "d"}
    assert table.partition_columns == {"d"}
