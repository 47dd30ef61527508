"""Statements that create, rename, detach or drop whole objects, and the clauses of CREATE."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal as Lit

from olapdb.records import dataclass
from olapdb.sql.nodes.base import Expression, Node, Query, Setting, Statement, TableName
from olapdb.sql.nodes.expressions import Function, OrderItem
from olapdb.sql.nodes.queries import Select, TableFunction
from olapdb.sql.nodes.refresh import RefreshClause
from olapdb.types import Array, DataType


@dataclass(frozen=True, slots=True)
class ColumnDefinition(Node):
    """A column of CREATE or ALTER; `type` is None where the default expression decides it. `modifier`
    then says whether the column may be NULL; a type that is written says so itself, and `modifier` is NOT NULL where
    that is written.

    `nested` are the elements (name, type) of a type Nested; each becomes an array: `flattened`,
    whose `nested_of` is the name of the Nested.
    """

    name: str
    type: DataType | None
    default_kind: Lit["", "DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL"] = ""
    default: Expression | None = None
    codec: tuple[Expression, ...] = ()
    ttl: Expression | None = None
    comment: str = ""
    nested: tuple[tuple[str, DataType], ...] = ()
    statistics: tuple[str, ...] = ()
    nested_of: str = ""
    settings: tuple[Setting, ...] = ()
    modifier: Lit["", "NULL", "NOT NULL"] = ""

    def flattened(self) -> tuple[ColumnDefinition, ...]:
        """Return `n Nested(a T, b U)` as `n.a Array(T)`, `n.b Array(U)`; another column unchanged."""
        if not self.nested:
            return (self,)
        return tuple(
            replace(
                self,
                name=f"{self.name}.{name}",
                type=Array(data_type),
                nested=(),
                nested_of=self.name,
            )
            for name, data_type in self.nested
        )


@dataclass(frozen=True, slots=True)
class IndexDefinition(Node):
    """INDEX name expression TYPE type [GRANULARITY n]; `type` is a call, `set(100)`."""

    name: str
    expression: Expression
    type: Function
    granularity: int = 1


@dataclass(frozen=True, slots=True)
class ConstraintDefinition(Node):
    """CONSTRAINT name CHECK | ASSUME expression."""

    name: str
    kind: Lit["CHECK", "ASSUME"]
    expression: Expression


@dataclass(frozen=True, slots=True)
class ProjectionDefinition(Node):
    """PROJECTION name (SELECT …)."""

    name: str
    query: Select


@dataclass(frozen=True, slots=True)
class TtlItem(Node):
    """One rule of TTL: when, `action`, which rows.

    `group_by` and `assignments` belong to GROUP BY … SET; `detail` is the text behind RECOMPRESS or
    TO.
    """

    expression: Expression
    action: Lit["DELETE", "GROUP BY", "RECOMPRESS", "MOVE"] = "DELETE"
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    assignments: tuple[tuple[str, Expression], ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class EngineClause(Node):
    """`ENGINE = name(arguments)`; `has_arguments` distinguishes `MergeTree()` from `MergeTree`."""

    name: str
    arguments: tuple[Expression, ...] = ()
    has_arguments: bool = False


KeyForm = Lit["", "(", "tuple("]


@dataclass(frozen=True, slots=True)
class StorageClause(Node):
    """The clauses behind the columns of CREATE TABLE; items of `order_by` keep their direction.

    `primary_form` and `order_form` say how a key was written, which SHOW CREATE TABLE shows: `(` for
    one expression in parentheses, `tuple(` for a call, "" else."""

    engine: EngineClause | None = None
    order_by: tuple[OrderItem, ...] | None = None
    partition_by: Expression | None = None
    primary_key: tuple[Expression, ...] | None = None
    sample_by: Expression | None = None
    ttl: tuple[TtlItem, ...] = ()
    settings: tuple[Setting, ...] = ()
    primary_form: KeyForm = ""
    order_form: KeyForm = ""


@dataclass(frozen=True, slots=True)
class CreateDatabase(Statement):
    """CREATE DATABASE."""

    name: str
    if_not_exists: bool = False
    engine: EngineClause | None = None
    comment: str = ""
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterDatabase(Statement):
    """ALTER DATABASE d MODIFY COMMENT 'c', or MODIFY SETTING, which `settings` are of."""

    name: str
    comment: str = ""
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTable(Statement):
    """CREATE TABLE.

    Columns and rows may come from AS SELECT (`query`; only columns if `empty`, EMPTY AS).  Columns
    may come from AS another table (`like`), rows too if `clone` (CLONE AS).  AS a table `function`
    makes a table that calls it.  REPLACE TABLE is OR REPLACE of a table that `must_exist`.
    """

    table: TableName
    columns: tuple[ColumnDefinition, ...] = ()
    indexes: tuple[IndexDefinition, ...] = ()
    constraints: tuple[ConstraintDefinition, ...] = ()
    projections: tuple[ProjectionDefinition, ...] = ()
    storage: StorageClause = StorageClause()
    if_not_exists: bool = False
    or_replace: bool = False
    temporary: bool = False
    query: Query | None = None
    empty: bool = False
    like: TableName | None = None
    clone: bool = False
    comment: str = ""
    must_exist: bool = False
    function: TableFunction | None = None


@dataclass(frozen=True, slots=True)
class CreateView(Statement):
    """CREATE [TEMPORARY] VIEW."""

    name: TableName
    query: Query
    columns: tuple[ColumnDefinition, ...] = ()
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str = ""
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class CreateMaterializedView(Statement):
    """CREATE MATERIALIZED VIEW; `target` is that of TO, else `storage` describes the inner table.

    With both, the statement creates the target, of `columns`, `constraints` and `storage`. It also
    creates the plain view `read_view` of `read_query`, if that is given. With `refresh` the view is
    no trigger: its query fills the target on a schedule, and `empty` skips the first refresh.
    """

    name: TableName
    query: Query
    target: TableName | None = None
    columns: tuple[ColumnDefinition, ...] = ()
    storage: StorageClause | None = None
    populate: bool = False
    if_not_exists: bool = False
    or_replace: bool = False
    refresh: RefreshClause | None = None
    empty: bool = False
    settings: tuple[Setting, ...] = ()
    comment: str = ""
    constraints: tuple[ConstraintDefinition, ...] = ()
    read_view: TableName | None = None
    read_query: Query | None = None


@dataclass(frozen=True, slots=True)
class Drop(Statement):
    """DROP [TEMPORARY] `kind` a, b, …"""

    kind: Lit["TABLE", "VIEW", "DATABASE", "DICTIONARY"]
    names: tuple[TableName, ...]
    if_exists: bool = False
    if_empty: bool = False
    cascade: bool = False
    sync: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class Detach(Statement):
    """DETACH `kind` name [PERMANENTLY]."""

    kind: Lit["TABLE", "VIEW", "DATABASE", "DICTIONARY"]
    name: TableName
    if_exists: bool = False
    permanently: bool = False


@dataclass(frozen=True, slots=True)
class Attach(Statement):
    """ATTACH `kind` name."""

    kind: Lit["TABLE", "VIEW", "DATABASE", "DICTIONARY"]
    name: TableName
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class Undrop(Statement):
    """UNDROP TABLE name [UUID '…']."""

    name: TableName
    uuid: str | None = None


@dataclass(frozen=True, slots=True)
class Truncate(Statement):
    """TRUNCATE [TEMPORARY] TABLE t."""

    table: TableName
    if_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class TruncateAll(Statement):
    """TRUNCATE ALL TABLES FROM d [[NOT] LIKE | ILIKE 'x'].

    With `drops` it is TRUNCATE DATABASE d, which drops the objects of the database.
    """

    database: str
    drops: bool = False
    if_exists: bool = False
    like: str | None = None
    negated: bool = False
    case_insensitive: bool = False


@dataclass(frozen=True, slots=True)
class Rename(Statement):
    """RENAME TABLE a TO b, c TO d; `kind` is DATABASE for databases.

    `if_exists[i]` says whether `pairs[i]` is skipped if the object does not exist; pairs beyond
    its length are not skipped.
    """

    kind: Lit["TABLE", "DATABASE"]
    pairs: tuple[tuple[TableName, TableName], ...]
    if_exists: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange(Statement):
    """EXCHANGE TABLES a AND b, c AND d; the pairs apply in their order."""

    pairs: tuple[tuple[TableName, TableName], ...]
