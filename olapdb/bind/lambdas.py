"""Lambdas: `arrayMap(x -> x + a, xs)`, and `WITH x -> x + 1 AS f SELECT f(a)`.

A parameter hides columns and aliases of its name inside the body, and in aliases that the body uses,
as in ClickHouse:

    SELECT a + 1 AS y, arrayMap(a -> y, xs)        y is 1 more than each element
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb import errors
from olapdb.bind import constants
from olapdb.functions import is_aggregate, registry
from olapdb.functions.numeric.conditional import plain_lc
from olapdb.plan.expressions import (
    AggregateCall,
    Expression,
    LambdaFunction,
    LambdaParameter,
    free_parameters,
)
from olapdb.sql import nodes as sql
from olapdb.types import Tuple

if TYPE_CHECKING:
    from olapdb.bind.expressions import ExpressionBinder

_SEPARATOR = "\0"
"""Between a parameter's name and its depth: no column's name has it."""


class LambdaScopes:
    """The lambdas around what is being bound, the innermost last."""

    def __init__(self) -> None:
        self._scopes: list[Mapping[str, Expression]] = []

    @property
    def depth(self) -> int:
        return len(self._scopes)

    def parameter(self, name: str) -> Expression | None:
        """The innermost parameter of this name."""
        for parameters in reversed(self._scopes):
            if name in parameters:
                return parameters[name]
        return None

    @contextmanager
    def within(self, parameters: Mapping[str, Expression]) -> Iterator[None]:
        """Bind a lambda's body, in which these names are its parameters."""
        self._scopes.append(parameters)
        try:
            yield
        finally:
            self._scopes.pop()


def with_lambda(binder: ExpressionBinder, node: sql.Function) -> sql.Function:
    """The call with a lambda in the place of a function's name: `arrayMap(toString, a)`.

    A column or an alias of that name comes first."""
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


def lambda_of(binder: ExpressionBinder, node: sql.Expression) -> sql.Lambda | None:
    """The lambda that an argument is, written out or by its name of WITH; None for another one."""
    if isinstance(node, sql.Lambda):
        return node
    if isinstance(node, sql.Identifier) and len(node.parts) == 1:
        return named_lambda(binder, node.parts[0])
    return None


def named_lambda(binder: ExpressionBinder, name: str) -> sql.Lambda | None:
    """The lambda that an alias of this SELECT, or of one around it, names."""
    at: ExpressionBinder | None = binder
    while at is not None:
        if at is binder and binder.lambdas.parameter(name) is not None:
            return None
        found = at.aliases.get(name)
        if found is not None:
            return found if isinstance(found, sql.Lambda) else None
        at = at.surroundings.outer
    return None


def bind_call_of(binder: ExpressionBinder, node: sql.Function, body: sql.Lambda) -> Expression:
    """`f(a)` where f names a lambda: its body, with the arguments for its parameters."""
    if len(node.arguments) != len(body.arguments):
        raise errors.NumberOfArgumentsDoesntMatch(
            f"The lambda {node.name} takes {len(body.arguments)} argument(s),"
            f" {len(node.arguments)} given."
        )
    given = dict(zip(body.arguments, binder.bind_all(node.arguments), strict=True))
    with binder.lambdas.within(given):
        return binder.bind(body.body)


def bind_lambda_function(
    binder: ExpressionBinder, node: sql.Function, given: sql.Lambda
) -> Expression:
    """A function whose first argument is a lambda.

    Raises UnknownFunction, BadArguments where the function takes none, and what the function's type
    rule raises."""
    definition = registry.find_lambda(node.name)
    if definition is None:
        if is_aggregate(node.name):
            raise errors.UnsupportedMethod(
                f"The aggregate function {node.name} does not take a lambda.",
                hint=f"Use arrayMap inside of it: {node.name}(arrayMap(…)).",
            )
        if registry.find(node.name) is None:
            raise errors.UnknownFunction(f"Function with name {node.name} does not exist.")
        raise errors.BadArguments(f"Function {node.name} does not take a lambda.")
    arguments = binder.bind_all(node.arguments[1:])
    types = [a.type for a in arguments]
    wanted = definition.parameters(definition.name, types)
    depth = binder.lambdas.depth
    if len(set(given.arguments)) < len(given.arguments):
        raise errors.BadArguments("The arguments of a lambda need different names.")
    apart = _taken_apart(given, wanted)
    names = ("",) if apart else given.arguments
    if len(names) != len(wanted):
        raise errors.IllegalTypeOfArgument(
            f"The lambda of function {node.name} takes {len(wanted)} argument(s) here, it has"
            f" {len(given.arguments)}."
        )
    parameters = tuple(
        LambdaParameter(one, f"{name}{_SEPARATOR}{depth}.{at}")
        for at, (name, one) in enumerate(zip(names, wanted, strict=True))
    )
    values: Sequence[Expression] = parameters
    if apart:
        values = [
            binder.call("tupleElement", (parameters[0], constants.unsigned_byte(at)))
            for at in range(1, len(given.arguments) + 1)
        ]
    named = dict(zip(given.arguments, values, strict=True))
    with binder.lambdas.within(named), binder.without_unnesting():
        body = binder.bind(given.body)
    if body.type != (plain_type := plain_lc(body.type)):
        body = binder.cast(body, plain_type)
    call = definition.resolve(definition.name, body.type, types)
    made = LambdaFunction(call.type, definition.name, parameters, body, arguments, call)
    return constants.fold_lambda(made, binder.environment)


def _taken_apart(given: sql.Lambda, wanted: Sequence[object]) -> bool:
    """Return whether the lambda names the elements of the tuples of one array."""
    (first, *others) = wanted
    count = len(given.arguments)
    return not others and isinstance(first, Tuple) and count == len(first.elements) > 1


def refuse_parameters(call: AggregateCall) -> None:
    """Raises IllegalAggregation where an aggregate inside a lambda reads the lambda's parameters."""
    for argument in call.arguments:
        for name in sorted(free_parameters(argument)):
            raise errors.IllegalAggregation(
                f"The aggregate function {call.name} cannot aggregate {shown(name)}, an argument of a"
                " lambda.",
                hint="Aggregate an array with arraySum, arrayReduce and their like.",
            )


def shown(parameter: str) -> str:
    """A parameter's name as the query has it."""
    return parameter.partition(_SEPARATOR)[0]
