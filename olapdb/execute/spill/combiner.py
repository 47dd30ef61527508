"""The rows of FINAL: sorted by the sorting key, in memory or on disk, and combined.

sorted on disk   a a b c | c c d …      a batch ends within the rows of c
combined         a b     | c d …        which wait for those that follow"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.ordering import equal_to_previous
from olapdb.compute.spill.budget import SpillBudget
from olapdb.engine.combine import combine, combine_first_rows
from olapdb.engine.layout import TableLayout
from olapdb.engine.replacing_collapsing import DroppedRows, visible
from olapdb.execute.operators.part_scan import Source
from olapdb.execute.spill.sorter import Sorter
from olapdb.model.schema import Table
from olapdb.plan.expressions import ColumnRef
from olapdb.plan.nodes import Field, Schema, SortKey
from olapdb.types.arrow_values import from_numpy

COPIES = 3
BYTES_PER_ROW = 40
"""The memory of sorting and combining rows: the rows, the sorted rows and the combined rows; row numbers and
groups of equal keys."""


def combined(
    table: Table,
    sources: Sequence[Source],
    batches: Iterable[pa.RecordBatch],
    layout: TableLayout,
    context: ExecutionContext,
) -> Iterator[pa.Table]:
    """Yield the rows that FINAL shows of the batches, which have the columns `sources`: in the order of the sorting key, all
    at once if memory takes them.

    Equal keys come in the order of their insertion. Raises MemoryLimitExceeded if nothing may be spilled, or if the
    rows of one key need too much memory and cannot be combined some at a time."""
    rows_of_table = tuple(Field(source.name, source.type) for source in sources)
    keys, schema = _sort_keys(layout, rows_of_table)
    with (
        context.memory.account("FINAL") as sorter_account,
        context.memory.account("FINAL") as account,
        Sorter(keys, schema, context, sorter_account) as sorter,
    ):
        for batch in batches:
            context.check()
            sorter.add(_with_keys(batch, layout, schema))
        needed_bytes = (COPIES - 1) * sorter.nbytes + BYTES_PER_ROW * sorter.rows
        if sorter.rows and SpillBudget("sort", context, account).is_exceeded(0, needed_bytes):
            sorter.spill()
        if sorter.spilled:
            pieces = (_table(batch, rows_of_table) for batch in sorter.sorted())
            yield from _in_pieces(table, pieces, layout, context, account)
        elif sorter.rows:
            account.grow(needed_bytes)
            rows = _table(sorter.unsorted(), rows_of_table)
            yield visible(table, combine(table, layout.sort(rows), layout))


def _sort_keys(layout: TableLayout, columns: Schema) -> tuple[list[SortKey], Schema]:
    """Return the sorting key, and the schema of the rows to sort: the columns, and the items of the key that are none."""
    keys, fields = [], list(columns)
    items = zip(layout.sorting_expressions, layout.table.sorting_key, strict=True)
    for number, (expression, item) in enumerate(items):
        key = expression
        if not isinstance(expression, ColumnRef):
            fields.append(Field(f"\0key {number}", expression.type))
            key = ColumnRef(expression.type, fields[-1].name)
        keys.append(SortKey(key, item.descending))
    return keys, tuple(fields)


def _with_keys(batch: pa.RecordBatch, layout: TableLayout, schema: Schema) -> pa.RecordBatch:
    """Return a batch of the table's columns with the computed items of the sorting key."""
    names = [field.name for field in schema]
    columns = list(batch.columns)
    if len(columns) < len(schema):
        named = batch.rename_columns(names[: len(columns)])
        values = layout.sorting_keys(pa.Table.from_batches([named]))
        columns += [
            value
            for value, expression in zip(values, layout.sorting_expressions, strict=True)
            if not isinstance(expression, ColumnRef)
        ]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _table(batch: pa.RecordBatch, columns: Schema) -> pa.Table:
    """Return the table's own columns of sorted rows."""
    names = [field.name for field in columns]
    return pa.Table.from_arrays(batch.columns[: len(names)], names=names)


def _in_pieces(
    table: Table,
    batches: Iterator[pa.Table],
    layout: TableLayout,
    context: ExecutionContext,
    account: MemoryAccount,
) -> Iterator[pa.Table]:
    """Yield what FINAL shows of sorted batches, as soon as all rows of a key are there. The first rows of a key that has
    many are combined before."""
    waiting: list[pa.Table] = []
    dropped = DroppedRows()
    enough_rows = 0
    for batch in batches:
        context.check()
        waiting.append(batch)
        rows_waiting = sum(rows.num_rows for rows in waiting)
        nbytes = sum(rows.nbytes for rows in waiting)
        account.set(COPIES * nbytes + BYTES_PER_ROW * rows_waiting)
        if rows_waiting < enough_rows:
            continue
        rows = pa.concat_tables(waiting).combine_chunks()
        begins = np.flatnonzero(~equal_to_previous(layout.sorting_keys(rows), rows.num_rows))
        last_start = int(begins[-1])
        if last_start:
            done = rows.slice(0, last_start)
            yield visible(table, combine(table, done, layout, dropped=dropped))
            dropped = DroppedRows()
        # A copy: a slice would hold the memory of all rows.
        rows = rows.slice(last_start).take(from_numpy(np.arange(rows.num_rows - last_start)))
        rows, dropped = combine_first_rows(table, rows, layout, dropped)
        waiting, enough_rows = [rows], 2 * rows.num_rows
    if waiting:
        rows = pa.concat_tables(waiting).combine_chunks()
        yield visible(table, combine(table, rows, layout, dropped=dropped))
