"""A statement as SQLAlchemy Core builds it, and its text for SQLite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.elements import UnaryExpression
from sqlalchemy.sql.operators import custom_op

P = sa.bindparam


class CoreStatement:
    """A statement with named parameters."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build

    def compiled(self) -> tuple[str, tuple[str, ...]]:
        """Return the text for SQLite and the names of its parameters in their order."""
        compiled = self._build().compile(
            dialect=sqlite.dialect(paramstyle="qmark"), compile_kwargs={"render_postcompile": True}
        )
        return str(compiled), tuple(compiled.positiontup or ())


def insert_into(table: sa.Table) -> CoreStatement:
    """Return an INSERT of all columns except a row id that SQLite assigns."""
    names = [c.name for c in table.columns if c.name != "row_id"]
    return CoreStatement(lambda: sa.insert(table).values({n: P(n) for n in names}))


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
    """Return a subquery with a row for each value of the parameter `name`, a JSON list."""
    return sa.select(sa.func.json_each(P(name)).table_valued("value").c.value)
