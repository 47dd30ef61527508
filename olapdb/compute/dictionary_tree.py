"""The hierarchy of a dictionary: each key has a parent, up to a root."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.compute.hash_table import Lookup
from olapdb.types.arrow_values import from_numpy, to_numpy

_STEPS_MAX = 1000
"""The most steps up or down a hierarchy, as in ClickHouse."""


class Tree:
    """Keys and the keys of their parents; `ends` marks keys that have no parent above them.

    A parent need not be a key. Walks end at a key that they have met before."""

    def __init__(self, keys: pa.Array, parents: pa.Array, ends: np.ndarray) -> None:
        self._keys = keys
        self._key_values = to_numpy(keys)
        self._parents = parents
        self._ends = ends
        self._lookup = Lookup([keys], len(keys))
        codes = self._lookup.find([keys], len(keys))
        self._row_of_code = np.empty(len(keys), np.int64)
        self._row_of_code[codes] = np.arange(len(keys))
        has_parent = np.flatnonzero(~to_numpy(parents.is_null()))
        below = parents.take(from_numpy(has_parent))
        self._parent_lookup = Lookup([below], len(below))
        parent_codes = self._parent_lookup.find([below], len(below))
        order = np.lexsort((self._key_values[has_parent], parent_codes))
        self._children = has_parent[order]
        counts = np.arange(self._parent_lookup.count + 1)
        self._child_starts = np.searchsorted(parent_codes[order], counts)

    def _rows(self, keys: pa.Array) -> np.ndarray:
        """Return the row of each key, -1 where there is none; int64."""
        codes = self._lookup.find([keys], len(keys))
        if not len(self._row_of_code):
            return codes
        return np.where(codes >= 0, self._row_of_code[codes], -1)

    def paths(self, keys: pa.Array) -> tuple[np.ndarray, pa.Array]:
        """Return the keys from each key up to the root: (owner of each, in order; the keys)."""
        rows = self._rows(keys)
        owners = np.flatnonzero(rows >= 0)
        rows = rows[owners]
        levels: list[tuple[np.ndarray, pa.Array]] = [(owners, self._keys.take(from_numpy(rows)))]
        met = np.full((len(keys), 0), -1, np.int64)
        for _ in range(_STEPS_MAX):
            if not len(owners):
                break
            column = np.full((len(keys), 1), -1, np.int64)
            column[owners, 0] = rows
            met = np.concatenate([met, column], axis=1)
            climbs = ~self._ends[rows]
            owners, rows = owners[climbs], rows[climbs]
            above = self._parents.take(from_numpy(rows))
            rows = self._rows(above)
            is_new = (rows < 0) | ~(met[owners] == rows[:, None]).any(axis=1)
            levels.append((owners[is_new], above.filter(from_numpy(is_new))))
            goes_on = is_new & (rows >= 0)
            owners, rows = owners[goes_on], rows[goes_on]
        return _by_owner(levels, self._keys.type)

    def roots(self, keys: pa.Array) -> pa.Array:
        """Return the last key of each path; 0 for a key that the dictionary lacks."""
        owners, path = self.paths(keys)
        last = np.flatnonzero(
            np.append(owners[1:] != owners[:-1], np.ones(min(len(owners), 1), bool))
        )
        values = np.zeros(len(keys), np.uint64)
        values[owners[last]] = path.to_numpy(zero_copy_only=False)[last]
        return pa.array(values).cast(self._keys.type)

    def is_below(self, keys: pa.Array, ancestors: pa.Array) -> np.ndarray:
        """Return whether each ancestor is on the path of its key, the key itself included; bool."""
        owners, path = self.paths(keys)
        wanted = ancestors.take(from_numpy(owners))
        equal = to_numpy(path) == to_numpy(wanted)
        result = np.zeros(len(keys), bool)
        result[owners[equal]] = True
        return result

    def below(self, keys: pa.Array, levels: int) -> tuple[np.ndarray, pa.Array]:
        """Return the keys that are `levels` steps below each key, 0: any number of them.

        A key counts where it is met first. The result is as of `paths`: nearer keys first, then by
        value."""
        distinct = keys.dictionary_encode()
        at = to_numpy(distinct.indices).astype(np.int64)
        count = max(1, len(self._key_values))
        owners = np.arange(len(distinct.dictionary))
        frontier = distinct.dictionary
        seen = np.zeros(0, np.int64)
        collected: list[tuple[np.ndarray, np.ndarray]] = []
        for step in range(1, (levels or _STEPS_MAX) + 1):
            owners, rows = self._children_of(owners, frontier)
            pairs = np.unique(owners * count + rows)
            pairs = np.setdiff1d(pairs, seen, assume_unique=True)
            if not len(pairs):
                break
            owners, rows = pairs // count, pairs % count
            if not levels or step == levels:
                collected.append((owners, rows))
            seen = np.union1d(seen, pairs)
            frontier = self._keys.take(from_numpy(rows))
        return self._repeated(at, len(distinct.dictionary), collected)

    def _children_of(self, owners: np.ndarray, keys: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of the children of each key, and the key's owner for each."""
        codes = self._parent_lookup.find([keys], len(keys))
        owners, codes = owners[codes >= 0], codes[codes >= 0]
        starts = self._child_starts[codes]
        sizes = self._child_starts[codes + 1] - starts
        at = np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        return np.repeat(owners, sizes), self._children[at]

    def _repeated(
        self, at: np.ndarray, count: int, collected: list[tuple[np.ndarray, np.ndarray]]
    ) -> tuple[np.ndarray, pa.Array]:
        """Return the rows below `count` distinct keys, for each of the keys at positions `at`."""
        levels = [
            (owners[order], self._keys.take(from_numpy(rows[order])))
            for owners, rows in collected
            for order in [np.lexsort((self._key_values[rows], owners))]
        ]
        owners, values = _by_owner(levels, self._keys.type)
        sizes = np.bincount(owners, minlength=count)
        starts = np.cumsum(sizes) - sizes
        repeated = sizes[at]
        offsets = np.cumsum(repeated) - repeated
        taken = np.arange(repeated.sum()) + np.repeat(starts[at] - offsets, repeated)
        return np.repeat(np.arange(len(at)), repeated), values.take(from_numpy(taken))


def _by_owner(
    levels: list[tuple[np.ndarray, pa.Array]], arrow: pa.DataType
) -> tuple[np.ndarray, pa.Array]:
    """Return the values of all levels sorted by owner, those of an owner in the order given."""
    owners = np.concatenate([np.zeros(0, np.int64), *(level[0] for level in levels)])
    values = pa.concat_arrays([pa.nulls(0, arrow), *(level[1].cast(arrow) for level in levels)])
    order = np.argsort(owners, kind="stable")
    return owners[order], values.take(from_numpy(order))


def lists(owners: np.ndarray, values: pa.Array, rows: int) -> pa.ListArray:
    """Return the values as one list for each of `rows` owners."""
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(np.bincount(owners, minlength=rows), out=offsets[1:])
    return pa.ListArray.from_arrays(from_numpy(offsets), values)
