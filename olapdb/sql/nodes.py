"""The syntax tree: frozen nodes, each with its place in the text.

Nothing is resolved here: names are as written, functions are not looked up, `*` is a node.
A tuple is used wherever there is a list, None where a clause is absent.  `position` takes no
part in equality, so two texts with the same meaning of tokens give equal trees.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal as Lit

from olapdb.errors import Position
from olapdb.types import Array, DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    position: Position | None = field(default=None, compare=False, repr=False)


# --- names ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableName(Node):
    """`database` is None where it was not written."""

    name: str
    database: str | None = None

    def __str__(self) -> str:
        return f"{self.database}.{self.name}" if self.database else self.name


# --- expressions ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expression(Node):
    pass


@dataclass(frozen=True, slots=True)
class Identifier(Expression):
    """A column or alias, with its qualifiers: `a`, `t.a`, `db.t.a`."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """`value` is None (NULL), bool, int, float, str (of any length), or Decimal-free number text.

    Numbers keep their text in `text`, so that a Decimal context can read them exactly.
    """

    value: bool | int | float | str | None
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Parameter(Expression):
    """`?` (index from 0), `:name`/`%(name)s`/`$name` (name), `$1` (index), `{name:Type}`."""

    name: str | None
    index: int | None
    type: DataType | None = None


@dataclass(frozen=True, slots=True)
class ArrayLiteral(Expression):
    """`[a, b]`"""

    elements: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class TupleLiteral(Expression):
    """`(a, b)` and `tuple(a, b)` as written with parentheses; one element only as `(a,)`."""

    elements: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Star(Expression):
    """`*` or `t.*`, with `EXCEPT (…)` and `REPLACE (expr AS name, …)`, and `COLUMNS('regex')`."""

    qualifier: tuple[str, ...] = ()
    pattern: str | None = None
    excluded: tuple[str, ...] = ()
    replaced: tuple[Alias, ...] = ()


@dataclass(frozen=True, slots=True)
class OrderItem(Node):
    expression: Expression
    descending: bool = False
    nulls_first: bool | None = None
    collate: str | None = None


@dataclass(frozen=True, slots=True)
class WindowSpec(Node):
    """`PARTITION BY … ORDER BY … frame`; `base` names a WINDOW that it extends."""

    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    frame_unit: Lit["ROWS", "RANGE", "GROUPS"] | None = None
    frame_start: FrameBound | None = None
    frame_end: FrameBound | None = None
    base: str | None = None


@dataclass(frozen=True, slots=True)
class FrameBound(Node):
    """`offset` None means UNBOUNDED; `direction` is CURRENT for CURRENT ROW."""

    direction: Lit["PRECEDING", "FOLLOWING", "CURRENT"]
    offset: Expression | None = None


@dataclass(frozen=True, slots=True)
class Function(Expression):
    """A call, an operator, anything that computes: operators have ClickHouse's function names.

    `a + b` is `plus(a, b)`, `a[1]` is `arrayElement(a, 1)`, `t.1` is `tupleElement(t, 1)`,
    `a AND b AND c` is one `and` of three, `x LIKE y` is `like`, `x IS NULL` is `isNull`,
    `x BETWEEN a AND b` is `and(greaterOrEquals(x, a), lessOrEquals(x, b))`, `-x` is `negate`,
    `CASE` is `multiIf` (or `caseWithExpression`), `CAST(x AS T)` and `x::T` are Cast.
    `count(*)` is `count()`.  `name` is spelt as written.  Parametric aggregates
    (`quantile(0.9)(x)`) have `parameters`.
    """

    name: str
    arguments: tuple[Expression, ...] = ()
    parameters: tuple[Expression, ...] = ()
    distinct: bool = False
    filter: Expression | None = None
    over: WindowSpec | str | None = None
    nulls: Lit["RESPECT", "IGNORE"] | None = None


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    expression: Expression
    type: DataType


@dataclass(frozen=True, slots=True)
class IntervalLiteral(Expression):
    """`INTERVAL expression unit`; unit as in types.Interval ("Day")."""

    expression: Expression
    unit: str


@dataclass(frozen=True, slots=True)
class Lambda(Expression):
    arguments: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class Subquery(Expression):
    """A query as a value: scalar, or the right side of IN."""

    query: Query


@dataclass(frozen=True, slots=True)
class In(Expression):
    """`right` is a Subquery, a TupleLiteral, an ArrayLiteral, an Identifier naming a table, or an
    expression."""

    left: Expression
    right: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Exists(Expression):
    query: Query


@dataclass(frozen=True, slots=True)
class Alias(Expression):
    """`expression AS name`; allowed anywhere inside an expression, as in ClickHouse."""

    expression: Expression
    name: str


# --- FROM -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Relation(Node):
    pass


@dataclass(frozen=True, slots=True)
class TableReference(Relation):
    table: TableName
    alias: str | None = None
    final: bool = False
    sample: Expression | None = None
    sample_offset: Expression | None = None


@dataclass(frozen=True, slots=True)
class TableFunction(Relation):
    """`numbers(10)`, `values('a UInt8', 1, 2)`, …"""

    name: str
    arguments: tuple[Expression, ...]
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class SubqueryRelation(Relation):
    query: Query
    alias: str | None = None
    column_aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Join(Relation):
    """`kind` CROSS also for a comma; `strictness` "" means the default (ALL)."""

    left: Relation
    right: Relation
    kind: Lit["INNER", "LEFT", "RIGHT", "FULL", "CROSS", "PASTE"]
    strictness: Lit["", "ALL", "ANY", "SEMI", "ANTI", "ASOF"] = ""
    on: Expression | None = None
    using: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArrayJoin(Relation):
    """`source ARRAY JOIN a, b AS c`; `left` keeps rows with empty arrays."""

    source: Relation
    arrays: tuple[Expression, ...]
    left: bool = False


# --- queries ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Statement(Node):
    pass


@dataclass(frozen=True, slots=True)
class Setting(Node):
    name: str
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class WithItem(Node):
    """`name AS (query)` has `query`; `expression AS name` has `expression`."""

    name: str
    query: Query | None = None
    expression: Expression | None = None
    column_aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query(Statement):
    """Base of Select and SetOperation."""


@dataclass(frozen=True, slots=True)
class LimitBy(Node):
    count: Expression
    by: tuple[Expression, ...]
    offset: Expression | None = None


@dataclass(frozen=True, slots=True)
class Select(Query):
    """One SELECT. `group_by` None: no clause; "ALL": GROUP BY ALL. `order_by` likewise.

    `grouping` is "" (plain), ROLLUP, CUBE or SETS; for SETS each element is a TupleLiteral.
    """

    columns: tuple[Expression, ...]
    with_items: tuple[WithItem, ...] = ()
    recursive: bool = False
    distinct: bool = False
    distinct_on: tuple[Expression, ...] = ()
    source: Relation | None = None
    prewhere: Expression | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] | Lit["ALL"] | None = None
    grouping: Lit["", "ROLLUP", "CUBE", "SETS"] = ""
    with_totals: bool = False
    having: Expression | None = None
    qualify: Expression | None = None
    windows: tuple[tuple[str, WindowSpec], ...] = ()
    order_by: tuple[OrderItem, ...] | Lit["ALL"] = ()
    limit_by: LimitBy | None = None
    limit: Expression | None = None
    offset: Expression | None = None
    with_ties: bool = False
    settings: tuple[Setting, ...] = ()
    format: str | None = None


@dataclass(frozen=True, slots=True)
class SetOperation(Query):
    """`operator` with its mode; a bare UNION has mode "" (an error unless union_default_mode).

    ORDER BY and LIMIT after the last branch belong to that branch, as in ClickHouse; parentheses
    make a Select over a SubqueryRelation.  SETTINGS and FORMAT are of the whole.
    """

    left: Query
    right: Query
    operator: Lit["UNION", "EXCEPT", "INTERSECT"]
    mode: Lit["", "ALL", "DISTINCT"] = ""
    with_items: tuple[WithItem, ...] = ()
    recursive: bool = False
    settings: tuple[Setting, ...] = ()
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """`statement` is the name of a table or view for DEPENDENCIES, a SELECT for PROVENANCE."""

    kind: Lit["PLAN", "SYNTAX", "AST", "PIPELINE", "ESTIMATE", "DEPENDENCIES", "PROVENANCE"]
    statement: Statement | TableName
    settings: tuple[Setting, ...] = ()


# --- INSERT -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ValuesData(Node):
    """Literal rows, read without the tokenizer: `text` is what follows VALUES, up to the end of
    the statement; `olapdb.sql.values` turns it into columns."""

    text: str


@dataclass(frozen=True, slots=True)
class Insert(Statement):
    """`columns` None: all in order. `excluded`: `(* EXCEPT (a))`. Just one of `query`, `values`,
    or neither: data come through the interface (`format` may name theirs, `data` hold it)."""

    table: TableName
    columns: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()
    query: Query | None = None
    values: ValuesData | None = None
    format: str | None = None
    data: str | None = None
    settings: tuple[Setting, ...] = ()


# --- DDL --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnDefinition(Node):
    """`type` None where it comes from the default expression. `nested` are the elements of a type
    Nested, which stands for an array each: see `flattened`."""

    name: str
    type: DataType | None
    default_kind: Lit["", "DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL"] = ""
    default: Expression | None = None
    codec: tuple[Expression, ...] = ()
    ttl: Expression | None = None
    comment: str = ""
    nested: tuple[tuple[str, DataType], ...] = ()

    def flattened(self) -> tuple[ColumnDefinition, ...]:
        """`n Nested(a T, b U)` as `n.a Array(T)`, `n.b Array(U)`; any other column as it is."""
        if not self.nested:
            return (self,)
        return tuple(
            replace(self, name=f"{self.name}.{name}", type=Array(data_type), nested=())
            for name, data_type in self.nested
        )


@dataclass(frozen=True, slots=True)
class IndexDefinition(Node):
    name: str
    expression: Expression
    type: Function
    granularity: int = 1


@dataclass(frozen=True, slots=True)
class ConstraintDefinition(Node):
    name: str
    kind: Lit["CHECK", "ASSUME"]
    expression: Expression


@dataclass(frozen=True, slots=True)
class ProjectionDefinition(Node):
    name: str
    query: Select


@dataclass(frozen=True, slots=True)
class TtlItem(Node):
    """`detail` is the text of what follows GROUP BY, RECOMPRESS or TO."""

    expression: Expression
    action: Lit["DELETE", "GROUP BY", "RECOMPRESS", "MOVE"] = "DELETE"
    where: Expression | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class EngineClause(Node):
    """`ENGINE = name(arguments)`; `has_arguments` tells `MergeTree` from `MergeTree()`."""

    name: str
    arguments: tuple[Expression, ...] = ()
    has_arguments: bool = False


@dataclass(frozen=True, slots=True)
class StorageClause(Node):
    """What follows the columns of CREATE TABLE. ORDER BY items keep their direction."""

    engine: EngineClause | None = None
    order_by: tuple[OrderItem, ...] | None = None
    partition_by: Expression | None = None
    primary_key: tuple[Expression, ...] | None = None
    sample_by: Expression | None = None
    ttl: tuple[TtlItem, ...] = ()
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateDatabase(Statement):
    name: str
    if_not_exists: bool = False
    engine: EngineClause | None = None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class CreateTable(Statement):
    """`source` says where columns or rows come from: AS SELECT (`query`, `empty` for EMPTY AS),
    AS other table (`like`), CLONE AS (`clone`)."""

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


@dataclass(frozen=True, slots=True)
class CreateView(Statement):
    name: TableName
    query: Query
    columns: tuple[ColumnDefinition, ...] = ()
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str = ""


@dataclass(frozen=True, slots=True)
class CreateMaterializedView(Statement):
    """`target` for TO; else `storage` describes the inner table. `refresh` is the text of a
    REFRESH clause, kept so that it can be refused by name."""

    name: TableName
    query: Query
    target: TableName | None = None
    columns: tuple[ColumnDefinition, ...] = ()
    storage: StorageClause | None = None
    populate: bool = False
    if_not_exists: bool = False
    or_replace: bool = False
    refresh: str | None = None
    settings: tuple[Setting, ...] = ()
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Drop(Statement):
    kind: Lit["TABLE", "VIEW", "DATABASE", "DICTIONARY"]
    names: tuple[TableName, ...]
    if_exists: bool = False
    if_empty: bool = False
    cascade: bool = False
    sync: bool = False


@dataclass(frozen=True, slots=True)
class Detach(Statement):
    kind: Lit["TABLE", "VIEW", "DATABASE"]
    name: TableName
    if_exists: bool = False
    permanently: bool = False


@dataclass(frozen=True, slots=True)
class Attach(Statement):
    kind: Lit["TABLE", "VIEW", "DATABASE"]
    name: TableName
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class Undrop(Statement):
    """UNDROP TABLE name [UUID '…']."""

    name: TableName
    uuid: str | None = None


@dataclass(frozen=True, slots=True)
class Truncate(Statement):
    table: TableName
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class TruncateAll(Statement):
    """TRUNCATE ALL TABLES FROM d [[NOT] LIKE | ILIKE 'x']; `drops`: TRUNCATE DATABASE d, which drops
    what is in it."""

    database: str
    drops: bool = False
    if_exists: bool = False
    like: str | None = None
    negated: bool = False
    case_insensitive: bool = False


@dataclass(frozen=True, slots=True)
class Rename(Statement):
    """RENAME TABLE a TO b, c TO d; kind DATABASE for databases. `if_exists` tells of each pair
    whether it is left out where there is no such object; shorter than `pairs`: the rest is not."""

    kind: Lit["TABLE", "DATABASE"]
    pairs: tuple[tuple[TableName, TableName], ...]
    if_exists: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange(Statement):
    left: TableName
    right: TableName


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


@dataclass(frozen=True, slots=True)
class Delete(Statement):
    """DELETE FROM t [IN PARTITION p] WHERE …; `where` None is kept, and refused later."""

    table: TableName
    where: Expression | None
    partition: PartitionReference | None = None
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class Update(Statement):
    table: TableName
    assignments: tuple[tuple[str, Expression], ...]
    where: Expression | None
    settings: tuple[Setting, ...] = ()


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
        "BACKFILL", "REPLAY", "RECONCILE", "ADOPT", "REBUILD", "ROLLBACK", "STOP", "START",
        "CANCEL", "CANCEL REBUILD",
    ]  # fmt: skip
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
    `changed` of SETTINGS."""

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
class Transaction(Statement):
    """BEGIN, COMMIT, ROLLBACK: accepted where they can mean nothing, see docs/differences.md."""

    action: Lit["BEGIN", "COMMIT", "ROLLBACK"]
