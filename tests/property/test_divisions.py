"""Rows divided by their keys: equal keys are in one division in every form, and numbering by kernels gives what several
hash tables give."""

from __future__ import annotations

from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.compute.divisions import DIVISIONS, divided, factorised, joined, ranges
from olapdb.compute.group_codes import factorise
from olapdb.config import tuning
from olapdb.native.grouping import number_divided, number_rows
from olapdb.native.library import library, without_kernels
from tests.property.test_kernels import NUMBERS, TIMES, columns

pytestmark = pytest.mark.feature("aggregates", "select")
needs_kernels = pytest.mark.skipif(library() is None, reason="There are no compiled kernels.")

TEXTS = pa.array(["a", "b", "", "c"])


@st.composite
def batches(draw: st.DrawFn) -> list[list[pa.Array]]:
    """Return batches of one to three columns, of which one may be codes of texts."""
    names = draw(st.lists(st.sampled_from([*NUMBERS, *TIMES]), min_size=1, max_size=3))
    coded = draw(st.booleans())
    made = []
    for _ in range(draw(st.integers(1, 3))):
        rows = draw(st.integers(1, 12))
        batch = [draw(columns([name], rows)) for name in names]
        if coded:
            codes = draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
            indices = pa.array(codes, pa.int32())
            batch.append(pa.DictionaryArray.from_arrays(indices, TEXTS))
        made.append(batch)
    return made


def lines(columns: list[pa.Array]) -> list[tuple[object, ...]]:
    """Return rows as tuples that can be compared, NaN too."""
    physical = [
        column.view(pa.int32() if column.type.bit_width == 32 else pa.int64()).to_pylist()
        if pa.types.is_temporal(column.type)
        else column.to_pylist()
        for column in columns
    ]
    return [tuple(map(repr, row)) for row in zip(*physical, strict=True)]


@given(batches(), st.integers(0, DIVISIONS), st.integers(0, DIVISIONS))
def test_divisions(made: list[list[pa.Array]], one: int, other: int) -> None:
    first, last = min(one, other), max(one, other)
    pieces = [divided(batch, batch, len(batch[0])) for batch in made]
    for piece, batch in zip(pieces, made, strict=True):
        assert sorted(lines(piece.columns)) == sorted(lines(batch))
        assert piece.starts[0] == 0
        assert piece.rows == len(batch[0])
        with without_kernels():
            slow = divided(batch, batch, len(batch[0]))
        assert slow.starts.tolist() == piece.starts.tolist()
        assert lines(slow.columns) == lines(piece.columns)
    rows, ends = joined(pieces, first, last)
    wanted = [row for piece in pieces for row in lines(piece.slices(first, last))]
    assert sorted(lines(rows)) == sorted(wanted)
    if not wanted:
        return
    groups = factorised(rows, ends)
    codes = [c.indices if isinstance(c, pa.DictionaryArray) else c for c in rows]
    expected = factorise(codes, len(wanted))
    assert groups.codes.tolist() == expected.codes.tolist()
    assert groups.first.tolist() == expected.first.tolist()


@given(batches())
def test_equal_keys_are_in_one_division(made: list[list[pa.Array]]) -> None:
    found: dict[tuple[object, ...], int] = {}
    for batch in made:
        piece = divided(batch, batch, len(batch[0]))
        for division in range(DIVISIONS):
            for row in lines(piece.slices(division, division + 1)):
                assert found.setdefault(row, division) == division


@given(batches(), st.integers(1, 40), st.integers(1, 3))
def test_ranges(made: list[list[pa.Array]], wanted: int, threads: int) -> None:
    starts = [divided(batch, batch, len(batch[0])).starts for batch in made]
    with patch.multiple(tuning, DIVISION_ROWS=wanted, TABLE_ROWS=1):
        found = ranges(starts, threads)
    rows = [int(sum(s[last] - s[first] for s in starts)) for first, last in found]
    assert all(rows)
    assert sum(rows) == sum(int(s[-1]) for s in starts)
    assert all(before[1] <= after[0] for before, after in pairwise(found))


@needs_kernels
@given(st.data())
def test_numbers_of_rows(data: st.DataObject) -> None:
    """Rows of any columns of a fixed width get the numbers that numpy and Arrow give them."""
    rows = data.draw(st.integers(1, 30))
    names = data.draw(st.lists(st.sampled_from([*NUMBERS, *TIMES]), min_size=1, max_size=4))
    keys = [data.draw(columns([name], rows)) for name in names]
    found = number_rows(keys)
    if found is None:  # a Decimal of 128 bits
        return
    with without_kernels():
        slow = factorise(keys, rows)
    assert found[0].tolist() == slow.codes.tolist()
    assert found[1].tolist() == slow.first.tolist()


@needs_kernels
def test_many_rows_grow_the_table() -> None:
    random = np.random.default_rng(3)
    keys = [
        pa.array(random.integers(0, 300, 50_000)),
        pa.array(random.integers(0, 1 << 62, 50_000)),
    ]
    found = number_rows(keys)
    assert found is not None
    with without_kernels():
        slow = factorise(keys, 50_000)
    assert found[0].tolist() == slow.codes.tolist()
    assert found[1].tolist() == slow.first.tolist()


@needs_kernels
def test_a_table_for_each_division() -> None:
    """The rows of each division get numbers behind those of the divisions before."""
    keys = [pa.array([1, 2, 1, 7, 7, 8, 9, 9], pa.int64())]
    found = number_divided(keys, np.array([3, 6, 8]))
    assert found is not None
    assert found[0].tolist() == [0, 1, 0, 2, 2, 3, 4, 4]
    assert found[1].tolist() == [0, 1, 3, 5, 6]
