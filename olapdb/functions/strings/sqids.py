"""sqidEncode and sqidDecode: short identifiers of lists of numbers.

Source: the specification of Sqids, https://sqids.org. Python is called once for each distinct row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.strings.arguments import text_rule
from olapdb.functions.strings.sqid_words import blocked_words
from olapdb.types import STRING, UINT64, Array, DataType, Integer

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_WHOLE_WORD = 3
"""The letters of a word that is refused only as the whole identifier."""
_WORD_MASK = (1 << 64) - 1


def _shuffled(letters: str) -> str:
    """Return the letters in an order that depends on them alone."""
    places = list(letters)
    size = len(places)
    for at, back in enumerate(range(size - 1, 0, -1)):
        other = (at * back + ord(places[at]) + ord(places[back])) % size
        places[at], places[other] = places[other], places[at]
    return "".join(places)


_ALPHABET = _shuffled(_LETTERS)


@cache
def _blocked() -> re.Pattern[str]:
    """Return the pattern of identifiers that contain a blocked word; a word with digits counts at
    either end only."""
    words = sorted(blocked_words())
    short = [word for word in words if len(word) == _WHOLE_WORD]
    long = [word for word in words if len(word) > _WHOLE_WORD]
    at_ends = "|".join(word for word in long if re.search("[0-9]", word))
    anywhere = "|".join(word for word in long if not re.search("[0-9]", word))
    # an identifier of three letters is compared as a whole only
    return re.compile(
        rf"^(?:{'|'.join(short)})$|^(?=.{{4}})(?:(?:{at_ends})|.*(?:{anywhere})|.*(?:{at_ends})$)"
    )


def _encoded(*numbers: int) -> bytes:
    """Return the identifier of the numbers: the first attempt that contains no blocked word."""
    size = len(_ALPHABET)
    base = sum(ord(_ALPHABET[number % size]) + at for at, number in enumerate(numbers))
    for attempt in range(size + 1):
        offset = (base + len(numbers) + attempt) % size
        letters = (_ALPHABET[offset:] + _ALPHABET[:offset])[::-1]
        identifier = letters[-1]
        for at, number in enumerate(numbers):
            if at:
                identifier += letters[0]
                letters = _shuffled(letters)
            identifier += _digits(number, letters[1:])
        if not _blocked().search(identifier.lower()):
            return identifier.encode()
    return b""


def _digits(number: int, letters: str) -> str:
    """Return the digits of a number in the positional system whose digits are `letters`."""
    digits = letters[number % len(letters)]
    while number := number // len(letters):
        digits = letters[number % len(letters)] + digits
    return digits


def _decoded(identifier: bytes) -> list[int]:
    """Return the numbers of an identifier; an empty list for a text that is no identifier."""
    text = identifier.decode("latin-1")
    if not text or any(letter not in _ALPHABET for letter in text):
        return []
    offset = _ALPHABET.index(text[0])
    letters = (_ALPHABET[offset:] + _ALPHABET[:offset])[::-1]
    numbers: list[int] = []
    rest = text[1:]
    while rest:
        digits, _, rest = rest.partition(letters[0])
        if not digits:
            break
        number = 0
        for digit in digits:
            number = number * (len(letters) - 1) + letters.index(digit) - 1
        numbers.append(number & _WORD_MASK)
        letters = _shuffled(letters)
    return numbers


def _encode_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless all arguments are unsigned integers."""
    for data_type in types:
        if not isinstance(data_type, Integer) or data_type.signed:
            raise scalar.illegal(name, data_type, "an unsigned integer")
    return STRING


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    define_by_value("sqidEncode", _encode_rule, _encoded, count=(1, None), aliases=("sqid",)),
    define_by_value("sqidDecode", text_rule(Array(UINT64)), _decoded),
)
