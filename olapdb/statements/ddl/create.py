"""CREATE TABLE, and the commit that publishes a new table or plain view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from olapdb.commit.staging import Staging
from olapdb.dml.attach_parts import cloned_parts, with_columns_of
from olapdb.dml.replace_rows import replace_rows
from olapdb.errors import DictionaryAlreadyExists, TableAlreadyExists
from olapdb.ingest.block_stager import StagedInsert, join_staged, stage_insert
from olapdb.ingest.deduplicate import Admission
from olapdb.ingest.read_parts import Pin
from olapdb.ingest.trigger import TriggerContext
from olapdb.model.changes import Change, DropObject, PutObject
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.requirements import DatabaseExists, NameIsFree, Requirement, RevisionIs, SchemaIs
from olapdb.model.schema import MaterializedView, RefreshableView, SchemaObject, Table, View
from olapdb.model.session_snapshot import TEMPORARY_DATABASE
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.runtime.cache import Cache
from olapdb.sql import nodes
from olapdb.sql.nested_columns import whole_nested
from olapdb.statements.context import StatementContext, refuse_dependents, unknown_table
from olapdb.statements.ddl.alias_tables import build_alias, is_alias
from olapdb.statements.ddl.attempts import commit_schema_change, retry_on_conflict
from olapdb.statements.ddl.declarations import check_declaration
from olapdb.statements.ddl.derived_tables import (
    build_call,
    build_derived,
    calls_function,
    is_derived,
)
from olapdb.statements.ddl.detached_tables import refuse_detached_name
from olapdb.statements.ddl.merge_tables import build_merge_table, is_merge_table
from olapdb.statements.ddl.query_settings import with_query_settings
from olapdb.statements.ddl.replace import (
    broken_views,
    keeps_identity,
    only_rows_differ,
    publish_replacement,
    with_identity_of,
)
from olapdb.statements.ddl.table_definition import build_table, template_table
from olapdb.statements.ddl.type_checks import refuse_suspicious
from olapdb.statements.dml.insert import query_blocks, result_blocks
from olapdb.statements.query import select
from olapdb.views.definition.replaced_view import followers_of, redefine_followers


def create_table(statement: nodes.CreateTable, context: StatementContext) -> Result:
    """Run CREATE TABLE: one commit publishes the table and, with AS SELECT or CLONE AS, its
    rows."""
    statement, context = with_query_settings(statement, context)
    if context.settings.boolean("create_if_not_exists") and not statement.or_replace:
        statement = replace(statement, if_not_exists=True)
    if not context.settings.boolean("flatten_nested"):
        statement = replace(statement, columns=whole_nested(statement.columns))
    return retry_on_conflict(context, partial(_create_table, statement, context))


def _create_table(
    statement: nodes.CreateTable, context: StatementContext, snapshot: Snapshot
) -> Result:
    """Make one attempt of `create_table` at the snapshot."""
    if not statement.or_replace and context.find(snapshot, statement.table) is not None:
        check_declaration(statement, context, snapshot)
    existing = object_to_replace(statement.table, statement, context, snapshot)
    if existing is not None and statement.if_not_exists:
        return Result()
    refuse_detached_name(*context.locate(statement.table), snapshot, statement.table.position)
    for is_kind, build in _STORED_AS_VIEWS:
        if is_kind(statement):
            commit_object(build(statement, context, snapshot), existing, context, snapshot)
            return Result()
    table = build_table(statement, context, snapshot)
    for column in table.columns:
        refuse_suspicious(column.type, column.name, context.settings)
    if statement.clone:
        table = with_columns_of(table, template_table(statement, context, snapshot))
    if isinstance(existing, Table) and keeps_identity(snapshot, existing):
        table = with_identity_of(table, existing, snapshot)
        if statement.query is not None and only_rows_differ(table, existing, snapshot):
            return exchange_rows(statement, existing.id, context)
    if statement.query is not None and not statement.empty:
        return _create_filled(statement, table, existing, context, snapshot)
    if statement.clone:
        return _create_clone(statement, table, existing, context, snapshot)
    commit_object(table, existing, context, snapshot)
    return Result()


_STORED_AS_VIEWS = (
    (is_merge_table, build_merge_table),
    (is_alias, build_alias),
    (is_derived, build_derived),
    (calls_function, build_call),
)
"""Engines without rows of their own: whether a statement creates one, and what builds it."""


def exchange_rows(statement: nodes.CreateTable, table_id: str, context: StatementContext) -> Result:
    """Exchange the rows of a table for those of AS SELECT, where both have one definition: equal
    rows stay, and views are notified of the rows that differ, and of no others."""
    query = None if statement.empty else statement.query
    filling = context if query is None else select.with_query_settings(query, context)

    def blocks(snapshot: Snapshot) -> Iterator[pa.Table]:
        """Return the rows of the query at the snapshot as blocks of the table."""
        table = snapshot.by_id(table_id)
        if query is None or not isinstance(table, Table):
            return iter(())
        result = select.run_at(query, filling, snapshot)
        return result_blocks(table, None, result, filling, snapshot)

    every_row = nodes.Replacing(where=nodes.Literal(1))
    exchanged = replace_rows(
        context.origin("CREATE TABLE"), table_id, every_row, blocks, context.parameters
    )
    return Result(affected_rows=exchanged.rows)


def object_to_replace(
    name: nodes.TableName,
    statement: nodes.CreateTable | nodes.CreateView,
    context: StatementContext,
    snapshot: Snapshot,
) -> SchemaObject | None:
    """Return the object that has the name; None if it is free. Raise TableAlreadyExists without OR
    REPLACE or IF NOT EXISTS, or for a materialized view; DictionaryAlreadyExists for a dictionary,
    HaveDependentObjects for a table that views need."""
    existing = context.find(snapshot, name)
    if existing is None and isinstance(statement, nodes.CreateTable) and statement.must_exist:
        raise unknown_table(snapshot, *context.locate(name)).at(name.position)
    if existing is None or statement.if_not_exists:
        return existing
    if isinstance(existing, View) and existing.dictionary:
        raise DictionaryAlreadyExists(
            f"{existing.database}.{existing.name} is a dictionary.",
            hint="Choose another name, or DROP DICTIONARY it first.",
            position=name.position,
        )
    if not statement.or_replace:
        raise TableAlreadyExists(
            f"{_displayed(existing)} exists.",
            hint="Say IF NOT EXISTS or CREATE OR REPLACE, or DROP it first.",
            position=name.position,
        )
    if isinstance(existing, MaterializedView | RefreshableView):
        ends = "trigger" if isinstance(existing, MaterializedView) else "refreshes"
        raise TableAlreadyExists(
            f"{existing.database}.{existing.name} is a materialized view, and replacing it would "
            f"end its {ends}.",
            hint=f"DROP VIEW {existing.database}.{existing.name} first.",
            position=name.position,
        )
    if isinstance(statement, nodes.CreateTable):
        has_no_rows = any(is_kind(statement) for is_kind, _ in _STORED_AS_VIEWS)
        if has_no_rows or not keeps_identity(snapshot, existing):
            refuse_readers(existing, snapshot)
    return existing


def refuse_readers(existing: SchemaObject, snapshot: Snapshot) -> None:
    """Raise HaveDependentObjects if views read the object, except those that can be defined again
    over its replacement."""
    followers = followers_of(existing, snapshot)
    refuse_dependents(snapshot, existing, "replace", but=[view.id for view in followers])


def _displayed(item: SchemaObject) -> str:
    """Return the object's name for messages."""
    if item.database == TEMPORARY_DATABASE:
        return f"Temporary table {item.name}"
    return f"{item.database}.{item.name}"


