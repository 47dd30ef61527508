"""Escapes of JSON strings: decoded, and written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.json.index import hexadecimal
from olapdb.functions.kernels import columns

_PLAIN = np.arange(256, dtype=np.uint8)
for _letter, _character in zip(b"bfnrt", b"\b\f\n\r\t", strict=True):
    _PLAIN[_letter] = _character
_LETTERS = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_WITHOUT_LETTER = [chr(c) for c in range(0x20) if chr(c) not in _LETTERS]


def unescape(texts: pa.Array) -> pa.Array:
    """Decode the contents of valid JSON strings, without their quotes; no nulls."""
    if not pc.any(pc.match_substring(texts, "\\")).as_py():
        return texts
    offsets, data = columns.bytes_of(texts)
    data = data.copy()
    keep = np.ones(len(data), bool)
    backslash = data == ord("\\")
    position = np.arange(len(data))
    other = np.maximum.accumulate(np.where(backslash, -1, position))
    rows = np.repeat(np.arange(len(texts)), np.diff(offsets))
    run = position - np.maximum(other, offsets[:-1][rows] - 1)
    leads = np.flatnonzero(backslash & (run & 1 == 1))
    # In a run of backslashes each second one is the character that the one before escapes.
    keep[leads] = False
    letters = data[leads + 1]
    numbered = leads[letters == ord("u")]
    plain = leads[letters != ord("u")] + 1
    data[plain] = _PLAIN[data[plain]]
    _write_code_points(data, keep, numbered)
    kept = np.bincount(rows[keep], minlength=len(texts))
    return columns.strings_from(columns.offsets_from_counts(kept), data[keep])


def _write_code_points(data: np.ndarray, keep: np.ndarray, leads: np.ndarray) -> None:
    r"""Replace `\uXXXX` escapes in `data` by their characters in UTF-8, and mark in `keep` the bytes to keep.

    `leads` are the positions of the escapes' backslashes. A surrogate pair is one character."""
    if not len(leads):
        return
    code = hexadecimal(data, leads + 2)
    is_low = (code >> 10) == 0xDC00 >> 10
    code[:-1] = np.where(
        is_low[1:] & ~is_low[:-1] & ((code[:-1] >> 10) == 0xD800 >> 10),
        0x10000 + ((code[:-1] - 0xD800) << 10) + (code[1:] - 0xDC00),
        code[:-1],
    )
    for step in range(6):
        keep[leads + step] = False
    leads, code = leads[~is_low], code[~is_low]
    lengths = 1 + (code > 0x7F) + (code > 0x7FF) + (code > 0xFFFF)
    for length in range(1, 5):
        chosen = np.flatnonzero(lengths == length)
        for step in range(length):
            bits = code[chosen] >> (6 * (length - 1 - step))
            lead_bits = (0, 0xC0, 0xE0, 0xF0)[length - 1]
            byte = (bits & 0x3F) | 0x80 if step else bits | lead_bits
            data[leads[chosen] + step] = byte
            keep[leads[chosen] + step] = True


def escape(texts: pa.Array) -> pa.Array:
    """Escape texts as JSON strings, without quotes: backslashes, quotes, control characters."""
    if not pc.any(pc.match_substring_regex(texts, r'["\\\x00-\x1f]')).as_py():
        return texts
    texts = pc.replace_substring(texts, "\\", "\\\\")
    texts = pc.replace_substring(texts, '"', '\\"')
    for character, escaped in _LETTERS.items():
        texts = pc.replace_substring(texts, character, escaped)
    if pc.any(pc.match_substring_regex(texts, r"[\x00-\x1f]")).as_py():
        for character in _WITHOUT_LETTER:
            texts = pc.replace_substring(texts, character, f"\\u{ord(character):04X}")
    return texts


def quote(texts: pa.Array) -> pa.Array:
    """Return texts as JSON strings, quotes included."""
    return pc.binary_join_element_wise('"', escape(texts), '"', "")
