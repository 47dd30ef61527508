"""Calls of functions that users made, written out: `double(a)` becomes `a * 2`.

A statement is expanded before anything else is done with it. So a table or view stores the expanded
text, and creating, replacing or dropping a function never changes what it means.

The arguments take the place of the parameters as whole expressions. A lambda of the body whose
parameter has the name of a column in an argument gets another name for it:

    CREATE FUNCTION shift AS x -> arrayMap(y -> x + y, [1, 2])
    shift(y)  becomes  arrayMap(y_1 -> y + y_1, [1, 2])

The code of a Python function cannot be written out. Its call stays, with the defaults and casts of
its parameters; of an aggregate the argument becomes the array of the group's values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import TypeVar

from olapdb import errors
from olapdb.bind.syntax import rewrite, rewrite_children, walk
from olapdb.functions import is_aggregate, parse_type, registry
from olapdb.model.user_function import UserFunction
from olapdb.sql import nodes as sql
from olapdb.sql.column_names import column_name
from olapdb.sql.parser import parse_expression

Functions = Mapping[tuple[str, str], UserFunction]
NodeT = TypeVar("NodeT", bound=sql.Node)

_CALLS_OF_STORAGE = {
    "IndexDefinition": "type",
    "ColumnDefinition": "codec",
    "StorageClause": "engine",
}
"""Fields that hold calls which are no functions: `set(100)`, `ZSTD(1)`, `MergeTree()`."""


def calls_of_users(node: sql.Node) -> bool:
    """Return whether the tree has a call that none of ClickHouse's functions answers."""
    return any(isinstance(n, sql.Function) and not _is_known(n) for n in walk(node))


def is_storage_call(call: sql.Function, statement: sql.Node) -> bool:
    """Return whether a call of the statement is an index type, codec or the like, no function."""
    for node in walk(statement):
        value = getattr(node, _CALLS_OF_STORAGE.get(type(node).__name__, ""), None)
        held = value if isinstance(value, tuple) else (value,)
        if any(n is call for v in held if isinstance(v, sql.Node) for n in walk(v)):
            return True
    return False


def expand(node: NodeT, functions: Functions) -> NodeT:
    """Return the statement or expression with all calls of these functions written out.

    A SELECT's column keeps the name that it has as a call. Raises BadArguments for another number of
    arguments, RecursiveFunction for a function that calls itself, UnknownFunction for DISTINCT,
    FILTER and parameters, UnknownAggregateFunction for OVER."""
    if not functions:
        return node
    return _Expander(functions, frozenset(), ()).node(node)


def substitute(node: NodeT, arguments: Mapping[str, sql.Expression]) -> NodeT:
    """Return the expression with each of these names replaced by its argument."""
    return _Substitution(arguments).node(node)


def _is_known(call: sql.Function) -> bool:
    """Return whether the engine itself has a function of this name."""
    if call.database is not None:
        return False
    return _is_known_name(call.name)


@lru_cache(maxsize=4096)
def _is_known_name(name: str) -> bool:
    """Return whether the engine itself has a function of this name, looked up once."""
    return registry.is_scalar(name) or is_aggregate(name)


class _Expander:
    """Writes out calls; `shadowed` are names of lambdas in scope, `calling` the functions whose
    bodies are being written out, outermost first."""

    def __init__(
        self, functions: Functions, shadowed: frozenset[str], calling: tuple[tuple[str, str], ...]
    ) -> None:
        self._functions, self._shadowed, self._calling = functions, shadowed, calling

    def node(self, node: NodeT) -> NodeT:
        """Return the tree with all calls written out."""
        return rewrite(node, self._change)

    def _change(self, node: sql.Node) -> sql.Node | None:
        """Return the node with calls written out, for nodes that need more than their children rewritten: SELECTs,
        calls, and definitions whose index types and codecs are no calls. None to go on with the children."""
        match node:
            case sql.Select():
                return self._select(node)
            case sql.Function():
                return self._call(node)
            case sql.CreateFunction():
                return node
            case sql.IndexDefinition() | sql.ColumnDefinition() | sql.StorageClause():
                field = _CALLS_OF_STORAGE[type(node).__name__]
                kept = getattr(node, field)
                return replace(rewrite_children(node, self._change), **{field: kept})
            case _:
                return None

    def _select(self, select: sql.Select) -> sql.Select:
        """Return the SELECT with its calls written out. A lambda that it names hides a function of the
        same name."""
        lambdas = {w.name for w in select.with_items if isinstance(w.expression, sql.Lambda)}
        lambdas |= {
            n.name
            for n in walk(select, lambda node: node is select or not isinstance(node, sql.Query))
            if isinstance(n, sql.Alias) and isinstance(n.expression, sql.Lambda)
        }
        inner = _Expander(self._functions, self._shadowed | lambdas, self._calling)
        expanded = rewrite_children(select, inner._change)
        columns = tuple(
            new if new is old or isinstance(new, sql.Alias | sql.Star) else _named(new, old)
            for new, old in zip(expanded.columns, select.columns, strict=True)
        )
        return replace(expanded, columns=columns) if expanded is not select else select

    def _call(self, call: sql.Function) -> sql.Expression | None:
        """Return the expression that a call of a user's function stands for, None for others.

        Raises RecursiveFunction."""
        key = (call.database or "", call.name)
        function = self._functions.get(key)
        if function is None or (call.database is None and call.name in self._shadowed):
            return None
        _refuse_modifiers(call, function)
        if key in self._calling:
            raise errors.RecursiveFunction(
                f"The function {function.full_name} calls itself.",
                hint="Write the steps out, or use arrayFold.",
                position=call.position,
            )
        arguments = _arguments(tuple(self.node(a) for a in call.arguments), function, call)
        if function.language == "python":
            return _python_call(function, arguments, call)
        body = _moved(_parsed(function.body), call)
        inner = _Expander(self._functions, self._shadowed, (*self._calling, key))
        names = (p.name for p in function.parameters)
        expression = substitute(inner.node(body), dict(zip(names, arguments, strict=True)))
        return _cast(expression, function.returns, call)


