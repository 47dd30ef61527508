"""Backslash escapes in texts, and pieces of bytes as texts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.functions.kernels import columns
from olapdb.native.library import library
from olapdb.native.texts import copied_spans

_BACKSLASH = ord("\\")
_LETTERS = np.arange(256, dtype=np.uint8)
_IS_KNOWN = np.arange(256) < 32  # a control character, such as a line feed, stands for itself
for _letter, _byte in zip(b"abefnrtv0\\'\"`/=", b"\a\b\x1b\f\n\r\t\v\0\\'\"`/=", strict=True):
    _LETTERS[_letter] = _byte
    _IS_KNOWN[_letter] = True


def spans(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
    """Return the bytes data[start:end] of each span as texts."""
    lengths = ends - starts
    offsets = columns.offsets_from_counts(lengths)
    if library() is not None and len(lengths):
        if lengths.min() < 0 or starts.min() < 0 or ends.max() > len(data):
            raise IndexError("A span is not within the data.")
        starts = np.ascontiguousarray(starts, np.int64)
        return columns.strings_from(
            offsets, copied_spans(np.ascontiguousarray(data), starts, offsets)
        )
    source = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
    return columns.strings_from(offsets, data[source])


def escaped(data: np.ndarray) -> np.ndarray:
    """Return a mask of the bytes that have an odd number of backslashes right before them."""
    is_backslash = data == _BACKSLASH
    if not is_backslash.any():
        return np.zeros(len(data), bool)
    position = np.arange(len(data))
    other = np.maximum.accumulate(np.where(is_backslash, -1, position))
    run = position - other  # the backslashes up to this byte, itself included
    before = np.concatenate((np.zeros(1, np.int64), run[:-1]))
    return np.asarray(before & 1 == 1)


def unescaped(texts: pa.Array) -> pa.Array:
    r"""Undo the escapes of TabSeparated: `\t` becomes a tab, `\x41` an A; an unknown escape stays."""
    offsets, data = columns.bytes_of(texts)
    is_backslash = data == _BACKSLASH
    if not is_backslash.any():
        return texts
    data = data.copy()
    rows = np.repeat(np.arange(len(texts)), np.diff(offsets))
    position = np.arange(len(data))
    other = np.maximum.accumulate(np.where(is_backslash, -1, position))
    run = position - np.maximum(other, offsets[:-1][rows] - 1)
    leads = np.flatnonzero(is_backslash & (run & 1 == 1))
    # In a run of backslashes each second one is the character that the one before escapes.
    leads = leads[leads + 1 < offsets[1:][rows[leads]]]
    letters = data[leads + 1]
    keep = np.ones(len(data), bool)
    known = _IS_KNOWN[letters]
    keep[leads[known]] = False
    data[leads[known] + 1] = _LETTERS[letters[known]]
    _unescape_hexadecimal(data, keep, leads[letters == ord("x")], offsets[1:][rows])
    kept = np.bincount(rows[keep], minlength=len(texts))
    valid = columns.validity(texts)
    return columns.strings_from(columns.offsets_from_counts(kept), data[keep], valid)


def _unescape_hexadecimal(
    data: np.ndarray, keep: np.ndarray, leads: np.ndarray, ends: np.ndarray
) -> None:
    r"""Replace each `\xHH` by the byte that its digits denote, in `data` and `keep`, in place."""
    leads = leads[leads + 3 < ends[leads]] if len(leads) else leads
    if not len(leads):
        return
    digits = data[leads[:, None] + np.array([2, 3])] | 0x20
    values = np.where(digits >= ord("a"), digits - 87, digits - ord("0")).astype(np.uint8)
    data[leads] = (values[:, 0] << 4) | values[:, 1]
    for step in (1, 2, 3):
        keep[leads + step] = False
