"""Constants: literals, folding of pure calls, casts of constants."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import functions, types
from olapdb.bind.contracts import BindContext
from olapdb.config.settings import Settings, lookup
from olapdb.config.table import TABLE_SETTINGS
from olapdb.errors import (
    CannotParse,
    Error,
    IllegalTypeOfArgument,
    InternalError,
    NumberOfArgumentsDoesntMatch,
    TypeMismatch,
    UnknownSetting,
)
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels.columns import as_array, single
from olapdb.functions.scalar import ScalarDefinition
from olapdb.plan.expressions import (
    Call,
    Cast,
    Constant,
    Expression,
    LambdaFunction,
    LambdaParameter,
    ScalarSubquery,
)
from olapdb.sql import nodes as sql
from olapdb.types.arrow_values import scalar_of

COMPARISONS = frozenset(
    {"equals", "notEquals", "less", "greater", "lessOrEquals", "greaterOrEquals"}
)
_NOT_FOLDED = frozenset({"materialize", "sleep", "sleepEachRow"})


def literal(node: sql.Literal) -> Constant:
    """Return a literal as a constant of ClickHouse's type for it."""
    if node.value is None:
        return null()
    data_type = functions.literal_type(node.value, node.text)
    return Constant(data_type, functions.constant(node.value, data_type))


def null() -> Constant:
    """Return NULL of type Nullable(Nothing)."""
    return Constant(types.Nullable(types.NOTHING), pa.nulls(1)[0])


def string(value: str) -> Constant:
    """Return a String constant."""
    return Constant(types.String(), scalar_of(value, pa.string()))


def unsigned_byte(value: int) -> Constant:
    """Return a UInt8 constant."""
    return Constant(types.UINT8, pa.scalar(int(value), pa.uint8()))


def is_null(expression: Expression) -> bool:
    """Return whether the expression is the constant NULL."""
    return isinstance(expression, Constant) and not expression.value.is_valid


def call(name: str, arguments: tuple[Expression, ...], environment: Environment) -> Expression:
    """Return a call of a scalar function, resolved for its arguments, folded where all are constant.

    Raises what the function's type rule raises."""
    if name in COMPARISONS and len(arguments) == 2:
        arguments = _compare_in_column_type(name, arguments, environment)
    together = _MEETING.get(name)
    if together is not None:
        for places in together(len(arguments)):
            arguments = _signed_beside_signed(arguments, places, environment)
    resolved = functions.resolve_scalar(name, [_argument(a) for a in arguments])
    return fold(Call(resolved.type, resolved.name, arguments, resolved), environment)


def _argument(expression: Expression) -> Argument:
    """Return an expression as an argument of a scalar function."""
    value = expression.value if isinstance(expression, Constant) else None
    return Argument(expression.type, value, isinstance(expression, ScalarSubquery))


_MEETING: Mapping[str, Callable[[int], Sequence[Sequence[int]]]] = {
    "array": lambda count: (range(count),),
    "coalesce": lambda count: (range(count),),
    "ifNull": lambda count: (range(count),),
    "if": lambda count: (range(1, count),),
    "multiIf": lambda count: ((*range(1, count - 1, 2), count - 1),) if count else (),
    "map": lambda count: (range(0, count, 2), range(1, count, 2)),
}
"""For functions of values that get a common type: the places of the arguments that meet in one."""


def _signed_beside_signed(
    arguments: tuple[Expression, ...], places: Sequence[int], environment: Environment
) -> tuple[Expression, ...]:
    """Return the arguments with literals beyond 32 bits as Int64 where they fit and meet signed integers.

    ClickHouse takes a literal such as 4294967296 for either type: `[-1, 4294967296]` is of Int64. A
    smaller UInt64 is no literal, whose type is the narrowest, but a cast."""
    met = [arguments[at].type for at in places]
    if not any(_may_hold_large_literal(argument) for argument in arguments):
        return arguments
    changed = list(arguments)
    for at in places:
        argument = arguments[at]
        if isinstance(argument, Constant) and _may_hold_large_literal(argument):
            target = _signed_where_met(argument.type, met, single(argument.value))
            changed[at] = cast(argument, target, environment, eager=True)
    return tuple(changed)


def _may_hold_large_literal(argument: Expression) -> bool:
    """Return whether an argument is a constant of a type that is, or has, a UInt64."""
    return isinstance(argument, Constant) and "UInt64" in argument.type.name


