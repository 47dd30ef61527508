"""The order of rows by numbers, in the kernel's form, is numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.functions.kernels import integer_order

pytestmark = pytest.mark.feature("functions", "aggregates")

DTYPES = (
    "int8",
    "uint8",
    "int16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "bool",
    "float64",
    "float32",
)


def drawn(rng: np.random.Generator, dtype: str, rows: int, distinct: int) -> np.ndarray:
    """Return values of the type, few or many of them distinct, with its extremes among them."""
    if dtype == "bool":
        return rng.integers(0, 2, rows).astype(bool)
    if dtype.startswith("float"):
        chosen = np.concatenate([rng.normal(size=distinct), [0.0, -0.0, np.inf, -np.inf, 5e-324]])
        return rng.choice(chosen, rows).astype(dtype)
    info = np.iinfo(dtype)
    chosen = rng.integers(info.min, info.max, distinct, dtype=dtype, endpoint=True)
    return rng.choice(np.append(chosen, np.array([info.min, info.max], dtype)), rows)


@given(
    seed=st.integers(0, 2**32 - 1),
    dtypes=st.lists(st.sampled_from(DTYPES), min_size=1, max_size=3),
    distinct=st.sampled_from([1, 3, 300, 50_000]),
    rows=st.sampled_from([0, 1, 100, 4_096, 9_000]),
    has_nan=st.booleans(),
)
def test_rows_are_ordered_as_numpy_does(
    seed: int, dtypes: list[str], distinct: int, rows: int, has_nan: bool
) -> None:
    rng = np.random.default_rng(seed)
    keys = [drawn(rng, dtype, rows, distinct) for dtype in dtypes]
    if has_nan and rows and keys[-1].dtype.kind == "f":
        keys[-1][rng.integers(rows)] = np.nan
    assert np.array_equal(integer_order.order_by(*keys), np.lexsort(keys[::-1]))


@pytest.mark.parametrize("groups", [1, 3, 5_000, 100_000])
@pytest.mark.parametrize("are_sorted", [True, False])
def test_equal_values_keep_their_order(groups: int, are_sorted: bool) -> None:
    codes = np.random.default_rng(1).integers(0, groups, 20_000)
    codes = np.sort(codes) if are_sorted else codes
    assert np.array_equal(integer_order.stable_order(codes), np.argsort(codes, kind="stable"))
