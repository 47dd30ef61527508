"""Functions that find, match, count and replace text: position, like, match, replaceAll."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, CannotCompileRegexp, CannotParseEscapeSequence
from olapdb.functions.kernels import columns, regexes, slices
from olapdb.functions.scalar import Invocation, Kernel, ScalarDefinition, define
from olapdb.functions.strings.arguments import (
    DOT_MATCHES_ALL,
    TO_THE_END,
    integers,
    place_rule,
    text_rule,
)
from olapdb.functions.strings.like_patterns import containing, ilike, like
from olapdb.types import STRING, UINT8, UINT64


def _position(*, utf8: bool = False, ignore_case: bool = False, swapped: bool = False) -> Kernel:
    """Return the kernel of position(haystack, needle[, start]): a position from 1, 0 if absent.

    Positions count bytes, or characters with `utf8`. `swapped` takes the needle first, as locate
    does.
    """

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Return the position of each row's first needle at or after its start."""
        haystack, needle = (columns.text(a) for a in (arrays[:2][::-1] if swapped else arrays[:2]))
        if ignore_case:
            haystack, needle = pc.utf8_lower(haystack), pc.utf8_lower(needle)
        start_offset = np.zeros(len(haystack), np.int64)
        beyond = np.zeros(len(haystack), bool)
        if len(arrays) > 2:
            start_offset = np.maximum(integers(arrays[2]) - 1, 0)
            beyond = start_offset > slices.lengths_of(haystack, utf8=utf8)
            haystack = slices.pieces(
                haystack, start_offset, np.full(len(haystack), TO_THE_END), utf8=utf8
            )
        positions = slices.find(haystack, needle)
        if utf8:
            before = slices.pieces(
                haystack, np.zeros(len(haystack), np.int64), np.maximum(positions, 0)
            )
            positions = np.where(positions < 0, positions, slices.lengths_of(before, utf8=True))
        positions = np.where(positions < 0, 0, positions + 1 + start_offset)
        return columns.from_values(np.where(beyond, 0, positions), pa.uint64())

    return kernel


def _matching(function: Callable[[pa.Array, str], pa.Array], *, negated: bool = False) -> Kernel:
    """Return the kernel of like, match and their kin; `function(texts, pattern)` gives booleans.

    `negated` inverts the answers. A third argument is the escape character, in place of the backslash."""

    def match(others: list[pa.Array], constants: list[str]) -> pa.Array:
        """Match texts against one pattern."""
        return function(others[0], constants[0] if len(constants) == 1 else escaped(*constants))

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Match the texts of each distinct pattern together."""
        matches = slices.per_value(
            [columns.text(a) for a in arrays], tuple(range(1, len(arrays))), match
        )
        return columns.from_values(columns.numpy_values(matches) != negated, pa.uint8())

    return kernel


def _literal(character: str) -> str:
    """Return the LIKE pattern that matches one character only."""
    return "\\" + character if character in ("%", "_", "\\") else character


def escaped(pattern: str, escape: str) -> str:
    """Return a LIKE pattern in which `escape` is the escape character, rewritten to escape by a backslash.

    Raises BadArguments if `escape` is not one ASCII character, and CannotParseEscapeSequence if it is last, or
    before a character that needs no escape."""
    if len(escape) != 1 or not escape.isascii():
        raise BadArguments(f"The ESCAPE of LIKE is a single ASCII character, not {escape!r}.")
    if escape == "\\":
        return pattern

    def translated(part: re.Match[str]) -> str:
        """Return one escaped or plain character in the form with a backslash.

        Raises CannotParseEscapeSequence."""
        text = part[0]
        if text[0] != escape:
            return _literal(text) if text == "\\" else text
        if text == escape:
            raise CannotParseEscapeSequence(
                f"Invalid escape sequence at the end of LIKE pattern {pattern!r}.",
                hint=f"Write {escape * 2} for one {escape}.",
            )
        if text[1] not in ("%", "_", escape):
            raise CannotParseEscapeSequence(
                f"Invalid escape sequence {text!r} in LIKE pattern {pattern!r}.",
                hint=f"The escape character stands before %, _ or {escape}.",
            )
        return _literal(text[1])

    return re.sub(f"{re.escape(escape)}.|.", translated, pattern, flags=re.DOTALL)


_PLAIN = r"[\w /,:;=@#&'\"<>!~`%-]+"
"""Regular expressions that match themselves alone."""
_ONCE = r"\^(?!.*[|]|.*\(\?[a-zA-Z-]*m).*"
"""Regular expressions that match at the beginning of a text alone, so at most once. Both are compiled when needed: a
first LIKE needs neither."""


def _regex(array: pa.Array, pattern: str) -> pa.Array:
    """Return whether each text matches a regular expression; raise CannotCompileRegexp for a wrong
    one.
    """
    if re.fullmatch(_PLAIN, pattern, re.ASCII):
        return containing(array, pattern)
    try:
        return pc.match_substring_regex(array, DOT_MATCHES_ALL + pattern)
    except pa.ArrowInvalid as error:
        raise CannotCompileRegexp(
            f"The regular expression {pattern!r} is wrong: {error}."
        ) from None


def _count_substrings(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Count occurrences that do not overlap, 0 for an empty needle: countSubstrings."""

    def count(others: list[pa.Array], needles: list[str]) -> pa.Array:
        """Count the occurrences of one needle in each text."""
        if not needles[0]:
            return columns.from_values(np.zeros(len(others[0]), np.int64), pa.uint64())
        return pc.count_substring(others[0], needles[0]).cast(pa.uint64())

    texts = columns.text(arrays[0])
    if len(arrays) > 2:
        start = np.maximum(integers(arrays[2]) - 1, 0)
        texts = slices.pieces(texts, start, np.full(len(texts), TO_THE_END))
    return slices.per_value([texts, columns.text(arrays[1])], (1,), count)


