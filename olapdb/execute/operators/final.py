"""SELECT … FINAL: rows of equal sorting key combined, across all parts and partitions (within
each, where do_not_merge_across_partitions_select_final says so), less what FINAL hides.

Only conditions on columns of the sorting key may go below the combining: they keep or drop all
rows of a key alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import pyarrow as pa

from olapdb.compute.batches import cut, filter_rows, make_batch, single_batch
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_predicate
from olapdb.config import Settings
from olapdb.engine.combine import columns_to_combine, combine
from olapdb.engine.layout import TableLayout
from olapdb.engine.replacing_collapsing import visible
from olapdb.execute.operators.part_scan import Source, Task, read_task, tasks_of
from olapdb.execute.pruning.granule_selection import PartSelection, Selector, conjuncts, live_parts
from olapdb.functions import resolve_scalar
from olapdb.functions.base import Argument
from olapdb.plan.expressions import Call, Expression, columns_of
from olapdb.plan.nodes import Scan

COMBINE_COPIES = 2
COMBINE_BYTES_PER_ROW = 40
"""What sorting and combining rows takes besides them: the rows in order, and those that are left;
row numbers, and the groups of equal keys."""


def final_batches(node: Scan, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    """All rows as a full merge of everything would leave them, in the sorting key's order."""
    layout = TableLayout(node.table, context.environment)
    before = all_of([*conjuncts(node.prewhere), *key_conditions(node, layout)])
    # Parts of one block, in several partitions: their rows' order is lost, any fixed one will do.
    parts = sorted(live_parts(node, context), key=lambda p: (p.block_range, p.partition_id))
    selection = Selector(node, before, layout, context).select(parts)
    context.statistics.add_selection(
        len(parts),
        len(selection.parts),
        sum(max(p.granules, 1) for p in parts),
        sum(p.granules for p in selection.parts),
    )
    for together in _combined_together(selection.parts, context):
        yield from _final(node, together, before, layout, context)


def _combined_together(
    parts: Sequence[PartSelection], context: ExecutionContext
) -> list[list[PartSelection]]:
    """Parts whose rows may replace each other."""
    if not Settings.of(context.settings).boolean("do_not_merge_across_partitions_select_final"):
        return [list(parts)]
    grouped: dict[str, list[PartSelection]] = {}
    for one in parts:
        grouped.setdefault(one.part.partition_id, []).append(one)
    return list(grouped.values())


def _final(
    node: Scan,
    parts: Sequence[PartSelection],
    before: Expression | None,
    layout: TableLayout,
    context: ExecutionContext,
) -> Iterator[pa.RecordBatch]:
    sources = _sources(node, layout)

    def read(task: Task) -> pa.RecordBatch:
        context.count_read(sum(piece.rows for piece in task), 0)
        batch = read_task(task, sources, node.table, context)
        if before is None:
            return batch
        named = batch.rename_columns([_unique(node, source) for source in sources])
        keep = evaluate_predicate(before, named, context.environment, context.subqueries)
        return filter_rows(batch, keep)

    with context.memory.hold("FINAL") as account:
        held = []
        for batch in context.parallel(read, tasks_of(parts)):
            held.append(batch)
            account.grow(batch.nbytes)
        if not held:
            return
        table = pa.Table.from_batches(held)
        account.grow(COMBINE_COPIES * table.nbytes + COMBINE_BYTES_PER_ROW * table.num_rows)
        del held, batch
        rows = layout.sort(table)
        del table
        rows = visible(node.table, combine(node.table, rows, layout))
        account.set(rows.nbytes)
        yield from _given(node, rows, context)


def key_conditions(node: Scan, layout: TableLayout) -> list[Expression]:
    """The predicate's conditions on columns that are items of the sorting key."""
    column_of = dict(node.columns)
    column_of.update({u: c for u, c, _ in node.predicate_columns})
    return [
        one
        for one in conjuncts(node.predicate)
        if columns_of(one) and {column_of[u] for u in columns_of(one)} <= layout.key_columns
    ]


def all_of(conditions: Sequence[Expression]) -> Expression | None:
    """The conditions joined by AND; None where there is none."""
    return reduce(_both, conditions) if conditions else None


def _both(left: Expression, right: Expression) -> Expression:
    function = resolve_scalar("and", [Argument(left.type), Argument(right.type)])
    return Call(function.type, "and", (left, right), function)


def _sources(node: Scan, layout: TableLayout) -> list[Source]:
    """What combining needs, under the table's own names; virtual columns that are asked for too
    (of rows that are joined the first one's is kept)."""
    wanted = {column for _, column in node.columns}
    wanted |= {column for _, column, _ in node.predicate_columns}
    needed = columns_to_combine(layout, wanted) or {node.table.stored_columns[0].name}
    types = {c.name: c.type for c in node.table.stored_columns}
    asked = {c: t for (_, c), t in zip(node.columns, node.types, strict=True)}
    asked.update({c: t for _, c, t in node.predicate_columns})
    return [Source(name, name, types.get(name) or asked[name]) for name in sorted(needed)]


def _unique(node: Scan, source: Source) -> str:
    """The plan's name of a column, for conditions; one that no condition can name keeps its own."""
    for unique, column in node.columns:
        if column == source.name:
            return unique
    for unique, column, _ in node.predicate_columns:
        if column == source.name:
            return unique
    return f"\0{source.name}"


def _given(node: Scan, rows: pa.Table, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    """The combined rows that the predicate keeps, as the node gives them."""
    whole = single_batch(rows)
    given = dict(node.columns) | {unique: column for unique, column, _ in node.predicate_columns}
    if not given:
        yield from cut(make_batch([], node.schema, whole.num_rows), context.batch_rows)
        return
    batch = pa.RecordBatch.from_arrays([whole.column(c) for c in given.values()], names=list(given))

    def kept(piece: pa.RecordBatch) -> pa.RecordBatch:
        if node.predicate is not None:
            keep = evaluate_predicate(
                node.predicate, piece, context.environment, context.subqueries
            )
            piece = filter_rows(piece, keep)
        chosen = [piece.column(unique) for unique, _ in node.columns]
        return make_batch(chosen, node.schema, piece.num_rows)

    for piece in context.parallel(kept, cut(batch, context.batch_rows)):
        if piece.num_rows:
            yield piece
