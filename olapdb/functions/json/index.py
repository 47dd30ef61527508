"""An index of JSON texts: their tokens, the tree that these make, and which texts are valid.

All texts of a column are indexed at once with array operations, as Langdale and Lemire, "Parsing
Gigabytes of JSON per Second" (2019), do with vector instructions: unescaped quotes give the strings,
brackets outside of strings give the depth, and the tokens of one depth the members of containers.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.kernels import columns
from olapdb.functions.kernels.escapes import spans
from olapdb.native.json import json_index
from olapdb.native.library import library
from olapdb.records import dataclass

SCALAR, STRING, OBJECT, OBJECT_END, ARRAY, ARRAY_END, COLON, COMMA = range(8)
"""Classes of tokens. A SCALAR is a number, true, false or null; OBJECT and ARRAY are the opening
brackets, and stand for the whole container where a token is a value."""

DEPTH_MAX = 1_024
"""Brackets within brackets in a valid text; ClickHouse has the same bound."""

_CLASS_OF_BYTE = np.full(256, SCALAR, np.uint8)
for _byte, _class in zip(b'"{}[]:,', range(STRING, COMMA + 1), strict=True):
    _CLASS_OF_BYTE[_byte] = _class
_IS_SPACE = np.zeros(256, bool)
_IS_SPACE[list(b" \t\r\n")] = True
_IS_ESCAPABLE = np.zeros(256, bool)
_IS_ESCAPABLE[list(b'"\\/bfnrtu')] = True
_IS_HEX = np.zeros(256, bool)
_IS_HEX[list(b"0123456789abcdefABCDEF")] = True
_NUMBER_OR_WORD = r"^(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)$"
_LARGE_EXPONENT = r"[eE]\+?0*[1-9][0-9]{2,}$"
"""Numbers that Float64 may not hold, so that the text is not valid."""


@dataclass(frozen=True)
class JsonIndex:
    """The tokens of valid JSON texts, in order of position.

    Token numbers and positions are int64; `end` is excluded, and a string's token includes its
    quotes. Texts that are not valid have no tokens."""

    data: np.ndarray
    """The bytes of all texts, one after the other."""
    kind: np.ndarray
    """The class of each token."""
    start: np.ndarray
    end: np.ndarray
    row: np.ndarray
    """The text of each token."""
    parent: np.ndarray
    """The token that opens the innermost container around each token, -1 at the root. A closing
    bracket lies in the container that it closes."""
    rank: np.ndarray
    """The number of tokens of the same container before each token."""
    close: np.ndarray
    """The token that closes each container; the token itself for others."""
    root: np.ndarray
    """The token of each text's value, -1 for a text that is not valid."""

    @property
    def valid(self) -> np.ndarray:
        """Whether each text is valid JSON."""
        return self.root >= 0

    @cached_property
    def is_value(self) -> np.ndarray:
        """Whether each token is an element of an array or the value of a member of an object."""
        inside = np.flatnonzero(self.parent >= 0)
        values = np.zeros(len(self.kind), bool)
        of_object = self.kind[self.parent[inside]] == OBJECT
        values[inside] = np.where(
            of_object, self.rank[inside] & 3 == 2, self.rank[inside] & 1 == 0
        ) & ((self.kind[inside] != OBJECT_END) & (self.kind[inside] != ARRAY_END))
        return values

    def members(self, tokens: np.ndarray) -> np.ndarray:
        """Return the number of members of the container that each token opens; 0 for other tokens and for -1."""
        counts = np.zeros(len(tokens), np.int64)
        for kind, width in ((OBJECT, 4), (ARRAY, 2)):
            chosen = np.flatnonzero((tokens >= 0) & (self.kind_of(tokens) == kind))
            counts[chosen] = (self.rank[self.close[tokens[chosen]]] + 1) // width
        return counts

    def kind_of(self, tokens: np.ndarray) -> np.ndarray:
        """Return the kind of each token (string, object, array, scalar); -1 for token -1."""
        if not len(self.kind):
            return np.full(len(tokens), -1, np.int64)
        return np.where(tokens >= 0, self.kind[tokens], -1)

    def texts(self, tokens: np.ndarray) -> pa.Array:
        """Return the bytes of each token as written, as a column of texts."""
        return spans(self.data, self.start[tokens], self.end[tokens])


