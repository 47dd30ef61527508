"""The requirements of a commit that read dimensions: their rows and schemas are unchanged."""

from __future__ import annotations

from olapdb.model.requirements import PartsOfPartitionAre, Requirement, SchemaIs
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot


def dimension_requirements(
    view: MaterializedView, snapshot: Snapshot
) -> list[tuple[Requirement, tuple[str, str] | None]]:
    """Return the requirements that the view's dimensions are unchanged since the snapshot.

    Each comes with the (view id, table id) whose rows it is about, None if it is about the
    schema.  Rows of dimensions that are read at_insert are not required: they may change while they
    are read.
    """
    requirements: list[tuple[Requirement, tuple[str, str] | None]] = []
    for table_id in view.dimension_ids:
        table = snapshot.by_id(table_id)
        if not isinstance(table, Table):
            continue
        ids = tuple(sorted(part.id for part in snapshot.parts(table_id)))
        requirements.append((SchemaIs(table_id, table.version), None))
        if view.dimension_mode == "current":
            requirements.append((PartsOfPartitionAre(table_id, None, ids), (view.id, table_id)))
    return requirements
