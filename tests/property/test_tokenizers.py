"""Tokenizers of columns find what those of single texts find, and those of fragments no more than each
text has that contains the fragment."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from olapdb.functions.base import Argument, Environment
from olapdb.functions.registry import resolve_scalar
from olapdb.functions.strings.tokenizers import Tokenizer, like_fragments
from olapdb.types import STRING, Array

pytestmark = pytest.mark.feature("functions")

TOKENIZERS = (
    "splitByNonAlpha",
    "splitByString",
    "splitByString([', ', ',', 'ab'])",
    "splitByRegexp('[,x]+')",
    "splitByRegexp('([a-b])(.)', true)",
    "asciiCJK",
    "ngrams(1)",
    "ngrams(3)",
    "sparseGrams",
    "sparseGrams(3, 5, 4)",
    "array",
)
characters = st.sampled_from(
    ["a", "b", "1", "x", " ", ",", ":", ".", "_", "'", "é", "中", "\0", "%"]
)
texts = st.text(characters, max_size=24).map(str.encode)
any_bytes = st.one_of(texts, st.binary(max_size=12))


@pytest.mark.parametrize("name", TOKENIZERS)
@given(rows=st.lists(any_bytes, max_size=8))
@example(rows=[])
@example(rows=[b"", b"a", b""])
@example(rows=[b"ab", b"ab"])
def test_of_column_and_of_text(name: str, rows: list[bytes]) -> None:
    tokenizer = Tokenizer.parse(name)
    for offset in (0, 1):
        column = pa.array([b"before"] * offset + rows, pa.binary()).slice(offset)
        offsets, tokens = tokenizer.of_array(column)
        found = tokens.to_pylist()
        assert len(offsets) == len(rows) + 1
        assert [found[a:b] for a, b in itertools.pairwise(offsets)] == [
            tokenizer.of_text(row) for row in rows
        ]


@pytest.mark.parametrize("name", [n for n in TOKENIZERS if Tokenizer.parse(n).reads_fragments])
@given(before=any_bytes, fragment=any_bytes, after=any_bytes)
@example(before=b"foo", fragment=b":bar ", after=b"")
@example(before=b"a", fragment=b"b 1", after=b".1")
def test_of_fragment(name: str, before: bytes, fragment: bytes, after: bytes) -> None:
    tokenizer = Tokenizer.parse(name)
    for starts in (False, True):
        for ends in (False, True):
            text = (b"" if starts else before) + fragment + (b"" if ends else after)
            found = tokenizer.of_fragment(fragment, from_start=starts, to_end=ends)
            assert set(found) <= set(tokenizer.of_text(text)), (text, starts, ends)


@pytest.mark.parametrize("name", TOKENIZERS)
@given(
    rows=st.lists(texts, min_size=1, max_size=6),
    wanted=st.lists(texts, max_size=3),
    more=st.booleans(),
)
@example(rows=[b"b,a", b"a b", b""], wanted=[b"a", b"b"], more=False)
def test_searches(name: str, rows: list[bytes], wanted: list[bytes], more: bool) -> None:
    tokenizer = Tokenizer.parse(name)
    sought = [*wanted, *(b"none%d" % at for at in range(20 * more))]
    phrase = b" ".join(wanted)
    tokens = [tokenizer.of_text(row) for row in rows]
    lists = [rows[at:] for at in range(len(rows))]
    for every, function in ((True, "hasAllTokens"), (False, "hasAnyTokens")):
        among = all if every else any
        for needles, argument in (
            (sought, constant(sought)),
            (tokenizer.of_text(phrase), constant(phrase)),
        ):
            expected = [bool(needles) and among(n in one for n in needles) for one in tokens]
            assert search(function, rows, argument, name) == expected
            joined = [[token for one in tokens[at:] for token in one] for at in range(len(rows))]
            expected = [bool(needles) and among(n in one for n in needles) for one in joined]
            assert search(function, lists, argument, name) == expected
    if tokenizer.name not in ("array", "sparseGrams"):
        words = tokenizer.of_text(phrase)
        expected = [
            bool(words) and any(one[at : at + len(words)] == words for at in range(len(one)))
            for one in tokens
        ]
        assert search("hasPhrase", rows, constant(phrase), name) == expected


def constant(value: bytes | list[bytes]) -> Argument:
    """Return a constant text, or array of texts."""
    if isinstance(value, bytes):
        return Argument(STRING, pa.scalar(value, pa.binary()).cast(pa.string()))
    return Argument(Array(STRING), pa.scalar([v.decode() for v in value], pa.list_(pa.string())))


def search(
    name: str, rows: list[bytes] | list[list[bytes]], needles: Argument, tokenizer: str
) -> list[bool]:
    """Return what a search function says of each row."""
    is_list = isinstance(rows[0], list)
    data_type = Array(STRING) if is_list else STRING
    arguments = [Argument(data_type), needles, constant(tokenizer.encode())]
    call = resolve_scalar(name, arguments)
    binary = pa.array(rows, pa.list_(pa.binary()) if is_list else pa.binary())
    column = binary.cast(data_type.arrow)
    values = [column, needles.constant, arguments[2].constant]
    return [bool(one) for one in call.kernel(values, len(rows), Environment()).to_pylist()]


def test_fragments_of_patterns() -> None:
    assert like_fragments(rb"a\%b%c_") == [
        (b"a%b", True, False),
        (b"c", False, False),
        (b"", False, True),
    ]
    assert like_fragments(rb"x\y\\") == [(rb"x\y" + b"\\", True, True)]


def test_whole_words_of_fragments() -> None:
    words = Tokenizer.parse("splitByNonAlpha")
    assert words.of_fragment(b"a b c", from_start=False, to_end=False) == [b"b"]
    assert words.of_fragment(b"a b c", from_start=True, to_end=False) == [b"a", b"b"]
    assert words.of_fragment(b"abc", from_start=False, to_end=False) == []
    grams = Tokenizer.parse("ngrams(2)")
    assert grams.of_fragment(b"abc", from_start=False, to_end=False) == [b"ab", b"bc"]
