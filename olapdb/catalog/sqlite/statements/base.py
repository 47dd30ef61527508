"""A statement: built by SQLAlchemy Core, compiled at first use, run as text.

Running Core itself costs more than a whole commit; its text on the driver's connection does not
(0.17 ms against 1.2 ms for a durable commit of a source and a view).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.elements import UnaryExpression
from sqlalchemy.sql.operators import custom_op

P = sa.bindparam


class CatalogStatement:
    """A statement with named parameters; calling it runs it on a driver's connection."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build

    @cached_property
    def compiled(self) -> tuple[str, tuple[str, ...]]:
        """The text and the names of its parameters in their order."""
        compiled = self._build().compile(
            dialect=sqlite.dialect(paramstyle="qmark"), compile_kwargs={"render_postcompile": True}
        )
        return str(compiled), tuple(compiled.positiontup or ())

    def __call__(self, connection: sqlite3.Connection, **values: object) -> sqlite3.Cursor:
        text, names = self.compiled
        return connection.execute(text, [values[name] for name in names])

    def value(self, connection: sqlite3.Connection, **values: object) -> Any:
        """Return the first column of the first row, None without rows; read no further."""
        row = self(connection, **values).fetchone()
        return None if row is None else row[0]


def insert_into(table: sa.Table) -> CatalogStatement:
    """Return an INSERT of all columns except a row id that SQLite assigns."""
    names = [c.name for c in table.columns if c.name != "row_id"]
    return CatalogStatement(lambda: sa.insert(table).values({n: P(n) for n in names}))


def alive(table: sa.Table) -> Any:
    """Return the condition that a row is visible at the parameter `number`."""
    return sa.and_(
        table.c.created_commit <= P("number"),
        sa.or_(table.c.dropped_commit.is_(None), table.c.dropped_commit > P("number")),
    )


def unindexed(column: sa.Column[Any]) -> Any:
    """Return the column as an expression that no index serves, so that SQLite picks another index.
    Without statistics it prefers the one that narrows least."""
    return UnaryExpression(column, operator=custom_op("+"))


def listed(name: str) -> Any:
    """Return a subquery over the values of a parameter that is a JSON list."""
    return sa.select(sa.func.json_each(P(name)).table_valued("value").c.value)
