"""What is read of a join's rows above it: only these columns are made for each pair.

    SELECT n_name, sum(price) FROM lines JOIN nations ON l_nation = n_nation GROUP BY n_name

The keys are looked up, but no pair has them.  Texts of the held side are numbered once: a pair gets the code of
`n_name`, not the text, and the GROUP BY takes codes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

from olapdb.compute.batches import broadcast, make_batch
from olapdb.config import tuning
from olapdb.functions import default_value
from olapdb.plan.expressions import ColumnRef, Expression, columns_of
from olapdb.plan.nodes import Join, Project, Schema


@dataclass(frozen=True)
class Wanted:
    """The columns that are read of a join's rows, None for all, and those of them that may be
    dictionaries."""

    columns: frozenset[str] | None = None
    coded: frozenset[str] = frozenset()

    def of_left(self, join: Join) -> Wanted:
        """Return what is read of the rows of the join's left side."""
        if self.columns is None or not may_be_narrowed(join):
            return Wanted()
        read = _read_by(join.left_keys, join.residual)
        names = frozenset(field.name for field in join.left.schema)
        return Wanted((self.columns | read) & names, (self.coded & names) - read)

    def of_right(self, join: Join, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that are read of the right side's rows, with codes of the texts that may be
        dictionaries; its keys have been read."""
        if self.columns is None or not may_be_narrowed(join):
            return rows
        compared = _read_by((), join.residual)
        read = self.columns | compared
        if join.strictness in ("SEMI", "ANTI"):
            read = compared
        coded = self.coded - compared if rows.num_rows <= tuning.CODED_JOIN_ROWS_MAX else ()
        names = [name for name in rows.schema.names if name in read]
        columns = [_coded(rows.column(n)) if n in coded else rows.column(n) for n in names]
        return pa.RecordBatch.from_arrays(columns, names)


EVERYTHING = Wanted()


def may_be_narrowed(join: Join) -> bool:
    """Return whether the join's pairs may lack columns: no side has rows that are held until its
    end."""
    return join.kind in ("INNER", "LEFT", "CROSS") and join.strictness != "ASOF"


def wanted_by(project: Project, coded: Collection[str]) -> Wanted:
    """Return what a projection reads of its input; those of its columns that are in `coded` may be
    dictionaries."""
    read = frozenset().union(*(columns_of(expression) for _, expression in project.expressions))
    computed = _read_by([e for _, e in project.expressions if not isinstance(e, ColumnRef)], None)
    unchanged = {
        expression.name
        for name, expression in project.expressions
        if isinstance(expression, ColumnRef) and name in coded
    }
    others = {
        expression.name
        for name, expression in project.expressions
        if isinstance(expression, ColumnRef) and name not in coded
    }
    return Wanted(read, frozenset(unchanged - others) - computed)


def restored(rows: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """Return rows that lack columns which nothing reads as rows of the schema: with default values in
    these columns, and texts in place of codes."""
    names = frozenset(rows.schema.names)
    columns = []
    for name, data_type in ((field.name, field.type) for field in schema):
        if name not in names:
            columns.append(broadcast(default_value(data_type), rows.num_rows, data_type))
            continue
        column = rows.column(name)
        is_coded = isinstance(column, pa.DictionaryArray)
        columns.append(column.dictionary_decode() if is_coded else column)
    return make_batch(columns, schema, rows.num_rows)


def _read_by(expressions: Sequence[Expression], residual: Expression | None) -> frozenset[str]:
    """Return the columns that the expressions read."""
    every = [*expressions, residual] if residual is not None else expressions
    return frozenset().union(*map(columns_of, every))


def _coded(column: pa.Array) -> pa.Array:
    """Return texts as codes of a dictionary, others unchanged."""
    return column.dictionary_encode() if pa.types.is_string(column.type) else column
