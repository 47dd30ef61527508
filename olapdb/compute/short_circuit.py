"""if, multiIf, and, or: a branch is evaluated only on the rows that need it.

`if(b = 0, 0, intDiv(a, b))` must not divide by zero.  A branch is computed on its rows and spread
to the batch's length, with NULL or the type's default on the other rows.  The function's kernel
chooses among these columns, so a lazy call has the same result as an eager one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import broadcast, filter_rows
from olapdb.functions import default_value
from olapdb.functions.base import Column, Environment
from olapdb.plan import expressions
from olapdb.types import Boolean, DataType, Float, Integer, is_nullable, plain
from olapdb.types.arrow_values import FALSE, from_numpy, to_numpy

Evaluate = Callable[[expressions.Expression, pa.RecordBatch], Column]

_SAFE = frozenset(
    {
        "equals",
        "notEquals",
        "less",
        "lessOrEquals",
        "greater",
        "greaterOrEquals",
        "and",
        "or",
        "not",
        "isNull",
        "isNotNull",
        "if",
        "multiIf",
        "ifNull",
        "coalesce",
        "empty",
        "notEmpty",
        "length",
        "assumeNotNull",
        "toNullable",
        "toYear",
        "toMonth",
        "toYYYYMM",
        "toDayOfMonth",
        "toDayOfWeek",
        "toHour",
    }
)
"""Functions that cannot fail and cost less than selecting rows."""

_SAFE_OF_NUMBERS = frozenset({"plus", "minus", "multiply", "divide", "negate", "abs"})
"""Functions that are safe too of integers and floats: a Decimal overflows, or is divided by 0."""


def needs_laziness(call: expressions.Call) -> bool:
    """Return whether evaluating every branch on every row could fail or be expensive."""
    if not call.function.lazy:
        return False
    branches = call.arguments[1:]  # all rows need the first argument, a condition
    return any(not is_safe(branch) for branch in branches)


def is_safe(expression: expressions.Expression) -> bool:
    """Return whether the expression is cheap and cannot fail on any row."""
    match expression:
        case expressions.ColumnRef() | expressions.Constant() | expressions.ScalarSubquery():
            return True
        case expressions.InValues():
            return is_safe(expression.argument)
        case expressions.Cast(type=target, argument=argument):
            return (
                _is_simple(target)
                and _is_simple(argument.type)
                and (is_nullable(target) or not is_nullable(argument.type))
                and is_safe(argument)
            )
        case expressions.Call(name=name, arguments=arguments):
            safe = name in _SAFE or (
                name in _SAFE_OF_NUMBERS and all(_is_simple(a.type) for a in arguments)
            )
            return (
                safe
                and all(is_safe(argument) for argument in arguments)
                and len({_comparison_kind(operand.type) for operand in arguments}) <= 1
            )
        case _:
            return False


def _is_simple(data_type: DataType) -> bool:
    """Return whether the type is a number or Bool, perhaps Nullable."""
    return isinstance(plain(data_type), Integer | Float | Boolean)


def _comparison_kind(data_type: DataType) -> str:
    """Return a name that two types share if they compare without parsing text.

    It is "number" for numbers and booleans, else the type's own name.
    """
    return "number" if _is_simple(data_type) else plain(data_type).name


def evaluate_lazily(
    call: expressions.Call, batch: pa.RecordBatch, environment: Environment, evaluate: Evaluate
) -> Column:
    """Return the call's value; each branch is evaluated only on the rows that need it."""
    branches = _logical if call.name in ("and", "or") else _conditional
    arguments = list(branches(call, batch, evaluate))
    return call.function.kernel(arguments, batch.num_rows, environment)


def _conditional(
    call: expressions.Call, batch: pa.RecordBatch, evaluate: Evaluate
) -> Iterator[Column]:
    """Yield the arguments of if and multiIf: condition, value, condition, value, …, else.

    A value is evaluated only on the rows of its condition, which no earlier condition took.
    """
    open_rows = np.ones(batch.num_rows, bool)
    arguments = call.arguments
    for position in range(0, len(arguments) - 1, 2):
        condition = _spread(arguments[position], batch, open_rows, evaluate)
        is_chosen = _is_true(condition, batch.num_rows) & open_rows
        yield condition
        yield _spread(arguments[position + 1], batch, is_chosen, evaluate)
        open_rows = open_rows & ~is_chosen
    yield _spread(arguments[-1], batch, open_rows, evaluate)


def _logical(call: expressions.Call, batch: pa.RecordBatch, evaluate: Evaluate) -> Iterator[Column]:
    """Yield the arguments of `and` and `or`, one after the other.

    An argument is not evaluated on rows that an earlier one decided: false for `and`, true for
    `or`.
    """
    open_rows = np.ones(batch.num_rows, bool)
    for argument in call.arguments:
        value = _spread(argument, batch, open_rows, evaluate)
        yield value
        is_true = _is_true(value, batch.num_rows)
        if call.name == "or":
            open_rows = open_rows & ~is_true
        else:
            open_rows = open_rows & (is_true | _is_null(value, batch.num_rows))


def _spread(
    expression: expressions.Expression,
    batch: pa.RecordBatch,
    needed: np.ndarray,
    evaluate: Evaluate,
) -> Column:
    """Evaluate the expression on the needed rows; other rows get NULL or the type's default.

    Returns a column of the batch's length, or a scalar if the expression is constant or no row is
    needed.
    """
    rows = batch.num_rows
    if isinstance(expression, expressions.Constant):
        return expression.value
    count = int(needed.sum())
    if count == rows:
        return evaluate(expression, batch)
    nullable = is_nullable(expression.type)
    if count == 0:
        return pa.nulls(rows, expression.type.arrow) if nullable else default_value(expression.type)
    inputs = expressions.inputs_of(expression)
    names = [name for name in batch.schema.names if name in inputs]
    needed_rows = filter_rows(batch.select(names), from_numpy(needed))
    value = evaluate(expression, needed_rows)
    if isinstance(value, pa.Scalar):  # copied once, for it may be long
        value, positions = broadcast(value, 1, expression.type), np.zeros(rows, np.int64)
        count = 1
    else:
        value, positions = broadcast(value, count, expression.type), np.cumsum(needed) - 1
    if nullable:
        return value.take(from_numpy(positions, null=~needed))
    filler = pa.repeat(default_value(expression.type), 1).cast(value.type)
    positions[~needed] = count
    return pa.concat_arrays([value, filler]).take(from_numpy(positions))


def _is_true(value: Column, rows: int) -> np.ndarray:
    """Return a mask of the rows whose condition is neither zero nor NULL; bool, shape (rows,)."""
    if isinstance(value, pa.Scalar):
        return np.full(rows, bool(value.as_py()))
    if pa.types.is_null(value.type):
        return np.zeros(rows, bool)
    as_bool = (
        value
        if pa.types.is_boolean(value.type)
        else pc.not_equal(value, pa.scalar(0, pa.int8()).cast(value.type))
    )
    mask: np.ndarray = to_numpy(pc.fill_null(as_bool, FALSE))
    return mask


def _is_null(value: Column, rows: int) -> np.ndarray:
    """Return a mask of the rows whose value is NULL."""
    if isinstance(value, pa.Scalar):
        return np.full(rows, not value.is_valid)
    mask: np.ndarray = to_numpy(value.is_null())
    return mask
