"""ORDER BY, LIMIT, OFFSET and FETCH."""

from __future__ import annotations

from typing import Literal

from olapdb.errors import NotSupportedError, OffsetFetchWithoutOrderBy, Position, SyntaxError
from olapdb.records import dataclass
from olapdb.sql.nodes import Expression, Fill, LimitBy, OrderByAll, OrderItem
from olapdb.sql.parser import expressions, operands
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.limit_range import LimitRange, parse_range, range_follows

_NOT_ALL = (".", "(", ",", "+", "-", "*", "/")
"""What makes the ALL before it a column."""
_FILL_CLAUSES = {"FROM": "start", "TO": "stop", "STEP": "step", "STALENESS": "staleness"}
"""The clauses of WITH FILL in their order, and their fields."""


@dataclass
class LimitClauses:
    """The limits of one SELECT: LIMIT … BY, LIMIT, OFFSET and FETCH; None where left out."""

    limit_by: LimitBy | None = None
    limit: Expression | None = None
    offset: Expression | None = None
    with_ties: bool = False
    range: LimitRange | None = None
    fetches: bool = False


def parse_order_by(cursor: TokenCursor) -> tuple[OrderItem, ...] | OrderByAll:
    """Parse `ORDER BY a, b DESC` or `ORDER BY ALL` if it is next; () if it is not."""
    if not cursor.take("ORDER", "BY"):
        return ()
    if cursor.key == "ALL" and cursor.key_after(1) not in _NOT_ALL:
        position = cursor.position(cursor.advance())
        descending = parse_descending(cursor)
        return OrderByAll(descending, _parse_nulls_first(cursor), position=position)
    return parse_order_items(cursor)


def parse_order_items(cursor: TokenCursor) -> tuple[OrderItem, ...]:
    """Parse `a, b DESC NULLS FIRST`, behind ORDER BY."""
    return cursor.comma_separated(_parse_order_item)


def parse_interpolate(cursor: TokenCursor) -> tuple[tuple[str, Expression | None], ...] | None:
    """Parse `INTERPOLATE [(a, b AS expression, …)]` if it is next.

    None if it is not, () for all columns."""
    if not cursor.take("INTERPOLATE"):
        return None
    if not cursor.take("("):
        return ()
    items = cursor.comma_separated(_parse_interpolated)
    cursor.expect(")")
    return items


def _parse_interpolated(cursor: TokenCursor) -> tuple[str, Expression | None]:
    """Parse `column [AS expression]`."""
    name = cursor.identifier("a column")
    return name, expressions.parse_expression(cursor) if cursor.take("AS") else None


def _parse_fill(cursor: TokenCursor) -> Fill:
    """Parse `[FROM x] [TO y] [STEP z] [STALENESS s]`, in this order, behind WITH FILL."""
    position = cursor.position()
    bounds = {
        field: expressions.parse_expression(cursor)
        for word, field in _FILL_CLAUSES.items()
        if cursor.take(word)
    }
    return Fill(**bounds, position=position)


def _parse_order_item(cursor: TokenCursor) -> OrderItem:
    """Parse an item of ORDER BY; `nulls_first` is None unless NULLS FIRST or LAST is written."""
    position = cursor.position()
    expression = operands.parse_aliased(cursor)
    descending = parse_descending(cursor)
    nulls_first = _parse_nulls_first(cursor)
    collate = cursor.string("the name of a collation") if cursor.take("COLLATE") else None
    fill = _parse_fill(cursor) if cursor.take("WITH", "FILL") else None
    return OrderItem(expression, descending, nulls_first, collate, fill, position=position)


def parse_descending(cursor: TokenCursor) -> bool:
    """Step over ASC or DESC if it is next; return whether it was DESC."""
    direction = cursor.take_one_of("ASC", "ASCENDING", "DESC", "DESCENDING")
    return direction in ("DESC", "DESCENDING")


def _parse_nulls_first(cursor: TokenCursor) -> bool | None:
    """Parse `NULLS FIRST` or `NULLS LAST` if it is next; None if it is not."""
    if not cursor.take("NULLS"):
        return None
    if cursor.take("FIRST"):
        return True
    cursor.expect("LAST")
    return False


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
    if limits.range is not None:
        return limits
    if cursor.key == "OFFSET":
        position = cursor.position(cursor.advance())
        if limits.offset is not None:
            raise SyntaxError("A SELECT has one OFFSET.", position=position)
        limits.offset = expressions.parse_expression(cursor)
        cursor.take_one_of("ROW", "ROWS")
    if cursor.key == "FETCH":
        _parse_fetch(cursor, limits)
    return limits


def refuse_unordered_fetch(
    limits: LimitClauses, order_by: tuple[OrderItem, ...] | OrderByAll, position: Position | None
) -> None:
    """Raise OffsetFetchWithoutOrderBy for a FETCH in a SELECT without ORDER BY."""
    if limits.fetches and not order_by:
        raise OffsetFetchWithoutOrderBy(
            "FETCH needs ORDER BY, which says what rows are the first.", position=position
        )


def _parse_limit(cursor: TokenCursor, limits: LimitClauses) -> None:
    """Parse `LIMIT n`, `LIMIT m, n` or `LIMIT n OFFSET m`, each with BY or WITH TIES."""
    position = cursor.position(cursor.advance())
    if range_follows(cursor):
        limits.range = parse_range(cursor)
        return
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
        by: tuple[Expression, ...] | Literal["ALL"] = "ALL"
        if cursor.key != "ALL" or cursor.key_after(1) in _NOT_ALL:
            by = cursor.comma_separated(operands.parse_aliased)
        else:
            cursor.advance()
        limits.limit_by = LimitBy(count, by, offset, position=position)
        return
    if limits.limit is not None:
        raise SyntaxError(
            "A SELECT has one LIMIT.",
            hint="LIMIT n BY columns may stand before it; TOP is a LIMIT too.",
            position=position,
        )
    limits.limit, limits.offset = count, offset
    if range_follows(cursor):
        limits.range = parse_range(cursor)
        if offset is not None:
            raise NotSupportedError(
                "OFFSET is not supported together with LIMIT AFTER/UNTIL.", position=position
            )
        return
    limits.with_ties = cursor.take("WITH", "TIES")


def _parse_fetch(cursor: TokenCursor, limits: LimitClauses) -> None:
    """Parse `FETCH FIRST n ROWS ONLY | WITH TIES`."""
    position = cursor.position(cursor.advance())
    if not cursor.take_one_of("FIRST", "NEXT"):
        raise cursor.expected("FIRST or NEXT")
    if limits.limit is not None:
        raise SyntaxError("A SELECT has one LIMIT or FETCH.", position=position)
    limits.limit, limits.fetches = expressions.parse_expression(cursor), True
    if not cursor.take_one_of("ROW", "ROWS"):
        raise cursor.expected("ROWS")
    if cursor.take("WITH", "TIES"):
        limits.with_ties = True
    else:
        cursor.expect("ONLY")
