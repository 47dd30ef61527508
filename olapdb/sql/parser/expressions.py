"""Expressions: a Pratt parser with ClickHouse's precedences.

From loose to tight: `->`, `? :`, OR, AND, NOT, IS, BETWEEN, comparisons with LIKE and IN, `||`,
`+ -`, `* / % DIV MOD`, AT TIME ZONE, unary minus, and `. [] ::`.  Operators become functions with ClickHouse's
names (see `nodes.Function`), so what comes after the parser knows functions only.
"""

from __future__ import annotations

from dataclasses import replace

from olapdb.errors import Position
from olapdb.sql import nodes
from olapdb.sql.parser import operands, queries, type_names
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.lookahead import query_follows
from olapdb.sql.parser.precedence import (
    ADD,
    AND,
    BETWEEN,
    COMPARE,
    CONCAT,
    IS,
    LAMBDA,
    MULTIPLY,
    OR,
    POSTFIX,
    TERNARY,
    ZONE,
)
from olapdb.sql.tokens import Token

_BINARY = {
    "=": (COMPARE, "equals"),
    "==": (COMPARE, "equals"),
    "!=": (COMPARE, "notEquals"),
    "<>": (COMPARE, "notEquals"),
    "<": (COMPARE, "less"),
    "<=": (COMPARE, "lessOrEquals"),
    ">": (COMPARE, "greater"),
    ">=": (COMPARE, "greaterOrEquals"),
    "LIKE": (COMPARE, "like"),
    "ILIKE": (COMPARE, "ilike"),
    "REGEXP": (COMPARE, "match"),
    "~": (COMPARE, "match"),
    "~*": (COMPARE, "matchCaseInsensitive"),
    "!~": (COMPARE, "notMatch"),
    "!~*": (COMPARE, "notMatchCaseInsensitive"),
    "<=>": (IS, "isNotDistinctFrom"),
    "+": (ADD, "plus"),
    "-": (ADD, "minus"),
    "*": (MULTIPLY, "multiply"),
    "/": (MULTIPLY, "divide"),
    "%": (MULTIPLY, "modulo"),
    "MOD": (MULTIPLY, "modulo"),
    "DIV": (MULTIPLY, "intDiv"),
}
_CHAINED = {"AND": (AND, "and"), "OR": (OR, "or"), "||": (CONCAT, "concat")}
"""A chain of one of these is one call: `a AND b AND c` is `and(a, b, c)`."""

_SPECIAL = {
    "->": LAMBDA,
    "?": TERNARY,
    "IS": IS,
    "BETWEEN": BETWEEN,
    "IN": COMPARE,
    "NOT": COMPARE,
    "GLOBAL": COMPARE,
    "AT": ZONE,
    ".": POSTFIX,
    "[": POSTFIX,
    "::": POSTFIX,
}
_BOUNDS = {
    ("less", "ANY"): "max",
    ("lessOrEquals", "ANY"): "max",
    ("less", "ALL"): "min",
    ("lessOrEquals", "ALL"): "min",
    ("greater", "ANY"): "min",
    ("greaterOrEquals", "ANY"): "min",
    ("greater", "ALL"): "max",
    ("greaterOrEquals", "ALL"): "max",
}
"""The aggregate of a query's rows with which a comparison with ANY or ALL of them compares."""


def parse_expression(cursor: TokenCursor, power: int = 0) -> nodes.Expression:
    """Parse operands and the operators between them that bind tighter than `power`."""
    cursor.enter()
    start = cursor.at
    left = operands.parse_operand(cursor)
    while key := cursor.key:
        binary = _BINARY.get(key)
        if binary is not None:
            if binary[0] <= power:
                break
            left = _parse_binary(cursor, left, binary[0], binary[1])
            continue
        chained = _CHAINED.get(key)
        if chained is not None:
            if chained[0] <= power:
                break
            left = _parse_chain(cursor, left, chained[0], chained[1])
            continue
        special = _SPECIAL.get(key)
        if special is None or special <= power:
            break
        applied = _parse_special(cursor, left, start)
        if applied is None:
            break
        left = applied
    cursor.leave()
    return left


