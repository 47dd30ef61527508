"""What tells by marks of hashes that a set lacks a value agrees with a search by value, compiled or not."""

from __future__ import annotations

from contextlib import nullcontext
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.compute import hash_index
from olapdb.compute.hash_table import Lookup
from olapdb.config import tuning
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.base import Groups
from olapdb.native.library import library, without_kernels

pytestmark = pytest.mark.feature("select", "aggregates")

CASES = st.tuples(
    st.integers(1, 400),
    st.integers(0, 700),
    st.integers(0, 9),
    st.sampled_from([0.0, 0.1, 0.9, 1.0]),
    st.booleans(),
)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("arrow", [pa.int64(), pa.uint32(), pa.timestamp("s"), pa.string()])
@given(case=CASES)
def test_members_by_hash(
    arrow: pa.DataType, compiled: bool, case: tuple[int, int, int, float, bool]
) -> None:
    members, rows, skipped, share, with_null = case
    random = np.random.default_rng(members * 1009 + rows)
    keys = np.unique(random.integers(0, 1 << 31, members))
    wanted = np.where(
        random.random(rows + skipped) < share,
        random.choice(keys, rows + skipped),
        random.integers(0, 1 << 31, rows + skipped),
    )
    mask = random.random(rows + skipped) < 0.1 if with_null else None
    values = pa.array(keys).cast(pa.int64()).cast(arrow)
    column = pa.array(wanted, mask=mask).cast(pa.int64()).cast(arrow).slice(skipped)
    known = set(keys.tolist())
    expected = [
        int(number) in known and (mask is None or not mask[skipped + at])
        for at, number in enumerate(wanted[skipped:])
    ]
    with (
        nullcontext() if compiled else without_kernels(),
        patch.multiple(tuning, INDEXED_VALUES_MIN=1, MEMBER_TABLE_BYTES_MAX=0),
    ):
        assert Lookup([values], len(values)).contains([column], rows).to_pylist() == expected


@pytest.mark.skipif(library() is None, reason="The other form needs no marks.")
def test_sets_of_very_many_values_have_no_marks() -> None:
    values = pa.array(np.arange(5000, dtype=np.int64) * 1_000_003)
    with (
        patch.multiple(tuning, INDEXED_VALUES_MIN=1, MEMBER_TABLE_BYTES_MAX=0),
        patch.object(hash_index, "_MARK_BITS_MAX", 8),
    ):
        found = Lookup([values], len(values)).contains([pa.array([0, 1, 1_000_003])], 3)
    assert found.to_pylist() == [True, False, True]


@pytest.mark.parametrize("arrow", [pa.float64(), pa.float32(), pa.int16()])
@given(rows=st.integers(0, 300), skipped=st.integers(0, 17), share=st.sampled_from([0.1, 0.9]))
def test_sums_of_floats_skip_nulls_in_row_order(
    arrow: pa.DataType, rows: int, skipped: int, share: float
) -> None:
    random = np.random.default_rng(rows * 31 + skipped)
    numbers = random.normal(0, 1e4, rows + skipped)
    mask = random.random(rows + skipped) < share
    column = pa.array(numbers.astype(arrow.to_pandas_dtype()), mask=mask).slice(skipped)
    groups = Groups(np.zeros(rows, np.int64), 1)
    found = group_kernels.sum_values(column, groups, np.dtype(np.float64))
    total = 0.0
    for value in column.to_pylist():
        total += 0.0 if value is None else value
    assert found.tolist() == [total]
