"""Functions of whole texts: normal forms of Unicode, validity, entities, soundex and sorting keys."""

from __future__ import annotations

import html
import re
import sys
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns, slices
from olapdb.functions.kernels.by_value import define_by_value, on_text
from olapdb.functions.strings.arguments import TEXT_TYPES, text_rule
from olapdb.types import STRING, UINT8, DataType, Integer


def _is_ascii(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return whether all bytes of each text are below 128."""
    offsets, data = columns.bytes_of(columns.binary(arrays[0]))
    high = np.concatenate(([0], np.cumsum(data >= 128)))
    return columns.from_values(high[offsets[1:]] == high[offsets[:-1]], pa.uint8())


def _is_utf8(value: bytes) -> int:
    """Return whether the bytes are UTF-8."""
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return 0
    return 1


def _to_utf8(value: bytes) -> bytes:
    """Return the bytes with each run of invalid UTF-8 replaced by U+FFFD."""
    marked = value.decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]+", "\ufffd", marked).encode()


def _normalizer(form: str) -> Callable[[str], str]:
    """Return the function that brings text into a normal form of Unicode: NFC, NFD, NFKC, NFKD."""

    def normalized(text: str) -> str:
        """Return the text in the normal form."""
        return unicodedata.normalize(form, text)  # type: ignore[arg-type]

    return normalized


def _without_marks(text: str) -> str:
    """Return the text without accents: decomposed, without combining marks, and composed."""
    parts = unicodedata.normalize("NFD", text)
    kept = "".join(c for c in parts if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", kept)


def _folded_form(text: str) -> str:
    """Return the text in the compatibility form of Unicode, with its case folded."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _initials(text: str) -> str:
    """Return the text with the first letter of each word in upper case and its other letters in lower case.

    Words are made of letters and digits. A sigma at a word's end is written as any other, and a letter whose capital
    is several letters stays."""

    def cased(match: re.Match[str]) -> str:
        """Return a word with its first letter as a capital."""
        word = match.group(0)
        capital = word[:1].upper()
        return (capital if len(capital) == 1 else word[:1]) + word[1:].replace("Σ", "σ").lower()

    return re.sub(r"[^\W_]+", cased, text)


_SOUNDEX = dict(zip("BFPVCGJKQSXZDTLMNR", "111122222222334556"))


def _soundex(text: str) -> str:
    """Return the Soundex code of a text: its first letter and three digits of sounds."""
    letters = [c for c in text.upper() if "A" <= c <= "Z"]
    if not letters:
        return "0000"
    code, last = letters[0], _SOUNDEX.get(letters[0], "")
    for letter in letters[1:]:
        if letter in "HW":
            continue
        digit = _SOUNDEX.get(letter, "")
        if digit and digit != last:
            code += digit
        last = digit
    return (code + "000")[:4]


def _decode_html(text: str) -> str:
    """Return the text with the entities of HTML, by name or number, replaced."""

    def replaced(match: re.Match[str]) -> str:
        """Return the characters of one entity, or the entity if it is unknown."""
        name = match.group(1)
        return _numbered(match) if name.startswith("#") else html.unescape(match.group(0))

    return re.sub(r"&(#\d+|#[xX][0-9a-fA-F]+|\w+);", replaced, text)


def _numbered(match: re.Match[str]) -> str:
    """Return the character of an entity by number; the entity for a number above those of Unicode.

    A half of a surrogate pair becomes its three bytes, each of which a lone surrogate stands for."""
    digits = match.group(1)[1:]
    code = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
    if code > sys.maxunicode:
        return match.group(0)
    return chr(code).encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")


_XML_NAMES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


def _decode_xml(text: str) -> str:
    """Return the text with the five entities of XML, and those by number, replaced."""

    def replaced(match: re.Match[str]) -> str:
        """Return the character of one entity, or the entity if it is unknown."""
        name = match.group(1)
        if name in _XML_NAMES:
            return _XML_NAMES[name]
        return _numbered(match) if name.startswith("#") else match.group(0)

    return re.sub(r"&(#\d+|#[xX][0-9a-fA-F]+|\w+);", replaced, text)


def _encode_xml(text: str) -> str:
    """Return the text with the five special characters of XML as entities."""
    for name, character in (("amp", "&"), ("lt", "<"), ("gt", ">"), ("quot", '"'), ("apos", "'")):
        text = text.replace(character, f"&{name};")
    return text


_HTML_DROPPED = re.compile(
    r"(?is)<!--.*?-->|<(script|style)\b[^>]*>.*?</\1\s*>|<!\[CDATA\[(.*?)\]\]>|</?[^>]*>"
)


def _text_of_html(text: str) -> str:
    """Return the text of HTML without tags, comments, scripts and styles; each run of whitespace
    becomes one blank, and CDATA stays."""
    plain_text = _HTML_DROPPED.sub(lambda m: f" {m.group(2)} " if m.group(2) else " ", text)
    return " ".join(plain_text.split())


def _length_key(length: int) -> str:
    """Return the start of the sort key of a number with `length` digits: longer numbers sort later, as in ClickHouse."""
    if length <= 8:
        return str(length - 1)
    if length <= 18:
        return f"8{length - 9}"
    if length <= 27:
        return f"9{length - 19}"
    return f"9{length - 1}" if length <= 99 else f"999{len(str(length))}{length}"


def _natural_key(text: str) -> str:
    """Return a sorting key in which numbers within texts compare by value: each run of digits follows a code of its
    length without leading zeros."""

    def keyed(match: re.Match[str]) -> str:
        """Return one number with its length in front."""
        digits = match.group(0).lstrip("0") or "0"
        return _length_key(len(digits)) + digits

    return re.sub(r"\d+", keyed, text)


def _base_name(value: bytes) -> bytes:
    """Return the text behind the last slash or backslash."""
    return re.split(rb"[/\\]", value)[-1]


def _first_line(value: bytes) -> bytes:
    """Return the text before its first line break, which may be of two characters."""
    return re.split(rb"\r\n|\r|\n", value, maxsplit=1)[0]


def _with_trailing(value: bytes, character: bytes) -> bytes:
    """Return the text with `character` at its end; an empty text, and one that ends with it, stay.

    Raises BadArguments unless it is one byte."""
    if len(character) != 1:
        raise BadArguments("The second argument of appendTrailingCharIfAbsent is one character.")
    return value if not value or value.endswith(character) else value + character


_SIGNED = bytes(byte ^ 0x80 for byte in range(256))


def _compare(left: bytes, right: bytes, at_left: int, at_right: int, size: int) -> int:
    """Compare the pieces of `size` bytes from positions `at_left` and `at_right`, counted from 0; return -1, 0 or 1.

    As in ClickHouse bytes are signed: those from 128 on come before all others."""
    first, second = (
        text[at : at + size].translate(_SIGNED) for text, at in ((left, at_left), (right, at_right))
    )
    return (first > second) - (first < second)


def _compare_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return Int8; raise IllegalTypeOfArgument unless two texts and three unsigned integers."""
    scalar.require(name, types[:2], TEXT_TYPES, "a String")
    scalar.require(name, types[2:], Integer, "an unsigned integer")
    for kind in types[2:]:
        if isinstance(kind, Integer) and kind.signed:
            raise scalar.illegal(name, kind, "an unsigned integer")
    return Integer(8, True)


def _affix(*, end: bool, folds: bool, utf8: bool) -> scalar.Kernel:
    """Return the kernel of startsWith, or with `end` of endsWith; `folds` ignores case, of ASCII letters or with
    `utf8` of all."""

    def folded(array: pa.Array) -> pa.Array:
        """Return the texts in lower case if the case does not matter."""
        text = columns.text(array)
        if not folds:
            return text
        return pc.utf8_lower(text) if utf8 else pc.ascii_lower(text)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Compare the end or the beginning of each text with its affix."""
        array, affix = (folded(a) for a in arrays)
        size, affix_size = slices.lengths_of(array), slices.lengths_of(affix)
        start = size - affix_size if end else np.zeros(len(array), np.int64)
        piece = slices.pieces(array, np.maximum(start, 0), affix_size)
        same = np.asarray(pc.equal(columns.binary(piece), columns.binary(affix)))
        return columns.from_values(same & (affix_size <= size), pa.uint8())

    return kernel


_TEXT = text_rule(STRING)
_FUNCTIONS: tuple[tuple[str, Callable[..., str]], ...] = (
    *((f"normalizeUTF8{form}", _normalizer(form)) for form in ("NFC", "NFD", "NFKC", "NFKD")),
    ("normalizeUTF8NFKCCasefold", _folded_form),
    ("caseFoldUTF8", str.casefold),
    ("initcapUTF8", _initials),
    ("decodeHTMLComponent", _decode_html),
    ("decodeXMLComponent", _decode_xml),
    ("encodeXMLComponent", _encode_xml),
    ("extractTextFromHTML", _text_of_html),
)

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(define_by_value(name, _TEXT, on_text(function)) for name, function in _FUNCTIONS),
    define_by_value(
        "removeDiacriticsUTF8", _TEXT, on_text(_without_marks), aliases=("removeAccentsUTF8",)
    ),
    define_by_value("soundex", _TEXT, on_text(_soundex), insensitive=True),
    define_by_value(
        "naturalSortKey",
        _TEXT,
        on_text(_natural_key),
        aliases=("NATURAL_SORT_KEY", "natural_sort_key"),
    ),
    define_by_value("basename", _TEXT, _base_name),
    define_by_value("firstLine", _TEXT, _first_line),
    define_by_value("isValidUTF8", text_rule(UINT8), _is_utf8),
    define_by_value("toValidUTF8", _TEXT, _to_utf8),
    scalar.define(
        "isValidASCII", text_rule(UINT8), _is_ascii, aliases=("isASCII",), insensitive=True
    ),
    define_by_value("appendTrailingCharIfAbsent", text_rule(STRING, 2), _with_trailing, count=2),
    define_by_value("compareSubstrings", _compare_rule, _compare, count=5),
    *(
        scalar.define(
            f"{side}With{case}{utf8}",
            text_rule(UINT8, 2),
            _affix(end=side == "ends", folds=bool(case), utf8=bool(utf8)),
            count=2,
        )
        for side in ("starts", "ends")
        for case, utf8 in (("CaseInsensitive", ""), ("CaseInsensitive", "UTF8"), ("", "UTF8"))
    ),
)
