"""min and max over frames that begin with their partition, such as ROWS UNBOUNDED PRECEDING.

values     5 3 8 | 1 9        the bar begins a partition
raised     5 3 8 | 101 109    each partition lies above the one before
largest    5 5 8 | 101 109    so one running maximum answers all partitions
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates.extremes import Extreme
from olapdb.functions.aggregates.group_kernels import order_keys
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.decimal_width import is_short
from olapdb.functions.window_definitions import Frames
from olapdb.types.arrow_values import from_numpy

_RAISED_MAX = 1 << 62
"""The greatest number that a raised value may be."""


def running_extremes(
    aggregate: Aggregate, arguments: Sequence[pa.Array], frames: Frames
) -> pa.Array | None:
    """Return min or max over each row's frame; None for other aggregates, frames and types."""
    if not isinstance(aggregate, Extreme) or not _is_ordered(arguments[0].type):
        return None
    begin_with_partition = np.array_equal(frames.starts, frames.partition_starts)
    if not begin_with_partition or not (frames.ends > frames.starts).all():
        return None
    (column,) = arguments
    is_first = frames.partition_starts == frames.positions
    rows = _running_rows(_ranks(column, largest=aggregate.largest), is_first)
    chosen = rows[frames.ends - 1]
    states = aggregate.state([column.take(from_numpy(chosen))], Groups(frames.positions, len(rows)))
    return aggregate.finalize(states)


def _is_ordered(arrow: pa.DataType) -> bool:
    """Return whether integers stand for the values of a type in their order."""
    return (
        pa.types.is_integer(arrow)
        or pa.types.is_temporal(arrow)
        or pa.types.is_decimal128(arrow)
        or is_short(arrow)
    )


def _ranks(column: pa.Array, *, largest: bool) -> np.ndarray:
    """Return the rank of each row's value, from 1, equal for equal values; the extreme value (the largest if `largest`,
    else the least) has the highest rank, NULL has 0. int64."""
    valid = columns.validity(column)
    values = column if valid is None else column.drop_null()
    if is_short(values.type):
        values = columns.view(values, pa.int64())
    _, ranks = np.unique(order_keys(values), return_inverse=True)
    own = ranks + 1 if largest else len(ranks) - ranks
    if valid is None:
        return own
    every = np.zeros(len(column), np.int64)
    every[valid] = own
    return every


def _running_rows(ranks: np.ndarray, is_first: np.ndarray) -> np.ndarray:
    """Return for each row the first row of its partition, up to itself, that has the highest rank."""
    step = int(ranks.max()) + 1
    partitions = np.cumsum(is_first) - 1
    assert step * (int(partitions[-1]) + 1) < _RAISED_MAX
    raised = ranks + partitions * step
    highest = np.maximum.accumulate(raised)
    is_higher = np.ones(len(ranks), bool)
    is_higher[1:] = highest[1:] > highest[:-1]
    return np.maximum.accumulate(np.where(is_higher, np.arange(len(ranks)), 0))