def _parse_binary(
    cursor: TokenCursor, left: nodes.Expression, power: int, name: str
) -> nodes.Expression:
    """Parse `operator right` into the call name(left, right).

    `power` is the operator's precedence. `= ANY (SELECT …)` and the like are quantified."""
    operator = cursor.advance()
    if cursor.key in ("ANY", "ALL", "SOME") and query_follows(cursor, 1):
        return _parse_quantified(cursor, left, name, operator)
    right = parse_expression(cursor, power)
    arguments = (left, right, *(_parse_escape(cursor) if name in ("like", "ilike") else ()))
    return nodes.Function(name, arguments, position=cursor.position(operator))


def _parse_escape(cursor: TokenCursor) -> tuple[nodes.Expression, ...]:
    """Parse ESCAPE 'c' behind the pattern of LIKE; return its character, or nothing."""
    if cursor.key != "ESCAPE":
        return ()
    cursor.advance()
    position = cursor.position()
    return (nodes.Literal(cursor.string("the escape character"), position=position),)


def _parse_quantified(
    cursor: TokenCursor, left: nodes.Expression, name: str, operator: Token
) -> nodes.Expression:
    """Parse `ANY (query)` or `ALL (query)` behind a comparison into one with an aggregate.

    As in ClickHouse, `= ANY` is IN, `!= ALL` NOT IN, and `> ALL` compares with the largest value,
    which of no rows is the type's default; `= ALL` and `!= ANY` ask for the only value."""
    word = cursor.advance().key
    quantifier = "ANY" if word == "SOME" else word
    bound = _BOUNDS.get((name, quantifier))
    position = cursor.position(operator)
    if bound is None and name not in ("equals", "notEquals"):
        written = cursor.source.text[operator.start : operator.end]
        raise cursor.refused(f"The comparison {written} {word} (query)", "", operator)
    query = queries.parse_in_parentheses(cursor)
    if bound is not None:
        extreme = nodes.Function(bound, (nodes.Star(position=position),), position=position)
        right = _aggregated(query, extreme, position)
        return nodes.Function(name, (left, right), position=position)
    if (name, quantifier) in (("equals", "ALL"), ("notEquals", "ANY")):
        right = _aggregated(query, _only_value(position), position)
    else:
        right = nodes.Subquery(query, position=position)
    return nodes.In(left, right, name == "notEquals", position=position)


def _aggregated(
    query: nodes.Query, aggregate: nodes.Expression, position: Position | None
) -> nodes.Subquery:
    """Return `(SELECT aggregate FROM (query))`."""
    select = nodes.Select((aggregate,), source=nodes.SubqueryRelation(query))
    return nodes.Subquery(select, position=position)


def _only_value(position: Position | None) -> nodes.Function:
    """Return the expression `if(uniqExact(*) = 1, any(*), NULL)`: the value of `*` if all rows have the same, else
    NULL."""
    star = nodes.Star(position=position)
    single = nodes.Function(
        "equals", (nodes.Function("uniqExact", (star,)), nodes.Literal(1, "1")), position=position
    )
    value = nodes.Function("any", (star,), position=position)
    return nodes.Function("if", (single, value, nodes.Literal(None)), position=position)


def _parse_chain(
    cursor: TokenCursor, left: nodes.Expression, power: int, name: str
) -> nodes.Function:
    """Parse a chain of one operator, `a AND b AND c`, into one call of `name` with all operands.

    `left` is the first operand, and the cursor is at the operator behind it. `power` is the
    operator's precedence."""
    position = cursor.position()
    key = cursor.key
    chain = [left]
    while cursor.take(key):
        chain.append(parse_expression(cursor, power))
    return nodes.Function(name, tuple(chain), position=position)


