"""CREATE MATERIALIZED VIEW, and SYSTEM BACKFILL | REPLAY | RECONCILE VIEW."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from olapdb.errors import NotSupportedError
from olapdb.model.schema import Column, MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.create import build_table
from olapdb.statements.partitions import find_partition
from olapdb.types import FLOAT64, STRING, UINT64, Array, DataType, Nullable

_TEXTS = Array(STRING)
_MAYBE_NUMBER = Nullable(UINT64)


def create_materialized_view(
    statement: nodes.CreateMaterializedView, context: StatementContext
) -> Result:
    """The trigger is live from its commit on; older rows are its gap until they are backfilled."""
    from olapdb.views.create import create_view

    context = context.with_settings(statement.settings)
    create_view(
        context.services, statement, database=context.database, settings=context.settings,
        query_id=context.query_id, text=context.text, build_inner=_inner_builder(context),
        executor=_executor(context), progress=context.progress,
    )  # fmt: skip
    return Result()


def _inner_builder(
    context: StatementContext,
) -> Callable[[nodes.CreateMaterializedView, tuple[Column, ...], str], Table]:
    def build(
        statement: nodes.CreateMaterializedView, columns: tuple[Column, ...], name: str
    ) -> Table:
        definition = nodes.CreateTable(
            table=nodes.TableName(name, statement.name.database),
            columns=tuple(nodes.ColumnDefinition(c.name, c.type) for c in columns),
            storage=statement.storage or nodes.StorageClause(),
            position=statement.position,
        )
        return build_table(definition, context, context.snapshot())

    return build


def attach_or_detach(statement: nodes.Attach | nodes.Detach, context: StatementContext) -> Result:
    """DETACH VIEW stops the trigger, what comes in meanwhile is its gap; ATTACH starts it again."""
    snapshot = context.snapshot()
    found = context.find(snapshot, statement.name)
    if found is None and isinstance(statement, nodes.Detach) and statement.if_exists:
        return Result()
    view = context.require(snapshot, statement.name)
    if not isinstance(view, MaterializedView):
        raise NotSupportedError(
            f"{type(statement).__name__.upper()} is for materialized views; {statement.name} is none.",
            position=statement.position,
        )
    _attach(view, isinstance(statement, nodes.Attach), context)
    return Result()


def _attach(view: MaterializedView, attached: bool, context: StatementContext) -> None:
    from olapdb.views.create import set_attached

    set_attached(
        context.services, view.id, attached, query_id=context.query_id, statement=context.text
    )


def system_view(statement: nodes.SystemView, context: StatementContext) -> Result:
    """Rows that say what was done, chunk by chunk or slice by slice."""
    context = context.with_settings(statement.settings)
    snapshot = context.snapshot()
    view = context.require_view(snapshot, statement.view)
    match statement.action:
        case "BACKFILL":
            return _backfill(statement, view, context, snapshot)
        case "REPLAY":
            return _replay(statement, view, context, snapshot)
        case "RECONCILE":
            return _reconcile(statement, view, context, snapshot)
        case "STOP" | "START":
            _attach(view, statement.action == "START", context)
            return Result()
        case _:
            raise NotSupportedError(
                f"SYSTEM {statement.action} VIEW is not supported yet.",
                hint="BACKFILL, REPLAY, RECONCILE, STOP and START are.",
                position=statement.position,
            )


def _refuse(statement: nodes.SystemView, **given: object) -> None:
    for clause, value in given.items():
        if value:
            raise NotSupportedError(
                f"SYSTEM {statement.action} VIEW … {clause.upper().replace('_', ' ')} is not "
                "supported yet.",
                position=statement.position,
            )


def _executor(context: StatementContext) -> Any:
    return context.engine.executor(context.settings.text("engine"), context.settings)


def _partition(
    statement: nodes.SystemView, table_id: str, context: StatementContext, snapshot: Snapshot
) -> str | None:
    if statement.partition is None:
        return None
    table = snapshot.by_id(table_id)
    assert isinstance(table, Table)
    return find_partition(statement.partition, table, context, snapshot)


def _backfill(
    statement: nodes.SystemView, view: MaterializedView, context: StatementContext,
    snapshot: Snapshot,
) -> Result:  # fmt: skip
    from olapdb.views.backfill import backfill

    _refuse(statement, where=statement.where, sample=statement.sample, stale=statement.stale,
            metadata=statement.metadata, discard_bypass=statement.discard_bypass,
            **{"from": statement.from_value})  # fmt: skip
    rows = backfill(
        context.services, view.id, partition=_partition(statement, view.source_id, context, snapshot),
        executor=_executor(context), progress=context.progress, query_id=context.query_id,
        statement=context.text, settings=context.settings,
    )  # fmt: skip
    return _table(
        rows,
        chunk=UINT64, partition=STRING, parts=UINT64, rows=UINT64, target_rows=UINT64,
        status=STRING, commit=_MAYBE_NUMBER, elapsed_ms=FLOAT64, error=STRING,
    )  # fmt: skip


def _replay(
    statement: nodes.SystemView, view: MaterializedView, context: StatementContext,
    snapshot: Snapshot,
) -> Result:  # fmt: skip
    from olapdb.views.replay import replay

    _refuse(statement, where=statement.where, sample=statement.sample,
            metadata=statement.metadata, **{"from": statement.from_value})  # fmt: skip
    rows = replay(
        context.services, view.id, partition=_partition(statement, view.target_id, context, snapshot),
        stale=statement.stale, discard_bypass=statement.discard_bypass,
        executor=_executor(context), progress=context.progress, query_id=context.query_id,
        statement=context.text, settings=context.settings,
    )  # fmt: skip
    return _table(
        rows,
        partition=STRING, source_rows=UINT64, rows_before=UINT64, rows_after=UINT64,
        bypass_rows=UINT64, status=STRING, commit=_MAYBE_NUMBER,
    )  # fmt: skip


def _reconcile(
    statement: nodes.SystemView, view: MaterializedView, context: StatementContext,
    snapshot: Snapshot,
) -> Result:  # fmt: skip
    from olapdb.views.reconcile import reconcile

    _refuse(statement, where=statement.where, metadata=statement.metadata,
            discard_bypass=statement.discard_bypass, **{"from": statement.from_value})  # fmt: skip
    rows = reconcile(
        context.services, view.id, partition=_partition(statement, view.target_id, context, snapshot),
        sample=statement.sample, stale=statement.stale, executor=_executor(context),
        progress=context.progress, query_id=context.query_id, statement=context.text,
        settings=context.settings,
    )  # fmt: skip
    return _table(
        [replace(r, examples=tuple(r.examples), causes=tuple(r.causes)) for r in rows],
        partition=STRING, snapshot=UINT64, keys_compared=UINT64, missing=UINT64, extra=UINT64,
        differing=UINT64, largest_difference=FLOAT64, examples=_TEXTS, bypass_rows=UINT64,
        gap_rows=UINT64, causes=_TEXTS, verdict=STRING,
    )  # fmt: skip


def _table(found: Iterable[Any], /, **columns: DataType) -> Result:
    """A result with one column for each named attribute of what was found."""
    made = list(found)
    values: list[Sequence[object]] = [[_value(getattr(r, n)) for r in made] for n in columns]
    return from_columns(list(columns), list(columns.values()), values)


def _value(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
