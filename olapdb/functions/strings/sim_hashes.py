"""SimHash and MinHash of texts: ngramSimHash, wordShingleMinHash, ngramMinHashArg and their kin.

Each piece of a text is hashed by CRC-32C. A bit of SimHash is set if it is set in most of these;
MinHash joins the smallest of them, and the largest, as CityHash joins hashes; MinHashArg returns
the pieces that have these hashes.
Python is called once for each distinct text. Source: Charikar, "Similarity estimation techniques
from rounding algorithms" (2002); Broder, "On the resemblance and
containment of documents" (1997).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from olapdb.errors import ArgumentOutOfBound, TooFewArguments, TooManyArguments
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

Piece: TypeAlias = tuple[bytes, int]
"""A piece of a text and its hash."""


def _hashed(piece: bytes, *, fold: bool) -> int:
    """Return CRC-32C of a piece without its last inversion; all 64 bits set for an empty piece. `fold` ignores case:
    bit 5 of each byte is set."""
    if not piece:
        return _ALL_BITS
    total = 0xFFFFFFFF
    for byte in piece:
        total = _TABLE[(total ^ (byte | 0x20 if fold else byte)) & 0xFF] ^ (total >> 8)
    return total


def _majority(hashes: Sequence[int]) -> int:
    """Return the bits that are set in more than half of the hashes: the SimHash."""
    return sum(1 << bit for bit in range(64) if 2 * sum(h >> bit & 1 for h in hashes) > len(hashes))


def _grams(text: bytes, size: int, *, utf8: bool, fold: bool) -> list[Piece]:
    """Return all pieces of `size` bytes with their hashes; with `utf8` of `size` characters, from the second character
    on.

    A text with fewer units is one piece."""
    units = _CHARACTER.findall(text) if utf8 else [bytes([byte]) for byte in text]
    if len(units) < size:
        return [(text, _hashed(text, fold=fold))]
    places = range(1 if utf8 else 0, len(units) - size + 1)
    pieces = (b"".join(units[p : p + size]) for p in places)
    return [(piece, _hashed(piece, fold=fold)) for piece in pieces]


def _shingles(text: bytes, size: int, *, fold: bool) -> list[Piece]:
    """Return all runs of `size` words of at least four bytes, with their hashes.

    A piece is the text from its first word to its last; the hash is of the words alone."""
    spans = [match.span() for match in _WORD.finditer(text)]
    words = [(start, end) for start, end in spans if end - start >= _SHORTEST_WORD]
    if not words:
        return []
    places = range(max(len(words) - size, 0) + 1)
    runs = (words[p : p + size] for p in places)
    return [
        (
            text[run[0][0] : run[-1][1]],
            _hashed(b"".join(text[start:end] for start, end in run), fold=fold),
        )
        for run in runs
    ]


def _sim_hash(pieces: Callable[[bytes, int], list[Piece]]) -> Callable[..., int]:
    """Return a function of (text, size) that gives the SimHash of the text's pieces."""
    return lambda text, size=3: _majority([value for _, value in pieces(text, size)])


def _min_hash(pieces: Callable[[bytes, int], list[Piece]]) -> Callable[..., dict[str, int]]:
    """Return a function of (text, size, count) that gives two hashes of the text: of the `count` smallest hashes of
    its pieces, and of the largest."""

    def minhash(text: bytes, size: int = 3, count: int = 6) -> dict[str, int]:
        """Return both MinHashes of one text by the fields' names."""
        smallest, largest = _extremes(pieces(text, size), count)
        return {
            "1": _joined([value for _, value in smallest]),
            "2": _joined([value for _, value in largest]),
        }

    return minhash


def _min_hash_pieces(
    pieces: Callable[[bytes, int], list[Piece]],
) -> Callable[..., dict[str, dict[str, bytes]]]:
    """Return a function of (text, size, count) that gives the pieces with the `count` smallest hashes, and those
    with the largest."""

    def chosen(text: bytes, size: int = 3, count: int = 6) -> dict[str, dict[str, bytes]]:
        """Return both tuples of pieces of one text; an empty text stands for each piece that is missing."""
        return {
            str(side): {
                str(place): some[place - 1][0] if place <= len(some) else b""
                for place in range(1, count + 1)
            }
            for side, some in enumerate(_extremes(pieces(text, size), count), 1)
        }

    return chosen


def _extremes(pieces: Sequence[Piece], count: int) -> tuple[list[Piece], list[Piece]]:
    """Return the pieces of the `count` smallest hashes, descending, and of the largest, ascending.

    Of several pieces of one hash the first counts."""
    by_hash = {value: piece for piece, value in reversed(pieces)}
    ordered = [(by_hash[value], value) for value in sorted(by_hash)]
    return ordered[:count][::-1], ordered[-count:]


def _joined(hashes: Sequence[int]) -> int:
    """Return one hash of several: each is joined to the hash so far, from 0 on, as CityHash joins."""
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
        """Return the result; raise IllegalTypeOfArgument or ArgumentOutOfBound unless a text and constants of 1 to
        25 are given."""
        scalar.require(name, types[:1], String, "a String")
        for data_type, argument in zip(types[1:], arguments[1:], strict=True):
            unsigned = isinstance(data_type, Integer) and not data_type.signed
            if not unsigned or argument.constant is None:
                raise scalar.illegal(name, data_type, "a constant unsigned integer")
            if not 1 <= argument.constant.as_py() <= _MOST:
                raise ArgumentOutOfBound(f"The numbers that {name} takes are 1 to {_MOST}.")
        return result

    return rule


def _pieces_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type, two tuples of Strings: as many each as the constant third argument says, 6 without it."""
    _rule(_PAIR)(name, types, arguments)
    count = 6
    if len(arguments) > 2 and arguments[2].constant is not None:
        count = arguments[2].constant.as_py()
    texts = Tuple((String(),) * count)
    return Tuple((texts, texts))


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

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = scalar.with_count_errors(
    (
        *(
            define_by_value(name.format("SimHash"), _rule(UINT64), _sim_hash(pieces), count=(1, 2))
            for name, pieces in _PIECES.items()
        ),
        *(
            define_by_value(name.format("MinHash"), _rule(_PAIR), _min_hash(pieces), count=(1, 3))
            for name, pieces in _PIECES.items()
        ),
        *(
            define_by_value(
                name.format("MinHashArg"), _pieces_rule, _min_hash_pieces(pieces), count=(1, 3)
            )
            for name, pieces in _PIECES.items()
        ),
    ),
    few=TooFewArguments,
    many=TooManyArguments,
)
