"""CREATE OR REPLACE of a table that views read: it keeps its identity and gets other rows.

A view refers to its source and its dimensions by id, so it would not read a replacement with a new
id. The new definition takes over the id of the old one. As a dimension, the rows that differ decide
which view slices become stale. As a source, views fire on the new rows, and all that they made of
the old ones is stale until SYSTEM REPLAY VIEW; if the definition is the same, only the rows that
differ are exchanged. A dbt run replaces a model in this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from olapdb.bind import bind_query
from olapdb.commit.draft import CommitDraft, publish
from olapdb.errors import Error
from olapdb.lineage.dimension_change import dimension_views
from olapdb.lineage.effects import SourceChange, TableWrite, effects_of
from olapdb.lineage.invalidation import all_slices
from olapdb.lineage.row_removal import raise_data_versions
from olapdb.model.changes import Change, ForgetDeliveries, PutObject, RemoveParts
from olapdb.model.columns import next_column_id
from olapdb.model.part import detached_table
from olapdb.model.requirements import (
    NoDependents,
    PartsOfPartitionAre,
    Requirement,
    RevisionIs,
    SchemaIs,
)
from olapdb.model.schema import Column, MaterializedView, SchemaObject, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.plan.tree import columns_read
from olapdb.sql.parser import parse_query
from olapdb.statements.context import StatementContext
from olapdb.views.definition.dependents import check_altered, impact_of
from olapdb.views.definition.judgement import bind_view, rejudged_draft


def keeps_identity(snapshot: Snapshot, item: SchemaObject) -> bool:
    """Return whether materialized views read the object and a replacement can take its identity.

    It cannot if a view writes the object, if it is no table of the MergeTree family, or if it has
    `deduplicate_by`.
    """
    if not isinstance(item, Table) or not item.engine.is_merge_tree:
        return False
    if item.setting("deduplicate_by"):
        return False  # the remembered keys of the old rows would reject the new ones
    views = _views_that_need(snapshot, item)
    return bool(views) and all(_only_reads(view, item) for view in views)


def _views_that_need(snapshot: Snapshot, item: SchemaObject) -> list[MaterializedView]:
    """Return the materialized views that read or write the object."""
    return [
        view
        for view in snapshot.objects()
        if isinstance(view, MaterializedView) and view.needs(item.id)
    ]


def _only_reads(view: MaterializedView, table: Table) -> bool:
    """Return whether the table is the view's source or a dimension of it, and not its target."""
    return view.target_id != table.id and table.id in (view.source_id, *view.dimension_ids)


def with_identity_of(made: Table, existing: Table, snapshot: Snapshot) -> Table:
    """Return the new definition under the old id, with the next version. Columns of the same name and type keep
    their ids; others get new ones.

    Raises AlterOfColumnIsForbidden if a view would not work any more."""
    last_id = next_column_id(existing) - 1
    columns: list[Column] = []
    for column in made.columns:
        old_column = existing.column(column.name)
        if old_column is not None and old_column.type == column.type:
            columns.append(replace(column, id=old_column.id))
        else:
            last_id += 1
            columns.append(replace(column, id=last_id))
    table = replace(
        made,
        id=existing.id,
        columns=tuple(columns),
        version=existing.version + 1,
        revision=existing.revision,
        last_column_id=last_id,
    )
    check_altered(snapshot, table, "replace")
    return table


def only_rows_differ(made: Table, existing: Table, snapshot: Snapshot) -> bool:
    """Return whether a source of views is replaced by a table of the same definition, so that its
    rows can be exchanged. Comments that the new definition lacks are kept."""
    if not any(view.source_id == existing.id for view in _views_that_need(snapshot, existing)):
        return False
    columns = tuple(
        replace(column, since=old.since, comment=column.comment or old.comment)
        for column, old in zip(made.columns, existing.columns, strict=False)
    )
    kept = replace(
        made,
        columns=columns,
        comment=made.comment or existing.comment,
        version=existing.version,
        created_ms=existing.created_ms,
        last_column_id=existing.last_column_id,
    )
    return len(made.columns) == len(existing.columns) and kept == existing


