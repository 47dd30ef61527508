"""SimHash and MinHash of texts: ngramSimHash, wordShingleMinHash and their kin.

Each piece of a text is hashed by CRC-32C. A bit of SimHash is set if it is set in most of these;
MinHash joins the smallest of them, and the largest, as CityHash joins hashes.
Python is called once for each distinct text. Source: Charikar, "Similarity estimation techniques
from rounding algorithms" (2002); Broder, "On the resemblance and
containment of documents" (1997).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from olapdb.errors import ArgumentOutOfBound
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.strings.encodings import crc_table
from olapdb.types import UINT64, DataType, Integer, String, Tuple

_TABLE = crc_table(0x82F63B78)
_WORD = re.compile(rb"[0-9A-Za-z\x80-\xff]+")
_CHARACTER = re.compile(rb"[\x00-\xff][\x80-\xbf]*", re.DOTALL)
_SHORTEST_WORD = 4
_ALL_BITS = (1 << 64) - 1
_MOST = 25
_MULTIPLIER = 0x9DDFEA08EB382D69


def _hashed(piece: bytes, *, fold: bool) -> int:
    """Return CRC-32C without its last inversion; all bits of nothing. `fold`: bit 5 is set."""
    if not piece:
        return _ALL_BITS
    total = 0xFFFFFFFF
    for byte in piece:
        total = _TABLE[(total ^ (byte | 0x20 if fold else byte)) & 0xFF] ^ (total >> 8)
    return total


def _majority(hashes: Sequence[int]) -> int:
    """Return the bits that are set in more than half of the hashes."""
    return sum(1 << bit for bit in range(64) if 2 * sum(h >> bit & 1 for h in hashes) > len(hashes))


def _grams(text: bytes, size: int, *, utf8: bool, fold: bool) -> list[int]:
    """Return the hashes of all pieces of `size` bytes, or of characters from the second on."""
    units = _CHARACTER.findall(text) if utf8 else [bytes([byte]) for byte in text]
    if len(units) < size:
        return [_hashed(text, fold=fold)]
    places = range(1 if utf8 else 0, len(units) - size + 1)
    return [_hashed(b"".join(units[p : p + size]), fold=fold) for p in places]


def _shingles(text: bytes, size: int, *, fold: bool) -> list[int]:
    """Return the hashes of all runs of `size` words of at least four bytes."""
    words = [word for word in _WORD.findall(text) if len(word) >= _SHORTEST_WORD]
    if not words:
        return []
    places = range(max(len(words) - size, 0) + 1)
    return [_hashed(b"".join(words[p : p + size]), fold=fold) for p in places]


def _sim_hash(pieces: Callable[[bytes, int], list[int]]) -> Callable[..., int]:
    """Return the SimHash of a text's pieces."""
    return lambda text, size=3: _majority(pieces(text, size))


def _min_hash(pieces: Callable[[bytes, int], list[int]]) -> Callable[..., dict[str, int]]:
    """Return the MinHash of a text's pieces: of the smallest hashes, and of the largest."""

    def minhash(text: bytes, size: int = 3, count: int = 6) -> dict[str, int]:
        """Return both hashes of one text."""
        ordered = sorted(set(pieces(text, size)))
        return {"1": _joined(ordered[:count][::-1]), "2": _joined(ordered[-count:])}

    return minhash


def _joined(hashes: Sequence[int]) -> int:
    """Return hashes joined one after the other as CityHash does, from 0."""
    total = 0
    for value in hashes:
        first = (total ^ value) * _MULTIPLIER & _ALL_BITS
        first ^= first >> 47
        second = (value ^ first) * _MULTIPLIER & _ALL_BITS
        total = (second ^ second >> 47) * _MULTIPLIER & _ALL_BITS
    return total


def _rule(result: DataType) -> scalar.TypeRule:
    """Return the rule of a text, then constant numbers of 1 to 25."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result; raise IllegalTypeOfArgument or ArgumentOutOfBound for others."""
        scalar.require(name, types[:1], String, "a String")
        for data_type, argument in zip(types[1:], arguments[1:], strict=True):
            unsigned = isinstance(data_type, Integer) and not data_type.signed
            if not unsigned or argument.constant is None:
                raise scalar.illegal(name, data_type, "a constant unsigned integer")
            if not 1 <= argument.constant.as_py() <= _MOST:
                raise ArgumentOutOfBound(f"The numbers that {name} takes are 1 to {_MOST}.")
        return result

    return rule


_FORMS = (
    ("", False, False),
    ("CaseInsensitive", False, True),
    ("UTF8", True, False),
    ("CaseInsensitiveUTF8", True, True),
)

_PAIR = Tuple((UINT64, UINT64))
_PIECES = {
    **{f"ngram{{}}{n}": partial(_grams, utf8=u, fold=f) for n, u, f in _FORMS},
    **{f"wordShingle{{}}{n}": partial(_shingles, fold=f) for n, _, f in _FORMS},
}

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(
        define_by_value(name.format("SimHash"), _rule(UINT64), _sim_hash(pieces), count=(1, 2))
        for name, pieces in _PIECES.items()
    ),
    *(
        define_by_value(name.format("MinHash"), _rule(_PAIR), _min_hash(pieces), count=(1, 3))
        for name, pieces in _PIECES.items()
    ),
)
