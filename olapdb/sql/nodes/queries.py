"""SELECT with its relations and clauses, set operations, EXPLAIN."""

from __future__ import annotations

from dataclasses import field
from typing import Literal as Lit

from olapdb.records import dataclass
from olapdb.sql.nodes.base import Expression, Node, Query, Relation, Setting, Statement, TableName
from olapdb.sql.nodes.expressions import OrderItem, WindowSpec


@dataclass(frozen=True, slots=True)
class TableReference(Relation):
    """`table [AS alias] [FINAL] [SAMPLE x [OFFSET y]]`."""

    table: TableName
    alias: str | None = None
    final: bool = False
    sample: Expression | None = None
    sample_offset: Expression | None = None
    is_remote: bool = False
    """Whether the query names the table through remote('localhost', …), which materialized views refuse."""


@dataclass(frozen=True, slots=True)
class TableFunction(Relation):
    """`numbers(10)`, `values('a UInt8', 1, 2)`, …"""

    name: str
    arguments: tuple[Expression, ...]
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class SubqueryRelation(Relation):
    """`(query) AS alias (a, b)`; `otherwise` is f(…) of `viewIfPermitted(query ELSE f(…))`."""

    query: Query
    alias: str | None = None
    column_aliases: tuple[str, ...] = ()
    otherwise: TableFunction | None = None


@dataclass(frozen=True, slots=True)
class Join(Relation):
    """A join; a comma is CROSS, and a `strictness` of "" is the default, ALL.

    A `natural` join has neither `on` nor `using`: its columns are those that both sides have."""

    left: Relation
    right: Relation
    kind: Lit["INNER", "LEFT", "RIGHT", "FULL", "CROSS", "PASTE"]
    strictness: Lit["", "ALL", "ANY", "SEMI", "ANTI", "ASOF"] = ""
    on: Expression | None = None
    using: tuple[str, ...] = ()
    natural: bool = False
    comma: bool = field(default=False, compare=False)

    @property
    def lacks_alias(self) -> bool:
        """Return whether a side is a subquery or a table function without an alias."""
        return self.kind != "PASTE" and any(
            isinstance(side, SubqueryRelation | TableFunction) and side.alias is None
            for side in (self.left, self.right)
        )


@dataclass(frozen=True, slots=True)
class ArrayJoin(Relation):
    """`source ARRAY JOIN a, b AS c`; LEFT keeps rows with empty arrays."""

    source: Relation
    arrays: tuple[Expression, ...]
    left: bool = False


@dataclass(frozen=True, slots=True)
class WithItem(Node):
    """`name AS (query)` has `query`; `expression AS name` has `expression`.

    AS MATERIALIZED changes nothing, as in ClickHouse: a costly query that is used several times is
    computed once anyway."""

    name: str
    query: Query | None = None
    expression: Expression | None = None
    column_aliases: tuple[str, ...] = ()
    materialized: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class LimitBy(Node):
    """`LIMIT count [OFFSET offset] BY a, b`, or BY ALL columns of SELECT."""

    count: Expression
    by: tuple[Expression, ...] | Lit["ALL"]
    offset: Expression | None = None


@dataclass(frozen=True, slots=True)
class OrderByAll(Node):
    """`ORDER BY ALL [DESC] [NULLS FIRST | LAST]`; `nulls_first` is None where it is left out."""

    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class Select(Query):
    """One SELECT.

    `group_by` is None without the clause, "ALL" for GROUP BY ALL; `order_by` is () without it.
    `interpolate` is None without INTERPOLATE, () for all columns; an expression is None for a column
    that is repeated.  `grouping` is "" (plain), ROLLUP, CUBE or SETS; for SETS each element is a TupleLiteral.
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
    order_by: tuple[OrderItem, ...] | OrderByAll = ()
    interpolate: tuple[tuple[str, Expression | None], ...] | None = None
    limit_by: LimitBy | None = None
    limit: Expression | None = None
    offset: Expression | None = None
    with_ties: bool = False
    settings: tuple[Setting, ...] = ()
    format: str | None = None


@dataclass(frozen=True, slots=True)
class SetOperation(Query):
    """UNION, EXCEPT or INTERSECT; a bare UNION has mode "" (an error unless union_default_mode).

    ORDER BY and LIMIT after the last branch belong to that branch, as in ClickHouse; parentheses
    make a Select over a SubqueryRelation.  SETTINGS and FORMAT belong to the whole.
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
class OutFile(Statement):
    """`query INTO OUTFILE 'path' [AND STDOUT] [APPEND | TRUNCATE] [COMPRESSION 'name' [LEVEL n]]`.

    FORMAT is that of the query.  `mode` is "" where the file must not exist; `compression` is ""
    where the ending of the path says it; a `level` of None is the compression's own."""

    query: Query
    path: str
    mode: Lit["", "APPEND", "TRUNCATE"] = ""
    and_stdout: bool = False
    compression: str = ""
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """EXPLAIN `kind` of a statement.

    `statement` is the name of a table or view for DEPENDENCIES, a SELECT for PROVENANCE, and the
    name of a materialized view or its CREATE for VIEW.
    """

    kind: Lit[
        "PLAN",
        "ANALYZE",
        "SYNTAX",
        "AST",
        "PIPELINE",
        "ESTIMATE",
        "DEPENDENCIES",
        "PROVENANCE",
        "VIEW",
        "QUERY TREE",
        "CURRENT TRANSACTION",
    ]
    statement: Statement | TableName
    settings: tuple[Setting, ...] = ()
    format: str | None = None


@dataclass(frozen=True, slots=True)
class ExplainRelation(Relation):
    """`(EXPLAIN …) AS alias (a, b)` in FROM: its lines are rows."""

    explain: Explain
    alias: str | None = None
    column_aliases: tuple[str, ...] = ()
