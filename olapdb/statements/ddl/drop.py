"""DROP and UNDROP: what a materialized view needs stays; a dropped table can come back for a while."""

from __future__ import annotations

from functools import partial

from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.errors import (
    HaveDependentObjects,
    IncorrectQuery,
    NotSupportedError,
    Position,
    TableNotEmpty,
)
from olapdb.model.changes import (
    Change,
    DatabaseExists,
    DropDatabase,
    DropObject,
    NoDependents,
    PartsOfPartitionAre,
    Requirement,
    RevisionIs,
)
from olapdb.model.schema import MaterializedView, SchemaObject, Table
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext, refuse_dependents
from olapdb.statements.ddl.attempts import attempted, commit
from olapdb.statements.introspect.show import require_database
from olapdb.views.definition.create import drop_view


def drop(statement: nodes.Drop, context: StatementContext) -> Result:
    """DROP TABLE, VIEW, DATABASE, one commit a name. What a materialized view needs is refused, by
    its name; a view that is created meanwhile is seen. A table may come back, unless it is dropped
    SYNC."""
    for name in statement.names:
        if statement.kind == "DATABASE":
            attempted(context, partial(_drop_database, statement, name, context))
        elif statement.kind in ("TABLE", "VIEW"):
            attempted(context, partial(_drop_object, statement, name, context))
        else:
            raise NotSupportedError(
                f"DROP {statement.kind} is not supported.", position=statement.position
            )
    return Result()


def _drop_object(
    statement: nodes.Drop, name: nodes.TableName, context: StatementContext, snapshot: Snapshot
) -> None:
    found = context.find(snapshot, name) if statement.if_exists else context.require(snapshot, name)
    if found is None:
        return
    if statement.kind == "VIEW" and isinstance(found, Table):
        raise IncorrectQuery(
            f"{found.database}.{found.name} is a table, not a view.",
            hint="Say DROP TABLE.",
            position=name.position,
        )
    requirements = as_read_and_unneeded(found)
    parts = snapshot.parts(found.id) if statement.if_empty and isinstance(found, Table) else ()
    if statement.if_empty and isinstance(found, Table):
        every = tuple(sorted(part.id for part in parts))
        requirements.append(PartsOfPartitionAre(found.id, None, every))
    if any(part.rows for part in parts):
        raise TableNotEmpty(
            f"{found.database}.{found.name} is not empty.",
            hint="Leave IF EMPTY out, or TRUNCATE it.",
            position=name.position,
        )
    refuse_dependents(snapshot, found, "drop")
    if isinstance(found, MaterializedView):
        drop_view(context.origin(), found.id)
        return
    change = DropObject(found.id, recoverable=not statement.sync)
    commit(context, f"DROP {statement.kind}", requirements, [change])


def as_read_and_unneeded(found: SchemaObject) -> list[Requirement]:
    """What a commit that drops the object requires: it is the one that was named, and still no
    materialized view needs it."""
    return [RevisionIs(found.id, found.revision), NoDependents(found.id)]


def _drop_database(
    statement: nodes.Drop, name: nodes.TableName, context: StatementContext, snapshot: Snapshot
) -> None:
    """With all that is in it, unless a view elsewhere needs some of that. A table that is created
    in it meanwhile would be without a database, so the commit conflicts."""
    if statement.if_empty:
        raise NotSupportedError(
            "DROP DATABASE IF EMPTY is not supported.",
            hint="Look with SHOW TABLES first.",
            position=statement.position,
        )
    if name.name not in snapshot.databases and statement.if_exists:
        return
    require_database(name.name, snapshot, name.position)
    requirements, changes = _emptied(name.name, snapshot, name.position, not statement.sync)
    commit(context, "DROP DATABASE", requirements, [*changes, DropDatabase(name.name)])


def drop_all(statement: nodes.TruncateAll, context: StatementContext) -> Result:
    """TRUNCATE DATABASE: all that is in it goes, in one commit; the database stays, and tables may
    come back."""
    attempted(context, partial(_drop_all, statement, context))
    return Result()


def _drop_all(statement: nodes.TruncateAll, context: StatementContext, snapshot: Snapshot) -> None:
    if statement.if_exists and statement.database not in snapshot.databases:
        return
    require_database(statement.database, snapshot, statement.position)
    requirements, changes = _emptied(statement.database, snapshot, statement.position, True)
    if changes:
        commit(context, "TRUNCATE DATABASE", requirements, changes)


def _emptied(
    database: str, snapshot: Snapshot, position: Position | None, recoverable: bool
) -> tuple[list[Requirement], list[Change]]:
    """What a commit requires and does in which all that is in the database is dropped."""
    if database in SYSTEM_DATABASES:
        raise IncorrectQuery(f"The database {database} cannot be dropped.", position=position)
    inside = list(snapshot.objects(database))
    ids = {o.id for o in inside}
    for item in snapshot.objects():
        if not isinstance(item, MaterializedView) or item.id in ids:
            continue
        if any(map(item.needs, ids)):
            raise HaveDependentObjects(
                f"Cannot drop all of database {database}: {item.database}.{item.name} depends on it.",
                hint=f"DROP VIEW {item.database}.{item.name} first.",
            )
    views_first = sorted(inside, key=lambda o: isinstance(o, Table))
    mine = tuple(sorted(o.id for o in inside if isinstance(o, MaterializedView)))
    requirements: list[Requirement] = [DatabaseExists(database)]
    requirements += [RevisionIs(o.id, o.revision) for o in inside]
    requirements += [NoDependents(o.id, but=mine) for o in inside]
    return requirements, [DropObject(o.id, recoverable=recoverable) for o in views_first]
