"""Pieces of texts: n-grams, groups of patterns; texts put together by printf and overlay."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from olapdb.errors import ArgumentOutOfBound, BadArguments
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import bytes_of_text, define_by_value, on_text, text_of
from olapdb.functions.scalar import with_count_errors
from olapdb.functions.strings.arguments import TEXT_TYPES, text_rule
from olapdb.functions.strings.search_many import pattern_of
from olapdb.types import STRING, Array, Boolean, DataType, Float, Integer

_TEXTS = Array(STRING)


def _encoded(texts: Sequence[str | None]) -> list[bytes]:
    """Return texts as bytes; a missing group is empty."""
    return [bytes_of_text(text or "") for text in texts]


def _ngrams(text: bytes, size: int) -> list[bytes]:
    """Return the pieces of `size` characters; raise BadArguments unless it is above 0."""
    if size < 1:
        raise BadArguments("The length of ngrams is at least 1.")
    characters = text_of(text)
    return _encoded([characters[at : at + size] for at in range(len(characters) - size + 1)])


def _alpha_tokens(text: bytes, limit: int = 0) -> list[bytes]:
    """Return the runs of ASCII letters, at most `limit` if it is above 0."""
    words = re.findall(rb"[A-Za-z]+", text)
    return words[:limit] if limit > 0 else words


def _groups_of(pattern: bytes) -> re.Pattern[str]:
    """Return a compiled pattern; raise BadArguments unless it has groups."""
    compiled = pattern_of(pattern)
    if not compiled.groups:
        raise BadArguments(f"There are no groups in the pattern {text_of(pattern)!r}.")
    return compiled


def _all_groups(text: bytes, pattern: bytes) -> list[list[bytes]]:
    """Return the groups of each match that is not empty: one list a match."""
    matches = _groups_of(pattern).finditer(text_of(text))
    return [_encoded(m.groups()) for m in matches if m.end() > m.start()]


def _groups_across(text: bytes, pattern: bytes) -> list[list[bytes]]:
    """Return the matches of each group: one list a group."""
    matches = _all_groups(text, pattern)
    return [[match[at] for match in matches] for at in range(_groups_of(pattern).groups)]


def _first_groups(text: bytes, pattern: bytes) -> list[bytes]:
    """Return the groups of the first match; an empty array without a match."""
    match = _groups_of(pattern).search(text_of(text))
    return _encoded(match.groups()) if match else []


def _regexp_extract(text: bytes, pattern: bytes, index: int | None = None) -> bytes:
    """Return a group of the first match: 0 is the whole, by default the first group if there is
    one. Raises ArgumentOutOfBound."""
    compiled = pattern_of(pattern)
    group = index if index is not None else min(compiled.groups, 1)
    if not 0 <= group <= compiled.groups:
        raise ArgumentOutOfBound(
            f"The index {group} of regexpExtract is not from 0 to {compiled.groups}."
        )
    match = compiled.search(text_of(text))
    return bytes_of_text(match.group(group) or "") if match else b""


def _reverse_pieces(text: bytes, separator: bytes = b".") -> bytes:
    """Return the pieces between separators in reverse order; bytes for an empty separator."""
    return separator.join(reversed(text.split(separator))) if separator else text[::-1]


def _quoted(value: bytes) -> bytes:
    """Return the text with a backslash before each character that a pattern would read."""
    return re.sub(rb"([\\^$.\[\]|()?*+{\-:])", rb"\\\1", value).replace(b"\0", b"\\0")


def _substring_index(text: str, separator: str, count: int) -> str:
    """Return what stands before the separator's occurrence `count`, from the right if it is
    negative."""
    if not separator or not count:
        return ""
    pieces = text.split(separator)
    return separator.join(pieces[:count] if count > 0 else pieces[count:])


def _translated(text: str, source: str, target: str) -> str:
    """Return the text with each character of `source` replaced by that of `target` at its place, or
    dropped if there is none. Raises BadArguments."""
    if len(target) > len(source):
        raise BadArguments(
            "The second and third argument of translate have as many characters, or the third fewer."
        )
    return text.translate({ord(c): target[at : at + 1] for at, c in reversed([*enumerate(source)])})


def _overlaid(
    text: bytes | str, new: bytes | str, offset: int, length: int | None = None
) -> bytes | str:
    """Return the text with `length` units from `offset`, counted from 1 or from the end, replaced."""
    size = len(new) if length is None or length < 0 else length
    start = offset - 1 if offset > 0 else len(text) + offset
    start = min(max(start, 0), len(text))
    if offset == 0:
        start = 0
    return text[:start] + new + text[start + size :]  # type: ignore[operator]


def _printf_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless a text, then texts and numbers."""
    scalar.require(name, types[:1], TEXT_TYPES, "a String")
    scalar.require(name, types[1:], (*TEXT_TYPES, Integer, Float, Boolean), "a String or number")
    return STRING


