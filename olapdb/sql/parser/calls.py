"""Calls of functions, and the few that have a syntax of their own: CASE, CAST, EXTRACT, …"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from olapdb.errors import Position, SyntaxError
from olapdb.sql import nodes
from olapdb.sql.parser import expressions, operands, queries, stars, type_names, windows
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.intervals import parse_interval
from olapdb.sql.parser.keywords import INTERVAL_UNITS, words
from olapdb.sql.parser.lookahead import bare_lambda_follows, count_commas, query_follows
from olapdb.sql.parser.precedence import COMPARE, NOT
from olapdb.sql.tokens import Token

NullTreatment = Literal["RESPECT", "IGNORE"]
SpecialForm: TypeAlias = Callable[[TokenCursor, Token], nodes.Expression | None]

_EXTRACTED = {
    "Second": "toSecond",
    "Minute": "toMinute",
    "Hour": "toHour",
    "Day": "toDayOfMonth",
    "Week": "toISOWeek",
    "Month": "toMonth",
    "Quarter": "toQuarter",
    "Year": "toYear",
    "Millisecond": "toMillisecond",
    "Microsecond": "toMicrosecond",
    "Nanosecond": "toNanosecond",
}
_EXTRACTED_DAYS = {
    "DOY": "toDayOfYear",
    "ISODOW": "toDayOfWeek",
    "ISOYEAR": "toISOYear",
    "EPOCH": "toUnixTimestamp",
}
_EXTRACTED_YEARS = {"DECADE": 10, "CENTURY": 100, "MILLENNIUM": 1000}
"""The parts that are many years: 2001 begins a century, 2000 a decade."""
_DATE_ARITHMETIC = {
    "DATE_ADD": "plus",
    "DATEADD": "plus",
    "TIMESTAMP_ADD": "plus",
    "TIMESTAMPADD": "plus",
    "DATE_SUB": "minus",
    "DATESUB": "minus",
    "TIMESTAMP_SUB": "minus",
    "TIMESTAMPSUB": "minus",
}
_DATE_DIFFERENCE = words("DATE_DIFF DATEDIFF TIMESTAMP_DIFF TIMESTAMPDIFF")
_TRIMMED = {"BOTH": "trimBoth", "LEADING": "trimLeft", "TRAILING": "trimRight"}
_SHORT_TRIM = {"TRIM": "trimBoth", "LTRIM": "trimLeft", "RTRIM": "trimRight"}


def parse_special_form(cursor: TokenCursor, token: Token) -> nodes.Expression | None:
    """Parse CASE, INTERVAL, CAST( and the like, if `token` begins one of them.

    Otherwise return None and leave the cursor where it is."""
    parse = _OPERANDS.get(token.key)
    if parse is None and cursor.key_after(1) == "(":
        parse = _CALLS.get(token.key)
    return None if parse is None else parse(cursor, token)


# --- operands that are no calls


def _parse_not(cursor: TokenCursor, token: Token) -> nodes.Expression | None:
    """Parse `NOT operand`; None if NOT is the name of a column here."""
    if cursor.kind_after(1) == "end" or cursor.key_after(1) in (",", ")", "."):
        return None  # a column of that name
    cursor.advance()
    operand = expressions.parse_expression(cursor, NOT)
    return nodes.Function("not", (operand,), position=cursor.position(token))


def _parse_case(cursor: TokenCursor, token: Token) -> nodes.Expression | None:
    """Parse CASE … END into multiIf, or caseWithExpression if an operand follows CASE.

    None if CASE is the name of a column here. Without ELSE the last argument is NULL."""
    if cursor.kind_after(1) == "end" or cursor.key_after(1) in (",", ")", ".", "FROM"):
        return None  # a column of that name
    cursor.advance()
    arguments: list[nodes.Expression] = []
    name = "multiIf"
    if cursor.key != "WHEN":
        name = "caseWithExpression"
        arguments.append(expressions.parse_expression(cursor))
    if cursor.key != "WHEN":
        raise cursor.expected("WHEN")
    while cursor.take("WHEN"):
        arguments.append(expressions.parse_expression(cursor))
        cursor.expect("THEN")
        arguments.append(operands.parse_aliased(cursor))
    has_else = cursor.take("ELSE")
    arguments.append(operands.parse_aliased(cursor) if has_else else nodes.Literal(None))
    cursor.expect("END")
    return nodes.Function(name, tuple(arguments), position=cursor.position(token))


def _parse_typed_string(cursor: TokenCursor, token: Token) -> nodes.Function | None:
    """Parse `DATE '2024-01-01'`, `TIMESTAMP '…'`; None if no string follows."""
    if cursor.kind_after(1) != "string":
        return None
    cursor.advance()
    position = cursor.position(token)
    name = "toDate" if token.key == "DATE" else "toDateTime"
    value = nodes.Literal(cursor.string(), position=position)
    return nodes.Function(name, (value,), position=position)


def _parse_exists(cursor: TokenCursor, token: Token) -> nodes.Exists | None:
    """Parse `EXISTS (query)`; None if no query in parentheses follows."""
    if not query_follows(cursor, 1):
        return None
    cursor.advance()
    return nodes.Exists(queries.parse_in_parentheses(cursor), position=cursor.position(token))


# --- calls with a syntax of their own; the cursor is at the name


def _parse_cast(cursor: TokenCursor, token: Token) -> nodes.Expression:
    """Parse `CAST(x AS T)` and `CAST(x, 'T')`. If the type is not a literal, return a call."""
    cursor.skip(2)
    value = expressions.parse_expression(cursor)
    if not cursor.take("AS"):
        return _parse_cast_to_text(cursor, value, token)
    if cursor.key_after(1) in ("AS", ","):
        value = nodes.Alias(value, cursor.identifier("an alias"), position=value.position)
        if not cursor.take("AS"):
            return _parse_cast_to_text(cursor, value, token)
    start = cursor.at
    data_type = type_names.parse_data_type(cursor)
    written = type_names.written_type(cursor.text_since(start))
    cursor.expect(")")
    return nodes.Cast(value, data_type, written, position=cursor.position(token))


def _parse_cast_to_text(
    cursor: TokenCursor, value: nodes.Expression, token: Token
) -> nodes.Expression:
    """Parse `, 'T')` behind the value of a CAST."""
    position = cursor.position(token)
    cursor.expect(",")
    if cursor.token.kind == "string" and cursor.key_after(1) == ")":
        start = cursor.at
        text = cursor.string()
        data_type = type_names.type_of_text(cursor, text, start)
        cursor.expect(")")
        return nodes.Cast(value, data_type, text, position=position)
    target = expressions.parse_expression(cursor)
    cursor.expect(")")
    return nodes.Function(token.text, (value, target), position=position)


def _parse_extract(cursor: TokenCursor, token: Token) -> nodes.Function | None:
    """Parse `EXTRACT(YEAR FROM d)`; None where it is a plain call."""
    if cursor.key_after(3) != "FROM":
        return None
    cursor.skip(2)
    position = cursor.position(token)
    part = cursor.advance()
    cursor.expect("FROM")
    value = expressions.parse_expression(cursor)
    cursor.expect(")")
    name = _EXTRACTED.get(INTERVAL_UNITS.get(part.key, "")) or _EXTRACTED_DAYS.get(part.key)
    if name is not None:
        return nodes.Function(name, (value,), position=position)
    if part.key == "DOW":
        sunday_first = nodes.Literal(2, "2", position=position)
        return nodes.Function("toDayOfWeek", (value, sunday_first), position=position)
    if part.key in _EXTRACTED_YEARS:
        return _years(value, _EXTRACTED_YEARS[part.key], position)
    raise SyntaxError(
        f"EXTRACT has no part {part.text}.",
        hint="Take YEAR, QUARTER, MONTH, WEEK, DAY, DOW, DOY, HOUR, MINUTE, SECOND, DECADE, CENTURY.",
        position=cursor.position(part),
    )


def _years(value: nodes.Expression, count: int, position: Position) -> nodes.Function:
    """Return the number of a date's decade, or of the century or millennium, the first of which is 1."""

    def call(name: str, argument: nodes.Expression, number: int) -> nodes.Function:
        """Return the call `name(argument, number)`."""
        return nodes.Function(
            name, (argument, nodes.Literal(number, str(number))), position=position
        )

    year = nodes.Function("__toYearCalendarOnly", (value,), position=position)
    if count == 10:
        return call("intDiv", year, count)
    return call("plus", call("intDiv", call("minus", year, 1), count), 1)


def _parse_substring(cursor: TokenCursor, token: Token) -> nodes.Function:
    """Parse `substring(x, a, b)` or `SUBSTRING(x FROM a FOR b)`."""
    cursor.skip(2)
    arguments = [operands.parse_aliased(cursor)]
    if token.key != "SUBSTR" and cursor.take("FROM"):
        arguments.append(expressions.parse_expression(cursor))
        if cursor.take("FOR"):
            arguments.append(expressions.parse_expression(cursor))
    elif cursor.key == ")" and token.key == "SUBSTRING":
        raise cursor.expected("FROM or a comma")
    while cursor.take(","):
        arguments.append(operands.parse_aliased(cursor))
    cursor.expect(")")
    name = "substring" if token.key == "SUBSTRING" else token.text
    return nodes.Function(name, tuple(arguments), position=cursor.position(token))


def _parse_trim(cursor: TokenCursor, token: Token) -> nodes.Function:
    """Parse `TRIM(BOTH 'x' FROM y)`, `trim(y)`, `trim(y, 'x')`."""
    cursor.skip(2)
    position = cursor.position(token)
    side = ""
    if token.key == "TRIM" and cursor.key_after(1) != ")":
        side = cursor.take_one_of(*_TRIMMED)
    if not side:
        if cursor.key == ")":
            raise cursor.expected("a text")
        arguments = operands.parse_list_until(cursor, ")")
        return nodes.Function(_SHORT_TRIM[token.key], arguments, position=position)
    characters = () if cursor.key == "FROM" else (expressions.parse_expression(cursor),)
    cursor.expect("FROM")
    value = expressions.parse_expression(cursor)
    cursor.expect(")")
    return nodes.Function(_TRIMMED[side], (value, *characters), position=position)


def _parse_position(cursor: TokenCursor, token: Token) -> nodes.Function:
    """Parse `POSITION(needle IN haystack)` or `position(haystack, needle)`."""
    cursor.skip(2)
    first = expressions.parse_expression(cursor, COMPARE)
    if cursor.take("IN"):
        haystack = expressions.parse_expression(cursor)
        cursor.expect(")")
        return nodes.Function("position", (haystack, first), position=cursor.position(token))
    cursor.expect(",")
    rest = operands.parse_list_until(cursor, ")")
    return nodes.Function(token.text, (first, *rest), position=cursor.position(token))


def _parse_overlay(cursor: TokenCursor, token: Token) -> nodes.Function:
    """Parse `OVERLAY(text PLACING other FROM start [FOR length])` or `overlay(text, other, …)`."""
    cursor.skip(2)
    position = cursor.position(token)
    arguments = [expressions.parse_expression(cursor)]
    if not cursor.take("PLACING"):
        cursor.expect(",")
        arguments += operands.parse_list_until(cursor, ")")
        return nodes.Function(token.text, tuple(arguments), position=position)
    arguments.append(expressions.parse_expression(cursor))
    cursor.expect("FROM")
    arguments.append(expressions.parse_expression(cursor))
    if cursor.take("FOR"):
        arguments.append(expressions.parse_expression(cursor))
    cursor.expect(")")
    return nodes.Function("overlay", tuple(arguments), position=position)


def _parse_date_arithmetic(cursor: TokenCursor, token: Token) -> nodes.Function:
    """Parse DATE_ADD, DATE_SUB or a synonym as `plus` or `minus` of a time and an interval.

    `DATE_ADD(DAY, 1, d)` and `DATE_ADD(d, INTERVAL 1 DAY)` both become `d + INTERVAL 1 DAY`."""
    cursor.skip(2)
    position = cursor.position(token)
    unit = INTERVAL_UNITS.get(cursor.key)
    # `d` may be a unit or a column: the form with a unit has three arguments
    has_unit = unit is not None and cursor.key_after(1) == "," and count_commas(cursor) == 2
    if has_unit:
        cursor.skip(2)
    arguments = operands.parse_list_until(cursor, ")")
    if has_unit and unit is not None:
        count, time = arguments
        arguments = (time, nodes.IntervalLiteral(count, unit, position=position))
    return nodes.Function(_DATE_ARITHMETIC[token.key], arguments, position=position)


def _parse_date_difference(cursor: TokenCursor, token: Token) -> nodes.Function:
    """Parse `DATEDIFF(DAY, a, b)` and `dateDiff('day', a, b[, zone])`."""
    cursor.skip(2)
    unit = INTERVAL_UNITS.get(cursor.key)
    if unit is None or cursor.key_after(1) != ",":
        arguments = operands.parse_list_until(cursor, ")")
        return nodes.Function("dateDiff", arguments, position=cursor.position(token))
    first = nodes.Literal(unit.lower(), position=cursor.position(cursor.advance()))
    cursor.expect(",")
    rest = operands.parse_list_until(cursor, ")")
    return nodes.Function("dateDiff", (first, *rest), position=cursor.position(token))


def _parse_columns(cursor: TokenCursor, token: Token) -> nodes.Expression:
    """Parse `COLUMNS('pattern')`."""
    return stars.parse_columns_pattern(cursor)


# --- plain calls


_COUNTS_ROWS = re.compile(r"(?i:count)(If|OrNull|OrDefault|State|Resample|ArgMin|ArgMax)+")
"""Counts with combinators that take no column of their own, so that `*` stands for none: countIf(*, x)."""


def parse_call(cursor: TokenCursor, token: Token) -> nodes.Function:
    """Parse `f(x)`, `f(p)(x)` or `f(DISTINCT x) FILTER (…) OVER (…)` behind the name `token`."""
    name, position = token.text, cursor.position(token)
    distinct, arguments, nulls = parse_arguments(cursor)
    parameters: tuple[nodes.Expression, ...] = ()
    if cursor.key == "(":
        parameters = arguments
        distinct, arguments, nulls = parse_arguments(cursor)
    star = False
    if not distinct and (name.lower() == "count" or _COUNTS_ROWS.fullmatch(name)):
        star = nodes.Star() in arguments
        arguments = tuple(argument for argument in arguments if argument != nodes.Star())
    nulls = _parse_nulls(cursor) or nulls
    condition = None
    if cursor.key == "FILTER" and cursor.key_after(1) == "(":
        cursor.skip(2)
        cursor.expect("WHERE")
        condition = operands.parse_aliased(cursor)
        cursor.expect(")")
    over: nodes.WindowSpec | str | None = None
    if cursor.take("OVER"):
        over_window = cursor.key == "("
        over = windows.parse_window(cursor) if over_window else cursor.identifier("a window")
    return nodes.Function(
        name, arguments, parameters, distinct, condition, over, nulls, star=star, position=position
    )


def parse_arguments(
    cursor: TokenCursor,
) -> tuple[bool, tuple[nodes.Expression, ...], NullTreatment | None]:
    """Parse `([DISTINCT] a, b [RESPECT | IGNORE NULLS])`, from the opening parenthesis on.

    Returns whether DISTINCT is written, the arguments, and the treatment of NULLs, None if none is
    written. A query as an argument needs no parentheses of its own."""
    cursor.expect("(")
    if cursor.key == "ALL" and cursor.key_after(1) not in (*_PLAIN_NAME_ENDS, "("):
        cursor.advance()  # the opposite of DISTINCT, and the default
    distinct = cursor.key == "DISTINCT" and cursor.key_after(1) not in _PLAIN_NAME_ENDS
    if distinct:
        cursor.advance()
    arguments: list[nodes.Expression] = []
    nulls: NullTreatment | None = None
    while not cursor.take(")"):
        if arguments:
            cursor.expect(",")
        if cursor.key == "SELECT" or (cursor.key == "WITH" and cursor.is_name(1)):
            position = cursor.position()
            arguments.append(nodes.Subquery(queries.parse_query(cursor), position=position))
        elif not arguments and bare_lambda_follows(cursor):
            arguments.append(_parse_bare_lambda(cursor))
        else:
            arguments.append(operands.parse_aliased(cursor))
        nulls = _parse_nulls(cursor) or nulls
        if cursor.sees("ORDER", "BY"):
            raise cursor.refused("ORDER BY inside a call", "Sort with arraySort, or in a subquery.")
    return distinct, tuple(arguments), nulls


def _parse_bare_lambda(cursor: TokenCursor) -> nodes.Lambda:
    """Parse `x, y -> body`, a lambda whose arguments stand without parentheses."""
    names = [cursor.identifier("the name of an argument")]
    while cursor.take(","):
        names.append(cursor.identifier("the name of an argument"))
    position = cursor.position()
    cursor.expect("->")
    return nodes.Lambda(tuple(names), expressions.parse_expression(cursor), position=position)


def _parse_nulls(cursor: TokenCursor) -> NullTreatment | None:
    """Parse `RESPECT NULLS` or `IGNORE NULLS`; None if neither is next."""
    if cursor.key_after(1) != "NULLS":
        return None
    treatment: NullTreatment | Literal[""] = cursor.take_one_of("RESPECT", "IGNORE")
    if treatment:
        cursor.advance()
    return treatment or None


_OPERANDS: dict[str, SpecialForm] = {
    "NOT": _parse_not,
    "CASE": _parse_case,
    "INTERVAL": parse_interval,
    "DATE": _parse_typed_string,
    "TIMESTAMP": _parse_typed_string,
    "EXISTS": _parse_exists,
}
_PLAIN_NAME_ENDS = (",", ")", ".")
"""What stands behind DISTINCT or ALL where it is a column's name."""
_CALLS: dict[str, SpecialForm] = {
    "CAST": _parse_cast,
    "EXTRACT": _parse_extract,
    "SUBSTRING": _parse_substring,
    "SUBSTR": _parse_substring,
    "TRIM": _parse_trim,
    "LTRIM": _parse_trim,
    "RTRIM": _parse_trim,
    "POSITION": _parse_position,
    "OVERLAY": _parse_overlay,
    "COLUMNS": _parse_columns,
    **dict.fromkeys(_DATE_ARITHMETIC, _parse_date_arithmetic),
    **dict.fromkeys(_DATE_DIFFERENCE, _parse_date_difference),
}
