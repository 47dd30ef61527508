"""CREATE, ALTER and DROP NAMED COLLECTION: arguments that are kept under a name."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from functools import partial

from olapdb import errors
from olapdb.model.changes import PutCollection, RemoveCollection
from olapdb.model.named_collection import CollectionEntry, NamedCollection
from olapdb.model.requirements import CollectionIs
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl.attempts import commit_schema_change, retry_on_conflict


def create_collection(statement: nodes.CreateNamedCollection, context: StatementContext) -> Result:
    """Run CREATE NAMED COLLECTION, in one commit. Raises NamedCollectionAlreadyExists."""
    return retry_on_conflict(context, partial(_create, statement, context))


def alter_collection(statement: nodes.AlterNamedCollection, context: StatementContext) -> Result:
    """Run ALTER NAMED COLLECTION: set entries, then delete others, in one commit.

    Raises NamedCollectionDoesNotExist, and BadArguments for a key that is not there."""
    return retry_on_conflict(context, partial(_alter, statement, context))


def drop_collection(statement: nodes.DropNamedCollection, context: StatementContext) -> Result:
    """Run DROP NAMED COLLECTION, in one commit. Raises NamedCollectionDoesNotExist."""
    return retry_on_conflict(context, partial(_drop, statement, context))


def _create(
    statement: nodes.CreateNamedCollection, context: StatementContext, snapshot: Snapshot
) -> Result:
    """Make one attempt of `create_collection` at the snapshot."""
    if statement.name in snapshot.named_collections:
        if statement.if_not_exists:
            return Result()
        raise errors.NamedCollectionAlreadyExists(
            f"A named collection {statement.name} already exists.",
            hint="Say IF NOT EXISTS, or ALTER NAMED COLLECTION.",
            position=statement.position,
        )
    collection = _collection(statement.name, _entries(statement.items))
    commit_schema_change(
        context,
        "CREATE NAMED COLLECTION",
        [CollectionIs(statement.name, None)],
        [PutCollection(collection)],
    )
    return Result()


def _alter(
    statement: nodes.AlterNamedCollection, context: StatementContext, snapshot: Snapshot
) -> Result:
    """Make one attempt of `alter_collection` at the snapshot."""
    collection = _existing(statement, snapshot)
    if collection is None:
        return Result()
    entries = {entry.key: entry for entry in (*collection.entries, *_entries(statement.items))}
    for key in statement.deleted:
        if key not in entries:
            raise errors.BadArguments(
                f"The named collection {statement.name} has no key {key}.",
                hint=f"It has {', '.join(entries)}.",
                position=statement.position,
            )
        del entries[key]
    commit_schema_change(
        context,
        "ALTER NAMED COLLECTION",
        [CollectionIs(collection.name, collection.id)],
        [PutCollection(_collection(collection.name, entries.values()))],
    )
    return Result()


def _drop(
    statement: nodes.DropNamedCollection, context: StatementContext, snapshot: Snapshot
) -> Result:
    """Make one attempt of `drop_collection` at the snapshot."""
    collection = _existing(statement, snapshot)
    if collection is not None:
        changes = [RemoveCollection(collection.id)]
        commit_schema_change(context, "DROP NAMED COLLECTION", (), changes)
    return Result()


def _existing(
    statement: nodes.AlterNamedCollection | nodes.DropNamedCollection, snapshot: Snapshot
) -> NamedCollection | None:
    """Return the collection that the statement names, None for none under IF EXISTS.

    Raises NamedCollectionDoesNotExist."""
    collection = snapshot.named_collections.get(statement.name)
    if collection is None and not statement.if_exists:
        raise errors.NamedCollectionDoesNotExist(
            f"There is no named collection {statement.name}.",
            hint="system.named_collections lists those there are.",
            position=statement.position,
        )
    return collection


def _entries(items: Iterable[nodes.CollectionItem]) -> list[CollectionEntry]:
    """Return the entries of a statement in their order."""
    return [CollectionEntry(item.key, item.value, item.overridable) for item in items]


def _collection(name: str, entries: Iterable[CollectionEntry]) -> NamedCollection:
    """Return a collection with a new id; of two entries with one key, the last."""
    by_key = {entry.key: entry for entry in entries}
    return NamedCollection(str(uuid.uuid4()), name, tuple(by_key[key] for key in sorted(by_key)))
