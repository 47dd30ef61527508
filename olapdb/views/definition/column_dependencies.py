"""Columns that views need, and whether an altered table still serves its views.

A view needs a column in three cases. Its query reads the column, of its source or of a dimension,
through plain views too. Its query fails or reads other columns without it. Or the view writes it.
The binder decides, so there is no second notion of names here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal, TypeAlias

from olapdb.errors import AlterOfColumnIsForbidden, Error, TypeMismatch, ViewNotProvable
from olapdb.functions.base import Environment
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.schema import MaterializedView, SchemaObject, Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.nodes import Plan
from olapdb.plan.tree import all_scans
from olapdb.records import dataclass
from olapdb.types import DataType, is_nullable
from olapdb.views.definition.canonical_plan import canonical_plan
from olapdb.views.definition.column_compatibility import check_columns
from olapdb.views.definition.judgement import (
    Rejudged,
    bind_view,
    bound_definition,
    judgement_change,
    judgement_of,
)
from olapdb.views.provability import RULES, added_keys, fills_otherwise

Role: TypeAlias = Literal["source", "target", "dimension"]


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """A view's need for a column of a table; the table is the view's `role`."""

    view: MaterializedView
    role: Role

    @property
    def name(self) -> str:
        """Return the view as "database.name"."""
        return f"{self.view.database}.{self.view.name}"


def views_needing_column(snapshot: Snapshot, table_id: str, column: str) -> tuple[ColumnUse, ...]:
    """Return the materialized views that would break, or mean something else, without the column,
    by (database, name). A view that is already broken needs nothing."""
    table = snapshot.by_id(table_id)
    if not isinstance(table, Table):
        return ()
    other_columns = tuple(other for other in table.columns if other.name != column)
    snapshot_without = OverlaySnapshot.of(snapshot, replace(table, columns=other_columns))
    uses: list[ColumnUse] = []
    for view in _views(snapshot):
        role = _role(view, table_id)
        if role is None:
            continue
        plan = _bound(view, snapshot)
        if plan is None:
            continue
        if role == "target" and column in plan.names:
            uses.append(ColumnUse(view, role))
        elif _reads(plan, table_id, column) or _bound(view, snapshot_without) is None:
            uses.append(ColumnUse(view, "source" if role == "source" else "dimension"))
    return tuple(uses)


def refuse_needed_column(
    snapshot: Snapshot, table: Table, column: str, action: str = "DROP"
) -> None:
    """Raise AlterOfColumnIsForbidden (524) if a materialized view needs the column, with the views
    and what to do first. `action` is the ALTER's verb: "DROP", "CLEAR"."""
    uses = views_needing_column(snapshot, table.id, column)
    if not uses:
        return
    kept = dict.fromkeys(use.name for use in uses if use.view.standing == "previous")
    live = [use for use in uses if use.name not in kept]
    first = (live or uses)[0]
    hints = []
    if live:
        hints.append(
            f"ALTER TABLE {first.name} MODIFY QUERY to a SELECT without it, then {action} it; or"
            f" DROP VIEW {first.name}."
        )
    if kept:
        drops = "; ".join(f"DROP VIEW {name}" for name in kept)
        hints.append(f"{drops}: a REBUILD replaced it, and it is kept for a ROLLBACK only.")
    usage = "writes it" if first.role == "target" else f"reads it of its {first.role}"
    raise AlterOfColumnIsForbidden(
        f"Cannot {action} COLUMN {column} of {table.database}.{table.name}: {first.name} {usage}"
        " (materialized views that need it:"
        f" {', '.join(dict.fromkeys(use.name for use in uses))}).",
        hint=" ".join(hints),
    )


