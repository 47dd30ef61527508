"""Conditions in the code domain: what reads one text column is computed once for each text.

A text column may come as codes of a dictionary that many batches share (`storage/shared_codes.py`).  Then
`url LIKE '%x%'` is evaluated over the dictionary, and a row takes the value of its code.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.execute.operators.coded_texts import TextValues, decoded, is_over_one_text
from olapdb.execute.operators.row_filter import RowFilter
from olapdb.plan.expressions import Call, ColumnRef, Expression, columns_of, with_children


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

    def over(self, batch: pa.RecordBatch) -> tuple[RowFilter, pa.RecordBatch]:
        """Return conditions that mean the same, and the batch to evaluate them on, without
        dictionaries."""
        if not self._used or pa.DictionaryType not in map(type, batch.schema.types):
            return self._plain, batch
        batch = batch.select([name for name in batch.schema.names if name in self._used])
        computed = self._computed(batch)
        if computed is None:
            return self._plain, decoded(batch)
        kept = [name for name in batch.schema.names if name not in self.columns]
        arrays = [*(batch.column(name) for name in kept), *computed.values()]
        return self._coded, decoded(pa.RecordBatch.from_arrays(arrays, [*kept, *computed]))

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

    def _computed(self, batch: pa.RecordBatch) -> dict[str, pa.Array] | None:
        """Return the values of the parts for each row; None where they are not to be computed over
        a dictionary."""
        computed = {}
        for part, replacement in self._parts.items():
            (name,) = columns_of(part)
            column = batch.column(name)
            if not isinstance(column, pa.DictionaryArray):
                return None
            values = self._values.of(part, column)
            if values is None:
                return None
            computed[replacement.name] = values
        return computed or None
