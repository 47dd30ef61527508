"""`IN`: lists, tuples, arrays, subqueries, tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard

import pyarrow as pa

from olapdb import functions, types
from olapdb.bind import constants
from olapdb.bind.contracts import Binder
from olapdb.bind.correlations import correlated
from olapdb.bind.names import name_of_set
from olapdb.bind.subqueries import with_types
from olapdb.errors import (
    Error,
    IllegalTypeOfArgument,
    NumberOfColumnsDoesntMatch,
    TypeMismatch,
    UnknownIdentifier,
    UnknownTable,
)
from olapdb.functions.base import Environment
from olapdb.functions.kernels.columns import from_scalars
from olapdb.lazy import LazyModule
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import (
    Call,
    ColumnRef,
    Constant,
    CorrelatedSubquery,
    Expression,
    InSubquery,
    InValues,
    LambdaParameter,
    OuterColumn,
    Unnested,
    WindowExpression,
    is_repeatable,
    walk,
)
from olapdb.sql import nodes as sql

if TYPE_CHECKING:
    from olapdb.bind import in_sets
else:
    in_sets = LazyModule("olapdb.bind.in_sets")

_NULL = pa.nulls(1, pa.uint8())[0]


def bind_in(binder: Binder, node: sql.In) -> Expression:
    """Bind IN: InValues for constants, InSubquery for a query, else a chain of `or(equals …)`."""
    argument = binder.bind(node.left)
    if isinstance(types.plain(argument.type), types.Dynamic | types.Json):
        raise IllegalTypeOfArgument(
            f"Illegal type {argument.type} of argument of function in.",
            hint="Take values of one type: j.path.:Int64 IN (…).",
            position=node.position,
        )
    query = _query_of(binder, node)
    nulls = binder.context.flag("transform_null_in")
    if query is not None:
        with _named_by(node.right):
            return _in_subquery(binder, argument, query, node.negated, nulls)
    elements = _elements(binder, argument, node.right)
    if nulls and _is_array_of(elements, argument):
        return _in_array(binder, argument, elements[0], node.negated, nulls)
    if nulls:
        return _in_with_nulls(binder, argument, elements, node.negated)
    if not all(isinstance(e, Constant) for e in elements):
        return _in_expressions(binder, argument, elements, node.negated)
    if isinstance(types.plain(argument.type), types.Nothing):
        return constants.null()
    if constants.is_null(argument):
        return Constant(types.Nullable(types.UINT8), _NULL)
    values = [e for e in elements if isinstance(e, Constant) and e.value.is_valid]
    return _in_values(argument, values, node.negated, binder.environment)


@contextmanager
def _named_by(right: sql.Expression) -> Iterator[None]:
    """Raise UnknownIdentifier in place of UnknownTable if the right side of IN is no query: its name
    could be a column, too."""
    try:
        yield
    except UnknownTable as error:
        if isinstance(right, sql.Subquery):
            raise
        raise UnknownIdentifier(error.message, hint=error.hint, position=error.position) from None


def _query_of(binder: Binder, node: sql.In) -> sql.Query | None:
    """Return the query on the right of IN, None where there is a list.

    It is `(SELECT …)`, or `SELECT * FROM t` for the name of a table, in parentheses or not."""
    if isinstance(node.right, sql.Subquery):
        return node.right.query
    right = name_of_set(node)
    if right is None or len(right.parts) > 2:
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
    binder: Binder, argument: Expression, right: sql.Expression
) -> tuple[Expression, ...]:
    """Return the elements of the list on the right of IN, from a literal or a constant.

    `(a, b) IN (1, 2)` has one element, the tuple."""
    if (
        isinstance(right, sql.TupleLiteral)
        and len(right.elements) == 1
        and not isinstance(types.plain(argument.type), types.Tuple)
    ):
        (whole,) = right.elements
        if isinstance(whole, sql.Function) and whole.name == "tuple":
            right = sql.TupleLiteral(whole.arguments, position=right.position)
        elif isinstance(whole, sql.TupleLiteral):
            right = whole
    right = _without_parentheses(argument, right)
    if _is_list_parameter(right, argument, binder):
        (right,) = right.elements
    if isinstance(right, sql.ArrayLiteral) and _is_one_array(binder, argument, right):
        return (binder.bind(right),)
    if isinstance(right, sql.TupleLiteral | sql.ArrayLiteral):
        elements = binder.bind_all(right.elements)
        if isinstance(right, sql.TupleLiteral) and _is_one_tuple(argument, elements):
            return (binder.call("tuple", elements),)
        return elements
    bound = binder.bind(right)
    if not isinstance(bound, Constant) or not bound.value.is_valid:
        return (bound,)
    inner = types.plain(bound.type)
    if isinstance(inner, types.Array) and _depth(inner) > _depth(argument.type):
        return tuple(Constant(inner.inner, bound.value.values[i]) for i in range(len(bound.value)))
    items = inner.elements if isinstance(inner, types.Tuple) else ()
    several = bool(items) and all(isinstance(types.plain(t), types.Tuple) for t in items)
    if isinstance(inner, types.Tuple) and (
        several or not isinstance(types.plain(argument.type), types.Tuple)
    ):
        values = zip(inner.elements, bound.value.values(), strict=True)
        return tuple(Constant(t, v) for t, v in values)
    return (bound,)


def _is_one_array(binder: Binder, argument: Expression, right: sql.ArrayLiteral) -> bool:
    """Return whether `x IN [1, 2]` is meant as a list of the one array: x is an array that is nested as deeply."""
    depth = _depth(argument.type)
    elements = binder.bind_all(right.elements) if depth else ()
    return bool(elements) and max(_depth(e.type) for e in elements) + 1 == depth


def _without_parentheses(argument: Expression, right: sql.Expression) -> sql.Expression:
    """Return the array as the list in `x IN ([1, 2])`; the right side unchanged if it is no such array, or is not
    nested deeper than the arrays of x."""
    if not isinstance(right, sql.TupleLiteral) or len(right.elements) != 1:
        return right
    element = right.elements[0]
    for _ in range(_depth(argument.type)):
        if not isinstance(element, sql.ArrayLiteral) or not element.elements:
            return right
        element = element.elements[0]
    return right.elements[0] if isinstance(element, sql.ArrayLiteral) else right


def _is_list_parameter(
    right: sql.Expression, argument: Expression, binder: Binder
) -> TypeGuard[sql.TupleLiteral]:
    """Return whether the right side is one parameter in brackets, `x IN (?)`, whose value is the list: an array nested
    one level deeper than x, or a tuple where x is none."""
    if not isinstance(right, sql.TupleLiteral) or len(right.elements) != 1:
        return False
    if not isinstance(right.elements[0], sql.Parameter):
        return False
    given = binder.bind(right.elements[0]).type
    if isinstance(types.plain(given), types.Tuple):
        return not isinstance(types.plain(argument.type), types.Tuple)
    return _depth(given) == _depth(argument.type) + 1


def _is_one_tuple(argument: Expression, elements: Sequence[Expression]) -> bool:
    """Return whether `(a, b) IN (x, y)` is meant as a list of the one tuple (x, y): the left side is a tuple, and no
    element is. Raises IllegalTypeOfArgument for a single number."""
    has_tuples = any(isinstance(types.plain(e.type), types.Tuple) for e in elements)
    if not isinstance(types.plain(argument.type), types.Tuple) or has_tuples:
        return False
    if len(elements) == 1 and types.is_number(types.plain(elements[0].type)):
        raise IllegalTypeOfArgument(
            f"IN compares a {argument.type} with a {elements[0].type}, which is no tuple.",
            hint="A tuple of one element is tuple(x).",
        )
    return True


def _result_type(arguments: Sequence[Expression]) -> types.DataType:
    """Return the type of a comparison: Nullable(UInt8) if any argument is nullable."""
    return (
        types.Nullable(types.UINT8)
        if any(types.is_nullable(a.type) for a in arguments)
        else types.UINT8
    )


def _in_expressions(
    binder: Binder, argument: Expression, elements: Sequence[Expression], negated: bool
) -> Expression:
    """Return IN over elements that are not all constants: `has` of an array, else a chain of `or(equals …)`.

    It is NULL where the left side is. Its type is Nullable(UInt8), but UInt8 where the left side is never NULL and the
    elements are the same for all rows, as `today()` and a scalar subquery are."""
    if _is_array_of(elements, argument):
        return _in_array(binder, argument, elements[0], negated, False)
    elements = _of_tuple(binder, argument, elements)
    equal = tuple(_never_null(binder, binder.call("equals", (argument, e))) for e in elements)
    matches = equal[0] if len(equal) == 1 else binder.call("or", equal)
    if all(map(_is_same_for_all_rows, elements)) and not types.is_nullable(argument.type):
        return binder.call("not", (matches,)) if negated else matches
    return _null_of_null(binder, argument, matches, negated)


def _is_same_for_all_rows(element: Expression) -> bool:
    """Return whether an element of IN has one value for the whole query: it reads no column, and no function in it
    answers row by row, as rand() does."""
    nodes = list(walk(element))
    has_columns = any(isinstance(e, ColumnRef | OuterColumn | LambdaParameter) for e in nodes)
    has_rows = any(isinstance(e, CorrelatedSubquery | Unnested | WindowExpression) for e in nodes)
    names = {e.function.name for e in nodes if isinstance(e, Call)}
    return (
        not has_columns and not has_rows and is_repeatable(element) and "materialize" not in names
    )


def _is_array_of(elements: Sequence[Expression], argument: Expression) -> bool:
    """Return whether the right side of IN is a single computed array, nested one level deeper than the left side."""
    if len(elements) != 1 or isinstance(elements[0], Constant):
        return False
    return _depth(elements[0].type) == _depth(argument.type) + 1


def _depth(data_type: types.DataType) -> int:
    """Return how many arrays lie around the values of a type: 0 for a number."""
    depth, inner = 0, types.plain(data_type)
    while isinstance(inner, types.Array):
        depth, inner = depth + 1, types.plain(inner.inner)
    return depth


def _in_array(
    binder: Binder, argument: Expression, array: Expression, negated: bool, nulls: bool
) -> Expression:
    """Return IN of a computed array, row by row: `has`. With `nulls` NULL equals NULL."""
    matches = binder.call("has", (array, argument))
    if nulls:
        return binder.call("not", (matches,)) if negated else matches
    return _null_of_null(binder, argument, matches, negated)


def _of_tuple(
    binder: Binder, argument: Expression, elements: Sequence[Expression]
) -> Sequence[Expression]:
    """Return the elements of a computed tuple on the right side of IN; other elements as they are."""
    inner = types.plain(elements[0].type)
    if (
        len(elements) != 1
        or isinstance(elements[0], Constant)
        or not isinstance(inner, types.Tuple)
        or isinstance(types.plain(argument.type), types.Tuple)
    ):
        return elements
    return _unpacked(elements[0], len(inner.elements), binder)


def _null_of_null(
    binder: Binder, argument: Expression, matches: Expression, negated: bool
) -> Expression:
    """Return a condition as Nullable(UInt8), which is NULL where `argument` is."""
    matches = binder.call("not", (matches,)) if negated else matches
    matches = binder.cast(_never_null(binder, matches), types.Nullable(types.UINT8))
    if not types.is_nullable(argument.type) and not constants.is_null(argument):
        return matches
    unknown = Constant(types.Nullable(types.UINT8), _NULL)
    return binder.call("if", (binder.call("isNull", (argument,)), unknown, matches))


def _in_with_nulls(
    binder: Binder, argument: Expression, elements: Sequence[Expression], negated: bool
) -> Expression:
    """Return IN over a list as `transform_null_in` means it: NULL equals NULL, and the answer is
    never NULL."""
    whole: list[Constant] = []
    matches: list[Expression] = []
    for element in elements:
        if isinstance(element, Constant) and not _has_null(element):
            whole.append(element)
        elif constants.is_null(element):
            matches.append(binder.call("isNull", (argument,)))
        else:
            matches.append(_equal_with_nulls(binder, argument, element))
    if whole and not constants.is_null(argument):
        matches.append(_never_null(binder, _in_values(argument, whole, False, binder.environment)))
    if not matches:
        return constants.unsigned_byte(int(negated))
    is_in = matches[0] if len(matches) == 1 else binder.call("or", tuple(matches))
    return binder.call("not", (is_in,)) if negated else is_in


def _has_null(element: Constant) -> bool:
    """Return whether a constant is NULL, or a tuple with a NULL in it."""
    if not element.value.is_valid:
        return True
    return pa.types.is_struct(element.value.type) and not all(
        part.is_valid for part in element.value.values()
    )


def _equal_with_nulls(binder: Binder, left: Expression, right: Expression) -> Expression:
    """Return whether two values are equal, part by part for tuples, where NULL equals NULL."""
    inner, other = types.plain(left.type), types.plain(right.type)
    count = len(inner.elements) if isinstance(inner, types.Tuple) else 0
    if count and isinstance(other, types.Tuple) and len(other.elements) == count:
        pairs = zip(_unpacked(left, count, binder), _unpacked(right, count, binder), strict=True)
        return binder.call("and", tuple(_equal_with_nulls(binder, a, b) for a, b in pairs))
    equal = _never_null(binder, binder.call("equals", (left, right)))
    if not types.is_nullable(left.type) or not types.is_nullable(right.type):
        return equal
    both = binder.call("and", tuple(binder.call("isNull", (side,)) for side in (left, right)))
    return binder.call("or", (equal, both))


def _never_null(binder: Binder, condition: Expression) -> Expression:
    """Return a condition with 0 in place of NULL."""
    if not types.is_nullable(condition.type):
        return condition
    return binder.call("ifNull", (condition, constants.unsigned_byte(0)))


def _in_values(
    argument: Expression, elements: Sequence[Constant], negated: bool, environment: Environment
) -> Expression:
    """Return IN over a list of constants; a constant if the left side is one as well.

    Elements that no value of the left side's type can equal are dropped."""
    target = types.plain(argument.type)
    distinct: dict[object, pa.Scalar] = {}
    for element in elements:
        converted = in_sets.element_as(element, target, environment)
        if converted is not None:
            distinct[in_sets.key_of(converted)] = converted
    data_type = _result_type((argument,))
    if isinstance(argument, Constant):
        same = constants.cast(argument, target, environment, eager=True)
        assert isinstance(same, Constant)
        is_member = in_sets.key_of(same.value) in distinct
        return Constant(data_type, constants.unsigned_byte(is_member != negated).value)
    values = from_scalars(distinct.values(), target.arrow)
    return InValues(data_type, argument, values, tuple(distinct), negated)


