"""Calls of the kernels that decode Parquet pages. Each needs the library to be loaded.

The other form is Arrow's reader, see `storage/page_decoder.py`."""

from __future__ import annotations

import numpy as np

from olapdb.native.library import kernels
from olapdb.native.memory import lasting

SLACK_BYTES = 64
"""Bytes behind each piece of memory that the kernels may write to: they copy 16 or 32 bytes at a time."""

_PIECES = 5
_PIECE_BYTES = 64
_DECODED_BYTES, _CODE_BYTES = 8, 4
"""Of a row in the memory that a kernel works in."""

_FULL = 3
"""The answer of a kernel that needs more room for texts."""
_ROOM_BYTES_MIN = 1 << 16
_ROOM_FACTOR = 1.06
_LENGTH_BYTES = 4
"""Before each text of a plain page."""
_TEXT_BYTES_MAX = (1 << 31) - 1
"""Of an array of texts, whose offsets are int32."""


def decode_numbers(
    source: np.ndarray, chunks: np.ndarray, form: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None, int] | None:
    """Return the values of a column of some row groups, as bytes, its validity bitmap (None: no row may be NULL),
    and the number of NULLs. None if the pages are damaged, or not as the kernel knows them.

    `source` is the descriptor of an open file, or -1 with the address and size of one in memory. `chunks` has a row
    for each row group: the offset of its pages, their bytes, its rows, the bytes of its pages without compression.
    `form` is as `Form` in `pages.c`. All are int64."""
    rows = int(chunks[:, 2].sum())
    is_optional, width = bool(form[1]), int(form[3])
    values = lasting(rows * width + SLACK_BYTES, np.uint8)
    validity = lasting((rows >> 3) + 1, np.uint8) if is_optional else None
    scratch = lasting(_scratch_bytes(chunks), np.uint8)
    nulls = np.zeros(1, np.int64)
    problem = kernels().olapdb_decode_numbers(
        source, chunks, len(chunks), form, scratch, len(scratch), values, validity, nulls
    )
    return None if problem else (values, validity, int(nulls[0]))


def decode_texts(
    source: np.ndarray, chunks: np.ndarray, form: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int] | None:
    """Return where the texts of a column of some row groups begin, int32, with where the last one ends; their bytes;
    the validity bitmap (None: no row may be NULL), and the number of NULLs. None as `decode_numbers`, and for more
    bytes than such an array may have.

    `form` says whether rows may be NULL, how pages are compressed, and whether there are dictionaries: without these and
    NULLs the texts have the bytes of their pages, less their lengths."""
    ends = np.cumsum(chunks[:, 2])
    rows = int(ends[-1])
    offsets = lasting(rows + 1, np.int32)
    validity = None
    if form[0]:
        validity = lasting((rows >> 3) + 1, np.uint8)
        validity[:] = 0
    scratch = lasting(_scratch_bytes(chunks), np.uint8)
    progress = np.zeros(4, np.int64)
    room, stop = int(chunks[:, 3].sum()) - _LENGTH_BYTES * rows, len(chunks)
    if form[0] or form[2] or not 0 <= room <= _TEXT_BYTES_MAX:
        # What the first row group has tells how much room the others need.
        room, stop = max(2 * int(chunks[0, 3]), _ROOM_BYTES_MIN), 1
    texts = lasting(room + SLACK_BYTES, np.uint8)
    while True:
        problem = kernels().olapdb_decode_texts(
            source,
            chunks,
            stop,
            form,
            scratch,
            len(scratch),
            offsets,
            texts,
            room,
            validity,
            progress,
        )
        done, done_rows, used, nulls = progress.tolist()
        if not problem and done == len(chunks):
            return offsets, texts[:used], validity, nulls
        if problem not in (0, _FULL) or room > _TEXT_BYTES_MAX // 2:
            return None
        expected = used / done_rows * rows * _ROOM_FACTOR if done_rows else 0
        room = int(max(expected, room if not problem else room * 2))
        if room > _TEXT_BYTES_MAX:
            return None
        larger = lasting(room + SLACK_BYTES, np.uint8)
        larger[:used] = texts[:used]
        texts, stop = larger, len(chunks)


def _scratch_bytes(chunks: np.ndarray) -> int:
    """Return the bytes of memory that a kernel needs for the largest row group: its pages as they are stored and
    decompressed, their dictionary, codes, and decoded values or the places of the dictionary's texts."""
    rows = chunks[:, 2]
    places = np.maximum(_DECODED_BYTES * rows, 2 * chunks[:, 3])
    needed = chunks[:, 1] + 2 * chunks[:, 3] + places + _CODE_BYTES * rows
    return int(needed.max(initial=0)) + _PIECES * (SLACK_BYTES + _PIECE_BYTES)
