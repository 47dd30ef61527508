"""Sets of integers in a narrow span find what a search by value finds, compiled or not."""

from __future__ import annotations

from contextlib import nullcontext
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.compute.hash_table import Lookup
from olapdb.config import tuning
from olapdb.functions import parse_type
from olapdb.native.library import library, without_kernels
from tests.property.test_kernels import INTEGERS, array_of

pytestmark = pytest.mark.feature("select")


@st.composite
def sets(draw: st.DrawFn) -> tuple[pa.Array, pa.Array]:
    """Draw values of a set, and a column of values to find, some of them NULL, near to both ends of
    the type or of the set."""
    arrow = parse_type(draw(st.sampled_from([*INTEGERS, "Date32"]))).arrow
    signed = not pa.types.is_unsigned_integer(arrow)
    bits = arrow.bit_width
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    start = draw(st.one_of(st.just(low), st.just(high - 40), st.integers(low, high - 40)))
    near = st.integers(start, start + 40)
    anything = st.one_of(near, st.integers(low, high), st.sampled_from([low, high]), st.none())
    members = draw(st.lists(near, min_size=1, max_size=30, unique=draw(st.booleans())))
    skipped = draw(st.integers(0, 3))
    found = draw(st.lists(anything, min_size=skipped, max_size=100))
    return array_of(members, arrow), array_of(found, arrow).slice(skipped)


@pytest.mark.parametrize("compiled", [True, False])
@given(drawn=sets())
def test_codes_and_members(compiled: bool, drawn: tuple[pa.Array, pa.Array]) -> None:
    values, column = drawn
    rows = len(column)
    with nullcontext() if compiled else without_kernels():
        with patch.multiple(tuning, CODE_TABLE_ROWS_MIN=0, MEMBER_TABLE_BYTES_MAX=1 << 23):
            lookup = Lookup([values], len(values), keeps_rows=True)
            codes = lookup.find([column], rows)
            members = lookup.contains([column], rows)
        with patch.multiple(tuning, CODE_TABLE_ROWS_MIN=1 << 62, MEMBER_TABLE_BYTES_MAX=0):
            expected = Lookup([values], len(values), keeps_rows=True).find([column], rows)
    np.testing.assert_array_equal(codes, expected)
    assert members.to_pylist() == (expected >= 0).tolist()


@given(drawn=sets(), kept=st.lists(st.integers(0, (1 << 64) - 1), min_size=2, max_size=2))
def test_kept_rows_are_those_of_the_set(drawn: tuple[pa.Array, pa.Array], kept: list[int]) -> None:
    """What keeps rows by a set drops those whose value it lacks, NULL among them, and brings none back."""
    if library() is None:
        pytest.skip("the kernel has no other form: conditions are evaluated instead")
    values, column = drawn
    rows = len(column)
    lookup = Lookup([values], len(values), keeps_rows=True)
    (members,) = lookup.members
    assert members is not None
    words = np.array(kept, np.uint64)[: -(-rows // 64)]
    before = np.unpackbits(words.view(np.uint8), bitorder="little")[:rows].astype(bool)
    expected = before & np.array(lookup.contains([column], rows).to_pylist(), bool)
    members.keep(column, words)
    after = np.unpackbits(words.view(np.uint8), bitorder="little")
    np.testing.assert_array_equal(after[:rows].astype(bool), expected)
    assert not after[rows:].any()


@pytest.mark.parametrize("compiled", [True, False])
@given(drawn=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=20))
def test_a_lookup_finds_exactly_the_pairs_that_it_holds(
    compiled: bool, drawn: list[tuple[int, int]]
) -> None:
    """Pairs are found by the bits of each number first, whichever of the two drops more rows."""
    columns = [pa.array(numbers, pa.int32()) for numbers in zip(*drawn, strict=True)]
    pairs = [(first, second) for first in (*range(-1, 8), None) for second in (*range(-1, 8), None)]
    found = [pa.array(numbers, pa.int32()) for numbers in zip(*pairs, strict=True)]
    with nullcontext() if compiled else without_kernels():
        members = Lookup(columns, len(drawn), keeps_rows=True).contains(found, len(pairs))
        none = Lookup(columns, len(drawn)).contains([c.slice(0, 0) for c in found], 0)
    assert members.to_pylist() == [pair in drawn for pair in pairs]
    assert len(none) == 0


def _as_numbers(column: pa.Array) -> pa.Array:
    """Return days as numbers: Python's dates have fewer of them."""
    return column.cast(pa.int32()) if pa.types.is_date32(column.type) else column


@pytest.mark.parametrize("compiled", [True, False])
@given(drawn=sets())
def test_values_that_differ_are_numbered_in_their_order(
    compiled: bool, drawn: tuple[pa.Array, pa.Array]
) -> None:
    """Each value that is found leads to its row, as without the numbers, and all others to none."""
    values, column = drawn[0].unique(), drawn[1]
    with (
        nullcontext() if compiled else without_kernels(),
        patch.multiple(tuning, INDEXED_VALUES_MIN=1, RANKED_SPAN_FACTOR=1 << 40),
    ):
        lookup = Lookup([values], len(values), keeps_rows=True)
        codes = lookup.find([column], len(column))
        members = lookup.contains([column], len(column))
    assert lookup.order is not None
    assert lookup.count == len(values)
    values, column = (_as_numbers(one) for one in (values, column))
    ascending = values.take(pa.array(lookup.order)).to_pylist()
    assert ascending == sorted(ascending)
    row_of = {value: row for row, value in enumerate(values.to_pylist())}
    rows = [None if code < 0 else int(lookup.order[code]) for code in codes]
    assert rows == [row_of.get(value) for value in column.to_pylist()]
    assert members.to_pylist() == (codes >= 0).tolist()


def test_codes_of_many_distinct_values_in_the_order_of_their_hashes() -> None:
    values = pa.array(np.random.default_rng(3).permutation(40_000).astype(np.int32))
    column = pa.array(np.arange(-5, 45_000), pa.int32())
    with patch.object(tuning, "CODE_TABLE_ROWS_MIN", 1 << 62):
        expected = Lookup([values], len(values), keeps_rows=True).find([column], len(column))
    codes = Lookup([values], len(values), keeps_rows=True).find([column], len(column))
    np.testing.assert_array_equal(codes, expected)