def _replacing(function: Callable[[pa.Array, str, str], pa.Array]) -> Kernel:
    """Return the kernel of a replacement; `function(texts, old, new)` gives the new texts."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Replace in the texts of each distinct pair of old and new text together."""
        texts = [columns.text(a) for a in arrays]
        return slices.per_value(texts, (1, 2), lambda others, values: function(others[0], *values))

    return kernel


def _replace_all(array: pa.Array, old: str, new: str) -> pa.Array:
    """Replace all occurrences of `old`; an empty one replaces nothing."""
    return pc.replace_substring(array, old, new) if old else array


def _replace_one(array: pa.Array, old: str, new: str) -> pa.Array:
    """Replace the first occurrence of `old`; an empty one replaces nothing."""
    return pc.replace_substring(array, old, new, max_replacements=1) if old else array


def _replace_regex(count: Literal[1] | None) -> Callable[[pa.Array, str, str], pa.Array]:
    """Return the function that replaces `count` matches of a pattern, or all if it is None."""

    def function(array: pa.Array, pattern: str, new: str) -> pa.Array:
        """Replace matches; an empty pattern replaces nothing.

        Raises BadArguments for a wrong pattern.
        """
        if not pattern:
            return array
        # Arrow replaces all matches in half the time that it takes for one.
        most = None if re.fullmatch(_ONCE, pattern, re.DOTALL) else count
        try:
            return regexes.replaced(array, DOT_MATCHES_ALL + pattern, new, max_replacements=most)
        except pa.ArrowInvalid as error:
            raise BadArguments(f"The regular expression {pattern!r} is wrong: {error}.") from None

    return function


_LIKE = text_rule(UINT8, 3)
_SEARCH, _POSITION = text_rule(UINT8, 2), place_rule(UINT64)

DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("position", _POSITION, _position(), count=(2, 3), insensitive=True),
    define("positionUTF8", _POSITION, _position(utf8=True), count=(2, 3)),
    define(
        "positionCaseInsensitive",
        _POSITION,
        _position(ignore_case=True),
        count=(2, 3),
        aliases=("instr",),
        insensitive=True,
    ),
    define("locate", _POSITION, _position(swapped=True), count=(2, 3), insensitive=True),
    define("like", _LIKE, _matching(like), count=(2, 3)),
    define("notLike", _LIKE, _matching(like, negated=True), count=(2, 3)),
    define("ilike", _LIKE, _matching(ilike), count=(2, 3)),
    define("notILike", _LIKE, _matching(ilike, negated=True), count=(2, 3)),
    define(
        "match", _SEARCH, _matching(_regex), count=2, aliases=("REGEXP_MATCHES",), insensitive=True
    ),
    define("countSubstrings", _POSITION, _count_substrings, count=(2, 3), insensitive=True),
    define(
        "replaceAll",
        text_rule(STRING, 3),
        _replacing(_replace_all),
        count=3,
        aliases=("replace",),
        insensitive=True,
    ),
    define("replaceOne", text_rule(STRING, 3), _replacing(_replace_one), count=3),
    define(
        "replaceRegexpAll",
        text_rule(STRING, 3),
        _replacing(_replace_regex(None)),
        count=3,
        aliases=("REGEXP_REPLACE",),
        insensitive=True,
    ),
    define("replaceRegexpOne", text_rule(STRING, 3), _replacing(_replace_regex(1)), count=3),
)
