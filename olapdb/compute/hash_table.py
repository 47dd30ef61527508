"""A set of rows to look up other rows in: the build side of a join, the set of an IN.

For few distinct rows Arrow builds a hash table for every batch.  For many, an index by hashes is built
once (`hash_index`); for integers that all differ, in a narrow span, a bit for each number of it (`number_set`).  Rows with arrays or maps are encoded again together with each batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

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
from olapdb.compute.number_set import Codes, Members, NumberSet
from olapdb.compute.row_hash import can_be_hashed, row_hashes
from olapdb.config import tuning
from olapdb.functions.kernels.columns import true_positions
from olapdb.records import dataclass
from olapdb.threads import cores
from olapdb.types.arrow_values import from_numpy, scalar_of, to_numpy

_MISSING = scalar_of(-1, pa.int32())

BUILD_BYTES_PER_ROW = 48
BUILD_BYTES_PER_COLUMN = 8
BUILD_ARRAY_COPIES = 8


def build_bytes(columns: Sequence[pa.Array], rows: int) -> int:
    """Estimate the peak memory of building a `Lookup` of the columns, its result included.

    Counted are hashes and numbers of the rows, unsorted and sorted, and a copy of the columns;
    several copies of arrays, whose elements are numbered first."""
    if not columns:
        return rows * BUILD_BYTES_PER_COLUMN
    total_bytes = rows * (BUILD_BYTES_PER_ROW + BUILD_BYTES_PER_COLUMN * len(columns))
    for column in columns:
        total_bytes += int(column.nbytes) * (BUILD_ARRAY_COPIES if _has_list(column.type) else 1)
    return total_bytes


def estimate_build_bytes(types: Sequence[pa.DataType], rows: int, nbytes: int) -> int:
    """Return `build_bytes` of columns of these types that are not computed yet, and have at most
    `nbytes`."""
    copies = BUILD_ARRAY_COPIES if any(_has_list(arrow) for arrow in types) else 1
    return rows * (BUILD_BYTES_PER_ROW + BUILD_BYTES_PER_COLUMN * len(types)) + copies * nbytes


class Lookup:
    """A set of rows to look up other rows in: the build side of a join, the set of an IN.

    Each distinct row has a code, in 0 … count. `matches_null`: NULL equals NULL, as in set
    operations; otherwise, as in joins and IN, a row with a NULL has no code.  `keeps_rows`: the
    caller keeps the columns, and reads the rows of each code from `order` and `starts` (see
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
        rows_without_null = None
        if self.has_null and not matches_null:
            rows_without_null = np.flatnonzero(~any_null(columns, rows))
        self._ranked = None if self.has_null else _ranked(columns, rows)
        if self._ranked is None:
            grouped = _grouped(columns, rows, rows_without_null, threads or cores())
        else:
            grouped = group_by_code(self._ranked.rank(columns[0]), rows)
        self.count = grouped.count
        self.starts = grouped.starts
        self.order = grouped.order if keeps_rows else None
        self._columns = list(columns)
        self._at: np.ndarray | None = grouped.firsts  # the row of each code in the columns
        self._is_held_by_caller = keeps_rows
        if self.count < rows and not (keeps_rows and grouped.hashes is not None):
            self._columns = [column.take(from_numpy(self._at)) for column in columns]
            self._at, self._is_held_by_caller = None, False
        self._codes: Codes | None = None
        self._has_looked_for_codes = False
        self._index: HashIndex | None = None
        self._steps: list[_LookupStep] | None = None
        if self._ranked is not None:
            pass
        elif grouped.hashes is not None:
            leaves = _hashed_leaves(self._columns)
            self._index = HashIndex.of(
                grouped.hashes, leaves, self._at, without_null=not matches_null
            )
        else:
            self._at = None  # the columns are in code order
            self._steps = self._build(self._columns)

    @property
    def sizes(self) -> np.ndarray:
        """Return for each code the number of rows that have it."""
        return np.ones(self.count, np.int64) if self.starts is None else np.diff(self.starts)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the set in memory, without those of columns that the caller keeps."""
        numbers = {
            id(numbering): numbering
            for numbering in (self.starts, self.order, self._at)
            if numbering is not None
        }
        size = sum(array.nbytes for array in numbers.values())
        if not self._is_held_by_caller:
            size += sum(column.nbytes for column in self._columns)
        size += sum(step.nbytes for step in self._steps or ())
        return size + (self._index.nbytes if self._index is not None else 0)

    def values(self, column: int) -> pa.Array:
        """Return a column of the distinct rows, in any order."""
        values = self._columns[column]
        return (
            values
            if self._at is None or self.count == len(values)
            else values.take(from_numpy(self._at))
        )

    def find(self, columns: Sequence[pa.Array], rows: int) -> np.ndarray:
        """Return the code of each row, -1 if the set lacks the row; int64, shape (rows,)."""
        if self._ranked is not None:
            (column,), arrow = columns, self._columns[0].type
            return self._ranked.rank(column if column.type == arrow else column.cast(arrow))
        numbered = self._numbered(columns, rows)
        if numbered is not None:
            return numbered.find(columns[0])
        if self._index is not None:
            cast_columns = [
                column_to_find
                if column_to_find.type == set_column.type
                else column_to_find.cast(set_column.type)
                for set_column, column_to_find in zip(self._columns, columns, strict=True)
            ]
            codes = self._index.find(
                _hashed_leaves(cast_columns), rows, with_null=self.matches_null
            )
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

    def contains(self, columns: Sequence[pa.Array], rows: int) -> pa.BooleanArray:
        """Return a mask of the rows that the set has. A row with a NULL is never in it."""
        members = self._members
        tables = [
            (member, column)
            for member, column in zip(members, columns, strict=True)
            if member is not None and column.type == member.numbers.values.type
        ]
        if not tables:
            known: pa.BooleanArray | None = None
            if self._index is not None and len(columns) == 1 and len(self._columns) == 1:
                (column,), arrow = columns, self._columns[0].type
                if column.type == arrow and not pa.types.is_struct(arrow):
                    known = self._index.contains(column)
            if known is not None:
                return known
            return from_numpy(self.find(columns, rows) >= 0)
        (first, column), *others = sorted(tables, key=lambda table: table[0].share)
        may_be = first.find(column)
        if len(columns) == 1:
            return may_be
        candidates = true_positions(may_be)
        for member, column in others:
            kept = member.find(column.take(from_numpy(candidates)))
            candidates = candidates[true_positions(kept)]
        is_contained = np.zeros(rows, bool)
        if len(candidates):
            taken = [column.take(from_numpy(candidates)) for column in columns]
            is_contained[candidates] = self.find(taken, len(candidates)) >= 0
        return from_numpy(is_contained)

    @property
    def members(self) -> Sequence[Members | None]:
        """Return for each column the set of numbers that occur in it; a value outside of it is in no row. None for
        columns without one. Where the rows have one column this decides whether a value is in the set."""
        return self._members

    @cached_property
    def _members(self) -> Sequence[Members | None]:
        """For each column of integers or days in a narrow span, a bit for each number that occurs; None for the other
        columns, for an empty set, and where a NULL matches. Made at the first use, and of bounded size: they do not
        count in `nbytes`."""
        if not self.count or (self.matches_null and self.has_null):
            return [None] * len(self._columns)
        return [self._members_of(column) for column in range(len(self._columns))]

    def _members_of(self, column: int) -> Members | None:
        """Return a bit for each number of a column's span that says whether it occurs; None for other types and wide
        spans."""
        if self._ranked is not None:
            return self._ranked
        values = self.values(column)
        numbers = NumberSet.of(values.drop_null() if values.null_count else values)
        return None if numbers is None else numbers.members()

    @cached_property
    def value_counts(self) -> Sequence[int]:
        """Return how many values each column has; `count`, which none exceeds, where counting would take long."""
        if len(self._columns) == 1:
            return [self.count]
        return [self.count if member is None else member.count for member in self._members]

    @property
    def is_quick(self) -> bool:
        """Return whether a bit for each integer rules out most rows that the set lacks."""
        return any(member is not None for member in self._members)

    def _numbered(self, columns: Sequence[pa.Array], rows: int) -> Codes | None:
        """Return a table of codes for a column of integers or days in a narrow span; None for others, and
        where few rows are to be found. Made at the first use, and of bounded size."""
        if len(columns) != 1 or rows < tuning.CODE_TABLE_ROWS_MIN or not self.count:
            return None
        if not self._has_looked_for_codes:
            if not self.has_null and len(self._columns) == 1:
                (values,) = self._columns
                by_code = values if self._at is None else values.take(from_numpy(self._at))
                numbers = NumberSet.of(by_code)
                self._codes = None if numbers is None else numbers.codes(rows)
            self._has_looked_for_codes = True
        codes = self._codes
        if codes is None or codes.numbers.values.type != columns[0].type:
            return None
        return codes

    @property
    def rescans_for_each_batch(self) -> bool:
        """Return whether `find` passes over the whole set for each batch."""
        if self._ranked is not None:
            return False
        return (
            self._steps is None if self.count < tuning.INDEXED_VALUES_MIN else self._index is None
        )

    def _without_null(
        self, codes: np.ndarray, columns: Sequence[pa.Array], rows: int
    ) -> np.ndarray:
        """Return the codes with -1 for rows with a NULL, unless NULL equals NULL in this set."""
        if self.matches_null or not any(column.null_count for column in columns):
            return codes
        return np.where(any_null(columns, rows), -1, codes)

    def _find_jointly(self, columns: Sequence[pa.Array], rows: int) -> np.ndarray:
        """Find rows with arrays or maps, which must be encoded together with the set's."""
        joint_columns = [
            pa.concat_arrays([set_column, column_to_find.cast(set_column.type)])
            for set_column, column_to_find in zip(self._columns, columns, strict=True)
        ]
        # The set's rows come first and are distinct, so their joint codes are 0, 1, … in order.
        codes = factorise(joint_columns, self.count + rows).codes[self.count :]
        return self._without_null(np.where(codes < self.count, codes, -1), columns, rows)

    @staticmethod
    def _build(unique: Sequence[pa.Array]) -> list[_LookupStep] | None:
        """Return a step for each flat column of the distinct rows; None for arrays and maps."""
        if any(_has_list(column.type) for column in unique):
            return None
        steps: list[_LookupStep] = []
        codes: np.ndarray | None = None
        leaves = [leaf for column in unique for leaf in leaves_of(column)]
        if len(leaves) == 1:  # its values are distinct
            return [_LookupStep(_Values(leaves[0]), len(leaves[0]), None)]
        for leaf in leaves:
            encoded = leaf.dictionary_encode("encode")
            leaf_codes = to_numpy(encoded.indices).astype(np.int64)
            values = encoded.dictionary
            if codes is None:
                steps.append(_LookupStep(_Values(values), len(values), None))
                codes = leaf_codes
                continue
            pairs = from_numpy(codes * len(values) + leaf_codes).dictionary_encode("encode")
            steps.append(_LookupStep(_Values(values), len(values), _Values(pairs.dictionary)))
            codes = to_numpy(pairs.indices).astype(np.int64)
        return steps


@dataclass(frozen=True)
class _LookupStep:
    """One column of a lookup: its distinct values, and the pairs (code so far, value) that occur.

    Pairs are renumbered after each column, so a packed pair is below rows squared."""

    values: _Values
    radix: int
    pairs: _Values | None

    @property
    def nbytes(self) -> int:
        """Return the size of the values and pairs."""
        return self.values.nbytes + (self.pairs.nbytes if self.pairs is not None else 0)

    def apply(self, codes: np.ndarray, column: pa.Array) -> np.ndarray:
        """Return the codes of rows from their codes so far and their values; -1 if missing."""
        positions = self.values.find(column)
        if self.pairs is None:
            return np.where(codes < 0, -1, positions)
        missing = (codes < 0) | (positions < 0)
        packed = np.where(missing, -1, codes * self.radix + positions)
        return self.pairs.find(from_numpy(packed))


@dataclass(frozen=True)
class _Values:
    """Distinct values, perhaps with a NULL, to find positions in."""

    values: pa.Array

    @property
    def nbytes(self) -> int:
        """Return the size of the values."""
        return int(self.values.nbytes)

    def find(self, column: pa.Array) -> np.ndarray:
        """Return the position of each value, -1 for a missing value; int64."""
        if not len(self.values):
            return np.full(len(column), -1, np.int64)
        if pa.types.is_null(self.values.type):
            return np.where(to_numpy(column.is_null()), 0, -1)
        if column.type != self.values.type:
            column = column.cast(self.values.type)
        matches = pc.fill_null(pc.index_in(column, value_set=self.values), _MISSING)
        positions: np.ndarray = to_numpy(matches).astype(np.int64)
        return positions


def _ranked(columns: Sequence[pa.Array], rows: int) -> Members | None:
    """Return the set of many integers or days without NULL, all of which differ, in a narrow span: their order is their
    number. None for other columns."""
    if len(columns) != 1 or rows < tuning.INDEXED_VALUES_MIN or rows > np.iinfo(np.int32).max:
        return None
    numbers = NumberSet.of(columns[0])
    if numbers is None or numbers.span < rows or numbers.span > tuning.RANKED_SPAN_FACTOR * rows:
        return None
    members = numbers.members()
    return members if members is not None and members.count == rows else None


def _grouped(
    columns: Sequence[pa.Array], rows: int, only: np.ndarray | None, threads: int
) -> GroupedRows:
    """Group equal rows (only those in `only`, if given).

    Uses hashes if most of many rows are distinct, else group codes."""
    if not columns:  # all rows are equal
        order = np.arange(rows, dtype=row_number_type(rows))
        return GroupedRows(order, np.array([0, rows]) if rows else None, None)
    leaves: list[pa.Array] = []
    if not any(_has_list(column.type) for column in columns):
        leaves = _hashed_leaves(columns)
    is_hashed = bool(leaves) and can_be_hashed(leaves)
    if is_hashed and rows >= tuning.INDEXED_VALUES_MIN and is_mostly_distinct(leaves, rows):
        grouped = group_by_hash(leaves, rows, threads, only)
        if grouped is not None:
            return grouped
    if only is not None:
        columns = [column.take(from_numpy(only)) for column in columns]
        rows = len(only)
    groups = factorise(columns, rows, threads=threads)
    codes, hashes = groups.codes, None
    if is_hashed and groups.count >= tuning.INDEXED_VALUES_MIN:
        firsts = from_numpy(groups.first)
        hashes = row_hashes(
            _hashed_leaves([group_column.take(firsts) for group_column in columns]), groups.count
        )
        order = sort_by_hash(hashes, threads)
        if (hashes[tuning.EQUAL_HASHES_MAX :] == hashes[: -tuning.EQUAL_HASHES_MAX]).any():
            hashes = None
        else:
            ranks = np.empty(groups.count, np.int64)
            ranks[order] = np.arange(groups.count)
            codes = np.take(ranks, codes)
    grouped = group_by_code(codes, groups.count)
    order = grouped.order if only is None else only.astype(grouped.order.dtype)[grouped.order]
    return GroupedRows(order, grouped.starts, hashes)


def _hashed_leaves(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Flatten columns without lists: a struct gives its fields, then a Bool of validity.

    A struct has the same leaves with nulls as without."""
    leaves: list[pa.Array] = []
    for column in columns:
        if pa.types.is_struct(column.type):
            leaves += [*_hashed_leaves(column.flatten()), column.is_valid()]
        else:
            leaves.append(column)
    return leaves


def any_null(columns: Sequence[pa.Array], rows: int) -> np.ndarray:
    """Return a mask of the rows in which a column is NULL; bool, shape (rows,)."""
    null = np.zeros(rows, bool)
    for column in columns:
        if column.null_count:
            null |= to_numpy(column.is_null())
    return null


def _has_list(arrow: pa.DataType) -> bool:
    """Return whether the type is, or as a struct contains, a list or a map."""
    if pa.types.is_struct(arrow):
        return any(_has_list(arrow.field(index).type) for index in range(arrow.num_fields))
    return bool(pa.types.is_list(arrow) or pa.types.is_map(arrow) or pa.types.is_large_list(arrow))
