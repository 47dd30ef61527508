"""hasToken and multiSearchAny: whether a string contains a word, or one of several texts."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import columns, slices
from olapdb.functions.kernels.nested import count_marked
from olapdb.types import UINT8, Array, DataType, FixedString, String, make_nullable, plain

_SEPARATOR = r"[\x00-/:-@\[-`{-\x7f]"
"""The characters between words: ASCII that is neither a letter nor a digit."""


def _has_token(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve hasToken(text, word) and its variants: find a constant word between separators or
    ends.

    A word with separators raises BadArguments, or with …OrNull gives NULL.
    """
    if not isinstance(plain(arguments[0].type), String | FixedString):
        raise scalar.illegal(name, arguments[0].type, "a String")
    word = scalar.constant_text(name, arguments, 1, "the word")
    ignore_case = "caseinsensitive" in name.lower()
    pattern = f"(?:^|{_SEPARATOR}){re.escape(_ascii_lower(word) if ignore_case else word)}(?:$|{_SEPARATOR})"
    has_separator = bool(re.search(_SEPARATOR, word))
    if has_separator and not name.lower().endswith("ornull"):
        raise BadArguments(
            f"The word {word!r} of {name} has whitespace or separators in it.",
            hint="position() and LIKE find any text.",
        )

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Search each text for the word; an empty word is in no text."""
        texts = columns.text(arrays[0])
        if not word:
            return columns.from_values(np.zeros(len(texts), bool), pa.uint8())
        if ignore_case:
            texts = pc.ascii_lower(texts)
        # Matched as bytes: a String need not be UTF-8.
        matches = pc.match_substring_regex(columns.binary(texts), pattern)
        return columns.from_values(np.asarray(matches), pa.uint8())

    if has_separator:
        null = pa.scalar(None, pa.uint8())
        return ScalarCall(name, make_nullable(UINT8), lambda v, r, e: null)
    call = scalar.standard_call(name, arguments, UINT8, kernel)
    if name.lower().endswith("ornull"):
        return ScalarCall(name, make_nullable(UINT8), call.kernel)
    return call


def _ascii_lower(word: str) -> str:
    """Return the word with its ASCII letters in lower case."""
    return "".join(c.lower() if c.isascii() else c for c in word)


def _search_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return UInt8; raise IllegalTypeOfArgument unless the arguments are String and Array(String)."""
    if not isinstance(types[0], String):
        raise scalar.illegal(name, types[0], "a String")
    if not isinstance(types[1], Array) or not isinstance(types[1].inner, String):
        raise scalar.illegal(name, types[1], "an Array of String")
    return UINT8


def _any_of(*, utf8: bool = False, folds: bool = False) -> scalar.Kernel:
    """Return the kernel of multiSearchAny: 1 where a string contains one of the needles.

    `folds` ignores the case of ASCII letters, or with `utf8` of all. Every string contains the empty needle."""

    def folded(array: pa.Array) -> pa.Array:
        """Return the texts in lower case if `folds`, else as given."""
        if not folds:
            return array
        return pc.utf8_lower(array) if utf8 else pc.ascii_lower(array)

    def contains(others: list[pa.Array], values: list[str]) -> pa.Array:
        """Return whether each text contains the one needle."""
        needle = values[0].encode("utf-8", "surrogateescape")
        matches = pc.match_substring(columns.binary(others[0]), needle)
        return columns.from_values(np.asarray(matches), pa.uint8())

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return for each row 1 if its text contains any of its needles."""
        texts = folded(columns.text(arrays[0]))
        offsets, elements = columns.elements_of(arrays[1])
        owners = columns.parents_of(offsets)
        needles = folded(columns.text(elements))
        matches = slices.per_value([texts.take(pa.array(owners)), needles], (1,), contains)
        hits = count_marked(offsets, columns.numpy_values(matches) != 0)
        return columns.from_values(hits > 0, pa.uint8())

    return kernel


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(
        scalar.custom(f"hasToken{case}{null}", _has_token, count=2, insensitive=bool(case))
        for case in ("", "CaseInsensitive")
        for null in ("", "OrNull")
    ),
    scalar.define("multiSearchAny", _search_rule, _any_of(), count=2),
    scalar.define("multiSearchAnyUTF8", _search_rule, _any_of(utf8=True), count=2),
    scalar.define("multiSearchAnyCaseInsensitive", _search_rule, _any_of(folds=True), count=2),
    scalar.define(
        "multiSearchAnyCaseInsensitiveUTF8", _search_rule, _any_of(utf8=True, folds=True), count=2
    ),
)
