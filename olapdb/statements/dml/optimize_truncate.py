"""DELETE, TRUNCATE, OPTIMIZE and the SYSTEM commands that are not about views."""

from __future__ import annotations

from dataclasses import fields

from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.dml.delete import delete_rows, require_condition
from olapdb.dml.truncate import truncate as truncate_table
from olapdb.dml.truncate import truncate as truncate_tables
from olapdb.dml.ttl import apply_ttl
from olapdb.errors import NotSupportedError, UnsupportedMethod
from olapdb.maintenance.backup import back_up, restore
from olapdb.maintenance.merge_planner import optimize as optimize_table
from olapdb.model.schema import Table
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl.drop import drop_all
from olapdb.statements.dml.mutations import deduplicate
from olapdb.statements.dml.partitions import find_partition
from olapdb.statements.dml.quarantine import quarantine
from olapdb.statements.introspect.show import require_database
from olapdb.statements.introspect.show_filters import matches
from olapdb.types import STRING, UINT64


def delete(statement: nodes.Delete, context: StatementContext) -> Result:
    """DELETE FROM t WHERE …: the rows are gone with the commit, and views that had seen them know
    which of their slices are stale."""

    context = context.with_settings(statement.settings)
    snapshot = context.snapshot()
    table = context.require_table(snapshot, statement.table, "DELETE")
    partition = None
    if statement.partition is not None:
        partition = find_partition(statement.partition, table, context, snapshot)
    result = delete_rows(
        context.origin("DELETE"),
        table.id,
        require_condition(statement.where),
        partition_id=partition,
        parameters=context.parameters,
    )
    return Result(affected_rows=result.rows)


def truncate(statement: nodes.Truncate, context: StatementContext) -> Result:

    snapshot = context.snapshot()
    if statement.if_exists and context.find(snapshot, statement.table) is None:
        return Result()
    table = context.require_table(snapshot, statement.table, "TRUNCATE")
    result = truncate_table(
        context.origin("TRUNCATE"),
        [table.id],
        discard_retained=context.settings.boolean("discard_retained"),
    )
    return Result(affected_rows=result.rows)


def truncate_all(statement: nodes.TruncateAll, context: StatementContext) -> Result:
    """TRUNCATE ALL TABLES FROM d: one commit, or an error that names all tables that may not be
    truncated. TRUNCATE DATABASE drops them, in one commit."""

    if statement.drops:
        return drop_all(statement, context)
    snapshot = context.snapshot()
    if statement.if_exists and statement.database not in snapshot.databases:
        return Result()
    require_database(statement.database, snapshot, statement.position)
    if statement.database in SYSTEM_DATABASES:
        raise NotSupportedError(
            f"The tables of {statement.database} are not truncated.",
            hint="Name another database.",
            position=statement.position,
        )
    tables = [
        item.id
        for item in snapshot.objects(statement.database)
        if isinstance(item, Table) and matches(item.name, statement)
    ]
    if not tables:
        return Result()
    result = truncate_tables(
        context.origin("TRUNCATE"),
        tables,
        discard_retained=context.settings.boolean("discard_retained"),
    )
    return Result(affected_rows=result.rows)


def optimize(statement: nodes.Optimize, context: StatementContext) -> Result:
    """OPTIMIZE TABLE t [PARTITION p] [FINAL]: merges now, and waits for it."""

    if statement.cleanup:
        raise NotSupportedError(
            "OPTIMIZE … CLEANUP is not supported yet.", position=statement.position
        )
    context = context.with_settings(statement.settings)
    snapshot = context.snapshot()
    table = context.require_table(snapshot, statement.table, "OPTIMIZE")
    if not table.engine.is_merge_tree:
        raise UnsupportedMethod(
            f"OPTIMIZE needs a table of the MergeTree family, not {table.engine.name}.",
            hint="Parts of other tables are joined in the background.",
            position=statement.position,
        )
    partition = None
    if statement.partition is not None:
        partition = find_partition(statement.partition, table, context, snapshot)
    if statement.deduplicate:
        deduplicate(statement, table, partition, context, snapshot)
    background = context.engine.background
    if table.ttl and (background is None or background.expires(table.id)):
        apply_ttl(context.origin("TTL"), table.id, partition_id=partition)
    optimize_table(
        context.origin("OPTIMIZE"), table.id, partition_id=partition, final=statement.final
    )
    return Result()


_HARMLESS = ("SYNC REPLICA", "FLUSH LOGS", "FLUSH ASYNC INSERT QUEUE")


def system(statement: nodes.System, context: StatementContext) -> Result:
    """STOP and START [TTL] MERGES; commands about replicas and logs have nothing to wait for here."""
    if statement.command in _HARMLESS:
        return Result()
    if statement.command.endswith("MERGES"):
        return _merges(statement, context)
    if statement.command in ("BACKUP TO", "RESTORE FROM"):
        return _copy(statement, context)
    if statement.command == "QUARANTINE PART":
        return quarantine(statement, context)
    raise NotSupportedError(
        f"SYSTEM {statement.command} is not supported.",
        hint="SYSTEM BACKFILL, REPLAY, RECONCILE VIEW and STOP/START [TTL] MERGES are.",
        position=statement.position,
    )


def _merges(statement: nodes.System, context: StatementContext) -> Result:
    """SYSTEM STOP | START [TTL] MERGES [t]: of the background, in this process; OPTIMIZE still
    merges when it is asked to, but leaves expired rows where TTL MERGES are stopped."""
    table_id = None
    if statement.table is not None:
        table = context.require_table(context.snapshot(), statement.table, statement.command)
        table_id = table.id
    background = context.engine.background
    if background is None:
        return Result()
    running = statement.command.startswith("START")
    if "TTL" in statement.command:
        background.set_ttl(running, table_id)
    else:
        background.set_merges(running, table_id)
    return Result()


def _copy(statement: nodes.System, context: StatementContext) -> Result:
    """SYSTEM BACKUP TO 'folder' and RESTORE FROM 'folder': a row that says what was copied."""

    copy = back_up if statement.command == "BACKUP TO" else restore
    report = copy(context.services, statement.argument or "", context.progress)
    names = [field.name for field in fields(report)]
    types = [STRING, *[UINT64] * (len(names) - 1)]
    return from_columns(names, types, [[getattr(report, name)] for name in names])
