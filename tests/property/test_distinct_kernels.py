"""Sets of distinct values: the compiled kernels and numpy give the same states, bit by bit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb import observation
from olapdb.functions import parse_type
from olapdb.functions.aggregates import distinct, group_kernels
from olapdb.functions.aggregates.registry import resolve_aggregate
from olapdb.functions.base import Groups
from olapdb.native import distinct as native
from olapdb.native.library import library, without_kernels
from olapdb.native.values import values_of, values_of_numbers
from tests.property.test_kernels import ALL, INTEGERS, TIMES, columns

pytestmark = [
    pytest.mark.feature("aggregates"),
    pytest.mark.skipif(library() is None, reason="There are no compiled kernels to compare."),
]

ROWS = 3_000
LARGEST = (1 << 64) - 1
RANDOM = np.random.default_rng(11)
SPREAD = RANDOM.integers(0, 1 << 64, ROWS, np.uint64)
NUMBERS = {
    "a few": SPREAD[:20],
    "ascending, with repeats": np.sort(SPREAD[RANDOM.integers(0, 500, ROWS)]),
    "close together": RANDOM.integers(7, 2_000, ROWS, np.uint64),
    "spread evenly": SPREAD,
    "many repeats": SPREAD[RANDOM.integers(0, 90, ROWS)],
    "both ends": np.where(SPREAD % 5 == 0, LARGEST, np.where(SPREAD % 7 == 0, 0, SPREAD)).astype(
        np.uint64
    ),
    "crowded, with one far away": np.append(RANDOM.integers(0, 1 << 30, ROWS, np.uint64), LARGEST),
    "crowded at the end": LARGEST
    - RANDOM.integers(0, 1 << 30, ROWS).astype(np.uint64) * (SPREAD > 9),
    "magnitudes": np.uint64(1) << RANDOM.integers(0, 64, ROWS).astype(np.uint64) | SPREAD % 3,
}


@pytest.mark.parametrize("dtype", [np.uint64, np.int64, np.int32, np.uint16, np.int8])
@pytest.mark.parametrize("groups", [1, 6, 700])
@pytest.mark.parametrize("name", NUMBERS)
def test_each_way_of_sorting(name: str, groups: int, dtype: type[np.generic]) -> None:
    """Each case takes its own branch of the kernel; the last group is empty."""
    numbers = NUMBERS[name].astype(dtype)
    codes = np.arange(len(numbers)) % max(groups - 1, 1)
    given = None if groups == 1 else codes
    offsets, values = native.distinct_values(values_of_numbers(numbers), given, groups)
    assert values.dtype == dtype
    for group in range(groups):
        expected = np.unique(numbers[codes == group])
        np.testing.assert_array_equal(values[offsets[group] : offsets[group + 1]], expected)
    assert len(values) == offsets[groups]


@given(st.data())
def test_null_is_no_value(data: st.DataObject) -> None:
    column = data.draw(columns([*INTEGERS, *TIMES], data.draw(st.integers(1, 40))))
    codes = np.arange(len(column)) % 3
    offsets, values = native.distinct_values(values_of(column), codes, 3)
    (kept,), groups = group_kernels.drop_null_rows([column], Groups(codes, 3))
    with without_kernels():
        ranking = group_kernels.rank_rows([kept])
        expected_offsets, ranks = group_kernels.distinct_ranks(ranking, groups)
    np.testing.assert_array_equal(offsets, expected_offsets)
    expected = kept.take(pa.array(ranking.rows[ranks]))
    np.testing.assert_array_equal(values, values_of(expected).numbers)


@pytest.mark.parametrize("function", ["uniq", "uniqExact", "groupUniqArray"])
@given(data=st.data())
def test_states_and_merges(function: str, data: st.DataObject) -> None:
    rows, count = data.draw(st.integers(0, 60)), data.draw(st.integers(1, 4))
    name = data.draw(st.sampled_from(ALL))
    column = data.draw(columns([name], rows))
    codes = data.draw(st.lists(st.integers(0, count - 1), min_size=rows, max_size=rows))
    argument = parse_type(f"Nullable({name})" if column.null_count else name)
    aggregate = resolve_aggregate(function, (), (argument,))
    groups, halves = np.array(codes, np.int64), np.arange(count) % 2

    def results() -> list[pa.Array]:
        states = aggregate.state([column], Groups(groups, count))
        merged = aggregate.merge(states, Groups(halves, 2))
        return [states, merged, aggregate.finalize(merged)]

    compiled = results()
    with without_kernels():
        expected = results()
    for one, other in zip(compiled, expected, strict=True):
        # Which of several NaNs stands for all is open; NaN != NaN for Arrow.
        assert one.equals(other) or ("Float" in name and str(one) == str(other))


@pytest.mark.parametrize("size_max", [1, 50, 700])
def test_samples_that_are_cut(size_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The skips rise as far as needed, from those of the states that are merged."""
    monkeypatch.setattr(distinct, "SAMPLE_MAX", size_max)
    aggregate = resolve_aggregate("uniq", (), (parse_type("UInt64"),))
    codes = np.minimum(RANDOM.integers(0, 9, ROWS), 4)

    def results() -> list[pa.Array]:
        states = aggregate.state([pa.array(SPREAD)], Groups(codes, 6))
        return [states, aggregate.merge(states, Groups(np.array([0, 1, 1, 1, 2, 3]), 4))]

    compiled = results()
    with without_kernels():
        assert all(map(pa.Array.equals, compiled, results()))
    assert pc.max(compiled[1].field(0)).as_py() > 0


def test_a_skip_beyond_the_bits_of_a_hash() -> None:
    """A state that no aggregate made: only the hash 0 is left."""
    hashes = values_of_numbers(np.array([0, 1 << 63, 5], np.uint64))
    offsets, kept, skips = native.sample(hashes, None, np.array([64]), 10)
    assert (offsets.tolist(), kept.tolist(), skips.tolist()) == ([0, 1], [0], [64])


def test_one_pass_for_all_groups() -> None:
    """The kernels run once for a batch, however many groups it has."""
    aggregate = resolve_aggregate("uniqExact", (), (parse_type("Int64"),))
    counts = observation.Counts()
    with observation.counting(counts):
        aggregate.state([pa.array(np.arange(ROWS))], Groups(np.arange(ROWS) % 500, 500))
    assert (counts.kernels["group_values"], counts.kernels["distinct_sorted"]) == (1, 1)
