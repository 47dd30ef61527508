"""Lambdas: `arrayMap(x -> x + a, xs)`, and `WITH x -> x + 1 AS f SELECT f(a)`.

A parameter hides columns and aliases of its name inside the body, and in aliases that the body uses,
as in ClickHouse:

    SELECT a + 1 AS y, arrayMap(a -> y, xs)        y is 1 more than each element
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from olapdb import errors
from olapdb.bind import constants
from olapdb.bind.aliases import aliases_of_lambda
from olapdb.bind.contracts import Binder
from olapdb.functions import is_aggregate, registry
from olapdb.plan.expressions import (
    AggregateCall,
    Expression,
    LambdaFunction,
    LambdaParameter,
    free_parameters,
)
from olapdb.sql import nodes as sql
from olapdb.types import LowCardinality, Tuple, without_low_cardinality

_SEPARATOR = "\0"
"""Separates a parameter's name from its depth; no column's name has it."""


def with_lambda(binder: Binder, node: sql.Function) -> sql.Function:
    """Return `arrayMap(toString, a)` with a lambda, x -> toString(x), for the function's name.

    Any other call is unchanged. A column, alias or lambda of that name comes first."""
    if len(node.arguments) < 2 or registry.find_lambda(node.name) is None:
        return node
    first = node.arguments[0]
    if not isinstance(first, sql.Identifier) or len(first.parts) > 1:
        return node
    (name,) = first.parts
    if registry.find(name) is None or binder.lookup(first.parts, None) is not None:
        return node
    if named_lambda(binder, name) is not None:
        return node
    names = tuple(f"__function_ref_arg_{at}" for at in range(len(node.arguments) - 1))
    called = sql.Function(
        name,
        tuple(sql.Identifier((n,), position=first.position) for n in names),
        position=first.position,
    )
    given = sql.Lambda(names, called, position=first.position)
    return replace(node, arguments=(given, *node.arguments[1:]))


def lambda_of(binder: Binder, node: sql.Expression) -> sql.Lambda | None:
    """Return the lambda that an argument is, or whose alias it is; None for other arguments."""
    if isinstance(node, sql.Lambda):
        return node
    if isinstance(node, sql.Identifier) and len(node.parts) == 1:
        return named_lambda(binder, node.parts[0])
    return None


def named_lambda(binder: Binder, name: str) -> sql.Lambda | None:
    """Return the lambda of this alias, in this SELECT or an enclosing one; else None."""
    if binder.lambdas.parameter(name) is not None:
        return None
    scope: Binder | None = binder
    while scope is not None:
        expression = scope.aliases.get(name)
        if expression is not None:
            return expression if isinstance(expression, sql.Lambda) else None
        scope = scope.context.outer
    return None


def bind_call_of_lambda(binder: Binder, node: sql.Function, called: sql.Lambda) -> Expression:
    """Bind `f(a)` where f names a lambda: its body, with the arguments for its parameters.

    Raises NumberOfArgumentsDoesntMatch."""
    if len(node.arguments) != len(called.arguments):
        raise errors.NumberOfArgumentsDoesntMatch(
            f"The lambda {node.name} takes {len(called.arguments)} argument(s),"
            f" {len(node.arguments)} given."
        )
    arguments = dict(zip(called.arguments, binder.bind_all(node.arguments), strict=True))
    with binder.lambdas.within(arguments), _own_aliases(binder, called):
        return binder.bind(called.body)


@contextmanager
def _own_aliases(binder: Binder, function: sql.Lambda) -> Iterator[None]:
    """Let the names in a lambda's body mean its own aliases first, while the returned manager is active."""
    before = binder.aliases
    binder.aliases = {**before, **aliases_of_lambda(function)}
    try:
        yield
    finally:
        binder.aliases = before


