"""What a window function is.

A kernel sees the rows of all partitions at once, sorted by partition and order:

    position          0  1  2  3  4
    partition         a  a  a  b  b
    partition_starts  0  0  0  3  3
    partition_ends    3  3  3  5  5
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from olapdb.functions.base import Argument
from olapdb.records import dataclass
from olapdb.types import DataType


@dataclass(frozen=True)
class Frames:
    """The partition, peers and frame of each sorted row.

    All are int64 of shape (rows,): starts are positions, ends are one past the last.  Peers are
    rows with equal ORDER BY values.  An empty frame ends where it starts.
    """

    partition_starts: np.ndarray
    partition_ends: np.ndarray
    peer_starts: np.ndarray
    peer_ends: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    @property
    def rows(self) -> int:
        """The number of rows of all partitions."""
        return len(self.partition_starts)

    @cached_property
    def positions(self) -> np.ndarray:
        """The position of each row: 0, 1, …"""
        return np.arange(self.rows)


COUNTS_ROWS = frozenset(("row_number", "rank"))
"""The functions whose result is more than n from the n-th row on that comes before a row in its partition."""
RANKING = COUNTS_ROWS | {"dense_rank"}
"""The functions whose result depends on the rows that come before a row in its partition, and grows with them."""

WindowKernel = Callable[[Sequence[pa.Array], Frames], pa.Array]
"""A function from (arguments of the sorted rows, frames) to the result of each sorted row."""


@dataclass(frozen=True)
class WindowFunction:
    """A window function resolved for its argument types.

    `whole_partition`: the function ignores the frame, and the query may not specify one."""

    name: str
    type: DataType
    kernel: WindowKernel
    whole_partition: bool = False


@dataclass(frozen=True)
class WindowDefinition:
    """A window function by name, with bounds on its number of arguments.

    `parameters` is the number of constants that it takes in parentheses of their own, as in f(10)(x); `resolve` gets
    them before the arguments."""

    name: str
    resolve: Callable[[str, Sequence[Argument]], WindowFunction]
    minimum: int = 0
    maximum: int = 0
    parameters: int = 0