def _signed_where_met(
    data_type: types.DataType, met: Sequence[types.DataType], values: pa.Array
) -> types.DataType:
    """Return the type of a constant with Int64 in place of each UInt64, also within arrays and tuples, whose
    `values` are those of literals beyond 32 bits, and that stands where one of the types `met` has a signed integer."""
    plain = [types.plain(t) for t in met]
    if data_type == types.UINT64:
        meets = any(isinstance(t, types.Integer) and t.signed for t in plain)
        bounds = pc.min_max(values).as_py()
        if not meets or bounds["min"] is None:
            return data_type
        are_literals = bounds["min"] > types.UINT32.maximum and bounds["max"] <= types.INT64.maximum
        return types.INT64 if are_literals else data_type
    if isinstance(data_type, types.Array):
        inner = [t.inner for t in plain if isinstance(t, types.Array)]
        return types.Array(_signed_where_met(data_type.inner, inner, values.flatten()))
    if isinstance(data_type, types.Tuple):
        count = len(data_type.elements)
        tuples = [t for t in plain if isinstance(t, types.Tuple) and len(t.elements) == count]
        elements = tuple(
            _signed_where_met(element, [t.elements[at] for t in tuples], field)
            for at, (element, field) in enumerate(
                zip(data_type.elements, values.flatten(), strict=True)
            )
        )
        return replace(data_type, elements=elements)
    return data_type


def call_definition(
    definition: ScalarDefinition, arguments: tuple[Expression, ...], environment: Environment
) -> Expression:
    """Return a call of a function that a user made, folded where it is pure and all are constant."""
    given = [Argument(a.type, a.value if isinstance(a, Constant) else None) for a in arguments]
    resolved = definition.resolve(definition.name, given)
    return fold(Call(resolved.type, resolved.name, arguments, resolved), environment)


def fold(expression: Call, environment: Environment) -> Expression:
    """Return a pure call of constants as its value, any other call unchanged.

    A call that fails stays: it raises when it runs, if it runs (`if(0, intDiv(1, 0), 1)`)."""
    function = expression.function
    if function.volatility != "pure" or function.name in _NOT_FOLDED:
        return expression
    if not all(isinstance(a, Constant) for a in expression.arguments):
        return expression
    values = [a.value for a in expression.arguments if isinstance(a, Constant)]
    try:
        return Constant(expression.type, _call_once(function, values, environment))
    except (Error, pa.ArrowException):
        return expression


def fold_lambda(expression: LambdaFunction, environment: Environment) -> Expression:
    """Return a function of constants and a closed pure lambda as its value, any other unchanged."""
    if not all(isinstance(a, Constant) for a in expression.arguments):
        return expression
    names = [p.name for p in expression.parameters]
    if not _is_closed(expression.body, names):
        return expression
    values = [a.value for a in expression.arguments if isinstance(a, Constant)]

    def body(elements: Sequence[pa.Array], owners: np.ndarray) -> pa.Array:
        """Return the values of the lambda's body for the elements; `owners` gives only their number, as the body reads
        no outer column."""
        inputs = dict(zip(names, elements, strict=True))
        value = _evaluate(expression.body, inputs, len(owners), environment)
        return as_array(value, len(owners))

    try:
        value = expression.function.run(values, 1, environment, body)
    except (Error, pa.ArrowException):
        return expression
    return Constant(expression.type, value if isinstance(value, pa.Scalar) else value[0])


def _is_closed(body: Expression, parameters: Collection[str]) -> bool:
    """Return whether a body has only constants, these parameters of its own lambda, none of one
    around it, and pure functions that are not lazy."""
    match body:
        case Constant():
            return True
        case LambdaParameter(name=name):
            return name in parameters
        case Cast(argument=argument):
            return _is_closed(argument, parameters)
        case Call(function=function, arguments=arguments):
            pure = function.volatility == "pure" and not function.lazy
            return (
                pure
                and function.name not in _NOT_FOLDED
                and all(_is_closed(argument, parameters) for argument in arguments)
            )
        case _:
            return False


def _evaluate(
    expression: Expression, inputs: Mapping[str, pa.Array], rows: int, environment: Environment
) -> Column:
    """Return the value of a closed lambda body: an array of `rows` values, or a scalar.

    `inputs` are the values of the lambda's parameters by name."""
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
    """Compute an expression of calls, casts and constants now, even if a function is volatile.

    Returns None if it has anything else, such as a column. Raises what its calls raise."""
    match expression:
        case Constant():
            return expression
        case Cast(type=target, argument=inner):
            value = compute(inner, environment)
            converted = None if value is None else cast(value, target, environment, eager=True)
            return converted if isinstance(converted, Constant) else None
        case Call(type=target, arguments=arguments, function=function):
            computed = [compute(a, environment) for a in arguments]
            values = [c.value for c in computed if c is not None]
            if len(values) < len(computed):
                return None
            return Constant(target, _call_once(function, values, environment))
        case _:
            return None


def _call_once(
    function: ScalarCall, values: list[pa.Scalar], environment: Environment
) -> pa.Scalar:
    """Return the result of a scalar function on one row of constants."""
    result = function.kernel(values, 1, environment)
    return result if isinstance(result, pa.Scalar) else result[0]


def unparsable_number(value: Constant, target: types.DataType) -> TypeMismatch:
    """Return the error for a text that is compared with a number but does not spell one."""
    return TypeMismatch(
        f"Cannot convert string {value.value.as_py()!r} to type {target}.",
        hint="Write a number, or cast the other side to String.",
    )