def build_index(texts: pa.Array) -> JsonIndex:
    """Return the index of a column of texts without nulls."""
    offsets, data = columns.bytes_of(texts)
    found = json_index(data, offsets) if library() is not None else None
    if found is not None:
        return JsonIndex(data, *found)
    rows = np.repeat(np.arange(len(texts)), np.diff(offsets))
    escaped = _escaped(data, offsets, rows)
    quotes = (data == ord('"')) & ~escaped
    number = _count_in_row(quotes, offsets, rows)
    inside = (number & 1) == 1
    bad = _bad_strings(data, escaped, inside, rows, len(texts))
    bad |= np.bincount(rows[quotes], minlength=len(texts)) % 2 == 1
    tokens = _tokens(data, quotes, inside, offsets, rows)
    tokens = tokens.of_rows(~bad)
    bad |= _unbalanced(tokens, len(texts))
    tokens = tokens.of_rows(~bad)
    tree = _tree(tokens)
    bad |= _ungrammatical(tokens, tree, len(texts))
    bad |= _bad_scalars(data, tokens, len(texts)) | _bad_surrogates(data, escaped, rows, len(texts))
    if bad.any():
        tokens = tokens.of_rows(~bad)
        tree = _tree(tokens)
    root = np.full(len(texts), -1, np.int64)
    first = np.flatnonzero((tokens.level == 0) & ~tokens.closes)
    root[tokens.row[first]] = first
    return JsonIndex(
        data,
        tokens.kind,
        tokens.start,
        tokens.end,
        tokens.row,
        tree.parent,
        tree.rank,
        tree.close,
        root,
    )


@dataclass(frozen=True)
class _Tokens:
    """Tokens in order of position; `level` is the number of containers around each."""

    kind: np.ndarray
    start: np.ndarray
    end: np.ndarray
    row: np.ndarray

    def of_rows(self, keep: np.ndarray) -> _Tokens:
        """Return the tokens of the texts that the mask `keep` marks."""
        if keep.all():
            return self
        chosen = keep[self.row]
        return _Tokens(self.kind[chosen], self.start[chosen], self.end[chosen], self.row[chosen])

    @cached_property
    def opens(self) -> np.ndarray:
        """Whether each token opens a container."""
        return np.asarray((self.kind == OBJECT) | (self.kind == ARRAY))

    @cached_property
    def closes(self) -> np.ndarray:
        """Whether each token closes a container."""
        return np.asarray((self.kind == OBJECT_END) | (self.kind == ARRAY_END))

    @cached_property
    def level(self) -> np.ndarray:
        """The number of containers around each token; both brackets of a container have the number around it."""
        steps = self.opens.astype(np.int64) - self.closes
        depth = np.cumsum(steps)
        first = np.flatnonzero(np.diff(self.row, prepend=-1))
        before = np.zeros(len(self.row), np.int64)
        before[first] = np.diff((depth - steps)[first], prepend=0)
        return np.asarray(depth - np.cumsum(before) - self.opens)


@dataclass(frozen=True)
class _Tree:
    """The tree that containers form: see the fields of `JsonIndex` for their meaning."""

    parent: np.ndarray
    rank: np.ndarray
    close: np.ndarray