def broken_views(
    made: SchemaObject, existing: SchemaObject, context: StatementContext
) -> list[str]:
    """Return a warning for each plain view that reads a replaced object, directly or through other
    views, and does not work with its new columns."""
    before, after = (
        [(column.name, column.type) for column in getattr(item, "columns", ())]
        for item in (existing, made)
    )
    if before == after:
        return []
    snapshot = context.services.catalog.snapshot()
    warnings: list[str] = []
    for dependency in impact_of(made, snapshot):
        view = snapshot.find(*dependency.name.split(".", 1)) if dependency.kind == "view" else None
        if not isinstance(view, View) or view.has_parameters:
            continue
        try:
            bind_query(parse_query(view.query), context.scope(snapshot))
        except Error as error:
            warnings.append(
                f"The view {dependency.name} does not work any more, since {made.database}."
                f"{made.name} has other columns: {error.message}"
            )
    return warnings


def publish_replacement(
    made: Table,
    existing: Table,
    context: StatementContext,
    snapshot: Snapshot,
    requirements: Sequence[Requirement],
    changes: Sequence[Change],
    unsettled: frozenset[str] = frozenset(),
) -> None:
    """Commit at once: replace definition and rows of the table, and invalidate the view slices that
    differ.

    `made` is from `with_identity_of`; `requirements` and `changes` are those of the new rows, on
    which its views have fired; `unsettled` are the views that joined only a part of them. Detached
    parts are dropped too, since their keys may be those of the old definition.
    """
    detached_table_id = detached_table(existing.id)
    detached_ids = tuple(sorted(part.id for part in snapshot.parts(detached_table_id)))
    parts = snapshot.parts(existing.id)
    ids = tuple(sorted(part.id for part in parts))
    rows = sum(part.rows for part in parts)
    views = tuple(view.id for view in _views_that_need(snapshot, existing))
    own_schema = SchemaIs(made.id, made.version)  # this commit itself makes it true
    draft = CommitDraft(
        [
            RevisionIs(existing.id, existing.revision),
            NoDependents(existing.id, except_ids=views),
            PartsOfPartitionAre(existing.id, None, ids),
            PartsOfPartitionAre(detached_table_id, None, detached_ids),
            *(entry for entry in requirements if entry != own_schema),
        ],
        [
            RemoveParts(*entry)
            for entry in ((existing.id, ids), (detached_table_id, detached_ids))
            if entry[1]
        ],
    )
    draft.change(PutObject(made), *raise_data_versions(existing, parts))
    if context.services.catalog.has_deliveries(existing.id):
        draft.change(ForgetDeliveries(existing.id))
    draft.change(*changes)
    origin = context.origin("CREATE TABLE")
    table_write = TableWrite(
        frozenset((existing.id,)),
        rows,
        rejoined=_views_of_replaced_columns(made, existing, snapshot),
        unsettled=unsettled,
    )
    slices = all_slices(snapshot, existing, parts)
    source = SourceChange(existing.id, parts, "TRUNCATE", slices, joins=False)
    draft.merge(effects_of(origin, snapshot, table_write, draft.changes, [source]))
    draft.merge(rejudged_draft(origin, snapshot, check_altered(snapshot, made, "replace")))
    publish(draft, origin)


def _views_of_replaced_columns(made: Table, existing: Table, snapshot: Snapshot) -> frozenset[str]:
    """Return the ids of views that join the table and read a column which has a new id. Old and new
    rows have different columns there, so these views' slices cannot be compared row by row. Return
    all views that join the table if it loses an ALIAS column."""
    new_ids = {column.name: column.id for column in made.columns}
    changed = {old.name for old in existing.columns if new_ids.get(old.name) != old.id}
    if _aliases(existing) - _aliases(made):  # plans contain alias expressions, not names
        return frozenset(view.id for view in dimension_views(snapshot, {existing.id}))
    view_ids: set[str] = set()
    for view in dimension_views(snapshot, {existing.id}) if changed else ():
        try:
            read_names = columns_read(bind_view(view, snapshot).root, existing.id)
        except Error:
            read_names = frozenset(changed)
        if read_names & changed:
            view_ids.add(view.id)
    return frozenset(view_ids)


def _aliases(table: Table) -> set[tuple[str, str]]:
    """Return (name, expression) of the ALIAS columns."""
    return {
        (column.name, column.default) for column in table.columns if column.default_kind == "ALIAS"
    }
