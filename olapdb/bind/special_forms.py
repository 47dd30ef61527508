"""Forms of expressions that become calls: arrays and tuples, CASE, CAST, arrayJoin, least and greatest of old."""

from __future__ import annotations

from olapdb import errors, functions, types
from olapdb.bind import constants
from olapdb.bind.contracts import Binder
from olapdb.bind.variants import is_list_of_constants, refuse_new_variant, refuse_suspicious_type
from olapdb.functions import settings as function_settings
from olapdb.functions.kernels.supertypes import low_cardinality_result
from olapdb.plan import expressions
from olapdb.sql import nodes as sql


def bind_array(binder: Binder, elements: tuple[sql.Expression, ...]) -> expressions.Expression:
    """Bind an array in brackets. Raises NoCommonType for literals without a common type."""
    arguments = binder.bind_all(elements)
    bound = binder.call("array", arguments)
    if all(isinstance(e, sql.Literal) or is_list_of_constants(e) for e in elements):
        refuse_new_variant(bound, arguments)
    return bound


def bind_tuple(binder: Binder, elements: tuple[sql.Expression, ...]) -> expressions.Expression:
    """Bind a tuple. Under the setting enable_named_columns_in_function_tuple it has the names of
    its elements, if each has one of its own."""
    bound = binder.call("tuple", binder.bind_all(elements))
    if not binder.context.flag("enable_named_columns_in_function_tuple"):
        return bound
    names = [
        e.name if isinstance(e, sql.Alias) else e.parts[-1]
        for e in elements
        if isinstance(e, sql.Alias | sql.Identifier)
    ]
    kind = bound.type
    if len(set(names)) != len(elements) or not isinstance(kind, types.Tuple):
        return bound
    return binder.cast(bound, types.Tuple(kind.elements, tuple(names)))


def null_if_any(binder: Binder, node: sql.Function) -> expressions.Expression:
    """Bind a call as `if(any argument is NULL, NULL, call)`; without nullable arguments the call alone."""
    arguments = binder.bind_all(node.arguments)
    if any(isinstance(types.plain(a.type), types.Nothing) for a in arguments):
        return binder.bind(sql.Literal(None))
    bound = binder.call(node.name, arguments)
    missing = [binder.call("isNull", (a,)) for a in arguments if types.is_nullable(a.type)]
    if not missing:
        return bound
    condition = missing[0] if len(missing) == 1 else binder.call("or", tuple(missing))
    return binder.call("if", (condition, binder.bind(sql.Literal(None)), bound))


def bind_array_join(binder: Binder, node: sql.Function) -> expressions.Expression:
    """Bind arrayJoin() to an Unnested, which the SELECT puts into an ArrayJoin.

    Raises NotSupportedError where the clause may not multiply rows.
    Also raises NumberOfArgumentsDoesntMatch and IllegalTypeOfArgument."""
    if not binder.may_unnest:
        raise errors.NotSupportedError(
            "arrayJoin() makes several rows of one: it belongs into a SELECT of its own.",
            hint="Use the clause ARRAY JOIN, or a subquery.",
        )
    if len(node.arguments) != 1:
        raise errors.NumberOfArgumentsDoesntMatch("arrayJoin takes one argument.")
    (argument,) = binder.bind_all(node.arguments)
    data_type = expressions.element_type(argument.type)
    if data_type is None:
        raise errors.IllegalTypeOfArgument(
            f"The argument of arrayJoin must be an Array or a Map, not {argument.type}."
        )
    return expressions.Unnested(data_type, argument)


def bind_case(binder: Binder, node: sql.Function) -> expressions.Expression:
    """Bind `CASE x WHEN a THEN b … ELSE z END` as `multiIf(x = a, b, …, z)`.

    Raises NumberOfArgumentsDoesntMatch, and NoCommonType for results without a common type."""
    if len(node.arguments) < 2 or len(node.arguments) % 2:
        raise errors.NumberOfArgumentsDoesntMatch("CASE needs WHEN … THEN … pairs and an ELSE.")
    subject, *cases, otherwise = binder.bind_all(node.arguments)
    arguments: list[expressions.Expression] = []
    for when, then in zip(cases[::2], cases[1::2], strict=True):
        # NULL matches NULL, as in ClickHouse.
        nulls = types.is_nullable(subject.type) and types.is_nullable(when.type)
        equal = "isNotDistinctFrom" if nulls else "equals"
        arguments += [binder.call(equal, (subject, when)), then]
    arguments.append(otherwise)
    results = [*arguments[1::2], otherwise]
    if len({r.type for r in results}) > 1:  # then a FixedString loses its zero bytes
        arguments = [_without_zero_bytes(binder, a) for a in arguments]
    chosen = binder.call("multiIf", tuple(arguments))
    refuse_new_variant(chosen, arguments)
    if not all(isinstance(e, expressions.Constant) for e in (*cases, otherwise)):
        return chosen
    return binder.cast(chosen, low_cardinality_result(chosen.type, [subject.type], [False]))


def _without_zero_bytes(binder: Binder, argument: expressions.Expression) -> expressions.Expression:
    """Return a FixedString as a String, any other value unchanged."""
    if not isinstance(types.plain(argument.type), types.FixedString):
        return argument
    nullable = types.is_nullable(argument.type)
    return binder.cast(argument, types.Nullable(types.STRING) if nullable else types.STRING)


def bind_cast(
    binder: Binder, expression: sql.Expression, target: types.DataType, *, written: bool = True
) -> expressions.Expression:
    """Bind a CAST. NULL stays possible under the setting `cast_keep_nullable`.

    A literal is converted to Decimal from its text, not through a Float64."""
    refuse_suspicious_type(target, binder.context, written=written)
    if isinstance(expression, sql.ArrayLiteral):
        bound = binder.call("array", binder.bind_all(expression.elements))
    else:
        bound = binder.bind(expression)
    if isinstance(target, types.Dynamic | types.Variant) and is_list_of_constants(expression):
        bound = binder.call("toString", (bound,))  # a literal is read as it is written
    if constants.is_decimal(target):
        bound = constants.cast_literal(expression, bound)
    if binder.context.flag("cast_keep_nullable") and types.is_nullable(bound.type):
        binder.queries.keeps_nulls = True
        target = types.make_nullable(target)
    target = functions.with_zone_of(bound.type, target)
    called = function_settings.name_with_settings("CAST", binder.context.setting, target=target)
    if called == "CAST" or bound.type == target:
        return binder.cast(bound, target)
    return constants.call(called, (bound, constants.string(target.name)), binder.environment)


def bind_cast_function(binder: Binder, node: sql.Function) -> expressions.Expression:
    """Bind `CAST(x, 'Type')`. Raises IllegalTypeOfArgument for a type that is no constant text."""
    name = binder.bind(node.arguments[1])
    if not isinstance(name, expressions.Constant) or not isinstance(
        text := name.value.as_py(), str
    ):
        raise errors.IllegalTypeOfArgument(
            "The second argument of CAST must be the name of a type."
        )
    is_written = node.name.lower() != "_cast"
    return bind_cast(binder, node.arguments[0], functions.parse_type(text), written=is_written)
