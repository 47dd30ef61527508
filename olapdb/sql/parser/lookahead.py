"""Decisions that need more than the next token, made without stepping."""

from __future__ import annotations

from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.keywords import NOT_AN_ALIAS, words

_AFTER_QUERY = words(") UNION EXCEPT INTERSECT ORDER LIMIT OFFSET FETCH SETTINGS FORMAT")
"""What may stand behind a query in parentheses that is inside other parentheses."""


def alias_follows(cursor: TokenCursor) -> bool:
    """Return whether the next token is an alias whose AS was left out."""
    token = cursor.token
    if token.kind == "name":
        return True
    if token.kind != "word" or token.key in NOT_AN_ALIAS:
        return False
    if token.key == "PARALLEL" and cursor.key_after(1) == "WITH":
        return False
    return not (token.key == "COMMENT" and cursor.kind_after(1) == "string")


def call_follows(cursor: TokenCursor, ahead: int = 0) -> bool:
    """Return whether `name(` or `a.name(` is next, or stands `ahead` tokens on."""
    if not cursor.is_name(ahead):
        return False
    step = ahead + 1
    while cursor.key_after(step) == "." and cursor.is_name(step + 1):
        step += 2
    return cursor.key_after(step) == "("


def bare_lambda_follows(cursor: TokenCursor) -> bool:
    """Return whether several names and an arrow are next, as in `x, y -> x + y`."""
    step = 0
    while cursor.is_name(step) and cursor.key_after(step + 1) == ",":
        step += 2
    return step > 0 and cursor.is_name(step) and cursor.key_after(step + 1) == "->"


def query_follows(cursor: TokenCursor, ahead: int = 0) -> bool:
    """Return whether the parenthesis `ahead` tokens on begins a query.

    `(SELECT` and `((SELECT 1) UNION …)` do, the tuple `((SELECT 1), 2)` does not.
    """
    first = cursor.at + ahead
    at = first
    while cursor.keys[at] == "(":
        at += 1
    if at == first or not _query_begins(cursor, at):
        return False
    return all(_is_query_operand(cursor, inner) for inner in range(first + 1, at))


def query_is_next(cursor: TokenCursor) -> bool:
    """Return whether a query is next, with or without parentheses."""
    return cursor.key in ("SELECT", "WITH", "FROM") or query_follows(cursor)


def _query_begins(cursor: TokenCursor, at: int) -> bool:
    """Return whether a query begins at token `at`; WITH and FROM may also be column names."""
    key = cursor.keys[at]
    if key == "SELECT":
        return True
    following = cursor.tokens[min(at + 1, len(cursor.tokens) - 1)]
    if key == "FROM":
        return following.kind in ("word", "name") or following.key == "("
    return key == "WITH" and following.kind != "end" and following.key not in (",", ")", ".")


def _is_query_operand(cursor: TokenCursor, opening: int) -> bool:
    """Return whether the parentheses at token `opening` are an operand of a set operation."""
    closing = cursor.closing(opening)
    return closing is not None and cursor.keys[closing + 1] in _AFTER_QUERY


def count_commas(cursor: TokenCursor) -> int:
    """Return how many commas come before the bracket that closes the current one.

    Commas in nested brackets are not counted. It begins at the current token."""
    commas = 0
    for _, key, depth in cursor.nesting(cursor.at):
        if depth < 0:
            break
        commas += key == "," and depth == 0
    return commas


def comes_before_comma(cursor: TokenCursor, word: str) -> bool:
    """Return whether `word` follows before the next comma or closing bracket.

    Nested brackets and the current token are not searched."""
    for _, key, depth in cursor.nesting(cursor.at + 1):
        if depth < 0 or (depth == 0 and key == ","):
            return False
        if depth == 0 and key == word:
            return True
    return False


def element_end(cursor: TokenCursor) -> int:
    """Return the number of the token that ends this list element.

    It is a comma or closing bracket that is in no bracket opened since, or the end.
    """
    for at, key, depth in cursor.nesting(cursor.at):
        if depth < 0 or (depth == 0 and key == ","):
            return at
    return len(cursor.tokens) - 1
