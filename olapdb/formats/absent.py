"""Rows that lack a value, where that is not NULL: the column's DEFAULT stands for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from olapdb.formats.base import Rows


def apart(rows: Rows, absent: Mapping[str, np.ndarray]) -> Iterator[Rows]:
    """Split the rows into runs of rows that lack the same columns, and yield each run without these columns. `absent`
    holds for a column the mask of the rows that lack it."""
    masks = {name: mask for name, mask in absent.items() if mask.any()}
    if not masks:
        yield rows
        return
    changes = np.zeros(max(rows.rows - 1, 0), bool)
    for mask in masks.values():
        changes |= mask[1:] != mask[:-1]
    for start, stop in pairwise([0, *(np.flatnonzero(changes) + 1).tolist(), rows.rows]):
        kept = [
            at for at, name in enumerate(rows.names) if name not in masks or not masks[name][start]
        ]
        yield Rows(
            tuple(rows.names[at] for at in kept),
            tuple(rows.types[at] for at in kept),
            tuple(rows.arrays[at].slice(start, stop - start) for at in kept),
            stop - start,
        )
