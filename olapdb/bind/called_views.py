"""`FROM v(p = 5)`: the query of a view with parameters, with the values of one call."""

from __future__ import annotations

from collections.abc import Mapping

from olapdb import errors
from olapdb.bind import constants
from olapdb.bind.aggregates import needs_groups
from olapdb.bind.contracts import BindContext, BoundQuery, QueryBinder
from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.names import located, suggestion
from olapdb.bind.relation import Relation
from olapdb.model.schema import View
from olapdb.model.snapshot import Snapshot
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import (
    ColumnRef,
    Constant,
    CorrelatedSubquery,
    Expression,
    OuterColumn,
    ScalarSubquery,
    WindowExpression,
    is_pure,
    is_repeatable,
    walk,
)
from olapdb.sql import nodes as sql
from olapdb.sql.parser import parse_query
from olapdb.sql.view_parameters import called_name, parameters_of
from olapdb.types import DataType


def called_view(snapshot: Snapshot, source: sql.TableFunction, database: str) -> View | None:
    """Return the view with parameters that a call in FROM names, None if the name is a table function. Raises
    UnknownFunction for a name with a database that is no such view."""
    name = called_name(source) or sql.TableName(source.name, database)
    item = snapshot.find(name.database or database, name.name)
    if isinstance(item, View) and item.has_parameters:
        return item
    if called_name(source) is None:
        return None
    raise errors.UnknownFunction(
        f"There is no view {source.name} with parameters.",
        hint="" if item is None else f"Write {source.name} without parentheses.",
        position=source.position,
    )


def refuse_uncalled(view: View, source: sql.TableReference) -> None:
    """Raise UnknownQueryParameter for a view with parameters that FROM names without values."""
    if view.has_parameters:
        values = ", ".join(f"{name} = …" for name in parameters_of(parse_query(view.query)))
        raise errors.UnknownQueryParameter(
            f"The view {view.database}.{view.name} needs values for its parameters.",
            hint=f"Write {view.name}({values}).",
            position=source.position,
        )


def bind_called_view(
    queries: QueryBinder, view: View, source: sql.TableFunction, context: BindContext
) -> BoundQuery:
    """Return the view's query, bound with the values of the call in a context of its own.

    Records the view and its revision in `queries.tables`. Raises UnknownQueryParameter for a
    parameter without a value, BadArguments for an argument that names no parameter."""
    queries.tables[view.id] = view.revision
    query = parse_query(view.query)
    with located(source.position):
        arguments = _arguments(queries, view, source, parameters_of(query), context)
    own = BindContext(
        view.database, queries.scope.settings, depth=context.depth, arguments=arguments
    )
    return queries.subquery(query, own)


def _arguments(
    queries: QueryBinder,
    view: View,
    source: sql.TableFunction,
    parameters: Mapping[str, DataType],
    context: BindContext,
) -> dict[str, Expression]:
    """Return the values of a call `v(p = 5, q = 'x')` by parameter: constants, and scalar subqueries.

    Raises UnknownQueryParameter, also for a value that is no constant, and BadArguments."""
    no_rows = Relation((), _no_rows, "the arguments of a view")
    binder = ExpressionBinder(queries, no_rows, context)
    values: dict[str, Expression] = {}
    for argument in source.arguments:
        match argument:
            case sql.Function(name="equals", arguments=(sql.Identifier(parts=(name,)), value)):
                pass
            case _:
                raise errors.UnknownQueryParameter(
                    f"The arguments of {source.name} are written as name = value."
                )
        if name in values:
            raise errors.BadArguments(f"The parameter {name!r} is given twice.")
        bound = constants.cast_literal(value, binder.bind(value))
        if not isinstance(bound, Constant) and not _is_one_value(bound):
            raise errors.UnknownQueryParameter(
                f"The value of the parameter {name!r} is no constant.",
                hint="Write a literal, an expression of literals and now() or today(), or a scalar subquery.",
            )
        values[name] = bound
    missing = next((p for p in parameters if p not in values), None)
    if missing is not None:
        raise errors.UnknownQueryParameter(f"No value was given for the parameter {missing!r}.")
    for name in values:
        if name not in parameters:
            raise errors.BadArguments(
                f"The view {view.name} has no parameter {name!r}.",
                hint=suggestion(name, list(parameters)),
            )
    return values


def _is_one_value(value: Expression) -> bool:
    """Return whether a value is computed from scalar subqueries and calls like today(), which have one value in a
    query and depend on no row."""
    parts = list(walk(value))
    computed = any(isinstance(part, ScalarSubquery) for part in parts) or not is_pure(value)
    return (
        computed
        and is_repeatable(value)
        and not needs_groups(value)
        and not any(
            isinstance(part, ColumnRef | OuterColumn | CorrelatedSubquery | WindowExpression)
            for part in parts
        )
    )


def _no_rows() -> plan.Node:
    """Raise AssertionError: arguments are constants, so no plan is built for them."""
    raise AssertionError("Arguments have no rows.")
