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


@given(st.data())
def test_codes_of_a_dictionary(data: st.DataObject) -> None:
    rows, count = data.draw(st.integers(1, 200)), data.draw(st.integers(1, 5))
    size = data.draw(st.sampled_from([1, 63, 64, 65, 400]))
    code = st.one_of(st.none(), st.integers(0, size - 1))
    codes = pa.array(data.draw(st.lists(code, min_size=rows, max_size=rows)), pa.int32())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(range(size)))
    groups = Groups(
        np.array(data.draw(st.lists(st.integers(0, count - 1), min_size=rows, max_size=rows))),
        count,
    )
    offsets, found = group_kernels.distinct_codes(column, groups)
    with without_kernels():
        expected_offsets, expected = group_kernels.distinct_codes(column, groups)
    np.testing.assert_array_equal(offsets, expected_offsets)
    np.testing.assert_array_equal(found, expected)
    owners = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    union = native.union_of_codes(offsets, found, owners, 3, size)
    assert union is not None
    members = pa.DictionaryArray.from_arrays(pa.array(found, pa.int32()), column.dictionary)
    with without_kernels():
        lists = Groups(np.repeat(owners, np.diff(offsets)), 3)
        expected_offsets, expected = group_kernels.distinct_codes(members, lists)
    np.testing.assert_array_equal(union[0], expected_offsets)
    np.testing.assert_array_equal(union[1], expected)


@given(st.data())
def test_marks_of_codes(data: st.DataObject) -> None:
    """Bits have the codes of lists; joined they have those of joined lists, and tell the same numbers of values."""
    rows, count = data.draw(st.integers(1, 200)), data.draw(st.integers(1, 5))
    size = data.draw(st.sampled_from([1, 63, 64, 65, 400]))
    code = st.one_of(st.none(), st.integers(0, size - 1))
    codes = pa.array(data.draw(st.lists(code, min_size=rows, max_size=rows)), pa.int32())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(range(size), pa.uint64()))
    numbers = data.draw(st.lists(st.integers(0, count - 1), min_size=rows, max_size=rows))
    groups = Groups(np.array(numbers), count)
    owners = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    marks = group_kernels.marked_codes(column, groups)
    assert marks is not None
    joined = native.joined_marks(marks, owners, 3)
    for bits, within in ((marks, groups), (joined, Groups(owners[groups.codes], 3))):
        with without_kernels():
            assert group_kernels.marked_codes(column, within) is None
            offsets, expected = group_kernels.distinct_codes(column, within)
        found = native.codes_of_marks(bits)
        np.testing.assert_array_equal(found[0], offsets)
        np.testing.assert_array_equal(found[1], expected)
        np.testing.assert_array_equal(native.starts_of_marks(bits), offsets)


def test_codes_with_too_many_bits_are_sorted() -> None:
    codes = values_of_numbers(np.array([5, 1 << 30, 5], np.int64))
    assert native.distinct_codes(codes, np.array([0, 1, 0]), 2, 1 << 31) is None


@pytest.mark.parametrize("size_max", [1, 50, 700, 100_000])
@pytest.mark.parametrize("function", ["uniq", "uniqExact"])
@pytest.mark.parametrize("is_text", [False, True])
def test_results_from_codes_are_those_of_states(
    function: str, size_max: int, *, is_text: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distinct, "SAMPLE_MAX", size_max)
    values = pa.array(np.unique(SPREAD))
    values = values.cast(pa.string()) if is_text else values
    aggregate = resolve_aggregate(function, (), (parse_type("String" if is_text else "UInt64"),))
    codes, groups = (
        RANDOM.integers(0, len(values), ROWS),
        np.minimum(RANDOM.integers(0, 9, ROWS), 4),
    )
    column = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), values)
    offsets, found = group_kernels.distinct_codes(column, Groups(groups, 6))
    states = aggregate.state([values.take(pa.array(codes))], Groups(groups, 6))
    results = aggregate.of_distinct(values, offsets, found)
    assert results is not None
    assert results.equals(aggregate.finalize(states))
    marks = group_kernels.marked_codes(column, Groups(groups, 6))
    assert marks is not None
    marked = aggregate.of_marked(values, marks)
    assert marked is not None
    assert marked.equals(results)


def test_values_of_one_hash_need_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two values with one hash count once, as in the states."""
    monkeypatch.setattr(distinct.hashing, "hash_rows", lambda _: np.array([7, 7], np.uint64))
    aggregate = resolve_aggregate("uniq", (), (parse_type("UInt64"),))
    assert aggregate.of_distinct(pa.array([1, 2]), np.array([0, 2]), np.array([0, 1])) is None
    assert aggregate.of_marked(pa.array([1, 2]), np.array([[3]], np.uint64)) is None
