"""Which parts to merge: pure functions of parts, coverage and time.

`mergeable_runs` determines which parts may be merged at all, `choose` which merge is worthwhile,
after ClickHouse's SimpleMergeSelector
(src/Storages/MergeTree/Compaction/MergeSelectors/SimpleMergeSelector.cpp): neighbours of similar
size, more readily when they are old, small or many.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from olapdb.config import TABLE_SETTINGS
from olapdb.model.part import BlockRange, Part
from olapdb.model.schema import Table
from olapdb.model.view_state import Coverage
from olapdb.records import dataclass

WINDOW_PARTS = 1_000


@dataclass(frozen=True, slots=True)
class MergeLimits:
    """Bounds of one background merge. `memory_bytes_max` counts uncompressed bytes of its input: a
    merge holds its rows in memory."""

    parts_max: int = 100
    bytes_max: int = int(TABLE_SETTINGS["max_bytes_to_merge"].default)
    memory_bytes_max: int = 2 << 30
    inline_age_ms_max: int = 600_000
    base: float = 5.0
    fixed_bytes: int = 5 << 20


@dataclass(frozen=True, slots=True)
class TableState:
    """The facts that decide about merges of one table. `coverages` are those of the views that it
    triggers, `writers` the ids of the views that write it; no merge crosses a block in `fences` (by
    partition; key None: every partition)."""

    table: Table
    coverages: tuple[Coverage, ...] = ()
    writers: frozenset[str] = frozenset()
    fences: Mapping[str | None, tuple[int, ...]] = field(default_factory=dict)


def by_partition(parts: Sequence[Part]) -> dict[str, list[Part]]:
    """Return the parts of each partition in the order of their blocks."""
    grouped: dict[str, list[Part]] = {}
    for part in parts:
        grouped.setdefault(part.partition_id, []).append(part)
    for group in grouped.values():
        group.sort(key=lambda p: (p.block_range.first, p.block_range.last, p.id))
    return grouped


def mergeable_runs(state: TableState, parts: Sequence[Part]) -> list[list[Part]]:
    """Split the parts of one partition into the longest lists whose parts may all be merged.

    Rules 7 and 8: rows of views apart from bypass rows; the hull of the blocks wholly covered or
    wholly uncovered for each view; and no fence inside.

        blocks 1 2 3 | 7 8      view saw 1..3, not 4..8   ->   [1 2 3] [7 8]
    """
    result: list[list[Part]] = []
    open_runs: dict[object, tuple[list[Part], BlockRange]] = {}
    for part in parts:
        kind = _merge_group(state, part)
        if state.table.engine.depends_on_order:
            open_runs = {kind: open_runs[kind]} if kind in open_runs else {}
        blocks = part.block_range
        if kind in open_runs:
            run, spanned = open_runs[kind]
            wider = BlockRange(spanned.first, max(spanned.last, blocks.last))
            if _is_coverage_uniform(state, wider, part.partition_id):
                run.append(part)
                open_runs[kind] = (run, wider)
                continue
        open_runs[kind] = ([part], blocks)
        result.append(open_runs[kind][0])
    return result


def choose(
    run: Sequence[Part], limits: MergeLimits, now_ms: int, partition_parts: int
) -> list[Part]:
    """Return the best merge within a run, [] if none is worthwhile now. Of a very long run only the
    end is considered: as that shrinks, the rest comes into view."""
    run = run[-WINDOW_PARTS:]
    if len(run) < 2:
        return []
    # Row i holds the merges that start at part i; column j those of j + 1 parts.
    width = min(len(run), limits.parts_max)
    sizes = _windows([part.bytes for part in run], width)
    memory = _windows([sum(part.uncompressed_bytes.values()) for part in run], width)
    created_ms = _windows([part.created_ms for part in run], width)
    count = np.arange(1, width + 1)
    total = np.cumsum(sizes, axis=1)
    allowed = (count >= 2) & (np.arange(len(run))[:, None] + count <= len(run))
    allowed &= (total <= limits.bytes_max) & (np.cumsum(memory, axis=1) <= limits.memory_bytes_max)
    age_seconds = np.maximum(0, now_ms - np.maximum.accumulate(created_ms, axis=1)) / 1000
    largest = np.maximum.accumulate(sizes, axis=1)
    allowed &= _is_worthwhile(total, largest, count, age_seconds, partition_parts, limits)
    if not allowed.any():
        return []
    score = np.where(allowed, (total + limits.fixed_bytes * count) / (count - 1.9), np.inf)
    start, last = divmod(int(score.argmin()), width)
    return list(run[start : start + last + 1])


def choose_inline(run: Sequence[Part], limits: MergeLimits, now_ms: int) -> list[Part]:
    """Return the first inline parts of a run if they have been in the catalog too long; the merge
    writes them to a file.

    Only neighbours: a file part between two of them would come before or after both, which matters
    to engines that keep the last row of a key.
    """
    inline: list[Part] = []
    for part in run:
        if part.inline:
            inline.append(part)
        elif inline:
            break
    if inline and now_ms - min(p.created_ms for p in inline) > limits.inline_age_ms_max:
        return _prefix_in_memory(inline, limits)
    return []


def choose_all(run: Sequence[Part], limits: MergeLimits) -> list[list[Part]]:
    """Return merges of the whole run, as few as memory allows, for OPTIMIZE."""
    merges: list[list[Part]] = []
    remaining = list(run)
    while remaining:
        merge = _prefix_in_memory(remaining, limits) or remaining[:1]
        merges.append(merge)
        remaining = remaining[len(merge) :]
    return merges


def enclosing_range(parts: Sequence[Part]) -> BlockRange:
    """Return the smallest range that contains the blocks of all parts."""
    return BlockRange(
        min(p.block_range.first for p in parts), max(p.block_range.last for p in parts)
    )


def _prefix_in_memory(parts: Sequence[Part], limits: MergeLimits) -> list[Part]:
    """Return the longest prefix that one merge can hold in memory."""
    memory = 0
    for count, part in enumerate(parts):
        memory += sum(part.uncompressed_bytes.values())
        if memory > limits.memory_bytes_max:
            return list(parts[:count])
    return list(parts)


def _merge_group(state: TableState, part: Part) -> object:
    """Return the part's key (views that made it, fences before it): parts of other keys stay apart.

    Bypass rows, which no view made, so never merge with a view's rows.
    """
    blocks = part.block_range
    fences = sorted({*state.fences.get(None, ()), *state.fences.get(part.partition_id, ())})
    side = sum(1 for fence in fences if blocks.first > fence)
    makers = frozenset(c.view_id for c in part.contributions) & frozenset(state.writers)
    return (makers, side)


def _is_coverage_uniform(state: TableState, blocks: BlockRange, partition_id: str) -> bool:
    """Return whether each view's coverage holds either all of the blocks or none of them."""
    return all(
        seen.covers(partition_id, blocks) or not seen.touches(partition_id, blocks)
        for seen in state.coverages
    )


