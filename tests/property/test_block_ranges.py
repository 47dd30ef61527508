"""Arithmetic on block ranges beside sets of block numbers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.model.changes import Commit, RemoveCoverage
from olapdb.model.contributions import SharedBlocks
from olapdb.model.part import BlockRange, covers, overlaps_any, subtract_ranges, union_ranges
from tests.harness.commits import create_all, insert, make_part

pytestmark = pytest.mark.feature("backfill", "views")

BLOCK = st.tuples(st.integers(1, 12), st.integers(0, 4)).map(lambda t: BlockRange(t[0], sum(t)))
RANGES = st.lists(BLOCK, max_size=6)
PARTITIONS = "abc"


def numbers(ranges: Sequence[BlockRange]) -> set[int]:
    return {n for r in ranges for n in range(r.first, r.last + 1)}


@given(RANGES, RANGES, BLOCK)
def test_ranges_are_sets_of_blocks(
    ranges: list[BlockRange], others: list[BlockRange], one: BlockRange
) -> None:
    left = subtract_ranges(ranges, others)
    assert numbers(left) == numbers(ranges) - numbers(others)
    assert left == union_ranges(left), "joined and sorted"
    joined = union_ranges(ranges)
    assert overlaps_any(joined, one) == bool(numbers(joined) & numbers([one]))
    assert covers(joined, one) == (numbers([one]) <= numbers(joined))


@given(st.lists(st.tuples(st.sampled_from(PARTITIONS), BLOCK), max_size=8))
def test_shared_blocks_have_rows_of_several_partitions(drawn: list[tuple[str, BlockRange]]) -> None:
    parts = [make_part("s", partition_id=p, blocks=blocks, rows=1) for p, blocks in drawn]
    shared = SharedBlocks(parts)
    for part in (*parts, make_part("s", partition_id="d", blocks=BlockRange(1, 3), rows=1)):
        others = [p.block_range for p in parts if p.partition_id != part.partition_id]
        expected = bool(numbers(others) & numbers([part.block_range]))
        assert shared.holds(part) == expected


@given(st.dictionaries(st.sampled_from(PARTITIONS), RANGES.filter(bool), min_size=1), RANGES)
def test_coverage_loses_the_removed_blocks_and_no_others(
    removed: dict[str, list[BlockRange]], first: list[BlockRange]
) -> None:
    """Each block has rows of each partition. `first` are blocks that "a" loses before."""
    catalog = SqliteCatalog(":memory:")
    try:
        create_all(catalog)
        lease = catalog.open_lease("test")
        for at in range(16):
            insert(catalog, lease, part=make_part("s", partition_id=PARTITIONS[at % 3]))
        expected = {p: set(range(1, 17)) for p in PARTITIONS}
        for lost in ({"a": first} if first else {}, removed):
            if lost:
                change = RemoveCoverage("v", tuple((p, tuple(r)) for p, r in lost.items()))
                catalog.apply(Commit((), (change,), "TEST"))
            for partition, ranges in lost.items():
                expected[partition] -= numbers(ranges)
        coverage = catalog.snapshot().coverage("v")
        assert {p: numbers(coverage.ranges(p)) for p in PARTITIONS} == expected
    finally:
        catalog.close()
