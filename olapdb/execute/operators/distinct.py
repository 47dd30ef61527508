"""DISTINCT, EXCEPT and INTERSECT: whole rows are compared, and NULL equals NULL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import make_batch, take_rows
from olapdb.compute.context import ExecutionContext, MemoryAccount
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.group_codes import factorise
from olapdb.compute.hash_table import Lookup, build_bytes
from olapdb.compute.row_buffer import RowBuffer
from olapdb.execute.operators.limit import ranks_in_groups
from olapdb.functions.base import Groups
from olapdb.plan.nodes import Distinct, SetDifference


def distinct_batches(
    node: Distinct, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the first row of each distinct key, as soon as it comes."""
    with context.memory.account("DISTINCT") as account:
        seen = SeenRows(account, context.threads)
        for batch in child:
            context.check()
            keys = [
                evaluate_array(key, batch, context.environment, context.subqueries)
                for key in node.keys
            ] or list(batch.columns)
            new_rows = seen.add(keys, batch.num_rows)
            if len(new_rows):
                yield take_rows(batch, pa.array(new_rows))


def set_difference_batches(
    node: SetDifference,
    left: Iterator[pa.RecordBatch],
    right: Iterator[pa.RecordBatch],
    context: ExecutionContext,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of EXCEPT or INTERSECT.

    DISTINCT compares sets. ALL counts: a row that is n times at the left and m times at the right is
    max(n - m, 0) times in EXCEPT, min(n, m) times in INTERSECT."""
    memory = context.memory
    with memory.account(node.operator) as account, memory.account(node.operator) as seen_account:
        buffer = RowBuffer(node.right.schema, account)
        for batch in right:
            context.check()
            buffer.add(batch)
        right_rows = buffer.build_lookup(matches_null=True, threads=context.threads)
        unmatched = _UnmatchedCounts(right_rows)
        seen = SeenRows(seen_account, context.threads)
        for batch in left:
            context.check()
            codes = right_rows.find(batch.columns, batch.num_rows)
            matched = codes >= 0 if node.distinct else unmatched.match(codes)
            positions = np.flatnonzero(matched if node.operator == "INTERSECT" else ~matched)
            rows = take_rows(batch, pa.array(positions))
            if node.distinct:
                new_rows = seen.add(rows.columns, rows.num_rows)
                rows = take_rows(rows, pa.array(new_rows))
            if rows.num_rows:
                yield make_batch(rows.columns, node.fields, rows.num_rows)


class _UnmatchedCounts:
    """The number of unmatched right rows of each code."""

    def __init__(self, right_rows: Lookup) -> None:
        self._counts = right_rows.sizes

    def match(self, codes: np.ndarray) -> np.ndarray:
        """Match left rows, in their order, with one right row each; return a mask of the matched.

        The right rows are used up."""
        groups = Groups(np.where(codes < 0, len(self._counts), codes), len(self._counts) + 1)
        available = np.append(self._counts, 0)
        matched: np.ndarray = ranks_in_groups(groups) < available[groups.codes]
        self._counts = np.maximum(self._counts - groups.sizes[:-1], 0)
        return matched


class SeenRows:
    """The distinct rows so far, in a few sets of growing size.

    A new batch is looked up in each set. The newest sets are joined when they are as large as the one
    before, so that each row is inserted log(rows) times.
    """

    def __init__(self, account: MemoryAccount, threads: int = 0) -> None:
        self._account = account
        self._threads = threads
        self._levels: list[tuple[list[pa.Array], Lookup]] = []

    @property
    def nbytes(self) -> int:
        """Return the size of all sets."""
        return sum(lookup.nbytes for _, lookup in self._levels)

    def add(self, columns: Sequence[pa.Array], rows: int) -> np.ndarray:
        """Add rows; return the positions of the first occurrences of new rows, ascending.

        Raises MemoryLimitExceeded if the sets would be too large."""
        new_rows = factorise(columns, rows, threads=self._threads).first
        for _, lookup in self._levels:
            if not len(new_rows):
                return new_rows
            taken = [column.take(pa.array(new_rows)) for column in columns]
            new_rows = new_rows[lookup.find(taken, len(new_rows)) < 0]
        if len(new_rows):
            self._insert([column.take(pa.array(new_rows)) for column in columns], len(new_rows))
        return new_rows

    def _insert(self, columns: list[pa.Array], rows: int) -> None:
        """Add new distinct rows as the last level. Levels of at most twice as many rows join it."""
        parts = [columns]
        while self._levels and self._levels[-1][1].count <= 2 * rows:
            older, lookup = self._levels.pop()
            parts.insert(0, older)
            rows += lookup.count
            del lookup
        before = sum(column.nbytes for part in parts for column in part)
        self._account.set(self.nbytes + 2 * before)
        if len(parts) > 1:
            columns = [pa.concat_arrays(column) for column in zip(*parts, strict=True)]
        parts.clear()
        self._account.set(self.nbytes + before + build_bytes(columns, rows))
        lookup = Lookup(columns, rows, matches_null=True, threads=self._threads)
        self._levels.append((columns, lookup))
        self._account.set(self.nbytes)
