"""ALTER and DROP NAMED COLLECTION: there are no collections, since no statement takes one."""

from __future__ import annotations

from olapdb.errors import NamedCollectionDoesNotExist, Position
from olapdb.sql import nodes
from olapdb.sql.parser.cursor import TokenCursor


def parse_named_collection(cursor: TokenCursor, position: Position) -> nodes.Statement:
    """Parse the name of a collection behind DROP or ALTER NAMED COLLECTION. There are no collections:
    IF EXISTS has nothing to do, and raise NamedCollectionDoesNotExist without it."""
    if_exists = cursor.if_exists()
    token = cursor.token
    name = cursor.identifier("a named collection")
    if if_exists:
        while not cursor.ended and cursor.key not in (";", "PARALLEL"):
            cursor.advance()
        return nodes.SetSettings((), position=position)  # nothing to do
    raise NamedCollectionDoesNotExist(
        f"There is no named collection {name}.",
        hint="Statements write their arguments out.",
        position=cursor.position(token),
    )
