"""Constants: literals, folding of pure calls, casts of constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from olapdb import functions, types
from olapdb.errors import Error, InternalError, TypeMismatch
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels.columns import as_array
from olapdb.plan.expressions import (
    Call,
    Cast,
    Constant,
    Expression,
    LambdaFunction,
    LambdaParameter,
)
from olapdb.sql import nodes as sql

COMPARISONS = frozenset(
    {"equals", "notEquals", "less", "greater", "lessOrEquals", "greaterOrEquals"}
)
_NOT_FOLDED = frozenset({"materialize", "sleep", "sleepEachRow"})


def literal(node: sql.Literal) -> Constant:
    if node.value is None:
        return null()
    data_type = functions.literal_type(node.value, node.text)
    return Constant(data_type, functions.constant(node.value, data_type))


def null() -> Constant:
    return Constant(types.Nullable(types.NOTHING), pa.scalar(None, pa.null()))


def string(value: str) -> Constant:
    return Constant(types.String(), pa.scalar(value, pa.string()))


def unsigned_byte(value: int) -> Constant:
    return Constant(types.UINT8, pa.scalar(int(value), pa.uint8()))


def is_null(expression: Expression) -> bool:
    return isinstance(expression, Constant) and not expression.value.is_valid


def call(name: str, arguments: tuple[Expression, ...], environment: Environment) -> Expression:
    """The function resolved for these arguments, folded where all are constant."""
    if name in COMPARISONS and len(arguments) == 2:
        arguments = _compare_in_column_type(arguments, environment)
    resolved = functions.resolve_scalar(
        name, [Argument(a.type, a.value if isinstance(a, Constant) else None) for a in arguments]
    )
    made = Call(resolved.type, resolved.name, arguments, resolved)
    return fold(made, environment)


def fold(expression: Call, environment: Environment) -> Expression:
    """The constant that a pure call of constants is. A call that fails stays: it raises when it
    runs, if it runs at all (`if(0, intDiv(1, 0), 1)`)."""
    function = expression.function
    if function.volatility != "pure" or function.name in _NOT_FOLDED:
        return expression
    if not all(isinstance(a, Constant) for a in expression.arguments):
        return expression
    values = [a.value for a in expression.arguments if isinstance(a, Constant)]
    try:
        return Constant(expression.type, _first(function, values, environment))
    except (Error, pa.ArrowException):
        return expression


def fold_lambda(expression: LambdaFunction, environment: Environment) -> Expression:
    """The constant that a function of constants and of a pure lambda that reads no column is."""
    if not all(isinstance(a, Constant) for a in expression.arguments):
        return expression
    if not _is_closed(expression.body):
        return expression
    values = [a.value for a in expression.arguments if isinstance(a, Constant)]
    names = [p.name for p in expression.parameters]

    def body(elements: Sequence[pa.Array], owners: np.ndarray) -> pa.Array:
        inputs = dict(zip(names, elements, strict=True))
        value = _evaluate(expression.body, inputs, len(owners), environment)
        return as_array(value, len(owners))

    try:
        made = expression.function.run(values, 1, environment, body)
    except (Error, pa.ArrowException):
        return expression
    return Constant(expression.type, made if isinstance(made, pa.Scalar) else made[0])


def _is_closed(body: Expression) -> bool:
    """Return whether a body is made of constants, parameters and pure functions that need no laziness."""
    match body:
        case Constant() | LambdaParameter():
            return True
        case Cast(argument=argument):
            return _is_closed(argument)
        case Call(function=function, arguments=arguments):
            pure = function.volatility == "pure" and not function.lazy
            return pure and function.name not in _NOT_FOLDED and all(map(_is_closed, arguments))
        case _:
            return False


def _evaluate(
    expression: Expression, inputs: Mapping[str, pa.Array], rows: int, environment: Environment
) -> Column:
    """The value of a closed body for the values of its parameters."""
    match expression:
        case Constant(value=value):
            return value
        case LambdaParameter(name=name):
            return inputs[name]
        case Cast(type=target, argument=argument):
            value = _evaluate(argument, inputs, rows, environment)
            return functions.cast_column(value, argument.type, target, environment, strict=False)
        case Call(function=function, arguments=arguments):
            values = [_evaluate(a, inputs, rows, environment) for a in arguments]
            return function.kernel(values, rows, environment)
        case _:
            raise InternalError(f"{type(expression).__name__} is not part of a closed lambda.")


def compute(expression: Expression, environment: Environment) -> Constant | None:
    """The value of an expression of calls and constants, computed now, whatever its functions'
    volatility; None where it reads anything. Raises what its calls raise."""
    match expression:
        case Constant():
            return expression
        case Cast(type=target, argument=inner):
            value = compute(inner, environment)
            made = None if value is None else cast(value, target, environment, eager=True)
            return made if isinstance(made, Constant) else None
        case Call(type=target, arguments=arguments, function=function):
            values = [compute(a, environment) for a in arguments]
            known = [v.value for v in values if v is not None]
            if len(known) < len(values):
                return None
            return Constant(target, _first(function, known, environment))
        case _:
            return None


def _first(function: ScalarCall, values: list[pa.Scalar], environment: Environment) -> pa.Scalar:
    made = function.kernel(values, 1, environment)
    return made if isinstance(made, pa.Scalar) else made[0]


def not_of_type(value: Constant, target: types.DataType) -> TypeMismatch:
    """The error where a literal text is compared with a number that it does not spell."""
    return TypeMismatch(
        f"Cannot convert string {value.value.as_py()!r} to type {target}.",
        hint="Write a number, or cast the other side to String.",
    )


def cast(
    expression: Expression, target: types.DataType, environment: Environment, *, eager: bool = False
) -> Expression:
    """`expression` as `target`; constants at once. A constant that does not convert raises here
    if `eager`, else when it runs."""
    if expression.type == target:
        return expression
    if not isinstance(expression, Constant):
        return Cast(target, expression)
    try:
        value = functions.cast_column(
            expression.value, expression.type, target, environment, strict=False
        )
    except (Error, pa.ArrowException):
        if eager:
            raise
        return Cast(target, expression)
    return Constant(target, value if isinstance(value, pa.Scalar) else value[0])


def cast_literal(node: sql.Expression, bound: Expression) -> Expression:
    """A number literal that is cast to Decimal is read from its text, exactly."""
    if isinstance(node, sql.Literal) and isinstance(node.value, float) and node.text:
        return string(node.text)
    return bound


def _compare_in_column_type(
    arguments: tuple[Expression, ...], environment: Environment
) -> tuple[Expression, ...]:
    """`day >= '2013-01-01'`: the string becomes a Date once, not for each row, and ranges can be
    pruned by it."""
    for at in (0, 1):
        text, other = arguments[at], arguments[1 - at]
        if not isinstance(text, Constant) or not isinstance(types.plain(text.type), types.String):
            continue
        target = types.plain(other.type)
        if (
            isinstance(
                target, types.Date | types.Date32 | types.DateTime | types.DateTime64 | types.UUID
            )
            and text.value.is_valid
        ):
            converted = cast(text, target, environment, eager=True)
            return (converted, other) if at == 0 else (other, converted)
    return arguments


def boolean_of(expression: Expression) -> bool | None:
    """The truth of a constant condition (NULL is false); None where it is not constant."""
    if not isinstance(expression, Constant):
        return None
    return expression.value.is_valid and bool(expression.value.as_py())


def is_decimal(data_type: types.DataType) -> bool:
    return isinstance(types.plain(data_type), types.Decimal)
