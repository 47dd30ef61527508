"""ARRAY JOIN on hand-made plans, against plain Python, for several batch sizes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.errors import SizesOfArraysDoNotMatch
from olapdb.execute import ExecutionContext, run_node
from olapdb.plan import nodes
from olapdb.types import INT64, STRING, Array, Nullable
from tests.unit.execute.build import col, rows_of, values

pytestmark = pytest.mark.feature("select")

ARRAYS = st.lists(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 9)), st.text(max_size=2)), max_size=7),
    max_size=12,
)


def joined(rows: list[list[tuple[int | None, str]]], *, left: bool) -> nodes.ArrayJoin:
    numbers, texts = Array(Nullable(INT64)), Array(STRING)
    source = values(
        {
            "row": (INT64, list(range(len(rows)))),
            "numbers": (numbers, [[n for n, _ in row] for row in rows]),
            "texts": (texts, [[t for _, t in row] for row in rows]),
        }
    )
    arrays = (("n", col("numbers", numbers)), ("t", col("texts", texts)))
    return nodes.ArrayJoin(source, (nodes.Field("row", INT64),), arrays, left)


@given(ARRAYS, st.booleans(), st.integers(1, 9))
def test_a_row_for_each_element(
    rows: list[list[tuple[int | None, str]]], left: bool, batch_rows: int
) -> None:
    node = joined(rows, left=left)
    expected = [
        (number, *element)
        for number, row in enumerate(rows)
        for element in (row or ([(None, "")] if left else []))
    ]
    context = ExecutionContext(batch_rows=batch_rows)
    assert rows_of(node, context) == expected


def test_a_long_array_comes_in_batches() -> None:
    long = pa.scalar(list(range(1000)), pa.list_(pa.int64()))
    source = nodes.Values(
        (nodes.Field("a", Array(INT64)),), pa.table({"a": pa.array([long, long])})
    )
    node = nodes.ArrayJoin(source, (), (("x", col("a", Array(INT64))),), False)
    sizes = [b.num_rows for b in run_node(node, ExecutionContext(batch_rows=300))]
    assert sizes == [300, 300, 300, 300, 300, 300, 200]
    assert rows_of(node) == [(x,) for x in range(1000)] * 2


@pytest.mark.parametrize("left", [False, True])
def test_arrays_of_a_row_are_of_one_length(left: bool) -> None:
    source = values({"a": (Array(INT64), [[1], [1, 2]]), "b": (Array(INT64), [[1], []])})
    arrays = tuple((f"x{name}", col(name, Array(INT64))) for name in "ab")
    with pytest.raises(SizesOfArraysDoNotMatch, match="2 and 0 elements"):
        rows_of(nodes.ArrayJoin(source, (), arrays, left))
