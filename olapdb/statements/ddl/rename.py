"""RENAME and EXCHANGE: names change, identities do not, and views follow their tables."""

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
from olapdb.statements.ddl.attempts import attempted, commit
from olapdb.statements.introspect.show import require_database, require_own_database
from olapdb.views.definition.create import rewrite_references

Name = tuple[str, str]
"""(database, name)"""


def rename(statement: nodes.Rename, context: StatementContext) -> Result:
    """All pairs in one commit, one after the other: `a TO c, b TO a, c TO b` swaps."""
    run = _rename_databases if statement.kind == "DATABASE" else _rename_tables
    attempted(context, partial(run, statement, context))
    return Result()


def exchange(statement: nodes.Exchange, context: StatementContext) -> Result:
    """Two tables swap their names, in one commit. Identities stay: a view keeps writing to the
    table that it wrote to, under its new name."""
    attempted(context, partial(_exchange, statement, context))
    return Result()


def _rename_tables(statement: nodes.Rename, context: StatementContext, snapshot: Snapshot) -> None:
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
    _publish(context, "RENAME", snapshot, touched.values(), new_names)


def _exchange(statement: nodes.Exchange, context: StatementContext, snapshot: Snapshot) -> None:
    left, right = (context.require(snapshot, n) for n in (statement.left, statement.right))
    names = {left.id: (right.database, right.name), right.id: (left.database, left.name)}
    _publish(context, "EXCHANGE", snapshot, (left, right), names)


def _rename_databases(
    statement: nodes.Rename, context: StatementContext, snapshot: Snapshot
) -> None:
    """With all that is in them. A table that is created in one of them meanwhile would be without
    a database, so the commit conflicts, and looks again."""
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
    _publish(
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
    """(old name, new name), and whether IF EXISTS stands before them."""
    rest = len(statement.pairs) - len(statement.if_exists)
    return zip(statement.pairs, (*statement.if_exists, *[False] * rest), strict=True)


def _publish(
    context: StatementContext,
    kind: str,
    snapshot: Snapshot,
    items: Iterable[SchemaObject],
    names: Mapping[str, Name],
    databases: Sequence[Change] = (),
) -> None:
    """One commit: `items` under their new `names` (by id), and every view whose text names one.

    It requires that what it puts back is what it read, and that no view has come or changed since:
    one that names an object by its old name would be left behind.
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
    changed = _renamed(snapshot, moving, moved)
    commit(context, kind, requirements, [*databases, *(PutObject(o) for o in changed)])


def _renamed(
    snapshot: Snapshot, moving: Sequence[SchemaObject], moved: Mapping[Name, Name]
) -> list[SchemaObject]:
    """The objects under their new names, then the other views whose text changes with them. What
    they mean does not change, so neither does a `version`."""

    rewritten: dict[str, View | MaterializedView] = {
        v.id: v for v in rewrite_references(snapshot, moved)
    }
    changed: list[SchemaObject] = [
        rewritten.pop(o.id, o).renamed(*moved[o.database, o.name]) for o in moving
    ]
    return [*changed, *rewritten.values()]
