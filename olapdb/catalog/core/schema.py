"""Databases, tables and views as of a commit; dropped tables that can be recovered."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from olapdb.catalog.core import tables as t
from olapdb.catalog.core.base import CoreStatement, P, alive, insert_into

insert_database = insert_into(t.databases)
drop_database = CoreStatement(
    lambda: (
        sa.update(t.databases)
        .where(t.databases.c.name == P("of_name"), t.databases.c.dropped_commit.is_(None))
        .values(dropped_commit=P("number"))
    )
)
databases_at = CoreStatement(
    lambda: sa.select(t.databases.c.id, t.databases.c.name, t.databases.c.comment).where(
        alive(t.databases)
    )
)
insert_object = insert_into(t.objects)
drop_object = CoreStatement(
    lambda: (
        sa.update(t.objects)
        .where(t.objects.c.id == P("object_id"), t.objects.c.dropped_commit.is_(None))
        .values(dropped_commit=P("number"))
    )
)


def _field_of_body(name: str) -> Any:
    """Return the expression of the field `name` in the JSON of a table or view."""
    return sa.func.json_extract(t.objects.c.body, sa.literal_column(f"'$.{name}'"))


objects_at = CoreStatement(
    lambda: sa.select(
        t.objects.c.row_id,
        t.objects.c.id,
        t.objects.c.kind,
        _field_of_body("database"),
        _field_of_body("name"),
        t.objects.c.body,
    ).where(alive(t.objects))
)

remember_dropped_table = insert_into(t.dropped_tables)
list_dropped_tables = CoreStatement(
    lambda: sa.select(*t.dropped_tables.columns).order_by(t.dropped_tables.c.dropped_commit)
)
forget_dropped_table = CoreStatement(
    lambda: sa.delete(t.dropped_tables).where(t.dropped_tables.c.table_id == P("of_table"))
)


def _schema_changed() -> Any:
    """Return the query that gives a row for each database, table or view that a commit after :after
    created or dropped."""
    changed: list[Any] = [
        sa.select(sa.literal_column("1")).where(column > P("after"))
        for table in (t.databases, t.objects)
        for column in (table.c.created_commit, table.c.dropped_commit)
    ]
    return sa.union_all(*changed)


schema_changed = CoreStatement(_schema_changed)
