"""Edits, Jaro's similarity and n-grams of two texts: the compiled kernels and numpy give the same."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import olapdb
from olapdb.native.library import library, without_kernels

pytestmark = [
    pytest.mark.feature("functions", "select"),
    pytest.mark.skipif(library() is None, reason="There are no compiled kernels to compare."),
]

FUNCTIONS = (
    *("levenshteinDistance", "levenshteinDistanceUTF8", "damerauLevenshteinDistance"),
    *("jaroSimilarity", "jaroWinklerSimilarity"),
    *("ngramDistance", "ngramSearch", "ngramDistanceUTF8", "ngramSearchCaseInsensitiveUTF8"),
)
TEXTS = st.lists(st.sampled_from(["a", "b", "ab", "A", "é", "ж", "€", "abcd"]), max_size=9).map(
    "".join
)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=20)


def _values(rows: list[tuple[str, str]]) -> list[object]:
    """Return what all functions say of each pair of texts."""
    calls = ", ".join(f"{name}(p.1, p.2)" for name in FUNCTIONS)
    with olapdb.connect() as connection:
        sql = f"SELECT {calls} FROM (SELECT arrayJoin(%(rows)s) AS p)"
        return connection.execute(sql, {"rows": rows}).fetchall()


@given(PAIRS)
def test_the_kernels_and_numpy_agree(rows: list[tuple[str, str]]) -> None:
    compiled = _values(rows)
    with without_kernels():
        assert compiled == _values(rows)


def _edits(left: bytes, right: bytes, *, swaps: bool) -> int:
    """Return the least number of edits, by the definition."""
    table = [[max(i, j) for j in range(len(right) + 1)] for i in range(len(left) + 1)]
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            cost = table[i - 1][j - 1] + (left[i - 1] != right[j - 1])
            cost = min(cost, table[i - 1][j] + 1, table[i][j - 1] + 1)
            if swaps and i > 1 and j > 1 and left[i - 2 : i] == right[j - 2 : j][::-1]:
                cost = min(cost, table[i - 2][j - 2] + 1)
            table[i][j] = cost
    return table[-1][-1]


def _grams(text: bytes) -> Counter[bytes]:
    """Return how often each piece of four bytes occurs."""
    return Counter(text[at : at + 4] for at in range(len(text) - 3))


@given(PAIRS)
def test_the_kernels_follow_the_definitions(rows: list[tuple[str, str]]) -> None:
    pairs = [(left.encode(), right.encode()) for left, right in rows]
    values = _values(rows)
    assert [row[0] for row in values] == [_edits(*pair, swaps=False) for pair in pairs]
    assert [row[2] for row in values] == [_edits(*pair, swaps=True) for pair in pairs]
    for row, (left, right) in zip(values, pairs, strict=True):
        first, second = _grams(left), _grams(right)
        apart = ((first - second) + (second - first)).total()
        assert row[5] == pytest.approx(apart / max(first.total() + second.total(), 1), abs=1e-6)
