"""DELETE, TRUNCATE, OPTIMIZE, and the SYSTEM commands that are not about views."""

from __future__ import annotations

from dataclasses import fields

from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.dml.delete import delete_rows, require_condition
from olapdb.dml.part_selection import NamedParts
from olapdb.dml.truncate import truncate as truncate_table
from olapdb.dml.truncate import truncate as truncate_tables
from olapdb.dml.ttl import apply_ttl
from olapdb.engine.expiry import ttl_rules
from olapdb.errors import (
    BadArguments,
    CannotAssignOptimize,
    Error,
    NotSupportedError,
    SupportIsDisabled,
    UnsupportedMethod,
)
from olapdb.maintenance.backup import back_up, restore
from olapdb.maintenance.merge_planner import optimize as optimize_table
from olapdb.maintenance.merge_planner import recompress
from olapdb.maintenance.merger import rehearse_merge
from olapdb.model.schema import SchemaObject, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result, from_columns
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.databases import require_database
from olapdb.statements.ddl import dictionaries, refreshable_views
from olapdb.statements.ddl.drop import drop_all, refuse_if_large
from olapdb.statements.dml.mutations import deduplicate, deduplication_columns
from olapdb.statements.dml.partitions import find_partition
from olapdb.statements.dml.quarantine import quarantine
from olapdb.statements.introspect.show_filters import matches
from olapdb.types import STRING, UINT64


def delete(statement: nodes.Delete, context: StatementContext) -> Result:
    """Run DELETE FROM t [IN PARTITION p] WHERE …: one commit removes the rows, and invalidates the
    view slices computed from them."""
    context = context.with_settings(statement.settings)
    context.require_warehouse_zone("A DELETE", statement.position)
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
    """Run TRUNCATE TABLE: remove all rows in one commit; with IF EXISTS do nothing if there is no table.
    Raises RetainedRows if a view made some of the rows from source rows that retention has removed
    since, unless the setting discard_retained is on."""
    snapshot = context.snapshot()
    if statement.if_exists and context.find(snapshot, statement.table) is None:
        return Result()
    table = context.require_table(snapshot, statement.table, "TRUNCATE")
    refuse_if_large(table, context, snapshot, statement.table.position)
    result = truncate_table(
        context.origin("TRUNCATE"),
        [table.id],
        discard_retained=context.settings.boolean("discard_retained"),
    )
    return Result(affected_rows=result.rows)


def truncate_all(statement: nodes.TruncateAll, context: StatementContext) -> Result:
    """Run TRUNCATE ALL TABLES FROM d [LIKE …]: truncate the tables in one commit, or raise an error
    that names every table that may not be truncated.

    TRUNCATE DATABASE drops the tables instead, also in one commit. System databases raise
    NotSupportedError.
    """
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
        item
        for item in snapshot.objects(statement.database)
        if isinstance(item, Table) and matches(item.name, statement)
    ]
    if not tables:
        return Result()
    for table in tables:
        refuse_if_large(table, context, snapshot, statement.position)
    result = truncate_tables(
        context.origin("TRUNCATE"),
        [table.id for table in tables],
        discard_retained=context.settings.boolean("discard_retained"),
    )
    return Result(affected_rows=result.rows)


def optimize(statement: nodes.Optimize, context: StatementContext) -> Result:
    """Run OPTIMIZE TABLE t [PARTITION p] [FINAL] [DEDUPLICATE]: remove duplicates and expired rows,
    then merge, and return when the merges are done. DRY RUN merges the parts and keeps nothing.

    Raises UnsupportedMethod outside the MergeTree family, SupportIsDisabled for CLEANUP, and, with the
    setting optimize_throw_if_noop, CannotAssignOptimize if there is nothing to merge."""
    context = context.with_settings(statement.settings)
    snapshot = context.snapshot()
    item = snapshot.find(*context.locate(statement.table))
    if isinstance(item, View) and item.engine_name == "Buffer":
        return Result()  # it holds no row back
    table = context.require_table(snapshot, statement.table, "OPTIMIZE")
    if statement.cleanup:
        raise _refused_cleanup(statement, table)
    if statement.rehearsed:
        return _rehearse(statement, table, context, snapshot)
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
    expires = table.expires and (background is None or background.expires(table.id))
    if expires:
        apply_ttl(context.origin("TTL"), table.id, partition_id=partition)
    merges = optimize_table(
        context.origin("OPTIMIZE"), table.id, partition_id=partition, final=statement.final
    )
    idle = not (merges or statement.final or statement.deduplicate)
    if idle and context.settings.boolean("optimize_throw_if_noop"):
        raise CannotAssignOptimize(
            f"There are no parts of {table.name} that can be merged.",
            hint="OPTIMIZE … FINAL rewrites single parts, too.",
            position=statement.position,
        )
    if expires and any(rule.action == "GROUP BY" for rule in ttl_rules(table)):
        # rows of a group that lay in several parts are in one now
        apply_ttl(context.origin("TTL"), table.id, partition_id=partition)
    if expires:
        recompress(context.origin("TTL"), table.id, partition_id=partition)
    return Result()


