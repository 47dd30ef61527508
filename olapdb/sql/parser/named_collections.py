"""CREATE, ALTER and DROP NAMED COLLECTION."""

from __future__ import annotations

from olapdb.errors import Position, SyntaxError
from olapdb.sql import nodes
from olapdb.sql.parser import clauses, operands
from olapdb.sql.parser.cursor import TokenCursor


def parse_create_collection(cursor: TokenCursor, position: Position) -> nodes.Statement:
    """Parse `[IF NOT EXISTS] name AS key = value [[NOT] OVERRIDABLE], …` behind CREATE NAMED COLLECTION."""
    if_not_exists = cursor.if_not_exists()
    name = cursor.identifier("a named collection")
    clauses.refuse_on_cluster(cursor)
    cursor.expect("AS")
    items = tuple(cursor.comma_separated(_parse_item))
    return nodes.CreateNamedCollection(name, items, if_not_exists, position=position)


def parse_alter_collection(cursor: TokenCursor, position: Position) -> nodes.Statement:
    """Parse `[IF EXISTS] name [SET key = value, …] [DELETE key, …]` behind ALTER NAMED COLLECTION."""
    if_exists = cursor.if_exists()
    name = cursor.identifier("a named collection")
    clauses.refuse_on_cluster(cursor)
    items = tuple(cursor.comma_separated(_parse_item)) if cursor.take("SET") else ()
    deleted: tuple[str, ...] = ()
    if cursor.take("DELETE"):
        deleted = tuple(cursor.comma_separated(lambda keys: keys.identifier("a key")))
    return nodes.AlterNamedCollection(name, items, deleted, if_exists, position=position)


def parse_drop_collection(cursor: TokenCursor, position: Position) -> nodes.Statement:
    """Parse `[IF EXISTS] name` behind DROP NAMED COLLECTION."""
    if_exists = cursor.if_exists()
    name = cursor.identifier("a named collection")
    clauses.refuse_on_cluster(cursor)
    return nodes.DropNamedCollection(name, if_exists, position=position)


def _parse_item(cursor: TokenCursor) -> nodes.CollectionItem:
    """Parse `key = value [[NOT] OVERRIDABLE]`. Raise SyntaxError for a value that is no literal."""
    position = cursor.position()
    key = cursor.identifier("a key")
    cursor.expect("=")
    value = operands.parse_operand(cursor)
    if not isinstance(value, nodes.Literal):
        raise SyntaxError(
            f"The value of {key} is no text or number.",
            hint="Write key = 'value'.",
            position=value.position,
        )
    overridable = None
    if cursor.take("NOT"):
        cursor.expect("OVERRIDABLE")
        overridable = False
    elif cursor.take("OVERRIDABLE"):
        overridable = True
    return nodes.CollectionItem(key, str(value.value), overridable, position=position)
