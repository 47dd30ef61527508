"""CREATE FUNCTION, in ClickHouse's form and with types, and DROP FUNCTION.

CREATE FUNCTION double AS x -> x * 2
CREATE FUNCTION shop.price(net Float64, rate Float64 DEFAULT 0.2) RETURNS Float64
    AS net * (1 + rate)
CREATE FUNCTION shop.slug(title String) RETURNS String LANGUAGE python HANDLER = 'slug' AS $$
def slug(title): …
$$
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from olapdb.errors import BadArguments, Position, SyntaxError
from olapdb.records import dataclass
from olapdb.sql import nodes
from olapdb.sql.parser import clauses, expressions, type_names
from olapdb.sql.parser.cursor import TokenCursor

_Volatility = Literal["IMMUTABLE", "STABLE", "VOLATILE"]
_VOLATILITIES: tuple[_Volatility, ...] = get_args(_Volatility)


@dataclass
class _Options:
    """What may stand between the parameters and AS, and behind the body."""

    language: str = ""
    volatility: _Volatility | Literal[""] = ""
    handler: str = ""
    packages: tuple[str, ...] = ()
    runtime_version: str = ""
    vectorized: bool = False
    comment: str = ""


def parse_create_function(
    cursor: TokenCursor, or_replace: bool, aggregate: bool, position: Position
) -> nodes.CreateFunction:
    """Parse what follows CREATE [OR REPLACE] [AGGREGATE] FUNCTION."""
    if_not_exists = not or_replace and cursor.if_not_exists()
    name = cursor.table_name()
    clauses.refuse_on_cluster(cursor)
    function = nodes.CreateFunction(
        name,
        (),
        aggregate=aggregate,
        or_replace=or_replace,
        if_not_exists=if_not_exists,
        position=position,
    )
    if cursor.key == "(":
        return _parse_typed(cursor, function)
    cursor.expect("AS")
    body_position = cursor.position()
    body = expressions.parse_expression(cursor)
    if not isinstance(body, nodes.Lambda):
        raise BadArguments(
            "A function is a lambda.", hint="Write AS (x, y) -> expression.", position=body_position
        )
    parameters = tuple(nodes.ParameterDefinition(p, position=position) for p in body.arguments)
    return replace(function, parameters=parameters, body=body.body)


def parse_drop_function(cursor: TokenCursor, position: Position) -> nodes.DropFunction:
    """Parse what follows DROP [AGGREGATE] FUNCTION."""
    if_exists = cursor.if_exists()
    name = cursor.table_name()
    clauses.refuse_on_cluster(cursor)
    return nodes.DropFunction(name, if_exists, position=position)


def _parse_typed(cursor: TokenCursor, function: nodes.CreateFunction) -> nodes.CreateFunction:
    """Parse `(x Type, …) [RETURNS Type] [options] AS body [options]`."""
    cursor.expect("(")
    parameters: tuple[nodes.ParameterDefinition, ...] = ()
    if cursor.key != ")":
        parameters = cursor.comma_separated(_parse_parameter)
    cursor.expect(")")
    returns = type_names.parse_data_type(cursor) if cursor.take("RETURNS") else None
    options = _Options()
    _parse_options(cursor, options)
    cursor.expect("AS")
    body_position, is_text = cursor.position(), _is_text_of_body(cursor)
    text = cursor.string() if is_text else ""
    body = None if is_text else expressions.parse_expression(cursor)
    _parse_options(cursor, options)
    if options.language == "python":
        if not is_text:
            raise cursor.expected("the code of the function as a string, such as $$def f(x): …$$")
    elif is_text:
        body = _body_of_text(text, body_position)
    return replace(
        function,
        parameters=parameters,
        body=body,
        code=text if options.language == "python" else "",
        returns=returns,
        typed=True,
        volatility=options.volatility,
        handler=options.handler,
        packages=options.packages,
        runtime_version=options.runtime_version,
        vectorized=options.vectorized,
        comment=options.comment,
    )


def _parse_parameter(cursor: TokenCursor) -> nodes.ParameterDefinition:
    """Parse `name Type [DEFAULT expression]`."""
    position = cursor.position()
    name = cursor.identifier("the name of a parameter")
    data_type = type_names.parse_data_type(cursor)
    default = expressions.parse_expression(cursor) if cursor.take("DEFAULT") else None
    return nodes.ParameterDefinition(name, data_type, default, position=position)


def _parse_options(cursor: TokenCursor, options: _Options) -> None:
    """Parse LANGUAGE, a volatility, HANDLER, PACKAGES, RUNTIME_VERSION, VECTORIZED and COMMENT.

    Any order; raises SyntaxError for a language other than SQL and Python."""
    while True:
        if cursor.take("LANGUAGE"):
            position = cursor.position()
            options.language = cursor.identifier("a language").lower()
            if options.language not in ("sql", "python"):
                raise SyntaxError(
                    f"There are functions in SQL and Python, none in {options.language}.",
                    position=position,
                )
        elif volatility := cursor.take_one_of(*_VOLATILITIES):
            options.volatility = volatility
        elif cursor.take("HANDLER"):
            cursor.take("=")
            options.handler = cursor.string("the name of a function or class as a string")
        elif cursor.take("RUNTIME_VERSION"):
            cursor.take("=")
            options.runtime_version = cursor.string()
        elif cursor.take("PACKAGES"):
            cursor.take("=")
            cursor.expect("(")
            options.packages = cursor.comma_separated(TokenCursor.string)
            cursor.expect(")")
        elif cursor.take("VECTORIZED"):
            options.vectorized = True
        elif cursor.take("COMMENT"):
            options.comment = cursor.string()
        else:
            return


def _is_text_of_body(cursor: TokenCursor) -> bool:
    """Return whether the body is a string of code, `$$…$$` or quoted, and not an expression."""
    after = cursor.kind_after(1) in ("end", "word") or cursor.key_after(1) == ";"
    return cursor.token.kind == "string" and after


def _body_of_text(text: str, position: Position) -> nodes.Expression:
    """Return the expression that a string holds: `a + 1`, or `SELECT a + 1` without more clauses."""
    from olapdb.sql.parser.text import parse_expression, parse_query  # it imports this package

    stripped = text.strip().rstrip(";")
    if not stripped.upper().startswith(("SELECT", "WITH")):
        return parse_expression(stripped)
    query = parse_query(stripped)
    if isinstance(query, nodes.Select) and len(query.columns) == 1:
        (column,) = query.columns
        expression = column.expression if isinstance(column, nodes.Alias) else column
        if query == nodes.Select(query.columns):
            return expression
    raise BadArguments(
        "The body of a function is one expression over its parameters.",
        hint="Write AS a + b, or SELECT a + b without FROM and other clauses.",
        position=position,
    )
