"""DROP and TRUNCATE DATABASE: objects that a materialized view needs stay; dropped tables can be
recovered for a while."""

from __future__ import annotations

from functools import partial

from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.commit.draft import CommitDraft, publish
from olapdb.errors import (
    CannotDropDictionaryAsTable,
    HaveDependentObjects,
    IncorrectQuery,
    NotSupportedError,
    Position,
    TableNotEmpty,
    TableTooLargeToDrop,
)
from olapdb.model.changes import Change, DropDatabase, DropObject
from olapdb.model.detached import is_hidden, own_names
from olapdb.model.requirements import (
    DatabaseExists,
    NoDependents,
    PartsOfPartitionAre,
    Requirement,
    RevisionIs,
)
from olapdb.model.schema import MaterializedView, RefreshableView, SchemaObject, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import (
    StatementContext,
    drop_text,
    is_dictionary_over,
    refuse_dependents,
)
from olapdb.statements.databases import require_database
from olapdb.statements.ddl.attempts import commit_schema_change, retry_on_conflict
from olapdb.statements.ddl.functions import drop_of_database
from olapdb.statements.ddl.refreshable_views import drop_draft as drop_refreshable
from olapdb.statements.temporary_routing import split_drop
from olapdb.views.definition.create import drop_view
from olapdb.views.definition.drop_attach import drop_draft


def drop(statement: nodes.Drop, context: StatementContext) -> Result:
    """Run DROP TABLE, VIEW, DICTIONARY or DATABASE. Several tables and views are one commit; a
    commit for each database.

    Raises HaveDependentObjects for an object that a materialized view needs, unless the statement
    drops that view too. A concurrent CREATE of such a view makes the commit conflict; the retry
    then raises. UNDROP can recover a table unless it was dropped SYNC, or is temporary.
    """
    for part, own_context in split_drop(statement, context):
        _drop(part, own_context)
    return Result()


def _drop(statement: nodes.Drop, context: StatementContext) -> None:
    """Run a DROP whose names are all of one catalog."""
    if len(statement.names) > 1 and statement.kind in _DROPPED_TOGETHER:
        retry_on_conflict(context, partial(_drop_together, statement, context))
        return
    for name in statement.names:
        if statement.kind == "DATABASE":
            retry_on_conflict(context, partial(_drop_database, statement, name, context))
        else:
            retry_on_conflict(context, partial(_drop_object, statement, name, context))


_DROPPED_TOGETHER = ("TABLE", "VIEW", "DICTIONARY")
_LARGEST = "max_table_size_to_drop"


def _drop_object(
    statement: nodes.Drop, name: nodes.TableName, context: StatementContext, snapshot: Snapshot
) -> None:
    """Make one attempt to drop a table or a view at the snapshot. Raises TableNotEmpty."""
    item = _named_object(statement, name, context, snapshot)
    if item is None:
        return
    requirements = unchanged_and_unneeded(item)
    parts = snapshot.parts(item.id) if statement.if_empty and isinstance(item, Table) else ()
    if statement.if_empty and isinstance(item, Table):
        part_ids = tuple(sorted(part.id for part in parts))
        requirements.append(PartsOfPartitionAre(item.id, None, part_ids))
    if any(part.rows for part in parts):
        raise TableNotEmpty(
            f"{item.database}.{item.name} is not empty.",
            hint="Leave IF EMPTY out, or TRUNCATE it.",
            position=name.position,
        )
    if isinstance(item, RefreshableView):
        publish(drop_refreshable(snapshot, item), context.origin("DROP VIEW"))
        return
    refuse_dependents(snapshot, item, "drop")
    refuse_if_large(item, context, snapshot, name.position)
    if isinstance(item, MaterializedView):
        drop_view(context.origin(), item.id)
        return
    change = DropObject(item.id, recoverable=not statement.sync)
    commit_schema_change(context, f"DROP {statement.kind}", requirements, [change])


