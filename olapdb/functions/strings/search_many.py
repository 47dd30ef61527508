"""Searches for several texts or patterns at once, for subsequences, and counts of matches."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile

import pyarrow as pa

from olapdb.errors import BadArguments, CannotCompileRegexp
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import bytes_of_text, define_by_value, text_of
from olapdb.functions.strings.arguments import TEXT_TYPES, place_rule, text_rule
from olapdb.functions.strings.pattern_limits import limited
from olapdb.functions.strings.search_at_once import (
    all_positions,
    any_match,
    first_index,
    first_position,
    of_constant_needles,
    searching,
)
from olapdb.types import UINT8, UINT64, Array, DataType, Integer, String

_CASES = (("", ""), ("CaseInsensitive", ""), ("", "UTF8"), ("CaseInsensitive", "UTF8"))


@lru_cache(maxsize=256)
def pattern_of(text: bytes, ignore_case: bool = False) -> re.Pattern[str]:
    """Return a compiled regular expression in which `.` matches line breaks too.

    \\w, \\d, \\s and \\b know ASCII alone, as RE2's do, unless the pattern ignores the case.
    Raises CannotCompileRegexp for an invalid pattern.
    """
    folds = ignore_case or b"(?i" in text
    try:
        flags = re.DOTALL | (0 if folds else re.ASCII) | (re.IGNORECASE if ignore_case else 0)
        return re.compile(text_of(text), flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise CannotCompileRegexp(f"The pattern {text_of(text)!r} is invalid: {error}.") from error


def _list_rule(result: DataType, distance: bool = False) -> scalar.TypeRule:
    """Return the type rule of a function of a text, with `distance` an integer, and an array of
    texts."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type; raise IllegalTypeOfArgument for other arguments."""
        scalar.require(name, types[:1], TEXT_TYPES, "a String")
        if distance:
            scalar.require(name, types[1:2], Integer, "an integer")
        last = types[-1]
        if not isinstance(last, Array) or not isinstance(last.inner, String):
            raise scalar.illegal(name, last, "an Array of String")
        return result

    return rule


def _folded(value: bytes, case: str, utf8: str) -> bytes:
    """Return a text as given if `case` is empty; else in lower case: its ASCII letters, or with `utf8` all letters."""
    if not case:
        return value
    return bytes_of_text(text_of(value).lower()) if utf8 else value.lower()


def _positions(case: str, utf8: str) -> Callable[[bytes, list[bytes]], list[int]]:
    """Return the function that finds for each needle its first position, from 1; 0 if it is absent."""

    def positions(haystack: bytes, needles: list[bytes]) -> list[int]:
        """Find all needles in a text: positions from 1 in bytes, or with `utf8` in characters; 0 if absent. An empty
        text contains no needle."""
        if not haystack:
            return [0] * len(needles)
        text = _folded(haystack, case, utf8)
        places = [text.find(_folded(needle, case, utf8)) for needle in needles]
        if utf8:
            places = [p if p < 0 else len(text_of(text[:p])) for p in places]
        return [place + 1 for place in places]

    return positions


def _first_position(case: str, utf8: str) -> Callable[[bytes, list[bytes]], int]:
    """Return the function that finds the leftmost position, from 1, of any needle in a text; 0 if there is none."""
    positions = _positions(case, utf8)
    return lambda haystack, needles: min((p for p in positions(haystack, needles) if p), default=0)


def _first_index(case: str, utf8: str) -> Callable[[bytes, list[bytes]], int]:
    """Return the function that gives the number, from 1, of the first needle in the list that occurs in a text; 0 if
    none does."""
    positions = _positions(case, utf8)

    def index(haystack: bytes, needles: list[bytes]) -> int:
        """Return the number of the first needle with a position."""
        places = positions(haystack, needles)
        return next((at for at, place in enumerate(places, 1) if place), 0)

    return index


def _pattern_of_set(text: bytes) -> re.Pattern[str]:
    """Return a compiled pattern, one of a set; raise BadArguments instead of CannotCompileRegexp for an invalid one."""
    try:
        return pattern_of(text)
    except CannotCompileRegexp as error:
        raise BadArguments(error.message) from error


