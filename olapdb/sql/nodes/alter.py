"""ALTER: one statement of several actions."""

from __future__ import annotations

from typing import Literal as Lit

from olapdb.records import dataclass
from olapdb.sql.nodes.base import Expression, Node, Query, Setting, Statement, TableName
from olapdb.sql.nodes.definitions import (
    ColumnDefinition,
    ConstraintDefinition,
    IndexDefinition,
    ProjectionDefinition,
    TtlItem,
)
from olapdb.sql.nodes.expressions import OrderItem
from olapdb.sql.nodes.refresh import RefreshClause


@dataclass(frozen=True, slots=True)
class PartitionReference(Node):
    """`PARTITION expr` has `value`, `PARTITION ID 'x'` and `PART 'name'` have `id`, ALL neither."""

    kind: Lit["VALUE", "ID", "ALL", "PART"]
    value: Expression | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class AlterAction(Node):
    """Base of the actions of ALTER."""


@dataclass(frozen=True, slots=True)
class AddColumn(AlterAction):
    """ADD COLUMN …, FIRST or AFTER a column."""

    column: ColumnDefinition
    if_not_exists: bool = False
    first: bool = False
    after: str | None = None


@dataclass(frozen=True, slots=True)
class DropColumn(AlterAction):
    """DROP COLUMN name."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ClearColumn(AlterAction):
    """CLEAR COLUMN name [IN PARTITION p]: its values become the default."""

    name: str
    partition: PartitionReference | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn(AlterAction):
    """RENAME COLUMN name TO new_name."""

    name: str
    new_name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ModifyColumn(AlterAction):
    """MODIFY COLUMN …; `remove` is the property that REMOVE names, None without REMOVE.

    `elements` are the texts of ADD ENUM VALUES with their numbers, None where none is written."""

    column: ColumnDefinition
    if_exists: bool = False
    remove: str | None = None
    first: bool = False
    after: str | None = None
    elements: tuple[tuple[str, int | None], ...] = ()
    settings: tuple[Setting, ...] = ()
    """The settings that MODIFY SETTING gives to the column; those of value None RESET SETTING takes from it."""


@dataclass(frozen=True, slots=True)
class CommentColumn(AlterAction):
    """COMMENT COLUMN name 'comment'."""

    name: str
    comment: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ModifyComment(AlterAction):
    """MODIFY COMMENT 'comment' of the table."""

    comment: str


@dataclass(frozen=True, slots=True)
class ModifyQuery(AlterAction):
    """MODIFY QUERY SELECT … of a view."""

    query: Query


@dataclass(frozen=True, slots=True)
class ModifyRefresh(AlterAction):
    """MODIFY REFRESH … of a view."""

    refresh: RefreshClause


@dataclass(frozen=True, slots=True)
class ModifySetting(AlterAction):
    """MODIFY SETTING `settings`, or RESET SETTING `reset`."""

    settings: tuple[Setting, ...] = ()
    reset: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModifyTtl(AlterAction):
    """MODIFY TTL …; REMOVE TTL where `ttl` is empty."""

    ttl: tuple[TtlItem, ...]


@dataclass(frozen=True, slots=True)
class MaterializeTtl(AlterAction):
    """MATERIALIZE TTL [IN PARTITION p]."""

    partition: PartitionReference | None = None


@dataclass(frozen=True, slots=True)
class ModifySampleBy(AlterAction):
    """MODIFY SAMPLE BY …; REMOVE SAMPLE BY where `expression` is None."""

    expression: Expression | None


@dataclass(frozen=True, slots=True)
class ModifyOrderBy(AlterAction):
    """MODIFY ORDER BY …"""

    order_by: tuple[OrderItem, ...]


@dataclass(frozen=True, slots=True)
class DeleteWhere(AlterAction):
    """DELETE [IN PARTITION p] WHERE …"""

    where: Expression
    partition: PartitionReference | None = None


@dataclass(frozen=True, slots=True)
class UpdateWhere(AlterAction):
    """UPDATE a = x, … [IN PARTITION p] WHERE …; `assignments` are (column, value)."""

    assignments: tuple[tuple[str, Expression], ...]
    where: Expression
    partition: PartitionReference | None = None


@dataclass(frozen=True, slots=True)
class PartitionAction(AlterAction):
    """`action` on a partition; `table` is that of ATTACH or REPLACE … FROM and MOVE … TO TABLE, `target`
    the disk or volume of MOVE … TO DISK and TO VOLUME, or the name of FREEZE and UNFREEZE."""

    action: Lit[
        "DROP",
        "DETACH",
        "ATTACH",
        "REPLACE",
        "MOVE",
        "DROP DETACHED",
        "FREEZE",
        "UNFREEZE",
        "FETCH",
        "FORGET",
        "MOVE TO DISK",
        "MOVE TO VOLUME",
    ]
    partition: PartitionReference
    table: TableName | None = None
    target: str = ""


@dataclass(frozen=True, slots=True)
class IndexAction(AlterAction):
    """ADD | DROP | CLEAR | MATERIALIZE INDEX `name`.

    `index`, `first` and `after` are for ADD, whose `if_exists` means IF NOT EXISTS; `partition` is
    for CLEAR and MATERIALIZE.
    """

    action: Lit["ADD", "DROP", "CLEAR", "MATERIALIZE"]
    name: str
    index: IndexDefinition | None = None
    if_exists: bool = False
    first: bool = False
    after: str | None = None
    partition: PartitionReference | None = None


@dataclass(frozen=True, slots=True)
class ProjectionAction(AlterAction):
    """ADD | DROP | CLEAR | MATERIALIZE PROJECTION `name`; the fields are as those of IndexAction."""

    action: Lit["ADD", "DROP", "CLEAR", "MATERIALIZE"]
    name: str
    projection: ProjectionDefinition | None = None
    if_exists: bool = False
    first: bool = False
    after: str | None = None
    partition: PartitionReference | None = None


@dataclass(frozen=True, slots=True)
class ConstraintAction(AlterAction):
    """ADD or DROP CONSTRAINT `name`; `if_exists` of ADD means IF NOT EXISTS."""

    action: Lit["ADD", "DROP"]
    name: str
    constraint: ConstraintDefinition | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class MaterializeColumn(AlterAction):
    """MATERIALIZE COLUMN name [IN PARTITION p]: writes the default into the parts."""

    name: str
    partition: PartitionReference | None = None


@dataclass(frozen=True, slots=True)
class StatisticsAction(AlterAction):
    """ADD, MODIFY, DROP, CLEAR or MATERIALIZE STATISTICS of `columns`; (ALL,) for every one.

    `conditional`: IF NOT EXISTS or IF EXISTS."""

    verb: Lit["ADD", "MODIFY", "DROP", "CLEAR", "MATERIALIZE"]
    columns: tuple[str, ...]
    types: tuple[str, ...] = ()
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class SettledAction(AlterAction):
    """APPLY PATCHES or APPLY DELETED MASK: an UPDATE or DELETE leaves nothing to apply. `of_view`:
    MODIFY SQL SECURITY or DEFINER of a view: there is one user."""

    of_view: bool = False


@dataclass(frozen=True, slots=True)
class OtherAction(AlterAction):
    """An action of ClickHouse that olapdb does not have: its text, refused by name later."""

    text: str


@dataclass(frozen=True, slots=True)
class Alter(Statement):
    """ALTER [TEMPORARY] TABLE `table` and its actions, in order."""

    table: TableName
    actions: tuple[AlterAction, ...]
    settings: tuple[Setting, ...] = ()
    temporary: bool = False
