"""EXPLAIN indexes = 1 and EXPLAIN ESTIMATE: what a plan would read.

`indexes = 1` shows the parts and granules that remain after each index, in ClickHouse's format. The indexes are tried in turn, where a scan uses them at once: the bounds of the partition key's
columns, the partitions' values, the sorting key's bounds by part and row group, the bounds of all
other columns, and the skip indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from olapdb.compute.context import ExecutionContext
from olapdb.engine.layout import TableLayout
from olapdb.execute.operators.final import pruning_condition
from olapdb.execute.operators.projected_groups import chosen_projections, scan_below
from olapdb.execute.operators.scan import counted_batch, scan_sources
from olapdb.execute.operators.subqueries import answer_subqueries
from olapdb.execute.pruning.granule_selection import PartSelection, Selector, live_parts
from olapdb.execute.pruning.projections import (
    may_use_projections,
    projected_selections,
    projection_lines,
)
from olapdb.execute.run import run_node
from olapdb.model.part import Part
from olapdb.model.schema import SkipIndex
from olapdb.plan.conditions import conjuncts
from olapdb.plan.explain import Annotate, explain, show
from olapdb.plan.expressions import columns_of
from olapdb.plan.nodes import Aggregate, Node, Plan, Scan
from olapdb.plan.tree import walk_nodes


def explain_indexes(
    plan: Plan, context: ExecutionContext, write: Callable[[Plan, Annotate], list[str]] = explain
) -> list[str]:
    """Return the lines of the plan's tree, with selected/initial parts and granules at each scan.
    `write` writes a plan with such further lines.

    It runs the subqueries of conditions, whose values prune, and reads footers, but no rows.
    """
    try:
        answer_subqueries(plan.root, context, run_node)
        return write(plan, lambda node: _index_lines(node, context))
    finally:
        context.close()


def estimate_reads(plan: Plan, context: ExecutionContext) -> list[tuple[str, str, int, int, int]]:
    """Return (database, table, parts, rows, granules) that the plan's scans would read, a table
    once, by name; without tables of which it reads nothing but their numbers of rows.

    It runs the subqueries of conditions and reads footers, but no rows."""
    counts_by_name: dict[tuple[str, str], tuple[int, int, int]] = {}
    try:
        answer_subqueries(plan.root, context, run_node)
        for node in walk_nodes(plan.root):
            if not isinstance(node, Scan) or counted_batch(node, context) is not None:
                continue
            layout = TableLayout(node.table, context.environment)
            condition = pruning_condition(node, layout)
            selected = Selector(node, condition, layout, context).select(live_parts(node, context))
            rows = sum(sum(part.group_rows) for part in selected.parts)
            name = (node.table.database, node.table.name)
            parts, rows_before, granules = counts_by_name.get(name, (0, 0, 0))
            counts_by_name[name] = (
                parts + len(selected.parts),
                rows_before + rows,
                granules + selected.granules,
            )
    finally:
        context.close()
    return [(*name, *counts) for name, counts in sorted(counts_by_name.items())]


def _index_lines(node: Node, context: ExecutionContext) -> Sequence[str]:
    """Return the lines about the indexes of a scan of parts; none for other nodes."""
    if isinstance(node, Aggregate):
        return _projection_lines(node, context)
    if not isinstance(node, Scan) or node.table.id in context.blocks:
        return ()
    return list(_ScanIndexes(node, context).lines())


def _projection_lines(node: Aggregate, context: ExecutionContext) -> Sequence[str]:
    """Return the lines about the projections that hold groups of an aggregation; its scan then
    shows the other parts."""
    scan = scan_below(node.child)
    if scan is None or not may_use_projections(scan, context):
        return ()
    chosen = chosen_projections(node, scan, context)
    context.left_out[id(scan)] = frozenset(chosen)
    return projection_lines([selection for _, selection in chosen.values()])


class _ScanIndexes:
    """The indexes of one scan, tried in turn."""

    def __init__(self, scan: Scan, context: ExecutionContext) -> None:
        self._scan = scan
        self._context = context
        self._layout = TableLayout(scan.table, context.environment)
        self._condition = pruning_condition(scan, self._layout)
        column_of = dict(scan.columns)
        column_of.update({u: c for u, c, _ in scan.predicate_columns})
        used = columns_of(self._condition) if self._condition is not None else frozenset()
        self._used = frozenset(column_of[u] for u in used if u in column_of)

    def lines(self) -> Iterator[str]:
        """Yield the lines about the scan: the numbers of parts and granules that remain, a block for each index, the
        number of ranges, and the projections that are read in place of parts."""
        partition_lines, parts = self._partition_steps()
        column_lines, selected = self._column_steps(parts)
        skip_lines, selected = self._skip_steps(parts, selected)
        yield f"Parts: {len(selected)} | Granules: {sum(p.granules for p in selected)}"
        yield "Indexes:"
        yield from (f"  {line}" for line in (*partition_lines, *column_lines, *skip_lines))
        yield f"  Ranges: {sum(_ranges(part) for part in selected)}"
        names = {source.name for source in scan_sources(self._scan)}
        chosen = projected_selections(self._scan, self._condition, selected, names, self._context)
        yield from projection_lines(chosen)

    def _partition_steps(self) -> tuple[list[str], list[Part]]:
        """Return the lines of the steps Min-Max and Partition, and the parts that remain."""
        parts = live_parts(self._scan, self._context)
        columns = self._layout.partition_columns
        if not columns:
            return [], parts
        in_bounds = self._selector(columns, partitions=False).keep_parts(parts)
        lines = self._step("Min-Max", sorted(columns), columns, parts, in_bounds)
        keys = [show(e) for e in self._layout.partition_expressions]
        in_partitions = self._selector(columns, partitions=True).keep_parts(in_bounds)
        lines += self._step("Partition", keys, columns, in_bounds, in_partitions)
        return lines, in_partitions

    def _column_steps(self, parts: list[Part]) -> tuple[list[str], Sequence[PartSelection]]:
        """Return the lines of PrimaryKey and Statistics, and the selections that remain."""
        sorting_columns = self._layout.sorting_columns
        lines: list[str] = []
        selected: Sequence[PartSelection] = ()
        if sorting_columns:
            selected = self._selector(sorting_columns, partitions=True).select(parts).parts
            keys = [item.expression for item in self._scan.table.sorting_key]
            lines += self._step("PrimaryKey", keys, sorting_columns, parts, selected)
        others = self._used - sorting_columns - self._layout.partition_columns
        if others:
            initial = selected if sorting_columns else parts
            selected = self._selector(None, partitions=True).select(parts).parts
            lines += self._step("Statistics", sorted(others), others, initial, selected)
        elif not sorting_columns:
            selected = self._selector(None, partitions=True).select(parts).parts
        return lines, selected

    def _skip_steps(
        self, parts: list[Part], selected: Sequence[PartSelection]
    ) -> tuple[list[str], Sequence[PartSelection]]:
        """Return the lines of each used skip index, applied one after the other, and the selections that remain."""
        lines: list[str] = []
        names: frozenset[str] = frozenset()
        for name, used in self._selector(None, partitions=True, indexes=None).indexes.items():
            names |= {name}
            remaining = self._selector(None, partitions=True, indexes=names).select(parts).parts
            lines += self._skip_step(used.index, selected, remaining)
            selected = remaining
        return lines, selected

    def _selector(
        self,
        columns: frozenset[str] | None,
        *,
        partitions: bool,
        indexes: frozenset[str] | None = frozenset(),
    ) -> Selector:
        """Return a selector that judges only `columns` (None: all) and the named skip indexes.

        `indexes=None` admits all skip indexes. `partitions` adds the partition values.
        """
        return Selector(
            self._scan,
            self._condition,
            self._layout,
            self._context,
            columns=columns,
            partitions=partitions,
            indexes=indexes,
        )

    def _skip_step(
        self, index: SkipIndex, before: Sequence[PartSelection], after: Sequence[PartSelection]
    ) -> list[str]:
        """Return the lines of one skip index, with parts and granules after/before it."""
        return [
            "Skip",
            f"  Name: {index.name}",
            f"  Description: {index.type} GRANULARITY {index.granularity}",
            f"  Parts: {len(after)}/{len(before)}",
            f"  Granules: {_granules(after)}/{_granules(before)}",
        ]

    def _step(
        self,
        name: str,
        keys: Sequence[str],
        columns: frozenset[str],
        before: Sequence[Part] | Sequence[PartSelection],
        after: Sequence[Part] | Sequence[PartSelection],
    ) -> list[str]:
        """Return the lines of one step: keys, condition, parts and granules after/before it."""
        condition = self._condition_on(columns)
        return [
            name,
            *([f"  Keys: {', '.join(keys)}"] if condition != "true" else []),
            f"  Condition: {condition}",
            f"  Parts: {len(after)}/{len(before)}",
            f"  Granules: {_granules(after)}/{_granules(before)}",
        ]

    def _condition_on(self, columns: frozenset[str]) -> str:
        """Return the text of the conjuncts that read one of these columns, "true" for none."""
        column_of = dict(self._scan.columns)
        column_of.update({u: c for u, c, _ in self._scan.predicate_columns})
        texts = [
            f"({show(condition)})"
            for condition in conjuncts(self._condition)
            if any(column_of.get(u) in columns for u in columns_of(condition))
        ]
        return " AND ".join(texts) or "true"


def _granules(parts: Sequence[Part] | Sequence[PartSelection]) -> int:
    """Return the number of granules of the parts or selections; a part counts as one at least."""
    return sum(
        part.granules if isinstance(part, PartSelection) else max(part.granules, 1)
        for part in parts
    )


def _ranges(part: PartSelection) -> int:
    """Return the number of runs of consecutive row groups in the selection."""
    if part.groups is None:
        return 1
    pairs = zip(part.groups, part.groups[1:], strict=False)
    return 1 + sum(1 for before, after in pairs if after != before + 1)
