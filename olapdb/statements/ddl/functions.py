"""CREATE FUNCTION and DROP FUNCTION."""

from __future__ import annotations

import ast
import uuid
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from olapdb import errors
from olapdb.bind import bind_query
from olapdb.bind.syntax import rewrite, rewrite_children, walk
from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.bind.user_functions import expand, substitute
from olapdb.functions import is_aggregate, registry
from olapdb.functions.windows import find_window
from olapdb.model.changes import Change, PutFunction, RemoveFunction
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.requirements import DatabaseExists, FunctionIs, Requirement
from olapdb.model.schema import Column, Engine, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.user_function import FunctionParameter, UserFunction
from olapdb.result import Result
from olapdb.runtime.python_code import refuse_missing, refuse_python
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_expression
from olapdb.statements.context import StatementContext
from olapdb.statements.databases import require_database
from olapdb.statements.ddl.attempts import commit_schema_change, retry_on_conflict

_PARSED_NAMES = frozenset({"cast", "_cast", "grouping", "arrayjoin", "untuple", "columns"})
"""Functions that the binder knows without a definition."""


def create_function(statement: nodes.CreateFunction, context: StatementContext) -> Result:
    """Run CREATE FUNCTION: store the function, in one commit.

    Raises FunctionAlreadyExists, CannotCreateRecursiveFunction, BadArguments for parameters of one
    name, NotSupportedError for a body with a query, and for typed SQL functions the errors of the
    body over values of these types."""
    return retry_on_conflict(context, partial(_create_function, statement, context))


def _create_function(
    statement: nodes.CreateFunction, context: StatementContext, snapshot: Snapshot
) -> Result:
    """Make one attempt of `create_function` at the snapshot."""
    function = _function(statement, context)
    key = (function.database, function.name)
    requirements: list[Requirement] = []
    if function.database:
        require_database(function.database, snapshot, statement.name.position)
        requirements.append(DatabaseExists(function.database))
    existing = snapshot.functions.get(key)
    if existing is not None and statement.if_not_exists:
        return Result()
    _refuse_taken_name(function, existing, statement)
    _check_parameters(statement)
    if function.language == "python":
        _check_python(statement, context)
    else:
        _check_body(statement, function, context, snapshot)
    requirements.append(FunctionIs(*key, None if existing is None else existing.id))
    # A body that passed the check for recursion calls the functions that it passed with.
    requirements += [FunctionIs(*k, f.id) for k, f in _called(function, statement, snapshot)]
    commit_schema_change(context, "CREATE FUNCTION", requirements, [PutFunction(function)])
    return Result()


def drop_function(statement: nodes.DropFunction, context: StatementContext) -> Result:
    """Run DROP FUNCTION. Tables and views that were made with the function keep its text.

    Raises UnknownFunction, CannotDropFunction for a function of the engine."""
    return retry_on_conflict(context, partial(_drop_function, statement, context))


def _drop_function(
    statement: nodes.DropFunction, context: StatementContext, snapshot: Snapshot
) -> Result:
    """Make one attempt of `drop_function` at the snapshot.

    Raises CannotDropFunction and UnknownFunction."""
    name = statement.name
    function = snapshot.functions.get((name.database or "", name.name))
    if function is not None:
        commit_schema_change(context, "DROP FUNCTION", (), [RemoveFunction(function.id)])
        return Result()
    if name.database is None and _is_own_function(name.name):
        raise errors.CannotDropFunction(
            f"Cannot drop system function {name.name}.", position=name.position
        )
    if statement.if_exists:
        return Result()
    others = [f.full_name for f in snapshot.functions.values() if f.name == name.name]
    raise errors.UnknownFunction(
        f"Function {name} does not exist.",
        hint=f"There is {', '.join(sorted(others))}." if others else "Say IF EXISTS.",
        position=name.position,
    )


def drop_of_database(database: str, snapshot: Snapshot) -> tuple[list[Requirement], list[Change]]:
    """Return the requirements and changes of a commit that drops the functions of a database."""
    functions = [f for f in snapshot.functions.values() if f.database == database]
    return (
        [FunctionIs(f.database, f.name, f.id) for f in functions],
        [RemoveFunction(f.id) for f in functions],
    )