def _in_subquery(
    binder: Binder, argument: Expression, query: sql.Query, negated: bool, nulls: bool
) -> Expression:
    """Bind `x IN (SELECT …)`, comparing each column at a type common to both sides.

    The constant NULL on the left gives NULL, and NULL equals nothing, unless `nulls`. Raises NumberOfColumnsDoesntMatch if the sides have
    different numbers of columns."""
    context = binder.subquery_context()
    bound = binder.queries.subquery(query, context)
    if isinstance(types.plain(argument.type), types.Nothing) and len(bound.columns) == 1:
        if not nulls:
            return constants.null()
        argument = binder.cast(argument, types.Nullable(types.plain(bound.columns[0].type)))
    arguments = _unpacked(argument, len(bound.columns), binder)
    if len(arguments) != len(bound.columns):
        raise NumberOfColumnsDoesntMatch(
            f"The left side of IN has {len(arguments)} columns, the subquery {len(bound.columns)}."
        )
    first, column = types.plain(arguments[0].type), types.plain(bound.columns[0].type)
    if (
        isinstance(first, types.Tuple)
        and len(arguments) == 1
        and not isinstance(column, types.Tuple | types.Nothing)
    ):
        raise NumberOfColumnsDoesntMatch(
            f"The left side of IN has {len(first.elements)} columns, the subquery 1."
        )
    sides = [
        _comparable(binder, left, right.type)
        for left, right in zip(arguments, bound.columns, strict=True)
    ]
    set_types = [_nullable_as(c.type, t) for c, (_, t) in zip(bound.columns, sides, strict=True)]
    node = with_types(bound, set_types, binder.queries.names)
    result = _result_type(arguments) if arguments == (argument,) else types.UINT8
    compared = tuple(left for left, _ in sides)
    if nulls:
        compared, node = _nulls_apart(binder, compared, node)
        result = types.UINT8
    subquery = correlated(
        binder.queries, "in", result, node, context, arguments=compared, negated=negated
    )
    return subquery or InSubquery(result, compared, node, negated)


