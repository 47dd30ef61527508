"""sparseGrams: the runs of characters of a text that are rare enough to be worth finding.

A run counts if the hashes of its two end n-grams, each a character shorter than the shortest run,
are above those of all n-grams between them (ClickHouse, src/Functions/sparseGramsImpl.h; the idea is
GitHub's code search). Which runs count follows from the run alone, so a text has all of any text
that it contains.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from olapdb.errors import BadArguments
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels.by_value import by_value
from olapdb.functions.strings.encodings import crc_table
from olapdb.types import STRING, UINT32, Array, DataType, Integer, String

_LENGTHS = (3, 100)
"""The shortest and the longest run, if nothing is said."""
_CRC32C = crc_table(0x82F63B78)


def sparse_grams(
    text: bytes, shortest: int, longest: int, kept: int, encoding: str = "utf-8"
) -> list[bytes]:
    """Return the sparse n-grams of a text that have `kept` to `longest` characters, in the order of their
    ends: the runs whose ends, `shortest` - 1 characters each, have higher hashes than all that are
    between.

    `encoding` latin-1 makes each byte a character.
    """
    characters = text.decode(encoding, "surrogateescape")
    size = shortest - 1
    runs: list[tuple[int, int]] = []
    hull: list[tuple[int, int]] = []
    """(place, hash) of the n-grams after which none has a higher hash."""
    for place in range(len(characters) - size + 1):
        gram = characters[place : place + size].encode(encoding, "surrogateescape")
        hashed = _hash(gram)
        end = place + size
        while hull and hull[-1][1] < hashed:
            if end - hull[-1][0] > longest:
                hull.clear()
                break
            runs.append((hull.pop()[0], end))
        if hull and end - hull[-1][0] <= longest:
            runs.append((hull[-1][0], end))
        while hull and hull[-1][1] == hashed:
            hull.pop()
        hull.append((place, hashed))
    return [
        characters[start:end].encode(encoding, "surrogateescape")
        for start, end in runs
        if end - start >= kept
    ]


@lru_cache(maxsize=1 << 16)
def _hash(text: bytes) -> int:
    """Return CRC-32C of words of 8 bytes, the last one with its length (ClickHouse's
    updateWeakHash32, src/Common/HashTable/Hash.h)."""
    size = len(text)
    if size < 8:
        words = text.ljust(7, b"\0") + bytes([size])
    else:
        tail = size % 8
        words = text[: size - tail]
        if tail:
            words += bytes([tail]).ljust(8 - tail, b"\0") + text[size - tail :]
    crc = 0
    for byte in words:
        crc = (crc >> 8) ^ _CRC32C[(crc ^ byte) & 0xFF]
    return crc


def _define(name: str, encoding: str, *, hashed: bool) -> scalar.ScalarDefinition:
    """Define sparseGrams(text[, shortest[, longest[, least]]]) or the hashes of its runs."""

    def resolve(spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; all arguments but the text are constants."""
        rule = _Rule(arguments)
        result = Array(UINT32 if hashed else STRING)

        def runs(text: bytes, *_: object) -> list[bytes] | list[int]:
            """Return the sparse grams of a text, or with `hashed` their hashes."""
            grams = sparse_grams(text, *rule.lengths, encoding=encoding)
            return [_hash(run) for run in grams] if hashed else grams

        return scalar.standard_call(spelt, arguments, rule.check(result), by_value(runs))

    return scalar.custom(name, resolve, count=(1, 4))


class _Rule:
    """The checks of the arguments; the type rule that `check` returns sets `lengths`."""

    def __init__(self, arguments: Sequence[Argument]) -> None:
        """Keep the arguments of the call, whose constants give the lengths."""
        self.lengths: tuple[int, int, int] = (*_LENGTHS, _LENGTHS[0])

    def check(self, result: DataType) -> scalar.TypeRule:
        """Return the type rule, with the type `result`, that sets `lengths` from the constants.

        It raises IllegalTypeOfArgument and IllegalColumn unless a String, then constant integers are given,
        BadArguments for lengths in the wrong order."""

        def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
            """Check the arguments, keep their lengths in `lengths`, and return the result's type.

            Raises IllegalTypeOfArgument, IllegalColumn and BadArguments."""
            scalar.require(name, types[:1], String, "a String")
            scalar.require(name, types[1:], Integer, "an integer")
            given = [
                scalar.constant_integer(name, arguments, at, "a length") % (1 << 64)
                for at in range(1, len(types))
            ]
            shortest = given[0] if given else _LENGTHS[0]
            longest = given[1] if len(given) > 1 else _LENGTHS[1]
            kept = given[2] if len(given) > 2 else shortest
            if not _LENGTHS[0] <= shortest <= kept <= longest:
                raise BadArguments(
                    f"The lengths of {name}: {_LENGTHS[0]} <= {shortest} <= {kept} <= {longest} does"
                    " not hold.",
                    hint=f"{name}(text, shortest, longest, least that is returned).",
                )
            self.lengths = (shortest, longest, kept)
            return result

        return rule


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    _define("sparseGrams", "latin-1", hashed=False),
    _define("sparseGramsUTF8", "utf-8", hashed=False),
    _define("sparseGramsHashes", "latin-1", hashed=True),
    _define("sparseGramsHashesUTF8", "utf-8", hashed=True),
)
