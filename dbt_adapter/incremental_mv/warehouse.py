"""What `incremental_mv` asks of the engine and tells it, as statements and system tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from olapdb.sql.nodes import TableName
from olapdb.types import DataType

from ..connections import Handle, OlapdbConnectionManager
from ..relation import quote, string_literal
from .chain import Upstream
from .definition import COMMENT_KEY
from .names import Names


@dataclass(frozen=True)
class TableInfo:
    """`engine` is View or MaterializedView for these."""

    database: str
    name: str
    uuid: str
    engine: str
    partition_key: str


@dataclass(frozen=True)
class ViewInfo:
    """A trigger, and what its comment says of the model; `model` "" where it is not dbt's."""

    database: str
    name: str
    target_database: str
    target: str
    model: str = ""
    digest: str = ""
    facts: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Health:
    """A row of system.views."""

    verdict: str
    reason: str
    gap_parts: int
    gap_rows: int
    bypass_rows: int
    stale_slices: int
    mend: str


class Warehouse:
    """Over the connection of the calling thread; errors are dbt's, with the engine's text."""

    def __init__(
        self,
        connections: OlapdbConnectionManager,
        handle: Callable[[], Handle],
        prepare: Callable[[str], None] = lambda engine: None,
    ) -> None:
        self._connections = connections
        self._handle = handle
        self._prepare = prepare
        self.statements: list[str] = []
        """The statements that changed something, for the run's results."""

    # --- questions

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """A query's rows as dictionaries."""
        _, cursor = self._connections.add_select_query(sql)
        rows: list[dict[str, Any]] = cursor.fetch_arrow_table().to_pylist()
        return rows

    def describe(self, sql: str) -> tuple[tuple[str, DataType], ...]:
        """Names and types of a query's columns."""
        with self._connections.exception_handler(sql):
            return self._handle().connection.describe(sql)

    def table(self, name: TableName, database: str) -> TableInfo | None:
        """A table or view by name; `database` is that of names without one."""
        found = self.rows(
            "SELECT database, name, uuid, engine, partition_key FROM system.tables "
            f"WHERE database = {string_literal(name.database or database)} "
            f"AND name = {string_literal(name.name)}"
        )
        return TableInfo(**found[0]) if found else None

    def view(self, names: Names) -> ViewInfo | None:
        """The model's trigger, whoever made it."""
        found = self.rows(
            "SELECT database, name, target_database, target_table AS target, comment "
            "FROM system.tables WHERE engine = 'MaterializedView' "
            f"AND database = {string_literal(names.database)} "
            f"AND name = {string_literal(names.view)}"
        )
        return _view(found[0]) if found else None

    def owns(self, names: Names) -> bool:
        """Whether the relation is the read view of an `incremental_mv`."""
        view = self.view(names)
        return view is not None and bool(view.model) and view.target == names.target

    def upstream(self, name: TableName, database: str) -> Upstream | None:
        """The `incremental_mv` of that name, where it is one."""
        view = self.view(Names(name.database or database, name.name))
        if view is None or not view.model:
            return None
        target = TableName(view.target, view.target_database)
        return Upstream(name.name, target, view.facts)

    def readers(self, database: str, table: str, *, kind: str = "source") -> dict[str, ViewInfo]:
        """The triggers that read the table, by `database.name`."""
        found = self.rows(
            "SELECT t.database AS database, t.name AS name, t.target_database AS target_database, "
            "t.target_table AS target, t.comment AS comment FROM system.view_dependencies AS d "
            "INNER JOIN system.tables AS t ON t.database = d.database AND t.name = d.view "
            f"WHERE d.kind = {string_literal(kind)} "
            f"AND d.depends_on_database = {string_literal(database)} "
            f"AND d.depends_on = {string_literal(table)}"
        )
        return {f"{r['database']}.{r['name']}": _view(r) for r in found}

    def health(self, names: Names) -> Health | None:
        """What the engine says of the model's trigger; None where there is none."""
        found = self.rows(
            "SELECT verdict, reason, gap_parts, gap_rows, bypass_rows, stale_slices, mend "
            f"FROM system.views WHERE database = {string_literal(names.database)} "
            f"AND name = {string_literal(names.view)}"
        )
        return Health(**found[0]) if found else None

    # --- changes

    def run(self, sql: str) -> None:
        """A statement that changes something."""
        self.statements.append(sql)
        self._connections.add_select_query(sql)

    def drop(self, names: Names) -> None:
        """Trigger, read view and target, as far as they are there."""
        for name, kind in ((names.view, "VIEW"), (names.model, "VIEW"), (names.target, "TABLE")):
            if self.table(TableName(name, names.database), names.database) is not None:
                self.run(f"DROP {kind} {self.sql_name(names, name)}")

    def slow(
        self,
        action: str,
        names: Names,
        rest: str = "",
        *,
        engine: str = "in_process",
        progress: Callable[[Any], None] | None = None,
    ) -> list[dict[str, Any]]:
        """`SYSTEM <action> VIEW <trigger> <rest>`, in process or on Spark; its rows."""
        sql = f"SYSTEM {action} VIEW {self.sql_name(names, names.view)}"
        if rest:
            sql += f" {rest}"
        if engine != "in_process":
            sql += f" SETTINGS engine = {string_literal(engine)}"
            self._prepare(engine)
        self.statements.append(sql)
        _, rows = self._connections.run_slow(sql, progress)
        return rows

    @staticmethod
    def sql_name(names: Names, name: str) -> str:
        return f"{quote(names.database)}.{quote(name)}"


def _view(row: Mapping[str, Any]) -> ViewInfo:
    body = _comment_body(row["comment"])
    facts: dict[str, tuple[str, str]] = {}
    for name, fact in body.get("columns", {}).items():
        facts[name] = _fact(fact)
    return ViewInfo(
        row["database"],
        row["name"],
        row["target_database"],
        row["target"],
        str(body.get("model", "")),
        str(body.get("definition", "")),
        facts,
    )


def _fact(value: Sequence[str]) -> tuple[str, str]:
    meaning, function = value
    return meaning, function


def _comment_body(comment: str) -> Mapping[str, Any]:
    """Our JSON in the comment; empty where the comment is someone else's."""
    try:
        parsed = json.loads(comment)
    except ValueError:
        return {}
    body = parsed.get(COMMENT_KEY) if isinstance(parsed, dict) else None
    return body if isinstance(body, dict) else {}