def commit_object(
    made: Table | View,
    existing: SchemaObject | None,
    context: StatementContext,
    snapshot: Snapshot,
    staged: Sequence[StagedInsert] = (),
    reads: Sequence[tuple[str, int]] = (),
    keys: Sequence[Change] = (),
) -> None:
    """Commit at once: drop the object that has the name, create the new one, add its first rows.

    `existing` is the object to replace, `staged` the first rows and `keys` their deduplication
    keys. `reads` are (id, revision) of the objects that a view's query names; they must be
    unchanged. A table with the id of `existing` keeps its identity (`publish_replacement`).
    """
    kind = f"CREATE {type(made).__name__.upper()}"
    requirements: list[Requirement] = [DatabaseExists(made.database)]
    requirements += [RevisionIs(*read) for read in reads]
    changes: list[Change] = []
    if isinstance(existing, Table) and isinstance(made, Table) and made.id == existing.id:
        rows = join_staged(staged) if staged else None
        publish_replacement(
            made,
            existing,
            context,
            snapshot,
            rows.requirements if rows else (),
            [*rows.changes, *keys] if rows else (),
            rows.unsettled if rows else frozenset(),
        )
        context.statistics.warnings += broken_views(made, existing, context)
        return
    if existing is None:
        requirements.append(NameIsFree(made.database, made.name))
    else:
        requirements.append(RevisionIs(existing.id, existing.revision))
        if made.id != existing.id:
            changes.append(DropObject(existing.id))
    changes.append(PutObject(made))
    if isinstance(existing, View | Table):
        followed = redefine_followers(context.origin(kind), snapshot, existing, made)
        requirements += followed.requirements
        changes += followed.changes
    if staged:
        rows = join_staged(staged)
        own_schema = SchemaIs(made.id, made.version)  # this commit itself makes it true
        requirements += [
            requirement for requirement in rows.requirements if requirement != own_schema
        ]
        changes += [*rows.changes, *keys]
    commit_schema_change(context, kind, requirements, changes)
    if existing is not None:
        context.statistics.warnings += broken_views(made, existing, context)