def _refused_cleanup(statement: nodes.Optimize, table: Table) -> Error:
    """Return the error for CLEANUP, which is for ReplacingMergeTree."""
    if table.engine.name != "ReplacingMergeTree":
        return CannotAssignOptimize(
            f"Cannot OPTIMIZE with CLEANUP: only ReplacingMergeTree has it, not {table.engine.name}.",
            position=statement.position,
        )
    return SupportIsDisabled(
        "Merges with CLEANUP are not allowed.",
        hint="FINAL leaves out deleted rows; DELETE FROM t WHERE is_deleted removes them.",
        position=statement.position,
    )


def _rehearse(
    statement: nodes.Optimize, table: Table, context: StatementContext, snapshot: Snapshot
) -> Result:
    """Run OPTIMIZE TABLE t DRY RUN PARTS …: merge these parts, and keep nothing of it.

    Raises BadArguments outside the MergeTree family and for parts of several partitions,
    BadDataPartName, NoSuchDataPart, and for the columns of BY what `deduplication_columns` does."""
    if not table.engine.is_merge_tree:
        raise BadArguments(
            "OPTIMIZE DRY RUN is only supported for MergeTree family tables.",
            position=statement.position,
        )
    live = snapshot.parts(table.id)
    parts = [
        part
        for name in dict.fromkeys(statement.rehearsed)
        for part in NamedParts(part=name).choose(table, live)
    ]
    if len({part.partition_id for part in parts}) > 1:
        raise BadArguments(
            "OPTIMIZE DRY RUN needs parts of one partition.", position=statement.position
        )
    if statement.deduplicate:
        deduplication_columns(statement, table, context, snapshot)
    rehearse_merge(context.origin("OPTIMIZE"), snapshot, table, parts)
    return Result()


_NO_OPS = (
    "RELOAD USERS",
    "RELOAD EMBEDDED DICTIONARIES",
    "RELOAD FUNCTIONS",
    "RELOAD ASYNCHRONOUS METRICS",
    "UNLOAD DICTIONARIES",
    "SYNC FILE CACHE",
    "JEMALLOC PURGE",
    "RESTART REPLICAS",
)
_NO_OPS_OF_TABLES = (
    "LOAD PRIMARY KEY",
    "UNLOAD PRIMARY KEY",
    "PREWARM MARK CACHE",
    "WAIT LOADING PARTS",
    *(
        f"{verb} {what}"
        for verb in ("STOP", "START")
        for what in (
            "MOVES",
            "FETCHES",
            "REPLICATED SENDS",
            "REPLICATION QUEUES",
            "PULLING REPLICATION LOG",
            "DISTRIBUTED SENDS",
            "CLEANUP",
        )
    ),
)
"""Commands about what olapdb does not do; a table that they name must exist."""

_OF_MERGE_TREES = ("LOAD PRIMARY KEY", "UNLOAD PRIMARY KEY")

_OF_OTHER_TABLES = {
    "SYNC REPLICA": "replicated",
    "RESTART REPLICA": "replicated",
    "RESTORE REPLICA": "replicated",
    "FLUSH DISTRIBUTED": "distributed",
}
"""Commands for kinds of tables that there are none of."""

_WITHOUT_OBJECT = {
    "FLUSH ASYNC INSERT QUEUE": "an INSERT waits for its commit, so that there is no queue",
    "RELOAD FUNCTION": "there are no external functions",
    "SYNC DATABASE REPLICA": "no database is replicated",
    "DROP DATABASE REPLICA": "no database is replicated",
    "DROP REPLICA": "no table is replicated",
    "PREWARM PRIMARY INDEX CACHE": "the primary index is in the catalog and has no cache",
}
"""Commands for what no warehouse has, with the reason."""


