"""The words and n-grams of texts, hashed, as the indexes tokenbf_v1 and ngrambf_v1 store them.

A word is a run of letters, digits and bytes from 128 on; an n-gram is any `n` neighbouring bytes.  A
text that contains another one contains its n-grams, and the words of it that do not touch its ends,
so that a filter without one of these excludes the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.kernels.hashing import hash_values
from olapdb.model.schema import SkipIndex

_SEPARATORS = r"[\x00-/:-@\[-`{-\x7f]+"
"""ASCII that is neither a letter nor a digit: what hasToken separates words by."""
_FNV_OFFSET = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


def part_hashes(index: SkipIndex, texts: pa.Array) -> np.ndarray:
    """Return the distinct hashes of the words or n-grams of all texts; uint64."""
    distinct = pc.drop_null(pc.unique(texts)).cast(pa.binary())
    hashes = _extractor(index)(distinct)
    return np.unique(_seeded(hashes, index))


def hashes_of_whole(index: SkipIndex, text: bytes) -> np.ndarray:
    """Return the hashes that a filter has if one of its texts is `text`, with or without zero bytes behind it, which a
    FixedString is filled up with."""
    return part_hashes(index, pa.array([text.rstrip(b"\0")], pa.binary()))


def hashes_of_fragment(
    index: SkipIndex, text: bytes, *, from_start: bool, to_end: bool
) -> np.ndarray:
    """Return the hashes that a filter has if one of its texts contains `text`; `from_start` and
    `to_end` mean that it begins or ends with it."""
    if index.type == "tokenbf_v1":
        if not from_start:
            text = re.sub(rb"^[^\x00-/:-@\[-`{-\x7f]+", b"", text)
        if not to_end:
            text = re.sub(rb"[^\x00-/:-@\[-`{-\x7f]+$", b"", text)
    return hashes_of_whole(index, text)


def _extractor(index: SkipIndex) -> Callable[[pa.Array], np.ndarray]:
    """Return the function from distinct texts to the hashes of their words or n-grams."""
    if index.type == "tokenbf_v1":
        return _word_hashes
    return lambda texts: _ngram_hashes(texts, index.parameters[0])


def _seeded(hashes: np.ndarray, index: SkipIndex) -> np.ndarray:
    """Return the hashes mixed with the index's seed, its last parameter."""
    mixed: np.ndarray = (hashes ^ np.uint64(index.parameters[-1])) * _MIX
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _word_hashes(texts: pa.Array) -> np.ndarray:
    """Return the hashes of the distinct words of the texts."""
    words = pc.unique(pc.list_flatten(pc.split_pattern_regex(texts, _SEPARATORS)))
    return hash_values(words.filter(pc.greater(pc.binary_length(words), 0)))


def _ngram_hashes(texts: pa.Array, length: int) -> np.ndarray:
    """Return the distinct FNV-1a hashes, rising, of all stretches of `length` bytes within a text."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[
        texts.offset : texts.offset + len(texts) + 1
    ]
    if not len(texts) or offsets[-1] == offsets[0]:
        return np.empty(0, np.uint64)
    data = np.frombuffer(texts.buffers()[2], np.uint8)
    counts = np.maximum(np.diff(offsets) - length + 1, 0)
    starts = np.repeat(offsets[:-1] - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
    starts += np.arange(len(starts))
    return np.unique(
        np.concatenate(
            [
                np.unique(_stretch_hashes(data, starts[at : at + _STRETCHES], length))
                for at in range(0, max(len(starts), 1), _STRETCHES)
            ]
        )
    )


_STRETCHES = 1 << 20
"""N-grams hashed at once: each takes some 40 bytes meanwhile."""


def _stretch_hashes(data: np.ndarray, starts: np.ndarray, length: int) -> np.ndarray:
    """Return the FNV-1a hashes of the stretches of `length` bytes that begin at `starts`."""
    hashes = np.full(len(starts), _FNV_OFFSET)
    for step in range(length):
        hashes = (hashes ^ data[starts + step]) * _FNV_PRIME
    return hashes
