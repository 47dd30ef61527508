"""OVER and WINDOW: what an aggregate is computed over."""

from __future__ import annotations

from typing import Literal, get_args

from olapdb.sql.nodes import Expression, FrameBound, OrderItem, WindowSpec
from olapdb.sql.parser import expressions, operands, sorting
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.precedence import COMPARE

_FrameUnit = Literal["ROWS", "RANGE", "GROUPS"]
_FRAME_UNITS: tuple[_FrameUnit, ...] = get_args(_FrameUnit)


def parse_window(cursor: TokenCursor) -> WindowSpec:
    """Parse `([base] [PARTITION BY …] [ORDER BY …] [frame])`."""
    cursor.enter()
    position = cursor.position()
    cursor.expect("(")
    base = None
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    if cursor.is_name() and cursor.key not in (*_FRAME_UNITS, "PARTITION", "ORDER"):
        base = cursor.identifier()
    if cursor.take("PARTITION", "BY"):
        partition_by = cursor.comma_separated(operands.parse_aliased)
    if cursor.take("ORDER", "BY"):
        order_by = sorting.parse_order_items(cursor)
    unit = cursor.take_one_of(*_FRAME_UNITS) or None
    start = end = None
    if unit:
        between = cursor.take("BETWEEN")
        start = _parse_frame_bound(cursor)
        if between:
            cursor.expect("AND")
            end = _parse_frame_bound(cursor)
    cursor.expect(")")
    cursor.leave()
    return WindowSpec(partition_by, order_by, unit, start, end, base, position=position)


def _parse_frame_bound(cursor: TokenCursor) -> FrameBound:
    """Parse an end of a frame; an `offset` of None means UNBOUNDED, unless CURRENT ROW."""
    position = cursor.position()
    if cursor.take("CURRENT", "ROW"):
        return FrameBound("CURRENT", position=position)
    offset = None
    if not cursor.take("UNBOUNDED"):
        offset = expressions.parse_expression(cursor, COMPARE)
    direction: Literal["PRECEDING", "FOLLOWING", ""]
    direction = cursor.take_one_of("PRECEDING", "FOLLOWING")
    if not direction:
        raise cursor.expected("PRECEDING or FOLLOWING")
    return FrameBound(direction, offset, position=position)