def system(statement: nodes.System, context: StatementContext) -> Result:
    """Run a SYSTEM command: STOP and START [TTL] MERGES, BACKUP, RESTORE, QUARANTINE PART, DROP
    UNCOMPRESSED CACHE (of the process) and DROP QUERY CONDITION CACHE (of the warehouse). Do nothing
    for commands about replicas, logs and caches that olapdb does not have.

    Raises NotSupportedError."""
    if statement.command == "FLUSH LOGS":
        return _flush_logs(statement, context)
    if statement.command in _NO_OPS:
        return Result()
    if statement.command in _WITHOUT_OBJECT:
        return _without_object(statement, context)
    if statement.command in _NO_OPS_OF_TABLES or statement.command in _OF_OTHER_TABLES:
        return _without_effect(statement, context)
    if statement.command.endswith("MERGES"):
        return _set_background(statement, context)
    if statement.command in ("BACKUP TO", "RESTORE FROM"):
        return _back_up_or_restore(statement, context)
    if statement.command == "QUARANTINE PART":
        return quarantine(statement, context)
    if statement.command == "DROP UNCOMPRESSED CACHE":
        context.services.store.cache.columns.shared.clear()
        context.services.store.cache.joints.clear()
        return Result()
    if statement.command == "DROP QUERY CONDITION CACHE":
        context.services.store.cache.masks.clear()
        return Result()
    if statement.command.startswith("DROP "):  # the other caches
        return Result()
    if statement.command in ("RELOAD DICTIONARY", "RELOAD DICTIONARIES", "UNLOAD DICTIONARY"):
        return dictionaries.reload(statement, context)
    if statement.command.endswith(("VIEW", "VIEWS")):
        return refreshable_views.system(statement, context)
    raise NotSupportedError(
        f"SYSTEM {statement.command} is not supported.",
        hint="SYSTEM BACKFILL, REPLAY, RECONCILE VIEW and STOP/START [TTL] MERGES are.",
        position=statement.position,
    )


def _flush_logs(statement: nodes.System, context: StatementContext) -> Result:
    """Do nothing: the tables of logs have each row at once. Raise BadArguments for an unknown one."""
    for name in (statement.argument or "").split(","):
        if name and context.system_table("system", name) is None:
            raise BadArguments(
                f"Log name {name!r} does not exist.",
                hint="SHOW TABLES FROM system LIKE '%_log' lists those there are.",
                position=statement.position,
            )
    return Result()


def _without_object(statement: nodes.System, context: StatementContext) -> Result:
    """Refuse a command about a thing that no warehouse has, such as a replica, with BadArguments;
    UnknownTable or UnknownDatabase if it names one that does not exist. DROP REPLICA without a
    table or database does nothing."""
    named = statement.table
    if named is None and statement.command.endswith("REPLICA"):
        return Result()
    if named is not None and named.database is None and "DATABASE" in statement.command:
        require_database(named.name, context.snapshot(), named.position)
    elif named is not None:
        context.require(context.snapshot(), named)
    raise BadArguments(
        f"SYSTEM {statement.command}: {_WITHOUT_OBJECT[statement.command]}.",
        hint="Leave the statement out: a warehouse is shared by opening its folder.",
        position=statement.position,
    )


def _without_effect(statement: nodes.System, context: StatementContext) -> Result:
    """Do nothing. Raise UnknownTable if the command names a table that does not exist, BadArguments
    if it is for tables of another engine."""
    if statement.table is None:
        return Result()
    table = context.require(context.snapshot(), statement.table)
    if statement.command in _OF_MERGE_TREES and not _is_merge_tree(table):
        raise BadArguments(
            f"SYSTEM {statement.command} is for MergeTree tables, and {table.database}.{table.name} is none.",
            hint="Leave the statement out: the keys of a part are in the catalog.",
            position=statement.table.position,
        )
    kind = _OF_OTHER_TABLES.get(statement.command)
    if kind is not None:
        raise BadArguments(
            f"Table {table.database}.{table.name} is not {kind}.",
            hint="A warehouse is shared by opening its folder.",
            position=statement.table.position,
        )
    return Result()


def _is_merge_tree(item: SchemaObject) -> bool:
    """Return whether the object is a table of a MergeTree engine."""
    return isinstance(item, Table) and item.engine.is_merge_tree


def _set_background(statement: nodes.System, context: StatementContext) -> Result:
    """Run SYSTEM STOP | START [TTL] MERGES [t] on the background work of this process. OPTIMIZE
    still merges, but keeps expired rows while TTL MERGES are stopped."""
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


def _back_up_or_restore(statement: nodes.System, context: StatementContext) -> Result:
    """Run SYSTEM BACKUP TO 'folder' or RESTORE FROM 'folder'; return one row that describes the
    copy."""
    copy_files = back_up if statement.command == "BACKUP TO" else restore
    report = copy_files(context.services, statement.argument or "", context.progress)
    names = [field.name for field in fields(report)]
    types = [STRING, *[UINT64] * (len(names) - 1)]
    return from_columns(names, types, [[getattr(report, name)] for name in names])
