"""Engines that keep some rows of a key and drop the rest: Replacing and Collapsing.

All rows of a key are neighbours, in the order of their insertion; `groups.codes` ascend.  The rules
are ClickHouse's (src/Processors/Merges/Algorithms: ReplacingSortedAlgorithm,
CollapsingSortedAlgorithm, VersionedCollapsingAlgorithm).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import single_chunk
from olapdb.engine.layout import TableLayout
from olapdb.errors import IncorrectData
from olapdb.functions.base import Groups
from olapdb.model.schema import Table
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy, to_numpy


@dataclass(frozen=True)
class DroppedRows:
    """The numbers of state rows and of cancel rows of one key that were dropped. `collapsing` reads nothing else of them."""

    states: int = 0
    cancels: int = 0


def replacing(layout: TableLayout, rows: pa.Table, groups: Groups) -> pa.Table:
    """Return one row of each key: the one of the greatest version.

    NaN is greater than any number. Among equal versions, or without a version column, the last
    inserted row wins. A tombstone (is_deleted = 1) stays, so that it also hides rows merged later."""
    check_markers(layout.table, rows)
    if groups.count == rows.num_rows:
        return rows
    last_rows = groups.starts + groups.sizes - 1
    version = layout.table.engine.version
    if version is not None:
        last_rows = _last_greatest(_comparable(rows, version), groups)
    return rows.take(from_numpy(last_rows))


def collapsing(
    layout: TableLayout, rows: pa.Table, groups: Groups, dropped: DroppedRows | None = None
) -> pa.Table:
    """Return at most the first cancel row (sign -1) and the last state row (sign 1) of each key:

        as many of both, the last one cancels   -> none        1 -1
        as many of both, the last one states    -> both       -1  1
        more state rows                         -> the last state row
        more cancel rows                        -> the first cancel row

    If each state is cancelled before the next one is inserted, the result does not depend on the
    order of the merges. `dropped` rows of the first key are counted too.
    """
    check_markers(layout.table, rows)
    states = _signs(layout.table, rows) > 0
    starts, count = groups.starts, rows.num_rows
    row_numbers = np.arange(count)
    state_counts = np.add.reduceat(states.astype(np.int64), starts)
    cancel_counts = groups.sizes - state_counts
    if dropped is not None:
        state_counts[0] += dropped.states
        cancel_counts[0] += dropped.cancels
    last_state_rows = np.maximum.reduceat(np.where(states, row_numbers, -1), starts)
    first_cancel_rows = np.minimum.reduceat(np.where(states, count, row_numbers), starts)
    keep = states[starts + groups.sizes - 1] | (state_counts != cancel_counts)
    positions = np.concatenate(
        (
            first_cancel_rows[keep & (state_counts <= cancel_counts)],
            last_state_rows[keep & (state_counts >= cancel_counts)],
        )
    )
    return _take(rows, np.sort(positions))


def without_counted_rows(
    table: Table, rows: pa.Table, dropped: DroppedRows
) -> tuple[pa.Table, DroppedRows]:
    """Return those of the first rows of one key whose values `collapsing` may read, the first cancel row, the last state
    row and the last row; and how many others there are, the `dropped` ones included."""
    check_markers(table, rows)
    states = _signs(table, rows) > 0
    kept = {rows.num_rows - 1}
    if states.any():
        kept.add(int(np.flatnonzero(states)[-1]))
    if not states.all():
        kept.add(int(np.argmin(states)))
    places = np.array(sorted(kept))
    kept_states = int(states[places].sum())
    all_states = int(states.sum())
    return rows.take(from_numpy(places)), DroppedRows(
        dropped.states + all_states - kept_states,
        dropped.cancels + (rows.num_rows - all_states) - (len(places) - kept_states),
    )


def versioned_collapsing(layout: TableLayout, rows: pa.Table, groups: Groups) -> pa.Table:
    """Return the rows of each key and version that remain after cancelling.

    Each row cancels the nearest previous row of the other sign that is not cancelled yet.

        signs   1  -1   1   1        sum so far  1  0  1  2      the last two remain

    A row remains if the sum never returns to its value before the row.
    """
    check_markers(layout.table, rows)
    signs = np.where(_signs(layout.table, rows) > 0, 1, -1)
    running_sums = np.cumsum(signs)
    levels = running_sums - (running_sums - signs)[groups.starts][groups.codes]
    # Each key is lifted above all earlier keys, so that one running minimum serves all.
    lifts = groups.codes * (2 * int(groups.sizes.max()) + 1)
    keep = _never_undone(signs, levels, lifts) | _never_undone(-signs, -levels, lifts)
    return _take(rows, np.flatnonzero(keep))


def visible(table: Table, rows: pa.Table) -> pa.Table:
    """Return the combined rows that FINAL shows: without tombstones and without cancel rows.

    Cancel rows of VersionedCollapsingMergeTree are shown, as in ClickHouse."""
    engine = table.engine
    if engine.is_deleted is not None:
        deleted = single_chunk(rows.column(engine.is_deleted))
        return _filtered(rows, pc.equal(deleted, pa.scalar(0).cast(deleted.type)))
    if engine.name == "CollapsingMergeTree":
        assert engine.sign is not None
        sign = single_chunk(rows.column(engine.sign))
        return _filtered(rows, pc.greater(sign, pa.scalar(0, sign.type)))
    return rows


def check_markers(table: Table, rows: pa.Table) -> None:
    """Raise IncorrectData if a row's sign is not 1 or -1, or its is_deleted not 0 or 1."""
    for name, allowed in ((table.engine.sign, (1, -1)), (table.engine.is_deleted, (0, 1))):
        if name is None or not rows.num_rows:
            continue
        column = single_chunk(rows.column(name))
        if pa.types.is_boolean(column.type):
            continue
        is_wrong = pc.invert(pc.is_in(column, value_set=pa.array(allowed, column.type)))
        if is_wrong.true_count:
            value = column[int(pc.index(is_wrong, True).as_py())]
            raise IncorrectData(
                f"Column {name} of {table.database}.{table.name} is {value}, where"
                f" {table.engine.name} needs {allowed[0]} or {allowed[1]}.",
                hint="Correct the value; the column's DEFAULT counts where an INSERT leaves it out.",
            )