def check_altered(
    snapshot: Snapshot, altered: Table, action: str, rewritten: Iterable[SchemaObject] = ()
) -> tuple[Rejudged, ...]:
    """Raise AlterOfColumnIsForbidden, with the reason, if a materialized view of the table would
    not work once it is `altered`: its query must bind and fit its target as at CREATE. Views that
    are already broken are skipped. `rewritten` are views whose text the ALTER changes.

    Returns the views whose stored reason changes or whose rows become stale; see
    `judgement_change`.
    """
    after = OverlaySnapshot.of(snapshot, altered, *rewritten)
    rejudged_views: list[Rejudged] = []
    for view in _views(after):
        # The old text over the old table: a new text could mean something else there.
        old_view = snapshot.by_id(view.id)
        before = _bound(old_view, snapshot) if isinstance(old_view, MaterializedView) else None
        if _role(view, altered.id) is None or before is None:
            continue
        name = f"{view.database}.{view.name}"
        try:
            plan = _checked_plan(view, name, after)
            _refuse_new_nulls(view, name, (before, snapshot), (plan, after))
            if action == "alter":
                view = _with_added_keys(view, snapshot, altered)
            rejudged = _rejudged(view, name, (before, snapshot), (plan, after), altered)
        except Error as error:
            raise AlterOfColumnIsForbidden(
                f"Cannot {action} {altered.database}.{altered.name}: the materialized view {name}"
                f" would not fit any more. {error.message}",
                hint=hint_of_unfit(view),
            ) from error
        if rejudged is not None:
            rejudged_views.append(rejudged)
    return tuple(rejudged_views)


def hint_of_unfit(view: MaterializedView) -> str:
    """Return what to do with a view that forbids a change because it would not fit any more."""
    name = f"{view.database}.{view.name}"
    if view.standing == "previous":
        return (
            f"DROP VIEW {name}: the last REBUILD replaced it, and it is kept for a ROLLBACK only."
        )
    return f"ALTER TABLE {name} MODIFY QUERY first, or DROP VIEW {name}."


def _checked_plan(view: MaterializedView, name: str, after: Snapshot) -> Plan:
    """Return the view's plan after the ALTER, its columns checked against the target."""
    target = after.by_id(view.target_id)
    plan = bind_view(view, after)
    if isinstance(target, Table):
        check_columns(name, plan, target, (), after, Environment(zone=view.zone))
    return plan


def _with_added_keys(view: MaterializedView, before: Snapshot, altered: Table) -> MaterializedView:
    """Return the view with the keys that the ALTER adds to its target, and without those that are no keys any
    more."""
    target = before.by_id(view.target_id)
    if altered.id != view.target_id or not isinstance(target, Table):
        return view
    return replace(view, added_keys=added_keys(target, altered, view.added_keys))


def _rejudged(
    view: MaterializedView,
    name: str,
    before: tuple[Plan, Snapshot],
    after: tuple[Plan, Snapshot],
    altered: Table,
) -> Rejudged | None:
    """Return the change of the view's judgement, or None. Raise ViewNotProvable if merges would
    corrupt the target from now on; a view for which that held before stays unproven."""
    new_judgement = judgement_of(view, after[1], after[0])
    old_view = before[1].by_id(view.id)
    old_judgement = judgement_of(
        old_view if isinstance(old_view, MaterializedView) else view, before[1], before[0]
    )
    if new_judgement is None:
        return None
    refused_item = next((item for item in new_judgement.items if item.refused), None)
    if refused_item is not None and (
        old_judgement is None or not any(item.refused for item in old_judgement.items)
    ):
        raise ViewNotProvable(
            f"View {name} would go wrong: {refused_item.because}", hint=refused_item.fix
        )
    if _means_otherwise(view, before, after, altered):
        # Another version, so that an INSERT or a job that ran the old meaning does not commit.
        changed = replace(
            view, unprovable=new_judgement.reason, judged_by=RULES, version=view.version + 1
        )
        return Rejudged(changed, "ALTER")
    change = judgement_change(
        view, old_judgement, new_judgement, _fills_otherwise(view, before[1], after)
    )
    keeps_keys = isinstance(old_view, MaterializedView) and old_view.added_keys == view.added_keys
    return Rejudged(view) if change is None and not keeps_keys else change


