"""The choice between a part and its projections: which of them has fewer rows to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from olapdb.compute.context import ExecutionContext
from olapdb.engine.layout import TableLayout, layout_of_query
from olapdb.engine.projections import BoundProjection
from olapdb.execute.pruning.granule_selection import PartSelection, Selector
from olapdb.model.part import Part
from olapdb.plan.expressions import Expression
from olapdb.plan.nodes import Scan
from olapdb.storage.projection_reader import ProjectionReader, stored_projection
from olapdb.storage.reader import PartReader


def may_use_projections(scan: Scan, context: ExecutionContext) -> bool:
    """Return whether projections may be read in place of the scanned table's parts.

    FINAL combines rows of the parts' own order, and views compute what they write from the rows
    themselves."""
    table = scan.table
    if not table.projections or scan.final or context.snapshot is None:
        return False
    return context.projections and not (table.id in context.blocks or table.id in context.parts)


def projected_selections(
    scan: Scan,
    condition: Expression | None,
    selections: Sequence[PartSelection],
    names: AbstractSet[str],
    context: ExecutionContext,
) -> tuple[PartSelection, ...]:
    """Return the selections, those of parts replaced of which a normal projection has the columns
    `names` and fewer rows to read."""
    if condition is None or not may_use_projections(scan, context):
        return tuple(selections)
    layout = layout_of_query(scan.table, context.require_store().cache, context.environment)
    candidates = [
        bound
        for bound in layout.projections
        if bound.definition.kind == "Normal"
        and names <= {column.name for column in bound.shape.columns}
    ]
    chosen = {selection.part.id: selection for selection in selections}
    for bound in candidates:
        parts = [s.part for s in selections if len(s.group_rows) > 1]
        by_part = select_projection(scan, condition, bound, parts, context)
        for part_id, selection in by_part.items():
            if sum(selection.group_rows) < sum(chosen[part_id].group_rows):
                chosen[part_id] = selection
    for line in projection_lines(list(chosen.values())):
        context.note(scan, line)
    return tuple(selection for selection in chosen.values() if selection.group_rows)


def projection_lines(selections: Sequence[PartSelection]) -> list[str]:
    """Return a line for each projection that is read: of how many parts, and how many granules."""
    read: dict[str, tuple[int, int]] = {}
    for selection in selections:
        if isinstance(selection.reader, ProjectionReader):
            parts, granules = read.get(selection.reader.name, (0, 0))
            read[selection.reader.name] = parts + 1, granules + len(selection.group_rows)
    return [
        f"Projection: {name} | Parts: {parts} | Granules: {granules}"
        for name, (parts, granules) in sorted(read.items())
    ]


def select_projection(
    scan: Scan,
    condition: Expression | None,
    bound: BoundProjection,
    parts: Sequence[Part],
    context: ExecutionContext,
) -> dict[str, PartSelection]:
    """Return by part id the row groups to read of the projection, for the parts that have it; none of them where no row
    can match. `scan` and `condition` read the projection's columns."""
    readers = {}
    for part in parts:
        reader = projection_reader(bound, part, context)
        if reader is not None:
            readers[part.id] = reader
    if not readers:
        return {}
    layout = TableLayout(bound.shape, context.environment)
    selector = _ProjectionSelector(scan, condition, layout, context, readers)
    selected = selector.select([reader.part for reader in readers.values()])
    by_part = {selection.part.id: selection for selection in selected.parts}
    # Nothing to read of a part is the least.
    for part_id, reader in readers.items():
        if part_id not in by_part:
            by_part[part_id] = PartSelection(reader.part, reader, (), (), ())
    return by_part


def projection_reader(
    bound: BoundProjection, part: Part, context: ExecutionContext
) -> ProjectionReader | None:
    """Return a reader of the part's projection, None if the part lacks it."""
    if part.inline or not part.rows:
        return None
    store, snapshot = context.require_store(), context.require_snapshot()
    reader = PartReader(store, snapshot, part, bound.table, context.environment)
    place = stored_projection(reader, bound.definition, bound.column_types)
    if place is None or reader.converts(bound.columns):
        return None
    normal = bound.definition.kind == "Normal"
    if normal and not all(reader.has_column(column.name) for column in bound.shape.columns):
        return None
    seen = replace(
        part, rows=place.rows, granules=place.granules, bounds=part.bounds if normal else {}
    )
    return ProjectionReader(
        store, snapshot, seen, bound.shape, context.environment, (bound.definition.name, place)
    )


class _ProjectionSelector(Selector):
    """The pruning of a projection of several parts."""

    def __init__(
        self,
        scan: Scan,
        condition: Expression | None,
        layout: TableLayout,
        context: ExecutionContext,
        readers: Mapping[str, ProjectionReader],
    ) -> None:
        super().__init__(scan, condition, layout, context, indexes=frozenset())
        self._readers = readers

    def _read_footers(self, parts: Sequence[Part]) -> None:
        """Do nothing: the footers are read one by one."""

    def _whole(self, part: Part) -> PartSelection:
        """Return the selection of a whole projection."""
        reader = self._readers[part.id]
        rows = reader.group_rows
        offsets = tuple(int(v) for v in np.cumsum((0, *rows))[:-1])
        return PartSelection(part, reader, None, rows, offsets)
