"""SETTINGS force_primary_key, force_index_by_date and force_data_skipping_indices: a SELECT that does
not use the index fails before it reads anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from olapdb.compute.context import ExecutionContext
from olapdb.config import Settings
from olapdb.engine.layout import TableLayout
from olapdb.errors import IndexNotUsed
from olapdb.execute.operators.scan import scan_conditions, scan_sources
from olapdb.execute.pruning.granule_selection import Selector, live_parts
from olapdb.execute.pruning.skip_index import index_names
from olapdb.lazy import LazyModule
from olapdb.model.part import Part
from olapdb.plan.expressions import columns_of
from olapdb.plan.nodes import Plan, Scan
from olapdb.plan.tree import all_scans

if TYPE_CHECKING:
    from olapdb.execute.operators import final
else:
    final = LazyModule("olapdb.execute.operators.final")


def check_forced_indexes(plan: Plan, context: ExecutionContext) -> None:
    """Raise IndexNotUsed if the plan reads a MergeTree table without an index that a setting forces.

    Tables without rows, and scans that read no rows (`count()`), are exempt. The plan must be
    optimized, so that its conditions are at the scans."""
    settings = Settings.of(context.settings)
    primary = settings.boolean("force_primary_key")
    partition = settings.boolean("force_index_by_date")
    names = index_names(settings.text("force_data_skipping_indices"))
    if not (primary or partition or names):
        return
    for scan in all_scans(plan.root):
        if not scan.table.engine.is_merge_tree:
            continue
        if not scan_conditions(scan) and not scan_sources(scan):
            continue
        parts = live_parts(scan, context)
        if not parts:
            continue
        forced = _ForcedIndexes(scan, parts, context)
        if partition:
            forced.partition_key()
        if primary:
            forced.primary_key()
        forced.skip_indexes(names)


class _ForcedIndexes:
    """The checks of one scan."""

    def __init__(self, scan: Scan, parts: Sequence[Part], context: ExecutionContext) -> None:
        self._scan, self._parts, self._context = scan, parts, context
        self._layout = TableLayout(scan.table, context.environment)
        self._condition = final.pruning_condition(scan, self._layout)

    def primary_key(self) -> None:
        """Raise IndexNotUsed if the primary key cannot prune the parts."""
        table = self._scan.table
        expressions = self._layout.sorting_expressions[: table.primary_key]
        columns = frozenset().union(*map(columns_of, expressions))
        if not self._selector(columns, partitions=False).is_used(self._parts):
            key = ", ".join(i.expression for i in table.sorting_key[: table.primary_key])
            self._refuse(f"Primary key ({key}) is not used", "force_primary_key", "is set")

    def partition_key(self) -> None:
        """Raise IndexNotUsed if the table has a partition key that cannot prune the parts."""
        columns = self._layout.partition_columns
        if not self._layout.partition_expressions:
            return
        if not self._selector(columns, partitions=True).is_used(self._parts):
            self._refuse(
                f"Neither the bounds of ({', '.join(sorted(columns))}) nor the partition key is used",
                "force_index_by_date",
                "is set",
            )

    def skip_indexes(self, names: Sequence[str]) -> None:
        """Raise IndexNotUsed if any of the named skip indexes is not used.

        Does nothing if `use_skip_indexes` is off.
        """
        if not names or not Settings.of(self._context.settings).boolean("use_skip_indexes"):
            return
        used = self._selector(None, partitions=True).indexes
        for name in names:
            if name not in used:
                self._refuse(
                    f"Index `{name}` is not used", "force_data_skipping_indices", "contains it"
                )

    def _selector(self, columns: frozenset[str] | None, *, partitions: bool) -> Selector:
        """Return a selector that judges only `columns` (None: all), with all skip indexes.

        `partitions` adds the values of the partition key.
        """
        return Selector(
            self._scan,
            self._condition,
            self._layout,
            self._context,
            columns=columns,
            partitions=partitions,
        )

    def _refuse(self, what: str, setting: str, why: str) -> None:
        """Raise IndexNotUsed: "table: `what` and setting '`setting`' `why`"."""
        table = self._scan.table
        raise IndexNotUsed(
            f"{table.database}.{table.name}: {what} and setting '{setting}' {why}.",
            hint="Add a condition that it can tell apart, or leave the setting out; EXPLAIN indexes"
            " = 1 shows what is used.",
        )
