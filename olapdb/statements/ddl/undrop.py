"""UNDROP TABLE: recover a dropped table, until vacuum has deleted its parts."""

from __future__ import annotations

from functools import partial

from olapdb.catalog.protocol import DroppedTable
from olapdb.errors import TableAlreadyExists, UnknownTable
from olapdb.model.changes import UndropTable
from olapdb.model.requirements import DatabaseExists, NameIsFree
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.databases import require_own_database
from olapdb.statements.ddl.attempts import commit_schema_change, retry_on_conflict


def undrop(statement: nodes.Undrop, context: StatementContext) -> Result:
    """Recover the table that was dropped last under this name, or the one with the UUID: its rows,
    its id, and the record of which views wrote them. Views that were dropped with it are not
    recovered."""
    retry_on_conflict(context, partial(_undrop, statement, context))
    return Result()


def _undrop(statement: nodes.Undrop, context: StatementContext, snapshot: Snapshot) -> None:
    """Make one attempt of `undrop` at the snapshot. Raise TableAlreadyExists, UnknownTable."""
    database, name = context.locate(statement.name)
    require_own_database(database, snapshot, statement.name.position)
    if snapshot.find(database, name) is not None:
        raise TableAlreadyExists(
            f"{database}.{name} exists.",
            hint="RENAME it first; then the dropped one has the name.",
            position=statement.name.position,
        )
    dropped = _newest_dropped(statement, context, database, name)
    commit_schema_change(
        context,
        "UNDROP TABLE",
        [DatabaseExists(database), NameIsFree(database, name)],
        [UndropTable(dropped.table.id)],
    )


def _newest_dropped(
    statement: nodes.Undrop, context: StatementContext, database: str, name: str
) -> DroppedTable:
    """Return the newest dropped table of that name and UUID. Raise UnknownTable if there is none,
    or if vacuum has deleted its parts."""
    candidates = [
        dropped
        for dropped in context.services.catalog.dropped_tables()
        if (dropped.table.database, dropped.table.name) == (database, name)
        and statement.uuid in (None, dropped.table.id)
    ]
    description = f"{database}.{name}" + (f" of UUID {statement.uuid}" if statement.uuid else "")
    if not candidates:
        raise UnknownTable(
            f"No dropped table {description} is kept.",
            hint="system.dropped_tables lists those there are. Views are not kept: create them anew.",
            position=statement.name.position,
        )
    if not candidates[-1].complete:
        raise UnknownTable(
            f"The parts of {description} have been vacuumed: it cannot come back.",
            hint="old_parts_lifetime is how many seconds they are kept.",
            position=statement.name.position,
        )
    return candidates[-1]
