"""DISTINCT, EXCEPT and INTERSECT: rows compared as wholes, NULL equal to NULL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from olapdb.execute.batches import make_batch, single_batch, table_of, take_rows
from olapdb.execute.codes import factorise
from olapdb.execute.context import ExecutionContext
from olapdb.execute.evaluate import evaluate_array
from olapdb.execute.limit import ranks_in_groups
from olapdb.execute.lookup import Lookup
from olapdb.functions.base import Groups
from olapdb.plan.nodes import Distinct, SetDifference


def distinct_batches(
    node: Distinct, child: Iterator[pa.RecordBatch], context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """The first row of each distinct key, as soon as it is seen."""
    seen = SeenRows()
    with context.memory.hold("DISTINCT") as account:
        for batch in child:
            context.check()
            keys = [
                evaluate_array(key, batch, context.environment, context.subqueries)
                for key in node.keys
            ] or list(batch.columns)
            fresh = seen.add(keys, batch.num_rows)
            account.set(seen.nbytes)
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
    with context.memory.hold(node.operator) as account:
        rows = single_batch(table_of(list(right), node.right.schema))
        known = Lookup(rows.columns, rows.num_rows, matches_null=True)
        account.set(known.nbytes)
        counted = _Counted(known)
        seen = SeenRows()
        for batch in left:
            context.check()
            codes = known.find(batch.columns, batch.num_rows)
            matched = codes >= 0 if node.distinct else counted.match(codes)
            positions = np.flatnonzero(matched if node.operator == "INTERSECT" else ~matched)
            kept = take_rows(batch, pa.array(positions))
            if node.distinct:
                fresh = seen.add(kept.columns, kept.num_rows)
                kept = take_rows(kept, pa.array(fresh))
                account.set(known.nbytes + seen.nbytes)
            if kept.num_rows:
                yield make_batch(kept.columns, node.fields, kept.num_rows)


class _Counted:
    """How often each row of the right side is still to be matched."""

    def __init__(self, known: Lookup) -> None:
        self._left = np.bincount(known.codes, minlength=known.count)

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

    def __init__(self) -> None:
        self._levels: list[tuple[list[pa.Array], int, Lookup]] = []

    @property
    def nbytes(self) -> int:
        return sum(lookup.nbytes for _, _, lookup in self._levels)

    def add(self, columns: Sequence[pa.Array], rows: int) -> np.ndarray:
        """Positions of the rows that are new, first occurrences only, ascending."""
        fresh = factorise(columns, rows).first
        for _, _, lookup in self._levels:
            if not len(fresh):
                return fresh
            taken = [column.take(pa.array(fresh)) for column in columns]
            fresh = fresh[lookup.find(taken, len(fresh)) < 0]
        if len(fresh):
            self._remember([column.take(pa.array(fresh)) for column in columns], len(fresh))
        return fresh

    def _remember(self, columns: list[pa.Array], rows: int) -> None:
        while self._levels and self._levels[-1][1] <= 2 * rows:
            older, older_rows, _ = self._levels.pop()
            columns = [pa.concat_arrays(pair) for pair in zip(older, columns, strict=True)]
            rows += older_rows
        self._levels.append((columns, rows, Lookup(columns, rows, matches_null=True)))
