"""ClickHouse's tokenizers: which there are, their parameters, and the tokens that they make.

    splitByNonAlpha              words: runs of ASCII letters, digits and all that is not ASCII
    splitByString(['; ', ','])   what lies between separators, the first that fits wins
    splitByRegexp('x+'[, true])  what lies between matches; with true the matches themselves
    asciiCJK                     runs of ASCII letters and digits; each other character by itself
    ngrams(n)                    all runs of n characters
    sparseGrams(min, max, cut)   longer runs the rarer they are: `sparse_grams`
    array                        the whole text

A text without bytes has no tokens.  Text indexes (`olapdb.storage.text_index`) store tokens, and
the functions tokens, hasAnyTokens, hasAllTokens and hasPhrase compare them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, NotSupportedError
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.by_value import bytes_of_text, text_of
from olapdb.lazy import lazy_modules
from olapdb.records import dataclass

if TYPE_CHECKING:
    from olapdb.functions.strings import search_many, sparse_grams
else:
    search_many, sparse_grams = lazy_modules(
        "olapdb.functions.strings", "search_many", "sparse_grams"
    )

NAMES = {
    "splitByNonAlpha": "splitByNonAlpha",
    "tokenbf_v1": "splitByNonAlpha",
    "splitByString": "splitByString",
    "splitByRegexp": "splitByRegexp",
    "asciiCJK": "asciiCJK",
    "unicodeWord": "asciiCJK",
    "unicode_word": "asciiCJK",
    "ngrams": "ngrams",
    "ngrambf_v1": "ngrams",
    "sparseGrams": "sparseGrams",
    "sparse_grams": "sparseGrams",
    "array": "array",
    "keyword": "array",
    "icu": "icu",
    "keyValuePairs": "keyValuePairs",
}
"""All names of tokenizers, with the one that stands for it."""
REFUSED = ("icu", "keyValuePairs")
"""The tokenizers that are not there."""
_PARAMETERS_MAX = {"ngrams": 1, "splitByString": 1, "sparseGrams": 3, "splitByRegexp": 2}
_IN_LIKE = frozenset(("splitByNonAlpha", "asciiCJK", "ngrams", "sparseGrams"))
_NGRAM_DEFAULT = 3
_GRAM_MIN, _GRAM_MAX = 3, 100
_WORDS = re.compile(rb"[0-9A-Za-z\x80-\xff]+")
_IS_WORD = np.zeros(256, bool)
_IS_WORD[[*b"0123456789", *range(65, 91), *range(97, 123), *range(128, 256)]] = True
_CJK_TOKEN = re.compile(
    rb"[A-Za-z0-9_](?:[A-Za-z0-9_]|(?<=[A-Za-z])[:.'](?=[A-Za-z])|(?<=[0-9])[.'](?=[0-9]))*"
    rb"|[\x80-\xff][\x80-\xbf]*"
)
_CJK_SEPARATOR = re.compile(rb"[^A-Za-z0-9_:.'\x80-\xff]")


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer with its parameters, all given: lengths, separators or a pattern.

    `name` is a value of NAMES. Two tokenizers that are equal make the same tokens.
    """

    name: str
    parameters: tuple[object, ...] = ()

    @staticmethod
    def of(name: str, arguments: Sequence[object] = ()) -> Tokenizer:
        """Return the tokenizer of a name and arguments: integers, texts (bytes), lists of texts.

        Raises BadArguments for an unknown name and unsuitable arguments, NotSupportedError for icu and
        keyValuePairs.
        """
        known = NAMES.get(name)
        if known is None:
            raise BadArguments(
                f"Unknown tokenizer: {name!r}.",
                hint="It is splitByNonAlpha, splitByString, splitByRegexp, asciiCJK, ngrams,"
                " sparseGrams or array.",
            )
        if len(arguments) > _PARAMETERS_MAX.get(known, 0) and known != "icu":
            raise BadArguments(
                f"Tokenizer {known} accepts at most {_PARAMETERS_MAX.get(known, 0)} parameters, but"
                f" got {len(arguments)}."
            )
        match known:
            case "icu" if not arguments:
                raise BadArguments("Tokenizer icu requires a locale, as in icu('en').")
            case "icu":
                raise NotSupportedError(
                    "Tokenizer icu is not supported.", hint="asciiCJK splits texts of any language."
                )
            case "keyValuePairs":
                raise NotSupportedError(
                    "Tokenizer keyValuePairs does not tokenize texts: its tokens are pairs of a Map.",
                    hint="Use two indexes, over mapKeys and mapValues.",
                )
            case "ngrams":
                return Tokenizer(known, (_ngram_size(arguments),))
            case "sparseGrams":
                return Tokenizer(known, _gram_lengths(arguments))
            case "splitByString":
                return Tokenizer(known, (_separators(arguments),))
            case "splitByRegexp":
                return Tokenizer(known, _regexp(arguments))
        return Tokenizer(known)

    @staticmethod
    def parse(text: str) -> Tokenizer:
        """Return the tokenizer that a text such as `ngrams(4)` or `splitByString([', '])` denotes.

        Raises BadArguments for malformed text, and the errors of `of`."""
        call = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*(?:\((.*)\))?\s*", text, re.DOTALL)
        arguments = None if call is None else _literals(call.group(2) or "")
        if call is None or arguments is None:
            raise BadArguments(f"Invalid tokenizer definition: {text!r}.")
        return Tokenizer.of(call.group(1), arguments)

    @property
    def text(self) -> str:
        """Return the tokenizer as `parse` reads it, with all its parameters."""
        texts = [_literal(parameter) for parameter in self.parameters]
        return f"{self.name}({', '.join(texts)})" if texts else self.name

    @property
    def reads_fragments(self) -> bool:
        """Return whether `of_fragment` may find tokens: only then can an index help a LIKE pattern."""
        return self.name in _IN_LIKE

    def of_text(self, text: bytes) -> list[bytes]:
        """Return the tokens of one text, in order."""
        if not text:
            return []
        match self.name:
            case "splitByNonAlpha":
                return _WORDS.findall(text)
            case "asciiCJK":
                tokens = _CJK_TOKEN.findall(text)
                return [token for token in tokens if token.strip(b"_")]
            case "splitByString":
                return [piece for piece in self._separator.split(text) if piece]
            case "splitByRegexp":
                return self._by_regexp(text_of(text))
            case "ngrams":
                characters, size = text_of(text), self._size
                grams = (characters[at : at + size] for at in range(len(characters) - size + 1))
                return [bytes_of_text(gram) for gram in grams]
            case "sparseGrams":
                return sparse_grams.sparse_grams(text, *self.parameters)  # type: ignore[arg-type]
        return [text]

    def of_fragment(self, text: bytes, *, from_start: bool, to_end: bool) -> list[bytes]:
        """Return tokens that every text has which contains the fragment `text`, at its start or end if the flags say
        so.

        Words at the fragment's ends may be longer in the text, so they do not count."""
        match self.name:
            case "ngrams" | "sparseGrams":
                return self.of_text(text) if _is_utf8(text) else []
            case "splitByNonAlpha":
                start = 0 if from_start else _end_of(re.match(rb"[0-9A-Za-z\x80-\xff]*", text))
                end = (
                    len(text)
                    if to_end
                    else len(text) - _end_of(re.match(rb"[0-9A-Za-z\x80-\xff]*", text[::-1]))
                )
                return self.of_text(text[start : max(start, end)])
            case "asciiCJK" if _is_utf8(text):
                separators = [match.start() for match in _CJK_SEPARATOR.finditer(text)]
                first = 0 if from_start else min(separators, default=len(text))
                last = len(text) if to_end else max(separators, default=0)
                whole = self.of_text(text[first : max(first, last)])
                others = [
                    token for token in self.of_text(text) if token[0] >= 0x80 and token not in whole
                ]
                return [*whole, *others]
        return []

    def of_array(self, texts: pa.Array) -> tuple[np.ndarray, pa.Array]:
        """Return the tokens of all texts (binary, without nulls), in order, as offsets from 0 and
        a binary array.

        Words, n-grams and whole texts are found by column operations, others by a call for each
        distinct text.
        """
        if self.name == "splitByNonAlpha":
            return _words_of(texts)
        if self.name == "ngrams" and _all_utf8(texts):
            return _grams_of(texts, self._size)
        if self.name == "array":
            filled = columns.numpy_values(pc.binary_length(texts)) > 0
            counts = columns.offsets_from_counts(filled.astype(np.int64))
            return counts, texts.filter(pa.array(filled))
        encoded = texts.dictionary_encode()
        distinct = [self.of_text(text) for text in encoded.dictionary.to_pylist()]
        lists = pa.array(distinct, pa.list_(pa.binary())).take(encoded.indices)
        return columns.elements_of(lists)

    @property
    def _size(self) -> int:
        """The number of characters of an n-gram."""
        size = self.parameters[0]
        assert isinstance(size, int)
        return size

    @cached_property
    def _separator(self) -> re.Pattern[bytes]:
        """The pattern that matches any of the separators."""
        separators = self.parameters[0]
        assert isinstance(separators, tuple)
        return re.compile(b"|".join(re.escape(separator) for separator in separators))

    def _by_regexp(self, text: str) -> list[bytes]:
        """Return the pieces between matches of the pattern, or the matches, by a parameter (their first group if they
        have one).

        An empty match ends the search; empty tokens are left out."""
        pattern, matches_count = self.parameters
        assert isinstance(pattern, bytes)
        all_matches = search_many.pattern_of(pattern).finditer(text)
        matches = list(takewhile(lambda match: match.end() > match.start(), all_matches))
        if matches_count:
            groups = ((m.group(1) if m.re.groups else m.group()) for m in matches)
            return [bytes_of_text(group) for group in groups if group]
        bounds = [0, *(place for m in matches for place in m.span()), len(text)]
        pieces = (text[a:b] for a, b in zip(bounds[::2], bounds[1::2], strict=True))
        return [bytes_of_text(piece) for piece in pieces if piece]


