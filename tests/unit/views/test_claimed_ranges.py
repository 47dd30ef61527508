"""A chunk covers its blocks and the holes around them, never another part's blocks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.model.part import BlockRange, Part, covers, union_ranges
from olapdb.views.jobs.chunk_planner import claimed_ranges

pytestmark = pytest.mark.feature("views")


def part(first: int, last: int) -> Part:
    return Part(f"{first}", "s", "p", (), 1, 1, BlockRange(first, last))


def test_the_worked_example() -> None:
    chunk = (part(3, 3), part(7, 7))
    assert claimed_ranges(chunk, (*chunk, part(5, 5)), 9) == (BlockRange(1, 4), BlockRange(6, 9))


@given(st.data(), st.integers(1, 30))
def test_all_of_the_chunk_and_nothing_of_the_others(data: st.DataObject, last: int) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, last), max_size=8)))
    parts = [part(a, b - 1) for a, b in pairwise(cuts)]
    chosen = [p for p in parts if data.draw(st.booleans())]
    claimed = claimed_ranges(tuple(chosen), tuple(parts), last)
    assert union_ranges(claimed) == tuple(sorted(claimed)) or not claimed
    for one in parts:
        mine = one in chosen
        assert covers(claimed, one.block_range) == mine
        assert any(c.overlaps(one.block_range) for c in claimed) == mine
