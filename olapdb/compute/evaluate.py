"""Evaluation of expressions over a batch, one Arrow kernel after the other.

`evaluate` gives a column of the expression's type, or a scalar where the value is constant.
Conditions are evaluated to Arrow booleans where that is possible, so that a filter does not go
through ClickHouse's UInt8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batch_seed import seed_of
from olapdb.compute.batches import broadcast, single_chunk
from olapdb.compute.context import Subqueries
from olapdb.compute.hash_table import Lookup, any_null
from olapdb.compute.short_circuit import evaluate_lazily, needs_laziness
from olapdb.errors import InternalError
from olapdb.functions import cast_column
from olapdb.functions.base import Column, Environment
from olapdb.plan import expressions
from olapdb.types import Boolean, DataType, Float, Integer, is_nullable, plain

_COMPARISONS: dict[str, Callable[[object, object], pa.Array]] = {
    "equals": pc.equal,
    "notEquals": pc.not_equal,
    "less": pc.less,
    "lessOrEquals": pc.less_equal,
    "greater": pc.greater,
    "greaterOrEquals": pc.greater_equal,
}


def evaluate(
    expression: expressions.Expression,
    batch: pa.RecordBatch,
    environment: Environment,
    subqueries: Subqueries | None = None,
) -> Column:
    """Return the expression's value for each row: an array of `batch.num_rows`, or a scalar.

    `subqueries` has the answers of its subqueries, see `olapdb.execute.operators.subqueries`.
    Raises what functions raise (DataError subclasses), InternalError for an unknown expression.
    """
    match expression:
        case expressions.ColumnRef(name=name) | expressions.LambdaParameter(name=name):
            return single_chunk(batch.column(name))
        case expressions.Constant(value=value):
            return value
        case expressions.Call():
            return _call(expression, batch, environment, subqueries)
        case expressions.Cast(type=target, argument=argument):
            value = evaluate(argument, batch, environment, subqueries)
            return cast_column(value, argument.type, target, environment, strict=False)
        case expressions.LambdaFunction():
            return _lambda_function(expression, batch, environment, subqueries)
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
            if isinstance(answer, Lookup):
                raise InternalError("A scalar subquery was run as a set.")
            return answer
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
    """Return a mask of the rows that a condition keeps: true where it is not zero, else false or
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
    """Return the condition as Arrow booleans with Kleene's null; a scalar where it is constant."""
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
            direct = _compare(name, left, right, batch, environment, subqueries)
            if direct is not None:
                return direct
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
    """Compare by an Arrow function; return None if only the function's own kernel is right."""
    if not _comparable(left.type, right.type):
        return None
    first = evaluate(left, batch, environment, subqueries)
    second = evaluate(right, batch, environment, subqueries)
    if first.type != second.type:
        if isinstance(second, pa.Scalar):
            narrowed = _fit(second, first.type)
            if narrowed is None:
                return None
            second = narrowed
        elif isinstance(first, pa.Scalar):
            narrowed = _fit(first, second.type)
            if narrowed is None:
                return None
            first = narrowed
        else:
            return None
    return _COMPARISONS[name](first, second)


def _comparable(left: DataType, right: DataType) -> bool:
    """Return whether Arrow compares these types as ClickHouse does: integers of any width, else one
    Arrow type of floats, texts, dates or times."""
    ours, theirs = plain(left), plain(right)
    if isinstance(ours, Integer) and isinstance(theirs, Integer):
        return True
    arrow = ours.arrow
    if arrow != theirs.arrow or type(ours) is not type(theirs):
        return False
    return bool(
        isinstance(ours, Float)
        or pa.types.is_string(arrow)
        or pa.types.is_date(arrow)
        or pa.types.is_timestamp(arrow)
    )


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
    """Return the value of a function call over the batch; lazy functions choose what to evaluate.

    A random function of rows gets another seed for each batch, if the query has a seed.
    """
    if needs_laziness(call):
        return evaluate_lazily(
            call,
            batch,
            environment,
            lambda argument, rows: evaluate(argument, rows, environment, subqueries),
        )
    arguments = [evaluate(a, batch, environment, subqueries) for a in call.arguments]
    if call.function.volatility == "row" and environment.random_seed:
        environment = replace(environment, random_seed=seed_of(batch, environment.random_seed))
    value = call.function.kernel(arguments, batch.num_rows, environment)
    return single_chunk(value) if isinstance(value, pa.ChunkedArray) else value


