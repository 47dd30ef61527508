"""Rows looked up among other rows: the build side of a join, the set of an IN.

Few distinct rows are looked up by Arrow, which makes a hash table of them for every batch.  Of many
an index by their hashes is made once (`hash_index`).  Rows with arrays or maps are encoded together
with those that are looked for, each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.group_codes import factorise, is_mostly_distinct, leaves_of
from olapdb.compute.hash_index import (
    GroupedRows,
    HashIndex,
    group_by_code,
    group_by_hash,
    row_number_type,
    sort_by_hash,
)
from olapdb.compute.row_hash import can_be_hashed, row_hashes
from olapdb.threads import cores

INDEXED_VALUES_MIN = 1 << 14
"""About as many as a hash table of them costs what a batch of rows does."""
ALIKE_MAX = 16
"""Where more distinct rows than this have one hash (of numbers of 256 bits only the lower half counts)
an index would be no use."""
BUILD_BYTES_PER_ROW = 48
BUILD_BYTES_PER_COLUMN = 8
BUILD_ARRAY_COPIES = 8


def build_bytes(columns: Sequence[pa.Array], rows: int) -> int:
    """About the most that a `Lookup` of the columns takes while it is made, what it then holds
    included: hashes and numbers of the rows, as they come and sorted, and the columns once more;
    of arrays, whose elements are numbered first, several times."""
    if not columns:
        return rows * BUILD_BYTES_PER_COLUMN
    needed = rows * (BUILD_BYTES_PER_ROW + BUILD_BYTES_PER_COLUMN * len(columns))
    for column in columns:
        needed += int(column.nbytes) * (BUILD_ARRAY_COPIES if _has_list(column.type) else 1)
    return needed


class Lookup:
    """A set of rows that other rows are looked up in: the build side of a join, the set of an IN.

    Each distinct row has a code, in 0 … count. `matches_null`: whether NULL equals NULL (set
    operations do, joins and IN do not); where not, a row with one has no code.  `keeps_rows`: the
    caller holds on to the columns, and wants the rows of each code (`order`, `starts`, as in
    `GroupedRows`).
    """

    def __init__(
        self,
        columns: Sequence[pa.Array],
        rows: int,
        *,
        matches_null: bool = False,
        keeps_rows: bool = False,
        threads: int = 0,
    ) -> None:
        self.matches_null = matches_null
        self.has_null = any(column.null_count > 0 for column in columns)
        only = None
        if self.has_null and not matches_null:
            only = np.flatnonzero(~any_null(columns, rows))
        grouped = _grouped(columns, rows, only, threads or cores())
        self.count = grouped.count
        self.starts = grouped.starts
        self.order = grouped.order if keeps_rows else None
        self._columns = list(columns)
        self._at: np.ndarray | None = grouped.firsts  # where in the columns each code's values are
        self._is_held_by_caller = keeps_rows
        if self.count < rows and not (keeps_rows and grouped.hashes is not None):
            self._columns = [column.take(pa.array(self._at)) for column in columns]
            self._at, self._is_held_by_caller = None, False
        self._index: HashIndex | None = None
        self._steps: list[_LookupStep] | None = None
        if grouped.hashes is not None:
            leaves = _hashed_leaves(self._columns)
            self._index = HashIndex.of(
                grouped.hashes, leaves, self._at, without_null=not matches_null
            )
        else:
            self._at = None  # the columns are in the order of the codes
            self._steps = self._build(self._columns)

    @property
    def sizes(self) -> np.ndarray:
        """How many rows each code has."""
        return np.ones(self.count, np.int64) if self.starts is None else np.diff(self.starts)

    @property
    def nbytes(self) -> int:
        """What it holds, without columns that the caller does."""
        numbers = {id(one): one for one in (self.starts, self.order, self._at) if one is not None}
        held = sum(one.nbytes for one in numbers.values())
        if not self._is_held_by_caller:
            held += sum(column.nbytes for column in self._columns)
        held += sum(step.nbytes for step in self._steps or ())
        return held + (self._index.nbytes if self._index is not None else 0)

    def values(self, column: int) -> pa.Array:
        """A column of the distinct rows, in no certain order."""
        values = self._columns[column]
        return (
            values
            if self._at is None or self.count == len(values)
            else values.take(pa.array(self._at))
        )

    def find(self, columns: Sequence[pa.Array], rows: int) -> np.ndarray:
        """The code of each row in the set, -1 where it is not in it; int64, shape (rows,)."""
        if self._index is not None:
            cast = [
                theirs if theirs.type == ours.type else theirs.cast(ours.type)
                for ours, theirs in zip(self._columns, columns, strict=True)
            ]
            codes = self._index.find(_hashed_leaves(cast), rows, with_null=self.matches_null)
            return self._without_null(codes, columns, rows)
        if self._steps is None:
            return self._find_jointly(columns, rows)
        codes = np.zeros(rows, np.int64) if self.count else np.full(rows, -1, np.int64)
        leaves = [leaf for column in columns for leaf in leaves_of(column)]
        if len(leaves) != len(self._steps):  # a struct with nulls on one side only
            return self._find_jointly(columns, rows)
        for leaf, step in zip(leaves, self._steps, strict=True):
            codes = step.apply(codes, leaf)
        return self._without_null(codes, columns, rows)

    @property
    def finds_batches_anew(self) -> bool:
        """Whether looking rows up costs a pass over the set each time."""
        return self._steps is None if self.count < INDEXED_VALUES_MIN else self._index is None

    def _without_null(
        self, codes: np.ndarray, columns: Sequence[pa.Array], rows: int
    ) -> np.ndarray:
        if self.matches_null or not any(column.null_count for column in columns):
            return codes
        return np.where(any_null(columns, rows), -1, codes)

    def _find_jointly(self, columns: Sequence[pa.Array], rows: int) -> np.ndarray:
        """For values that must be encoded together with the set's: arrays and maps."""
        joint = [
            pa.concat_arrays([ours, theirs.cast(ours.type)])
            for ours, theirs in zip(self._columns, columns, strict=True)
        ]
        # our rows come first and are distinct, so their joint codes are 0, 1, … in order
        codes = factorise(joint, self.count + rows).codes[self.count :]
        return self._without_null(np.where(codes < self.count, codes, -1), columns, rows)

    @staticmethod
    def _build(unique: Sequence[pa.Array]) -> list[_LookupStep] | None:
        if any(_has_list(column.type) for column in unique):
            return None
        steps: list[_LookupStep] = []
        codes: np.ndarray | None = None
        leaves = [leaf for column in unique for leaf in leaves_of(column)]
        if len(leaves) == 1:  # its values are distinct as they are
            return [_LookupStep(_Values(leaves[0]), len(leaves[0]), None)]
        for leaf in leaves:
            encoded = leaf.dictionary_encode("encode")
            own = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            values = encoded.dictionary
            if codes is None:
                steps.append(_LookupStep(_Values(values), len(values), None))
                codes = own
                continue
            pairs = pa.array(codes * len(values) + own).dictionary_encode("encode")
            steps.append(_LookupStep(_Values(values), len(values), _Values(pairs.dictionary)))
            codes = pairs.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return steps


