"""Rows looked up among other rows: the build side of a join, the set of an IN.

Few values are looked up by Arrow, which makes a hash table of them for every batch.  Of many whole
numbers, dates and times an index is made once: their hashes, in buckets by the upper bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.execute.codes import factorise, leaves_of
from olapdb.functions.hashing import hash_values

INDEXED_VALUES_MIN = 1 << 14
"""About as many as a hash table of them costs what a batch of rows does."""


class Lookup:
    """A set of rows that other rows are looked up in: the build side of a join, the set of an IN.

    `matches_null`: whether NULL equals NULL (set operations do, joins and IN do not).
    """

    def __init__(
        self,
        columns: Sequence[pa.Array],
        rows: int,
        *,
        matches_null: bool = False,
        threads: int = 0,
    ) -> None:
        self.matches_null = matches_null
        self.has_null = any(column.null_count > 0 for column in columns)
        found = factorise(columns, rows, threads=threads)
        self.codes = found.codes
        if not matches_null and self.has_null:
            self.codes = np.where(any_null(columns, rows), -1, self.codes)
        self.count = found.count
        self._unique = [column.take(pa.array(found.first)) for column in columns]
        self._steps = self._build(self._unique)

    @property
    def nbytes(self) -> int:
        unique_bytes: int = sum(column.nbytes for column in self._unique)
        indexed = sum(step.nbytes for step in self._steps or ())
        return self.codes.nbytes + unique_bytes + indexed

    def values(self, column: int) -> pa.Array:
        """A column of the distinct rows."""
        return self._unique[column]

    def find(self, columns: Sequence[pa.Array], rows: int) -> np.ndarray:
        """The code of each row in the set, -1 where it is not in it; int64, shape (rows,)."""
        if self._steps is None:
            return self._find_jointly(columns, rows)
        codes = np.zeros(rows, np.int64) if self.count else np.full(rows, -1, np.int64)
        leaves = [leaf for column in columns for leaf in leaves_of(column)]
        if len(leaves) != len(self._steps):  # a struct with nulls on one side only
            return self._find_jointly(columns, rows)
        for leaf, step in zip(leaves, self._steps, strict=True):
            codes = step.apply(codes, leaf)
        return self._without_null(codes, columns, rows)

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
            for ours, theirs in zip(self._unique, columns, strict=True)
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
            return [_LookupStep(_Values.of(leaves[0]), len(leaves[0]), None)]
        for leaf in leaves:
            encoded = leaf.dictionary_encode("encode")
            own = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            values = encoded.dictionary
            if codes is None:
                steps.append(_LookupStep(_Values.of(values), len(values), None))
                codes = own
                continue
            pairs = pa.array(codes * len(values) + own).dictionary_encode("encode")
            steps.append(_LookupStep(_Values.of(values), len(values), _Values.of(pairs.dictionary)))
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
    """Distinct values, NULL among them or not, and where each is.

    With an index: `hashes` in the order of their upper bits, `at` the position of each one's value,
    `starts[b]` the first hash whose upper bits are b or more."""

    values: pa.Array
    hashes: np.ndarray | None = None
    at: np.ndarray | None = None
    starts: np.ndarray | None = None
    null_at: int = -1

    @classmethod
    def of(cls, values: pa.Array) -> _Values:
        if len(values) < INDEXED_VALUES_MIN or not _are_told_by_hash(values.type):
            return cls(values)
        valid = np.flatnonzero(np.asarray(values.is_valid()))
        hashes = hash_values(values.drop_null() if values.null_count else values)
        bits = len(hashes).bit_length()
        buckets = hashes >> np.uint64(64 - bits)
        order = _radix_sorted(buckets)
        starts = np.zeros((1 << bits) + 1, np.int64)
        np.cumsum(np.bincount(buckets.view(np.int64), minlength=1 << bits), out=starts[1:])
        null_at = int(pc.index(values.is_null(), True).as_py()) if values.null_count else -1
        return cls(values, hashes[order], valid[order], starts, null_at)

    @property
    def nbytes(self) -> int:
        indexed = (self.hashes, self.at, self.starts)
        return int(self.values.nbytes) + sum(one.nbytes for one in indexed if one is not None)

    def find(self, column: pa.Array) -> np.ndarray:
        """The position of each value, -1 where it is none of them; int64. NULL is found where it is
        among them."""
        if not len(self.values):
            return np.full(len(column), -1, np.int64)
        if pa.types.is_null(self.values.type):
            return np.where(column.is_null().to_numpy(zero_copy_only=False), 0, -1)
        if column.type != self.values.type:
            column = column.cast(self.values.type)
        if self.hashes is None:
            return self._find_by_arrow(column)
        if not column.null_count:
            return self._find_by_index(hash_values(column))
        found = np.full(len(column), self.null_at, np.int64)
        found[np.asarray(column.is_valid())] = self._find_by_index(hash_values(column.drop_null()))
        return found

    def _find_by_arrow(self, column: pa.Array) -> np.ndarray:
        positions = pc.fill_null(pc.index_in(column, value_set=self.values), -1)
        made: np.ndarray = positions.to_numpy(zero_copy_only=False).astype(np.int64)
        return made

    def _find_by_index(self, wanted: np.ndarray) -> np.ndarray:
        assert self.hashes is not None
        assert self.at is not None
        assert self.starts is not None
        bits = (len(self.starts) - 1).bit_length() - 1
        bucket = (wanted >> np.uint64(64 - bits)).astype(np.int64)
        place, stop = self.starts[bucket], self.starts[bucket + 1]
        found = np.full(len(wanted), -1, np.int64)
        rows = np.flatnonzero(place < stop)  # those still searched
        place, stop, wanted = place[rows], stop[rows], wanted[rows]
        while len(rows):
            hit = self.hashes[place] == wanted
            found[rows[hit]] = self.at[place[hit]]
            place = place + 1
            more = np.flatnonzero(~hit & (place < stop))
            rows, place, stop, wanted = rows[more], place[more], stop[more], wanted[more]
        return found


def _radix_sorted(values: np.ndarray) -> np.ndarray:
    """The stable order of numbers below 2 ** 48: 16 bits at a time, which numpy sorts by counting."""
    order = np.argsort((values & np.uint64(0xFFFF)).astype(np.uint16), kind="stable")
    for shift in (16, 32):
        more = values >> np.uint64(shift)
        if not more.any():
            break
        digit = (more & np.uint64(0xFFFF)).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
    return order


def _are_told_by_hash(arrow: pa.DataType) -> bool:
    """Whether no two values have one hash: splitmix64 maps 64 bits one to one."""
    return bool(
        pa.types.is_integer(arrow) or pa.types.is_date(arrow) or pa.types.is_timestamp(arrow)
    )


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
