"""Aggregates over frames: the compiled kernels and the tree of states give the same, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.execute.operators.frame_aggregates import aggregate_over
from olapdb.functions import parse_type
from olapdb.functions.aggregates.registry import resolve_aggregate
from olapdb.functions.window_definitions import Frames
from olapdb.native import frames as native_frames
from olapdb.native.library import library, without_kernels
from tests.property.test_kernels import INTEGERS, TIMES, columns, same_bits

pytestmark = [
    pytest.mark.feature("select"),
    pytest.mark.skipif(library() is None, reason="There are no compiled kernels to compare."),
]

FLOATS = ["Float32", "Float64"]
ORDERED = [*INTEGERS, *TIMES, *FLOATS, "Decimal(18, 4)", "Decimal(38, 3)", "String"]
FUNCTIONS = {"min": ORDERED, "max": ORDERED, "sum": FLOATS, "avg": FLOATS, "sumCount": FLOATS}


@pytest.mark.parametrize("function", FUNCTIONS)
@given(data=st.data())
def test_aggregates_over_frames(function: str, data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 40))
    name = data.draw(st.sampled_from(FUNCTIONS[function]))
    column = data.draw(columns([name], rows))
    bounds = st.tuples(st.integers(0, rows), st.integers(0, rows)).map(sorted)
    drawn = data.draw(st.lists(bounds, min_size=rows, max_size=rows))
    starts, ends = np.array(drawn, np.int64).T
    whole = np.zeros(rows, np.int64), np.full(rows, rows, np.int64)
    frames = Frames(*whole, *whole, starts, ends)
    argument = parse_type(f"Nullable({name})" if column.null_count else name)
    aggregate = resolve_aggregate(function, (), (argument,))
    compiled = aggregate_over(aggregate, [column], frames)
    with without_kernels():
        expected = aggregate_over(aggregate, [column], frames)
    assert same_bits(compiled, expected)


def test_frames_outside_of_the_rows_are_refused() -> None:
    values = np.zeros(3)
    for start, end in ((-1, 2), (0, 4)):
        with pytest.raises(IndexError, match="not within 3 rows"):
            native_frames.frame_sums(values, np.array([start]), np.array([end]))
