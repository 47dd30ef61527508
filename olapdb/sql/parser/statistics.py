"""STATISTICS of columns: in a column's definition, and as actions of ALTER."""

from __future__ import annotations

from typing import Literal

from olapdb.errors import Position
from olapdb.sql import nodes
from olapdb.sql.parser.cursor import TokenCursor

_TYPES = ("BASIC", "COUNTMIN", "MINMAX", "TDIGEST", "UNIQ", "UNIQ_V2")
Verb = Literal["ADD", "MODIFY", "DROP", "CLEAR", "MATERIALIZE"]


def parse_column_statistics(cursor: TokenCursor) -> tuple[str, ...]:
    """Parse `(tdigest, uniq)` behind STATISTICS of a column."""
    cursor.expect("(")
    types = cursor.comma_separated(_parse_type)
    cursor.expect(")")
    return types


def _parse_type(cursor: TokenCursor) -> str:
    """Parse the name of a type of statistics."""
    return cursor.identifier("a type of statistics")


def parse_statistics_action(
    cursor: TokenCursor, verb: Verb, position: Position
) -> nodes.StatisticsAction:
    """Parse `[IF [NOT] EXISTS] a, b TYPE t, u`, or `[IF EXISTS] a, b | ALL` for the verbs without
    types, behind STATISTICS."""
    has_types = verb in ("ADD", "MODIFY")
    conditional = cursor.if_not_exists() if has_types else cursor.if_exists()
    columns = [cursor.identifier("a column")]
    while cursor.key == "," and _is_last_of_list(cursor, has_types):
        cursor.advance()
        columns.append(cursor.identifier("a column"))
    types: list[str] = []
    if has_types:
        cursor.expect("TYPE")
        types.append(_parse_type(cursor))
        while cursor.key == "," and cursor.key_after(1) in _TYPES:
            cursor.advance()
            types.append(_parse_type(cursor))
    return nodes.StatisticsAction(
        verb, tuple(columns), tuple(types), conditional, position=position
    )


def _is_last_of_list(cursor: TokenCursor, has_types: bool) -> bool:
    """Return whether the comma that is next separates columns, not actions."""
    following = cursor.key_after(2)
    return following in (",", "TYPE") if has_types else following in (",", "", ";", "SETTINGS")
