"""The kernel that finds the quoted values of CSV. It needs the library; the form in numpy is in `formats/csv_quotes.py`."""

from __future__ import annotations

import numpy as np

from olapdb.native.library import kernels


def csv_shape(
    data: np.ndarray, delimiter: str, inside: np.ndarray | None = None
) -> tuple[int, bool, int | None, bool]:
    """Return four facts about the bytes of some rows: the number of bytes up to and including the last line feed
    outside quotes; whether the last quoted value does not end; the position of the first closing quote behind which
    text follows, None without one; whether a blank outside quotes is beside a delimiter or an end.

    `inside`, uint8, takes a 1 for each byte within quotes, the opening quote included and the closing one not."""
    facts = np.empty(4, np.int64)
    kernels().olapdb_csv_shape(data, len(data), ord(delimiter), inside, facts)
    end, is_open, junk, has_blanks = facts.tolist()
    return end, bool(is_open), None if junk < 0 else junk, bool(has_blanks)
