"""naiveBayesNgrams: the pieces of a text that a classifier of naive Bayes counts.

Python is called once for each distinct row.
"""

from __future__ import annotations

from collections.abc import Sequence

from olapdb.errors import BadArguments
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import bytes_of_text, define_by_value, text_of
from olapdb.functions.strings.arguments import TEXT_TYPES
from olapdb.types import STRING, Array, DataType, Integer

_SIZE_MAX = 1024
_CODES = {"byte": 0xFF, "codepoint": 0x10FFFF}
"""The greatest code of a mark in the modes in which it is a number."""


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return Array(String); raise IllegalTypeOfArgument unless (text, integer, text[, text, text])."""
    scalar.require(name, (types[0], *types[2:]), TEXT_TYPES, "a String")
    scalar.require(name, types[1:2], Integer, "an integer")
    return Array(STRING)


def _mark(mode: str, text: bytes) -> bytes:
    """Return the mark that pads a text: in words `text` itself, else the byte or character whose number `text` spells.

    Raises BadArguments."""
    if mode not in _CODES:
        return text
    try:
        code = int(text, 16 if text[:2].lower() == b"0x" else 10)
    except ValueError:
        code = -1
    if not 0 <= code <= _CODES[mode]:
        raise BadArguments(
            f"A mark of the mode {mode!r} is a number from 0 to {_CODES[mode]}, not {text_of(text)!r}."
        )
    return bytes([code]) if mode == "byte" else chr(code).encode("utf-8", "surrogatepass")


def _ngrams(
    text: bytes, size: int, mode: bytes, start: bytes | None = None, end: bytes | None = None
) -> list[bytes]:
    """Return all runs of `size` bytes, characters or words, as `mode` says.

    `start` and `end` pad the text with size - 1 marks on either side. Raises BadArguments."""
    if not 1 <= size <= _SIZE_MAX:
        raise BadArguments(f"The size of naiveBayesNgrams is 1 to {_SIZE_MAX}, not {size}.")
    kind = mode.decode("utf-8", "replace")
    match kind:
        case "byte":
            units = [text[at : at + 1] for at in range(len(text))]
        case "codepoint":
            units = [bytes_of_text(character) for character in text_of(text)]
        case "token":
            units = text.split()
        case _:
            raise BadArguments(f"The mode is 'byte', 'codepoint' or 'token', not {kind!r}.")
    if start is not None and end is not None:
        before, behind = _mark(kind, start), _mark(kind, end)
        units = [before] * (size - 1) + units + [behind] * (size - 1)
    between = b" " if kind == "token" else b""
    return [between.join(units[at : at + size]) for at in range(len(units) - size + 1)]


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    define_by_value("naiveBayesNgrams", _rule, _ngrams, count=(3, 5)),
)
