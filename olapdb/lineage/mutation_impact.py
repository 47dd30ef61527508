"""The views that a statement makes stale, gathered while it rewrites a table's rows.

A view is affected by rows that it has processed, where a column that it reads changes. The slices
that the old and the new rows reach become stale.  An ALTER that only changes how rows read affects
the views as an UPDATE of all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

import pyarrow as pa

from olapdb.errors import Error
from olapdb.ingest.trigger import TriggerContext, bound_view
from olapdb.lineage.dimension_change import dimension_views
from olapdb.lineage.invalidation import StaleSlices, processed_parts
from olapdb.lineage.type_change import depends_on_width, stores_types
from olapdb.model.part import Part
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.expressions import Expression
from olapdb.plan.nodes import Node
from olapdb.plan.tree import all_nodes, columns_read, expressions_of
from olapdb.records import dataclass


@dataclass
class StaleViews:
    """The views that a mutation makes stale. `table` is the new version; `context` reads the
    snapshot, so views are bound to the old one.

    `slices` are by the id of a view on the table. `rejoined` holds the views that read the table as
    a dimension and whose joined rows all read differently.
    """

    snapshot: Snapshot
    table: Table
    context: TriggerContext
    slices: dict[str, StaleSlices] = field(default_factory=dict)
    rejoined: set[str] = field(default_factory=set)
    _read_columns: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def table_before(self) -> Table:
        """Return the table in the snapshot."""
        table = self.snapshot.by_id(self.table.id)
        assert isinstance(table, Table)
        return table

    def affected_views(
        self,
        columns: frozenset[str],
        joined: frozenset[str],
        widened: frozenset[str],
        after: TriggerContext,
    ) -> list[MaterializedView]:
        """Return the views on the table whose results may change when rows read differently in
        these columns. Add to `rejoined` the views that join the table and read one of `joined`.
        `widened` are columns whose integers only got a wider type; `after` reads the altered
        table."""
        for view in dimension_views(self.snapshot, {self.table.id}):
            if self._is_affected(view, joined, widened, after):
                self.rejoined.add(view.id)
        return [
            view
            for view in self.snapshot.views_on(self.table.id)
            if self._is_affected(view, columns, widened, after)
        ]

    def add_all_slices(self, views: Iterable[MaterializedView], parts: Sequence[Part]) -> None:
        """Add all slices of those views that have processed one of the parts."""
        for view in views:
            seen, _ = processed_parts(view, parts, self.snapshot)
            if seen:
                slices = self.slices.setdefault(view.id, StaleSlices.of(view))
                slices.add_all(sum(part.rows for part in seen))

    def add_changed_rows(
        self, part: Part, written: frozenset[str], changed: Iterable[pa.Table]
    ) -> None:
        """Add the slices of the views that have processed the part and read a changed column. A
        view's columns have the names from before this ALTER."""
        ids = {c.id for c in self.table.columns if c.name in written}
        written = frozenset(c.name for c in self.table_before.columns if c.id in ids)
        for view in self.snapshot.views_on(self.table.id):
            seen, _ = processed_parts(view, (part,), self.snapshot)
            if not seen or not self._columns_of(view) & written:
                continue
            slices = self.slices.setdefault(view.id, StaleSlices.of(view))
            slices.add(self.context, *changed)

    def _is_affected(
        self,
        view: MaterializedView,
        columns: frozenset[str],
        widened: frozenset[str],
        after: TriggerContext,
    ) -> bool:
        """Return whether the view's result may change when `columns` read differently.

        `widened` are columns whose integers only got a wider type; `after` reads the altered table.
        """
        read = self._columns_of(view)
        if read & columns:
            return True
        before = self.table_before
        if any(c.name in columns and c.default_kind == "ALIAS" for c in before.columns):
            return self._binds_otherwise(view, after)
        if not read & widened:
            return False
        bound = bound_view(view, self.context)
        return depends_on_width(bound.plan.root) or stores_types(bound.plan, bound.target)

    def _binds_otherwise(self, view: MaterializedView, after: TriggerContext) -> bool:
        """Return whether the view computes other expressions on the altered table: a plan has
        the expression of an ALIAS column, not its name."""
        try:
            root_before, root_after = (
                bound_view(view, self.context).plan.root,
                bound_view(view, after).plan.root,
            )
        except Error:
            return True
        return _expressions(root_before) != _expressions(root_after)

    def _columns_of(self, view: MaterializedView) -> frozenset[str]:
        """Return the columns of the table that the view reads; all of them where the view is
        broken."""
        if view.id not in self._read_columns:
            self._read_columns[view.id] = columns_read_by(view, self.table, self.context)
        return self._read_columns[view.id]


def columns_read_by(
    view: MaterializedView, table: Table, context: TriggerContext
) -> frozenset[str]:
    """Return the columns of the table that the view reads; all of them where the view is broken."""
    try:
        plan = bound_view(view, context).plan
    except Error:
        return frozenset(c.name for c in table.columns)
    return columns_read(plan.root, table.id)


def _expressions(root: Node) -> list[tuple[Expression, ...]]:
    """Return all expressions of a plan, in subqueries too."""
    return [expressions_of(node) for node in all_nodes(root)]
