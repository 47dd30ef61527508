"""RENAME and EXCHANGE: names change, ids stay, and the text of views follows the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.errors import DatabaseAlreadyExists, IncorrectQuery, TableAlreadyExists
from olapdb.model.changes import (
    AddDatabase,
    Change,
    DropDatabase,
    PutFunction,
    PutObject,
    RemoveFunction,
)
from olapdb.model.detached import detached_name, is_hidden, own_names
from olapdb.model.requirements import (
    DatabaseExists,
    NameIsFree,
    NoViewSince,
    Requirement,
    RevisionIs,
)
from olapdb.model.schema import SchemaObject
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext, unknown_table
from olapdb.statements.databases import require_database, require_own_database
from olapdb.statements.ddl.attempts import commit_schema_change, retry_on_conflict
from olapdb.statements.ddl.functions import functions_in_renamed_databases
from olapdb.views.definition.create import rewrite_references

Name = tuple[str, str]
"""(database, name)"""


def rename(statement: nodes.Rename, context: StatementContext) -> Result:
    """Run RENAME TABLE or DATABASE in one commit. Pairs apply in order: `a TO c, b TO a, c TO b`
    swaps."""
    attempt = _rename_databases if statement.kind == "DATABASE" else _rename_tables
    retry_on_conflict(context, partial(attempt, statement, context))
    return Result()


def exchange(statement: nodes.Exchange, context: StatementContext) -> Result:
    """Run EXCHANGE TABLES: the tables of each pair swap names, all in one commit. Ids stay: a view
    still writes to the same table, under its new name."""
    retry_on_conflict(context, partial(_exchange, statement, context))
    return Result()


def _rename_tables(statement: nodes.Rename, context: StatementContext, snapshot: Snapshot) -> None:
    """Make one attempt of RENAME TABLE at the snapshot. Raise UnknownTable, TableAlreadyExists."""
    names: dict[Name, SchemaObject] = {
        (named_object.database, named_object.name): named_object
        for named_object in snapshot.objects()
    }
    renamed_items: dict[str, SchemaObject] = {}
    for (old, new), if_exists in _pairs(statement):
        old_key, new_key = context.locate(old), context.locate(new)
        item = names.get(old_key)
        if item is None and if_exists:
            continue
        if item is None:
            raise unknown_table(snapshot, *old_key).at(old.position)
        require_own_database(new_key[0], snapshot, new.position)
        if new_key in names:
            raise TableAlreadyExists(
                f"{new_key[0]}.{new_key[1]} exists.",
                hint="EXCHANGE TABLES swaps two tables.",
                position=new.position,
            )
        names[new_key] = names.pop(old_key)
        renamed_items[item.id] = item
    new_names = {item.id: name for name, item in names.items() if item.id in renamed_items}
    _commit_renames(context, "RENAME", snapshot, renamed_items.values(), new_names)


def _exchange(statement: nodes.Exchange, context: StatementContext, snapshot: Snapshot) -> None:
    """Make one attempt of `exchange` at the snapshot."""
    holders: dict[Name, SchemaObject] = {}
    for pair in statement.pairs:
        for name in pair:
            item = context.require(snapshot, name)
            holders.setdefault((item.database, item.name), item)
        left, right = map(context.locate, pair)
        holders[left], holders[right] = holders[right], holders[left]
    names = {item.id: name for name, item in holders.items()}
    _commit_renames(context, "EXCHANGE", snapshot, holders.values(), names)


def _rename_databases(
    statement: nodes.Rename, context: StatementContext, snapshot: Snapshot
) -> None:
    """Make one attempt of RENAME DATABASE, which moves all objects of the databases.

    The commit conflicts with a concurrent CREATE in a renamed database, whose table would lack a
    database; the statement is then retried.

    Raises IncorrectQuery and DatabaseAlreadyExists.
    """
    databases = dict(snapshot.databases)
    for (old, new), if_exists in _pairs(statement):
        if if_exists and old.name not in databases:
            continue
        reserved = next(
            (
                database_name.name
                for database_name in (old, new)
                if database_name.name in SYSTEM_DATABASES
            ),
            None,
        )
        if reserved is not None:
            raise IncorrectQuery(
                f"The database {reserved} keeps its name, and no other has it.",
                position=old.position,
            )
        if old.name not in databases:
            require_database(old.name, snapshot, old.position)
        if new.name in databases:
            raise DatabaseAlreadyExists(
                f"Database {new.name} exists.", hint="Choose another name.", position=new.position
            )
        databases[new.name] = databases.pop(old.name)
    new_names = {entry.id: name for name, entry in databases.items()}
    renamed = [entry for entry in snapshot.databases.values() if new_names[entry.id] != entry.name]
    new_by_old = {entry.name: new_names[entry.id] for entry in renamed}
    items = [item for item in snapshot.objects() if item.database in new_by_old]
    names = {item.id: (new_by_old[item.database], item.name) for item in items}
    for item in snapshot.objects():
        database, name = own_names(item.name)
        if is_hidden(item.database) and database in new_by_old:
            items.append(item)
            names[item.id] = (item.database, detached_name(new_by_old[database], name))
    functions = functions_in_renamed_databases(new_by_old, snapshot)
    changes: list[Change] = [RemoveFunction(function.id) for function in functions]
    changes += [DropDatabase(entry.name) for entry in renamed]
    changes += [AddDatabase(replace(entry, name=new_names[entry.id])) for entry in renamed]
    changes += [PutFunction(function) for function in functions]
    _commit_renames(context, "RENAME DATABASE", snapshot, items, names, changes)


def _pairs(
    statement: nodes.Rename,
) -> Iterator[tuple[tuple[nodes.TableName, nodes.TableName], bool]]:
    """Yield each (old name, new name), and whether it has IF EXISTS."""
    missing = len(statement.pairs) - len(statement.if_exists)
    return zip(statement.pairs, (*statement.if_exists, *[False] * missing), strict=True)


def _commit_renames(
    context: StatementContext,
    kind: str,
    snapshot: Snapshot,
    items: Iterable[SchemaObject],
    names: Mapping[str, Name],
    databases: Sequence[Change] = (),
) -> None:
    """Commit at once: `items` under their new `names` (by id), all views whose text names one, and
    the changes of `databases`.

    The commit requires that the items are unchanged since they were read. It also requires that no
    view was created or changed since the snapshot: such a view could name an object by its old
    name.
    """
    renamed = [item for item in items if names[item.id] != (item.database, item.name)]
    if not renamed and not databases:
        return
    new_names = {(item.database, item.name): names[item.id] for item in renamed}
    requirements: list[Requirement] = [RevisionIs(item.id, item.revision) for item in renamed]
    requirements.append(NoViewSince(snapshot.number))
    if not databases:
        requirements += [
            DatabaseExists(database)
            for database in dict.fromkeys(database for database, _ in new_names.values())
        ]
    requirements += [NameIsFree(*name) for name in new_names.values() if name not in new_names]
    renamed_items = _renamed_objects(snapshot, renamed, new_names)
    commit_schema_change(
        context, kind, requirements, [*databases, *(PutObject(item) for item in renamed_items)]
    )


def _renamed_objects(
    snapshot: Snapshot, moving: Sequence[SchemaObject], moved: Mapping[Name, Name]
) -> list[SchemaObject]:
    """Return the objects under their new names, then the other views whose text changes. `version`
    stays, since no meaning changes."""
    rewritten: dict[str, SchemaObject] = {
        view.id: view for view in rewrite_references(snapshot, moved)
    }
    renamed_items: list[SchemaObject] = [
        rewritten.pop(item.id, item).renamed(*moved[item.database, item.name]) for item in moving
    ]
    return [*renamed_items, *rewritten.values()]
