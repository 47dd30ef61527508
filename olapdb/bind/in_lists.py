"""`IN`: lists, tuples, arrays, subqueries, tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb import functions, types
from olapdb.bind import constants
from olapdb.errors import DataError, Error, NumberOfColumnsDoesntMatch, TypeMismatch
from olapdb.functions.base import Environment
from olapdb.functions.kernels.columns import from_scalars, single, structs_from, text
from olapdb.plan.expressions import Call, Constant, Expression, InSubquery, InValues
from olapdb.sql import nodes as sql

if TYPE_CHECKING:
    from olapdb.bind.expressions import ExpressionBinder

_NULL = pa.scalar(None, pa.uint8())


def bind_in(binder: ExpressionBinder, node: sql.In) -> Expression:
    """InValues for constants, InSubquery for queries, a chain of `or(equals …)` for the rest."""
    argument = binder.bind(node.left)
    query = _query_of(binder, node.right)
    if query is not None:
        return _in_subquery(binder, argument, query, node.negated)
    elements = _elements(binder, argument, node.right)
    if not all(isinstance(e, Constant) for e in elements):
        return _in_expressions(binder, argument, elements, node.negated)
    if isinstance(types.plain(argument.type), types.Nothing):
        return constants.null()
    if constants.is_null(argument):
        return Constant(types.Nullable(types.UINT8), _NULL)
    values = [e for e in elements if isinstance(e, Constant) and e.value.is_valid]
    return _in_values(argument, values, node.negated, binder.environment)


def _query_of(binder: ExpressionBinder, right: sql.Expression) -> sql.Query | None:
    """The query on the right: `(SELECT …)`, or `SELECT * FROM t` for the name of a table."""
    if isinstance(right, sql.Subquery):
        return right.query
    if not isinstance(right, sql.Identifier) or len(right.parts) > 2:
        return None
    if binder.lookup(right.parts, right) is not None:
        return None
    database = right.parts[0] if len(right.parts) == 2 else None
    table = sql.TableName(right.parts[-1], database, position=right.position)
    return sql.Select(
        (sql.Star(),),
        source=sql.TableReference(table, position=right.position),
        position=right.position,
    )


def _elements(
    binder: ExpressionBinder, argument: Expression, right: sql.Expression
) -> tuple[Expression, ...]:
    """The alternatives. `(a, b) IN (1, 2)` has one, the tuple."""
    if isinstance(right, sql.TupleLiteral | sql.ArrayLiteral):
        elements = binder.bind_all(right.elements)
        if isinstance(right, sql.TupleLiteral) and _is_one_tuple(argument, elements):
            return (binder.call("tuple", elements),)
        return elements
    bound = binder.bind(right)
    if not isinstance(bound, Constant) or not bound.value.is_valid:
        return (bound,)
    inner = types.plain(bound.type)
    if isinstance(inner, types.Array) and not isinstance(types.plain(argument.type), types.Array):
        return tuple(Constant(inner.inner, bound.value.values[i]) for i in range(len(bound.value)))
    if isinstance(inner, types.Tuple) and not isinstance(types.plain(argument.type), types.Tuple):
        values = zip(inner.elements, bound.value.values(), strict=True)
        return tuple(Constant(t, v) for t, v in values)
    return (bound,)


def _is_one_tuple(argument: Expression, elements: Sequence[Expression]) -> bool:
    of_tuples = any(isinstance(types.plain(e.type), types.Tuple) for e in elements)
    return isinstance(types.plain(argument.type), types.Tuple) and not of_tuples


def _result_type(arguments: Sequence[Expression]) -> types.DataType:
    return (
        types.Nullable(types.UINT8)
        if any(types.is_nullable(a.type) for a in arguments)
        else types.UINT8
    )


def _in_expressions(
    binder: ExpressionBinder, argument: Expression, elements: Sequence[Expression], negated: bool
) -> Expression:
    equal = tuple(binder.call("equals", (argument, e)) for e in elements)
    found = equal[0] if len(equal) == 1 else binder.call("or", equal)
    return binder.call("not", (found,)) if negated else found


def _in_values(
    argument: Expression, elements: Sequence[Constant], negated: bool, environment: Environment
) -> Expression:
    target = types.plain(argument.type)
    kept: dict[object, pa.Scalar] = {}
    for element in elements:
        converted = _convert(element, target, environment)
        if converted is not None:
            kept[_key(converted)] = converted
    values = from_scalars(kept.values(), target.arrow)
    made = InValues(_result_type((argument,)), argument, values, tuple(kept), negated)
    if isinstance(argument, Constant):
        found = _key(_same_value(argument, target, environment)) in kept
        return Constant(made.type, constants.unsigned_byte(found != negated).value)
    return made


def _key(value: pa.Scalar) -> object:
    """What tells values apart as a set does: -0.0 is not 0.0, NaN is NaN, in tuples and arrays too."""
    if not value.is_valid:
        return None
    if pa.types.is_floating(value.type):
        return str(value)
    if pa.types.is_struct(value.type):
        return tuple(_key(one) for one in value.values())
    if pa.types.is_list(value.type) or pa.types.is_map(value.type):
        return tuple(_key(one) for one in value.values)
    return value


def _same_value(argument: Constant, target: types.DataType, environment: Environment) -> pa.Scalar:
    converted = constants.cast(argument, target, environment, eager=True)
    assert isinstance(converted, Constant)
    return converted.value


def _convert(
    element: Constant, target: types.DataType, environment: Environment
) -> pa.Scalar | None:
    """The element as the argument's type; None where no value of that type equals it."""
    source = types.plain(element.type)
    if isinstance(target, types.Tuple) and isinstance(source, types.Tuple):
        return _convert_tuple(element, source, target, environment)
    if isinstance(source, types.Nothing) or isinstance(target, types.Nothing):
        return None
    if isinstance(target, types.String) and isinstance(source, types.FixedString):
        return text(single(element.value))[0]
    if (
        isinstance(target, types.String)
        and not isinstance(source, types.String)
        and not types.is_number(source)
    ):
        raise TypeMismatch(
            f"IN compares {target} with a list that holds a {source}.",
            hint="Quote the values, or cast the left side.",
        )
    try:
        converted = constants.cast(element, target, environment, eager=True)
    except DataError as error:
        if types.is_number(target) and types.is_number(source):
            return None
        if types.is_number(target):
            raise constants.not_of_type(element, target) from error
        raise
    assert isinstance(converted, Constant)
    if (
        types.is_number(target)
        and types.is_number(source)
        and not _equal_numbers(element, converted)
    ):
        return None
    return converted.value


