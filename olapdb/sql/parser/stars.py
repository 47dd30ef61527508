"""`*`, `t.*`, `COLUMNS('…')`, and what changes them."""

from __future__ import annotations

from olapdb.sql.nodes import Alias, Expression, Star
from olapdb.sql.parser import operands
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.lookahead import query_follows

_AFTER_SET_OPERATION = ("SELECT", "WITH", "ALL", "DISTINCT", "FROM")


def parse_columns_pattern(cursor: TokenCursor, qualifier: tuple[str, ...] = ()) -> Expression:
    """Parse `COLUMNS('regex')` and its modifiers; the word COLUMNS is next."""
    position = cursor.position(cursor.advance())
    cursor.expect("(")
    if cursor.token.kind != "string":
        raise cursor.refused("COLUMNS with a list of names", "Name the columns, or give a pattern.")
    pattern = cursor.string()
    cursor.expect(")")
    return parse_modifiers(cursor, Star(qualifier, pattern, position=position))


def parse_modifiers(cursor: TokenCursor, star: Star) -> Star:
    """Parse `EXCEPT (a, b)` and `REPLACE (x AS a)` behind `star`; return the star with them."""
    excluded: tuple[str, ...] = ()
    replaced: tuple[Alias, ...] = ()
    while True:
        if cursor.key == "EXCEPT" and _names_follow(cursor):
            cursor.advance()
            if cursor.take("("):
                excluded += cursor.dotted_names("a column")
                cursor.expect(")")
            else:
                excluded += (cursor.dotted_name("a column"),)
        elif cursor.take("REPLACE"):
            replaced += _parse_replacements(cursor)
        elif cursor.sees("APPLY", "("):
            raise cursor.refused(
                "APPLY behind *", "Name the columns and call the function on each."
            )
        else:
            break
    if not excluded and not replaced:
        return star
    return Star(star.qualifier, star.pattern, excluded, replaced, position=star.position)


def _names_follow(cursor: TokenCursor) -> bool:
    """Return whether the EXCEPT that is next names columns: `* EXCEPT a`.

    It is False for the set operation, `SELECT * EXCEPT SELECT …`. Raises an error for a pattern and
    for STRICT."""
    grouped = cursor.key_after(1) == "("
    if cursor.kind_after(2 if grouped else 1) == "string":
        raise cursor.refused("EXCEPT with a pattern", "Name the columns.")
    if grouped:
        return not query_follows(cursor, 1)
    if cursor.key_after(1) == "STRICT":
        raise cursor.refused("EXCEPT STRICT", "Leave STRICT out.")
    return cursor.is_name(1) and cursor.key_after(1) not in _AFTER_SET_OPERATION


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
