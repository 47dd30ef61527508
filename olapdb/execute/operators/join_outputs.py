"""What is read of a join's rows above it: only these columns are made for each pair.

    SELECT n_name, sum(price) FROM lines JOIN nations ON l_nation = n_nation GROUP BY n_name

The keys are looked up, but no pair has them.  Texts of the held side are numbered once: a pair gets the code of
`n_name`, not the text, and the GROUP BY takes codes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from olapdb.compute.batches import broadcast, make_batch
from olapdb.config import tuning
from olapdb.execute.operators.compact_columns import plain_column
from olapdb.functions import default_value
from olapdb.functions.kernels.decimal_width import has_short_form, shortened
from olapdb.plan.expressions import ColumnRef, Expression, columns_of
from olapdb.plan.nodes import Join, Project, Schema
from olapdb.records import dataclass


@dataclass(frozen=True)
class Wanted:
    """The columns that are read of a join's rows, None for all, and those of them that may come in a compact
    form: texts as dictionaries, Decimals with 64 bits."""

    columns: frozenset[str] | None = None
    compact: frozenset[str] = frozenset()

    def of_left(self, join: Join) -> Wanted:
        """Return the columns that are read of the join's left side: by the join itself or above it."""
        if self.columns is None or not may_be_narrowed(join):
            return Wanted()
        read = _read_by(join.left_keys, join.residual)
        names = frozenset(field.name for field in join.left.schema)
        return Wanted((self.columns | read) & names, (self.compact & names) - read)

    def of_right(self, join: Join, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the right side's rows with the columns alone that the join's residual or anything above reads, those
        that may be compact in their compact form. The join has evaluated its keys before. All columns for a join whose
        rows must be whole."""
        if self.columns is None or not may_be_narrowed(join):
            return rows
        compared = _read_by((), join.residual)
        read = self.columns | compared
        if join.strictness in ("SEMI", "ANTI"):
            read = compared
        compact = self.compact - compared
        may_code = rows.num_rows <= tuning.CODED_JOIN_ROWS_MAX
        names = [name for name in rows.schema.names if name in read]
        columns = [
            _compacted(rows.column(n), may_code=may_code) if n in compact else rows.column(n)
            for n in names
        ]
        return pa.RecordBatch.from_arrays(columns, names)


EVERYTHING = Wanted()


def may_be_narrowed(join: Join) -> bool:
    """Return whether the join's pairs may lack columns that nothing reads: it is an INNER, LEFT or CROSS join and no
    ASOF JOIN."""
    return join.kind in ("INNER", "LEFT", "CROSS") and join.strictness != "ASOF"


def wanted_by(project: Project, compact: Collection[str]) -> Wanted:
    """Return which columns a projection reads of its input. Those that it passes on unchanged under names in `compact`,
    and does not read otherwise, may come in a compact form."""
    read = frozenset().union(*(columns_of(expression) for _, expression in project.expressions))
    computed = _read_by([e for _, e in project.expressions if not isinstance(e, ColumnRef)], None)
    unchanged = {
        expression.name
        for name, expression in project.expressions
        if isinstance(expression, ColumnRef) and name in compact
    }
    others = {
        expression.name
        for name, expression in project.expressions
        if isinstance(expression, ColumnRef) and name not in compact
    }
    return Wanted(read, frozenset(unchanged - others) - computed)


def restored(rows: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """Return rows that lack columns which nothing reads as rows of the schema: with default values in
    these columns, and no column in compact form."""
    names = frozenset(rows.schema.names)
    columns = []
    for name, data_type in ((field.name, field.type) for field in schema):
        if name not in names:
            columns.append(broadcast(default_value(data_type), rows.num_rows, data_type))
            continue
        columns.append(plain_column(rows.column(name)))
    return make_batch(columns, schema, rows.num_rows)


def _read_by(expressions: Sequence[Expression], residual: Expression | None) -> frozenset[str]:
    """Return the columns that the expressions read."""
    every = [*expressions, residual] if residual is not None else expressions
    return frozenset().union(*map(columns_of, every))


def _compacted(column: pa.Array, *, may_code: bool) -> pa.Array:
    """Return a column in its compact form: Decimals of up to 18 digits with 64 bits, texts as codes of a dictionary if
    `may_code`; others unchanged."""
    if has_short_form(column.type):
        return shortened(column)
    return column.dictionary_encode() if may_code and pa.types.is_string(column.type) else column
