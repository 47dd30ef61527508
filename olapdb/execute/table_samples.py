"""Samples of tables: what some of a table's rows say of conditions and of numbers of distinct values.

A sample has rows of a few row groups, spread over the table's largest parts; a column of it is read when
an estimate first needs it, and kept as long as the snapshot.  Bounds and sketches know nothing of skew,
of conditions that depend on each other, or of the values of an expression; the rows of a sample do.
They are estimates: nothing but the order of joins, and what is worth an attempt, may depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import TypeVar

import numpy as np
import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array, evaluate_predicate
from olapdb.config import tuning
from olapdb.errors import Error
from olapdb.execute.operators.part_scan import Piece, Source, read_task
from olapdb.execute.pruning.granule_selection import PartSelection
from olapdb.functions.kernels.columns import true_positions
from olapdb.functions.kernels.hashing import hash_values, mix
from olapdb.model.schema import Table
from olapdb.optimize.cardinality import Estimator
from olapdb.optimize.statistics import statistics_of
from olapdb.plan.conditions import all_of
from olapdb.plan.expressions import (
    Call,
    Cast,
    ColumnRef,
    Constant,
    Expression,
    InValues,
    columns_of,
    walk,
)
from olapdb.storage.distinct_counts import distinct_counts
from olapdb.storage.reader import PartReader
from olapdb.types.arrow_values import from_numpy

GROUPS_MAX = 4
"""Row groups of which a sample has rows."""
ROWS = 8_192
_PARTS_MAX = 8
"""The largest parts, of which the row groups are chosen."""
_SPREAD_MIN = 0.3
"""The part of a column's interval that the chosen row groups must have: rows that are stored in the order
of a column say nothing about those of other groups."""
_ANSWERS_MAX = 512
"""Answers that are kept for a table."""
_KEPT_MIN = 32
"""Rows that conditions must keep of a sample so that these rows tell how many values there are."""
_NOT_RUN = frozenset({"sleep", "sleepEachRow", "throwIf"})
_RUN = (Call, Cast, ColumnRef, Constant, InValues)

Answer = TypeVar("Answer")


class TableSamples:
    """The samples of a snapshot's tables."""

    def __init__(self, context: ExecutionContext) -> None:
        self._snapshot = context.require_snapshot()
        # What is read for estimates is not read for the query.
        self._context = ExecutionContext(
            snapshot=self._snapshot, store=context.require_store(), environment=context.environment
        )

    def kept(self, table: Table, conditions: Sequence[Expression]) -> tuple[int, int] | None:
        """Return how many rows of the sample meet all conditions, over the table's names of columns,
        and how many rows it has; None where a sample says nothing about them."""
        return self._answer(table, ("kept", *conditions), lambda: self._kept(table, conditions))

    def distinct(
        self, table: Table, expressions: Sequence[Expression], conditions: Sequence[Expression]
    ) -> float | None:
        """Return about how many combinations of values expressions have over the rows of a table that
        meet the conditions; None where a sample does not tell it."""
        key = ("distinct", *expressions, "of", *conditions)
        return self._answer(table, key, lambda: self._distinct(table, expressions, conditions))

    def _answer(
        self, table: Table, key: Hashable, answer: Callable[[], Answer | None]
    ) -> Answer | None:
        """Return an answer about a table, kept as long as the snapshot; None if the rows do not give
        it. Which error there was is of no interest: the query that reads the rows will say so."""
        answers: dict[Hashable, Answer | None] = self._snapshot.derived(
            ("sample answers", table.id), dict
        )
        with suppress(TypeError):  # a key that is not hashable
            if key in answers:
                return answers[key]
        known: Answer | None = None
        with suppress(Error, pa.ArrowException, NotImplementedError):
            known = answer()
        with suppress(TypeError):
            if len(answers) >= _ANSWERS_MAX:
                answers.clear()
            answers[key] = known
        return known

    def _kept(self, table: Table, conditions: Sequence[Expression]) -> tuple[int, int] | None:
        """Return how many rows of the sample meet all conditions, and how many rows it has; None where there is no
        sample for the columns."""
        rows = self._rows(table, conditions)
        if rows is None:
            return None
        return self._mask(rows, conditions).true_count, rows.num_rows

    def _mask(self, rows: pa.RecordBatch, conditions: Sequence[Expression]) -> pa.BooleanArray:
        """Return a mask of the rows that meet the conditions, of which there is one at least."""
        return evaluate_predicate(all_of(conditions), rows, self._context.environment)

    def _distinct(
        self, table: Table, expressions: Sequence[Expression], conditions: Sequence[Expression]
    ) -> float | None:
        """Return the estimated number of combinations of values that `distinct` returns, without keeping it."""
        rows = self._rows(table, [*expressions, *conditions])
        if rows is None:
            return None
        share = self._table_rows(table) / rows.num_rows
        if conditions:
            rows = rows.take(from_numpy(true_positions(self._mask(rows, conditions))))
            if rows.num_rows < _KEPT_MIN:
                return None
        hashes = np.zeros(rows.num_rows, np.uint64)
        for expression in expressions:
            values = evaluate_array(expression, rows, self._context.environment)
            hashes = mix(hashes) ^ hash_values(values)
        counts = np.unique(hashes, return_counts=True)[1]
        once = int((counts == 1).sum())
        if 2 * once > rows.num_rows:
            return None
        # Guaranteed-error estimator: Charikar, Chaudhuri, Motwani, Narasayya 2000.
        return len(counts) - once + math.sqrt(max(share, 1.0)) * once

    # --- the rows

    def _table_rows(self, table: Table) -> int:
        """Return the number of rows of the table in the snapshot."""
        return sum(part.rows for part in self._snapshot.parts(table.id))

    def _rows(self, table: Table, expressions: Sequence[Expression]) -> pa.RecordBatch | None:
        """Return the sample's rows with the columns that expressions read, None where there are none,
        or the expressions should not be evaluated on them."""
        names = sorted(frozenset().union(*map(columns_of, expressions)))
        if self._table_rows(table) < tuning.SAMPLED_ROWS_MIN or not all(map(_may_run, expressions)):
            return None
        pieces = self._pieces(table)
        if not pieces or not names:
            return None
        if not all(self._is_spread(table, name, pieces) for name in names):
            return None
        columns = [self._column(table, name, pieces) for name in names]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def _pieces(self, table: Table) -> tuple[Piece, ...]:
        """Return the row groups that the sample has rows of."""
        return self._snapshot.derived(("sample groups", table.id), lambda: self._chosen(table))

    def _chosen(self, table: Table) -> tuple[Piece, ...]:
        """Choose row groups at even distances in the largest parts. Raises the errors of reading
        their footers."""
        store, environment = self._context.require_store(), self._context.environment
        parts = [part for part in self._snapshot.parts(table.id) if part.rows]
        parts = sorted(parts, key=lambda part: part.rows, reverse=True)[:_PARTS_MAX]
        groups = []
        for part in parts:
            reader = PartReader(store, self._snapshot, part, table, environment)
            sizes = reader.group_rows
            for number, size in enumerate(sizes):
                selection = PartSelection(part, reader, (number,), (size,), (sum(sizes[:number]),))
                groups.append(Piece(selection, (number,), (size,), selection.group_offsets))
        count = min(GROUPS_MAX, len(groups))
        return tuple(groups[(2 * at + 1) * len(groups) // (2 * count)] for at in range(count))

    def _column(self, table: Table, name: str, pieces: Sequence[Piece]) -> pa.Array:
        """Return a column of the sample's rows."""
        return self._snapshot.derived(
            ("sample", table.id, name), lambda: self._read(table, name, pieces)
        )

    def _read(self, table: Table, name: str, pieces: Sequence[Piece]) -> pa.Array:
        """Read a column of the sample's rows."""
        column = table.column(name)
        assert column is not None, "checked by _is_spread"
        source = Source(name, name, column.type)
        chunks = []
        for piece in pieces:
            values = read_task((piece,), [source], table, self._context).column(0)
            chunks.append(values.take(from_numpy(_positions(piece, pieces))))
        return pa.concat_arrays(chunks)

    def _is_spread(self, table: Table, name: str, pieces: Sequence[Piece]) -> bool:
        """Return whether the chosen row groups can stand for the table in a stored column: they have all rows, or each
        spans a large enough share, `_SPREAD_MIN` on average, of the column's range. Without numbers as bounds: whether
        it is not the first column of the sorting key."""
        if table.column(name) not in table.stored_columns:
            return False
        whole = statistics_of(self._snapshot)(table)
        if sum(piece.rows for piece in pieces) >= whole.rows:
            return True
        low, high, _ = whole.bounds.get(name, (None, None, 0))
        if not isinstance(low, int | float) or not isinstance(high, int | float):
            first = next(iter(table.sorting_key), None)
            return first is None or first.expression != name
        spans = []
        for piece in pieces:
            assert piece.groups is not None
            group = piece.selection.reader.row_groups[piece.groups[0]]
            least, most, _ = group.bounds.get(name, (None, None, 0))
            if not isinstance(least, int | float) or not isinstance(most, int | float):
                return True
            spans.append(most - least)
        return sum(spans) >= _SPREAD_MIN * len(spans) * (high - low)


def estimator_of(context: ExecutionContext) -> Estimator:
    """Return estimates of what a plan over the context's snapshot gives: by the statistics of its
    tables, and by samples of them."""
    snapshot = context.require_snapshot()
    counts = distinct_counts(context.require_store(), snapshot)
    return Estimator(statistics_of(snapshot, counts), TableSamples(context))


def _positions(piece: Piece, pieces: Sequence[Piece]) -> np.ndarray:
    """Return the ascending positions of the rows that the sample takes of one of its row groups.

    They are drawn, since rows at even distances may be all alike, and always the same."""
    share = ROWS / sum(piece.rows for piece in pieces)
    if share >= 1:
        return np.arange(piece.rows, dtype=np.int64)
    drawn = mix(np.arange(1, piece.rows + 1, dtype=np.uint64)) >> np.uint64(32)
    return np.flatnonzero(drawn < np.uint64(share * (1 << 32)))


def _may_run(expression: Expression) -> bool:
    """Return whether an expression may be evaluated on the sample: it consists of columns, constants and pure calls
    that give the same for each row by itself, without subqueries."""
    for e in walk(expression):
        if not isinstance(e, _RUN):
            return False
        if isinstance(e, Call) and (e.function.volatility != "pure" or e.name in _NOT_RUN):
            return False
    return True