def _nulls_apart(
    binder: Binder, compared: tuple[Expression, ...], node: plan.Node
) -> tuple[tuple[Expression, ...], plan.Node]:
    """Return both sides of an IN with each pair that may be NULL as two: whether it is NULL, and its
    value or a default. So NULL equals NULL."""
    left: list[Expression] = []
    right: list[tuple[str, Expression]] = []
    for value, field in zip(compared, node.schema, strict=True):
        column: Expression = ColumnRef(field.type, field.name)
        pairs = [(value, column)]
        if types.is_nullable(value.type) or types.is_nullable(field.type):
            pairs = [
                (binder.call(name, (value,)), binder.call(name, (column,)))
                for name in ("isNull", "assumeNotNull")
            ]
        for of_value, of_column in pairs:
            left.append(of_value)
            right.append((binder.queries.names.unique(field.name), of_column))
    return tuple(left), plan.Project(node, tuple(right))


def _comparable(
    binder: Binder, left: Expression, right: types.DataType
) -> tuple[Expression, types.DataType]:
    """Return the left side of an IN, and the type to compare it and the subquery's column at.

    Where the two types have no common type, the left side is converted to the column's type, as
    in ClickHouse; a value that would change becomes NULL, which is in no set. Raises TypeMismatch
    where this is impossible.
    """
    source, target = types.plain(left.type), types.plain(right)
    if source != target and isinstance(source, types.Variant) and isinstance(target, types.String):
        return binder.cast(left, types.Nullable(types.String())), types.String()
    if source != target and (types.has_variant(source) or types.has_variant(target)):
        raise _no_comparison(left.type, right)
    try:
        common = functions.comparable_type([source, target])
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
    """Return (do not raise) the error for an IN over types that cannot be compared."""
    return TypeMismatch(
        f"IN compares {left} with a subquery's column of type {right}.", hint="Cast one of them."
    )


def _nullable_as(data_type: types.DataType, target: types.DataType) -> types.DataType:
    """Return `target`, nullable if `data_type` is nullable."""
    return types.Nullable(target) if types.is_nullable(data_type) else target


def _unpacked(argument: Expression, count: int, binder: Binder) -> tuple[Expression, ...]:
    """Return the elements of the left side if it is a tuple and the right side has several columns.

    Otherwise return the left side alone. `count` is the number of columns on the right; the caller checks that there
    are as many elements."""
    inner = types.plain(argument.type)
    if count == 1 or not isinstance(inner, types.Tuple):
        return (argument,)
    if isinstance(argument, Call) and argument.name == "tuple":
        return argument.arguments
    return tuple(
        binder.call("tupleElement", (argument, constants.unsigned_byte(i + 1)))
        for i in range(len(inner.elements))
    )