def _parse_special(
    cursor: TokenCursor, left: nodes.Expression, start: int
) -> nodes.Expression | None:
    """Parse the operator that is next, applied to `left`: `[i]`, `::T`, IN, `->` and the like.

    `left` begins at token number `start`.
    If the word is no operator here, return None and leave the cursor where it is."""
    token = cursor.token
    match token.key:
        case ".":
            return _parse_tuple_element(cursor, left)
        case "[":
            cursor.advance()
            index = operands.parse_aliased(cursor)
            cursor.expect("]")
            return nodes.Function("arrayElement", (left, index), position=cursor.position(token))
        case "::":
            return _parse_cast(cursor, left, start)
        case "IS":
            return _parse_is(cursor, left)
        case "BETWEEN":
            cursor.advance()
            return _parse_between(cursor, left, False, token)
        case "IN":
            if cursor.key_after(1) == "PARTITION":
                return None  # UPDATE a = b IN PARTITION p
            cursor.advance()
            return _parse_in(cursor, left, False, token)
        case "NOT":
            return _parse_negated(cursor, left)
        case "GLOBAL":
            return _parse_global_in(cursor, left)
        case "AT":
            return _parse_at_zone(cursor, left)
        case "?":
            cursor.advance()
            then = parse_expression(cursor, TERNARY)
            cursor.expect(":")
            otherwise = parse_expression(cursor, LAMBDA)
            return nodes.Function("if", (left, then, otherwise), position=cursor.position(token))
        case _:
            return _parse_lambda(cursor, left)


def _parse_cast(cursor: TokenCursor, left: nodes.Expression, start: int) -> nodes.Cast:
    """Parse `::T` behind `left`, which begins at token number `start`."""
    token = cursor.token
    literal = cursor.source.text[cursor.tokens[start].start : token.start].strip()
    cursor.advance()
    type_start = cursor.at
    data_type = type_names.parse_data_type(cursor)
    written = type_names.written_type(cursor.text_since(type_start))
    is_list = isinstance(left, nodes.ArrayLiteral | nodes.TupleLiteral)
    shown = literal if is_list and _is_constant_list(left) else ""
    return nodes.Cast(_as_text(left), data_type, written, shown, position=cursor.position(token))


def _is_constant_list(node: nodes.Expression) -> bool:
    """Return whether an expression is an array or a tuple of numbers and texts, nested ones included.

    ClickHouse shows such a list as it was written; one with NULL, true, false, nan or inf as its value."""
    if isinstance(node, nodes.Literal):
        return isinstance(node.value, str) or bool(node.text)
    if not isinstance(node, nodes.ArrayLiteral | nodes.TupleLiteral):
        return False
    return all(_is_constant_list(e) for e in node.elements)


def _parse_tuple_element(cursor: TokenCursor, left: nodes.Expression) -> nodes.Function:
    """Parse `.1`, `.-1` or `.name` behind `left`."""
    position = cursor.position(cursor.advance())
    if cursor.token.kind == "number":
        element = nodes.Literal(cursor.integer(), position=position)
    elif cursor.key == "-" and cursor.kind_after(1) == "number":
        cursor.advance()
        element = operands.parse_number(cursor, negative=True)
    else:
        element = nodes.Literal(cursor.identifier("a tuple element"), position=position)
    return nodes.Function("tupleElement", (left, element), position=position)


def _parse_is(cursor: TokenCursor, left: nodes.Expression) -> nodes.Function:
    """Parse `IS [NOT] NULL | UNKNOWN | TRUE | FALSE` or `IS [NOT] DISTINCT FROM right`."""
    position = cursor.position(cursor.advance())
    negated = cursor.take("NOT")
    if cursor.take_one_of("NULL", "UNKNOWN"):
        return nodes.Function("isNotNull" if negated else "isNull", (left,), position=position)
    if truth := cursor.take_one_of("TRUE", "FALSE"):
        name = "isDistinctFrom" if negated else "isNotDistinctFrom"
        literal = nodes.Literal(truth == "TRUE", position=position)
        return nodes.Function(name, (left, literal), position=position)
    if cursor.take("DISTINCT", "FROM"):
        name = "isNotDistinctFrom" if negated else "isDistinctFrom"
        return nodes.Function(name, (left, parse_expression(cursor, IS)), position=position)
    raise cursor.expected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")


