"""ALTER and DROP NAMED COLLECTION: there are no collections, since no statement takes one."""

from __future__ import annotations

from olapdb.errors import NamedCollectionDoesNotExist, Position
from olapdb.sql import nodes
from olapdb.sql.parser import operands
from olapdb.sql.parser.cursor import TokenCursor


def parse_named_collection(
    cursor: TokenCursor, position: Position, *, altered: bool = False
) -> nodes.Statement:
    """Parse what follows DROP or ALTER NAMED COLLECTION. There are no collections: IF EXISTS has nothing
    to do, and raise NamedCollectionDoesNotExist without it."""
    if_exists = cursor.if_exists()
    token = cursor.token
    name = cursor.identifier("a named collection")
    if altered and cursor.take("SET"):
        cursor.comma_separated(_parse_entry)
    if altered and cursor.take("DELETE"):
        cursor.comma_separated(TokenCursor.identifier)
    if if_exists:
        return nodes.SetSettings((), position=position)  # nothing to do
    if not cursor.ended and cursor.key not in (";", "PARALLEL"):
        raise cursor.expected("the end of the statement")
    raise NamedCollectionDoesNotExist(
        f"There is no named collection {name}.",
        hint="Statements write their arguments out.",
        position=cursor.position(token),
    )


def _parse_entry(cursor: TokenCursor) -> None:
    """Parse `name = value [[NOT] OVERRIDABLE]`."""
    cursor.identifier("the name of an entry")
    cursor.expect("=")
    operands.parse_operand(cursor)
    if cursor.take("NOT"):
        cursor.expect("OVERRIDABLE")
    else:
        cursor.take("OVERRIDABLE")