def cast(
    expression: Expression, target: types.DataType, environment: Environment, *, eager: bool = False
) -> Expression:
    """Return `expression` as `target`; constants are converted at once.

    A constant that does not convert raises here if `eager`, else when the plan runs."""
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
    """Return a float literal as a String constant of its text; `bound` for any other node.

    A cast of the text to Decimal is exact."""
    if isinstance(node, sql.Literal) and isinstance(node.value, float) and node.text:
        return string(node.text)
    return bound


def _compare_in_column_type(
    name: str, arguments: tuple[Expression, ...], environment: Environment
) -> tuple[Expression, ...]:
    """Return both sides of a comparison, a constant text as the other side's type.

    This applies to a date, time, UUID or address on the other side, and to an integer that does not have the text's
    value: the text is then NaN, which equals nothing and is neither less nor greater. `day >= '2013-01-01'` then converts
    once, not for each row, and can prune ranges. Raises an error if the text does not convert."""
    for at in (0, 1):
        text, other = arguments[at], arguments[1 - at]
        if not isinstance(text, Constant) or not isinstance(types.plain(text.type), types.String):
            continue
        target = types.plain(other.type)
        if is_beyond(text, target):
            nothing = Constant(types.FLOAT64, scalar_of(math.nan, pa.float64()))
            return (nothing, other) if at == 0 else (other, nothing)
        known = not isinstance(target, types.Enum) or text.value.as_py() in target.texts.values()
        if not known and name != "notEquals":
            return arguments  # the comparison answers 0
        if (
            isinstance(
                target,
                types.Date
                | types.Date32
                | types.DateTime
                | types.DateTime64
                | types.Time
                | types.Time64
                | types.UUID
                | types.IPv4
                | types.IPv6
                | types.Enum,
            )
            and text.value.is_valid
        ):
            converted = _literal_of(text, target, environment)
            return (converted, other) if at == 0 else (other, converted)
    return arguments


def _literal_of(text: Constant, target: types.DataType, environment: Environment) -> Expression:
    """Return a text constant as a value of the type that it is compared with.

    Raises TypeMismatch where a time is followed by other text, else the error of the cast."""
    try:
        return cast(text, target, environment, eager=True)
    except CannotParse as error:
        if not isinstance(target, types.Time | types.Time64):
            raise
        raise TypeMismatch(
            f"Cannot convert string {text.value.as_py()!r} to type {target}.",
            hint="Write hh:mm:ss.",
        ) from error


def is_beyond(text: Constant, target: types.DataType) -> bool:
    """Return whether a text spells an integer that an integer type of fewer than 64 bits does not have. It is read as one
    of 64 bits, which wraps, as in ClickHouse."""
    if not isinstance(target, types.Integer) or target.bits >= 64 or not text.value.is_valid:
        return False
    value = bytes(text.value.as_buffer())  # a text need not be UTF-8
    if not re.fullmatch(rb"[+-]?[0-9]{1,999}" if target.signed else rb"[+]?[0-9]{1,999}", value):
        return False
    number = int(value) % 2**64
    if target.signed and number >= 2**63:
        number -= 2**64
    return not target.minimum <= number <= target.maximum


def is_decimal(data_type: types.DataType) -> bool:
    """Return whether the type is a Decimal, Nullable or not."""
    return isinstance(types.plain(data_type), types.Decimal)


def setting(name: str, context: BindContext) -> Expression:
    """Return the value of a setting for this statement, as a constant.

    Raises UnknownSetting for an unknown name."""
    lookup(name)
    return _typed(Settings.of(context.settings)[name])


def table_setting(node: sql.Function) -> Expression:
    """Return the default of a table's setting, `getMergeTreeSetting('name')`, as a constant.

    Raises UnknownSetting for an unknown name, IllegalTypeOfArgument unless it is a text literal,
    NumberOfArgumentsDoesntMatch."""
    if len(node.arguments) != 1:
        raise NumberOfArgumentsDoesntMatch(f"{node.name} takes the name of a setting.")
    argument = node.arguments[0]
    if not isinstance(argument, sql.Literal) or not isinstance(argument.value, str):
        raise IllegalTypeOfArgument(
            f"{node.name} takes the name of a setting, as a text literal.", position=node.position
        )
    definition = TABLE_SETTINGS.get(argument.value)
    if definition is None:
        raise UnknownSetting(
            f"There is no setting of tables {argument.value!r}.", position=node.position
        )
    return _typed(definition.default)


def _typed(value: object) -> Expression:
    """Return a setting's value as a constant of the type that its literal has."""
    if isinstance(value, bool):
        return Constant(types.BOOL, pa.scalar(value))
    if isinstance(value, int):
        data_type = functions.literal_type(value)
        return Constant(data_type, functions.constant(value, data_type))
    if isinstance(value, float):
        return Constant(types.FLOAT64, pa.scalar(value))
    return string(str(value))
