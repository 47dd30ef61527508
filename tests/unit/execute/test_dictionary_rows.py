"""Rows of dictionaries beside plain Python: ranges, hierarchies, several rows of one key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.compute.dictionary_rows import DictionaryRows
from olapdb.compute.dictionary_tree import lists
from olapdb.plan.expressions import DictionaryShape

pytestmark = pytest.mark.feature("functions")

Range = tuple[int, int, int, int]
"""(key, first, last, value)"""


def shape(*, ranged: bool = False, latest: bool = False, parent: int = -1) -> DictionaryShape:
    return DictionaryShape("d", 1, ranged, latest, parent, 0, ())


def table(rows: list[Range]) -> list[pa.Array]:
    return [pa.array([row[at] for row in rows], pa.int64()) for at in range(4)]


small = st.integers(0, 6)
ranges = st.lists(st.tuples(st.integers(0, 3), small, small, small), max_size=20)


@given(ranges, st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 7)), max_size=10))
def test_a_range_is_found_as_by_looking_at_all(
    rows: list[Range], asked: list[tuple[int, int]]
) -> None:
    for latest in (False, True):
        made = DictionaryRows(table(rows), len(rows), shape(ranged=True, latest=latest), 1)
        keys = pa.array([key for key, _ in asked], pa.int64())
        values = pa.array([value for _, value in asked], pa.int64())
        found = made.find([keys, values], len(asked))
        for (key, value), at in zip(asked, found.tolist(), strict=True):
            matches = [row for row in rows if row[0] == key and row[1] <= value <= row[2]]
            if not matches:
                assert at == -1
                continue
            choose = max if latest else min
            best = choose(row[1:3] for row in matches)
            assert rows[at] == max(row for row in matches if row[1:3] == best)


@given(st.lists(st.tuples(small, small, small, small), max_size=20), st.randoms())
def test_of_several_rows_of_a_key_the_greatest_counts_in_any_order(
    rows: list[Range], random: object
) -> None:
    for order in (rows, rows[::-1], sorted(rows)):
        made = DictionaryRows(table(order), len(order), shape(), 1)
        keys = sorted({row[0] for row in rows})
        found = made.find([pa.array(keys, pa.int64())], len(keys)).tolist()
        assert [order[at] for at in found] == [max(r for r in rows if r[0] == k) for k in keys]
        assert made.find([pa.array([99], pa.int64())], 1).tolist() == [-1]


def path(parents: dict[int, int], key: int) -> list[int]:
    """Return the keys from `key` up; 0 is the root, and no key is met twice."""
    keys: list[int] = []
    while key in parents and key not in keys:
        keys.append(key)
        key = parents[key]
        if parents[keys[-1]] == 0:
            return keys
    return keys if not keys or key in keys else [*keys, key]


def under(parents: dict[int, int], keys: set[int], levels: int) -> list[int]:
    """Return the keys `levels` steps below, 0: any number; a key counts where it is met first."""
    collected: list[int] = []
    met: set[int] = set()
    for step in range(levels or 50):
        keys = {key for key, parent in parents.items() if parent in keys} - met
        met |= keys
        if not levels or step == levels - 1:
            collected += sorted(keys)
    return collected


@given(st.dictionaries(st.integers(1, 8), st.integers(0, 9), max_size=8), st.integers(1, 3))
def test_a_hierarchy_is_walked_as_step_by_step(parents: dict[int, int], levels: int) -> None:
    columns = [pa.array(list(parents), pa.uint64()), pa.array(list(parents.values()), pa.uint64())]
    tree = DictionaryRows(columns, len(parents), shape(parent=1), 1).tree
    keys = [*range(11), 3]
    asked = pa.array(keys, pa.uint64())
    paths = [path(parents, k) for k in keys]
    assert lists(*tree.paths(asked), len(keys)).to_pylist() == paths
    assert tree.roots(asked).to_pylist() == [keys_up[-1] if keys_up else 0 for keys_up in paths]
    for steps in (0, levels):
        below = lists(*tree.below(asked, steps), len(keys)).to_pylist()
        assert below == [under(parents, {key}, steps) for key in keys]
    ancestors = pa.array([k % 4 for k in keys], pa.uint64())
    expected = [k % 4 in path(parents, k) for k in keys]
    assert np.array_equal(tree.is_below(asked, ancestors), expected)
