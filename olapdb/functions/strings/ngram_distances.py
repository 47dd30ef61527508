"""ngramDistance and ngramSearch: the pieces that two texts have in common, of 4 bytes or 3 characters.

Source: https://github.com/ClickHouse/ClickHouse, FunctionsStringSimilarity.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.errors import TooLargeStringSize
from olapdb.functions import scalar
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import order_by
from olapdb.functions.strings.arguments import text_rule
from olapdb.functions.strings.text_codes import Codes, text_codes
from olapdb.native import text_pairs
from olapdb.native.library import library
from olapdb.types import FLOAT32

_BYTES_MAX = 32_768
"""The bytes of a text beyond which ClickHouse finds nothing in common."""
_PIECE_BYTES, _PIECE_CHARACTERS = 4, 3
_CODE_BITS = 21
"""The bits of a code point, so that a piece of three is one key."""
_LETTER_CASE = 0x20


def _lowered(codes: np.ndarray) -> np.ndarray:
    """Return bytes with ASCII letters in lower case."""
    return np.where((codes >= ord("A")) & (codes <= ord("Z")), codes | _LETTER_CASE, codes)


def _folded(codes: np.ndarray) -> np.ndarray:
    """Return code points as ClickHouse compares them without case: their bytes in UTF-8, less some bits.

    Each byte loses bit 5, and the first one of several also bit 0; uint32."""
    points = codes.astype(np.uint32)
    surrogate = (points >= 0xDC80) & (points <= 0xDCFF)  # a byte that is no UTF-8
    sizes = 1 + (points >= 0x80).astype(np.uint32) + (points >= 0x800) + (points >= 0x10000)
    heads = np.array([0, 0, 0xC0, 0xE0, 0xF0], np.uint32)[sizes]
    folded = (heads | (points >> (6 * (sizes - 1)))) & np.uint32(0xFF & ~_LETTER_CASE)
    folded = np.where(sizes > 1, folded & 0xFE, folded)
    for follower in range(1, 4):
        shift = 6 * np.maximum(sizes.astype(np.int64) - 1 - follower, 0).astype(np.uint32)
        byte = (0x80 | ((points >> shift) & 0x3F)) & np.uint32(0xFF & ~_LETTER_CASE)
        folded = np.where(sizes > follower, (folded << np.uint32(8)) | byte, folded)
    return np.where(surrogate, points & np.uint32(0xFF & ~_LETTER_CASE), folded)


def _comparable(left: Codes, right: Codes, *, utf8: bool, folds: bool) -> tuple[Codes, Codes]:
    """Return both sides with equal codes for characters that are compared as equal."""
    if not folds:
        return left, right
    if not utf8:
        return (_lowered(left[0]), left[1]), (_lowered(right[0]), right[1])
    both = np.concatenate((_folded(left[0]), _folded(right[0])))
    numbers = np.unique(both, return_inverse=True)[1]  # small enough for a key of three
    return (numbers[: len(left[0])], left[1]), (numbers[len(left[0]) :], right[1])


def _pieces(side: Codes, *, utf8: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the n-grams (4 bytes, or with `utf8` 3 characters) of each text as uint64 keys, and their offsets by
    text."""
    size, bits = (_PIECE_CHARACTERS, _CODE_BITS) if utf8 else (_PIECE_BYTES, 8)
    codes, offsets = side[0].astype(np.uint64), side[1]
    starts = max(len(codes) - size + 1, 0)
    keys = np.zeros(starts, np.uint64)
    for place in range(size):
        keys = (keys << np.uint64(bits)) | codes[place : place + starts]
    ends = np.repeat(offsets[1:], np.diff(offsets))[:starts]
    counts = np.maximum(np.diff(offsets) - size + 1, 0)
    return keys[np.arange(starts) + size <= ends], columns.offsets_from_counts(counts)


def _common(left: Codes, right: Codes) -> np.ndarray:
    """Return how many n-grams the texts of each row have in common; int64."""
    if library() is not None:
        return text_pairs.common_keys(left, right)
    rows = np.concatenate([columns.parents_of(offsets) for _, offsets in (left, right)])
    keys = np.concatenate((left[0], right[0]))
    is_left = np.arange(len(keys)) < len(left[0])
    order = order_by(rows, keys)
    rows, keys, is_left = rows[order], keys[order], is_left[order]
    begins = np.ones(len(keys), bool)
    begins[1:] = (rows[1:] != rows[:-1]) | (keys[1:] != keys[:-1])
    starts = np.flatnonzero(begins)
    if not len(starts):
        return np.zeros(len(left[1]) - 1, np.int64)
    of_left = np.add.reduceat(is_left.astype(np.int64), starts)
    least = np.minimum(of_left, np.diff(starts, append=len(keys)) - of_left)
    return np.bincount(rows[starts], least, len(left[1]) - 1).astype(np.int64)


def _kernel(name: str, *, utf8: bool, folds: bool, search: bool) -> scalar.Kernel:
    """Return the kernel of ngramDistance, or with `search` of ngramSearch."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return the distance from 0 (equal) to 1; with `search` the share of the needle's n-grams that the text
        has."""
        texts = [columns.text(array) for array in arrays]
        sizes = [np.diff(columns.bytes_of(text)[0]) for text in texts]
        if call.constants[1] is not None and int(sizes[1].max(initial=0)) > _BYTES_MAX:
            raise TooLargeStringSize(f"The needle of {name} has at most {_BYTES_MAX} bytes.")
        sides = (text_codes(text, utf8=utf8) for text in texts)
        left, right = _comparable(*sides, utf8=utf8, folds=folds)
        first, second = _pieces(left, utf8=utf8), _pieces(right, utf8=utf8)
        common = _common(first, second)
        wanted = np.diff(second[1])
        if search:
            # as ClickHouse: both steps round to Float32
            missing = (wanted - common).astype(np.float32) / np.maximum(wanted, 1).astype(
                np.float32
            )
            result = np.float32(1) - missing
        else:
            total = np.diff(first[1]) + wanted
            result = ((total - 2 * common) / np.maximum(total, 1)).astype(np.float32)
        too_large = np.maximum(*sizes) > _BYTES_MAX
        result = np.where(too_large, np.float32(0 if search else 1), result)
        return columns.from_values(result, pa.float32())

    return kernel


def _definition(kind: str, case: str, utf8: str) -> scalar.ScalarDefinition:
    """Return the definition of the function ngram + `kind` + `case` + `utf8`, one of eight; its kernel takes two texts."""
    name = f"ngram{kind}{case}{utf8}"
    kernel = _kernel(name, utf8=bool(utf8), folds=bool(case), search=kind == "Search")
    return scalar.define(name, text_rule(FLOAT32, 2), kernel, count=2)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = tuple(
    _definition(kind, case, utf8)
    for kind in ("Distance", "Search")
    for case in ("", "CaseInsensitive")
    for utf8 in ("", "UTF8")
)
