"""What stands between operators: columns, literals, parameters, parentheses, and aliases."""

from __future__ import annotations

from dataclasses import replace

from olapdb.errors import SyntaxError
from olapdb.sql import nodes
from olapdb.sql.parser import calls, expressions, json_paths, queries, stars, type_names
from olapdb.sql.parser.cursor import TokenCursor, whole_number
from olapdb.sql.parser.keywords import LITERAL_WORDS, RESERVED_OPERANDS
from olapdb.sql.parser.lookahead import alias_follows, query_follows
from olapdb.sql.parser.precedence import NEGATE
from olapdb.sql.tokens import Token

_LITERALS: dict[str, bool | float | None] = {
    "NULL": None,
    "TRUE": True,
    "FALSE": False,
    "INF": float("inf"),
    "INFINITY": float("inf"),
    "NAN": float("nan"),
}
_AFTER_FROM = (
    "FROM",
    "AS",
    "ASC",
    "DESC",
    "LIMIT",
    "IN",
    "SETTINGS",
    "PRIMARY",
    "PARTITION",
    "TTL",
)
"""Words behind a column of the name `from`."""
_NEGATIVE = {"INF": float("-inf"), "INFINITY": float("-inf"), "NAN": float("nan")}


# --- with an alias


def parse_aliased(cursor: TokenCursor) -> nodes.Expression:
    """Parse `expression [AS name]`."""
    expression = expressions.parse_expression(cursor)
    if not cursor.take("AS"):
        return expression
    return nodes.Alias(expression, cursor.identifier("an alias"), position=expression.position)


def parse_column(cursor: TokenCursor) -> nodes.Expression:
    """Parse `expression [[AS] name]`, as in the lists of SELECT and ARRAY JOIN."""
    expression = expressions.parse_expression(cursor)
    if cursor.take("AS"):
        name = cursor.identifier("an alias")
    elif alias_follows(cursor):
        name = cursor.identifier()
    else:
        return expression
    return nodes.Alias(expression, name, position=expression.position)


def parse_list_until(cursor: TokenCursor, closing: str) -> tuple[nodes.Expression, ...]:
    """Parse `a, b AS c` and step over `closing`; the list may be empty, a comma may trail."""
    elements: list[nodes.Expression] = []
    while not cursor.take(closing):
        if elements:
            cursor.expect(",")
            if cursor.take(closing):
                break
        elements.append(parse_aliased(cursor))
    return tuple(elements)


# --- operands


def parse_operand(cursor: TokenCursor) -> nodes.Expression:
    """Parse one operand; of operators only the prefixes are read."""
    token = cursor.token
    match token.kind:
        case "word":
            return _parse_word(cursor, token)
        case "name":
            cursor.advance()
            return _parse_named(cursor, token)
        case "number":
            return parse_number(cursor)
        case "string":
            cursor.advance()
            return nodes.Literal(token.text, position=cursor.position(token))
        case "parameter":
            return _parse_dollar_parameter(cursor)
        case "operator":
            return _parse_operator(cursor, token)
        case _:
            raise cursor.expected("an expression")


def _parse_word(cursor: TokenCursor, token: Token) -> nodes.Expression:
    """Parse an operand that begins with a word: special form, literal, call or name.

    Raises SyntaxError for a reserved word."""
    special_form = calls.parse_special_form(cursor, token)
    if special_form is not None:
        return special_form
    key = token.key
    if key in LITERAL_WORDS and cursor.key_after(1) not in ("(", "."):
        cursor.advance()
        return nodes.Literal(_LITERALS[key], position=cursor.position(token))
    if key == "FROM" and _is_column_from(cursor):
        cursor.advance()
        return _parse_named(cursor, token)
    if key in RESERVED_OPERANDS and (
        cursor.key_after(1) != "(" or key in ("SELECT", "FROM", "WHERE")
    ):
        raise cursor.expected("an expression")
    cursor.advance()
    return _parse_named(cursor, token)


def _is_column_from(cursor: TokenCursor) -> bool:
    """Return whether the word FROM, where an operand is expected, is the name of a column: an
    operator, the end or a clause follows it, as in `SELECT from FROM t`."""
    following = cursor.key_after(1)
    if cursor.kind_after(1) == "operator":
        return following not in ("(", "{", "$")
    return cursor.kind_after(1) == "end" or following in _AFTER_FROM


def _parse_named(cursor: TokenCursor, token: Token) -> nodes.Expression:
    """Parse a column `a`, `t.a`, all columns `t.*`, or a call, behind its first name `token`."""
    if cursor.key == "(":
        return calls.parse_call(cursor, token)
    position = cursor.position(token)
    parts = [token.text]
    while True:
        if (step := json_paths.parse_step(cursor)) is not None:
            parts += step
            continue
        if cursor.key != ".":
            break
        if cursor.key_after(1) == "*":
            cursor.skip(2)
            return stars.parse_star(cursor, tuple(parts), position)
        if cursor.key_after(1) == "COLUMNS" and cursor.key_after(2) == "(":
            cursor.advance()
            return stars.parse_columns_pattern(cursor, tuple(parts))
        if not cursor.is_name(1):
            break
        cursor.advance()
        name = cursor.advance()
        if cursor.key == "(" and len(parts) == 1:  # a function that a user made in a database
            call = calls.parse_call(cursor, name)
            return replace(call, database=parts[0], position=position)
        parts.append(name.text)
    return nodes.Identifier(tuple(parts), position=position)


