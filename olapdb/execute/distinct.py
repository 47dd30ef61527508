"""DISTINCT, EXCEPT and INTERSECT: rows compared as wholes, NULL equal to NULL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from olapdb.execute.batches import make_batch, single_batch, table_of, take_rows
from olapdb.execute.codes import Lookup, factorise
from olapdb.execute.context import ExecutionContext
from olapdb.execute.evaluate import evaluate_array
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
    """Rows of the left side that are not (EXCEPT) or are (INTERSECT) among the right side's."""
    with context.memory.hold(node.operator) as account:
        rows = single_batch(table_of(list(right), node.right.schema))
        known = Lookup(rows.columns, rows.num_rows, matches_null=True)
        account.set(known.nbytes)
        seen = SeenRows()
        for batch in left:
            context.check()
            found = known.find(batch.columns, batch.num_rows) >= 0
            positions = np.flatnonzero(found if node.operator == "INTERSECT" else ~found)
            kept = take_rows(batch, pa.array(positions))
            if node.distinct:
                fresh = seen.add(kept.columns, kept.num_rows)
                kept = take_rows(kept, pa.array(fresh))
                account.set(known.nbytes + seen.nbytes)
            if kept.num_rows:
                yield make_batch(kept.columns, node.fields, kept.num_rows)


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
