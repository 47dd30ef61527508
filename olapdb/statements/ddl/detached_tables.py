"""DETACH and ATTACH of tables, plain views and dictionaries: no statement finds what is detached.

A detached object is kept in a database that no statement can name, under the names of its own
database and itself. So its rows, its id and its settings stay, for all processes, until ATTACH."""

from __future__ import annotations

from olapdb.errors import (
    CannotGetCreateTableQuery,
    IncorrectQuery,
    NotSupportedError,
    Position,
    TableAlreadyExists,
)
from olapdb.model.changes import PutObject
from olapdb.model.detached import DETACHED, PERMANENTLY_DETACHED, detached_name
from olapdb.model.requirements import DatabaseExists, NameIsFree, NoDependents, RevisionIs
from olapdb.model.schema import SchemaObject, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext, refuse_dependents
from olapdb.statements.databases import require_database, require_own_database
from olapdb.statements.ddl.attempts import commit_schema_change


def detach_object(
    statement: nodes.Detach, item: SchemaObject, context: StatementContext, snapshot: Snapshot
) -> None:
    """Hide a table, a plain view or a dictionary. Raise HaveDependentObjects if a materialized view
    needs it, IncorrectQuery if the statement names another kind, TableAlreadyExists if another
    object of its name is detached."""
    if statement.kind == "VIEW" and isinstance(item, Table):
        raise IncorrectQuery(
            f"Table {item.database}.{item.name} is not a View.",
            hint="DETACH TABLE detaches it.",
            position=statement.name.position,
        )
    if not isinstance(item, Table | View):
        raise NotSupportedError(
            f"DETACH of the refreshable view {item.database}.{item.name} is not supported.",
            hint="SYSTEM STOP VIEW ends its refreshes.",
            position=statement.position,
        )
    refuse_dependents(snapshot, item, "detach")
    refuse_detached_name(item.database, item.name, snapshot, statement.name.position)
    place = PERMANENTLY_DETACHED if statement.permanently else DETACHED
    name = detached_name(item.database, item.name)
    commit_schema_change(
        context,
        f"DETACH {statement.kind}",
        [RevisionIs(item.id, item.revision), NoDependents(item.id), NameIsFree(place, name)],
        [PutObject(item.renamed(place, name))],
    )


def attach_object(statement: nodes.Attach, context: StatementContext, snapshot: Snapshot) -> None:
    """Bring a detached object back. Raise CannotGetCreateTableQuery if none of the name is
    detached."""
    database, name = context.locate(statement.name)
    require_database(database, snapshot, statement.name.position)
    item = find_detached(database, name, snapshot)
    if item is None:
        raise CannotGetCreateTableQuery(
            f"No table {database}.{name} is detached.",
            hint="system.detached_tables lists those there are; UNDROP TABLE brings a dropped table"
            " back.",
            position=statement.name.position,
        )
    require_own_database(database, snapshot, statement.name.position)
    commit_schema_change(
        context,
        f"ATTACH {statement.kind}",
        [DatabaseExists(database), NameIsFree(database, name), RevisionIs(item.id, item.revision)],
        [PutObject(item.renamed(database, name))],
    )


def find_detached(database: str, name: str, snapshot: Snapshot) -> SchemaObject | None:
    """Return the detached object of that name, None if there is none."""
    hidden = detached_name(database, name)
    return snapshot.find(DETACHED, hidden) or snapshot.find(PERMANENTLY_DETACHED, hidden)


def refuse_detached_name(
    database: str, name: str, snapshot: Snapshot, position: Position | None
) -> None:
    """Raise TableAlreadyExists if an object of that name is detached."""
    if find_detached(database, name, snapshot) is not None:
        raise TableAlreadyExists(
            f"{database}.{name} exists, and is detached.",
            hint="ATTACH TABLE brings it back.",
            position=position,
        )
