"""Evaluation of expressions over a batch, one Arrow kernel after the other.

`evaluate` returns a column of the expression's type, or a scalar if the value is constant.
Conditions are evaluated to Arrow booleans if that is possible, so that a filter does not go
through ClickHouse's UInt8.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batch_seed import seed_of
from olapdb.compute.batches import broadcast, single_chunk
from olapdb.compute.context import LargeSet, Subqueries
from olapdb.compute.hash_table import Lookup, any_null
from olapdb.compute.short_circuit import evaluate_lazily, needs_laziness
from olapdb.errors import DataError, InternalError, MemoryLimitExceeded
from olapdb.functions import cast_column
from olapdb.functions.base import Column, Environment
from olapdb.functions.kernels.columns import (
    TooManyRepeated,
    as_array,
    constant_bytes,
    repeating_at_most,
)
from olapdb.lazy import LazyModule, lazy_modules
from olapdb.plan import expressions
from olapdb.types import Boolean, DataType, Float, Integer, is_nullable, plain
from olapdb.types.arrow_values import FALSE, from_numpy

if TYPE_CHECKING:
    from olapdb.compute import dictionary_calls, dictionary_rows
    from olapdb.plan import wide_values
else:
    wide_values = LazyModule("olapdb.plan.wide_values")
    dictionary_calls, dictionary_rows = lazy_modules(
        "olapdb.compute", "dictionary_calls", "dictionary_rows"
    )

_COMPARISONS: dict[str, Callable[[object, object], pa.Array]] = {
    "equals": pc.equal,
    "notEquals": pc.not_equal,
    "less": pc.less,
    "lessOrEquals": pc.less_equal,
    "greater": pc.greater,
    "greaterOrEquals": pc.greater_equal,
}


_REPEATED_BYTES_MAX = 4 << 20
"""A constant that has more bytes in all rows of a batch is repeated for some of them at a time."""


class ComputedBytes(threading.local):
    """The bytes of the values that the thread's calls of functions gave; None where nothing counts them."""

    nbytes: int | None = None


_computed = ComputedBytes()


@contextmanager
def counting_bytes() -> Iterator[ComputedBytes]:
    """Count the bytes of what this thread computes within the block, the values inside of expressions too."""
    before, _computed.nbytes = _computed.nbytes, 0
    try:
        yield _computed
    finally:
        _computed.nbytes = before


def _counted(value: Column) -> Column:
    """Return the value, its bytes counted if the thread counts them."""
    if _computed.nbytes is not None and isinstance(value, pa.Array):
        _computed.nbytes += value.nbytes
    return value


def evaluate(
    expression: expressions.Expression,
    batch: pa.RecordBatch,
    environment: Environment,
    subqueries: Subqueries | None = None,
) -> Column:
    """Return the expression's value for each row: an array of `batch.num_rows`, or a scalar.

    `subqueries` has the results of its subqueries, see `olapdb.execute.operators.subqueries`.
    Raises the errors of functions (DataError subclasses), InternalError for an unknown expression.
    """
    match expression:
        case expressions.ColumnRef(name=name) | expressions.LambdaParameter(name=name):
            return single_chunk(batch.column(name))
        case expressions.Constant(value=value):
            return value
        case expressions.Call():
            return _counted(_call(expression, batch, environment, subqueries))
        case expressions.Cast(type=target, argument=argument):
            value = evaluate(argument, batch, environment, subqueries)
            return _counted(cast_column(value, argument.type, target, environment, strict=False))
        case expressions.LambdaFunction():
            return _counted(_lambda_function(expression, batch, environment, subqueries))
        case expressions.InValues():
            return _to_numbers(
                _in_values(expression, batch, environment, subqueries), expression.type
            )
        case expressions.InSubquery():
            return _to_numbers(
                _in_subquery(expression, batch, environment, subqueries), expression.type
            )
        case expressions.ScalarSubquery(number=number):
            answer = _answer(subqueries, number)
            if not isinstance(answer, pa.Scalar):
                raise InternalError("A scalar subquery was run as a set.")
            return answer
        case expressions.DictionaryCall(number=number):
            rows = _answer(subqueries, number)
            if not isinstance(rows, dictionary_rows.DictionaryRows):
                raise InternalError("A dictionary was run as a subquery.")
            return dictionary_calls.dictionary_value(
                expression,
                batch,
                rows,
                lambda argument, part: evaluate(argument, part, environment, subqueries),
            )
        case _:
            raise InternalError(f"Unknown expression {type(expression).__name__}.")


