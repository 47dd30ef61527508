"""Statements that run, show and configure a warehouse: OPTIMIZE, SYSTEM, SHOW, SET, …"""

from __future__ import annotations

from typing import Literal as Lit

from olapdb.records import dataclass
from olapdb.sql.nodes.alter import PartitionReference
from olapdb.sql.nodes.base import Expression, Node, Query, Setting, Statement, TableName
from olapdb.sql.nodes.definitions import ColumnDefinition, ConstraintDefinition, StorageClause


@dataclass(frozen=True, slots=True)
class Optimize(Statement):
    """OPTIMIZE TABLE t [PARTITION p] [FINAL] [CLEANUP] [DEDUPLICATE [BY …]], or OPTIMIZE TABLE t DRY
    RUN PARTS `rehearsed` …."""

    table: TableName
    partition: PartitionReference | None = None
    final: bool = False
    cleanup: bool = False
    deduplicate: bool = False
    deduplicate_by: tuple[Expression, ...] = ()
    settings: tuple[Setting, ...] = ()
    rehearsed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewVersion(Node):
    """What a REBUILD says of the new version besides its query.

    `columns` and `constraints` are the new target's, () for those of the old one. `storage` None
    keeps the old target's. `comment` None keeps the view's. The plain view `replaced_view` gets
    `replaced_query` in the commit of the swap.
    """

    columns: tuple[ColumnDefinition, ...] = ()
    constraints: tuple[ConstraintDefinition, ...] = ()
    storage: StorageClause | None = None
    comment: str | None = None
    replaced_view: TableName | None = None
    replaced_query: Query | None = None


ViewAction = Lit[
    "BACKFILL",
    "REPLAY",
    "RECONCILE",
    "ADOPT",
    "REBUILD",
    "ROLLBACK",
    "STOP",
    "START",
    "CANCEL",
    "CANCEL REBUILD",
]
"""A command of SYSTEM about a materialized view."""


@dataclass(frozen=True, slots=True)
class SystemView(Statement):
    """SYSTEM `action` VIEW v …; `new_version` and `query` are those of a REBUILD."""

    action: ViewAction
    view: TableName
    partition: PartitionReference | None = None
    where: Expression | None = None
    from_value: Expression | None = None
    stale: bool = False
    sample: int | None = None
    metadata: bool = False
    discard_bypass: bool = False
    settings: tuple[Setting, ...] = ()
    query: Query | None = None
    new_version: NewVersion = NewVersion()
    oldest: int | None = None
    dry_run: bool = False
    job: str | None = None


@dataclass(frozen=True, slots=True)
class System(Statement):
    """Any other SYSTEM command: `command` is in capitals ("STOP MERGES").

    `table` and `argument`, a string or path, are None where the command takes none.
    """

    command: str
    table: TableName | None = None
    argument: str | None = None


@dataclass(frozen=True, slots=True)
class CheckTable(Statement):
    """CHECK TABLE t [PARTITION p | PART 'name']; `table` is None for CHECK ALL TABLES and CHECK
    DATABASE `database`."""

    table: TableName | None
    partition: PartitionReference | None = None
    settings: tuple[Setting, ...] = ()
    format: str | None = None
    database: str = ""


@dataclass(frozen=True, slots=True)
class Show(Statement):
    """SHOW `kind`: TABLES, DATABASES, CREATE TABLE, COLUMNS, SETTINGS, …

    `full` is for TABLES and COLUMNS, `changed` for SETTINGS; `named` is the user of GRANTS or the
    cluster of CLUSTER; `like` is a pattern, None without LIKE and ILIKE.
    """

    kind: str
    table: TableName | None = None
    database: str | None = None
    like: str | None = None
    negated: bool = False
    case_insensitive: bool = False
    limit: int | None = None
    where: Expression | None = None
    full: bool = False
    changed: bool = False
    named: str | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    """DESCRIBE of either a table or a query; the other is None."""

    table: TableName | None = None
    query: Query | None = None
    settings: tuple[Setting, ...] = ()
    format: str | None = None


@dataclass(frozen=True, slots=True)
class ExistsObject(Statement):
    """EXISTS [TEMPORARY] [TABLE | VIEW | DICTIONARY | DATABASE] name."""

    kind: Lit["TABLE", "VIEW", "DATABASE", "DICTIONARY"]
    name: TableName
    temporary: bool = False
    format: str | None = None


@dataclass(frozen=True, slots=True)
class WithSettings(Statement):
    """A statement, such as DROP or SHOW, that has no field for the SETTINGS behind it, with these and its FORMAT."""

    statement: Statement
    settings: tuple[Setting, ...]
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Use(Statement):
    """USE database."""

    database: str


@dataclass(frozen=True, slots=True)
class SetSettings(Statement):
    """SET a = 1, …"""

    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class Kill(Statement):
    """KILL QUERY | MUTATION WHERE …; with TEST nothing is ended, with SYNC it is waited for."""

    kind: Lit["QUERY", "MUTATION", "PART_MOVE_TO_SHARD"]
    where: Expression
    mode: Lit["ASYNC", "SYNC", "TEST"] = "ASYNC"
    format: str | None = None


@dataclass(frozen=True, slots=True)
class TransactionStatement(Statement):
    """BEGIN, COMMIT, ROLLBACK: accepted where they change nothing, see docs/differences.md."""

    action: Lit["BEGIN", "COMMIT", "ROLLBACK"]
