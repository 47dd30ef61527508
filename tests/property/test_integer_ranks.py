"""Ranks of integers, and states of variances from values, are those of the plain form."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.covariance import Covariance, covariance
from olapdb.functions.aggregates.variance import Variance, variance
from olapdb.functions.base import Groups
from olapdb.functions.kernels import integer_order
from olapdb.types import FLOAT64

pytestmark = pytest.mark.feature("functions", "aggregates")

NARROW = st.integers(-100, 100)
WIDE = st.integers(-(2**63), 2**63 - 1)


def check(values: np.ndarray, ranks: np.ndarray, rows: np.ndarray) -> None:
    distinct, inverse = np.unique(values, return_inverse=True)
    assert ranks.tolist() == inverse.tolist()
    assert values[rows].tolist() == distinct.tolist()
    assert rows.tolist() == [int(np.flatnonzero(values == value)[-1]) for value in distinct]


@given(st.lists(NARROW, max_size=60) | st.lists(WIDE, max_size=60))
def test_ranks_of_integers(numbers: list[int]) -> None:
    values = np.array(numbers, np.int64)
    ranked = integer_order.rank_integers(values)
    if ranked is not None:
        check(values, *ranked)
    if numbers:
        check(values, *integer_order._by_sorting(values))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_bounds_of_types_are_ranked(dtype: type) -> None:
    info = np.iinfo(dtype)
    values = np.array([info.max, info.min, info.max - 1, info.min + 1, info.max], dtype)
    ranked = integer_order.rank_integers(values)
    assert ranked is not None
    check(values, *ranked)


def test_without_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integer_order, "library", lambda: None)
    values = np.random.default_rng(1).integers(-(2**62), 2**62, 500)
    values[100:150] = values[:50]
    check(values, *integer_order._by_sorting(values))


@pytest.mark.parametrize(
    "type_",
    [
        pa.date32(),
        pa.time32("s"),
        pa.time64("us"),
        pa.timestamp("ms"),
        pa.duration("s"),
        pa.uint64(),
        pa.int16(),
    ],
)
def test_all_integer_like_types_are_ranked(type_: pa.DataType) -> None:
    array = pa.array([5, 3, 9, 3], pa.int64()).cast(
        pa.int32() if type_.bit_width == 32 else pa.int64()
    )
    column = (array.cast(type_) if pa.types.is_integer(type_) else array.view(type_)).slice(1)
    ranking = group_kernels.rank_rows([column])
    assert ranking.ranks.tolist() == [0, 1, 0]
    assert ranking.rows.tolist() == [2, 1]


FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=32)


@given(st.lists(st.tuples(FLOATS, FLOATS, st.integers(0, 2)), max_size=40), st.booleans())
def test_states_of_values_are_those_of_states_of_one_value(
    rows: list[tuple[float, float, int]], single: bool
) -> None:
    left, right = (np.array([row[at] for row in rows], np.float64) for at in (0, 1))
    codes = np.array([0 if single else row[2] for row in rows], np.int64)
    groups = Groups(codes, 1 if single else 3)
    ones, zeros = np.ones(len(rows)), np.zeros(len(rows))
    spread = variance("varPop", (), (FLOAT64,))
    assert isinstance(spread, Variance)
    expected = spread._combined(ones, left, zeros, groups)
    assert _bits(spread._of_values(left, groups)) == _bits(expected)
    for name, sums in (("covarPop", 1), ("corr", 3)):
        pair = covariance(name, (), (FLOAT64, FLOAT64))
        assert isinstance(pair, Covariance)
        expected = pair._combined([ones, left, right, *[zeros] * sums], groups)
        assert _bits(pair._of_values(left, right, groups)) == _bits(expected)


def _bits(states: pa.Array) -> list[bytes]:
    """Return the fields' bits; every NaN counts as one."""
    fields = [np.asarray(field).astype(np.float64) for field in states.flatten()]
    return [np.where(np.isnan(values), np.nan, values + 0.0).tobytes() for values in fields]
