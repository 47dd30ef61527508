"""convertCharset and highlight: texts in other character sets, and matches put between tags.

Python is called once for each distinct row.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from olapdb.errors import (
    CannotCreateCharsetConverter,
    IllegalColumn,
    NumberOfArgumentsDoesntMatch,
    UnsupportedMethod,
)
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.strings.arguments import TEXT_TYPES
from olapdb.types import STRING, Array, DataType, String

_KNOWN = frozenset(
    {
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "ascii"),
        *("iso8859-1", "iso8859-2", "iso8859-5", "iso8859-9", "iso8859-15", "koi8-r", "koi8-u"),
    }
)
"""The character sets in which Python and ICU, by which ClickHouse has them, agree on all bytes."""
_MARKED = {"utf-16": codecs.BOM_UTF16_LE, "utf-32": codecs.BOM_UTF32_LE}


def _codec(name: bytes) -> codecs.CodecInfo:
    """Return Python's codec of a character set.

    Raises CannotCreateCharsetConverter if there is none, UnsupportedMethod if it is not known to
    agree with ClickHouse's.
    """
    text = name.decode("utf-8", "replace")
    try:
        info = codecs.lookup(text)
    except LookupError:
        raise CannotCreateCharsetConverter(f"There is no charset {text!r}.") from None
    if info.name not in _KNOWN:
        raise UnsupportedMethod(
            f"convertCharset does not know the charset {text!r}.",
            hint=f"It knows {', '.join(sorted(_KNOWN))}.",
        )
    return info


def _converted(text: bytes, source: bytes, target: bytes) -> bytes:
    """Return a text converted from the character set `source` to `target`; a character that `target` lacks becomes
    byte 26."""
    reader, writer = _codec(source), _codec(target)
    decoded = reader.decode(text, "replace")[0]
    if writer.name in _MARKED:
        marked = _MARKED[writer.name] if decoded else b""
        return marked + decoded.encode(f"{writer.name}-le", "replace")
    try:
        return writer.encode(decoded, "strict")[0]
    except UnicodeEncodeError:
        return b"".join(_encoded(letter, writer) for letter in decoded)


def _encoded(letter: str, writer: codecs.CodecInfo) -> bytes:
    """Return one character's bytes in the writer's character set, byte 26 if the set lacks it."""
    try:
        return writer.encode(letter, "strict")[0]
    except UnicodeEncodeError:
        return b"\x1a"


def _highlighted(
    text: bytes, needles: list[bytes], opening: bytes = b"<em>", closing: bytes = b"</em>"
) -> bytes:
    """Return a text with each match of any needle, in any case of ASCII, between the tags `opening` and `closing`.

    Matches that overlap or touch become one."""
    lowered = text.lower()
    covered = bytearray(len(text))
    for needle in needles:
        if needle:
            for match in re.finditer(b"(?=" + re.escape(needle.lower()) + b")", lowered):
                covered[match.start() : match.start() + len(needle)] = b"\1" * len(needle)
    pieces, last = [], 0
    for run in re.finditer(b"\1+", bytes(covered)):
        pieces += [text[last : run.start()], opening, text[run.start() : run.end()], closing]
        last = run.end()
    return b"".join([*pieces, text[last:]])


def _highlight_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return String; raise an error unless a text, a constant array of texts, then two tags."""
    if len(types) == 3:
        raise NumberOfArgumentsDoesntMatch(f"{name} takes 2 or 4 arguments, 3 given.")
    scalar.require(name, types[:1], TEXT_TYPES, "a String")
    scalar.require(name, types[2:], String, "a constant String")
    if not isinstance(types[1], Array) or not isinstance(types[1].inner, String):
        raise scalar.illegal(name, types[1], "a constant Array(String)")
    if any(argument.constant is None for argument in arguments[1:]):
        raise IllegalColumn(f"All arguments of {name} but the first must be constants.")
    return STRING


def _convert_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless all arguments are of type String."""
    scalar.require(name, types, String, "a String")
    return STRING


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    define_by_value("convertCharset", _convert_rule, _converted, count=3),
    define_by_value("highlight", _highlight_rule, _highlighted, count=(2, 4)),
)
