"""Statements that write rows: INSERT, DELETE, UPDATE."""

from __future__ import annotations

from dataclasses import dataclass

from olapdb.sql.nodes.alter import PartitionReference
from olapdb.sql.nodes.base import Expression, Node, Query, Setting, Statement, TableName


@dataclass(frozen=True, slots=True)
class ValuesData(Node):
    """Literal rows, read without the tokenizer: `text` is what follows VALUES, up to the end of
    the statement; `olapdb.sql.values.csv_values` turns it into columns."""

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
