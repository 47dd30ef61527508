"""The call of the kernel that reads rows of plain literals. It needs the library.

The form in numpy is in `sql/values/scan.py`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from olapdb.native.library import kernels
from olapdb.records import dataclass


@dataclass(frozen=True)
class PlainRows:
    """Rows of plain literals as CSV: `'` quotes, doubled inside; a comma between fields, a line
    feed after each row, nothing between them.

    `first` is the first byte of each field, row by row: shape (rows, columns). `row_bytes_max` counts
    both parentheses of the longest row.
    """

    csv: bytes
    first: npt.NDArray[np.uint8]
    row_bytes_max: int
    has_newlines: bool


def plain_rows(data: bytes, columns: int) -> PlainRows | None:
    """Return rows of `columns` plain literals, `(1, 'a'), (2, 'b')`, as CSV; None if the text has anything else, or a
    row has another number of values."""
    csv = np.empty(len(data), np.uint8)
    first = np.empty(len(data) // 2 + 1, np.uint8)
    facts = np.zeros(3, np.int64)
    text = np.frombuffer(data, np.uint8)
    rows = kernels().olapdb_plain_rows(text, len(data), columns, csv, first, facts)
    if rows < 0:
        return None
    csv_bytes, longest, has_newlines = facts.tolist()
    fields = first[: rows * columns].reshape(rows, columns)
    return PlainRows(csv[:csv_bytes].tobytes(), fields, longest, bool(has_newlines))
