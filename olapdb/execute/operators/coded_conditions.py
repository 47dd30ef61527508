"""Conditions in the code domain: what reads one text column is computed once for each text.

A text column may come as codes of a dictionary that many batches share (`storage/shared_codes.py`).  Then
`url LIKE '%x%'` is evaluated over the dictionary, and a row takes the value of its code.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.errors import Error
from olapdb.functions.kernels import columns as arrow_columns
from olapdb.plan import expressions
from olapdb.plan.expressions import ColumnRef, Expression, columns_of, walk, with_children

_DICTIONARIES_MAX = 32
"""Dictionaries whose values a scan keeps: those that its threads read now, and some more."""

_OVER_TEXTS = (
    expressions.Call,
    expressions.Cast,
    expressions.InValues,
    expressions.InSubquery,
    expressions.ScalarSubquery,
    expressions.LambdaFunction,
    expressions.LambdaParameter,
    expressions.Constant,
    ColumnRef,
)
"""The expressions whose value depends on the columns that `columns_of` names alone, if no function is
volatile."""


class CodedConditions:
    """The conditions of a scan, with the parts of them that read one text column. For many threads.

    `columns` are the unique names of the text columns that only such parts read."""

    def __init__(
        self, conditions: Sequence[Expression], texts: frozenset[str], context: ExecutionContext
    ) -> None:
        self._plain = list(conditions)
        self._context = context
        self._parts: dict[Expression, ColumnRef] = {}
        self._coded = [self._rewritten(condition, texts) for condition in conditions]
        still_read = frozenset().union(*map(columns_of, self._coded))
        self.columns = frozenset(next(iter(columns_of(part))) for part in self._parts) - still_read
        self._values: dict[tuple[int, int], dict[str, pa.Array | None]] = {}
        self._held: dict[tuple[int, int], pa.Array] = {}
        self._rows: dict[tuple[int, int], int] = {}

    def over(self, batch: pa.RecordBatch) -> tuple[list[Expression], pa.RecordBatch]:
        """Return conditions that mean the same, and the batch to evaluate them on, without
        dictionaries."""
        names = [name for name in batch.schema.names if name in self.columns]
        coded = [isinstance(batch.column(name), pa.DictionaryArray) for name in names]
        if not any(coded):
            return self._plain, batch
        computed = self._computed(batch) if all(coded) else None
        if computed is None:
            return self._plain, decoded(batch)
        kept = [name for name in batch.schema.names if name not in self.columns]
        arrays = [*(batch.column(name) for name in kept), *computed.values()]
        return self._coded, decoded(pa.RecordBatch.from_arrays(arrays, [*kept, *computed]))

    def _rewritten(self, expression: Expression, texts: frozenset[str]) -> Expression:
        """Return the expression with a column in place of each largest part over one of the text
        columns."""
        read = columns_of(expression)
        if not read or isinstance(expression, ColumnRef):
            return expression
        if len(read) == 1 and read <= texts and _is_of_columns(expression):
            name = f"#coded{len(self._parts)}"
            return self._parts.setdefault(expression, ColumnRef(expression.type, name))
        if isinstance(expression, expressions.Call):
            children = tuple(self._rewritten(child, texts) for child in expression.children())
            return with_children(expression, children)
        return expression

    def _computed(self, batch: pa.RecordBatch) -> dict[str, pa.Array] | None:
        """Return the values of the parts for each row; None where they are not to be computed over
        a dictionary."""
        computed = {}
        for part, column in self._parts.items():
            (name,) = columns_of(part)
            if name not in self.columns:
                computed[column.name] = evaluate_array(
                    part, decoded(batch), self._context.environment, self._context.subqueries
                )
                continue
            values = self._of_texts(part, column.name, batch.column(name), name)
            if values is None:
                return None
            computed[column.name] = _taken(values, batch.column(name).indices)
        return computed

    def _of_texts(
        self, part: Expression, key: str, column: pa.DictionaryArray, name: str
    ) -> pa.Array | None:
        """Return the value of a part for each text of the column's dictionary, and for NULL.

        Returns None while fewer rows were read than there are texts, and where a text fails: it may
        be that no row has it."""
        texts = column.dictionary
        identity = (texts.buffers()[-1].address if texts.buffers()[-1] else 0, len(texts))
        if len(self._held) > _DICTIONARIES_MAX and identity not in self._held:
            self._held, self._values, self._rows = {}, {}, {}
        self._held[identity] = texts
        known = self._values.setdefault(identity, {})
        if key in known:
            return known[key]
        rows = self._rows[identity] = self._rows.get(identity, 0) + len(column)
        if len(texts) > rows:
            return None
        inputs = pa.concat_arrays([texts, pa.nulls(1, texts.type)]) if column.null_count else texts
        batch = pa.RecordBatch.from_arrays([inputs], [name])
        try:
            values = evaluate_array(
                part, batch, self._context.environment, self._context.subqueries
            )
        except Error:
            values = None
        known[key] = values
        return values


def decoded(batch: pa.RecordBatch, keep: Collection[str] = ()) -> pa.RecordBatch:
    """Return the batch with texts in place of dictionaries, except for the columns in `keep`."""
    names = batch.schema.names
    if not any(pa.types.is_dictionary(arrow) for arrow in batch.schema.types):
        return batch
    arrays = [
        column.dictionary_decode()
        if isinstance(column, pa.DictionaryArray) and name not in keep
        else column
        for name, column in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names)


def _is_of_columns(expression: Expression) -> bool:
    """Return whether the value of the expression depends on its columns alone."""
    return all(
        isinstance(one, _OVER_TEXTS)
        and not (isinstance(one, expressions.Call) and one.function.volatility == "row")
        for one in walk(expression)
    )


def _taken(values: pa.Array, codes: pa.Array) -> pa.Array:
    """Return the value of each code; the last value is that of NULL, if there are any."""
    if codes.null_count:
        codes = codes.fill_null(len(values) - 1)
    if values.null_count or values.type != pa.uint8():
        return values.take(codes)
    numbers = arrow_columns.numpy_values(values)[arrow_columns.numpy_values(codes)]
    return arrow_columns.from_values(np.asarray(numbers), pa.uint8())
