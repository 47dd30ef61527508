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
from olapdb.statements.ddl.views import executor_of
from olapdb.views.versions.rebuild import Rebuild, cancel_rebuild
from olapdb.views.versions.start import RebuildRequest
from olapdb.views.versions.versions import rollback as roll_back

if TYPE_CHECKING:
    from olapdb.views.versions.start import BuildTarget


def rebuild(
    statement: nodes.SystemView, view: MaterializedView, context: StatementContext
) -> tuple[Any, ...]:
    """Its rows: a step each. Without ENGINE, PARTITION BY and ORDER BY the new target is as the old
    one; a clause that is left out is the old one's."""

    storage = statement.storage
    engine = "" if storage is None or storage.engine is None else engine_of(storage, None).name
    request = RebuildRequest(
        context.origin(),
        view.id,
        _builder(storage, context),
        query=statement.query,
        engine=engine,
        reshaped=storage is not None,
        database=context.database,
        executor=executor_of(context),
        progress=context.progress,
        named={one.name: one.value for one in statement.settings},
    )
    return Rebuild(request).run()


def cancel(view: MaterializedView, context: StatementContext) -> None:

    cancel_rebuild(context.origin(), view.id)


def rollback(view: MaterializedView, context: StatementContext) -> tuple[Any, ...]:

    return roll_back(context.origin(), view.id)


def _builder(storage: nodes.StorageClause | None, context: StatementContext) -> BuildTarget:
    def build(old: Table, columns: tuple[Column, ...], name: str) -> Table:
        fresh = replace(
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
            check_table(fresh, context, snapshot)
            return fresh
        shape = build_table(
            nodes.CreateTable(
                table=nodes.TableName(name, old.database),
                columns=tuple(_definition(column) for column in columns),
                storage=_completed(storage, old),
                position=storage.position,
            ),
            context,
            snapshot,
        )
        return replace(
            fresh,
            engine=shape.engine,
            sorting_key=shape.sorting_key,
            primary_key=shape.primary_key,
            partition_key=shape.partition_key,
            ttl=shape.ttl or old.ttl,
        )

    return build


def _definition(column: Column) -> nodes.ColumnDefinition:
    return nodes.ColumnDefinition(
        column.name,
        column.type,
        column.default_kind,
        parse_expression(column.default) if column.default else None,
        comment=column.comment,
    )


def _completed(storage: nodes.StorageClause, old: Table) -> nodes.StorageClause:
    """The clause with what it leaves out as the old target has it."""
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
    return replace(storage, engine=engine, order_by=order_by, partition_by=partition_by)