def functions_in_renamed_databases(
    names: Mapping[str, str], snapshot: Snapshot
) -> list[UserFunction]:
    """Return the functions that RENAME DATABASE changes, as they are afterwards.

    Those are the members of the databases, and functions whose bodies call one. `names` maps old
    names of databases to new ones."""

    def rename(node: nodes.Node) -> nodes.Node | None:
        """Return a call of a function under its new name; None for other nodes."""
        if not isinstance(node, nodes.Function) or node.database is None:
            return None
        if node.database not in names:
            return None
        arguments = tuple(rewrite(argument, rename) for argument in node.arguments)
        return replace(node, database=names[node.database], arguments=arguments)

    changed = []
    for function in snapshot.functions.values():
        body = function.body
        if function.language == "sql":
            parsed = parse_expression(body)
            renamed = rewrite(parsed, rename)
            body = body if renamed is parsed else to_sql(renamed)
        database = names.get(function.database, function.database)
        if (database, body) != (function.database, function.body):
            changed.append(replace(function, database=database, body=body))
    return changed


# --- what a function is


def _function(statement: nodes.CreateFunction, context: StatementContext) -> UserFunction:
    """Return the function that the statement describes, with a new id."""
    body = "" if statement.body is None else to_sql(_without_aliases(statement.body))
    return UserFunction(
        id=str(uuid.uuid4()),
        database=statement.name.database or "",
        name=statement.name.name,
        parameters=tuple(
            FunctionParameter(
                p.name,
                "" if p.type is None else str(p.type),
                "" if p.default is None else to_sql(p.default),
            )
            for p in statement.parameters
        ),
        body=statement.code or body,
        returns="" if statement.returns is None else str(statement.returns),
        typed=statement.typed,
        aggregate=statement.aggregate,
        language="python" if statement.body is None else "sql",
        handler=statement.handler,
        volatility=statement.volatility,
        packages=statement.packages,
        runtime_version=statement.runtime_version,
        vectorized=statement.vectorized,
        comment=statement.comment,
        created_ms=context.services.clock_ms(),
    )


def _without_aliases(body: nodes.Expression) -> nodes.Expression:
    """Return the body with each alias written out: `(x + 1 AS z) * z` is `(x + 1) * (x + 1)`.

    The callers of the function have aliases of their own."""
    aliases = {n.name: n.expression for n in walk(body) if isinstance(n, nodes.Alias)}
    plain = {name: _unaliased(expression) for name, expression in aliases.items()}
    result = _unaliased(body)
    for _ in aliases:  # an alias may name another one
        result = substitute(result, plain)
    return result


def _unaliased(expression: nodes.Expression) -> nodes.Expression:
    """Return the expression without the aliases in it."""

    def unwrap(node: nodes.Node) -> nodes.Node:
        """Return the node without an alias around it or below."""
        while isinstance(node, nodes.Alias):
            node = node.expression
        return rewrite_children(node, unwrap)

    result = unwrap(expression)
    assert isinstance(result, nodes.Expression)
    return result


# --- checks


def _refuse_taken_name(
    function: UserFunction, existing: UserFunction | None, statement: nodes.CreateFunction
) -> None:
    """Raise FunctionAlreadyExists for a name of the engine or, without OR REPLACE, of a user.

    Also raises IncorrectQuery."""
    position = statement.name.position
    if function.database in SYSTEM_DATABASES:
        raise errors.IncorrectQuery(
            f"The database {function.database} takes no functions.", position=position
        )
    if not function.database and _is_own_function(function.name):
        raise errors.FunctionAlreadyExists(
            f"The function {function.name} already exists.",
            hint="Choose a name that the engine does not have, or put it into a database.",
            position=position,
        )
    if existing is not None and not statement.or_replace:
        raise errors.FunctionAlreadyExists(
            f"The function {function.full_name} already exists.",
            hint="Say CREATE OR REPLACE FUNCTION or IF NOT EXISTS.",
            position=position,
        )


def _is_own_function(name: str) -> bool:
    """Return whether the engine has a function of this name."""
    known = registry.is_scalar(name) or is_aggregate(name) or find_window(name) is not None
    return known or name.lower() in _PARSED_NAMES


def _check_parameters(statement: nodes.CreateFunction) -> None:
    """Raise BadArguments for two parameters of one name, or one without default behind a default."""
    names: set[str] = set()
    has_default = False
    for parameter in statement.parameters:
        if parameter.name in names:
            raise errors.BadArguments(
                f"The function {statement.name} has two parameters {parameter.name}.",
                position=parameter.position,
            )
        if has_default and parameter.default is None:
            raise errors.BadArguments(
                f"The parameter {parameter.name} of {statement.name} needs a DEFAULT, as the one "
                "before it has one.",
                position=parameter.position,
            )
        names.add(parameter.name)
        has_default = parameter.default is not None