def like_fragments(pattern: bytes) -> list[tuple[bytes, bool, bool]]:
    """Return the stretches of a LIKE pattern between wildcards: (text, whether it is at the start, whether at the
    end)."""
    fragments: list[tuple[bytes, bool, bool]] = []
    text, starts = bytearray(), True
    at = 0
    while at < len(pattern):
        byte = pattern[at : at + 1]
        if byte == b"\\" and at + 1 < len(pattern):
            if pattern[at + 1 : at + 2] not in b"%_\\":
                text += byte
            text += pattern[at + 1 : at + 2]
            at += 2
            continue
        at += 1
        if byte in (b"%", b"_"):
            fragments.append((bytes(text), starts, False))
            text, starts = bytearray(), False
        else:
            text += byte
    fragments.append((bytes(text), starts, True))
    return fragments


# --- parameters


def _ngram_size(arguments: Sequence[object]) -> int:
    """Return the length of an n-gram, 3 by default; raise BadArguments unless it is above 0."""
    size = arguments[0] if arguments else _NGRAM_DEFAULT
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise BadArguments(
            f"Incorrect parameter of tokenizer ngrams: a length of at least 1, not {size!r}."
        )
    return size


def _gram_lengths(arguments: Sequence[object]) -> tuple[int, int, int]:
    """Return the least and greatest length of sparse grams, and the least length that is kept.

    Raises BadArguments for lengths outside 3 to 100, or in the wrong order."""
    lengths = [
        argument
        for argument in arguments
        if isinstance(argument, int) and not isinstance(argument, bool)
    ]
    if len(lengths) < len(arguments):
        raise BadArguments("The parameters of tokenizer sparseGrams are whole numbers.")
    shortest = lengths[0] if lengths else _GRAM_MIN
    longest = lengths[1] if len(lengths) > 1 else _GRAM_MAX
    kept = lengths[2] if len(lengths) > 2 else shortest
    if not _GRAM_MIN <= shortest <= kept <= longest <= _GRAM_MAX:
        raise BadArguments(
            f"Unexpected parameters of tokenizer sparseGrams: {_GRAM_MIN} <= {shortest} <= {kept} <="
            f" {longest} <= {_GRAM_MAX} does not hold.",
            hint="sparseGrams(min_length, max_length, min_cutoff_length).",
        )
    return shortest, longest, kept


