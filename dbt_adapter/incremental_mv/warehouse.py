"""The engine as `incremental_mv` uses it: statements, and queries of system tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from typing import Any

from olapdb.sql.nodes import TableName
from olapdb.types import DataType

from ..connections import Handle, OlapdbConnectionManager
from ..relation import quote, string_literal
from .chain import Upstream
from .model_definition import COMMENT_KEY
from .names import ModelNames
from .shared_reads import Name, Rows, RunReads, UnchangedTables
from .turn import Turn


@dataclass(frozen=True)
class TableInfo:
    """A table or view, from system.tables.

    `engine` is View or MaterializedView for views, whose stored query is `as_select`. `engine_full`
    are the clauses of a table from its engine on, `create_table_query` its whole DDL."""

    database: str
    name: str
    uuid: str
    engine: str
    partition_key: str
    engine_full: str
    as_select: str
    create_table_query: str


@dataclass(frozen=True)
class ViewInfo:
    """A trigger, with the model's data from its comment. `model` is "" if dbt did not create it.

    `read` are the columns and the GROUP BY of the read view that belongs to the trigger, `trigger`
    is the SELECT that it was created with; both are None where an older adapter made it."""

    database: str
    name: str
    target_database: str
    target: str
    model: str = ""
    digest: str = ""
    column_kinds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    read: tuple[str, str] | None = None
    trigger: str | None = None
    options: str = ""
    as_select: str = ""
    """The stored query of the trigger."""
    shares: str = ""
    """The relation name of the model whose target the trigger writes, "" for one of its own."""


@dataclass(frozen=True)
class ModelState:
    """The parts of a model that exist: trigger, target, and what has the name of its read view."""

    view: ViewInfo | None
    target: TableInfo | None
    read_view: TableInfo | None


@dataclass(frozen=True)
class Health:
    """The health of a trigger, from system.views."""

    verdict: str
    reason: str
    gap_parts: int
    gap_rows: int
    bypass_rows: int
    stale_slices: int
    mend: str
    attached: int = 1
    candidate: str = ""
    """The unfinished version of a rebuild, as `database.name`, or ""."""


class Warehouse:
    """The engine over the calling thread's connection. Errors are dbt's, with the engine's text."""

    def __init__(
        self,
        connections: OlapdbConnectionManager,
        handle: Callable[[], Handle],
        prepare: Callable[[str], None] = lambda engine: None,
        shared: RunReads | None = None,
        turn: Turn | None = None,
    ) -> None:
        self._connections = connections
        self._handle = handle
        self._prepare = prepare
        self._shared = shared
        self._turn = turn or Turn()
        self._looked_up: dict[Name, Mapping[str, Any] | None] = {}
        self.statements: list[str] = []
        """The statements that changed something, in order, for the run's results."""

    # --- queries

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Run a query and return its rows as dictionaries."""
        _, cursor = self._connections.add_select_query(sql)
        rows: list[dict[str, Any]] = cursor.fetch_arrow_table().to_pylist()
        return rows

    def written_out(self, sql: str) -> str:
        """Return the query with the calls of functions that the project made written out."""
        handle = self._handle()
        return str(handle.connection.execute(f"EXPLAIN SYNTAX {sql}").fetchall()[0][0])

    def stored_query(self, sql: str) -> str:
        """Return the query as a view stores it, without running it."""
        with self._connections.exception_handler(sql):
            return self._handle().connection.stored_query(sql)

    def describe(self, sql: str) -> tuple[tuple[str, DataType], ...]:
        """Return the names and types of a query's columns without running it."""
        with self._connections.exception_handler(sql):
            return self._handle().connection.describe(sql)

    def look_up(self, names: Iterable[Name]) -> None:
        """Look up relations, as (database, name), in one query.

        `table` and `view` answer from it until this warehouse changes something."""
        missing = sorted(set(names) - self._looked_up.keys())
        if not missing:
            return
        if self._shared is None:
            rows = self._fetch_tables(missing)
        else:
            rows = self._shared.tables.rows(missing, self._newest_commit, self._fetch_tables)
        self._looked_up |= {name: rows.get(name) for name in missing}

    def _newest_commit(self) -> int:
        """Return the number of the newest commit of the warehouse."""
        return self._handle().newest_commit()

    def _fetch_tables(self, names: Iterable[Name]) -> Rows:
        """Return the rows of system.tables of these names, in at most one query.

        The query is only for names that exist, and of tables for those that were changed."""
        objects = self._handle().objects(names)
        unchanged = self._shared.unchanged if self._shared is not None else UnchangedTables()
        known = unchanged.rows(objects)
        missing = objects.keys() - known.keys()
        if not missing:
            return known
        rows = self._fetch(
            "SELECT database, name, toString(uuid) AS uuid, engine, partition_key, engine_full, as_select, "
            "create_table_query, target_database, target_table AS target, comment "
            "FROM system.tables",
            missing,
        )
        unchanged.keep(objects, rows)
        return {**known, **rows}

    def _fetch_health(self, names: Iterable[Name]) -> Rows:
        """Return the health of the triggers of these names, in one query."""
        return self._fetch(
            "SELECT database, name, verdict, reason, gap_parts, gap_rows, bypass_rows, "
            "stale_slices, mend, attached, candidate FROM system.views",
            names,
        )

    def _fetch(self, select: str, names: Iterable[Name]) -> Rows:
        """Return the rows of the query with these names, by database and name."""
        conditions = [
            f"(database = {string_literal(database)} AND name IN "
            f"({', '.join(string_literal(name) for _, name in listed)}))"
            for database, listed in groupby(sorted(names), key=lambda name: name[0])
        ]
        rows = self.rows(f"{select} WHERE {' OR '.join(conditions)}")
        return {(row["database"], row["name"]): row for row in rows}

    def model_state(self, names: ModelNames, reads: Iterable[TableName] = ()) -> ModelState:
        """Return the parts of a model, looked up in one query with the relations that it reads.

        For each of `reads` that is an `incremental_mv`, its parts are looked up too."""
        relations = [(names.database, n) for n in (names.model, names.view, names.target)]
        if names.shares:
            relations.append((names.database, ModelNames(names.database, names.shares).view))
        for read in reads:
            upstream = ModelNames(read.database or names.database, read.name)
            parts = [upstream.model, upstream.view, upstream.target]
            relations += [(upstream.database, name) for name in parts]
        self.look_up(relations)
        return ModelState(
            view=self.view(names),
            target=self.table(names.table(names.target), names.database),
            read_view=self.table(names.table(names.model), names.database),
        )

    def has_rows(self, names: ModelNames, state: ModelState) -> bool:
        """Return whether the model has a target with rows."""
        if state.target is None:
            return False
        return bool(self.rows(f"SELECT 1 FROM {self.sql_name(names, names.target)} LIMIT 1"))

    def table(self, name: TableName, database: str) -> TableInfo | None:
        """Return a table or view by name, or None; `database` is that of names without one."""
        row = self._relation(name.database or database, name.name)
        if row is None:
            return None
        return TableInfo(*(row[f.name] for f in fields(TableInfo)))

    def view(self, names: ModelNames) -> ViewInfo | None:
        """Return the materialized view with the name of the model's trigger, dbt's or not; or None."""
        row = self._relation(names.database, names.view)
        return _view(row) if row is not None and row["engine"] == "MaterializedView" else None

    def _relation(self, database: str, name: str) -> Mapping[str, Any] | None:
        """Return the row of a relation, or None; look it up if it is not known."""
        self.look_up([(database, name)])
        return self._looked_up[database, name]

    def version(self, name: str) -> ViewInfo | None:
        """Return the version of a trigger with the name `database.name`, None if it is gone."""
        database, _, view = name.partition(".")
        row = self._relation(database, view)
        return None if row is None else _view(row)

    def comment(self, database: str, name: str) -> str:
        """Return the comment of a relation, "" if there is none."""
        row = self._relation(database, name)
        return str(row["comment"]) if row is not None else ""

    def owns(self, names: ModelNames) -> bool:
        """Return whether the relation is the read view of an `incremental_mv`."""
        view = self.view(names)
        return (
            view is not None
            and bool(view.model)
            and view.target == replace(names, shares=view.shares).target
        )

    def named(self, database: str, model: str) -> ModelNames:
        """Return the names of a model as its live trigger has them."""
        names = ModelNames(database, model)
        view = self.view(names)
        return names if view is None else replace(names, shares=view.shares)

    def other_writers(self, names: ModelNames) -> list[str]:
        """Return the triggers, as `database.name`, that write the model's target beside its own."""
        rows = self.rows(
            "SELECT database, name FROM system.views WHERE standing = '' "
            f"AND target_database = {string_literal(names.database)} "
            f"AND target_table = {string_literal(names.target)} ORDER BY database, name"
        )
        own = (names.database, names.view)
        return [f"{r['database']}.{r['name']}" for r in rows if (r["database"], r["name"]) != own]

    def upstream(self, name: TableName, database: str) -> Upstream | None:
        """Return the `incremental_mv` of that name, or None if there is none."""
        view = self.view(ModelNames(name.database or database, name.name))
        if view is None or not view.model:
            return None
        target = TableName(view.target, view.target_database)
        return Upstream(name.name, target, view.column_kinds)

    def readers(self, database: str, table: str, *, kind: str = "source") -> dict[str, ViewInfo]:
        """Return the triggers that read the table, by `database.name`.

        `kind` is how they read it: "source" if its INSERTs fire them, "dimension" if they join
        it, "view" if it is a plain view through which they read others."""
        views = self.rows(
            "SELECT t.database AS database, t.name AS name, t.target_database AS target_database, "
            "t.target_table AS target, t.comment AS comment FROM system.view_dependencies AS d "
            "INNER JOIN system.tables AS t ON t.database = d.database AND t.name = d.view "
            f"WHERE d.kind = {string_literal(kind)} "
            f"AND d.depends_on_database = {string_literal(database)} "
            f"AND d.depends_on = {string_literal(table)}"
        )
        return {f"{row['database']}.{row['name']}": _view(row) for row in views}

    def health(self, names: ModelNames) -> Health | None:
        """Return the health of the model's trigger, or None if there is no trigger."""
        name = (names.database, names.view)
        if self._shared is None:
            row = self._fetch_health([name]).get(name)
        else:
            views = self._shared.views
            row = views.rows([name], self._newest_commit, self._fetch_health).get(name)
        return None if row is None else Health(**{f.name: row[f.name] for f in fields(Health)})

    # --- changes

    def run(self, sql: str) -> None:
        """Run a statement that changes something, and record it."""
        self._looked_up.clear()
        self.statements.append(sql)
        self._connections.add_select_query(sql)

    def run_watched(self, sql: str, progress: Callable[[Any], None]) -> None:
        """Run a statement that backfills in this process; call `progress` with each event."""
        self._looked_up.clear()
        self.statements.append(sql)
        with self._turn.given_up(progress) as watched:
            self._connections.run_system(sql, watched)

    def run_system(
        self,
        action: str,
        names: ModelNames,
        rest: str = "",
        *,
        engine: str = "in_process",
        threads: int = 0,
        progress: Callable[[Any], None] | None = None,
    ) -> list[dict[str, Any]]:
        """Run `SYSTEM <action> VIEW <trigger> <rest>`, in process or on Spark; return its rows.

        `threads` are the chunks computed at a time, 0 for the engine's choice."""
        sql = f"SYSTEM {action} VIEW {self.sql_name(names, names.view)}"
        if rest:
            sql += f" {rest}"
        settings = [f"backfill_threads = {threads}"] if threads else []
        if engine != "in_process":
            settings.append(f"engine = {string_literal(engine)}")
        if settings:
            sql += f" SETTINGS {', '.join(settings)}"
        self._looked_up.clear()
        self.statements.append(sql)
        is_local_backfill = action == "BACKFILL" and engine == "in_process"
        with self._turn.given_up(progress if is_local_backfill else None) as watched:
            if engine != "in_process":
                self._prepare(engine)
            _, rows = self._connections.run_system(sql, watched if is_local_backfill else progress)
        return rows

    @staticmethod
    def sql_name(names: ModelNames, name: str) -> str:
        """Return `database`.`name` for SQL, in the database of the model."""
        return f"{quote(names.database)}.{quote(name)}"


def _view(row: Mapping[str, Any]) -> ViewInfo:
    """Return the trigger of a row of system.tables."""
    body = comment_body(row["comment"])
    read = body.get("read")
    return ViewInfo(
        row["database"],
        row["name"],
        row["target_database"],
        row["target"],
        str(body.get("model", "")),
        str(body.get("definition", "")),
        {name: (kind, function) for name, (kind, function) in body.get("columns", {}).items()},
        (str(read[0]), str(read[1])) if read else None,
        body.get("trigger"),
        str(body.get("options", "")),
        str(row.get("as_select", "")),
        str(body.get("shares", "")),
    )


def comment_body(comment: str) -> Mapping[str, Any]:
    """Return the model's data from a view's comment; empty if dbt did not write the comment."""
    try:
        parsed = json.loads(comment)
    except ValueError:
        return {}
    body = parsed.get(COMMENT_KEY) if isinstance(parsed, dict) else None
    return body if isinstance(body, dict) else {}