def bind_lambda_function(binder: Binder, node: sql.Function, argument: sql.Lambda) -> Expression:
    """Bind a function whose first argument is this lambda.

    Raises UnknownFunction, BadArguments if the function takes no lambda or argument names repeat,
    IllegalTypeOfArgument for another number of arguments, and what the type rule raises."""
    definition = registry.find_lambda(node.name)
    if definition is None:
        raise _no_lambda_function(node.name, len(node.arguments))
    arguments = binder.bind_all(node.arguments[1:])
    of_maps = definition.name.startswith("map")  # they keep LowCardinality in their result
    plains = [without_low_cardinality(a.type) for a in arguments]
    types = [a.type for a in arguments] if of_maps else plains
    parameter_types = definition.parameters(definition.name, plains)
    if len(set(argument.arguments)) < len(argument.arguments):
        raise errors.BadArguments("The arguments of a lambda need different names.")
    if binder.context.refuses_columns:
        _refuse_own_names(argument)
    unpacked = _names_elements(argument, parameter_types)
    as_pair = of_maps and len(argument.arguments) == 1 and len(parameter_types) == 2
    names = ("",) if unpacked else ("k", "v") if as_pair else argument.arguments
    if len(names) != len(parameter_types):
        raise errors.IllegalTypeOfArgument(
            f"The lambda of function {node.name} takes {len(parameter_types)} argument(s) here, it has"
            f" {len(argument.arguments)}."
        )
    parameters = tuple(
        LambdaParameter(data_type, f"{name}{_SEPARATOR}{binder.lambdas.depth}.{at}")
        for at, (name, data_type) in enumerate(zip(names, parameter_types, strict=True))
    )
    values: Sequence[Expression] = parameters
    if unpacked:
        values = [
            binder.call("tupleElement", (parameters[0], constants.unsigned_byte(at)))
            for at in range(1, len(argument.arguments) + 1)
        ]
    elif as_pair:  # `p -> p.2` takes a pair of a map as a tuple
        pair = Tuple(tuple(p.type for p in parameters), ("keys", "values"))
        values = [binder.cast(binder.call("tuple", parameters), pair)]
    scope = dict(zip(argument.arguments, values, strict=True))
    with binder.lambdas.within(scope), _own_aliases(binder, argument), binder.without_unnesting():
        body = binder.bind(argument.body)
    if definition.name == "arrayFold":  # its body has the type of the accumulator
        body = binder.cast(body, without_low_cardinality(body.type))
    elif isinstance(body.type, LowCardinality) and not of_maps:
        body = binder.cast(body, body.type.inner)
    if definition.name in registry.ORDERING:
        registry.refuse_order_within(definition.name, [Tuple((body.type,))])
    call = definition.resolve(definition.name, body.type, types)
    bound = LambdaFunction(call.type, definition.name, parameters, body, arguments, call)
    return constants.fold_lambda(bound, binder.environment)


def _refuse_own_names(argument: sql.Lambda) -> None:
    """Raise BadArguments for an alias in the lambda's body that is the name of one of its arguments."""
    for name in aliases_of_lambda(argument):
        if name in argument.arguments:
            raise errors.BadArguments(
                f"The alias {name} inside of a lambda has the name of the lambda's argument.",
                hint="Give one of them another name.",
            )


def _no_lambda_function(name: str, count: int) -> errors.Error:
    """Return the error for a call with a lambda and `count` arguments of a function that takes no lambda or is
    unknown. A wrong number of arguments is told first, as ClickHouse does."""
    if is_aggregate(name):
        return errors.UnsupportedMethod(
            f"The aggregate function {name} does not take a lambda.",
            hint=f"Use arrayMap inside of it: {name}(arrayMap(…)).",
        )
    definition = registry.find(name)
    if definition is None:
        return errors.UnknownFunction(f"Function with name {name} does not exist.")
    wrong_count = definition.count_error(name, count)
    return wrong_count or errors.IllegalTypeOfArgument(f"Function {name} does not take a lambda.")


def _names_elements(argument: sql.Lambda, parameter_types: Sequence[object]) -> bool:
    """Return whether the lambda's arguments name the elements of one array's tuples."""
    (first, *others) = parameter_types
    count = len(argument.arguments)
    return not others and isinstance(first, Tuple) and count == len(first.elements) > 1


def refuse_parameters(call: AggregateCall) -> None:
    """Raise IllegalAggregation if an aggregate inside a lambda reads the lambda's parameters."""
    for argument in call.arguments:
        for name in sorted(free_parameters(argument)):
            raise errors.IllegalAggregation(
                f"The aggregate function {call.name} cannot aggregate {parameter_name(name)}, an"
                " argument of a lambda.",
                hint="Aggregate an array with arraySum, arrayReduce and their like.",
            )


def parameter_name(unique: str) -> str:
    """Return a parameter's name as the query has it, from its unique name."""
    return unique.partition(_SEPARATOR)[0]