def _separators(arguments: Sequence[object]) -> tuple[bytes, ...]:
    """Return the separators, a space by default; raise BadArguments unless they are texts with
    bytes, at least one."""
    given = arguments[0] if arguments else [b" "]
    texts = given if isinstance(given, list | tuple) else []
    separators = tuple(text for text in texts if isinstance(text, bytes) and text)
    if not separators or len(separators) < len(texts):
        raise BadArguments(
            "Incorrect parameter of tokenizer splitByString: an Array of texts that are not empty.",
            hint="For example splitByString([', ', '; ']).",
        )
    return separators


def _regexp(arguments: Sequence[object]) -> tuple[bytes, bool]:
    """Return the pattern, and whether its matches (rather than the text between them) are the tokens.

    Raises BadArguments for a pattern that is missing, empty or no text, or that can match nothing while its matches
    are the tokens, and the error of a malformed pattern."""
    pattern = arguments[0] if arguments else b""
    if not isinstance(pattern, bytes) or not pattern:
        raise BadArguments(
            "Tokenizer splitByRegexp requires a regular expression that is not empty."
        )
    matches_count = len(arguments) > 1 and bool(arguments[1])
    if matches_count and search_many.pattern_of(pattern).search(""):
        raise BadArguments(
            f"Tokenizer splitByRegexp: {text_of(pattern)!r} can match an empty text, which is no token."
        )
    search_many.pattern_of(pattern)
    return pattern, matches_count


