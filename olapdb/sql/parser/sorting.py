"""ORDER BY, LIMIT, OFFSET and FETCH."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from olapdb.errors import SyntaxError
from olapdb.sql.nodes import Expression, LimitBy, OrderItem
from olapdb.sql.parser import expressions, operands
from olapdb.sql.parser.cursor import TokenCursor

_NOT_ALL = (".", "(", ",", "+", "-", "*", "/")
"""What makes the ALL before it a column."""


@dataclass
class LimitClauses:
    """The limits of one SELECT: LIMIT … BY, LIMIT, OFFSET and FETCH; None where left out."""

    limit_by: LimitBy | None = None
    limit: Expression | None = None
    offset: Expression | None = None
    with_ties: bool = False


def parse_order_by(cursor: TokenCursor) -> tuple[OrderItem, ...] | Literal["ALL"]:
    """Parse `ORDER BY a, b DESC` or `ORDER BY ALL` if it is next; () if it is not."""
    if not cursor.take("ORDER", "BY"):
        return ()
    if cursor.key == "ALL" and cursor.key_after(1) not in _NOT_ALL:
        cursor.advance()
        if cursor.take_one_of("DESC", "DESCENDING") or cursor.key == "NULLS":
            raise cursor.refused("A direction of ORDER BY ALL", "Name the columns to sort by.")
        cursor.take_one_of("ASC", "ASCENDING")
        return "ALL"
    return parse_order_items(cursor)


def parse_order_items(cursor: TokenCursor) -> tuple[OrderItem, ...]:
    """Parse `a, b DESC NULLS FIRST`, behind ORDER BY."""
    items = cursor.comma_separated(_parse_order_item)
    if cursor.key == "INTERPOLATE":
        raise cursor.refused("INTERPOLATE", "Fill the gaps with a join on numbers().")
    return items


def _parse_order_item(cursor: TokenCursor) -> OrderItem:
    """Parse an item of ORDER BY; `nulls_first` is None unless NULLS FIRST or LAST is written.

    Raises an error for WITH FILL."""
    position = cursor.position()
    expression = operands.parse_aliased(cursor)
    descending = parse_descending(cursor)
    nulls_first: bool | None = None
    if cursor.take("NULLS"):
        nulls_first = cursor.take("FIRST")
        if not nulls_first:
            cursor.expect("LAST")
    collate = cursor.string("the name of a collation") if cursor.take("COLLATE") else None
    if cursor.sees("WITH", "FILL"):
        raise cursor.refused("ORDER BY … WITH FILL", "Fill the gaps with a join on numbers().")
    return OrderItem(expression, descending, nulls_first, collate, position=position)


def parse_descending(cursor: TokenCursor) -> bool:
    """Step over ASC or DESC if it is next; return whether it was DESC."""
    direction = cursor.take_one_of("ASC", "ASCENDING", "DESC", "DESCENDING")
    return direction in ("DESC", "DESCENDING")


# --- LIMIT


def parse_limits(
    cursor: TokenCursor, top: Expression | None = None, with_ties: bool = False
) -> LimitClauses:
    """Parse `LIMIT n [OFFSET m] BY …`, one LIMIT, OFFSET and FETCH, as far as they are next.

    `top` is the limit of `SELECT TOP n`, and `with_ties` that of its WITH TIES.
    """
    limits = LimitClauses(limit=top, with_ties=with_ties)
    while cursor.key == "LIMIT":
        _parse_limit(cursor, limits)
    if cursor.key == "OFFSET":
        position = cursor.position(cursor.advance())
        if limits.offset is not None:
            raise SyntaxError("A SELECT has one OFFSET.", position=position)
        limits.offset = expressions.parse_expression(cursor)
        cursor.take_one_of("ROW", "ROWS")
    if cursor.key == "FETCH":
        _parse_fetch(cursor, limits)
    return limits


def _parse_limit(cursor: TokenCursor, limits: LimitClauses) -> None:
    """Parse `LIMIT n`, `LIMIT m, n` or `LIMIT n OFFSET m`, each with BY or WITH TIES."""
    position = cursor.position(cursor.advance())
    count = expressions.parse_expression(cursor)
    offset = None
    if cursor.take(","):
        offset, count = count, expressions.parse_expression(cursor)
    elif cursor.take("OFFSET"):
        offset = expressions.parse_expression(cursor)
        cursor.take_one_of("ROW", "ROWS")
    if cursor.take("BY"):
        if limits.limit_by is not None or limits.limit is not None:
            raise SyntaxError("LIMIT … BY stands once, before LIMIT.", position=position)
        if cursor.key == "ALL":
            raise cursor.refused("LIMIT BY ALL", "Name the columns.")
        by = cursor.comma_separated(operands.parse_aliased)
        limits.limit_by = LimitBy(count, by, offset, position=position)
        return
    if limits.limit is not None:
        raise SyntaxError(
            "A SELECT has one LIMIT.",
            hint="LIMIT n BY columns may stand before it; TOP is a LIMIT too.",
            position=position,
        )
    limits.limit, limits.offset = count, offset
    limits.with_ties = cursor.take("WITH", "TIES")


def _parse_fetch(cursor: TokenCursor, limits: LimitClauses) -> None:
    """Parse `FETCH FIRST n ROWS ONLY | WITH TIES`."""
    position = cursor.position(cursor.advance())
    if not cursor.take_one_of("FIRST", "NEXT"):
        raise cursor.expected("FIRST or NEXT")
    if limits.limit is not None:
        raise SyntaxError("A SELECT has one LIMIT or FETCH.", position=position)
    limits.limit = expressions.parse_expression(cursor)
    if not cursor.take_one_of("ROW", "ROWS"):
        raise cursor.expected("ROWS")
    if cursor.take("WITH", "TIES"):
        limits.with_ties = True
    else:
        cursor.expect("ONLY")
