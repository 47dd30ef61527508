"""Checks that two versions of a view can exchange names without losing something."""

from __future__ import annotations

from collections.abc import Iterable

from olapdb import errors
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.schema import MaterializedView, SchemaObject, View
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.views.jobs.job import view_name
from olapdb.views.proof.coverage import bypass
from olapdb.views.versions.followers import readers
from olapdb.views.versions.plain_views import bind_error
from olapdb.views.versions.versions import previous_of


def refuse_writers(snapshot: Snapshot, view: MaterializedView) -> None:
    """Raise HaveDependentObjects if other views write the view's target: they refer to it by id,
    and would stay with the old version's rows."""
    others = [other for other in snapshot.views_into(view.target_id) if other.id != view.id]
    if not others:
        return
    target = target_of(snapshot, view)
    raise errors.HaveDependentObjects(
        f"{view_name(view)} cannot change places with another version: {view_name(others[0])}"
        f" writes its target {target.database}.{target.name}, and would stay with the old one.",
        hint=f"ALTER TABLE {view_name(view)} MODIFY QUERY keeps the target; or DROP VIEW"
        f" {view_name(others[0])}, and create it afterwards.",
    )


def superseded_versions(snapshot: Snapshot, view: MaterializedView) -> tuple[MaterializedView, ...]:
    """Return the versions that the next swap of the view drops: the previous one, and previous
    versions of other views that read its target."""
    previous = previous_of(snapshot, view)
    superseded = {} if previous is None else {previous.id: previous}
    waiting = list(superseded.values())
    while waiting:
        for reader in readers(snapshot, waiting.pop(), superseded):
            if reader.standing == "previous":
                superseded[reader.id] = reader
                waiting.append(reader)
    return tuple(superseded.values())


def refuse_readers(
    snapshot: Snapshot, superseded: Iterable[MaterializedView], current: MaterializedView
) -> None:
    """Raise HaveDependentObjects if other views still read versions that the next swap of the view
    `current` drops."""
    dropped = tuple(superseded)
    for version in dropped:
        remaining = readers(snapshot, version, {current.id, *(v.id for v in dropped)})
        if remaining:
            target, first = target_of(snapshot, version), view_name(remaining[0])
            raise errors.HaveDependentObjects(
                f"{first} still reads {target.database}.{target.name}, the version before the last"
                f" REBUILD of {view_name(current)}, which the next swap drops.",
                hint=f"SYSTEM REBUILD VIEW {first} AS SELECT … from the new version, or DROP VIEW"
                f" {first}, first.",
            )


def refuse_bypass(snapshot: Snapshot, view: MaterializedView) -> None:
    """Raise BypassRows if the target holds rows that no view made: no other version has them."""
    bypass_rows = bypass(view, snapshot)
    if not bypass_rows:
        return
    target = target_of(snapshot, view)
    listed = ", ".join(
        f"{partition or 'all'}: {row_count}" for partition, row_count in bypass_rows.items()
    )
    raise errors.BypassRows(
        f"The target {target.database}.{target.name} of {view_name(view)} holds rows that no view"
        f" made (rows by partition: {listed}); no other version has them.",
        hint=f"SYSTEM ADOPT VIEW {view_name(view)} where they are what the view makes, SYSTEM REPLAY"
        f" VIEW {view_name(view)} DISCARD BYPASS where they are not wanted.",
    )


def refuse_broken_views(
    snapshot: Snapshot, changed: Iterable[SchemaObject], gone: Iterable[str] = ()
) -> None:
    """Raise HaveDependentObjects if a plain view that works would fail once the objects in
    `changed` replace their old forms and those with the ids `gone` are dropped."""
    after = OverlaySnapshot(snapshot, {item.id: item for item in changed}, frozenset(gone))
    for item in after.objects():
        if not isinstance(item, View):
            continue
        before = snapshot.by_id(item.id)
        if isinstance(before, View) and bind_error(before, snapshot) is None:
            error = bind_error(item, after)
            if error is not None:
                name = f"{item.database}.{item.name}"
                raise errors.HaveDependentObjects(
                    f"The view {name} would not work any more: {error.message}",
                    hint=f"CREATE OR REPLACE VIEW {name} so that it fits both versions, or DROP it"
                    " and create it afterwards.",
                )
