"""Expressions over the dictionaries of text columns: computed once for each text, taken by code."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.errors import Error
from olapdb.functions.kernels import columns as arrow_columns
from olapdb.plan import expressions
from olapdb.plan.expressions import ColumnRef, Expression, columns_of, walk

_DICTIONARIES_MAX = 32
"""Dictionaries whose values an operator keeps: those that its threads read now, and some more."""

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

_Identity: TypeAlias = tuple[int, int, int, int]


@dataclass
class _Dictionary:
    """A dictionary, the values of expressions over it, and the rows that were read with it. Holding
    the texts keeps their addresses from being used again."""

    texts: pa.Array
    values: dict[Expression, pa.Array | None] = field(default_factory=dict)
    rows: int = 0


class TextValues:
    """The values of expressions for each text of the dictionaries that batches have. For many threads."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context
        self._dictionaries: dict[_Identity, _Dictionary] = {}

    def of(self, expression: Expression, column: pa.DictionaryArray) -> pa.Array | None:
        """Return the value of an expression over one column for each text of its dictionary, then, if
        the column has NULLs, that of NULL.

        Returns None while fewer rows were read than there are texts, and where a text fails: it may
        be that no row has it."""
        known = self._known(column.dictionary)
        has_null = column.null_count > 0
        if expression in known.values:
            values = known.values[expression]
            if values is None or not has_null or len(values) > len(known.texts):
                return values
        known.rows += len(column)
        if len(known.texts) > known.rows:
            return None
        texts = known.texts
        if has_null:
            texts = pa.concat_arrays([texts, pa.nulls(1, texts.type)])
        batch = pa.RecordBatch.from_arrays([texts], list(columns_of(expression)))
        try:
            values = evaluate_array(
                expression, batch, self._context.environment, self._context.subqueries
            )
        except Error:
            values = None
        known.values[expression] = values
        return values

    def _known(self, texts: pa.Array) -> _Dictionary:
        """Return what is known of a dictionary."""
        addresses = [0 if buffer is None else buffer.address for buffer in texts.buffers()[1:]]
        identity = (addresses[0], addresses[-1], texts.offset, len(texts))
        known = self._dictionaries.get(identity)
        if known is None:
            known = _Dictionary(texts)
            if len(self._dictionaries) >= _DICTIONARIES_MAX:
                self._dictionaries = {}
            self._dictionaries[identity] = known
        return known


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


def is_over_one_text(expression: Expression, texts: frozenset[str]) -> bool:
    """Return whether the value of the expression depends on one of the columns `texts` alone."""
    read = columns_of(expression)
    return (
        len(read) == 1
        and read <= texts
        and not isinstance(expression, ColumnRef)
        and all(
            isinstance(one, _OVER_TEXTS)
            and not (isinstance(one, expressions.Call) and one.function.volatility == "row")
            for one in walk(expression)
        )
    )


def taken(values: pa.Array, codes: pa.Array) -> pa.Array:
    """Return the value of each code; the last value is that of NULL, if there are any."""
    if codes.null_count:
        codes = codes.fill_null(len(values) - 1)
    if values.null_count or values.type != pa.uint8():
        return values.take(codes)
    numbers = arrow_columns.numpy_values(values)[arrow_columns.numpy_values(codes)]
    return arrow_columns.from_values(np.asarray(numbers), pa.uint8())
