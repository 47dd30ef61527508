"""RENAME and EXCHANGE: names change, ids stay, and the text of views follows the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.errors import DatabaseAlreadyExists, IncorrectQuery, TableAlreadyExists
from olapdb.model.changes import (
    Change,
    CreateDatabase,
    DatabaseExists,
    DropDatabase,
    NameIsFree,
    NoViewSince,
    PutObject,
    Requirement,
    RevisionIs,
)
from olapdb.model.schema import MaterializedView, SchemaObject, View
from olapdb.model.snapshot import Snapshot
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext, unknown_table
from olapdb.statements.ddl.attempts import commit_schema_change, retry_on_conflict
from olapdb.statements.introspect.show import require_database, require_own_database
from olapdb.views.definition.create import rewrite_references

Name = tuple[str, str]
"""(database, name)"""


def rename(statement: nodes.Rename, context: StatementContext) -> Result:
    """Run RENAME TABLE or DATABASE in one commit. Pairs apply in order: `a TO c, b TO a, c TO b`
    swaps."""
    run = _rename_databases if statement.kind == "DATABASE" else _rename_tables
    retry_on_conflict(context, partial(run, statement, context))
    return Result()


def exchange(statement: nodes.Exchange, context: StatementContext) -> Result:
    """Run EXCHANGE TABLES: two tables swap names in one commit. Ids stay: a view still writes to
    the same table, under its new name."""
    retry_on_conflict(context, partial(_exchange, statement, context))
    return Result()


def _rename_tables(statement: nodes.Rename, context: StatementContext, snapshot: Snapshot) -> None:
    """Make one attempt of RENAME TABLE at the snapshot. Raise UnknownTable, TableAlreadyExists."""
    names: dict[Name, SchemaObject] = {(o.database, o.name): o for o in snapshot.objects()}
    touched: dict[str, SchemaObject] = {}
    for (old, new), if_exists in _pairs(statement):
        before, after = context.locate(old), context.locate(new)
        item = names.get(before)
        if item is None and if_exists:
            continue
        if item is None:
            raise unknown_table(snapshot, *before).at(old.position)
        require_own_database(after[0], snapshot, new.position)
        if after in names:
            raise TableAlreadyExists(
                f"{after[0]}.{after[1]} exists.",
                hint="EXCHANGE TABLES swaps two tables.",
                position=new.position,
            )
        names[after] = names.pop(before)
        touched[item.id] = item
    new_names = {item.id: name for name, item in names.items() if item.id in touched}
    _commit_renames(context, "RENAME", snapshot, touched.values(), new_names)


def _exchange(statement: nodes.Exchange, context: StatementContext, snapshot: Snapshot) -> None:
    """Make one attempt of `exchange` at the snapshot."""
    left, right = (context.require(snapshot, n) for n in (statement.left, statement.right))
    names = {left.id: (right.database, right.name), right.id: (left.database, left.name)}
    _commit_renames(context, "EXCHANGE", snapshot, (left, right), names)


def _rename_databases(
    statement: nodes.Rename, context: StatementContext, snapshot: Snapshot
) -> None:
    """Make one attempt of RENAME DATABASE, which moves all objects of the databases.

    The commit conflicts with a concurrent CREATE in a renamed database, whose table would lack a
    database; the statement is then retried.
    """
    databases = dict(snapshot.databases)
    for (old, new), if_exists in _pairs(statement):
        if if_exists and old.name not in databases:
            continue
        reserved = next((n.name for n in (old, new) if n.name in SYSTEM_DATABASES), None)
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
    new_name = {one.id: name for name, one in databases.items()}
    moving = [one for one in snapshot.databases.values() if new_name[one.id] != one.name]
    renamed = {one.name: new_name[one.id] for one in moving}
    items = [o for o in snapshot.objects() if o.database in renamed]
    changes: list[Change] = [DropDatabase(one.name) for one in moving]
    changes += [CreateDatabase(replace(one, name=new_name[one.id])) for one in moving]
    _commit_renames(
        context,
        "RENAME DATABASE",
        snapshot,
        items,
        {o.id: (renamed[o.database], o.name) for o in items},
        changes,
    )


def _pairs(
    statement: nodes.Rename,
) -> Iterator[tuple[tuple[nodes.TableName, nodes.TableName], bool]]:
    """Yield each (old name, new name), and whether it has IF EXISTS."""
    rest = len(statement.pairs) - len(statement.if_exists)
    return zip(statement.pairs, (*statement.if_exists, *[False] * rest), strict=True)


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
    moving = [o for o in items if names[o.id] != (o.database, o.name)]
    if not moving and not databases:
        return
    moved = {(o.database, o.name): names[o.id] for o in moving}
    requirements: list[Requirement] = [RevisionIs(o.id, o.revision) for o in moving]
    requirements.append(NoViewSince(snapshot.number))
    if not databases:
        requirements += [DatabaseExists(d) for d in dict.fromkeys(d for d, _ in moved.values())]
    requirements += [NameIsFree(*name) for name in moved.values() if name not in moved]
    changed = _renamed_objects(snapshot, moving, moved)
    commit_schema_change(
        context, kind, requirements, [*databases, *(PutObject(o) for o in changed)]
    )


def _renamed_objects(
    snapshot: Snapshot, moving: Sequence[SchemaObject], moved: Mapping[Name, Name]
) -> list[SchemaObject]:
    """Return the objects under their new names, then the other views whose text changes. `version`
    stays, since no meaning changes."""

    rewritten: dict[str, View | MaterializedView] = {
        v.id: v for v in rewrite_references(snapshot, moved)
    }
    changed: list[SchemaObject] = [
        rewritten.pop(o.id, o).renamed(*moved[o.database, o.name]) for o in moving
    ]
    return [*changed, *rewritten.values()]