def _parse_at_zone(cursor: TokenCursor, left: nodes.Expression) -> nodes.Function | None:
    """Parse `AT TIME ZONE zone` or `AT LOCAL` into toTimeZone; None if AT begins neither."""
    position = cursor.position()
    zone: nodes.Expression
    if cursor.take("AT", "LOCAL"):
        zone = nodes.Function("timeZone", position=position)
    elif cursor.take("AT", "TIME", "ZONE"):
        zone = parse_expression(cursor, ZONE)
    else:
        return None
    return nodes.Function("toTimeZone", (left, zone), position=position)


def _parse_between(
    cursor: TokenCursor, value: nodes.Expression, negated: bool, token: Token
) -> nodes.Function:
    """Parse `low AND high` as two comparisons, behind BETWEEN; `token` gives the position."""
    low = parse_expression(cursor, BETWEEN)
    cursor.expect("AND")
    high = parse_expression(cursor, BETWEEN)
    position = cursor.position(token)
    first, second, both = (
        ("less", "greater", "or") if negated else ("greaterOrEquals", "lessOrEquals", "and")
    )
    return nodes.Function(
        both,
        (
            nodes.Function(first, (value, low), position=position),
            nodes.Function(second, (value, high), position=position),
        ),
        position=position,
    )


def _parse_negated(cursor: TokenCursor, left: nodes.Expression) -> nodes.Expression | None:
    """Parse NOT IN, NOT BETWEEN, NOT LIKE and NOT ILIKE; None where NOT begins none of them."""
    token = cursor.token
    operator = cursor.key_after(1)
    if operator not in ("IN", "LIKE", "ILIKE", "BETWEEN"):
        return None
    cursor.skip(2)
    if operator == "IN":
        return _parse_in(cursor, left, True, token)
    if operator == "BETWEEN":
        return _parse_between(cursor, left, True, token)
    name = "notLike" if operator == "LIKE" else "notILike"
    right = parse_expression(cursor, COMPARE)
    arguments = (left, right, *_parse_escape(cursor))
    return nodes.Function(name, arguments, position=cursor.position(token))


def _parse_global_in(cursor: TokenCursor, left: nodes.Expression) -> nodes.In | None:
    """Parse GLOBAL [NOT] IN.

    None if neither is next."""
    token = cursor.token
    if cursor.take("GLOBAL", "IN"):
        return replace(_parse_in(cursor, left, False, token), is_global=True)
    if cursor.take("GLOBAL", "NOT", "IN"):
        return replace(_parse_in(cursor, left, True, token), is_global=True)
    return None


def _parse_in(cursor: TokenCursor, left: nodes.Expression, negated: bool, token: Token) -> nodes.In:
    """Parse the right side of IN: a list in parentheses is a tuple, even of one element."""
    position = cursor.position(token)
    right: nodes.Expression
    if cursor.key == "(" and not query_follows(cursor):
        cursor.advance()
        right = nodes.TupleLiteral(operands.parse_list_until(cursor, ")"), position=position)
    else:
        right = parse_expression(cursor, COMPARE)
    return nodes.In(left, right, negated, position=position)


def _parse_lambda(cursor: TokenCursor, left: nodes.Expression) -> nodes.Lambda:
    """Parse `-> body`; `left`, already parsed, holds the argument names."""
    names = _argument_names(left)
    if names is None:
        raise cursor.expected("the arguments of a lambda, as in x -> … or (x, y) -> …, before ->")
    position = cursor.position(cursor.advance())
    return nodes.Lambda(names, parse_expression(cursor), position=position)


def _argument_names(left: nodes.Expression) -> tuple[str, ...] | None:
    """Return the names in `left`, an operand before `->`; None if any element is no plain name."""
    elements = left.elements if isinstance(left, nodes.TupleLiteral) else (left,)
    names: list[str] = []
    for element in elements:
        if not isinstance(element, nodes.Identifier) or len(element.parts) != 1:
            return None
        names.append(element.parts[0])
    return tuple(names)


def _as_text(expression: nodes.Expression) -> nodes.Expression:
    """Return a number literal as a string of its text; any other expression unchanged.

    `1.5::Decimal(9, 2)` is then exact, as in ClickHouse."""
    if isinstance(expression, nodes.Literal) and expression.text:
        return nodes.Literal(expression.text, position=expression.position)
    return expression
