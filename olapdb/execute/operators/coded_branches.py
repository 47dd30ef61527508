"""`if(c, text, 'constant')` as codes: each row takes the code of its text, or that of the constant, so that no text is
made."""

from __future__ import annotations

import threading
from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_predicate
from olapdb.execute.operators.compact_columns import decoded
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression, columns_of
from olapdb.storage.column_chunks import are_one_array
from olapdb.types import DataType, LowCardinality, String
from olapdb.types.arrow_values import FALSE, from_numpy, to_numpy

_EXTENDED_MAX = 1 << 16
"""A dictionary of at most so many texts is copied for the sake of a constant that it lacks."""


def branch_column(expression: Expression, texts: Collection[str]) -> str | None:
    """Return the text column that is a branch of an `if` with one condition, whose other branch is the same column or a
    constant; None for other expressions."""
    if not isinstance(expression, Call) or expression.name not in ("if", "multiIf"):
        return None
    if len(expression.arguments) != 3 or not _is_text(expression.type):
        return None
    branches = expression.arguments[1:]
    names = {branch.name for branch in branches if isinstance(branch, ColumnRef)}
    are_texts = all(
        isinstance(branch, ColumnRef | Constant) and _is_text(branch.type) for branch in branches
    )
    return next(iter(names)) if are_texts and len(names) == 1 and names <= set(texts) else None


def _is_text(data_type: DataType) -> bool:
    """Return whether the type is String and not Nullable."""
    inner = data_type.inner if isinstance(data_type, LowCardinality) else data_type
    return isinstance(inner, String)


class BranchCodes:
    """The dictionaries of a query's columns with the constants of branches behind their texts. For many threads."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context
        self._known: list[tuple[pa.Array, pa.Scalar, pa.Array | None, int]] = []
        self._lock = threading.Lock()

    def of(self, expression: Expression, batch: pa.RecordBatch) -> pa.Array | None:
        """Return the values of an expression that has a `branch_column`, which is a dictionary without NULL, as codes;
        None for others."""
        name = branch_column(expression, batch.schema.names)
        column = None if name is None else batch.column(name)
        if not isinstance(column, pa.DictionaryArray) or column.null_count:
            return None
        if len(column.dictionary) > max(_EXTENDED_MAX, batch.num_rows):
            return None  # looking for the constant would cost more than the texts of the rows
        assert isinstance(expression, Call)
        condition, *branches = expression.arguments
        codes: list[np.ndarray | np.integer] = []
        dictionary = column.dictionary
        numbers = to_numpy(column.indices)
        for branch in branches:
            if isinstance(branch, Constant):
                extended, code = self._with_constant(column.dictionary, branch.value)
                if extended is None:
                    return None
                dictionary = extended
                codes.append(np.int32(code))
            else:
                codes.append(numbers)
        read = columns_of(condition)
        rows = batch.select([n for n in batch.schema.names if n in read]) if read else batch
        context = self._context
        mask = evaluate_predicate(condition, decoded(rows), context.environment, context.subqueries)
        is_true = to_numpy(pc.fill_null(mask, FALSE))
        chosen = np.where(is_true, codes[0], codes[1]).astype(np.int32, copy=False)
        return pa.DictionaryArray.from_arrays(from_numpy(chosen), dictionary, safe=False)

    def _with_constant(self, dictionary: pa.Array, value: pa.Scalar) -> tuple[pa.Array | None, int]:
        """Return a dictionary that contains a text, and the code of that text in it: the given dictionary, or a copy
        with the text at its end. (None, -1) for a large dictionary that lacks it. The same dictionary gives the same
        one each time."""
        with self._lock:
            for known, constant, extended, code in self._known:
                if constant.equals(value) and are_one_array(known, dictionary):
                    return extended, code
            with_value: pa.Array | None = dictionary
            code = pc.index(dictionary, value.cast(dictionary.type)).as_py()
            if code < 0 and len(dictionary) <= _EXTENDED_MAX:
                code = len(dictionary)
                more = pa.array([value.as_py()], dictionary.type)
                with_value = pa.concat_arrays([dictionary, more])
            elif code < 0:
                with_value = None
            self._known.append((dictionary, value, with_value, code))
            return with_value, code
