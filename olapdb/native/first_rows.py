"""The rows of groups that may be among the first of their group, found by a kernel, which needs the library.

Callers sort what is left; without the library they sort all rows."""

from __future__ import annotations

import numpy as np

from olapdb.native.library import kernels
from olapdb.native.memory import empty

_LAST = np.iinfo(np.int64).max


def first_of_groups(
    keys: np.ndarray, groups: np.ndarray, group_count: int, count: int, *, distinct: bool
) -> np.ndarray:
    """Return the positions, ascending, of the rows whose key is at most the `count`-th least one of their group, equal
    ones included; with `distinct` the `count`-th least different one. `groups` has the group of each row, from 0. int64."""
    rows = len(keys)
    if len(groups) != rows:
        raise ValueError(f"{rows} rows have {len(groups)} groups.")
    if rows and (int(groups.min()) < 0 or int(groups.max()) >= group_count):
        raise IndexError(f"A group is not within {group_count} groups.")
    least = empty(group_count * count, np.int64)
    least[:] = _LAST
    positions = empty(rows + 1, np.int64)
    kept = kernels().olapdb_first_of_groups(
        np.ascontiguousarray(keys, np.int64),
        np.ascontiguousarray(groups, np.int64),
        rows,
        count,
        int(distinct),
        least,
        positions,
    )
    return np.asarray(positions[:kept])