def _create_clone(
    statement: nodes.CreateTable,
    table: Table,
    existing: SchemaObject | None,
    context: StatementContext,
    snapshot: Snapshot,
) -> Result:
    """Commit the table of CLONE AS and the source's rows at once. The new parts refer to the
    source's files."""
    source = template_table(statement, context, snapshot)
    assert source is not None
    origin = context.origin()
    with Pin(context.services, snapshot.number), Staging(origin) as staging:
        staged = cloned_parts(staging, origin, snapshot, source, table)
        with staging.committing():
            commit_object(table, existing, context, snapshot, [staged] if staged.rows else [])
    return Result(affected_rows=staged.rows)


def _create_filled(
    statement: nodes.CreateTable,
    table: Table,
    existing: SchemaObject | None,
    context: StatementContext,
    snapshot: Snapshot,
) -> Result:
    """Stage the rows of AS SELECT for a table that does not exist yet, then commit table and rows
    at once. A failing SELECT leaves nothing behind."""
    assert statement.query is not None
    services = context.services
    filling = select.with_query_settings(statement.query, context)  # they are of the INSERT too
    staged: list[StagedInsert] = []
    admission = Admission.of(services, table)
    after, cache = snapshot, services.cache
    if existing is not None and table.id == existing.id:  # its views fire on the new definition,
        after, cache = OverlaySnapshot.of(snapshot, table), Cache()  # which may never be committed
    with Staging(context.origin()) as staging:
        for rows in query_blocks(table, None, statement.query, filling, snapshot):
            block = rows if admission is None else admission.admit(rows)
            staged_insert = stage_insert(
                table,
                block,
                TriggerContext(
                    after,
                    services.store,
                    cache,
                    filling.settings,
                    context.environment,
                    context.cancelled,
                ),
                services.lease_id,
            )
            staging.adopt(staged_insert.paths)
            staged.append(staged_insert)
        keys = admission.changes() if admission else ()
        with staging.committing():
            commit_object(table, existing, context, snapshot, staged, keys=keys)
    return Result(affected_rows=sum(staged_insert.rows for staged_insert in staged))
