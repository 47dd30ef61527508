"""Texts as numbers: the codes of all texts of a column, its bytes or its characters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.errors import TooLargeStringSize
from olapdb.functions.kernels import columns

Codes: TypeAlias = tuple[np.ndarray, np.ndarray]
"""The int32 codes of all texts, one behind the other, and the int64 offsets of each text's."""

LENGTH_MAX = 65_536
"""The codes of the longest text that functions of two texts take, as in ClickHouse."""
_CELLS_MAX = 1 << 22
"""The numbers that a step keeps at once: rows times the longest text."""
_BEYOND_ALL = (-1, -2)
"""What fills up the texts of the left and the right side: no code, and different ones."""


def text_codes(array: pa.Array, *, utf8: bool) -> Codes:
    """Return the bytes or the code points of texts; bytes that are not UTF-8 become surrogates."""
    offsets, data = columns.bytes_of(columns.binary(columns.text(array)))
    if not utf8:
        return data.astype(np.int32), offsets
    text = data.tobytes().decode("utf-8", "surrogateescape")
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.int32)
    heads = columns.offsets_from_counts((data & 0xC0) != 0x80)
    return points, heads[offsets]


def check_lengths(name: str, left: Codes, right: Codes) -> None:
    """Raise TooLargeStringSize, with its row, for the first text that is longer than the function `name` takes."""
    longest = np.maximum(np.diff(left[1]), np.diff(right[1]))
    if int(longest.max(initial=0)) > LENGTH_MAX:
        row = int((longest > LENGTH_MAX).argmax())
        raise TooLargeStringSize(f"{name} takes texts of at most {LENGTH_MAX} bytes.").at_row(row)


def matrices(left: Codes, right: Codes) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield slices of bounded memory: the rows, and a matrix of codes for each side.

    A matrix has the shape (rows, longest text). Places behind a shorter text hold codes that equal none of the other
    side's."""
    longest = max(int(np.diff(offsets).max(initial=0)) for _, offsets in (left, right))
    rows = len(left[1]) - 1
    step = max(1, _CELLS_MAX // (longest + 1))
    for start in range(0, rows, step):
        some = slice(start, min(start + step, rows))
        yield some, _matrix(left, some, _BEYOND_ALL[0]), _matrix(right, some, _BEYOND_ALL[1])


def _matrix(side: Codes, rows: slice, filler: int) -> np.ndarray:
    """Return the texts of some rows as a matrix of codes, shorter ones filled up with `filler`."""
    codes, offsets = side[0], side[1][rows.start : rows.stop + 1]
    lengths = np.diff(offsets)
    out = np.full((len(lengths), int(lengths.max(initial=0))), filler, np.int32)
    owners = columns.parents_of(offsets - offsets[0])
    out[owners, np.arange(len(owners)) - (offsets[:-1] - offsets[0])[owners]] = codes[
        offsets[0] : offsets[-1]
    ]
    return out
