"""ALTER: one statement of several actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Lit

from olapdb.sql.nodes.base import Expression, Node, Query, Setting, Statement, TableName
from olapdb.sql.nodes.definitions import (
    ColumnDefinition,
    ConstraintDefinition,
    IndexDefinition,
    TtlItem,
)
from olapdb.sql.nodes.expressions import OrderItem


@dataclass(frozen=True, slots=True)
class PartitionReference(Node):
    """`PARTITION expr` (value), `PARTITION ID 'x'` (id), `PARTITION ALL`, `PART 'name'`."""

    kind: Lit["VALUE", "ID", "ALL", "PART"]
    value: Expression | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class AlterAction(Node):
    pass


@dataclass(frozen=True, slots=True)
class AddColumn(AlterAction):
    column: ColumnDefinition
    if_not_exists: bool = False
    first: bool = False
    after: str | None = None


@dataclass(frozen=True, slots=True)
class DropColumn(AlterAction):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ClearColumn(AlterAction):
    name: str
    partition: PartitionReference | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn(AlterAction):
    name: str
    new_name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ModifyColumn(AlterAction):
    column: ColumnDefinition
    if_exists: bool = False
    remove: str | None = None
    first: bool = False
    after: str | None = None


@dataclass(frozen=True, slots=True)
class CommentColumn(AlterAction):
    name: str
    comment: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ModifyComment(AlterAction):
    comment: str


@dataclass(frozen=True, slots=True)
class ModifyQuery(AlterAction):
    query: Query


@dataclass(frozen=True, slots=True)
class ModifySetting(AlterAction):
    settings: tuple[Setting, ...] = ()
    reset: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModifyTtl(AlterAction):
    """`ttl` empty: REMOVE TTL."""

    ttl: tuple[TtlItem, ...]


@dataclass(frozen=True, slots=True)
class MaterializeTtl(AlterAction):
    partition: PartitionReference | None = None


@dataclass(frozen=True, slots=True)
class ModifyOrderBy(AlterAction):
    order_by: tuple[OrderItem, ...]


@dataclass(frozen=True, slots=True)
class DeleteWhere(AlterAction):
    where: Expression
    partition: PartitionReference | None = None


@dataclass(frozen=True, slots=True)
class UpdateWhere(AlterAction):
    assignments: tuple[tuple[str, Expression], ...]
    where: Expression
    partition: PartitionReference | None = None


@dataclass(frozen=True, slots=True)
class PartitionAction(AlterAction):
    """`table` is the other table of ATTACH/REPLACE … FROM and MOVE … TO TABLE."""

    action: Lit["DROP", "DETACH", "ATTACH", "REPLACE", "MOVE", "DROP DETACHED", "FREEZE", "FETCH"]
    partition: PartitionReference
    table: TableName | None = None


@dataclass(frozen=True, slots=True)
class IndexAction(AlterAction):
    """ADD has `index` and its place; DROP, CLEAR and MATERIALIZE have `name`, the last two a
    partition. `if_exists` of ADD: IF NOT EXISTS."""

    action: Lit["ADD", "DROP", "CLEAR", "MATERIALIZE"]
    name: str
    index: IndexDefinition | None = None
    if_exists: bool = False
    first: bool = False
    after: str | None = None
    partition: PartitionReference | None = None


@dataclass(frozen=True, slots=True)
class ConstraintAction(AlterAction):
    action: Lit["ADD", "DROP"]
    name: str
    constraint: ConstraintDefinition | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class MaterializeColumn(AlterAction):
    name: str
    partition: PartitionReference | None = None


@dataclass(frozen=True, slots=True)
class OtherAction(AlterAction):
    """An action that is ClickHouse's and parsed no further; refused by its name."""

    text: str


@dataclass(frozen=True, slots=True)
class Alter(Statement):
    table: TableName
    actions: tuple[AlterAction, ...]
    settings: tuple[Setting, ...] = ()