def _never_undone(steps: np.ndarray, level: np.ndarray, lift: np.ndarray) -> np.ndarray:
    """Return a mask of the rows whose step up remains: no later row of the group cancels it.

    `steps` are the signs, `level` is the running sum after each row, and must be above zero. `lift`
    is added to compare levels within the group only.
    """
    heights = level + lift
    lowest_from = np.minimum.accumulate(heights[::-1])[::-1]
    mask: np.ndarray = (steps > 0) & (level > 0) & (lowest_from == heights)
    return mask


def _last_greatest(values: np.ndarray, groups: Groups) -> np.ndarray:
    """Return for each group the position of the last row with the greatest value."""
    greatest = np.maximum.reduceat(values, groups.starts)
    candidates = np.where(values == greatest[groups.codes], np.arange(len(values)), -1)
    positions: np.ndarray = np.maximum.reduceat(candidates, groups.starts)
    return positions


def _comparable(rows: pa.Table, name: str) -> np.ndarray:
    """Return a version column as numbers of the same order."""
    column = single_chunk(rows.column(name))
    arrow = column.type
    if pa.types.is_boolean(arrow):
        column = column.cast(pa.uint8())
    elif pa.types.is_date32(arrow):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(arrow):
        column = column.view(pa.int64())
    values: np.ndarray = to_numpy(column)
    if not pa.types.is_floating(arrow):
        return values
    # The bits of floats order as their values do, once those of negative floats are inverted.
    numbers = np.where(np.isnan(values), np.nan, values).astype(np.float64) + 0.0
    bits = numbers.view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFF_FFFF_FFFF_FFFF))


def _signs(table: Table, rows: pa.Table) -> np.ndarray:
    """Return the rows' values of the engine's sign column."""
    assert table.engine.sign is not None
    signs: np.ndarray = to_numpy(single_chunk(rows.column(table.engine.sign)))
    return signs


def _take(rows: pa.Table, positions: np.ndarray) -> pa.Table:
    """Return the rows at the positions, or `rows` unchanged if there are as many positions."""
    return rows if len(positions) == rows.num_rows else rows.take(from_numpy(positions))


def _filtered(rows: pa.Table, keep: pa.BooleanArray) -> pa.Table:
    """Return the rows that `keep` marks."""
    return rows if keep.true_count == rows.num_rows else rows.filter(keep)
