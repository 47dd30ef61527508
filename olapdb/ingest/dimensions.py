"""Which slices of which views a change of a table that they join made stale.

A table that a view reads beside its source is one of its dimensions.
"""

from __future__ import annotations

from olapdb.ingest.invalidate import StaleSlices
from olapdb.model.changes import Change, DimensionViewsAre, NothingCovered, Requirement
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Cause


def dimension_views(snapshot: Snapshot, table_ids: set[str]) -> list[MaterializedView]:
    return [
        item for item in snapshot.objects()
        if isinstance(item, MaterializedView) and not table_ids.isdisjoint(item.dimension_ids)
    ]  # fmt: skip


def dimension_changed(
    snapshot: Snapshot, table_ids: set[str], cause: Cause, statement: str, query_id: str,
    rows: int, since_ms: int,
) -> tuple[list[Change], list[Requirement]]:  # fmt: skip
    """Everything that views made with these tables as dimensions is stale; a view that has made
    nothing yet is not, and the commit requires that this stays so."""
    changes: list[Change] = []
    requirements: list[Requirement] = [
        DimensionViewsAre(
            one, tuple((v.id, v.version) for v in dimension_views(snapshot, {one}))
        )
        for one in sorted(table_ids)
    ]
    for view in dimension_views(snapshot, table_ids):
        coverage = snapshot.coverage(view.id)
        if coverage.everywhere or any(coverage.by_partition.values()):
            stale = StaleSlices.of(view)
            stale.add_all(rows)
            changes += stale.invalidations(cause, statement, query_id, since_ms)
        else:
            requirements.append(NothingCovered(view.id))
    return changes, requirements