def _check_body(
    statement: nodes.CreateFunction,
    function: UserFunction,
    context: StatementContext,
    snapshot: Snapshot,
) -> None:
    """Raise an error unless the body of a SQL function is allowed.

    Raises NotSupportedError for a query in it, UnknownQueryParameter for a parameter of the
    statement, CannotCreateRecursiveFunction if it calls itself. If the parameters have types, the
    body is bound over columns of these types, and raises its errors."""
    assert statement.body is not None
    for node in walk(statement.body):
        if isinstance(node, nodes.Subquery | nodes.Exists):
            raise errors.NotSupportedError(
                f"The body of the function {statement.name} contains a query.",
                hint="Pass the query's result as an argument.",
                position=node.position,
            )
        if isinstance(node, nodes.Parameter):
            raise errors.UnknownQueryParameter(
                "The body of a function has no query parameters.",
                hint="Make it a parameter of the function.",
                position=node.position,
            )
    functions = {**snapshot.functions, (function.database, function.name): function}
    call = nodes.Function(
        function.name,
        tuple(nodes.Identifier((p.name,)) for p in function.parameters),
        database=function.database or None,
        position=statement.position,
    )
    try:
        expanded = expand(call, functions)
    except errors.RecursiveFunction as error:
        raise errors.CannotCreateRecursiveFunction(
            error.message, hint=error.hint, position=statement.position
        ) from None
    if function.typed:
        _check_types(statement, expanded, context, snapshot)


def _check_types(
    statement: nodes.CreateFunction,
    expanded: nodes.Expression,
    context: StatementContext,
    snapshot: Snapshot,
) -> None:
    """Raise the errors of the body over columns of the parameters' types."""
    columns = tuple(
        Column(at, p.name, p.type)
        for at, p in enumerate(statement.parameters)
        if p.type is not None
    )
    table = Table("parameters", context.database, "parameters", Engine("Null"), columns)
    source = nodes.TableReference(nodes.TableName(table.name, table.database))
    query = nodes.Select((expanded,), source=source if columns else None)
    bind_query(query, context.scope(OverlaySnapshot.of(snapshot, table)))
    body = statement.body
    assert body is not None
    aggregates = any(isinstance(n, nodes.Function) and is_aggregate(n.name) for n in walk(expanded))
    if statement.aggregate and not aggregates:
        raise errors.BadArguments(
            f"The body of the aggregate function {statement.name} has no aggregate.",
            hint="Use sum, count or the like in it, or say CREATE FUNCTION.",
            position=body.position,
        )


def _called(
    function: UserFunction, statement: nodes.CreateFunction, snapshot: Snapshot
) -> list[tuple[tuple[str, str], UserFunction]]:
    """Return the stored functions that the body names, but for the function itself."""
    if statement.body is None:
        return []
    names = {
        (n.database or "", n.name) for n in walk(statement.body) if isinstance(n, nodes.Function)
    }
    own = (function.database, function.name)
    return [(k, f) for k, f in snapshot.functions.items() if k in names and k != own]


def _check_python(statement: nodes.CreateFunction, context: StatementContext) -> None:
    """Raise an error for Python code that is not allowed, does not parse or lacks its handler.

    The code is not run."""
    refuse_python(str(statement.name), context.settings)
    refuse_missing(statement.packages, statement.runtime_version, str(statement.name))
    if statement.returns is None:
        raise errors.BadArguments(
            f"The Python function {statement.name} needs RETURNS and a type.",
            position=statement.position,
        )
    try:
        module = ast.parse(statement.code)
    except SyntaxError as error:
        raise errors.BadArguments(
            f"The Python code of {statement.name} does not parse: {error.msg} in line {error.lineno}.",
            position=statement.position,
        ) from None
    definitions = [n for n in module.body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
    handlers = [n.name for n in definitions if isinstance(n, ast.ClassDef) == statement.aggregate]
    if statement.handler not in handlers:
        what = "class" if statement.aggregate else "function"
        raise errors.BadArguments(
            f"The Python code of {statement.name} defines no {what} {statement.handler or 'HANDLER'}.",
            hint=f"Write HANDLER = 'name'; it defines {', '.join(handlers) or 'none'}.",
            position=statement.position,
        )