_SPECIFIER = re.compile(r"%([-+ 0#]*)(\d+)?(?:\.(\d+))?([diouxXeEfFgGaAcs%])")


def _printf(template: bytes, *values: object) -> bytes:
    """Return the template with the values in place of its specifiers, as C's printf.

    Raises BadArguments for a value that does not fit its specifier, or too few values.
    """
    remaining = iter(values)

    def formatted(match: re.Match[str]) -> str:
        """Format the next value by one specifier. Raises BadArguments for one of another kind."""
        flags, width, precision, kind = match.groups()
        if kind == "%":
            return "%"
        value = next(remaining, None)
        if isinstance(value, bytes):
            value = text_of(value)
        if value is None or (isinstance(value, str) != (kind == "s")):
            raise BadArguments(
                f"The argument of printf for {match.group(0)} is missing or of another kind."
            )
        if kind == "F" or kind in "aA":
            kind = "f"
        if kind in "diouxXc" and isinstance(value, float):
            raise BadArguments(f"The argument of printf for {match.group(0)} is not an integer.")
        shape = f"%{flags or ''}{width or ''}{'.' + precision if precision else ''}{'d' if kind == 'u' else kind}"
        return str(shape % value)

    return bytes_of_text(_SPECIFIER.sub(formatted, text_of(template)))


def _on_characters(function: Callable[..., object]) -> Callable[..., bytes]:
    """Return a function of bytes from one of characters; see `on_text`."""
    return on_text(function)  # type: ignore[arg-type]


def _on_bytes(function: Callable[..., str]) -> Callable[..., bytes]:
    """Return a function of bytes from one of strings, where each byte is one character."""

    def call(*values: object) -> bytes:
        """Decode the texts as Latin-1, call, and encode."""
        decoded = [v.decode("latin-1") if isinstance(v, bytes) else v for v in values]
        return function(*decoded).encode("latin-1")

    return call


_NESTED = Array(_TEXTS)

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    define_by_value("ngrams", text_rule(_TEXTS), _ngrams, count=2),
    define_by_value(
        "alphaTokens", text_rule(_TEXTS), _alpha_tokens, count=(1, 2), aliases=("splitByAlpha",)
    ),
    define_by_value(
        "extractAllGroupsVertical",
        text_rule(_NESTED, 2),
        _all_groups,
        count=2,
        aliases=("extractAllGroups",),
    ),
    define_by_value("extractAllGroupsHorizontal", text_rule(_NESTED, 2), _groups_across, count=2),
    define_by_value("extractGroups", text_rule(_TEXTS, 2), _first_groups, count=2),
    define_by_value(
        "regexpExtract",
        text_rule(STRING, 2),
        _regexp_extract,
        count=(2, 3),
        aliases=("REGEXP_EXTRACT", "REGEXP_SUBSTR"),
        insensitive=True,
    ),
    *with_count_errors(
        (
            define_by_value(
                "reverseBySeparator", text_rule(STRING, 2), _reverse_pieces, count=(1, 2)
            ),
        ),
        few=BadArguments,
        many=BadArguments,
    ),
    define_by_value("regexpQuoteMeta", text_rule(STRING), _quoted),
    define_by_value("substringIndexUTF8", text_rule(STRING, 2), on_text(_substring_index), count=3),
    define_by_value("translate", text_rule(STRING, 3), _on_bytes(_translated), count=3),
    define_by_value("translateUTF8", text_rule(STRING, 3), on_text(_translated), count=3),
    define_by_value("overlay", text_rule(STRING, 2), _overlaid, count=(3, 4), insensitive=True),
    define_by_value(
        "overlayUTF8",
        text_rule(STRING, 2),
        _on_characters(_overlaid),
        count=(3, 4),
        insensitive=True,
    ),
    define_by_value("printf", _printf_rule, _printf, count=(1, None)),
)