def _matching(haystack: bytes, patterns: list[bytes]) -> list[int]:
    """Return the numbers, from 1, of the patterns that match, ordered by the end of their first match."""
    text = text_of(haystack)
    matches = [(_pattern_of_set(p).search(text), at) for at, p in enumerate(patterns, 1)]
    ends = sorted((match.end(), at) for match, at in matches if match is not None)
    return [at for _, at in ends]


def _count_matches(*, ignore_case: bool) -> Callable[[bytes, bytes], int]:
    """Return the function that counts the matches of a pattern in a text that are not empty and do not overlap."""

    def count(haystack: bytes, pattern: bytes) -> int:
        """Count the matches in one text that are not empty and do not overlap."""
        compiled, text = pattern_of(pattern, ignore_case), text_of(haystack)
        if compiled.search("") is None:
            return sum(match.end() > match.start() for match in compiled.finditer(text))
        matches = at = 0
        while at < len(text) and (match := compiled.search(text, at)) is not None:
            matches += match.end() > match.start()
            at = match.end() if match.end() > match.start() else at + 1
        return matches

    return count


def _count_until_empty(*, ignore_case: bool) -> Callable[[bytes, bytes], int]:
    """Return the function that counts the matches of a pattern in a text up to the first empty match."""

    def count(haystack: bytes, pattern: bytes) -> int:
        """Count the matches in one text up to the first empty one."""
        all_matches = pattern_of(pattern, ignore_case).finditer(text_of(haystack))
        return sum(1 for _ in takewhile(lambda match: match.end() > match.start(), all_matches))

    return count


def _counting(name: str, *, ignore_case: bool) -> scalar.ScalarDefinition:
    """Define countMatches, which count_matches_stop_at_empty_match changes."""
    rule = text_rule(UINT64, 2)
    stopping = define_by_value(name, rule, _count_until_empty(ignore_case=ignore_case), count=2)
    definition = define_by_value(name, rule, _count_matches(ignore_case=ignore_case), count=2)
    return replace(definition, by_settings=lambda changed: stopping.resolver)


def _matches(*, ignore_case: bool, negated: bool) -> Callable[[bytes, bytes], int]:
    """Return the function that gives 1 if a pattern matches a text, else 0; with `negated` the opposite."""

    def matches(haystack: bytes, pattern: bytes) -> int:
        """Return 1 if the pattern matches the text (with `negated` if not), else 0."""
        is_match = pattern_of(pattern, ignore_case).search(text_of(haystack)) is not None
        return int(is_match != negated)

    return matches


def _count_texts(utf8: str) -> Callable[..., int]:
    """Return the function that counts a needle in a text, ignoring case, from a position on."""

    def count(haystack: bytes, needle: bytes, start: int = 1) -> int:
        """Count the occurrences of a needle from position `start`, from 1, on that do not overlap; 0 for the empty
        needle."""
        text, wanted = _folded(haystack, "any", utf8), _folded(needle, "any", utf8)
        if not wanted or start < 0:
            return 0
        begin = max(start - 1, 0)
        if utf8:
            return text_of(text)[begin:].count(text_of(wanted))
        return text[begin:].count(wanted)

    return count


def _subsequence(case: str, utf8: str) -> Callable[[bytes, bytes], int]:
    """Return the function that gives 1 if a text has the needle's characters in their order, else 0."""

    def contains(haystack: bytes, needle: bytes) -> int:
        """Return 1 if the text has the needle's characters in their order, not necessarily adjacent, else 0."""
        units = iter(text_of(_folded(haystack, case, utf8)))
        return int(all(unit in units for unit in text_of(_folded(needle, case, utf8))))

    return contains


def _position_any_case(haystack: bytes, needle: bytes, start: int = 1) -> int:
    """Return the position, in characters from 1, of the needle in the text from `start` on, ignoring case; 0 if it
    is absent."""
    text, wanted = text_of(haystack).lower(), text_of(needle).lower()
    begin = max(start - 1, 0)
    return 0 if begin > len(text) else text.find(wanted, begin) + 1


