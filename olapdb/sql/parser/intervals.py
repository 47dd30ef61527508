"""INTERVAL with its forms: an operand with a unit, a text with units, a text with a range of units."""

from __future__ import annotations

import re

from olapdb.errors import Position
from olapdb.sql import nodes
from olapdb.sql.parser import expressions
from olapdb.sql.parser.cursor import TokenCursor, whole_number
from olapdb.sql.parser.keywords import DIRECTIONS, INTERVAL_UNITS, NOT_AN_ALIAS, RESERVED_OPERANDS
from olapdb.sql.parser.precedence import LAMBDA
from olapdb.sql.tokens import Token

_RANGES = {
    ("Year", "Month"): r"([0-9]+)-([0-9]+)",
    ("Day", "Hour"): r"([0-9]+) ([0-9]+)",
    ("Day", "Minute"): r"([0-9]+) ([0-9]+):([0-9]+)",
    ("Day", "Second"): r"([0-9]+) ([0-9]+):([0-9]+):([0-9]+)",
    ("Hour", "Minute"): r"([0-9]+):([0-9]+)",
    ("Hour", "Second"): r"([0-9]+):([0-9]+):([0-9]+)",
    ("Minute", "Second"): r"([0-9]+):([0-9]+)",
}
"""The numbers in the text of `INTERVAL '…' first TO last`, by its units."""
_UNITS_OF_RANGES = ("Year", "Month", "Day", "Hour", "Minute", "Second")
_LARGEST = {"Month": 11, "Hour": 23, "Minute": 59, "Second": 59}
"""The largest number of a unit that is not the first of its range."""


_BEGINS_OPERAND = ("(", "-", "+", "?", ":", "{", "%")


def parse_interval(cursor: TokenCursor, token: Token) -> nodes.Expression | None:
    """Parse INTERVAL with an operand and a unit, a text of units, or a text with a range of units.

    Several units make a tuple of intervals.

    If INTERVAL is the name of a column here, return None and leave the cursor where it is."""
    start = cursor.at
    cursor.advance()
    first = cursor.token
    if first.kind == "string" and cursor.key_after(1) not in INTERVAL_UNITS:
        return _parse_text(cursor, token)
    if first.kind == "string" and cursor.key_after(2) == "TO":
        return _parse_range(cursor, token)
    if _begins_operand(cursor):
        amount = expressions.parse_expression(cursor, LAMBDA)
        unit = INTERVAL_UNITS.get(cursor.key)
        if unit is not None:
            if isinstance(amount, nodes.Literal) and not _is_amount(amount.value):
                raise cursor.expected(f"a number for INTERVAL, not {amount.value!r},")
            cursor.advance()
            return nodes.IntervalLiteral(amount, unit, position=cursor.position(token))
    # a column of that name, as in `interval - 1`
    cursor.move_to(start)
    return None


def _is_amount(value: object) -> bool:
    """Return whether a literal may be the amount of an interval: any but a text that does not begin as a number."""
    return not isinstance(value, str) or re.match(r"\s*[-+]?\.?[0-9]", value) is not None


def _begins_operand(cursor: TokenCursor) -> bool:
    """Return whether the next token begins an operand."""
    token = cursor.token
    if token.kind == "operator":
        return token.key in _BEGINS_OPERAND
    if token.kind == "end" or token.key in RESERVED_OPERANDS:
        return False
    is_operand = token.key not in NOT_AN_ALIAS and token.key not in DIRECTIONS
    return is_operand or cursor.key_after(1) == "("


def _parse_text(cursor: TokenCursor, token: Token) -> nodes.Expression:
    """Parse the string of `INTERVAL '1 day'`, or of several numbers each with its unit."""
    parts = cursor.token.text.split()
    position = cursor.position(token)
    intervals: list[nodes.Expression] = []
    for amount_text, unit_text in zip(parts[::2], parts[1::2], strict=False):
        unit = INTERVAL_UNITS.get(unit_text.upper())
        number = _truncated(amount_text)
        if unit is None or number is None:
            raise cursor.expected("an interval such as '1 day'")
        amount = nodes.Literal(number, str(number), position=position)
        intervals.append(nodes.IntervalLiteral(amount, unit, position=position))
    if not intervals or len(parts) % 2:
        raise cursor.expected("an interval such as '1 day' or '1 day 2 hours'")
    cursor.advance()
    return _together(intervals, position)


def _truncated(text: str) -> int | None:
    """Return the number without its fraction; None for other texts and beyond 64 bits."""
    parts = re.fullmatch(r"([-+]?)([0-9]+)(\.[0-9]*)?", text)
    magnitude = whole_number(parts[2]) if parts else None
    if parts is None or magnitude is None or magnitude >> 64:
        return None
    return -magnitude if parts[1] == "-" else magnitude


def _parse_range(cursor: TokenCursor, token: Token) -> nodes.Expression:
    """Parse `'1-2' YEAR TO MONTH` behind INTERVAL: a number for each unit from the first to the last.

    A sign belongs to all of them."""
    text = cursor.token.text.strip()
    position = cursor.position(token)
    cursor.advance()
    first = INTERVAL_UNITS[cursor.advance().key]
    cursor.expect("TO")
    last = INTERVAL_UNITS.get(cursor.key, "")
    pattern = _RANGES.get((first, last))
    if pattern is None:
        raise cursor.expected("a smaller unit, as in INTERVAL '1-2' YEAR TO MONTH")
    parts = re.fullmatch(f"([-+]?){pattern}", text)
    if parts is None:
        raise cursor.expected(f"a text such as '1-2' or '1 2:03:04', not {text!r},")
    start = _UNITS_OF_RANGES.index(first)
    units = _UNITS_OF_RANGES[start : _UNITS_OF_RANGES.index(last) + 1]
    numbers = [number for part in parts.groups()[1:] if (number := _truncated(part)) is not None]
    if len(numbers) < len(units):
        raise cursor.expected(f"numbers of 64 bits in {text!r}")
    for unit, number in list(zip(units, numbers, strict=True))[1:]:
        if number > _LARGEST[unit]:
            raise cursor.expected(f"at most {_LARGEST[unit]} {unit.lower()}s in {text!r}")
    cursor.advance()
    sign = -1 if parts[1] == "-" else 1
    return _together(
        [
            nodes.IntervalLiteral(
                nodes.Literal(sign * number, str(sign * number), position=position),
                unit,
                position=position,
            )
            for unit, number in zip(units, numbers, strict=True)
        ],
        position,
    )


def _together(intervals: list[nodes.Expression], position: Position | None) -> nodes.Expression:
    """Return one interval as it is, several as a tuple."""
    if len(intervals) == 1:
        return intervals[0]
    return nodes.Function("tuple", tuple(intervals), position=position)
