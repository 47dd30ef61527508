"""DROP and UNDROP: what a materialized view needs stays; a dropped table can come back for a while."""

from __future__ import annotations

from functools import partial

from olapdb.errors import HaveDependentObjects, IncorrectQuery, NotSupportedError
from olapdb.model.changes import (
    Change,
    DatabaseExists,
    DropDatabase,
    DropObject,
    NoDependents,
    Requirement,
    RevisionIs,
)
from olapdb.model.schema import MaterializedView, SchemaObject, Table
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.attempts import attempted
from olapdb.statements.context import StatementContext, refuse_dependents
from olapdb.statements.create import commit
from olapdb.statements.show import require_database


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
            f"{found.database}.{found.name} is a table, not a view.", hint="Say DROP TABLE.",
            position=name.position,
        )  # fmt: skip
    if (
        statement.if_empty
        and isinstance(found, Table)
        and any(p.rows for p in snapshot.parts(found.id))
    ):
        raise IncorrectQuery(f"{found.database}.{found.name} is not empty.", position=name.position)
    refuse_dependents(snapshot, found, "drop")
    if isinstance(found, MaterializedView):
        from olapdb.views.create import drop_view

        drop_view(context.services, found.id, query_id=context.query_id, statement=context.text)
        return
    change = DropObject(found.id, recoverable=not statement.sync)
    commit(context, f"DROP {statement.kind}", as_read_and_unneeded(found), [change])


def as_read_and_unneeded(found: SchemaObject) -> list[Requirement]:
    """What a commit that drops the object requires: it is the one that was named, and still no
    materialized view needs it."""
    return [RevisionIs(found.id, found.revision), NoDependents(found.id)]


def _drop_database(
    statement: nodes.Drop, name: nodes.TableName, context: StatementContext, snapshot: Snapshot
) -> None:
    """With all that is in it, unless a view elsewhere needs some of that. A table that is created
    in it meanwhile would be without a database, so the commit conflicts."""
    if name.name not in snapshot.databases and statement.if_exists:
        return
    require_database(name.name, snapshot, name.position)
    if name.name == "system":
        raise IncorrectQuery("The database system cannot be dropped.", position=name.position)
    inside = list(snapshot.objects(name.name))
    ids = {o.id for o in inside}
    for item in snapshot.objects():
        if not isinstance(item, MaterializedView) or item.id in ids:
            continue
        if any(map(item.needs, ids)):
            raise HaveDependentObjects(
                f"Cannot drop database {name.name}: {item.database}.{item.name} depends on it.",
                hint=f"DROP VIEW {item.database}.{item.name} first.",
            )
    views_first = sorted(inside, key=lambda o: isinstance(o, Table))
    mine = tuple(sorted(o.id for o in inside if isinstance(o, MaterializedView)))
    requirements: list[Requirement] = [RevisionIs(o.id, o.revision) for o in inside]
    requirements += [NoDependents(o.id, but=mine) for o in inside]
    changes: list[Change] = [DropObject(o.id, recoverable=not statement.sync) for o in views_first]
    commit(
        context, "DROP DATABASE", [DatabaseExists(name.name), *requirements],
        [*changes, DropDatabase(name.name)],
    )  # fmt: skip