def _fuzzy(haystack: bytes, distance: int, patterns: list[bytes]) -> list[int]:
    """Return the numbers, from 1, of the patterns, plain texts, that occur in the text with at most `distance`
    edits."""
    return [
        at for at, p in enumerate(patterns, 1) if _edits(text_of(haystack), text_of(p)) <= distance
    ]


def _edits(text: str, wanted: str) -> int:
    """Return the least number of edits between `wanted` and any piece of the text (Sellers)."""
    row = [0] * (len(text) + 1)
    for at, letter in enumerate(wanted, 1):
        following = [at]
        for to, other in enumerate(text, 1):
            cost = min(row[to] + 1, following[-1] + 1, row[to - 1] + (letter != other))
            following.append(cost)
        row = following
    return min(row)


def _any_of(numbers_of: Callable[..., list[int]]) -> Callable[..., int]:
    """Return a function that gives 1 if `numbers_of` returns any number, else 0."""
    return lambda *values: int(bool(numbers_of(*values)))


def _first_of(numbers_of: Callable[..., list[int]]) -> Callable[..., int]:
    """Return a function that gives the first number that `numbers_of` returns, or 0."""
    return lambda *values: next(iter(numbers_of(*values)), 0)


def _any_match(texts: pa.Array, patterns: list[str]) -> pa.Array:
    """Return whether any pattern matches each text. Raises BadArguments for an invalid one."""
    for pattern in patterns:
        _pattern_of_set(bytes_of_text(pattern))
    return any_match(texts, patterns)


_INDICES = Array(UINT64)
_TWO_TEXTS = text_rule(UINT8, 2)

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(
        scalar.define(
            f"multiSearch{kind}{case}{utf8}",
            _list_rule(result),
            of_constant_needles(searching(case, utf8, join), make(case, utf8)),
            count=2,
        )
        for kind, result, make, join in (
            ("AllPositions", _INDICES, _positions, all_positions),
            ("FirstPosition", UINT64, _first_position, first_position),
            ("FirstIndex", UINT64, _first_index, first_index),
        )
        for case, utf8 in _CASES
    ),
    *map(
        limited,
        (
            scalar.define(
                "multiMatchAny",
                _list_rule(UINT8),
                of_constant_needles(_any_match, _any_of(_matching)),
                count=2,
            ),
            define_by_value(
                "multiMatchAnyIndex", _list_rule(UINT64), _first_of(_matching), count=2
            ),
            define_by_value("multiMatchAllIndices", _list_rule(_INDICES), _matching, count=2),
            define_by_value(
                "multiFuzzyMatchAny", _list_rule(UINT8, True), _any_of(_fuzzy), count=3
            ),
            define_by_value(
                "multiFuzzyMatchAnyIndex", _list_rule(UINT64, True), _first_of(_fuzzy), count=3
            ),
            define_by_value(
                "multiFuzzyMatchAllIndices", _list_rule(_INDICES, True), _fuzzy, count=3
            ),
        ),
    ),
    _counting("countMatches", ignore_case=False),
    _counting("countMatchesCaseInsensitive", ignore_case=True),
    define_by_value(
        "matchCaseInsensitive", _TWO_TEXTS, _matches(ignore_case=True, negated=False), count=2
    ),
    define_by_value("notMatch", _TWO_TEXTS, _matches(ignore_case=False, negated=True), count=2),
    define_by_value(
        "notMatchCaseInsensitive", _TWO_TEXTS, _matches(ignore_case=True, negated=True), count=2
    ),
    *(
        define_by_value(
            f"countSubstringsCaseInsensitive{utf8}",
            place_rule(UINT64),
            _count_texts(utf8),
            count=(2, 3),
        )
        for utf8 in ("", "UTF8")
    ),
    *(
        define_by_value(
            f"hasSubsequence{case}{utf8}",
            _TWO_TEXTS,
            _subsequence(case, utf8),
            count=2,
            insensitive=True,
        )
        for case, utf8 in _CASES
    ),
    define_by_value(
        "positionCaseInsensitiveUTF8", place_rule(UINT64), _position_any_case, count=(2, 3)
    ),
)