def _means_otherwise(
    view: MaterializedView,
    before: tuple[Plan, Snapshot],
    after: tuple[Plan, Snapshot],
    altered: Table,
) -> bool:
    """Return whether a name in the view's query means another column than before, since the altered
    table has gained a column of that name, or lost it:

        SELECT k, sum(z) FROM s LEFT JOIN d USING (k)     z of d, until s has a column z

    The query is bound over the table with its old names too; names of columns that it read, which
    a RENAME follows, stay the new ones. The two plans differ if it depends on the others."""
    old_table = before[1].by_id(altered.id)
    old_columns = old_table.columns if isinstance(old_table, Table) else ()
    old_names = {column.name for column in old_columns}
    read_ids = {column.id for column in old_columns if _reads(before[0], altered.id, column.name)}
    kept = [c for c in altered.columns if c.name in old_names or c.id in read_ids]
    lost = [c for c in old_columns if altered.column(c.name) is None and c.id not in read_ids]
    if len(kept) == len(altered.columns) and not lost:
        return False
    plan = _bound(view, OverlaySnapshot.of(after[1], replace(altered, columns=(*kept, *lost))))
    return plan is None or canonical_plan(plan) != canonical_plan(after[0])


def _fills_otherwise(
    view: MaterializedView, before: Snapshot, after: tuple[Plan, Snapshot]
) -> bool:
    """Return whether the ALTER makes the view's target fill its own columns differently."""
    target, definition = before.by_id(view.target_id), bound_definition(view, after[1], after[0])
    if not isinstance(target, Table) or definition is None or target is definition.target:
        return False
    return fills_otherwise(target, definition)


def _refuse_new_nulls(
    view: MaterializedView, name: str, before: tuple[Plan, Snapshot], after: tuple[Plan, Snapshot]
) -> None:
    """Raise TypeMismatch if a column of the view becomes Nullable while its target's is not: an
    INSERT with a NULL would fail. Columns for which that held before the ALTER are not refused."""
    # By place, since a RENAME changes the names.
    places_before = {place for place, _, _ in _nulls_without_target(view, *before)}
    for place, data_type, target_type in _nulls_without_target(view, *after):
        if place not in places_before:
            column = after[0].names[place]
            raise TypeMismatch(
                f"View {name}: column {column} would be {data_type}, the target stores"
                f" {target_type}, and so no NULL: an INSERT that brings one would fail.",
                hint=f"Make the target's column {data_type}, or give ifNull({column}, …) in the"
                " query.",
            )


def _nulls_without_target(
    view: MaterializedView, plan: Plan, snapshot: Snapshot
) -> list[tuple[int, DataType, DataType]]:
    """Return (place in the plan, type, target type) of Nullable columns whose target column is not."""
    target = snapshot.by_id(view.target_id)
    if not isinstance(target, Table):
        return []
    return [
        (place, data_type, target_column.type)
        for place, (name, data_type) in enumerate(zip(plan.names, plan.types, strict=True))
        if (target_column := target.column(name)) is not None
        and is_nullable(data_type)
        and not is_nullable(target_column.type)
    ]


def _bound(view: MaterializedView, snapshot: Snapshot) -> Plan | None:
    """Return the view's plan, None if its query does not bind."""
    try:
        return bind_view(view, snapshot)
    except Error:
        return None


def _reads(plan: Plan, table_id: str, column: str) -> bool:
    """Return whether the plan reads the table's column."""
    return any(
        column == name
        for scan in all_scans(plan.root)
        if scan.table.id == table_id
        for _, name in scan.columns
    )


def _role(view: MaterializedView, table_id: str) -> Role | None:
    """Return the role of the table for the view, or None."""
    if table_id == view.source_id:
        return "source"
    if table_id == view.target_id:
        return "target"
    return "dimension" if table_id in view.dimension_ids else None


def _views(snapshot: Snapshot) -> Iterator[MaterializedView]:
    """Yield the materialized views of the snapshot."""
    for item in snapshot.objects():
        if isinstance(item, MaterializedView):
            yield item
