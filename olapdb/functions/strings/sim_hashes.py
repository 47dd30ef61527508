"""SimHash of texts: ngramSimHash, wordShingleSimHash and their kin.

Each piece of a text is hashed by CRC-32C; a bit of the result is set if it is set in most of these.
Python is called once for each distinct text. Source: Charikar, "Similarity estimation techniques
from rounding algorithms" (2002).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from olapdb.errors import ArgumentOutOfBound
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.strings.encodings import crc_table
from olapdb.types import UINT64, DataType, Integer, String

_TABLE = crc_table(0x82F63B78)
_WORD = re.compile(rb"[0-9A-Za-z\x80-\xff]+")
_CHARACTER = re.compile(rb"[\x00-\xff][\x80-\xbf]*", re.DOTALL)
_SHORTEST_WORD = 4
_ALL_BITS = (1 << 64) - 1
_MOST = 25


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


def _of_grams(*, utf8: bool, fold: bool) -> Callable[..., int]:
    """Return ngramSimHash over bytes, or over characters of UTF-8 from the second on."""

    def simhash(text: bytes, size: int = 3) -> int:
        """Return the hash of one text."""
        units = _CHARACTER.findall(text) if utf8 else [bytes([byte]) for byte in text]
        if len(units) < size:
            return _hashed(text, fold=fold)
        places = range(1 if utf8 else 0, len(units) - size + 1)
        return _majority([_hashed(b"".join(units[p : p + size]), fold=fold) for p in places])

    return simhash


def _of_words(*, fold: bool) -> Callable[..., int]:
    """Return wordShingleSimHash: over runs of words of at least four bytes."""

    def simhash(text: bytes, size: int = 3) -> int:
        """Return the hash of one text."""
        words = [word for word in _WORD.findall(text) if len(word) >= _SHORTEST_WORD]
        if not words:
            return 0
        places = range(max(len(words) - size, 0) + 1)
        return _majority([_hashed(b"".join(words[p : p + size]), fold=fold) for p in places])

    return simhash


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return UInt64; raise IllegalTypeOfArgument or
    ArgumentOutOfBound unless a text, then a constant size of 1 to 25."""
    scalar.require(name, types[:1], String, "a String")
    scalar.require(name, types[1:], Integer, "an integer")
    if len(arguments) > 1:
        if arguments[1].constant is None:
            raise scalar.illegal(name, types[1], "a constant integer")
        if not 1 <= arguments[1].constant.as_py() <= _MOST:
            raise ArgumentOutOfBound(f"The second argument of {name} is 1 to {_MOST}.")
    return UINT64


_FORMS = (
    ("", False, False),
    ("CaseInsensitive", False, True),
    ("UTF8", True, False),
    ("CaseInsensitiveUTF8", True, True),
)

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(
        define_by_value(f"ngramSimHash{name}", _rule, _of_grams(utf8=utf8, fold=fold), count=(1, 2))
        for name, utf8, fold in _FORMS
    ),
    *(
        define_by_value(f"wordShingleSimHash{name}", _rule, _of_words(fold=fold), count=(1, 2))
        for name, _, fold in _FORMS
    ),
)
