"""Conditions in the code domain: what reads one text column is computed once for each text.

A text column may come as codes of a dictionary that many batches share (`storage/shared_codes.py`).  Then
`url LIKE '%x%'` is evaluated over the dictionary, and a row takes the value of its code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from olapdb.compute.batches import rows_only
from olapdb.compute.context import ExecutionContext
from olapdb.config import tuning
from olapdb.execute.operators.coded_texts import TextValues, is_over_one_text
from olapdb.execute.operators.compact_columns import decoded
from olapdb.execute.operators.row_filter import RowFilter
from olapdb.native import selection
from olapdb.native.library import library
from olapdb.optimize.conditions import is_total
from olapdb.plan.conditions import conjuncts
from olapdb.plan.expressions import Call, ColumnRef, Expression, columns_of, walk, with_children
from olapdb.types.arrow_values import from_numpy

_ROWS_PER_ASKING_MIN = 4
"""Ask for a condition's value only for the texts of the rows that remain where they are so few."""

_COSTS = {
    "equals": 0,
    "notEquals": 0,
    "empty": 0,
    "notEmpty": 0,
    "less": 1,
    "lessOrEquals": 1,
    "greater": 1,
    "greaterOrEquals": 1,
    "startsWith": 1,
    "endsWith": 1,
}
"""What functions of conditions cost for a text; any other is a search."""
_SEARCH_COST = 2


def _cost(condition: Expression) -> int:
    """Return the relative cost of evaluating a condition for one text, that of its dearest call; 1 without calls.
    Conditions are ordered by it."""
    calls = [e.name for e in walk(condition) if isinstance(e, Call)]
    return max((_COSTS.get(name, _SEARCH_COST) for name in calls), default=1)


class CodedConditions:
    """The conditions of a scan, with the parts of them that read one text column. For many threads.

    `columns` are the unique names of the text columns that only such parts read."""

    def __init__(
        self, conditions: Sequence[Expression], texts: frozenset[str], context: ExecutionContext
    ) -> None:
        self._plain = RowFilter(conditions, context)
        self._values = TextValues(context)
        still_read = texts
        while True:  # the texts that are left are read by parts alone: fewer each time, or it ends
            self._parts: dict[Expression, ColumnRef] = {}
            coded = [self._rewritten(condition, texts) for condition in conditions]
            still_read = frozenset().union(*map(columns_of, coded)) & texts
            if not still_read:
                break
            texts -= still_read
        self._coded = RowFilter(coded, context)
        self._used = frozenset().union(*map(columns_of, conditions))
        self.columns = frozenset().union(*map(columns_of, self._parts))
        operands = [operand for condition in coded for operand in conjuncts(condition)]
        part_of = {reference: part for part, reference in self._parts.items()}
        whole = [part_of[o] for o in operands if isinstance(o, ColumnRef) and o in part_of]
        self._whole = sorted(whole, key=_cost) if all(map(is_total, whole)) else whole
        """The parts that are conditions themselves, the cheapest first; in their order where one may fail on rows
        that those before it leave out."""
        others = [o for o in operands if not (isinstance(o, ColumnRef) and o in part_of)]
        read = frozenset().union(*map(columns_of, others))
        self._others = RowFilter(others, context)
        self._parts_of_others = {p: r for p, r in self._parts.items() if r.name in read}

    def mask(
        self, batch: pa.RecordBatch, kept: pa.BooleanArray | None = None
    ) -> pa.BooleanArray | None:
        """Return a mask of the rows of `kept` (None: all) that meet the conditions, without NULL; None
        without conditions and `kept`."""
        if not self._used or pa.DictionaryType not in map(type, batch.schema.types):
            return self._plain.mask(batch, kept)
        batch = batch.select([name for name in batch.schema.names if name in self._used])
        parts, conditions, remaining = self._parts, self._coded, kept
        flagged = self._flagged(batch, kept)
        if flagged is not None:
            parts, conditions, remaining = self._parts_of_others, self._others, flagged
        computed = self._computed(parts, batch)
        if computed is None:
            return self._plain.mask(decoded(batch), kept)
        names = [name for name in batch.schema.names if name not in self.columns]
        arrays = [*(batch.column(name) for name in names), *computed.values()]
        if not arrays:
            return conditions.mask(rows_only(batch.num_rows), remaining)
        rows = decoded(pa.RecordBatch.from_arrays(arrays, [*names, *computed]))
        return conditions.mask(rows, remaining)

    def _flagged(
        self, batch: pa.RecordBatch, before: pa.BooleanArray | None
    ) -> pa.BooleanArray | None:
        """Return a mask of the rows of `before` (None: all) that the conditions on single text columns keep, judged
        once for each text. None where a column is no dictionary, a condition fails for a text, the batch is small,
        there are no such conditions, or there are no kernels."""
        if not self._whole or library() is None or batch.num_rows < tuning.RANGE_ROWS_MIN:
            return None
        rows = batch.num_rows
        kept = selection.kept_rows(before, rows)
        remaining = before
        for part in self._whole:
            (name,) = columns_of(part)
            column = batch.column(name)
            if not isinstance(column, pa.DictionaryArray):
                return None
            if remaining is not None and remaining.true_count * _ROWS_PER_ASKING_MIN <= rows:
                kept_rows = selection.positions(remaining)
                flags = self._values.flags(part, column.take(from_numpy(kept_rows)))
            else:
                flags = self._values.flags(part, column)
            if flags is None:
                return None
            selection.keep_flagged(column.indices, flags, kept)
            remaining = selection.as_mask(kept, rows)
            if not remaining.true_count:
                break
        return remaining

    def _rewritten(self, expression: Expression, texts: frozenset[str]) -> Expression:
        """Return the expression with a column in place of each largest part over one of the text
        columns."""
        if is_over_one_text(expression, texts):
            name = f"#coded{len(self._parts)}"
            return self._parts.setdefault(expression, ColumnRef(expression.type, name))
        if isinstance(expression, Call):
            children = tuple(self._rewritten(child, texts) for child in expression.children())
            return with_children(expression, children)
        return expression

    def _computed(
        self, parts: Mapping[Expression, ColumnRef], batch: pa.RecordBatch
    ) -> dict[str, pa.Array] | None:
        """Return the values of the parts for each row, by the name of the column that stands for each; None where a
        column is no dictionary, or a part fails for one of its texts."""
        computed = {}
        for part, replacement in parts.items():
            (name,) = columns_of(part)
            column = batch.column(name)
            if not isinstance(column, pa.DictionaryArray):
                return None
            values = self._values.of(part, column)
            if values is None:
                return None
            computed[replacement.name] = values
        return computed
