"""ARRAY JOIN on hand-made plans, against plain Python, for several batch sizes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import olapdb
from olapdb.errors import MemoryLimitExceeded, SizesOfArraysDoNotMatch
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


LONG = {
    "of many rows": "SELECT number, x FROM numbers(300) ARRAY JOIN range(number * 100) AS x",
    "of one length": "SELECT number, arrayJoin(range(40000)) AS x FROM numbers(300)",
    "a few are long": "SELECT number, x FROM numbers(300) ARRAY JOIN range(if(number % 7 = 3, 40000, 3)) AS x",
    "LEFT of one": "SELECT number, x FROM numbers(30) LEFT ARRAY JOIN range(number * 3000) AS x",
    "LEFT": "SELECT number, x, y FROM numbers(300) LEFT ARRAY JOIN range(number * 60) AS x, range(number * 60) AS y",
}


@pytest.mark.parametrize("sql", LONG.values(), ids=LONG)
def test_long_arrays_are_made_some_at_a_time(sql: str) -> None:
    query = f"SELECT sum(cityHash64(*)), count() FROM ({sql})"
    with olapdb.connect() as connection, connection.cursor() as cursor:
        cursor.execute(query)
        expected = cursor.fetchall()
        cursor.execute(f"{query} SETTINGS max_memory_usage = 4000000, max_threads = 2")
        assert cursor.fetchall() == expected
        assert cursor.statistics.memory_peak_bytes <= 4_000_000


def test_an_array_that_is_too_long_is_refused_with_advice() -> None:
    with olapdb.connect() as connection, pytest.raises(MemoryLimitExceeded, match="of one row"):
        connection.execute(
            "SELECT x FROM numbers(3) ARRAY JOIN range(number * 1000000) AS x SETTINGS max_memory_usage = 4000000"
        ).fetchall()
