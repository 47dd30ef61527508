"""CREATE, ALTER and DROP NAMED COLLECTION."""

from __future__ import annotations

from olapdb.records import dataclass
from olapdb.sql.nodes.base import Node, Statement


@dataclass(frozen=True, slots=True)
class CollectionItem(Node):
    """`key = value [[NOT] OVERRIDABLE]`; `overridable` is None where neither was written."""

    key: str
    value: str
    overridable: bool | None = None


@dataclass(frozen=True, slots=True)
class CreateNamedCollection(Statement):
    """CREATE NAMED COLLECTION [IF NOT EXISTS] `name` AS `items`."""

    name: str
    items: tuple[CollectionItem, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterNamedCollection(Statement):
    """ALTER NAMED COLLECTION [IF EXISTS] `name` [SET `items`] [DELETE `deleted`]."""

    name: str
    items: tuple[CollectionItem, ...] = ()
    deleted: tuple[str, ...] = ()
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropNamedCollection(Statement):
    """DROP NAMED COLLECTION [IF EXISTS] `name`."""

    name: str
    if_exists: bool = False