@dataclass(frozen=True)
class _LookupStep:
    """One column of a lookup: its distinct values, and the pairs (code so far, value) that occur.

    As the pairs are renumbered after each column, a packed pair is below rows squared."""

    values: _Values
    radix: int
    pairs: _Values | None

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + (self.pairs.nbytes if self.pairs is not None else 0)

    def apply(self, codes: np.ndarray, column: pa.Array) -> np.ndarray:
        found = self.values.find(column)
        if self.pairs is None:
            return np.where(codes < 0, -1, found)
        missing = (codes < 0) | (found < 0)
        packed = np.where(missing, -1, codes * self.radix + found)
        return self.pairs.find(pa.array(packed))


@dataclass(frozen=True)
class _Values:
    """Distinct values, NULL among them or not, and where each is."""

    values: pa.Array

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes)

    def find(self, column: pa.Array) -> np.ndarray:
        """The position of each value, -1 where it is none of them; int64. NULL is found where it is
        among them."""
        if not len(self.values):
            return np.full(len(column), -1, np.int64)
        if pa.types.is_null(self.values.type):
            return np.where(column.is_null().to_numpy(zero_copy_only=False), 0, -1)
        if column.type != self.values.type:
            column = column.cast(self.values.type)
        positions = pc.fill_null(pc.index_in(column, value_set=self.values), -1)
        made: np.ndarray = positions.to_numpy(zero_copy_only=False).astype(np.int64)
        return made


def _grouped(
    columns: Sequence[pa.Array], rows: int, only: np.ndarray | None, threads: int
) -> GroupedRows:
    """The rows, or those in `only`, by what they are: by hashes where there are many that differ."""
    if not columns:  # all rows are alike
        order = np.arange(rows, dtype=row_number_type(rows))
        return GroupedRows(order, np.array([0, rows]) if rows else None, None)
    leaves: list[pa.Array] = []
    if not any(_has_list(column.type) for column in columns):
        leaves = _hashed_leaves(columns)
    is_hashed = bool(leaves) and can_be_hashed(leaves)
    if is_hashed and rows >= INDEXED_VALUES_MIN and is_mostly_distinct(leaves, rows):
        grouped = group_by_hash(leaves, rows, threads, only)
        if grouped is not None:
            return grouped
    if only is not None:
        columns = [column.take(pa.array(only)) for column in columns]
        rows = len(only)
    found = factorise(columns, rows, threads=threads)
    codes, hashes = found.codes, None
    if is_hashed and found.count >= INDEXED_VALUES_MIN:
        firsts = pa.array(found.first)
        hashes = row_hashes(_hashed_leaves([c.take(firsts) for c in columns]), found.count)
        order = sort_by_hash(hashes, threads)
        if (hashes[ALIKE_MAX:] == hashes[:-ALIKE_MAX]).any():
            hashes = None
        else:
            ranks = np.empty(found.count, np.int64)
            ranks[order] = np.arange(found.count)
            codes = np.take(ranks, codes)
    grouped = group_by_code(codes, found.count)
    order = grouped.order if only is None else only.astype(grouped.order.dtype)[grouped.order]
    return GroupedRows(order, grouped.starts, hashes)


def _hashed_leaves(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """As `leaves_of`, without arrays; the same ones for structs with nulls and without."""
    leaves: list[pa.Array] = []
    for column in columns:
        if pa.types.is_struct(column.type):
            leaves += [*_hashed_leaves(column.flatten()), column.is_valid()]
        else:
            leaves.append(column)
    return leaves


def any_null(columns: Sequence[pa.Array], rows: int) -> np.ndarray:
    """Rows in which one of the columns is NULL; bool, shape (rows,)."""
    null = np.zeros(rows, bool)
    for column in columns:
        if column.null_count:
            null |= column.is_null().to_numpy(zero_copy_only=False)
    return null


def _has_list(arrow: pa.DataType) -> bool:
    if pa.types.is_struct(arrow):
        return any(_has_list(arrow.field(i).type) for i in range(arrow.num_fields))
    return bool(pa.types.is_list(arrow) or pa.types.is_map(arrow) or pa.types.is_large_list(arrow))
