"""The versions of a view: their names, and which of them are a candidate or the previous one."""

from __future__ import annotations

from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.views.definition.drop_attach import versions_of


def version_name(name: str, generation: int) -> str:
    """Return the name of a view, or its target, while another version has the original name."""
    return f"{name}__v{generation}"


def candidate_of(snapshot: Snapshot, view: MaterializedView) -> MaterializedView | None:
    """Return the version that an unfinished REBUILD makes; None if there is none."""
    candidates = (
        version for version in versions_of(snapshot, view) if version.standing == "candidate"
    )
    return next(candidates, None)


def previous_of(snapshot: Snapshot, view: MaterializedView) -> MaterializedView | None:
    """Return the version that the last REBUILD replaced; None if it is not kept."""
    previous_versions = (
        version for version in versions_of(snapshot, view) if version.standing == "previous"
    )
    return next(previous_versions, None)
