"""What looks after a warehouse: OPTIMIZE, SYSTEM, SHOW, SET and the like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Lit

from olapdb.sql.nodes.alter import PartitionReference
from olapdb.sql.nodes.base import Expression, Query, Setting, Statement, TableName
from olapdb.sql.nodes.definitions import StorageClause


@dataclass(frozen=True, slots=True)
class Optimize(Statement):
    table: TableName
    partition: PartitionReference | None = None
    final: bool = False
    cleanup: bool = False
    deduplicate: bool = False
    deduplicate_by: tuple[Expression, ...] = ()
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class SystemView(Statement):
    """SYSTEM BACKFILL | REPLAY | RECONCILE | ADOPT | REBUILD | ROLLBACK | STOP | START VIEW v …"""

    action: Lit[
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
    storage: StorageClause | None = None
    oldest: int | None = None
    dry_run: bool = False
    job: str | None = None


@dataclass(frozen=True, slots=True)
class System(Statement):
    """Any other SYSTEM command: `command` in capitals ("STOP MERGES"), `table` where it has one,
    `argument` a string or path where it has one."""

    command: str
    table: TableName | None = None
    argument: str | None = None


@dataclass(frozen=True, slots=True)
class CheckTable(Statement):
    """CHECK TABLE t [PARTITION p | PART 'name']; `table` None: CHECK ALL TABLES."""

    table: TableName | None
    partition: PartitionReference | None = None
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class Show(Statement):
    """SHOW TABLES | DATABASES | CREATE TABLE | COLUMNS | SETTINGS …; `full` of TABLES and COLUMNS,
    `changed` of SETTINGS, `named` of GRANTS (the user) and CLUSTER."""

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


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    table: TableName | None = None
    query: Query | None = None
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class ExistsObject(Statement):
    kind: Lit["TABLE", "VIEW", "DATABASE"]
    name: TableName


@dataclass(frozen=True, slots=True)
class Use(Statement):
    database: str


@dataclass(frozen=True, slots=True)
class SetSettings(Statement):
    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class Kill(Statement):
    kind: Lit["QUERY", "MUTATION"]
    where: Expression


@dataclass(frozen=True, slots=True)
class TransactionStatement(Statement):
    """BEGIN, COMMIT, ROLLBACK: accepted where they can mean nothing, see docs/differences.md."""

    action: Lit["BEGIN", "COMMIT", "ROLLBACK"]