def parse_number(cursor: TokenCursor, negative: bool = False) -> nodes.Literal:
    """Parse a number, whose minus sign the caller has stepped over if `negative`.

    Beyond UInt64 and Int64 it is a float, as in ClickHouse; its text is kept for Decimal.
    """
    token = cursor.advance()
    position = cursor.position(token)
    text = f"-{token.text}" if negative else token.text
    magnitude = whole_number(token.text)
    if magnitude is not None:
        number = -magnitude if negative else magnitude
        if -(2**63) <= number < 2**64:
            return nodes.Literal(number, text, position=position)
    try:
        return nodes.Literal(float(text), text, position=position)
    except ValueError:
        raise SyntaxError(f"{text} is not a number.", position=position) from None


def _parse_operator(cursor: TokenCursor, token: Token) -> nodes.Expression:
    """Parse an operand that begins with an operator: a prefix, a bracket, a star, a parameter."""
    key = token.key
    if key == "(":
        return _parse_parentheses(cursor)
    if key == "{":
        return _parse_braces(cursor)
    if key in ("?", ":", "%"):
        return _parse_parameter(cursor)
    if key == "@@":
        return _parse_variable(cursor)
    if key not in ("[", "-", "+", "*"):
        raise cursor.expected("an expression")
    cursor.advance()
    position = cursor.position(token)
    if key == "[":
        return nodes.ArrayLiteral(parse_list_until(cursor, "]"), position=position)
    if key == "*":
        return stars.parse_star(cursor, (), position)
    if key == "+":
        return expressions.parse_expression(cursor, NEGATE)
    if cursor.token.kind == "number":
        return parse_number(cursor, negative=True)
    if cursor.key in _NEGATIVE and cursor.key_after(1) not in ("(", "."):
        return nodes.Literal(_NEGATIVE[cursor.advance().key], position=position)
    operand = expressions.parse_expression(cursor, NEGATE)
    return nodes.Function("negate", (operand,), position=position)


def _parse_variable(cursor: TokenCursor) -> nodes.Expression:
    """Parse `@@name`, `@@session.name` or `@@global.name`, a variable that MySQL's clients ask for."""
    position = cursor.position(cursor.advance())
    name = cursor.identifier("the name of a variable")
    if cursor.take("."):
        name = cursor.identifier("the name of a variable")
    literal = nodes.Literal(name, position=position)
    call = nodes.Function("globalVariable", (literal,), position=position)
    if cursor.key == "AS" or alias_follows(cursor):
        return call
    return nodes.Alias(call, f"@@{name}", position=position)


def _parse_parentheses(cursor: TokenCursor) -> nodes.Expression:
    """Parse a query, a tuple, or one expression in parentheses (which leave no trace)."""
    if query_follows(cursor):
        position = cursor.position()
        return nodes.Subquery(queries.parse_in_parentheses(cursor), position=position)
    position = cursor.position(cursor.advance())
    if cursor.take(")"):
        return nodes.TupleLiteral((), position=position)
    first = parse_aliased(cursor)
    if cursor.take(")"):
        return first
    cursor.expect(",")
    rest = parse_list_until(cursor, ")")
    return nodes.TupleLiteral((first, *rest), position=position)


def _parse_braces(cursor: TokenCursor) -> nodes.Expression:
    """Parse `{name:Type}`, or the map `{'a': 1, 'b': 2}`, which is `map('a', 1, 'b', 2)`."""
    if cursor.is_name(1) and cursor.key_after(2) == ":":
        return _parse_typed_parameter(cursor)
    position = cursor.position(cursor.advance())
    arguments: list[nodes.Expression] = []
    while not cursor.take("}"):
        if arguments:
            cursor.expect(",")
        arguments.append(expressions.parse_expression(cursor))
        cursor.expect(":")
        arguments.append(expressions.parse_expression(cursor))
    return nodes.Function("map", tuple(arguments), position=position)


# --- parameters


def _parse_parameter(cursor: TokenCursor) -> nodes.Parameter:
    """Parse `?`, `:name` or `%(name)s`."""
    position = cursor.position()
    if cursor.key == "?":
        index = len(cursor.question_marks)
        cursor.question_marks.append(cursor.at)
        cursor.advance()
        return nodes.Parameter(None, index, position=position)
    if cursor.key == ":" and cursor.kind_after(1) == "word":
        cursor.advance()
        return nodes.Parameter(cursor.advance().text, None, position=position)
    if cursor.sees("%", "(") and cursor.key_after(3) == ")":
        cursor.skip(2)
        name = cursor.identifier("the name of a parameter")
        cursor.expect(")")
        cursor.expect("S")
        return nodes.Parameter(name, None, position=position)
    raise cursor.expected("an expression")


def _parse_dollar_parameter(cursor: TokenCursor) -> nodes.Parameter:
    """Parse `$1` or `$name`."""
    name = cursor.token.text
    number = whole_number(name)
    if name.isdigit() and not number:
        raise cursor.expected("a parameter from $1 on")
    position = cursor.position(cursor.advance())
    if number is None:
        return nodes.Parameter(name, None, position=position)
    return nodes.Parameter(None, number - 1, position=position)


def _parse_typed_parameter(cursor: TokenCursor) -> nodes.Parameter:
    """Parse `{name:Type}`. Raises an error for the type Identifier."""
    position = cursor.position(cursor.advance())
    name = cursor.identifier("the name of a parameter")
    cursor.expect(":")
    if cursor.key == "IDENTIFIER":
        raise cursor.refused(
            "A parameter of type Identifier here", "Write the name into the text of the statement."
        )
    data_type = type_names.parse_data_type(cursor)
    cursor.expect("}")
    return nodes.Parameter(name, None, data_type, position=position)
