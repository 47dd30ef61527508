"""tokens, hasAnyTokens, hasAllTokens and hasPhrase: what a tokenizer makes of texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, NumberOfArgumentsDoesntMatch
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.by_value import by_value
from olapdb.functions.strings.arguments import TEXT_TYPES
from olapdb.functions.strings.tokenizers import Tokenizer, like_fragments
from olapdb.types import STRING, UINT8, Array, Boolean, DataType, Integer, Nothing, String, plain

_DEFAULT = "splitByNonAlpha"
_OPTIONS: dict[str, tuple[tuple[type, ...], ...]] = {
    "ngrams": ((Integer,),),
    "splitByString": ((Array,),),
    "splitByRegexp": ((String,), (Integer, Boolean)),
    "icu": ((String,),),
    "sparseGrams": ((Integer,), (Integer,), (Integer,)),
}
"""The types of the arguments behind the names of tokenizers that take some."""
_PHRASES = ("splitByNonAlpha", "splitByString", "splitByRegexp", "ngrams", "asciiCJK")
_BYTES_AT_ONCE = 1 << 24
"""Bytes of texts whose tokens are made at once: they take some ten times as much meanwhile."""


_NEEDLES_SOUGHT_MAX = 16
"""Up to how many needles the texts that contain them are found first."""


def _tokens_call(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve tokens(text[, tokenizer, …]) and tokensForLikePattern. Raises BadArguments."""
    of_pattern = name.lower() == "tokensforlikepattern"

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return Array(String); raise IllegalTypeOfArgument for others than a text."""
        scalar.require(name, types[:1], TEXT_TYPES, "a String")
        return Array(STRING)

    if any(isinstance(plain(argument.type), Nothing) for argument in arguments):
        return scalar.standard_call(name, arguments, rule, None)
    rule(name, tuple(plain(a.type) for a in arguments), arguments)
    tokenizer = _tokenizer_of(name, arguments)
    if of_pattern and not tokenizer.reads_fragments:
        raise BadArguments(
            f"Tokenizer {tokenizer.name} does not support LIKE pattern tokenization.",
            hint="splitByNonAlpha, asciiCJK, ngrams and sparseGrams do.",
        )

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return the tokens of each text."""
        offsets, tokens = tokenizer.of_array(columns.binary(arrays[0]))
        return columns.lists_from(offsets, columns.text(tokens))

    def tokens_of_pattern(pattern: bytes, *_: object) -> list[bytes]:
        """Return the tokens that each text has which is LIKE the pattern."""
        return [
            token
            for text, starts, ends in like_fragments(pattern)
            for token in tokenizer.of_fragment(text, from_start=starts, to_end=ends)
        ]

    return scalar.standard_call(
        name, arguments, rule, by_value(tokens_of_pattern) if of_pattern else kernel
    )


def _tokenizer_of(name: str, arguments: Sequence[Argument]) -> Tokenizer:
    """Return the tokenizer that the arguments behind the first one give.

    Raises NumberOfArgumentsDoesntMatch, IllegalTypeOfArgument and IllegalColumn as ClickHouse, and the
    errors of `Tokenizer.of`.
    """
    if len(arguments) < 2:
        return Tokenizer.of(_DEFAULT)
    tokenizer = scalar.constant_text(name, arguments, 1, "the tokenizer")
    options = arguments[2:]
    kinds = _OPTIONS.get(tokenizer, ())
    if len(options) > len(kinds) or (tokenizer == "sparseGrams" and len(options) == 1):
        raise NumberOfArgumentsDoesntMatch(
            f"Function {name} takes {len(kinds) or 'no'} argument(s) behind {tokenizer!r},"
            f" {len(options)} given."
        )
    values = []
    for at, (option, kind) in enumerate(zip(options, kinds, strict=False), start=2):
        data_type = plain(option.type)
        is_wide = isinstance(data_type, Integer) and data_type != UINT8
        if not isinstance(data_type, kind) or is_wide:
            raise scalar.illegal(name, option.type, f"a constant for argument {at + 1}")
        if option.constant is None:
            scalar.constant_text(name, arguments, at, f"an option of {tokenizer}")
        values.append(_option(option.constant))
    return Tokenizer.of(tokenizer, values)


