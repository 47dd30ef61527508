"""EXPLAIN indexes = 1: the parts and granules that each index leaves, laid out as ClickHouse does.

The indexes are tried one after the other as the scan does at once: the bounds of the partition
key's columns, the partitions' values, the sorting key's bounds by part and row group, and the
bounds of all other columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from olapdb.compute.context import ExecutionContext
from olapdb.engine.layout import TableLayout
from olapdb.execute.operators.final import key_conditions
from olapdb.execute.operators.subqueries import answer_subqueries
from olapdb.execute.pruning.granule_selection import PartSelection, Selector, live_parts
from olapdb.execute.run import run_node
from olapdb.model.part import Part
from olapdb.model.schema import SkipIndex
from olapdb.plan.conditions import all_of_any, conjuncts
from olapdb.plan.explain import explain, show
from olapdb.plan.expressions import Expression, columns_of
from olapdb.plan.nodes import Node, Plan, Scan


def explain_indexes(plan: Plan, context: ExecutionContext) -> list[str]:
    """The plan's tree; below each scan of a stored table what its indexes left, selected/initial.

    Runs the subqueries of conditions (their values prune), reads footers, and no rows.
    """
    try:
        answer_subqueries(plan.root, context, run_node)
        return explain(plan, lambda node: _index_lines(node, context))
    finally:
        context.close()


def _index_lines(node: Node, context: ExecutionContext) -> Sequence[str]:
    if not isinstance(node, Scan) or node.table.id in context.blocks:
        return ()
    return list(_ScanIndexes(node, context).lines())


class _ScanIndexes:
    """One scan's indexes, tried in turn."""

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
        parts = live_parts(self._scan, self._context)
        body: list[str] = []
        layout = self._layout
        before = parts
        if layout.partition_columns:
            parts = self._selector(layout.partition_columns, partitions=False).keep_parts(before)
            keys = sorted(layout.partition_columns)
            body += self._step("Min-Max", keys, layout.partition_columns, before, parts)
            before = parts
            parts = self._selector(layout.partition_columns, partitions=True).keep_parts(before)
            body += self._step(
                "Partition",
                [show(e) for e in layout.partition_expressions],
                layout.partition_columns,
                before,
                parts,
            )
        kept = parts
        selected: Sequence[PartSelection] = ()
        if layout.sorting_columns:
            selected = self._selector(layout.sorting_columns, partitions=True).select(kept).parts
            keys = [item.expression for item in self._scan.table.sorting_key]
            body += self._step("PrimaryKey", keys, layout.sorting_columns, kept, selected)
        others = self._used - layout.sorting_columns - layout.partition_columns
        if others:
            initial = selected if layout.sorting_columns else kept
            left = self._selector(None, partitions=True).select(kept).parts
            body += self._step("Statistics", sorted(others), others, initial, left)
            selected = left
        elif not layout.sorting_columns:
            selected = self._selector(None, partitions=True).select(kept).parts
        asked: frozenset[str] = frozenset()
        every = self._selector(None, partitions=True, indexes=None).indexes
        for name, used in every.items():
            asked |= {name}
            left = self._selector(None, partitions=True, indexes=asked).select(kept).parts
            body += self._skip_step(used.index, selected, left)
            selected = left
        yield f"Parts: {len(selected)} | Granules: {sum(p.granules for p in selected)}"
        yield "Indexes:"
        yield from (f"  {line}" for line in body)
        yield f"  Ranges: {sum(_ranges(part) for part in selected)}"

    def _selector(
        self,
        columns: frozenset[str] | None,
        *,
        partitions: bool,
        indexes: frozenset[str] | None = frozenset(),
    ) -> Selector:
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
        condition = self._condition_on(columns)
        return [
            name,
            *([f"  Keys: {', '.join(keys)}"] if condition != "true" else []),
            f"  Condition: {condition}",
            f"  Parts: {len(after)}/{len(before)}",
            f"  Granules: {_granules(after)}/{_granules(before)}",
        ]

    def _condition_on(self, columns: frozenset[str]) -> str:
        """The conjuncts that say something of these columns."""
        column_of = dict(self._scan.columns)
        column_of.update({u: c for u, c, _ in self._scan.predicate_columns})
        said = [
            show(one)
            for one in conjuncts(self._condition)
            if any(column_of.get(u) in columns for u in columns_of(one))
        ]
        return " AND ".join(f"({one})" for one in said) or "true"


def pruning_condition(scan: Scan, layout: TableLayout) -> Expression | None:
    """What a scan prunes by: with FINAL only what drops whole keys."""
    if scan.final and scan.table.engine.combines:
        return all_of_any([*conjuncts(scan.prewhere), *key_conditions(scan, layout)])
    return all_of_any([*conjuncts(scan.prewhere), *conjuncts(scan.predicate)])


def _granules(parts: Sequence[Part] | Sequence[PartSelection]) -> int:
    return sum(
        part.granules if isinstance(part, PartSelection) else max(part.granules, 1)
        for part in parts
    )


def _ranges(part: PartSelection) -> int:
    """Runs of neighbouring row groups."""
    if part.groups is None:
        return 1
    pairs = zip(part.groups, part.groups[1:], strict=False)
    return 1 + sum(1 for before, after in pairs if after != before + 1)