def evaluate_array(
    expression: expressions.Expression,
    batch: pa.RecordBatch,
    environment: Environment,
    subqueries: Subqueries | None = None,
) -> pa.Array:
    """Return the expression's value as an array of the batch's length; a constant repeats."""
    value = evaluate(expression, batch, environment, subqueries)
    return broadcast(value, batch.num_rows, expression.type)


def evaluate_predicate(
    expression: expressions.Expression,
    batch: pa.RecordBatch,
    environment: Environment,
    subqueries: Subqueries | None = None,
) -> pa.BooleanArray:
    """Return a mask of the rows that a condition keeps: true if it is not zero, else false or
    null."""
    value = _condition(expression, batch, environment, subqueries)
    if isinstance(value, pa.Scalar):
        keep = bool(value.as_py())
        return pa.repeat(pa.scalar(keep, pa.bool_()), batch.num_rows)
    return value


def _condition(
    expression: expressions.Expression,
    batch: pa.RecordBatch,
    environment: Environment,
    subqueries: Subqueries | None,
) -> Column:
    """Return the condition as Arrow booleans with Kleene's null; a scalar if it is constant."""
    match expression:
        case expressions.InValues():
            return _in_values(expression, batch, environment, subqueries)
        case expressions.InSubquery():
            return _in_subquery(expression, batch, environment, subqueries)
        case expressions.Call(name="not", arguments=(argument,)) if _is_condition(argument):
            return pc.invert(_condition(argument, batch, environment, subqueries))
        case expressions.Call(name="and" | "or", arguments=arguments) if not needs_laziness(
            expression
        ):
            combine = pc.and_kleene if expression.name == "and" else pc.or_kleene
            value = _condition(arguments[0], batch, environment, subqueries)
            for argument in arguments[1:]:
                value = combine(value, _condition(argument, batch, environment, subqueries))
            return value
        case expressions.Call(name=name, arguments=(left, right)) if name in _COMPARISONS:
            compared = _compare(name, left, right, batch, environment, subqueries)
            if compared is not None:
                return compared
    return _to_booleans(evaluate(expression, batch, environment, subqueries), expression.type)


def _is_condition(expression: expressions.Expression) -> bool:
    """Return whether the expression is a comparison, IN, `and`, `or` or `not`.

    Arrow booleans then equal its value, so that NOT may invert them.
    """
    match expression:
        case expressions.InValues() | expressions.InSubquery():
            return True
        case expressions.Call(name=name):
            return name in _COMPARISONS or name in ("and", "or", "not")
        case _:
            return False


def _compare(
    name: str,
    left: expressions.Expression,
    right: expressions.Expression,
    batch: pa.RecordBatch,
    environment: Environment,
    subqueries: Subqueries | None,
) -> Column | None:
    """Compare with an Arrow kernel; return None if its result would differ from the function's."""
    if not _comparable(left.type, right.type):
        return None
    left_value = evaluate(left, batch, environment, subqueries)
    right_value = evaluate(right, batch, environment, subqueries)
    if left_value.type != right_value.type:
        if isinstance(right_value, pa.Scalar):
            fitted = _fit(right_value, left_value.type)
            if fitted is None:
                return None
            right_value = fitted
        elif isinstance(left_value, pa.Scalar):
            fitted = _fit(left_value, right_value.type)
            if fitted is None:
                return None
            left_value = fitted
        else:
            return None
    return _COMPARISONS[name](left_value, right_value)


def _comparable(left: DataType, right: DataType) -> bool:
    """Return whether Arrow compares these types as ClickHouse does: integers of any width, else one
    Arrow type of floats, texts, dates or times."""
    left_type, right_type = plain(left), plain(right)
    if isinstance(left_type, Integer) and isinstance(right_type, Integer):
        return True
    arrow = left_type.arrow
    if arrow != right_type.arrow or type(left_type) is not type(right_type):
        return False
    return bool(
        isinstance(left_type, Float)
        or pa.types.is_string(arrow)
        or pa.types.is_date(arrow)
        or pa.types.is_timestamp(arrow)
    )