def _option(constant: pa.Scalar | None) -> object:
    """Return the Python value of a constant, None for no constant; texts as bytes, since they need not be UTF-8."""
    if constant is None or not constant.is_valid:
        return None
    if pa.types.is_string(constant.type):
        constant = constant.cast(pa.binary())
    if pa.types.is_list(constant.type):
        elements = constant.values
        is_text = pa.types.is_string(elements.type)
        return (columns.binary(elements) if is_text else elements).to_pylist()
    return constant.as_py()


def _has_tokens_call(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve hasAnyTokens and hasAllTokens(texts, needles[, tokenizer]): whether texts, or the
    elements of an array of texts, have any or all of the tokens; needles in an array are tokens."""
    every = "all" in name.lower()

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return UInt8; raise IllegalTypeOfArgument unless both arguments are texts or arrays of texts."""
        searched = types[0].inner if isinstance(types[0], Array) else types[0]
        scalar.require(name, [plain(searched)], TEXT_TYPES, "a String or an Array of String")
        wanted = types[1].inner if isinstance(types[1], Array) else types[1]
        if not isinstance(wanted, String | Nothing):
            raise scalar.illegal(name, types[1], "a constant String or Array of String")
        return UINT8

    types = tuple(plain(a.type) for a in arguments)
    if any(isinstance(given_type, Nothing) for given_type in types):
        return scalar.standard_call(name, arguments, rule, None)
    rule(name, types, arguments)
    tokenizer = _named_tokenizer(name, arguments)
    needles = _needles(name, arguments, tokenizer)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return 1 for each row whose tokens include any or all needles; 0 for all rows without needles."""
        contains = np.zeros(len(arrays[0]), bool)
        if needles:
            for start, rows in _in_pieces(arrays[0]):
                contains[start : start + len(rows)] = _rows_with(rows, tokenizer, needles, every)
        return columns.from_values(contains, pa.uint8())

    return scalar.standard_call(name, arguments, rule, kernel)


def _named_tokenizer(name: str, arguments: Sequence[Argument]) -> Tokenizer:
    """Return the tokenizer of the third argument, such as `ngrams(4)`, or the default one."""
    if len(arguments) < 3:
        return Tokenizer.of(_DEFAULT)
    return Tokenizer.parse(scalar.constant_text(name, arguments, 2, "the tokenizer"))


def _needles(name: str, arguments: Sequence[Argument], tokenizer: Tokenizer) -> list[bytes]:
    """Return the distinct tokens that the constant second argument asks for: elements of an array as given, a text's
    tokens."""
    if arguments[1].constant is None:
        scalar.constant_text(name, arguments, 1, "the needles")
    value = _option(arguments[1].constant)
    if isinstance(value, list):
        return list(dict.fromkeys(needle for needle in value if isinstance(needle, bytes)))
    return list(dict.fromkeys(tokenizer.of_text(value if isinstance(value, bytes) else b"")))


def _in_pieces(rows: pa.Array) -> Iterator[tuple[int, pa.Array]]:
    """Yield consecutive slices of the rows, each with the number of its first row, of about _BYTES_AT_ONCE bytes."""
    count = max(1, rows.nbytes // _BYTES_AT_ONCE)
    size = -(-len(rows) // count)
    for start in range(0, len(rows), max(size, 1)):
        yield start, rows.slice(start, size)


def _rows_with(
    rows: pa.Array, tokenizer: Tokenizer, needles: list[bytes], every: bool
) -> np.ndarray:
    """Return a mask of the rows, texts or arrays of texts, that have any or all of the needles."""
    texts, owners = rows, np.arange(len(rows))
    is_list = pa.types.is_list(rows.type)
    if is_list:
        offsets, texts = columns.elements_of(rows)
        owners = columns.parents_of(offsets)
    texts = columns.binary(texts)
    candidates = _containing(texts, needles, every=every and not is_list)
    texts, owners = texts.filter(pa.array(candidates)), owners[candidates]
    offsets, tokens = tokenizer.of_array(texts)
    which = pc.index_in(tokens, pa.array(needles, pa.binary()))
    hits = columns.numpy_values(pc.is_valid(which)).astype(bool)
    row_of = owners[columns.parents_of(offsets)[hits]]
    if every and len(needles) > 1:
        needle_numbers = columns.numpy_values(which.drop_null()).astype(np.int64)
        row_of = np.unique(row_of * len(needles) + needle_numbers) // len(needles)
    counts = np.bincount(row_of, minlength=len(rows))
    return np.asarray(counts >= (len(needles) if every else 1))


def _containing(texts: pa.Array, needles: list[bytes], *, every: bool) -> np.ndarray:
    """Return a mask of the texts that contain any, or with `every` all, of the needles somewhere; False for NULL.

    Only these can have the needles as tokens, so only they need to be split."""
    is_candidate = np.full(len(texts), every)
    if len(needles) > _NEEDLES_SOUGHT_MAX:
        return columns.numpy_values(pc.is_valid(texts)).astype(bool)
    for needle in needles:
        contains = pc.fill_null(pc.match_substring(texts, needle), False)
        if every:
            is_candidate &= columns.numpy_values(contains).astype(bool)
        else:
            is_candidate |= columns.numpy_values(contains).astype(bool)
    return is_candidate


def _has_phrase_call(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve hasPhrase(text, phrase[, tokenizer]): whether the tokens of the phrase follow one
    another in the text. Raises BadArguments."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return UInt8; raise IllegalTypeOfArgument unless both are texts."""
        scalar.require(name, types[:1], TEXT_TYPES, "a String")
        scalar.require(name, types[1:2], String, "a constant String")
        return UINT8

    types = tuple(plain(a.type) for a in arguments)
    if any(isinstance(given_type, Nothing) for given_type in types):
        return scalar.standard_call(name, arguments, rule, None)
    rule(name, types, arguments)
    tokenizer = _named_tokenizer(name, arguments)
    if tokenizer.name not in _PHRASES:
        raise BadArguments(
            f"Function {name} does not support the tokenizer {tokenizer.name}.",
            hint=f"It supports {', '.join(_PHRASES)}.",
        )
    scalar.constant_text(name, arguments, 1, "the phrase")
    value = _option(arguments[1].constant)
    phrase = tokenizer.of_text(value if isinstance(value, bytes) else b"")

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return 1 for each text with the tokens of the phrase in a row; 0 for an empty phrase."""
        contains = np.zeros(len(arrays[0]), bool)
        if phrase:
            for start, rows in _in_pieces(arrays[0]):
                contains[start : start + len(rows)] = _rows_with_phrase(rows, tokenizer, phrase)
        return columns.from_values(contains, pa.uint8())

    return scalar.standard_call(name, arguments, rule, kernel)


def _rows_with_phrase(texts: pa.Array, tokenizer: Tokenizer, phrase: list[bytes]) -> np.ndarray:
    """Return a mask of the texts in which the tokens of the phrase follow one another."""
    words = list(dict.fromkeys(phrase))
    candidates = _containing(columns.binary(texts), words, every=True)
    offsets, tokens = tokenizer.of_array(columns.binary(texts).filter(pa.array(candidates)))
    which = columns.numpy_values(
        pc.fill_null(pc.index_in(tokens, pa.array(words, pa.binary())), -1)
    )
    starts = max(len(which) - len(phrase) + 1, 0)
    fits = np.ones(starts, bool)
    for at, word in enumerate(phrase):
        fits &= which[at : at + starts] == words.index(word)
    owners = columns.parents_of(offsets)
    first = np.flatnonzero(fits)
    inside = first[owners[first] == owners[first + len(phrase) - 1]]
    contains = np.zeros(len(texts), bool)
    contains[np.flatnonzero(candidates)[owners[inside]]] = True
    return contains


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("tokens", _tokens_call, count=(1, 5)),
    scalar.custom("tokensForLikePattern", _tokens_call, count=(1, 5)),
    scalar.custom("hasAllTokens", _has_tokens_call, count=(2, 3), aliases=("hasAllToken",)),
    scalar.custom("hasAnyTokens", _has_tokens_call, count=(2, 3), aliases=("hasAnyToken",)),
    scalar.custom("hasPhrase", _has_phrase_call, count=(2, 3), aliases=("matchPhrase",)),
)
