"""How alike two texts are: n-grams, Jaccard, Jaro, Hamming and Damerau distances; bytes of a text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from olapdb.functions import scalar
from olapdb.functions.kernels.by_value import define_by_value, text_of
from olapdb.functions.strings.arguments import text_rule
from olapdb.types import FLOAT32, FLOAT64, UINT16, UINT64

Units = Sequence[object]
"""The bytes or the characters of a text."""


def _jaccard(left: bytes | str, right: bytes | str) -> float:
    """Return the share of common units among the distinct units of two texts."""
    first, second = set(left), set(right)
    together = len(first | second)
    return len(first & second) / together if together else 0.0


def _of_texts(function: Callable[[str, str], object]) -> Callable[[bytes, bytes], object]:
    """Return a function of bytes from one of two Python strings."""
    return lambda left, right: function(text_of(left), text_of(right))


def _jaro(left: Units, right: Units) -> float:
    """Return the Jaro similarity: common units near each other, and their transpositions."""
    if not left or not right:
        return 1.0 if not left and not right else 0.0
    reach = max(max(len(left), len(right)) // 2 - 1, 0)
    matched_right = [False] * len(right)
    left_matches = []
    for at, unit in enumerate(left):
        for other in range(max(0, at - reach), min(len(right), at + reach + 1)):
            if not matched_right[other] and right[other] == unit:
                matched_right[other] = True
                left_matches.append(unit)
                break
    if not left_matches:
        return 0.0
    right_matches = [u for u, matched in zip(right, matched_right, strict=True) if matched]
    count = len(left_matches)
    moved = sum(a != b for a, b in zip(left_matches, right_matches, strict=True)) // 2
    return (count / len(left) + count / len(right) + (count - moved) / count) * (1 / 3)


def _jaro_winkler(left: Units, right: Units) -> float:
    """Return the Jaro similarity raised for up to four common first units."""
    similarity = _jaro(left, right)
    prefix = 0
    for first, second in zip(left[:4], right[:4], strict=False):
        if first != second:
            break
        prefix += 1
    return similarity + prefix * 0.1 * (1 - similarity) if similarity > 0.7 else similarity


def _hamming(left: bytes, right: bytes) -> int:
    """Return the number of positions with different bytes; those of the longer text alone differ."""
    differing = sum(a != b for a, b in zip(left, right, strict=False))
    return differing + abs(len(left) - len(right))


def _damerau(left: bytes, right: bytes) -> int:
    """Return the number of edits and swaps of neighbours between two texts (optimal alignment)."""
    before: list[int] = []
    last = list(range(len(right) + 1))
    for at, unit in enumerate(left, 1):
        row = [at]
        for to, other in enumerate(right, 1):
            cost = min(last[to] + 1, row[to - 1] + 1, last[to - 1] + (unit != other))
            if at > 1 and to > 1 and unit == right[to - 2] and left[at - 2] == other:
                cost = min(cost, before[to - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def _byte_entropy(value: bytes) -> float:
    """Return Shannon's entropy of the bytes of a text, in bits."""
    shares = (count / len(value) for count in Counter(value).values())
    return -sum(share * math.log2(share) for share in shares) + 0.0


# --- ngramDistance and ngramSearch: https://github.com/ClickHouse/ClickHouse, FunctionsStringSimilarity


def _hashes(units: bytes | list[str], size: int) -> Counter[object]:
    """Return how often each piece of `size` units occurs."""
    if isinstance(units, bytes):
        return Counter(units[at : at + size] for at in range(len(units) - size + 1))
    return Counter(tuple(units[at : at + size]) for at in range(len(units) - size + 1))


def _folded(character: str) -> str:
    """Return a character as ClickHouse compares it without case: with bits of its bytes cleared."""
    raw = bytearray(character.encode("utf-8", "surrogateescape"))
    for at in range(len(raw)):
        raw[at] &= ~0x20 & 0xFF
    if len(raw) > 1:
        raw[0] &= 0xFE
    return raw.decode("latin-1")


def _ngram_kernel(*, utf8: bool, folds: bool, search: bool) -> Callable[[bytes, bytes], float]:
    """Return ngramDistance, or with `search` ngramSearch, of bytes (4 a piece) or characters (3)."""
    size = 3 if utf8 else 4

    def units(value: bytes) -> bytes | list[str]:
        """Return the bytes or the characters of a text, of which n-grams are made; in one case if `folds`."""
        if not utf8:
            return value.lower() if folds else value
        return [_folded(c) if folds else c for c in text_of(value)]

    def compare(haystack: bytes, needle: bytes) -> float:
        """Return the distance from 0 to 1, or the share of the needle's pieces found."""
        first, second = _hashes(units(haystack), size), _hashes(units(needle), size)
        wanted = second.total()
        if search:
            common = sum(min(count, first[gram]) for gram, count in second.items())
            # as ClickHouse: both steps round to Float32
            missing = np.float32(wanted - common) / np.float32(max(wanted, 1))
            return float(np.float32(1) - missing)
        differing = (first - second).total() + (second - first).total()
        total = first.total() + wanted
        return differing / total if total else 0.0

    return compare


_TWO = text_rule(FLOAT64, 2)
_VARIANTS = (("", ""), ("CaseInsensitive", ""), ("", "UTF8"), ("CaseInsensitive", "UTF8"))

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    define_by_value("stringJaccardIndex", _TWO, _jaccard, count=2),
    define_by_value("stringJaccardIndexUTF8", _TWO, _of_texts(_jaccard), count=2),
    define_by_value("jaroSimilarity", _TWO, _jaro, count=2),
    define_by_value("jaroWinklerSimilarity", _TWO, _jaro_winkler, count=2),
    define_by_value(
        "byteHammingDistance", text_rule(UINT64, 2), _hamming, count=2, aliases=("mismatches",)
    ),
    define_by_value("damerauLevenshteinDistance", text_rule(UINT64, 2), _damerau, count=2),
    define_by_value("stringBytesUniq", text_rule(UINT16), lambda value: len(set(value))),
    define_by_value("stringBytesEntropy", text_rule(FLOAT64), _byte_entropy),
    *(
        define_by_value(
            f"ngram{kind}{case}{utf8}",
            text_rule(FLOAT32, 2),
            _ngram_kernel(utf8=bool(utf8), folds=bool(case), search=kind == "Search"),
            count=2,
        )
        for kind in ("Distance", "Search")
        for case, utf8 in _VARIANTS
    ),
)
