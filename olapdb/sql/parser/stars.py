"""`*`, `t.*`, `COLUMNS(…)`, and what changes them: LIKE, EXCEPT, REPLACE, APPLY."""

from __future__ import annotations

import re
from dataclasses import replace

from olapdb.errors import Position, SyntaxError
from olapdb.sql.nodes import Alias, Expression, Function, Identifier, Lambda, Star
from olapdb.sql.parser import expressions, operands
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.lookahead import query_follows

_AFTER_SET_OPERATION = ("SELECT", "WITH", "ALL", "DISTINCT", "FROM")
_PARAMETER = Identifier(("x",))
"""The argument of the lambda that `APPLY(f)` stands for."""
_LIKE_PARTS = re.compile(r"\\[%_\\]|.", re.DOTALL)
_LIKE_WORDS = {"%": ".*", "_": "."}


def parse_columns_pattern(cursor: TokenCursor, qualifier: tuple[str, ...] = ()) -> Expression:
    """Parse `COLUMNS('regex')` or `COLUMNS(a, b)` and its modifiers; the word COLUMNS is next."""
    position = cursor.position(cursor.advance())
    cursor.expect("(")
    pattern: str | None = None
    names: tuple[str, ...] = ()
    if cursor.token.kind == "string":
        pattern = cursor.string()
    else:
        names = cursor.dotted_names("a column")
    cursor.expect(")")
    return parse_modifiers(cursor, Star(qualifier, pattern, names=names, position=position))


def parse_star(cursor: TokenCursor, qualifier: tuple[str, ...], position: Position | None) -> Star:
    """Parse what may follow `*`: LIKE or ILIKE and a pattern of names, then the modifiers."""
    pattern: str | None = None
    if operator := cursor.take_one_of("LIKE", "ILIKE"):
        if cursor.token.kind != "string":
            raise cursor.expected("a pattern of names, quoted")
        pattern = _expression_of(cursor.string(), ignore_case=operator == "ILIKE")
    return parse_modifiers(cursor, Star(qualifier, pattern, position=position))


def _expression_of(like: str, *, ignore_case: bool) -> str:
    """Return a pattern of LIKE as a regular expression, written as ClickHouse writes it."""
    parts = _LIKE_PARTS.findall(like)
    is_open = bool(parts) and parts[-1] == "%"
    while parts and parts[-1] == "%":
        parts.pop()
    body = "".join(_LIKE_WORDS.get(part) or re.escape(part[-1]) for part in parts)
    return f"{'(?i)' if ignore_case else ''}^{body}{'' if is_open else '$'}"


def parse_modifiers(cursor: TokenCursor, star: Star) -> Star:
    """Parse EXCEPT, REPLACE and APPLY behind `star`, in any number; return the star with them.

    Raises an error for EXCEPT and REPLACE behind APPLY, which ClickHouse ignores."""
    while True:
        is_except = cursor.key == "EXCEPT" and _names_follow(cursor)
        if star.applied and (is_except or cursor.key == "REPLACE"):
            raise cursor.refused(f"{cursor.key} behind APPLY", "Write it before APPLY.")
        if is_except:
            star = _parse_except(cursor, star)
        elif cursor.take("REPLACE"):
            strict = cursor.take("STRICT")
            replaced = star.replaced + _parse_replacements(cursor)
            star = replace(star, replaced=replaced, strict=star.strict or strict)
        elif cursor.key == "APPLY" and (cursor.key_after(1) == "(" or cursor.is_name(1)):
            cursor.advance()
            star = replace(star, applied=(*star.applied, _parse_function(cursor)))
        else:
            return star


def _parse_except(cursor: TokenCursor, star: Star) -> Star:
    """Parse `EXCEPT [STRICT] (a, b)`, `EXCEPT a` or `EXCEPT('regex')`; return the star with it."""
    cursor.advance()
    strict = cursor.take("STRICT") or star.strict
    grouped = cursor.take("(")
    if cursor.token.kind == "string":
        patterns = (*star.excluded_patterns, cursor.string())
        star = replace(star, excluded_patterns=patterns, strict=strict)
    else:
        names = cursor.dotted_names("a column") if grouped else (cursor.dotted_name("a column"),)
        star = replace(star, excluded=star.excluded + names, strict=strict)
    if grouped:
        cursor.expect(")")
    return star


def _names_follow(cursor: TokenCursor) -> bool:
    """Return whether the EXCEPT that is next names columns: `* EXCEPT a`.

    It is False for the set operation, `SELECT * EXCEPT SELECT …`."""
    if cursor.key_after(1) == "(":
        return not query_follows(cursor, 1)
    if cursor.kind_after(1) == "string":
        return True
    return cursor.is_name(1) and cursor.key_after(1) not in _AFTER_SET_OPERATION


def _parse_function(cursor: TokenCursor) -> Lambda:
    """Parse `(f)`, `(f(parameters))`, `(x -> …)`, `x -> …`, `f` or `f(parameters)`, behind APPLY, as a lambda of one column."""
    position = cursor.position()
    if cursor.key_after(1) == "->":
        function = expressions.parse_expression(cursor)
        assert isinstance(function, Lambda)
        return function
    if not cursor.take("("):
        name = cursor.identifier("a function")
        parameters: tuple[Expression, ...] = ()
        if cursor.take("("):
            parameters = cursor.comma_separated(expressions.parse_expression)
            cursor.expect(")")
        return _calling(Function(name, (_PARAMETER,), parameters, position=position))
    function = expressions.parse_expression(cursor)
    if cursor.key == ",":
        raise cursor.refused("The prefix of APPLY", "ClickHouse ignores it: leave it out.")
    cursor.expect(")")
    match function:
        case Lambda(arguments=(_,)):
            return function
        case Identifier(parts=(name,)):
            return _calling(Function(name, (_PARAMETER,), position=position))
        case Identifier(parts=(database, name)):
            return _calling(Function(name, (_PARAMETER,), database=database, position=position))
        case Function(name=name, arguments=parameters, parameters=()):
            return _calling(Function(name, (_PARAMETER,), parameters, position=position))
        case _:
            raise SyntaxError(
                "APPLY takes a function or a lambda of one argument.",
                hint="Write APPLY(sum), APPLY(quantile(0.9)) or APPLY(x -> x + 1).",
                position=position,
            )


def _calling(call: Function) -> Lambda:
    """Return the lambda `x -> call`, whose argument is the call's."""
    return Lambda(_PARAMETER.parts, call, position=call.position)


def _parse_replacements(cursor: TokenCursor) -> tuple[Alias, ...]:
    """Parse what follows REPLACE: `(a AS x, …)`, or one `a AS x` without parentheses."""
    if not cursor.take("("):
        return (_parse_replacement(cursor),)
    replacements = cursor.comma_separated(_parse_replacement)
    cursor.expect(")")
    return replacements


def _parse_replacement(cursor: TokenCursor) -> Alias:
    """Parse `expression AS column`. Raises SyntaxError without an alias."""
    item = operands.parse_aliased(cursor)
    if not isinstance(item, Alias):
        raise cursor.expected("AS and the name of the column to replace")
    return item