class _Substitution:
    """Replaces names by arguments, and renames parameters of lambdas that would capture a name."""

    def __init__(self, arguments: Mapping[str, sql.Expression]) -> None:
        self._arguments = arguments
        self._free = {
            n.parts[0]
            for argument in arguments.values()
            for n in walk(argument)
            if isinstance(n, sql.Identifier)
        }

    def node(self, node: NodeT) -> NodeT:
        """Return the tree with the names replaced."""
        return rewrite(node, self._change)

    def _change(self, node: sql.Node) -> sql.Node | None:
        """Return the node with names replaced: for a name its argument, for a call of a name that is a lambda the
        lambda's body, for a lambda itself with its own parameters kept; None to go on with the children."""
        match node:
            case sql.Identifier(parts=(name, *elements)) if name in self._arguments:
                value = self._arguments[name]
                for element in elements:
                    value = sql.Function(
                        "tupleElement", (value, sql.Literal(element)), position=node.position
                    )
                return value
            case sql.Function(name=name, database=None) if isinstance(
                given := self._arguments.get(name), sql.Lambda
            ):
                values = tuple(self.node(a) for a in node.arguments)
                if len(values) != len(given.arguments):
                    return None
                return substitute(given.body, dict(zip(given.arguments, values, strict=True)))
            case sql.Lambda():
                return self._lambda(node)
            case _:
                return None

    def _lambda(self, node: sql.Lambda) -> sql.Lambda:
        """Return a lambda of the body: its parameters hide the function's, and capture nothing."""
        taken = self._free | {n.parts[0] for n in walk(node) if isinstance(n, sql.Identifier)}
        renamed: dict[str, sql.Expression] = {}
        names = []
        for name in node.arguments:
            if name in self._free:
                new = next(n for i in count(1) if (n := f"{name}_{i}") not in taken)
                taken.add(new)
                renamed[name] = sql.Identifier((new,), position=node.position)
                name = new
            names.append(name)
        visible = {n: a for n, a in self._arguments.items() if n not in node.arguments}
        body = substitute(node.body, renamed) if renamed else node.body
        return replace(node, arguments=tuple(names), body=substitute(body, visible))


@lru_cache(maxsize=512)
def _parsed(body: str) -> sql.Expression:
    """Return a stored expression, parsed."""
    return parse_expression(body)


def _moved(node: NodeT, call: sql.Function) -> NodeT:
    """Return the body with the position of the call, so that errors point at the call."""

    def move(child: sql.Node) -> sql.Node:
        """Return a node and all below it at the position of the call."""
        return replace(rewrite_children(child, move), position=call.position)

    return rewrite(node, move)


def _named(new: sql.Expression, old: sql.Expression) -> sql.Expression:
    """Return a column of SELECT under the name that it has as written."""
    return sql.Alias(new, column_name(old), position=old.position)


def _arguments(
    given: Sequence[sql.Expression], function: UserFunction, call: sql.Function
) -> tuple[sql.Expression, ...]:
    """Return an argument for each parameter: defaults filled in, cast to the declared types.

    Raises BadArguments."""
    missing = function.parameters[len(given) :]
    if len(given) > len(function.parameters) or not all(p.default for p in missing):
        required = sum(not p.default for p in function.parameters)
        most = len(function.parameters)
        takes = str(most) if required == most else f"{required} to {most}"
        raise errors.BadArguments(
            f"The function {function.full_name} takes {takes} argument(s), {len(given)} given.",
            hint=f"It is {function.full_name}({', '.join(p.name for p in function.parameters)}).",
            position=call.position,
        )
    values = (*given, *(_moved(_parsed(p.default), call) for p in missing))
    return tuple(
        _cast(value, parameter.type, call)
        for value, parameter in zip(values, function.parameters, strict=True)
    )


def _cast(value: sql.Expression, type_name: str, call: sql.Function) -> sql.Expression:
    """Return the value as the named type, unchanged if there is no name."""
    if not type_name:
        return value
    return sql.Cast(value, parse_type(type_name), position=call.position)


def _python_call(
    function: UserFunction, arguments: tuple[sql.Expression, ...], call: sql.Function
) -> sql.Expression:
    """Return the call of a Python function over complete arguments.

    An aggregate gets the array of the values of a group, of tuples if it takes several; NULL is
    left out where it takes one."""
    if function.aggregate:
        values = (
            arguments[0]
            if len(arguments) == 1
            else sql.Function("tuple", arguments, position=call.position)
        )
        arguments = (sql.Function("groupArray", (values,), position=call.position),)
    return replace(call, arguments=arguments)


def _refuse_modifiers(call: sql.Function, function: UserFunction) -> None:
    """Raise UnknownAggregateFunction for OVER, and UnknownFunction for DISTINCT, FILTER, parameters and RESPECT NULLS,
    behind a call of a user's function."""
    name = function.full_name
    if call.over is not None:
        raise errors.UnknownAggregateFunction(
            f"Aggregate function with name {name} does not exist.",
            hint="Put the window into the function: AS x -> sum(x) OVER (…).",
            position=call.position,
        )
    if call.distinct or call.filter is not None or call.parameters or call.nulls is not None:
        raise errors.UnknownFunction(
            f"The function {name} takes no DISTINCT, FILTER, parameters, or RESPECT NULLS.",
            hint="Write them inside the body of the function.",
            position=call.position,
        )
