"""Fast paths of aggregates skip work whose result is known; their results equal the slow path's."""

from __future__ import annotations

import itertools
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from olapdb.functions.aggregates import exact_quantile, group_kernels, quantile, quantile_buckets
from olapdb.functions.base import Groups
from olapdb.functions.kernels import columns, slices

pytestmark = pytest.mark.feature("aggregates", "select")

WHOLE = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "date32"]


def arrow_of(name: str) -> pa.DataType:
    return pa.type_for_alias(name)


@st.composite
def whole_numbers(draw: st.DrawFn) -> tuple[pa.Array, Groups]:
    """Draw values of an integer type, close together or over its range, in a few groups, some
    empty."""
    arrow = arrow_of(draw(st.sampled_from(WHOLE)))
    limits = np.iinfo(columns.dtype_of(arrow))
    low = draw(st.integers(limits.min, limits.max))
    high = draw(st.sampled_from([limits.max, min(limits.max, low + 9)]))
    rows = draw(st.lists(st.integers(low, high), max_size=40))
    count = draw(st.integers(1, 4))
    codes = draw(st.lists(st.integers(0, count - 1), min_size=len(rows), max_size=len(rows)))
    values = np.array(rows, columns.dtype_of(arrow))
    return columns.from_values(values, arrow), Groups(np.array(codes, np.int64), count)


def by_group(offsets: np.ndarray, values: np.ndarray) -> list[list[int]]:
    return [values[a:b].tolist() for a, b in itertools.pairwise(offsets)]


BOTH_ENDS = (pa.array([-128, 127, -128], pa.int8()), Groups(np.array([0, 1, 1]), 2))


@given(whole_numbers())
@example(BOTH_ENDS)
def test_distinct_numbers_are_those_of_the_ranking(case: tuple[pa.Array, Groups]) -> None:
    array, groups = case
    found = group_kernels.distinct_integers(array, groups)
    if found is None:
        return
    ranking = group_kernels.rank_rows([array])
    offsets, ranks = group_kernels.distinct_ranks(ranking, groups)
    assert found[1].dtype == columns.dtype_of(array.type)
    slow = columns.numpy_values(array)[ranking.rows[ranks]]
    assert by_group(*found) == by_group(offsets, slow)


@pytest.mark.parametrize("last", [7, 8], ids=["a last group", "none in the last group"])
def test_distinct_numbers_of_few_groups(last: int) -> None:
    random = np.random.default_rng(4)
    values = random.integers(0, 1 << 63, 1500).astype(np.uint64)[random.integers(0, 1500, 3000)]
    groups = Groups(random.integers(1, last, 3000), 8)
    offsets, found = group_kernels.distinct_integers(pa.array(values), groups)
    expected = [np.unique(values[groups.codes == group]).tolist() for group in range(8)]
    assert by_group(offsets, found) == expected


@given(whole_numbers())
def test_exact_quantiles_keep_the_values_sorted(case: tuple[pa.Array, Groups]) -> None:
    array, groups = case
    slow = array.take(pa.array(np.lexsort((columns.numpy_values(array), groups.codes))))
    assert exact_quantile._sorted(array, groups).equals(slow)


@given(whole_numbers(), st.booleans())
def test_sums_and_extremes_of_one_group(case: tuple[pa.Array, Groups], largest: bool) -> None:
    values = columns.numpy_values(case[0])
    one, two = (Groups(np.zeros(len(values), np.int64), count) for count in (1, 2))
    for dtype in (np.dtype(np.int64), np.dtype(np.uint64)):
        fast, slow = (group_kernels.sum_integers(values, g, dtype) for g in (one, two))
        assert fast.dtype == dtype
        assert fast.tolist() == slow[:1].tolist()
    fast, slow = (group_kernels.extreme_keys(values, g, largest=largest) for g in (one, two))
    assert (fast.dtype, fast.tolist()) == (values.dtype, slow[:1].tolist())


@given(st.lists(st.floats(allow_nan=False)))
def test_buckets_by_bits(values: list[float]) -> None:
    array = np.array(values, np.float64)
    assert (
        quantile_buckets.bucket_numbers(array).tolist()
        == quantile_buckets._buckets_of_any(array).tolist()
    )


@given(st.lists(st.floats(1e-300, 1e300) | st.just(0.0)))
def test_buckets_of_common_numbers(values: list[float]) -> None:
    array = np.array([*values, *(-v for v in values)], np.float64)
    assert (
        quantile_buckets.bucket_numbers(array).tolist()
        == quantile_buckets._buckets_of_any(array).tolist()
    )


@pytest.mark.parametrize("spread", [3, 1 << 17])
def test_values_of_buckets_are_counted(spread: int) -> None:
    random = np.random.default_rng(3)
    buckets = random.integers(-spread, spread, 500)
    owners, weights = random.integers(0, 20, 500), random.integers(1, 1 << 40, 500)
    numbers, counts = quantile._bucket_lists(buckets, weights, owners, 21)
    expected: list[Counter[int]] = [Counter() for _ in range(21)]
    for bucket, owner, weight in zip(buckets.tolist(), owners.tolist(), weights.tolist()):
        expected[owner][bucket] += weight
    assert numbers.to_pylist() == [sorted(one) for one in expected]
    assert counts.to_pylist() == [[one[b] for b in sorted(one)] for one in expected]


@given(st.lists(st.integers(-(10**18) + 1, 10**18 - 1)), st.integers(0, 3))
def test_decimals_that_fit_into_64_bits_compare_as_numbers(rows: list[int], skipped: int) -> None:
    values = [Decimal(row).scaleb(-2) for row in rows]
    array = pa.array(values, pa.decimal128(18, 2)).slice(min(skipped, len(rows)))
    assert group_kernels.order_keys(array).tolist() == rows[skipped:]


@pytest.mark.parametrize("others", [[], ["b%"], ["a%"], ["%"]])
def test_a_constant_pattern_is_looked_at_once(others: list[str]) -> None:
    texts = pa.array(["abc", "bcd", "a%", "b", ""] * 20)
    patterns = pa.array(["a%"] * (100 - len(others) - 1) + [*others, "a%"])
    calls: list[str] = []

    def like(arrays: list[pa.Array], values: list[str]) -> pa.Array:
        calls.append(values[0])
        return pc.match_like(arrays[0], values[0])

    found = slices.per_value([texts, patterns], (1,), like)
    rows = zip(texts.to_pylist(), patterns.to_pylist())
    assert found.to_pylist() == [pc.match_like(pa.scalar(t), p).as_py() for t, p in rows]
    assert sorted(calls) == sorted({"a%", *others})