_LITERAL = re.compile(r"\s*(?:(\d+)|'((?:[^'\\]|\\.|'')*)'|(true|false)|(\[))\s*", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


def _literals(text: str) -> list[object] | None:
    """Return the values of `3, 'a', ['b', 'c'], true`, texts as bytes; None for malformed text."""
    values: list[object] = []
    nested: list[object] | None = None
    at = 0
    while at < len(text.rstrip()):
        match = _LITERAL.match(text, at)
        if match is None:
            return None
        at = match.end()
        number, quoted, flag, opening = match.groups()
        if opening and nested is None:
            nested = []
            if text[at : at + 1] != "]":
                continue
        elif opening:
            return None
        else:
            value: object = flag == "true"
            if number:
                value = int(number)
            elif quoted is not None:
                value = bytes_of_text(_unquoted(quoted))
            (values if nested is None else nested).append(value)
        if nested is not None and text[at : at + 1] == "]":
            values.append(nested)
            nested = None
            at += len(re.match(r"\]\s*", text[at:]).group())  # type: ignore[union-attr]
        if at < len(text):
            if text[at] != ",":
                return None
            at += 1
    return values if nested is None else None


def _unquoted(text: str) -> str:
    """Return the text between quotes without its escapes."""
    text = text.replace("''", "'")
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text, flags=re.DOTALL)


def _literal(value: object) -> str:
    """Return a parameter as SQL text."""
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            text = text_of(value).replace("\\", "\\\\").replace("'", "\\'")
            return f"'{text}'"
        case tuple():
            return f"[{', '.join(map(_literal, value))}]"
    return str(value)


# --- columns


def _words_of(texts: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Return the words of all texts as offsets and a binary array."""
    offsets, data = columns.bytes_of(texts)
    inside = np.zeros(len(data) + 1, bool)
    inside[:-1] = _IS_WORD[data]
    before = np.zeros(len(data) + 1, bool)
    before[1:] = inside[:-1]
    before[offsets] = False  # a text begins
    starts = np.flatnonzero(inside & ~before)
    follows = np.zeros(len(data) + 1, bool)
    follows[:-1] = inside[1:]
    follows[offsets[1:] - 1] = False  # a text ends; -1 is beyond the data
    ends = np.flatnonzero(inside & ~follows) + 1
    counts = np.diff(np.searchsorted(starts, offsets))
    return columns.offsets_from_counts(counts), _stretches(data, starts, ends)


def _grams_of(texts: pa.Array, size: int) -> tuple[np.ndarray, pa.Array]:
    """Return the n-grams of all texts, which are UTF-8, as offsets and a binary array."""
    offsets, data = columns.bytes_of(texts)
    heads = np.flatnonzero((data & 0xC0) != 0x80)
    bounds = np.searchsorted(heads, offsets)
    counts = np.maximum(np.diff(bounds) - size + 1, 0)
    result = columns.offsets_from_counts(counts)
    first = np.repeat(bounds[:-1] - result[:-1], counts) + np.arange(result[-1])
    ends = np.append(heads, len(data))
    return result, _stretches(data, ends[first], ends[first + size])


def _stretches(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
    """Return the bytes of `data` between each start and end as a binary array."""
    offsets = columns.offsets_from_counts(ends - starts)
    places = np.repeat(starts - offsets[:-1], ends - starts) + np.arange(offsets[-1])
    return columns.binary(columns.strings_from(offsets, data[places]))


def _all_utf8(texts: pa.Array) -> bool:
    """Return whether all texts are UTF-8."""
    try:
        texts.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _is_utf8(text: bytes) -> bool:
    """Return whether the text is UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _end_of(match: re.Match[bytes] | None) -> int:
    """Return the position where the match ends; 0 for None."""
    return 0 if match is None else match.end()
