"""SYSTEM REBUILD VIEW, CANCEL REBUILD VIEW and ROLLBACK VIEW."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from olapdb.model.schema import Column, MaterializedView, Table
from olapdb.sql import nodes
from olapdb.sql.parser import parse_expression
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl.engines import engine_of
from olapdb.statements.ddl.table_definition import build_table, check_table
from olapdb.statements.ddl.views import chunk_executor
from olapdb.views.versions.reading import Reading
from olapdb.views.versions.rebuild import Rebuild, cancel_rebuild
from olapdb.views.versions.rollback import rollback as roll_back
from olapdb.views.versions.start import RebuildRequest

if TYPE_CHECKING:
    from olapdb.views.versions.start import BuildTarget


def rebuild(
    statement: nodes.SystemView, view: MaterializedView, context: StatementContext
) -> tuple[Any, ...]:
    """Run SYSTEM REBUILD VIEW; return a row for each step.

    A column list and the clauses behind it describe the whole new target. Without one, ENGINE, PARTITION BY,
    ORDER BY and TTL shape the new target; an omitted clause is that of the old target."""
    version = statement.new_version
    storage = version.storage
    engine = "" if storage is None or storage.engine is None else engine_of(storage, None).name
    declared = bool(version.columns)
    request = RebuildRequest(
        context.origin(),
        view.id,
        _declared_builder(version, context) if declared else _target_builder(storage, context),
        query=statement.query,
        engine=engine,
        reshaped=storage is not None or declared,
        declares_columns=declared,
        comment=version.comment,
        reading=_reading(version, context),
        database=context.database,
        executor=chunk_executor(context),
        progress=context.progress,
        named={setting.name: setting.value for setting in statement.settings},
    )
    return Rebuild(request).run()


def _reading(version: nodes.NewVersion, context: StatementContext) -> Reading | None:
    """Return the plain view that REPLACE VIEW names, with its new query; None without the clause."""
    if version.replaced_view is None or version.replaced_query is None:
        return None
    keep_nulls = context.settings.boolean("cast_keep_nullable")
    named = context.locate(version.replaced_view)
    return Reading(*named, version.replaced_query, keep_nulls)


def cancel(view: MaterializedView, context: StatementContext) -> None:
    """Run SYSTEM CANCEL REBUILD VIEW: drop the unfinished version with its target. Raise
    BadArguments if there is none."""
    cancel_rebuild(context.origin(), view.id)


def rollback(view: MaterializedView, context: StatementContext) -> tuple[Any, ...]:
    """Run SYSTEM ROLLBACK VIEW: give the name back to the version that the last rebuild replaced;
    return one row about it."""
    return roll_back(context.origin(), view.id)


def _declared_builder(version: nodes.NewVersion, context: StatementContext) -> BuildTarget:
    """Return the function that builds the new target from the statement's column list."""

    def build(old: Table, columns: tuple[Column, ...], name: str) -> Table:
        """Return the new target, which has nothing of the old one but its comment."""
        storage = version.storage or nodes.StorageClause()
        built = build_table(
            nodes.CreateTable(
                table=nodes.TableName(name, old.database),
                columns=version.columns,
                constraints=version.constraints,
                storage=storage,
                position=storage.position,
            ),
            context,
            context.snapshot(),
        )
        return replace(built, comment=old.comment)

    return build


def _target_builder(storage: nodes.StorageClause | None, context: StatementContext) -> BuildTarget:
    """Return the function that builds the new target: (old target, columns, name) -> table, with
    fresh ids and not published."""

    def build(old: Table, columns: tuple[Column, ...], name: str) -> Table:
        """Return the new target, with the old one's properties where no clause changes them."""
        new_target = replace(
            old,
            id=str(uuid.uuid4()),
            name=name,
            columns=columns,
            version=1,
            revision=0,
            past=(),
            last_column_id=0,
            created_ms=context.services.clock_ms(),
        )
        snapshot = context.snapshot()
        if storage is None:
            check_table(new_target, context, snapshot)
            return new_target
        reshaped = build_table(
            nodes.CreateTable(
                table=nodes.TableName(name, old.database),
                columns=tuple(_definition(column) for column in columns),
                storage=_fill_omitted_clauses(storage, old),
                position=storage.position,
            ),
            context,
            snapshot,
        )
        return replace(
            new_target,
            engine=reshaped.engine,
            sorting_key=reshaped.sorting_key,
            primary_key=reshaped.primary_key,
            partition_key=reshaped.partition_key,
            sampling_key=reshaped.sampling_key,
            ttl=reshaped.ttl or old.ttl,
        )

    return build


def _definition(column: Column) -> nodes.ColumnDefinition:
    """Return the column as CREATE TABLE would declare it."""
    return nodes.ColumnDefinition(
        column.name,
        column.type,
        column.default_kind,
        parse_expression(column.default) if column.default else None,
        comment=column.comment,
    )


def _fill_omitted_clauses(storage: nodes.StorageClause, old: Table) -> nodes.StorageClause:
    """Return the clause with the old target's ENGINE, ORDER BY and PARTITION BY where it omits
    them."""
    engine, order_by, partition_by = storage.engine, storage.order_by, storage.partition_by
    if engine is None:
        arguments = tuple(nodes.Identifier((name,)) for name in old.engine.arguments)
        engine = nodes.EngineClause(old.engine.name, arguments, bool(arguments))
    if order_by is None and storage.primary_key is None:
        order_by = tuple(
            nodes.OrderItem(parse_expression(item.expression), item.descending)
            for item in old.sorting_key
        )
    if partition_by is None and old.partition_key:
        partition_by = parse_expression(old.partition_key)
    sample_by = storage.sample_by
    if sample_by is None and old.sampling_key and storage.order_by is None:
        sample_by = parse_expression(old.sampling_key)
    return replace(
        storage, engine=engine, order_by=order_by, partition_by=partition_by, sample_by=sample_by
    )
