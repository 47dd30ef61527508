"""Values of dictionary functions for the rows of a batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import broadcast, single_chunk
from olapdb.compute.dictionary_rows import DictionaryRows
from olapdb.compute.dictionary_tree import lists
from olapdb.compute.hash_table import any_null
from olapdb.functions.base import Column
from olapdb.plan.expressions import Constant, DictionaryCall, Expression
from olapdb.types.arrow_values import from_numpy

Evaluate = Callable[[Expression, pa.RecordBatch], Column]


def dictionary_value(
    call: DictionaryCall, batch: pa.RecordBatch, rows: DictionaryRows, evaluate: Evaluate
) -> Column:
    """Return the value of a call for each row of the batch; a scalar if all arguments are constant.

    The default is evaluated for the rows whose key is missing only."""
    values = [evaluate(argument, batch) for argument in call.arguments]
    is_constant = all(isinstance(value, pa.Scalar) for value in values)
    is_constant = is_constant and isinstance(call.default, Constant | None)
    length = 1 if is_constant else batch.num_rows
    arguments = [
        single_chunk(broadcast(value, length, argument.type))
        for value, argument in zip(values, call.arguments, strict=True)
    ]
    if call.kind == "get":
        result = _attribute(call, arguments, length, batch, rows, evaluate)
    else:
        result = _walk(call, arguments, length, rows)
        null = any_null(arguments, length)
        if null.any():
            result = pc.if_else(from_numpy(null), pa.scalar(None, result.type), result)
    return result[0] if is_constant else result


def _walk(
    call: DictionaryCall, arguments: list[pa.Array], length: int, rows: DictionaryRows
) -> pa.Array:
    """Return the answer of a call about keys: whether they exist, whether one is below another, the keys above or below
    them, or those with a value of an attribute."""
    match call.kind:
        case "has":
            return from_numpy((rows.find(arguments, length) >= 0).astype(np.uint8))
        case "is_in":
            return from_numpy(rows.tree.is_below(arguments[0], arguments[1]).astype(np.uint8))
        case "hierarchy":
            return lists(*rows.tree.paths(arguments[0]), length)
        case "root":
            return rows.tree.roots(arguments[0])
        case "keys":
            return lists(*rows.keys_with(call.attribute, arguments[0]), length)
        case _:
            return lists(*rows.tree.below(arguments[0], call.levels), length)


def _attribute(
    call: DictionaryCall,
    arguments: list[pa.Array],
    length: int,
    batch: pa.RecordBatch,
    rows: DictionaryRows,
    evaluate: Evaluate,
) -> pa.Array:
    """Return the attribute of each key; the default's value where the dictionary lacks it."""
    at = rows.find(arguments, length)
    missing = (at < 0) & ~any_null(arguments, length)
    column = rows.columns[call.attribute]
    values = column.take(from_numpy(at, null=at < 0))
    if call.default is None or not missing.any():
        return values
    lacking = np.flatnonzero(missing)
    sub_batch = batch if isinstance(call.default, Constant) else batch.take(from_numpy(lacking))
    default = evaluate(call.default, sub_batch)
    defaults = single_chunk(broadcast(default, len(lacking), call.default.type))
    if len(lacking) == length:
        return defaults
    choice = np.arange(length)
    choice[lacking] = length + np.arange(len(lacking))
    return pa.concat_arrays([values, defaults]).take(from_numpy(choice))