def refuse_if_large(
    item: SchemaObject, context: StatementContext, snapshot: Snapshot, position: Position | None
) -> None:
    """Raise TableTooLargeToDrop for a table with more bytes than the setting max_table_size_to_drop allows, where that
    was set. A dropped table can be recovered, so nothing is refused by default."""
    if _LARGEST not in context.settings.changed or not isinstance(item, Table):
        return
    limit = context.settings.integer(_LARGEST)
    size = sum(part.bytes for part in snapshot.parts(item.id))
    if limit and size > limit:
        raise TableTooLargeToDrop(
            f"{item.database}.{item.name} has {size} bytes, more than {_LARGEST} = {limit}.",
            hint=f"SET {_LARGEST} = 0 allows it.",
            position=position,
        )


def refuse_if_any_large(
    database: str, context: StatementContext, snapshot: Snapshot, position: Position | None
) -> None:
    """Raise TableTooLargeToDrop for the first table of the database that `refuse_if_large` refuses."""
    for item in snapshot.objects(database):
        refuse_if_large(item, context, snapshot, position)


def _named_object(
    statement: nodes.Drop, name: nodes.TableName, context: StatementContext, snapshot: Snapshot
) -> SchemaObject | None:
    """Return the object of that name, None if IF EXISTS allows that there is none.

    Raises IncorrectQuery if DROP VIEW names a table or DROP DICTIONARY another object,
    CannotDropDictionaryAsTable if DROP TABLE names a dictionary."""
    item = context.find(snapshot, name) if statement.if_exists else context.require(snapshot, name)
    is_dictionary = isinstance(item, View) and bool(item.dictionary)
    if is_dictionary and statement.kind == "TABLE":
        raise CannotDropDictionaryAsTable(
            f"{name} is a dictionary.", hint="Say DROP DICTIONARY.", position=name.position
        )
    if item is not None and is_dictionary != (statement.kind == "DICTIONARY"):
        kind = "dictionary" if statement.kind == "DICTIONARY" else "view"
        if is_dictionary or kind == "dictionary":
            raise IncorrectQuery(f"{name} is not a {kind}.", position=name.position)
    if statement.kind == "VIEW" and isinstance(item, Table):
        raise IncorrectQuery(
            f"{item.database}.{item.name} is a table, not a view.",
            hint="Say DROP TABLE.",
            position=name.position,
        )
    return item


def _drop_together(statement: nodes.Drop, context: StatementContext, snapshot: Snapshot) -> None:
    """Make one attempt to drop several tables and views in one commit, views first.

    A materialized view takes its versions along, as when it is dropped alone.

    Raises NotSupportedError."""
    if statement.if_empty:
        raise NotSupportedError(
            "DROP IF EMPTY of several tables is not supported.",
            hint="Drop each by a statement of its own.",
            position=statement.position,
        )
    named = [_named_object(statement, name, context, snapshot) for name in statement.names]
    items = list({item.id: item for item in named if item is not None}.values())
    for item in items:
        refuse_if_large(item, context, snapshot, statement.position)
    views = [item for item in items if isinstance(item, MaterializedView)]
    draft = CommitDraft()
    for view in sorted(views, key=lambda view: bool(view.standing)):
        # a version may have been dropped already, with its view
        if view.id not in _dropped_ids(draft):
            draft.merge(drop_draft(snapshot, view))
    for item in items:
        if isinstance(item, RefreshableView):
            draft.merge(drop_refreshable(snapshot, item))
    dropped_ids = _dropped_ids(draft)
    for item in items:
        if item.id in dropped_ids:
            continue
        refuse_dependents(snapshot, item, "drop", but=dropped_ids)
        draft.require(
            RevisionIs(item.id, item.revision), NoDependents(item.id, except_ids=dropped_ids)
        )
        draft.change(DropObject(item.id, recoverable=not statement.sync))
    if items:
        publish(draft, context.origin(f"DROP {statement.kind}"))


def _dropped_ids(draft: CommitDraft) -> tuple[str, ...]:
    """Return the ids of the objects that the draft drops, sorted."""
    return tuple(sorted(c.object_id for c in draft.changes if isinstance(c, DropObject)))


