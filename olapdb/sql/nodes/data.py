"""Statements that write rows: INSERT, DELETE, UPDATE."""

from __future__ import annotations

from olapdb.records import dataclass
from olapdb.sql.nodes.alter import PartitionReference
from olapdb.sql.nodes.base import Expression, Node, Query, Setting, Statement, TableName
from olapdb.sql.nodes.queries import TableFunction


@dataclass(frozen=True, slots=True)
class ValuesData(Node):
    """The literal rows of an INSERT, which no tokenizer reads.

    `text` is what follows VALUES, up to the end of the statement; `olapdb.sql.values.csv_values`
    turns it into columns.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Replacing(Node):
    """REPLACE [USING (k, …)] [WHERE …] of an INSERT: the rows of the table that leave for the new
    ones.

    Those whose `keys` a new row has too, and for which `where` is true; `()` and None do not
    restrict them.
    """

    keys: tuple[Expression, ...] = ()
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class InFile(Node):
    """FROM INFILE 'path' [COMPRESSION 'name']; a compression of "" is that of the path's ending."""

    path: str
    compression: str = ""


@dataclass(frozen=True, slots=True)
class Insert(Statement):
    """INSERT INTO t, with either `query` or `values` or neither.

    `columns` is None for all columns in order, but those `excluded` by `(* EXCEPT (a))`.  With
    neither query nor values the data come through the interface, or `data` holds them; `format`
    names theirs.  `replacing` says which rows leave in the same commit.  With a `function`, as in
    INSERT INTO FUNCTION file('a.csv'), the rows go there, and `table` only has its name.
    """

    table: TableName
    columns: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()
    query: Query | None = None
    values: ValuesData | None = None
    format: str | None = None
    data: str | None = None
    infile: InFile | None = None
    settings: tuple[Setting, ...] = ()
    replacing: Replacing | None = None
    function: TableFunction | None = None


@dataclass(frozen=True, slots=True)
class Delete(Statement):
    """DELETE FROM t [IN PARTITION p] WHERE …; without WHERE, `where` is None and refused later."""

    table: TableName
    where: Expression | None
    partition: PartitionReference | None = None
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class Update(Statement):
    """UPDATE t SET a = x, … [WHERE …]; `assignments` are (column, value)."""

    table: TableName
    assignments: tuple[tuple[str, Expression], ...]
    where: Expression | None
    settings: tuple[Setting, ...] = ()