def _lambda_function(
    expression: expressions.LambdaFunction,
    batch: pa.RecordBatch,
    environment: Environment,
    subqueries: Subqueries | None,
) -> Column:
    """Evaluate the arguments, and the body over their elements.

    The body reads the elements, and columns of the batch, repeated for each element of their row.
    """
    values = [evaluate(a, batch, environment, subqueries) for a in expression.arguments]
    names = [parameter.name for parameter in expression.parameters]
    captured = sorted(expressions.inputs_of(expression.body) - set(names))
    constant = not captured and all(isinstance(v, pa.Scalar) for v in values)

    def body(elements: Sequence[pa.Array], owners: np.ndarray) -> pa.Array:
        """Return the lambda's values for elements, each with the outer row that `owners` gives."""
        rows = pa.array(owners)
        outer = [single_chunk(batch.column(name)).take(rows) for name in captured]
        inner = pa.RecordBatch.from_arrays([*elements, *outer], names=[*names, *captured])
        return evaluate_array(expression.body, inner, environment, subqueries)

    rows = 1 if constant and not _varies(expression.body) else batch.num_rows
    return expression.function.run(values, rows, environment, body)


def _varies(expression: expressions.Expression) -> bool:
    """Return whether the expression may differ from row to row without reading any column."""
    return any(
        isinstance(e, expressions.Call) and e.function.volatility == "row"
        for e in expressions.walk(expression)
    )


def _in_values(
    expression: expressions.InValues,
    batch: pa.RecordBatch,
    environment: Environment,
    subqueries: Subqueries | None,
) -> Column:
    """Return whether each argument value is in the constant list; a constant for a constant."""
    argument = evaluate(expression.argument, batch, environment, subqueries)
    constant = isinstance(argument, pa.Scalar)
    column = broadcast(argument, 1 if constant else batch.num_rows, expression.argument.type)
    if pa.types.is_nested(column.type):
        values = single_chunk(expression.values)
        is_member = pa.array(Lookup([values], len(values)).find([column], len(column)) >= 0)
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
    """Return whether each row's arguments are in the subquery's set.

    Raises InternalError if the subquery was not run as a set.
    """
    members = _answer(subqueries, expression.number)
    if not isinstance(members, Lookup):
        raise InternalError("The set of an IN was run as a scalar subquery.")
    columns = [evaluate_array(a, batch, environment, subqueries) for a in expression.arguments]
    is_member = pa.array(members.find(columns, batch.num_rows) >= 0)
    nullable_columns = columns if is_nullable(expression.type) else []
    return _in_with_nulls(is_member, nullable_columns, expression.negated)


def _in_with_nulls(is_member: pa.Array, columns: list[pa.Array], negated: bool) -> pa.Array:
    """Return the result of IN or NOT IN: NULL where one of the columns is NULL.

    A NULL in the set matches nothing (transform_null_in = 0)."""
    if negated:
        is_member = pc.invert(is_member)
    if any(column.null_count for column in columns):
        null = pa.array(any_null(columns, len(is_member)))
        is_member = pc.if_else(null, pa.scalar(None, pa.bool_()), is_member)
    return is_member


def _to_numbers(value: Column, data_type: DataType) -> Column:
    """Return booleans in the condition's own type (UInt8, or Nullable of it)."""
    if not is_nullable(data_type) and isinstance(value, pa.Array) and value.null_count:
        value = pc.fill_null(value, False)
    return value if isinstance(plain(data_type), Boolean) else value.cast(data_type.arrow)


def _to_booleans(value: Column, data_type: DataType) -> Column:
    """Return a number as a condition: true where it is not zero (NaN is true, as in ClickHouse)."""
    if pa.types.is_boolean(value.type):
        return value
    if pa.types.is_null(value.type):
        if isinstance(value, pa.Scalar):
            return pa.scalar(None, pa.bool_())
        return pa.nulls(len(value), pa.bool_())
    if isinstance(plain(data_type), Integer):
        return value.cast(pa.bool_())
    return pc.not_equal(value, pa.scalar(0, pa.int8()).cast(value.type))


def _answer(subqueries: Subqueries | None, number: int) -> pa.Scalar | Lookup:
    """Return the subquery's value or set. Raise InternalError if it was not run before."""
    if subqueries is None or number not in subqueries:
        raise InternalError("A subquery was not run before the plan around it.")
    return subqueries[number]


def true_positions(keep: pa.BooleanArray) -> np.ndarray:
    """Return the positions of the rows that a mask keeps; int64."""
    plain_keep = pc.fill_null(keep, False).to_numpy(zero_copy_only=False)
    return np.flatnonzero(plain_keep)
