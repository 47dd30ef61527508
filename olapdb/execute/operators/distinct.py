"""DISTINCT, EXCEPT and INTERSECT: rows compared as wholes, NULL equal to NULL."""

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
    """The first row of each distinct key, as soon as it is seen."""
    with context.memory.account("DISTINCT") as account:
        seen = SeenRows(account, context.threads)
        for batch in child:
            context.check()
            keys = [
                evaluate_array(key, batch, context.environment, context.subqueries)
                for key in node.keys
            ] or list(batch.columns)
            fresh = seen.add(keys, batch.num_rows)
            if len(fresh):
                yield take_rows(batch, pa.array(fresh))


def set_difference_batches(
    node: SetDifference,
    left: Iterator[pa.RecordBatch],
    right: Iterator[pa.RecordBatch],
    context: ExecutionContext,
) -> Iterator[pa.RecordBatch]:
    """EXCEPT and INTERSECT. DISTINCT compares sets; ALL counts: a row that is n times at the left
    and m times at the right is max(n - m, 0) times in EXCEPT, min(n, m) times in INTERSECT."""
    hold = context.memory.account
    with hold(node.operator) as account, hold(node.operator) as account_of_seen:
        held = RowBuffer(node.right.schema, account)
        for batch in right:
            context.check()
            held.add(batch)
        known = held.build_lookup(matches_null=True, threads=context.threads)
        counted = _Counted(known)
        seen = SeenRows(account_of_seen, context.threads)
        for batch in left:
            context.check()
            codes = known.find(batch.columns, batch.num_rows)
            matched = codes >= 0 if node.distinct else counted.match(codes)
            positions = np.flatnonzero(matched if node.operator == "INTERSECT" else ~matched)
            kept = take_rows(batch, pa.array(positions))
            if node.distinct:
                fresh = seen.add(kept.columns, kept.num_rows)
                kept = take_rows(kept, pa.array(fresh))
            if kept.num_rows:
                yield make_batch(kept.columns, node.fields, kept.num_rows)


class _Counted:
    """How often each row of the right side is still to be matched."""

    def __init__(self, known: Lookup) -> None:
        self._left = known.sizes

    def match(self, codes: np.ndarray) -> np.ndarray:
        """Which of the rows find one, the earlier ones first; those are used up."""
        groups = Groups(np.where(codes < 0, len(self._left), codes), len(self._left) + 1)
        available = np.append(self._left, 0)
        matched: np.ndarray = ranks_in_groups(groups) < available[groups.codes]
        self._left = np.maximum(self._left - groups.sizes[:-1], 0)
        return matched


class SeenRows:
    """Distinct rows so far, in a few sets of growing size.

    A new batch is looked up in each set; the newest sets are joined when they have grown as large
    as the one before, so that each row is put into a set log(rows) times.
    """

    def __init__(self, account: MemoryAccount, threads: int = 0) -> None:
        self._account = account
        self._threads = threads
        self._levels: list[tuple[list[pa.Array], Lookup]] = []

    @property
    def nbytes(self) -> int:
        return sum(lookup.nbytes for _, lookup in self._levels)

    def add(self, columns: Sequence[pa.Array], rows: int) -> np.ndarray:
        """Positions of the rows that are new, first occurrences only, ascending. Raises
        MemoryLimitExceeded where they would be too many."""
        fresh = factorise(columns, rows, threads=self._threads).first
        for _, lookup in self._levels:
            if not len(fresh):
                return fresh
            taken = [column.take(pa.array(fresh)) for column in columns]
            fresh = fresh[lookup.find(taken, len(fresh)) < 0]
        if len(fresh):
            self._remember([column.take(pa.array(fresh)) for column in columns], len(fresh))
        return fresh

    def _remember(self, columns: list[pa.Array], rows: int) -> None:
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