@lru_cache(maxsize=4_096)
def _fit(value: pa.Scalar, arrow: pa.DataType) -> pa.Scalar | None:
    """Return a constant integer in another width, None if it does not fit."""
    try:
        return value.cast(arrow)
    except pa.ArrowInvalid:
        return None


def _call(
    call: expressions.Call,
    batch: pa.RecordBatch,
    environment: Environment,
    subqueries: Subqueries | None,
) -> Column:
    """Evaluate the arguments and run the function's kernel; lazily for `if`, `and` and the like."""
    if needs_laziness(call):
        return evaluate_lazily(
            call,
            batch,
            environment,
            lambda argument, rows: evaluate(argument, rows, environment, subqueries),
        )
    reads_values = call.function.reads_values
    arguments = [
        evaluate(operand, batch, environment, subqueries)
        for operand in call.arguments
        # A constant is computed anyway: its error is that of the query.
        if reads_values or not expressions.columns_of(operand)
    ]
    if not reads_values:
        arguments = []
    if call.function.volatility == "row" and environment.random_seed:
        environment = replace(environment, random_seed=seed_of(batch, environment.random_seed))
    if _may_repeat_much(call, arguments, batch.num_rows):
        return _value_of_slices(call, arguments, batch.num_rows, environment)
    value = call.function.kernel(arguments, batch.num_rows, environment)
    return single_chunk(value) if isinstance(value, pa.ChunkedArray) else value


def _may_repeat_much(call: expressions.Call, arguments: Sequence[Column], rows: int) -> bool:
    """Return whether the kernel may repeat a long constant for each row, and gives the same values for some rows at a
    time."""
    return (
        rows > 1
        and any(
            isinstance(a, pa.Scalar) and rows * constant_bytes(a) > _REPEATED_BYTES_MAX
            for a in arguments
        )
        and not all(isinstance(a, pa.Scalar) for a in arguments)
        and call.function.volatility == "pure"
        and call.name not in wide_values.OF_BLOCKS
    )


def _value_of_slices(
    call: expressions.Call, arguments: Sequence[Column], rows: int, environment: Environment
) -> pa.Array:
    """Return the value of the kernel, called for some rows at a time where it would repeat a constant too often."""
    kernel = call.function.kernel
    with repeating_at_most(_REPEATED_BYTES_MAX if rows > 1 else None):
        try:
            return single_chunk(as_array(kernel(arguments, rows, environment), rows))
        except TooManyRepeated as error:
            step = max(int(rows * error.share), 1)
    values = []
    for start in range(0, rows, step):
        some = [a if isinstance(a, pa.Scalar) else a.slice(start, step) for a in arguments]
        try:
            values.append(_value_of_slices(call, some, min(step, rows - start), environment))
        except DataError as error:
            if error.row is not None:
                error.row += start
            raise
    return single_chunk(pa.chunked_array(values))


def _lambda_function(
    expression: expressions.LambdaFunction,
    batch: pa.RecordBatch,
    environment: Environment,
    subqueries: Subqueries | None,
) -> Column:
    """Evaluate the arguments, and the body over their elements.

    The body sees the elements beside the columns that it reads, repeated for each element of their
    row."""
    values = [
        evaluate(argument, batch, environment, subqueries) for argument in expression.arguments
    ]
    names = [parameter.name for parameter in expression.parameters]
    captured = sorted(expressions.inputs_of(expression.body) - set(names))
    constant = not captured and all(isinstance(value, pa.Scalar) for value in values)

    def body(elements: Sequence[pa.Array], owners: np.ndarray) -> pa.Array:
        """Return the lambda's value for each element; `owners` has the number of the outer row whose columns the body
        sees beside it."""
        rows = from_numpy(owners)
        outer_columns = [_counted(single_chunk(batch.column(name)).take(rows)) for name in captured]
        element_batch = pa.RecordBatch.from_arrays(
            [*elements, *outer_columns], names=[*names, *captured]
        )
        return evaluate_array(expression.body, element_batch, environment, subqueries)

    rows = 1 if constant and not _varies(expression.body) else batch.num_rows
    return expression.function.run(values, rows, environment, body)


def _varies(expression: expressions.Expression) -> bool:
    """Return whether the expression may differ from row to row without reading any column."""
    return not expressions.is_repeatable(expression)


