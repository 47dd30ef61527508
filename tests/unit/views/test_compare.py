"""Comparing columns: states, lists, floats, NULL and NaN."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from olapdb.views.proof.compare import FLOAT_TOLERANCE, compare_columns

pytestmark = pytest.mark.feature("views")

NAN = float("nan")


@pytest.mark.parametrize(
    ("left", "right", "wrong", "largest"),
    [
        (pa.array([1, 2, None]), pa.array([1, 5, None]), [False, True, False], 3.0),
        (pa.array([1, None]), pa.array([None, 1]), [True, True], 0.0),
        (pa.array([1.0, NAN, 1e300]), pa.array([1.0 + 1e-12, NAN, 1e300]), [False] * 3, 0.0),
        (pa.array([0.0, 1.0]), pa.array([1e-30, 1.1]), [True, True], 0.1),
        (pa.array([float("inf")]), pa.array([1.0]), [True], 0.0),
        (pa.array(["a", "b"]), pa.array(["a", "c"]), [False, True], 0.0),
        (
            pa.array([[1, 2], [3], [], None]),
            pa.array([[1, 2], [4], [5], None]),
            [False, True, True, False],
            1.0,
        ),
        (pa.array([{"s": 4, "n": 2}]), pa.array([{"s": 2, "n": 1}]), [True], 2.0),
    ],
)
def test_columns(left: pa.Array, right: pa.Array, wrong: list[bool], largest: float) -> None:
    differs, size = compare_columns(left, right, FLOAT_TOLERANCE)
    assert differs.tolist() == wrong
    assert size == pytest.approx(largest)


def test_only_sums_of_floats_may_differ_a_little() -> None:
    left, right = pa.array([1.0, NAN]), pa.array([1.0 + 1e-12, NAN])
    assert compare_columns(left, right)[0].tolist() == [True, False]
    assert compare_columns(left, right, FLOAT_TOLERANCE)[0].tolist() == [False, False]


def test_nothing_is_equal_to_nothing() -> None:
    empty = pa.array([], pa.list_(pa.float64()))
    differs, size = compare_columns(empty, empty)
    assert not len(differs)
    assert size == 0
    assert differs.dtype == np.bool_