def unchanged_and_unneeded(item: SchemaObject) -> list[Requirement]:
    """Return the requirements of a commit that drops the object: it is unchanged since it was read,
    and no materialized view needs it."""
    return [RevisionIs(item.id, item.revision), NoDependents(item.id)]


def _drop_database(
    statement: nodes.Drop, name: nodes.TableName, context: StatementContext, snapshot: Snapshot
) -> None:
    """Make one attempt to drop a database with its objects.

    Raises HaveDependentObjects if a view of another database needs one of them. The commit
    conflicts with a concurrent CREATE in the database, whose table would lack a database.
    Also raises NotSupportedError.
    """
    if statement.if_empty:
        raise NotSupportedError(
            "DROP DATABASE IF EMPTY is not supported.",
            hint="Look with SHOW TABLES first.",
            position=statement.position,
        )
    if name.name not in snapshot.databases and statement.if_exists:
        return
    require_database(name.name, snapshot, name.position)
    refuse_if_any_large(name.name, context, snapshot, name.position)
    requirements, changes = _drop_all_objects(
        name.name, snapshot, name.position, not statement.sync, detached=True
    )
    commit_schema_change(
        context, "DROP DATABASE", requirements, [*changes, DropDatabase(name.name)]
    )


def drop_all(statement: nodes.TruncateAll, context: StatementContext) -> Result:
    """Run TRUNCATE DATABASE: drop all objects of the database in one commit. The database stays,
    and UNDROP can recover tables."""
    retry_on_conflict(context, partial(_drop_all, statement, context))
    return Result()


def _drop_all(statement: nodes.TruncateAll, context: StatementContext, snapshot: Snapshot) -> None:
    """Make one attempt of `drop_all` at the snapshot."""
    if statement.if_exists and statement.database not in snapshot.databases:
        return
    require_database(statement.database, snapshot, statement.position)
    refuse_if_any_large(statement.database, context, snapshot, statement.position)
    requirements, changes = _drop_all_objects(
        statement.database, snapshot, statement.position, True
    )
    if changes:
        commit_schema_change(context, "TRUNCATE DATABASE", requirements, changes)


def _drop_all_objects(
    database: str,
    snapshot: Snapshot,
    position: Position | None,
    recoverable: bool,
    *,
    detached: bool = False,
) -> tuple[list[Requirement], list[Change]]:
    """Return the requirements and changes of a commit that drops all objects of the database, views
    first, with `detached` also those that are detached. Raise HaveDependentObjects if a view
    elsewhere needs one, IncorrectQuery for a system database."""
    if database in SYSTEM_DATABASES:
        raise IncorrectQuery(f"The database {database} cannot be dropped.", position=position)
    members = list(snapshot.objects(database))
    if detached:
        members += [
            item
            for item in snapshot.objects()
            if is_hidden(item.database) and own_names(item.name)[0] == database
        ]
    ids = {member.id for member in members}
    for item in snapshot.objects():
        if item.id in ids:
            continue
        if isinstance(item, MaterializedView | RefreshableView):
            depends = any(map(item.needs, ids))
        else:
            depends = any(is_dictionary_over(item, member) for member in members)
        if depends:
            raise HaveDependentObjects(
                f"Cannot drop all of database {database}: {item.database}.{item.name} depends on it.",
                hint=f"{drop_text(item)} first.",
            )
    drop_order = sorted(members, key=lambda member: isinstance(member, Table))
    view_ids = tuple(
        sorted(member.id for member in members if not isinstance(member, Table | View))
    )
    requirements: list[Requirement] = [DatabaseExists(database)]
    requirements += [RevisionIs(member.id, member.revision) for member in members]
    requirements += [NoDependents(member.id, except_ids=view_ids) for member in members]
    of_functions, dropped_functions = drop_of_database(database, snapshot)
    requirements += of_functions
    dropped_objects = [
        DropObject(member.id, recoverable=recoverable and not is_hidden(member.database))
        for member in drop_order
    ]
    return requirements, [*dropped_objects, *dropped_functions]
