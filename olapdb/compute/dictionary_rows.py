"""The rows of a dictionary in memory, found by their keys.

Of several rows with one key, or one key and range, the greatest counts: by the columns in their
order, NULL first. So what a dictionary answers depends on its rows, not on how they lie in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.dictionary_prefixes import Prefixes
from olapdb.compute.dictionary_ranges import Ranges
from olapdb.compute.dictionary_tree import Tree
from olapdb.compute.hash_table import Lookup
from olapdb.compute.ordering import OrderColumn, sort_indices
from olapdb.functions.kernels.nested_order import nested_ranks
from olapdb.functions.numeric.polygons import Polygons
from olapdb.plan.expressions import DictionaryShape
from olapdb.types.arrow_values import TRUE, from_numpy, to_numpy


class DictionaryRows:
    """The columns of a dictionary, keys first, and an index over the keys. Immutable."""

    def __init__(
        self, columns: Sequence[pa.Array], rows: int, shape: DictionaryShape, threads: int
    ) -> None:
        self.columns = list(columns)
        self.rows = rows
        self.shape = shape
        self._polygons: Polygons | None = None
        self._prefixes: Prefixes | None = None
        self._ranges: Ranges | None = None
        if shape.polygons:
            self._row_of_code = np.arange(rows)
            depth = _list_depth(self.columns[0].type)
            self._polygons = Polygons(self.columns[0], depth, self._ranks())
            return
        keys = self.columns[: shape.keys]
        self._lookup = Lookup(keys, rows, keeps_rows=True, threads=threads)
        self._row_of_code = np.zeros(0, np.int64)
        if shape.ranged:
            bounds = (self.columns[shape.keys], self.columns[shape.keys + 1])
            codes = self._codes_of_rows()
            self._ranges = Ranges(codes, self._lookup.count, bounds, self._ranks(), shape.latest)
        else:
            self._row_of_code = self._greatest_rows()
        if shape.prefixes:
            networks = self.columns[0].take(from_numpy(self._row_of_code))
            self._prefixes = Prefixes(networks, self._row_of_code)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the columns and of the index in memory."""
        if self._polygons is not None:
            return sum(int(column.nbytes) for column in self.columns) + self._polygons.nbytes
        index_bytes = self._lookup.nbytes + self._row_of_code.nbytes
        index_bytes += self._prefixes.nbytes if self._prefixes is not None else 0
        ranges_bytes = self._ranges.nbytes if self._ranges is not None else 0
        return sum(int(column.nbytes) for column in self.columns) + index_bytes + ranges_bytes

    def find(self, arguments: Sequence[pa.Array], rows: int) -> np.ndarray:
        """Return the position of the row for each key, -1 where there is none; int64.

        `arguments` are the key's columns and, for a dictionary with a range, the value in it; for
        one of networks an address, for one of polygons the two coordinates of a point."""
        if self._polygons is not None:
            return self._polygons.find(to_numpy(arguments[0]), to_numpy(arguments[1]))
        if self._prefixes is not None:
            return self._prefixes.find(arguments[0])
        codes = self._lookup.find(arguments[: self.shape.keys], rows)
        if self._ranges is not None:
            return self._ranges.find(codes, arguments[self.shape.keys])
        if not self._lookup.count:
            return np.full(rows, -1, np.int64)
        return np.where(codes >= 0, self._row_of_code[codes], -1)

    def keys_with(self, attribute: int, values: pa.Array) -> tuple[np.ndarray, pa.Array]:
        """Return the keys whose column `attribute` has each value: (owner of each; the keys).

        They are in their order; those of several columns are tuples."""
        positions = np.sort(self._ranks()[self._row_of_code])
        by_rank = np.empty(self.rows, np.int64)
        by_rank[self._ranks()] = np.arange(self.rows)
        rows = pa.array(by_rank[positions])
        column = self.columns[attribute].take(rows)
        lookup = Lookup([column], len(rows), keeps_rows=True)
        codes = lookup.find([values], len(values))
        owners = np.flatnonzero(codes >= 0)
        assert lookup.order is not None
        begins = np.cumsum(lookup.sizes) - lookup.sizes
        starts, sizes = begins[codes[owners]], lookup.sizes[codes[owners]]
        at = np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        owners = np.repeat(owners, sizes)
        places = lookup.order[at]
        order = np.lexsort((places, owners))
        chosen = rows.take(from_numpy(places[order]))
        keys = [column.take(chosen) for column in self.columns[: self.shape.keys]]
        if len(keys) == 1:
            return owners[order], keys[0]
        names = [str(place + 1) for place in range(len(keys))]
        return owners[order], pa.StructArray.from_arrays(keys, names)

    @cached_property
    def tree(self) -> Tree:
        """The hierarchy of a dictionary with one key column and a parent."""
        positions = np.sort(self._row_of_code)
        rows = from_numpy(positions)
        keys = self.columns[0].take(rows)
        parents = self.columns[self.shape.parent].take(rows)
        if self.shape.root is not None:
            is_root = pc.equal(parents, pa.scalar(self.shape.root, parents.type))
            ends = pc.or_kleene(pc.is_null(parents), pc.fill_null(is_root, TRUE))
        else:
            ends = pc.is_null(parents)
        return Tree(keys, parents, to_numpy(ends))

    def _codes_of_rows(self) -> np.ndarray:
        """Return for each row the code of its key in the index, equal for equal keys; int64."""
        assert self._lookup.order is not None
        codes = np.empty(self.rows, np.int64)
        codes[self._lookup.order] = np.repeat(np.arange(self._lookup.count), self._lookup.sizes)
        return codes

    def _greatest_rows(self) -> np.ndarray:
        """Return for each code of a key the position of its row that is greatest by all columns; int64."""
        order = self._lookup.order
        assert order is not None
        if self._lookup.count == self.rows:
            return order.astype(np.int64)
        ranks = self._ranks()
        starts = np.cumsum(self._lookup.sizes) - self._lookup.sizes
        greatest = np.maximum.reduceat(ranks[order], starts) if len(starts) else ranks[:0]
        by_rank = np.empty(self.rows, np.int64)
        by_rank[ranks] = np.arange(self.rows)
        return by_rank[greatest]

    def _ranks(self) -> np.ndarray:
        """Return the position of each row in the order of all columns, NULL first; int64. Rows that are equal by all
        columns are ordered by the signs of their zeros, so that equal rows are the same bytes."""
        columns = [OrderColumn(column, nulls_first=True) for column in self.columns]
        columns += [
            OrderColumn(from_numpy(nested_ranks(column, zeros_apart=True)), nulls_first=True)
            for column in self.columns
            if pa.types.is_floating(column.type) or pa.types.is_nested(column.type)
        ]
        ranks = np.empty(self.rows, np.int64)
        ranks[to_numpy(sort_indices(columns, self.rows))] = np.arange(self.rows)
        return ranks


def _list_depth(arrow: pa.DataType) -> int:
    """Return how many lists enclose the values of a type."""
    return 1 + _list_depth(arrow.value_type) if pa.types.is_list(arrow) else 0
