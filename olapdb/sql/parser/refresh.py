"""The REFRESH clause of CREATE MATERIALIZED VIEW and of ALTER TABLE … MODIFY REFRESH."""

from __future__ import annotations

from typing import Literal

from olapdb.sql.nodes import RefreshClause, TableName
from olapdb.sql.nodes.refresh import Periods
from olapdb.sql.parser import clauses
from olapdb.sql.parser.cursor import TokenCursor
from olapdb.sql.parser.keywords import INTERVAL_UNITS

_KINDS: tuple[Literal["EVERY", "AFTER"], ...] = ("EVERY", "AFTER")
_UNITS = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR")


def parse_refresh(cursor: TokenCursor) -> RefreshClause:
    """Parse a clause that begins with REFRESH."""
    position = cursor.position()
    cursor.expect("REFRESH")
    kind = cursor.take_one_of(*_KINDS)
    if cursor.key == "DEPENDS" and not kind:
        raise cursor.refused("REFRESH DEPENDS ON alone", "Write REFRESH EVERY … DEPENDS ON ….")
    if not kind:
        raise cursor.expected("EVERY or AFTER")
    period = _parse_periods(cursor)
    offset = _parse_periods(cursor) if cursor.take("OFFSET") else ()
    randomize = _parse_periods(cursor) if cursor.take("RANDOMIZE", "FOR") else ()
    depends_on: tuple[TableName, ...] = ()
    if cursor.take("DEPENDS", "ON"):
        depends_on = cursor.comma_separated(TokenCursor.table_name)
    settings = clauses.parse_settings_clause(cursor)
    append = cursor.take("APPEND")
    if append and cursor.key == "INCREMENTAL":
        raise cursor.refused(
            "REFRESH … APPEND INCREMENTAL",
            "A view without REFRESH does it: it reads each inserted block once, in its commit.",
        )
    return RefreshClause(
        kind, period, offset, randomize, depends_on, settings, append, position=position
    )


def _parse_periods(cursor: TokenCursor) -> Periods:
    """Parse one or more of `number UNIT`."""
    periods = [_parse_period(cursor)]
    while cursor.token.kind == "number":
        periods.append(_parse_period(cursor))
    return tuple(periods)


def _parse_period(cursor: TokenCursor) -> tuple[int, str]:
    """Parse `number UNIT`."""
    count = cursor.integer("a whole number of time units")
    unit = INTERVAL_UNITS.get(cursor.key, "").upper()
    if unit == "QUARTER":
        cursor.advance()
        return 3 * count, "MONTH"
    if unit not in _UNITS:
        raise cursor.expected(f"a unit of time: {', '.join(_UNITS)}")
    cursor.advance()
    return count, unit
