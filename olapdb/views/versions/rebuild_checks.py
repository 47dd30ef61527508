"""Checks that a new version of a view can be made, proven and swapped in."""

from __future__ import annotations

from olapdb.errors import BadArguments, RetainedRows, ViewNotProvable
from olapdb.model.schema import MaterializedView
from olapdb.model.snapshot import Snapshot
from olapdb.views.definition.definition import ViewDefinition
from olapdb.views.jobs.job import readable_source, view_name
from olapdb.views.proof.coverage import stores_rows
from olapdb.views.versions.exchange_checks import (
    refuse_bypass,
    refuse_readers,
    refuse_writers,
    superseded_versions,
)


def refuse_rebuild(
    snapshot: Snapshot, view: MaterializedView, discard_retained: bool = False
) -> None:
    """Raise if another version could not take the view's place without losing something.

    Raises BadArguments for a detached view, ViewNotProvable for a target without stored rows, the
    errors of `readable_source`, HaveDependentObjects and BypassRows. Raises RetainedRows if source
    rows left by retention; `discard_retained` accepts the loss of their results."""
    name = view_name(view)
    if not view.attached:
        raise BadArguments(
            f"View {name} is detached: INSERTs do not fire it, but would fire its new version.",
            hint=f"SYSTEM START VIEW {name} first.",
        )
    readable_source(snapshot, view, "REBUILD")
    if not stores_rows(snapshot, view.target_id):
        raise ViewNotProvable(
            f"REBUILD VIEW {name}: its target keeps no rows that could be compared.",
            hint=f"CREATE OR REPLACE MATERIALIZED VIEW {name} TO a table that stores rows.",
        )
    refuse_writers(snapshot, view)
    refuse_readers(snapshot, superseded_versions(snapshot, view), view)
    refuse_bypass(snapshot, view)
    lost_rows = sum(entry.rows for entry in snapshot.retained(view.id) if entry.side == "source")
    if lost_rows and not discard_retained:
        raise RetainedRows(
            f"REBUILD VIEW {name}: {lost_rows} rows of its source have left by retention; a new version"
            " could not be made of them.",
            hint=f"ALTER TABLE {name} MODIFY QUERY and SYSTEM REPLAY VIEW {name} STALE keep what was"
            " made of them; SETTINGS discard_retained = 1 builds a version without it.",
        )


def refuse_version(snapshot: Snapshot, view: MaterializedView) -> None:
    """Raise BadArguments if the view is itself a version of another view."""
    if not view.standing:
        return
    original = snapshot.by_id(view.stands_beside)
    name = f"{original.database}.{original.name}" if original is not None else "the view"
    raise BadArguments(
        f"{view_name(view)} is a version of {name}.", hint=f"SYSTEM REBUILD VIEW {name}."
    )


def refuse_unprovable(
    snapshot: Snapshot, view: MaterializedView, definition: ViewDefinition
) -> None:
    """Raise ViewNotProvable if the new version could not be compared with its source."""
    reason = definition.unprovable
    if not reason and not stores_rows(snapshot, definition.source.id):
        reason = "The source keeps no rows that could be read again."
    if reason:
        at_insert = dict(definition.settings).get("dimensions") == "at_insert"
        alternative = (
            "SETTINGS dimensions = 'current' builds one that can be; " if at_insert else ""
        )
        raise ViewNotProvable(
            f"REBUILD VIEW {view_name(view)}: the new version could not be proven. {reason}",
            hint=f"{alternative}CREATE OR REPLACE MATERIALIZED VIEW {view_name(view)} replaces it unproven.",
        )


def refuse_lost_rows(
    snapshot: Snapshot, view: MaterializedView, candidate: MaterializedView
) -> None:
    """Raise RetainedRows if source rows left by retention before the candidate had seen them."""
    if view.source_id != candidate.source_id:
        return
    rows_of_view, rows_of_candidate = (
        _retained(snapshot, version) for version in (view, candidate)
    )
    lost_by_partition = {
        partition: rows
        for partition, rows in rows_of_view.items()
        if rows_of_candidate.get(partition, 0) < rows
    }
    if lost_by_partition:
        listed = ", ".join(
            f"{partition_id or 'all'}: {row_count}"
            for partition_id, row_count in sorted(lost_by_partition.items())
        )
        raise RetainedRows(
            "Source rows left by retention before the new version had seen them (by partition:"
            f" {listed}); only {view_name(view)} has what was made of them.",
            hint="SETTINGS discard_retained = 1 swaps without it.",
        )


def _retained(snapshot: Snapshot, view: MaterializedView) -> dict[str, int]:
    """Return how many source rows left by retention, by source partition."""
    entries = (entry for entry in snapshot.retained(view.id) if entry.side == "source")
    return {entry.partition: entry.rows for entry in entries}