def _convert_tuple(
    element: Constant, source: types.Tuple, target: types.Tuple, environment: Environment
) -> pa.Scalar | None:
    if len(source.elements) != len(target.elements):
        raise NumberOfColumnsDoesntMatch(
            f"IN compares tuples of {len(target.elements)} with a tuple of {len(source.elements)}."
        )
    parts: list[pa.Array] = []
    for part, part_type, wanted in zip(
        element.value.values(), source.elements, target.elements, strict=True
    ):
        if not part.is_valid:
            return None
        made = _convert(Constant(part_type, part), types.plain(wanted), environment)
        if made is None:
            return None
        parts.append(from_scalars([made], types.plain(wanted).arrow))
    return structs_from(parts, target.arrow)[0]


def _equal_numbers(one: Constant, other: Constant) -> bool:
    """300 is not among the values of UInt8, 1.5 not among those of Int32."""
    left, right = one.value.as_py(), other.value.as_py()
    source, target = types.plain(one.type), types.plain(other.type)
    if isinstance(source, types.Boolean):
        return True
    if isinstance(target, types.Boolean):
        return bool(left == int(right))
    if isinstance(target, types.Float):
        both_nan = left != left and right != right
        return isinstance(source, types.Decimal) or both_nan or bool(left == right)
    if isinstance(types.plain(other.type), types.Decimal) and isinstance(left, float):
        return float(right) == left
    assert isinstance(types.plain(other.type), types.Integer | types.Decimal)
    return bool(left == right)


def _in_subquery(
    binder: ExpressionBinder, argument: Expression, query: sql.Query, negated: bool
) -> Expression:
    bound = binder.queries.subquery(query, binder.inner())
    if isinstance(types.plain(argument.type), types.Nothing) and len(bound.columns) == 1:
        return constants.null()
    arguments = _unpacked(argument, len(bound.columns), binder)
    if len(arguments) != len(bound.columns):
        raise NumberOfColumnsDoesntMatch(
            f"The left side of IN has {len(arguments)} columns, the subquery {len(bound.columns)}."
        )
    only, shown = types.plain(arguments[0].type), types.plain(bound.columns[0].type)
    if (
        isinstance(only, types.Tuple)
        and len(arguments) == 1
        and not isinstance(shown, types.Tuple | types.Nothing)
    ):
        raise NumberOfColumnsDoesntMatch(
            f"The left side of IN has {len(only.elements)} columns, the subquery 1."
        )
    sides = [
        _alike(binder, left, right.type)
        for left, right in zip(arguments, bound.columns, strict=True)
    ]
    held = [_nullable_as(c.type, t) for c, (_, t) in zip(bound.columns, sides, strict=True)]
    node = binder.queries.converted(bound, held)
    result = _result_type(arguments) if arguments == (argument,) else types.UINT8
    return InSubquery(result, tuple(left for left, _ in sides), node, negated)


def _alike(
    binder: ExpressionBinder, left: Expression, right: types.DataType
) -> tuple[Expression, types.DataType]:
    """The left side of an IN, and the type at which it and the subquery's column are compared.

    Where the two types have none in common that suits both, the left side is converted to the
    column's type, as in ClickHouse; a value that would change is NULL, which is in no set.
    """
    source, target = types.plain(left.type), types.plain(right)
    try:
        common = functions.common_type([source, target])
    except Error:
        common = None
    if common is not None and not isinstance(common, types.ExactFloat):
        same = left.type.arrow == common.arrow
        return (left if same else binder.cast(left, _nullable_as(left.type, common))), common
    if isinstance(source, types.Array | types.Tuple | types.Map) or isinstance(
        target, types.Array | types.Tuple | types.Map
    ):
        raise _no_comparison(left.type, right)
    try:
        if isinstance(target, types.String | types.FixedString):
            return binder.cast(left, _nullable_as(left.type, types.String())), types.String()
        name = constants.string(target.name)
        return binder.call("accurateCastOrNull", (left, name)), target
    except Error as error:
        raise _no_comparison(left.type, right) from error


def _no_comparison(left: types.DataType, right: types.DataType) -> TypeMismatch:
    return TypeMismatch(
        f"IN compares {left} with a subquery's column of type {right}.", hint="Cast one of them."
    )


def _nullable_as(data_type: types.DataType, target: types.DataType) -> types.DataType:
    return types.Nullable(target) if types.is_nullable(data_type) else target


def _unpacked(argument: Expression, count: int, binder: ExpressionBinder) -> tuple[Expression, ...]:
    """The elements of a tuple on the left side, where the subquery has as many columns."""
    inner = types.plain(argument.type)
    if count == 1 or not isinstance(inner, types.Tuple):
        return (argument,)
    if isinstance(argument, Call) and argument.name == "tuple":
        return argument.arguments
    return tuple(
        binder.call("tupleElement", (argument, constants.unsigned_byte(i + 1)))
        for i in range(len(inner.elements))
    )
