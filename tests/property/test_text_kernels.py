"""Searches in texts and extremes of texts: the compiled kernels and Arrow give the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from olapdb.functions import parse_type
from olapdb.functions.aggregates.registry import resolve_aggregate
from olapdb.functions.base import Groups
from olapdb.functions.kernels.addresses import ipv4_texts
from olapdb.functions.strings import like_patterns
from olapdb.functions.strings.search_replace import _regex, _replace_regex
from olapdb.native.library import library, without_kernels

pytestmark = [
    pytest.mark.feature("aggregates", "select"),
    pytest.mark.skipif(library() is None, reason="There are no compiled kernels to compare."),
]

PIECES = st.sampled_from(["", "a", "b", "ab", "aab", "é", "\n", "x" * 9])
TEXTS = st.lists(PIECES, max_size=5).map("".join)


@st.composite
def texts(draw: st.DrawFn) -> pa.Array:
    """Draw texts, some NULL or no UTF-8, that may begin within their buffers."""
    binary = TEXTS.map(str.encode) | st.none() | st.just(b"\xffab\x80")
    rows = draw(st.lists(binary, max_size=30))
    array = pa.array(rows, pa.binary())
    column = pa.Array.from_buffers(
        pa.string(), len(array), array.buffers(), array.null_count, array.offset
    )
    return column.slice(draw(st.integers(0, 3)))


WILD = st.lists(PIECES | st.sampled_from(["%", "%", "_", "\\%", "\\\\", "\\_", "\\a"]), max_size=6)


@given(texts(), WILD.map("".join))
@example(pa.array(["a", "ab", "ba"]), "a%a")
@example(pa.array(["aab", "ab", "", None]), "%ab")
def test_like(column: pa.Array, pattern: str) -> None:
    compiled = like_patterns.like(column, pattern)
    with without_kernels():
        assert compiled.equals(like_patterns.like(column, pattern))


@given(texts(), PIECES.filter(bool))
def test_texts_that_contain_a_piece(column: pa.Array, piece: str) -> None:
    compiled = like_patterns.containing(column, piece)
    with without_kernels():
        assert compiled.equals(like_patterns.containing(column, piece))


def test_a_piece_that_begins_in_one_row_and_ends_in_another() -> None:
    column = pa.array(["xxgoo", "gle", "", "a google", "googl", "egoogle"] * 50)
    assert (
        like_patterns.like(column, "%google%").to_pylist()
        == [False, False, False, True, False, True] * 50
    )


@given(st.lists(TEXTS, max_size=9), st.sampled_from(["a", "ab", "a b", "x-a", "é", "a|b"]))
def test_plain_regular_expressions(rows: list[str], pattern: str) -> None:
    column = pa.array(rows, pa.string())
    assert _regex(column, pattern).to_pylist() == [
        any(one in row for one in pattern.split("|")) for row in rows
    ]


@given(
    st.lists(TEXTS, max_size=9),
    st.sampled_from(["^a", "^a*", "^(a|b)", "^", "^a.*$", "^(?m)a", "^[^b]+", "^$"]),
)
def test_anchored_expressions_replace_once(rows: list[str], pattern: str) -> None:
    """Replacing all and replacing one are the same for those that the fast path takes."""
    column = pa.array(rows, pa.string())
    expected = pc.replace_substring_regex(column, "(?s)" + pattern, "<\\0>", max_replacements=1)
    assert _replace_regex(1)(column, pattern, "<\\0>").equals(expected)


@pytest.mark.parametrize("function", ["min", "max", "any"])
@given(data=st.data())
def test_extreme_texts(function: str, data: st.DataObject) -> None:
    column, count = data.draw(texts()), data.draw(st.integers(1, 4))
    codes = data.draw(
        st.lists(st.integers(0, count - 1), min_size=len(column), max_size=len(column))
    )
    aggregate = resolve_aggregate(function, (), (parse_type("Nullable(String)"),))
    states = []
    for values in (column, column.dictionary_encode()):
        states.append(aggregate.state([values], Groups(np.array(codes, np.int64), count)))
        with without_kernels():
            states.append(aggregate.state([values], Groups(np.array(codes, np.int64), count)))
    assert all(state.equals(states[0]) for state in states)


@given(st.lists(st.integers(0, 2**32 - 1) | st.sampled_from([0, 99, 100, 2**32 - 1]) | st.none()))
def test_texts_of_addresses(numbers: list[int | None]) -> None:
    addresses = pa.array(numbers, pa.uint32()).slice(len(numbers) // 3)
    compiled = ipv4_texts(addresses)
    with without_kernels():
        assert compiled.equals(ipv4_texts(addresses))