def _escaped(data: np.ndarray, offsets: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a mask of the bytes that follow an odd number of backslashes within their text: escaped ones."""
    escaped = np.zeros(len(data), bool)
    backslash = data == ord("\\")
    if not backslash.any():
        return escaped
    position = np.arange(len(data))
    other = np.maximum.accumulate(np.where(backslash, -1, position))
    run = position - np.maximum(other, offsets[:-1][rows] - 1)
    escaped[1:] = (run[:-1] & 1 == 1) & (rows[1:] == rows[:-1])
    return escaped


def _count_in_row(marks: np.ndarray, offsets: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return for each byte how many marked bytes there are in its text up to and including it."""
    total = np.concatenate((np.zeros(1, np.int64), np.cumsum(marks)))
    return np.asarray(total[1:] - total[offsets[:-1]][rows])


def _bad_strings(
    data: np.ndarray, escaped: np.ndarray, inside: np.ndarray, rows: np.ndarray, count: int
) -> np.ndarray:
    """Return for each text whether a string has a control character or an unknown escape."""
    bad = np.zeros(count, bool)
    bad[rows[inside & (data < 0x20)]] = True
    after = np.flatnonzero(escaped & inside)
    bad[rows[after[~_IS_ESCAPABLE[data[after]]]]] = True
    unicode_at = after[data[after] == ord("u")]
    for step in range(1, 5):
        at = np.minimum(unicode_at + step, len(data) - 1)
        digit = _IS_HEX[data[at]] & (rows[at] == rows[unicode_at]) & (at == unicode_at + step)
        bad[rows[unicode_at[~digit]]] = True
    return bad


def _bad_surrogates(
    data: np.ndarray, escaped: np.ndarray, rows: np.ndarray, count: int
) -> np.ndarray:
    """Return for each text whether it escapes half of a surrogate pair. The answer for a text with invalid escapes
    has no meaning."""
    bad = np.zeros(count, bool)
    at = np.flatnonzero(escaped & (data == ord("u")))
    at = at[at + 4 < len(data)]
    if len(at):
        code = hexadecimal(data, at + 1)
        high, low = (code >> 10) == 0xD800 >> 10, (code >> 10) == 0xDC00 >> 10
        paired_low = np.zeros(len(at), bool)
        paired_low[1:] = low[1:] & high[:-1] & (np.diff(at) == 6)
        paired_high = np.append(paired_low[1:], False)
        bad[rows[at[(high & ~paired_high) | (low & ~paired_low)]]] = True
    return bad


def hexadecimal(data: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the number that the four hexadecimal digits from each position on spell; int64."""
    code = np.zeros(len(at), np.int64)
    for step in range(4):
        digit = data[at + step].astype(np.int64)
        code = code * 16 + np.where(digit <= ord("9"), digit - ord("0"), (digit & 7) + 9)
    return code


def _tokens(
    data: np.ndarray, quotes: np.ndarray, inside: np.ndarray, offsets: np.ndarray, rows: np.ndarray
) -> _Tokens:
    """Return the tokens of all texts. Those of a text with an odd number of quotes have no meaning."""
    kind = _CLASS_OF_BYTE[data]
    outside = ~inside & ~quotes
    structural = outside & (kind != SCALAR)
    scalar = outside & ~structural & ~_IS_SPACE[data]
    first = np.zeros(len(data) + 1, bool)
    first[offsets] = True
    before = np.zeros(len(data), bool)
    before[1:] = scalar[:-1]
    after = np.zeros(len(data), bool)
    after[:-1] = scalar[1:]
    begins = scalar & (~before | first[:-1])
    ends = scalar & (~after | first[1:])
    opening = quotes & inside
    position = np.flatnonzero(structural | opening | begins)
    kinds = np.where(begins[position], SCALAR, kind[position]).astype(np.uint8)
    end = position + 1
    end[kinds == SCALAR] = np.flatnonzero(ends) + 1
    closing = np.flatnonzero(quotes & ~inside) + 1
    strings = np.flatnonzero(kinds == STRING)
    # The closing quote of a string is the first behind its opening one.
    behind = np.searchsorted(closing, position[strings], side="right")
    end[strings] = np.append(closing, len(data))[behind]
    return _Tokens(kinds, position, end, rows[position])


def _unbalanced(tokens: _Tokens, count: int) -> np.ndarray:
    """Return for each text whether its opening and closing brackets differ in number, or nest too deeply."""
    bad = np.zeros(count, bool)
    bad[tokens.row[(tokens.level < 0) | (tokens.level >= DEPTH_MAX)]] = True
    steps = tokens.opens.astype(np.int64) - tokens.closes
    return np.asarray(bad | (np.bincount(tokens.row, steps, count) != 0))


def _tree(tokens: _Tokens) -> _Tree:
    """Return the tree of balanced tokens.

    Sorted by text, depth and position, the members of a container follow the token that opens it;
    a closing bracket is the last of its container."""
    count = len(tokens.kind)
    numbers = np.arange(count)
    parent, rank = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    close = numbers.copy()
    opening = np.flatnonzero(tokens.opens)
    if not len(opening):
        return _Tree(parent, rank, close)
    depth = tokens.level + tokens.closes
    inner = np.flatnonzero(depth > 0)
    width = int(depth.max()) + 2
    key = np.concatenate(
        (
            tokens.row[opening] * width + tokens.level[opening] + 1,
            tokens.row[inner] * width + depth[inner],
        )
    )
    token = np.concatenate((opening, inner))
    order = np.lexsort((token, key))
    is_opening = order < len(opening)
    place = np.arange(len(order))
    container = np.maximum.accumulate(np.where(is_opening, place, 0))
    members = ~is_opening
    parent[token[order[members]]] = token[order[container[members]]]
    rank[token[order[members]]] = (place - container)[members] - 1
    closing = np.flatnonzero(tokens.closes)
    close[parent[closing]] = closing
    return _Tree(parent, rank, close)


def _ungrammatical(tokens: _Tokens, tree: _Tree, count: int) -> np.ndarray:
    """Return for each text whether a container has members in a wrong order, or whether the text has not exactly one
    value."""
    kind, closes = tokens.kind, tokens.closes
    top = (tokens.level == 0) & ~closes
    bad = np.bincount(tokens.row[top], minlength=count) != 1
    is_value = (kind <= OBJECT) | (kind == ARRAY)
    bad[tokens.row[top & ~is_value]] = True
    inner = np.flatnonzero(tree.parent >= 0)
    in_object = kind[tree.parent[inner]] == OBJECT
    place = np.where(in_object, tree.rank[inner] % 4, 4 + tree.rank[inner] % 2)
    of_kind, value = kind[inner], is_value[inner]
    right = np.select(
        [place == 0, place == 1, place == 2, place == 4],
        [of_kind == STRING, of_kind == COLON, value, value],
        of_kind == COMMA,
    )
    empty = tree.rank[inner] == 0
    complete = np.where(in_object, empty | (place == 3), empty | (place == 5))
    matches = of_kind == kind[tree.parent[inner]] + 1
    right = np.where(closes[inner], complete & matches, right)
    bad[tokens.row[inner[~right]]] = True
    return np.asarray(bad)


def _bad_scalars(data: np.ndarray, tokens: _Tokens, count: int) -> np.ndarray:
    """Return for each text whether a scalar is neither a number nor true, false or null, or is a number beyond Float64."""
    bad = np.zeros(count, bool)
    scalars = np.flatnonzero(tokens.kind == SCALAR)
    if len(scalars):
        texts = spans(data, tokens.start[scalars], tokens.end[scalars])
        known = columns.numpy_values(pc.match_substring_regex(texts, _NUMBER_OR_WORD)) != 0
        bad[tokens.row[scalars[~known]]] = True
        large = columns.numpy_values(pc.match_substring_regex(texts, _LARGE_EXPONENT)) != 0
        rows = np.flatnonzero(known & large)
        numbers = columns.numpy_values(texts.take(pa.array(rows)).cast(pa.float64()))
        bad[tokens.row[scalars[rows[~np.isfinite(numbers)]]]] = True
    return bad
