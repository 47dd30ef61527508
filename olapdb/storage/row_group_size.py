"""How many rows a row group of a part's file has."""

from __future__ import annotations

import pyarrow as pa

from olapdb.config import tuning
from olapdb.model.schema import Table

_HALVINGS_MAX = 4
"""Halve the row groups of a part so often where a few of them have too many bytes: most rows are then short, and each
row group costs statistics and pages."""


def row_group_rows(table: Table, rows: pa.Table) -> int:
    """Return the number of rows of a row group in the file of a part that has these rows, one at least: the table's
    `index_granularity`, fewer where a column has more than ROW_GROUP_BYTES_MAX bytes in one.

    All row groups of a part but the last have as many rows, so the average of a column decides, and its largest row
    group up to a sixteenth of that."""
    size = table.granule_rows
    for column in rows.columns:
        if not pa.types.is_primitive(column.type) and column.nbytes > tuning.ROW_GROUP_BYTES_MAX:
            size = min(size, _rows_of_column(column, size))
    return size


def _rows_of_column(column: pa.ChunkedArray, size: int) -> int:
    """Return at most `size` rows, so that row groups of so many rows of the column have few bytes."""
    size = min(size, max(tuning.ROW_GROUP_BYTES_MAX * len(column) // column.nbytes, 1))
    for _ in range(_HALVINGS_MAX):
        groups = (column.slice(start, size).nbytes for start in range(0, len(column), size))
        # By the average half of the row groups have a little more; these are no reason.
        if size == 1 or max(groups) <= 2 * tuning.ROW_GROUP_BYTES_MAX:
            break
        size //= 2
    return size
