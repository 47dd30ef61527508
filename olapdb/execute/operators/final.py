"""SELECT … FINAL: rows of equal sorting key are combined across all parts and partitions.

With do_not_merge_across_partitions_select_final they are combined within each partition.  Only
conditions on columns of the sorting key are applied before: they keep or drop all rows of a key.
Rows that memory does not take are sorted on disk (`spill/combiner.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from olapdb.compute.batches import cut, filter_rows, make_batch, single_batch
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_predicate
from olapdb.config import Settings
from olapdb.engine.combine import columns_to_combine
from olapdb.engine.layout import TableLayout, layout_of_query
from olapdb.execute.operators.part_scan import Source, Task, bytes_of_value, read_task, tasks_of
from olapdb.execute.pruning.granule_selection import PartSelection, Selector, live_parts
from olapdb.execute.spill.combiner import combined
from olapdb.plan.conditions import all_of_any, conjuncts
from olapdb.plan.expressions import Expression, columns_of
from olapdb.plan.nodes import Scan


def final_batches(node: Scan, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a full merge of all parts would leave, in the order of the sorting key."""
    layout = layout_of_query(node.table, context.require_store().cache, context.environment)
    before = all_of_any([*conjuncts(node.prewhere), *key_conditions(node, layout)])
    # The order of a block's rows in several partitions is lost; any fixed order will do.
    parts = sorted(live_parts(node, context), key=lambda p: (p.block_range, p.partition_id))
    selection = Selector(node, before, layout, context).select(parts)
    context.count_partitions({part.part.partition_id for part in selection.parts})
    context.count_selection(
        node,
        (len(parts), len(selection.parts)),
        (sum(max(p.granules, 1) for p in parts), sum(p.granules for p in selection.parts)),
    )
    for group in _part_groups(selection.parts, context):
        yield from _final(node, group, before, layout, context)


def _part_groups(
    parts: Sequence[PartSelection], context: ExecutionContext
) -> list[list[PartSelection]]:
    """Return groups of parts whose rows may replace each other: all parts, or by partition.

    The setting do_not_merge_across_partitions_select_final decides.
    """
    if not Settings.of(context.settings).boolean("do_not_merge_across_partitions_select_final"):
        return [list(parts)]
    groups: dict[str, list[PartSelection]] = {}
    for selected in parts:
        groups.setdefault(selected.part.partition_id, []).append(selected)
    return list(groups.values())


def _final(
    node: Scan,
    parts: Sequence[PartSelection],
    before: Expression | None,
    layout: TableLayout,
    context: ExecutionContext,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the parts as after a merge; `before` filters them first, None filters none.

    Rows that memory does not take are sorted on disk.
    """
    sources = _sources(node, layout)

    def read(task: Task) -> pa.RecordBatch:
        """Read the task's rows, and keep those that `before` accepts."""
        context.count_read(sum(piece.rows for piece in task), 0)
        batch = read_task(task, sources, node.table, context)
        if before is None:
            return batch
        named = batch.rename_columns([_unique(node, source) for source in sources])
        keep = evaluate_predicate(before, named, context.environment, context.subqueries)
        return filter_rows(batch, keep)

    batches = context.parallel(
        read, tasks_of(parts, sum(bytes_of_value(s.type) for s in sources), context)
    )
    for rows in combined(node.table, sources, batches, layout, context):
        yield from _output(node, rows, context)


def pruning_condition(scan: Scan, layout: TableLayout) -> Expression | None:
    """Return the condition that a scan prunes by; with FINAL only conditions on whole keys.

    Returns None if there is no condition."""
    if scan.final and scan.table.engine.combines:
        return all_of_any([*conjuncts(scan.prewhere), *key_conditions(scan, layout)])
    return all_of_any([*conjuncts(scan.prewhere), *conjuncts(scan.predicate)])


def key_conditions(node: Scan, layout: TableLayout) -> list[Expression]:
    """Return the predicate's conditions on columns that are items of the sorting key."""
    column_of = dict(node.columns)
    column_of.update({u: c for u, c, _ in node.predicate_columns})
    return [
        condition
        for condition in conjuncts(node.predicate)
        if (used := columns_of(condition)) and {column_of[u] for u in used} <= layout.key_columns
    ]


def _sources(node: Scan, layout: TableLayout) -> list[Source]:
    """Return the columns that combining reads, under their names in the table.

    Virtual columns are among them; combined rows keep that of the first row."""
    column_types = {c: t for (_, c), t in zip(node.columns, node.types, strict=True)}
    column_types.update({c: t for _, c, t in node.predicate_columns})
    needed = columns_to_combine(layout, column_types) or {node.table.stored_columns[0].name}
    column_types.update({c.name: c.type for c in node.table.stored_columns})
    return [Source(name, name, column_types[name]) for name in sorted(needed)]


def _unique(node: Scan, source: Source) -> str:
    """Return the unique name of a column in the plan, or a name that no condition can use."""
    for unique, column in node.columns:
        if column == source.name:
            return unique
    for unique, column, _ in node.predicate_columns:
        if column == source.name:
            return unique
    return f"\0{source.name}"


def _output(node: Scan, rows: pa.Table, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    """Yield the combined rows that the predicate keeps, in batches of the node's schema."""
    whole = single_batch(rows)
    given = dict(node.columns) | {unique: column for unique, column, _ in node.predicate_columns}
    if not given:
        yield from cut(make_batch([], node.schema, whole.num_rows), context.batch_rows)
        return
    batch = pa.RecordBatch.from_arrays([whole.column(c) for c in given.values()], names=list(given))

    def filtered(piece: pa.RecordBatch) -> pa.RecordBatch:
        """Return the scan's output columns of those rows that meet its predicate."""
        if node.predicate is not None:
            keep = evaluate_predicate(
                node.predicate, piece, context.environment, context.subqueries
            )
            piece = filter_rows(piece, keep)
        output = [piece.column(unique) for unique, _ in node.columns]
        return make_batch(output, node.schema, piece.num_rows)

    for piece in context.parallel(filtered, cut(batch, context.batch_rows)):
        if piece.num_rows:
            yield piece