def _in_values(
    expression: expressions.InValues,
    batch: pa.RecordBatch,
    environment: Environment,
    subqueries: Subqueries | None,
) -> Column:
    """Return IN or NOT IN a list of constants as Arrow booleans, a scalar for a constant argument.

    A NULL argument gives NULL; a NULL in the list matches nothing."""
    argument = evaluate(expression.argument, batch, environment, subqueries)
    constant = isinstance(argument, pa.Scalar)
    column = broadcast(argument, 1 if constant else batch.num_rows, expression.argument.type)
    if pa.types.is_nested(column.type):
        values = single_chunk(expression.values)
        is_member = from_numpy(Lookup([values], len(values)).find([column], len(column)) >= 0)
    else:
        is_member = pc.is_in(column, value_set=expression.values)
    is_member = _in_with_nulls(is_member, [column], expression.negated)
    return is_member[0] if constant else is_member


def _in_subquery(
    expression: expressions.InSubquery,
    batch: pa.RecordBatch,
    environment: Environment,
    subqueries: Subqueries | None,
) -> Column:
    """Return IN or NOT IN a subquery, as Arrow booleans; the subquery has an answer in `subqueries`.

    Raises MemoryLimitExceeded for a set that is too large for the memory and stands where no join replaces it."""
    members = _answer(subqueries, expression.number)
    if isinstance(members, LargeSet):
        raise MemoryLimitExceeded(
            "Memory limit for the query exceeded by the set of an IN;"
            f" max_memory_usage is {members.limit_bytes:,}.",
            hint="A set spills in WHERE, PREWHERE, HAVING, SELECT and GROUP BY without TOTALS;"
            " elsewhere raise the limit, or write a JOIN.",
        )
    if not isinstance(members, Lookup):
        raise InternalError("The set of an IN was run as a scalar subquery.")
    arguments = expression.arguments
    values = [evaluate(a, batch, environment, subqueries) for a in arguments]
    constant_size = sum(constant_bytes(value) for value in values if isinstance(value, pa.Scalar))
    rows = batch.num_rows
    step = max(min(_REPEATED_BYTES_MAX // max(constant_size, 1), rows), 1)
    answers = []
    for start in range(0, max(rows, 1), step):
        count = min(step, rows - start)
        columns = [
            broadcast(v if isinstance(v, pa.Scalar) else v.slice(start, step), count, a.type)
            for v, a in zip(values, arguments, strict=True)
        ]
        is_member = members.contains(columns, count)
        nullable_columns = columns if is_nullable(expression.type) else []
        answers.append(_in_with_nulls(is_member, nullable_columns, expression.negated))
    return answers[0] if len(answers) == 1 else pa.concat_arrays(answers)


def _in_with_nulls(is_member: pa.Array, columns: list[pa.Array], negated: bool) -> pa.Array:
    """Return the result of IN or NOT IN: NULL where one of the columns is NULL.

    A NULL in the set matches nothing (transform_null_in = 0)."""
    if negated:
        is_member = pc.invert(is_member)
    if any(column.null_count for column in columns):
        null = from_numpy(any_null(columns, len(is_member)))
        is_member = pc.if_else(null, pa.scalar(None, pa.bool_()), is_member)
    return is_member


def _to_numbers(value: Column, data_type: DataType) -> Column:
    """Return booleans in the condition's own type (UInt8, or Nullable of it)."""
    if not is_nullable(data_type) and isinstance(value, pa.Array) and value.null_count:
        value = pc.fill_null(value, FALSE)
    return value if isinstance(plain(data_type), Boolean) else value.cast(data_type.arrow)


def _to_booleans(value: Column, data_type: DataType) -> Column:
    """Return a number as a condition: true if it is not zero (NaN is true, as in ClickHouse)."""
    if pa.types.is_boolean(value.type):
        return value
    if pa.types.is_null(value.type):
        if isinstance(value, pa.Scalar):
            return pa.scalar(None, pa.bool_())
        return pa.nulls(len(value), pa.bool_())
    if isinstance(plain(data_type), Integer):
        return value.cast(pa.bool_())
    return pc.not_equal(value, pa.scalar(0, pa.int8()).cast(value.type))


def _answer(
    subqueries: Subqueries | None, number: int
) -> pa.Scalar | Lookup | LargeSet | dictionary_rows.DictionaryRows:
    """Return the result of the subquery; raise InternalError if it has not run."""
    if subqueries is None or number not in subqueries:
        raise InternalError("A subquery was not run before the plan around it.")
    return subqueries[number]
