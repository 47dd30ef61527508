"""Calls of the kernels that search and compare texts without making any. Each needs the library.

The forms in Arrow are in `functions/strings/like_patterns.py` and `functions/aggregates/extremes.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.native.library import kernels
from olapdb.native.memory import empty
from olapdb.native.values import validity_of

_NONE = -1


def copied_spans(data: np.ndarray, starts: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the bytes of spans one after the other; span i begins at starts[i] and comes to lie from offsets[i] to
    offsets[i + 1]. int64 both; the spans are within `data`."""
    copied = empty(int(offsets[-1]), np.uint8)
    kernels().olapdb_join_spans(data, starts, offsets, len(starts), copied)
    return copied


def match_pieces(
    texts: pa.Array, pieces: Sequence[bytes], *, from_start: bool, to_end: bool
) -> np.ndarray:
    """Return whether texts have all pieces one behind the other, the first at the beginning of the
    text if `from_start`, the last one at its end if `to_end`; bool. NULL gives any value."""
    matches = np.zeros(len(texts), np.uint8)
    if len(texts):
        offsets, data = _addresses(texts)
        ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
        joined = np.frombuffer(b"".join(pieces) + b"\0", np.uint8)
        kernels().olapdb_match_pieces(
            offsets, data, len(texts), joined, ends, len(pieces), from_start, to_end, matches
        )
    return matches.view(bool)


def extreme_texts(
    texts: pa.Array,
    rows: pa.Array,
    indices: np.ndarray | None,
    codes: np.ndarray | None,
    groups: int,
    *,
    largest: bool,
) -> np.ndarray:
    """Return the position in `texts` of the least or greatest text of each group, -1 without one; int64.

    `rows` says which rows are NULL; row r has the text at indices[r], or at r without indices. The
    texts that have rows are not NULL, and the indices int32."""
    best = np.full(groups, _NONE, np.int64)
    if len(rows) and len(texts):
        offsets, data = _addresses(texts)
        kernels().olapdb_extreme_texts(
            offsets, data, *validity_of(rows), indices, codes, len(rows), largest, best
        )
    return best


def _addresses(texts: pa.Array) -> tuple[int, int | None]:
    """Return the addresses of a text column's offsets, from its first row on, and of its bytes."""
    _, offsets, data = texts.buffers()
    return offsets.address + 4 * texts.offset, None if data is None else data.address
