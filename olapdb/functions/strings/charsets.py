"""convertCharset and highlight: texts in other character sets, and matches put between tags.

Python is called once for each distinct row.
"""

from __future__ import annotations

import codecs
import functools
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
        *(f"iso8859-{part}" for part in (*range(1, 10), 13, 14, 15)),
        *("koi8-r", "koi8-u"),
    }
)
"""The character sets in which Python and ICU, by which ClickHouse has them, agree on all bytes."""
_WINDOWS = frozenset(f"cp{page}" for page in range(1250, 1259))
"""Those in which ICU has letters for bytes that Python leaves undefined."""
_UNDEFINED = "\ufffe"
"""The mark of a byte without a letter in the tables of `codecs.charmap_build`."""
_IGNORED = frozenset(
    {
        *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0x200B, 0x2010),
        *range(0x202A, 0x202F),
        *range(0x2060, 0x2070),
        *range(0xFE00, 0xFE10),
        *range(0xFFF0, 0xFFF9),
        *range(0x1BCA0, 0x1BCA4),
        *range(0x1D173, 0x1D17B),
        *range(0xE0000, 0xE1000),
    }
)
"""The code points without a visible letter, which ICU drops where a character set lacks them."""
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
    if info.name in _WINDOWS:
        return _windows_codec(info.name)
    if info.name not in _KNOWN:
        raise UnsupportedMethod(
            f"convertCharset does not know the charset {text!r}.",
            hint=f"It knows {', '.join(sorted(_KNOWN | _WINDOWS))}.",
        )
    return info


@functools.cache
def _windows_codec(name: str) -> codecs.CodecInfo:
    """Return the codec of a code page of Windows in which undefined bytes below 0xA0 are control characters, as in
    ICU; other undefined bytes stay undefined."""
    decode = codecs.lookup(name).decode
    letters = [decode(bytes([byte]), "replace")[0] for byte in range(256)]
    for byte, letter in enumerate(letters):
        if letter == "\ufffd":
            has_letter = byte < 0xA0 or (name, byte) == ("cp1253", 0xAA)
            letters[byte] = chr(byte) if has_letter else _UNDEFINED
    codes = codecs.charmap_build("".join(letters))
    points = {byte: ord(letter) for byte, letter in enumerate(letters) if letter != _UNDEFINED}

    def encoded(text: str, errors: str = "strict", /) -> tuple[bytes, int]:
        """Encode by the table; "strict" raises UnicodeEncodeError for a letter that it lacks."""
        return codecs.charmap_encode(text, errors, codes)

    def decoded(data: object, errors: str = "strict", /) -> tuple[str, int]:
        """Decode bytes by the table; "replace" gives U+FFFD for an undefined one."""
        assert isinstance(data, bytes)
        return codecs.charmap_decode(data, errors, points)

    return codecs.CodecInfo(encoded, decoded, name=name)


def _converted(text: bytes, source: bytes, target: bytes) -> bytes:
    """Return a text converted from the character set `source` to `target`; a character that `target` lacks becomes
    byte 26, or nothing if it has no visible letter."""
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
    """Return one character's bytes in the writer's character set; where the set lacks it, byte 26, or no byte for a
    character without a visible letter."""
    try:
        return writer.encode(letter, "strict")[0]
    except UnicodeEncodeError:
        return b"" if ord(letter) in _IGNORED else b"\x1a"


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
