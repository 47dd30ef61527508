"""DROP, RENAME, EXCHANGE: names change, identities do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from olapdb.errors import (
    HaveDependentObjects,
    IncorrectQuery,
    NotSupportedError,
    TableAlreadyExists,
)
from olapdb.model.changes import (
    Change,
    DatabaseExists,
    DropDatabase,
    DropObject,
    NameIsFree,
    ObjectIs,
    PutObject,
    Requirement,
)
from olapdb.model.schema import MaterializedView, SchemaObject, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext, refuse_dependents
from olapdb.statements.create import commit
from olapdb.statements.show import require_database


def drop(statement: nodes.Drop, context: StatementContext) -> Result:
    """DROP TABLE, VIEW, DATABASE. What a materialized view needs is refused, by its name."""
    for name in statement.names:
        if statement.kind == "DATABASE":
            _drop_database(statement, name, context)
        elif statement.kind in ("TABLE", "VIEW"):
            _drop_object(statement, name, context)
        else:
            raise NotSupportedError(
                f"DROP {statement.kind} is not supported.", position=statement.position
            )
    return Result()


def _drop_object(statement: nodes.Drop, name: nodes.TableName, context: StatementContext) -> None:
    snapshot = context.snapshot()
    found = context.find(snapshot, name) if statement.if_exists else context.require(snapshot, name)
    if found is None:
        return
    if statement.kind == "VIEW" and isinstance(found, Table):
        raise IncorrectQuery(
            f"{found.database}.{found.name} is a table, not a view.", hint="Say DROP TABLE.",
            position=name.position,
        )  # fmt: skip
    if statement.if_empty and isinstance(found, Table) and any(p.rows for p in snapshot.parts(found.id)):
        raise IncorrectQuery(
            f"{found.database}.{found.name} is not empty.", position=name.position
        )
    refuse_dependents(snapshot, found, "drop")
    if isinstance(found, MaterializedView):
        from olapdb.views.create import drop_view

        drop_view(context.services, found.id, query_id=context.query_id, statement=context.text)
        return
    commit(
        context, f"DROP {statement.kind}", [ObjectIs(found.id, found.version)], [DropObject(found.id)]
    )


def _drop_database(statement: nodes.Drop, name: nodes.TableName, context: StatementContext) -> None:
    """With all that is in it, unless a view elsewhere needs some of that."""
    snapshot = context.snapshot()
    if name.name not in snapshot.databases and statement.if_exists:
        return
    require_database(name.name, snapshot, name.position)
    if name.name == "system":
        raise IncorrectQuery("The database system cannot be dropped.", position=name.position)
    inside = list(snapshot.objects(name.name))
    ids = {o.id for o in inside}
    for item in snapshot.objects():
        if isinstance(item, MaterializedView) and item.id not in ids:
            needed = ids.intersection((item.source_id, item.target_id, *item.dimension_ids))
            if needed:
                raise HaveDependentObjects(
                    f"Cannot drop database {name.name}: {item.database}.{item.name} depends on it.",
                    hint=f"DROP VIEW {item.database}.{item.name} first.",
                )
    views_first = sorted(inside, key=lambda o: isinstance(o, Table))
    requirements: list[Requirement] = [ObjectIs(o.id, o.version) for o in inside]
    changes: list[Change] = [DropObject(o.id) for o in views_first]
    commit(
        context, "DROP DATABASE", [*requirements, DatabaseExists(name.name)],
        [*changes, DropDatabase(name.name)],
    )  # fmt: skip


def rename(statement: nodes.Rename, context: StatementContext) -> Result:
    """All pairs in one commit; views keep following the tables that they read."""
    if statement.kind != "TABLE":
        raise NotSupportedError(
            "RENAME DATABASE is not supported.", hint="RENAME TABLE moves tables between databases.",
            position=statement.position,
        )  # fmt: skip
    snapshot = context.snapshot()
    moved: dict[tuple[str, str], tuple[str, str]] = {}
    requirements: list[Requirement] = []
    items: list[SchemaObject] = []
    for old, new in statement.pairs:
        item = context.require(snapshot, old)
        database, name = context.locate(new)
        require_database(database, snapshot, new.position)
        taken = snapshot.find(database, name)
        if taken is not None and (database, name) not in moved:
            raise TableAlreadyExists(
                f"{database}.{name} exists.", hint="EXCHANGE TABLES swaps two tables.",
                position=new.position,
            )  # fmt: skip
        if taken is None:
            requirements.append(NameIsFree(database, name))
        moved[item.database, item.name] = (database, name)
        items.append(item.renamed(database, name))
        requirements.append(ObjectIs(item.id, item.version))
    _publish(context, "RENAME", snapshot, moved, requirements, items)
    return Result()


def exchange(statement: nodes.Exchange, context: StatementContext) -> Result:
    """Two tables swap their names, in one commit. Identities stay: a view keeps writing to the
    table that it wrote to, under its new name."""
    snapshot = context.snapshot()
    left, right = (context.require(snapshot, n) for n in (statement.left, statement.right))
    if left.id == right.id:
        return Result()
    moved = {
        (left.database, left.name): (right.database, right.name),
        (right.database, right.name): (left.database, left.name),
    }
    requirements = [ObjectIs(left.id, left.version), ObjectIs(right.id, right.version)]
    items = [left.renamed(right.database, right.name), right.renamed(left.database, left.name)]
    _publish(context, "EXCHANGE", snapshot, moved, requirements, items)
    return Result()


def _publish(
    context: StatementContext, kind: str, snapshot: Snapshot,
    moved: Mapping[tuple[str, str], tuple[str, str]], requirements: Sequence[Requirement],
    items: Sequence[SchemaObject],
) -> None:  # fmt: skip
    from olapdb.views.create import rewrite_references

    rewritten = {v.id: v for v in rewrite_references(snapshot, moved)}
    changed: list[SchemaObject] = []
    for item in items:
        follower = rewritten.pop(item.id, None)
        if isinstance(follower, View | MaterializedView):
            item = follower.renamed(item.database, item.name)
        changed.append(_next_version(item) if isinstance(item, Table) else item)
    changed.extend(rewritten.values())
    commit(context, kind, requirements, [PutObject(o) for o in changed])


def _next_version(table: Table) -> Table:
    """A plan bound to the old name must not be used under the new one."""
    return replace(table, version=table.version + 1)


