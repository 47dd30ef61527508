"""-If aggregates over rows masked as NULL give bit by bit what they give over the rows taken."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb import functions
from olapdb.functions import Aggregate, Groups
from olapdb.functions.aggregates.combinators import If
from olapdb.functions.aggregates.masks import null_unless
from olapdb.native.library import library

pytestmark = pytest.mark.feature("aggregates", "select")

ROWS_MAX = 80
TYPES = [
    "Int8",
    "UInt16",
    "Int32",
    "UInt64",
    "Float32",
    "Float64",
    "Date",
    "Decimal(18, 2)",
    "String",
]


@st.composite
def rows(draw: st.DrawFn) -> tuple[str, pa.Array, pa.Array, Groups]:
    """Draw a type, a slice of values, conditions of which some are NULL, and groups."""
    name = draw(st.sampled_from(TYPES))
    count = draw(st.integers(0, ROWS_MAX))
    numbers = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 100, count + 3)
    arrow = functions.parse_type(name).arrow
    text = pa.types.is_string(arrow) or pa.types.is_large_string(arrow)
    values = pa.array(numbers.astype(np.uint8)).cast(pa.int32())
    values = values.cast(pa.string()).cast(arrow) if text else values.cast(arrow)
    truths = st.sampled_from([True, False, None])
    conditions = pa.array(
        draw(st.lists(truths, min_size=count + 3, max_size=count + 3)), pa.bool_()
    )
    groups = draw(st.integers(1, 4))
    start = draw(st.integers(0, 3))
    return (
        name,
        values.slice(start, count),
        conditions.slice(start, count),
        Groups(numbers[:count] % groups, groups),
    )


def aggregates_of(name: str) -> list[Aggregate]:
    """Return the -If aggregates that the type has."""
    summed = () if name in ("Date", "String") else ("sumIf", "avgIf", "sumCountIf")
    types = [functions.parse_type(name), functions.parse_type("Bool")]
    return [
        functions.resolve_aggregate(one, (), types)
        for one in (*summed, "countIf", "minIf", "maxIf")
    ]


@given(rows())
def test_masked_rows_are_as_rows_taken(case: tuple[str, pa.Array, pa.Array, Groups]) -> None:
    name, values, conditions, groups = case
    for aggregate in aggregates_of(name):
        assert isinstance(aggregate, If)
        arguments = [values, conditions]
        taken = aggregate.inner.state(*aggregate.matching(arguments, groups))
        assert aggregate.state(arguments, groups).equals(taken)


def test_values_are_shared() -> None:
    values = pa.array(np.arange(10, dtype=np.int32)).slice(3)
    masked = null_unless([values], pa.array([True, False, None, True, True, False, True]))
    if library() is None:
        assert masked is None
        return
    assert masked is not None
    assert masked.to_pylist() == [3, None, None, 6, 7, None, 9]
    assert masked.buffers()[1].address == values.buffers()[1].address + 12


def test_counted_rows_have_no_null_argument() -> None:
    values = pa.array([1, None, 3, 4])
    masked = null_unless([values], pa.array([True, True, False, True]), counted=True)
    assert library() is None or (masked is not None and masked.null_count == 2)
