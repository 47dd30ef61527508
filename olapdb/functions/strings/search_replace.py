"""Strings: where something is in them, whether they match, what replaces it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, CannotCompileRegexp
from olapdb.functions.kernels import columns, slices
from olapdb.functions.scalar import Invocation, Kernel, ScalarDefinition, define
from olapdb.functions.strings.arguments import DOT_MATCHES_ALL, TO_THE_END, integers, text_rule
from olapdb.types import STRING, UINT8, UINT64


def _position(*, utf8: bool = False, ignore_case: bool = False, swapped: bool = False) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        haystack, needle = (columns.text(a) for a in (arrays[:2][::-1] if swapped else arrays[:2]))
        if ignore_case:
            haystack, needle = pc.utf8_lower(haystack), pc.utf8_lower(needle)
        skipped = np.zeros(len(haystack), np.int64)
        beyond = np.zeros(len(haystack), bool)
        if len(arrays) > 2:
            skipped = np.maximum(integers(arrays[2]) - 1, 0)
            beyond = skipped > slices.lengths_of(haystack, utf8=utf8)
            haystack = slices.pieces(
                haystack, skipped, np.full(len(haystack), TO_THE_END), utf8=utf8
            )
        found = slices.find(haystack, needle)
        if utf8:
            before = slices.pieces(
                haystack, np.zeros(len(haystack), np.int64), np.maximum(found, 0)
            )
            found = np.where(found < 0, found, slices.lengths_of(before, utf8=True))
        found = np.where(found < 0, 0, found + 1 + skipped)
        return columns.from_values(np.where(beyond, 0, found), pa.uint64())

    return kernel


def _prefix(*, end: bool) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        array, affix = (columns.text(a) for a in arrays)
        size, wanted = slices.lengths_of(array), slices.lengths_of(affix)
        start = size - wanted if end else np.zeros(len(array), np.int64)
        piece = slices.pieces(array, np.maximum(start, 0), wanted)
        same = np.asarray(pc.equal(columns.binary(piece), columns.binary(affix))) & (wanted <= size)
        return columns.from_values(same, pa.uint8())

    return kernel


def _matching(function: Callable[[pa.Array, str], pa.Array], *, negated: bool = False) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        found = slices.per_value(
            [columns.text(a) for a in arrays], (1,), lambda o, v: function(o[0], v[0])
        )
        return columns.from_values(np.asarray(found) != negated, pa.uint8())

    return kernel


def _regex(array: pa.Array, pattern: str) -> pa.Array:
    try:
        return pc.match_substring_regex(array, DOT_MATCHES_ALL + pattern)
    except pa.ArrowInvalid as error:
        raise CannotCompileRegexp(
            f"The regular expression {pattern!r} is wrong: {error}."
        ) from None


def _like(array: pa.Array, pattern: str) -> pa.Array:
    return pc.match_like(array, pattern)


def _ilike(array: pa.Array, pattern: str) -> pa.Array:
    return pc.match_like(array, pattern, ignore_case=True)


def _count_substrings(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    def one(others: list[pa.Array], needles: list[str]) -> pa.Array:
        if not needles[0]:
            return columns.from_values(np.zeros(len(others[0]), np.int64), pa.uint64())
        return pc.count_substring(others[0], needles[0]).cast(pa.uint64())

    return slices.per_value([columns.text(a) for a in arrays], (1,), one)


def _replacing(function: Callable[[pa.Array, str, str], pa.Array]) -> Kernel:
    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        texts = [columns.text(a) for a in arrays]
        return slices.per_value(texts, (1, 2), lambda others, values: function(others[0], *values))

    return kernel


def _replace_all(array: pa.Array, old: str, new: str) -> pa.Array:
    return pc.replace_substring(array, old, new) if old else array


def _replace_one(array: pa.Array, old: str, new: str) -> pa.Array:
    return pc.replace_substring(array, old, new, max_replacements=1) if old else array


def _replace_regex(count: int | None) -> Callable[[pa.Array, str, str], pa.Array]:
    def function(array: pa.Array, pattern: str, new: str) -> pa.Array:
        if not pattern:
            return array
        try:
            return pc.replace_substring_regex(
                array, DOT_MATCHES_ALL + pattern, new, max_replacements=count
            )
        except pa.ArrowInvalid as error:
            raise BadArguments(f"The regular expression {pattern!r} is wrong: {error}.") from None

    return function


_SEARCH, _POSITION = text_rule(UINT8, 2), text_rule(UINT64, 2)

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
    define("startsWith", _SEARCH, _prefix(end=False), count=2),
    define("endsWith", _SEARCH, _prefix(end=True), count=2),
    define("like", _SEARCH, _matching(_like), count=2),
    define("notLike", _SEARCH, _matching(_like, negated=True), count=2),
    define("ilike", _SEARCH, _matching(_ilike), count=2),
    define("notILike", _SEARCH, _matching(_ilike, negated=True), count=2),
    define(
        "match", _SEARCH, _matching(_regex), count=2, aliases=("REGEXP_MATCHES",), insensitive=True
    ),
    define("countSubstrings", text_rule(UINT64, 2), _count_substrings, count=2, insensitive=True),
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
