"""Which parts may merge and which merges are worthwhile, on simulated days."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from olapdb.maintenance.merge_policy import (
    MergeLimits,
    TableState,
    by_partition,
    choose,
    choose_all,
    choose_inline,
    enclosing_range,
    mergeable_runs,
)
from olapdb.model.part import BlockRange, Contribution, Part
from olapdb.model.schema import Column
from olapdb.model.view_state import Coverage
from olapdb.types import UINT64
from tests.harness.commits import COLUMNS, make_part, make_table

pytestmark = pytest.mark.feature("upkeep")

LIMITS = MergeLimits()
MINUTE_MS = 60_000


def part(first: int, last: int | None = None, **more: object) -> Part:
    return make_part("s", blocks=BlockRange(first, last or first), **more)


def blocks(some: Iterable[list[Part]]) -> list[list[int]]:
    return [[p.block_range.first for p in run] for run in some]


def test_parts_of_one_coverage_merge() -> None:
    seen = Coverage("v", (BlockRange(1, 3), BlockRange(7, 9)), {"p": (BlockRange(4, 4),)})
    state = TableState(make_table("s"), (seen,))
    parts = [part(n, partition_id="p") for n in (1, 2, 3, 4, 5, 6, 7, 9)]
    assert blocks(mergeable_runs(state, parts)) == [[1, 2, 3, 4], [5, 6], [7, 9]]
    parts = [part(n, partition_id="q") for n in (1, 3, 4, 6, 7)]
    assert blocks(mergeable_runs(state, parts)) == [[1, 3], [4, 6], [7]]
    other = Coverage("w", (BlockRange(2, 9),))
    both = replace(state, coverages=(seen, other))
    parts = [part(n, partition_id="p") for n in (1, 2, 3, 4, 7)]
    assert blocks(mergeable_runs(both, parts)) == [[1], [2, 3, 4], [7]]


def test_a_hull_over_a_gap_without_rows_is_not_one_coverage() -> None:
    """Blocks 1 and 3 are covered, block 2 (of another partition) is not: 1..3 would be mixed."""
    seen = Coverage("v", (BlockRange(1, 1), BlockRange(3, 3)))
    state = TableState(make_table("s"), (seen,))
    assert blocks(mergeable_runs(state, [part(1), part(3)])) == [[1], [3]]


def test_bypass_rows_stay_apart_in_targets_only() -> None:
    made = (Contribution("v", 1, "s", None, (BlockRange(1, 1),), 1),)
    parts = [part(1, contributions=made), part(2), part(3, contributions=made), part(4)]
    assert blocks(mergeable_runs(TableState(make_table("t"), writers=frozenset({"v"})), parts)) == [
        [1, 3],
        [2, 4],
    ]
    replacing = make_table("t", "ReplacingMergeTree")
    found = mergeable_runs(TableState(replacing, writers=frozenset({"v"})), parts)
    assert blocks(found) == [[1], [2], [3], [4]], "the order of insertion decides there"


def test_no_merge_crosses_a_fence() -> None:
    parts = [part(n, partition_id="p") for n in range(1, 7)]
    state = TableState(make_table("t"), fences={"p": (2,), None: (4,), "q": (5,)})
    assert blocks(mergeable_runs(state, parts)) == [[1, 2], [3, 4], [5, 6]]


def test_parts_that_lack_a_computed_column_merge_with_the_others() -> None:
    columns = (*COLUMNS, Column(3, "x", UINT64, "DEFAULT", "n + 1"))
    table = make_table("s", columns=columns, version=2)
    parts = [part(1), part(2, schema_version=2), part(3, schema_version=2), part(4, rows=0)]
    assert blocks(mergeable_runs(TableState(table), parts)) == [[1, 2, 3, 4]]


def test_many_small_parts_merge_and_a_big_one_rests() -> None:
    small = [part(n, bytes=1000) for n in range(1, 8)]
    assert choose(small, LIMITS, 0, 7) == small
    big = [part(1, 5, bytes=500 << 20), part(6, bytes=1000), part(7, bytes=1000)]
    assert choose(big, LIMITS, 0, 3) == []
    assert choose([], LIMITS, 0, 0) == []
    assert choose(small[:1], LIMITS, 0, 1) == []


def test_limits_bound_a_merge() -> None:
    many = [part(n, bytes=10) for n in range(1, 300)]
    assert len(choose(many, LIMITS, 0, 300)) <= LIMITS.parts_max
    large = [part(n, bytes=1 << 30) for n in range(1, 20)]
    assert sum(p.bytes for p in choose(large, LIMITS, 10**12, 60)) <= LIMITS.bytes_max
    heavy = [part(n, uncompressed_bytes={"n": 1 << 30}) for n in range(1, 8)]
    assert [len(one) for one in choose_all(heavy, LIMITS)] == [2, 2, 2, 1]


def test_inline_parts_become_files_with_age() -> None:
    run = [
        part(1),
        part(2, inline=True, created_ms=0),
        part(3, inline=True, created_ms=5 * MINUTE_MS),
    ]
    assert choose_inline(run, LIMITS, 9 * MINUTE_MS) == []
    assert blocks([choose_inline(run, LIMITS, 11 * MINUTE_MS)]) == [[2, 3]]


def test_hours_of_inserts_keep_parts_few_and_rewrites_bounded() -> None:
    """Simulate an INSERT every two seconds for eight hours, with merges as soon as the policy allows."""
    state = TableState(make_table("s"))
    parts: list[Part] = []
    inserted = written = most = 0
    for number in range(1, 14_401):
        now_ms = number * 2_000
        parts.append(part(number, bytes=20_000, created_ms=now_ms))
        inserted += 20_000
        while True:
            (run,) = mergeable_runs(state, parts) if len(parts) < 60 else [parts]
            chosen = choose(run, LIMITS, now_ms, len(parts))
            if not chosen:
                break
            at = parts.index(chosen[0])
            size = sum(p.bytes for p in chosen)
            whole = enclosing_range(chosen)
            made = part(whole.first, whole.last, bytes=size, created_ms=now_ms)
            parts[at : at + len(chosen)] = [made]
            written += size
        most = max(most, len(parts))
    assert most < 60
    assert written / inserted < 12
    assert sum(p.bytes for p in parts) == inserted
    assert enclosing_range(parts) == BlockRange(1, 14_400)


def test_partitions_do_not_mix() -> None:
    parts = [part(2, partition_id="b"), part(1, partition_id="a"), part(1, partition_id="b")]
    grouped = by_partition(parts)
    assert {name: blocks([some]) for name, some in grouped.items()} == {"a": [[1]], "b": [[1, 2]]}
