"""Rows' keys as 128-bit hashes, see `olapdb.model.keys`. Part of the on-disk format.

Two lanes of 64 bits run over the words of a value, of 8 bytes each, little-endian, the last one
padded with zeros: `high` is splitmix64 of (high xor word), `low` of (low + word) times an odd
constant; both begin with the length in bytes.  A value of up to 64 bits is one word.  Columns
follow each other.  The hash does not withstand an attacker who chooses keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.kernels import columns
from olapdb.functions.kernels.hashing import mix

_HIGH_SEED = np.uint64(0x6A09E667F3BCC908)
_LOW_SEED = np.uint64(0xBB67AE8584CAA73B)
_ODD = np.uint64(0xD6E8FEB86659FD93)
PIECE_ROWS = 65_536


def row_keys(arrays: Sequence[pa.Array], rows: int) -> np.ndarray:
    """Return the keys' hashes (high, low), shape (rows, 2). The hash of a row with a NULL is
    undefined."""
    keys = np.empty((rows, 2), np.uint64)
    for start in range(0, rows, PIECE_ROWS):
        pieces = [array.slice(start, PIECE_ROWS) for array in arrays]
        lanes = _Lanes(min(PIECE_ROWS, rows - start))
        for piece in pieces:
            _add_column(lanes, piece)
        keys[start : start + PIECE_ROWS, 0] = lanes.high
        keys[start : start + PIECE_ROWS, 1] = lanes.low
    return keys


class _Lanes:
    """The hashes of rows in progress: `high` and `low` halves of 64 bits, one of each for a row."""

    def __init__(self, rows: int) -> None:
        self.high = np.full(rows, _HIGH_SEED)
        self.low = np.full(rows, _LOW_SEED)

    def take(self, words: np.ndarray, rows: np.ndarray | slice = slice(None)) -> None:
        """Mix one more 8-byte word into the hash of each of `rows`, in their order."""
        with np.errstate(over="ignore"):
            self.high[rows] = mix(self.high[rows] ^ words)
            self.low[rows] = mix((self.low[rows] + words) * _ODD)


def _add_column(lanes: _Lanes, array: pa.Array) -> None:
    """Add the values of one key column to the hashes of their rows."""
    arrow = array.type
    if pa.types.is_string(arrow) or pa.types.is_fixed_size_binary(arrow):
        _add_texts(lanes, columns.binary(array))
    elif pa.types.is_decimal(arrow):
        _add_decimals(lanes, array)
    else:
        values = columns.numpy_values(array)
        wide = values if values.dtype == np.uint64 else values.astype(np.int64).view(np.uint64)
        lanes.take(wide)


def _add_decimals(lanes: _Lanes, array: pa.Array) -> None:
    """Add decimals to the hashes of their rows, by their 128 or 256 bits."""
    words = array.type.byte_width // 8
    buffer = array.buffers()[1]
    if buffer is None:
        return
    limbs = np.frombuffer(buffer, "<u8", len(array) * words, array.offset * 8 * words)
    for column in limbs.reshape(len(array), words).T:
        lanes.take(column)


def _add_texts(lanes: _Lanes, array: pa.Array) -> None:
    """Add the length and bytes of each text to its row's lanes, in words of 8 bytes."""
    offsets, data = columns.bytes_of(array)
    lengths = np.diff(offsets)
    lanes.take(lengths.astype(np.uint64))
    if not len(data):
        return
    words, counts = _words(offsets, data, lengths)
    starts = np.cumsum(counts) - counts
    shortest = int(counts.min())
    # One step a word, on the rows that have it: as many steps as the longest value has words.
    for at in range(int(counts.max())):
        if at < shortest:
            lanes.take(words[starts + at])
        else:
            longer = np.flatnonzero(counts > at)
            lanes.take(words[starts[longer] + at], longer)


def _words(
    offsets: np.ndarray, data: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (the 8-byte words of all values in order, the number of words of each value)."""
    counts = (lengths + 7) >> 3
    length = int(lengths[0])
    padded = np.zeros(int(counts.sum()) * 8, np.uint8)
    if (lengths == length).all():  # UUIDs and the like: one copy
        padded.reshape(len(lengths), -1)[:, :length] = data.reshape(len(lengths), length)
    else:
        shift = (np.cumsum(counts) - counts) * 8 - offsets[:-1]
        padded[np.arange(len(data)) + np.repeat(shift, lengths)] = data
    return padded.view("<u8"), counts