_LOG_SMALL = math.log1p(1 << 20)
_LOG_LARGE = math.log1p(100 << 30)


def _windows(values: Sequence[int], width: int) -> np.ndarray:
    """Return the `width` values from each position on, zeros beyond the end; shape (values,
    width)."""
    padded = np.concatenate([np.array(values, np.int64), np.zeros(width - 1, np.int64)])
    return np.lib.stride_tricks.sliding_window_view(padded, width)


def _is_worthwhile(
    total: np.ndarray,
    largest: np.ndarray,
    count: np.ndarray,
    age_seconds: np.ndarray,
    partition_parts: int,
    limits: MergeLimits,
) -> np.ndarray:
    """Return a mask of the merges whose largest part is a small enough share of their bytes.

    The threshold is lower for old parts, small merges and crowded partitions.
    """
    size = _unit_interval(np.log1p(total), _LOG_SMALL, _LOG_LARGE)
    age = _unit_interval(age_seconds, 10.0, 3_600.0 + size * (30 * 86_400.0 - 3_600.0))
    crowd = min(1.0, max(0.0, (partition_parts - 10) / (50 - 10)))
    base = limits.base + np.minimum(1.0, age + crowd) * (2.0 - limits.base)
    enough: np.ndarray = (total + count * limits.fixed_bytes) / (
        largest + limits.fixed_bytes
    ) >= base
    return enough


def _unit_interval(value: np.ndarray, low: float, high: float | np.ndarray) -> np.ndarray:
    """Return where `value` lies between `low` (0.0) and `high` (1.0), clipped to that range."""
    unit: np.ndarray = np.clip((value - low) / (high - low), 0.0, 1.0)
    return unit
