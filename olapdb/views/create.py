"""CREATE MATERIALIZED VIEW: freezes what the definition means, checks it, opens its coverage.

Coverage opens with the commit: triggers of later INSERTs write it, so every block that is there
already is the view's first gap (rule 2).  POPULATE is a backfill of that gap before returning.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from olapdb.bind import BindScope, bind_query
from olapdb.bind.analysis import source_of
from olapdb.bind.qualify import qualify
from olapdb.config import Settings, SettingValue
from olapdb.errors import (
    BadArguments,
    CommitConflict,
    DuplicateColumn,
    NotSupportedError,
    QueryNotSupportedInMaterializedView,
    TableAlreadyExists,
    TooDeepRecursion,
    UnknownDatabase,
    UnknownTable,
)  # fmt: skip
from olapdb.functions.base import Environment
from olapdb.model.changes import (
    Change,
    Commit,
    DatabaseExists,
    NameIsFree,
    PutObject,
    Requirement,
    SchemaIs,
    ViewsAre,
)  # fmt: skip
from olapdb.model.schema import Column, MaterializedView, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.plan.nodes import Plan, SystemScan
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.transaction.services import Services
from olapdb.views.backfill import BackfillRow, backfill
from olapdb.views.change import dependents, drop_view, rewrite_references, set_attached
from olapdb.views.executor import Executor
from olapdb.views.fit import check_columns
from olapdb.views.jobs import Progress
from olapdb.views.refuse import check_definition
from olapdb.views.shape import scans, walk_plan

__all__ = [
    "BuildInner", "CreatedView", "create_view", "dependents", "drop_view", "rewrite_references",
    "set_attached",
]  # fmt: skip

ATTEMPTS_MAX = 10

BuildInner: TypeAlias = Callable[
    [nodes.CreateMaterializedView, tuple[Column, ...], str], Table
]
"""(statement, the query's columns, the inner table's name) -> the table, by statement.storage."""

MEANING = (
    "join_use_nulls", "final", "union_default_mode", "except_default_mode",
    "intersect_default_mode", "enable_positional_arguments", "prefer_column_name_to_alias",
    "aggregate_functions_null_for_empty", "transform_null_in", "cast_keep_nullable",
    "group_by_use_nulls", "data_type_default_nullable",
)  # fmt: skip
"""Settings that change what a query means; the view keeps them as they are at CREATE."""


@dataclass(frozen=True, slots=True)
class CreatedView:
    """`created` is False where IF NOT EXISTS found it there. `warnings` are worth showing."""

    view: MaterializedView
    target: Table
    created: bool
    warnings: tuple[str, ...] = ()
    backfilled: tuple[BackfillRow, ...] = ()


def create_view(
    services: Services,
    statement: nodes.CreateMaterializedView,
    *,
    database: str,
    settings: Mapping[str, object] | None = None,
    query_id: str = "",
    text: str = "",
    build_inner: BuildInner | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    parameters: Sequence[object] | Mapping[str, object] = (),
) -> CreatedView:
    """Creates the view, with its inner table where there is no TO, in one commit.

    Raises what binding the query raises; QueryNotSupportedInMaterializedView, ViewNotProvable,
    ThereIsNoColumn, DuplicateColumn, TypeMismatch or CannotConvertType where it cannot be a
    trigger into that target; TableAlreadyExists, UnknownTable, UnknownDatabase.
    """
    _refuse_clauses(statement, parameters)
    for _ in range(ATTEMPTS_MAX):
        snapshot = services.catalog.snapshot()
        where = statement.name.database or database, statement.name.name
        found = snapshot.find(*where)
        if found is not None:
            return _already(snapshot, found, statement)
        draft = _Draft(services, snapshot, statement, database, dict(settings or {}), build_inner)
        view, target, requirements, changes = draft.make()
        commit = Commit(
            tuple(requirements), tuple(changes), "CREATE MATERIALIZED VIEW", query_id, text
        )
        try:
            services.catalog.apply(commit)
        except CommitConflict:
            continue
        rows: tuple[BackfillRow, ...] = ()
        if statement.populate:
            rows = tuple(
                backfill(services, view.id, executor=executor, progress=progress,
                         query_id=query_id, statement=text, settings=settings)
            )  # fmt: skip
        warnings = (f"It cannot be proven: {view.unprovable}",) if view.unprovable else ()
        return CreatedView(view, target, True, warnings, rows)
    raise CommitConflict(
        f"The tables of view {statement.name} changed {ATTEMPTS_MAX} times meanwhile.",
        hint="Nothing was created; run it again.",
    )


def _refuse_clauses(
    statement: nodes.CreateMaterializedView, parameters: Sequence[object] | Mapping[str, object]
) -> None:
    if statement.refresh is not None:
        raise NotSupportedError(
            "REFRESH views are not supported.",
            hint="Leave REFRESH out: the view is then kept up by every INSERT.",
            position=statement.position,
        )
    if statement.or_replace:
        raise NotSupportedError(
            "CREATE OR REPLACE MATERIALIZED VIEW is not supported.",
            hint="DROP VIEW it and create it anew; SYSTEM BACKFILL VIEW fills what it missed.",
            position=statement.position,
        )
    if statement.target is not None and statement.storage is not None:
        raise QueryNotSupportedInMaterializedView(
            "A materialized view has either TO a table or an ENGINE of its own, not both.",
            position=statement.position,
        )
    if parameters:
        raise NotSupportedError(
            "The query of a view takes no parameters.", hint="Write the values into it."
        )


def _already(
    snapshot: Snapshot, found: object, statement: nodes.CreateMaterializedView
) -> CreatedView:
    if statement.if_not_exists and isinstance(found, MaterializedView):
        target = snapshot.by_id(found.target_id)
        if isinstance(target, Table):
            return CreatedView(found, target, False)
    raise TableAlreadyExists(
        f"{statement.name} exists already.", hint="DROP it first, or choose another name.",
        position=statement.name.position,
    )  # fmt: skip


@dataclass(frozen=True)
class _Draft:
    """One attempt at one snapshot."""

    services: Services
    snapshot: Snapshot
    statement: nodes.CreateMaterializedView
    database: str
    settings: dict[str, object]
    build_inner: BuildInner | None

    def make(self) -> tuple[MaterializedView, Table, list[Requirement], list[Change]]:
        statement, snapshot = self.statement, self.snapshot
        database = statement.name.database or self.database
        if database not in snapshot.databases:
            raise UnknownDatabase(
                f"Database {database} does not exist.",
                hint=f"CREATE DATABASE {database} makes it.", position=statement.name.position,
            )  # fmt: skip
        frozen = self._frozen_settings()
        scope = BindScope(
            snapshot=snapshot, database=self.database, settings=Settings(frozen),
            environment=Environment(zone=self.services.zone, database=self.database),
        )  # fmt: skip
        query = qualify(_without_settings(statement.query), scope)
        source = self._source(query)
        plan = bind_query(query, scope)
        self._check_names(plan)
        view_id = str(uuid.uuid4())
        target, inner = self._target(plan, view_id, database)
        name = f"{database}.{statement.name.name}"
        check_columns(name, plan, target, statement.columns, snapshot, scope.environment)
        reason = check_definition(name, plan, source, target)
        dimensions = self._dimensions(plan, source, name)
        self._refuse_circle(name, source, target)
        view = MaterializedView(
            id=view_id,
            database=database,
            name=statement.name.name,
            columns=_columns(plan),
            query=to_sql(query),
            source_id=source.id,
            target_id=target.id,
            dimension_ids=dimensions,
            references=tuple(dict.fromkeys((source.id, *(i for i, _ in plan.tables), *dimensions))),
            inner=inner,
            settings=tuple(sorted(frozen.items())),
            zone=self.services.zone,
            unprovable=reason,
            comment=statement.comment,
            created_ms=self.services.clock_ms(),
            first_block=snapshot.next_block(source),
        )
        return view, target, self._requirements(view, target, plan), self._changes(view, target)

    # --- what it reads

    def _frozen_settings(self) -> dict[str, SettingValue]:
        """Of the session's settings and the query's own those that change its meaning."""
        given = Settings(self.settings).changed if self.settings else {}
        chosen: dict[str, object] = {n: v for n, v in given.items() if n in MEANING}
        clauses = (*self.statement.settings, *getattr(self.statement.query, "settings", ()))
        for one in clauses:
            if one.name in MEANING:
                chosen[one.name] = one.value
            elif one.name == "snapshot":
                raise BadArguments(
                    "A materialized view sees the blocks that are inserted, not a snapshot.",
                    hint="Leave SETTINGS snapshot out of its query.",
                )
            else:
                Settings({one.name: one.value})  # an unknown setting or value is an error
        return dict(Settings(chosen).changed)

    def _source(self, query: nodes.Query) -> Table:
        """The left-most table: the one whose INSERTs fire the view."""
        name = source_of(query)
        view = str(self.statement.name)
        if name is None:
            raise QueryNotSupportedInMaterializedView(
                f"View {view} reads no table, so nothing would ever fire it.",
                hint="Select FROM a table; for constants use CREATE TABLE … AS SELECT.",
                position=self.statement.position,
            )
        found = self.snapshot.find(name.database or self.database, name.name)
        match found:
            case Table():
                return found
            case MaterializedView():
                target = self.snapshot.by_id(found.target_id)
                where = f"{target.database}.{target.name}" if target is not None else "its target"
                raise QueryNotSupportedInMaterializedView(
                    f"View {view} reads FROM the materialized view {name}; INSERTs go into"
                    f" {where}, never into the view's name, so it would never fire.",
                    hint=f"Select FROM {where}.", position=name.position,
                )  # fmt: skip
            case View():
                raise QueryNotSupportedInMaterializedView(
                    f"View {view} reads FROM the view {name}, into which nothing is inserted, so"
                    " it would never fire.",
                    hint=f"Select FROM the table that {name} reads, and write its query out.",
                    position=name.position,
                )
        if (name.database or self.database).lower() in ("system", "information_schema"):
            raise QueryNotSupportedInMaterializedView(
                f"View {view} reads FROM {name}, into which nothing is inserted.",
                hint="Select FROM a stored table.", position=name.position,
            )  # fmt: skip
        raise UnknownTable(
            f"Table {name} does not exist.", hint="The source must be there before the view.",
            position=name.position,
        )  # fmt: skip

    def _dimensions(self, plan: Plan, source: Table, name: str) -> tuple[str, ...]:
        """Stored tables other than the source that the query reads, through plain views too."""
        if any(isinstance(one, SystemScan) for one in walk_plan(plan.root)):
            raise QueryNotSupportedInMaterializedView(
                f"View {name} reads a system table, whose rows change without anybody's INSERT.",
                hint="Copy what it needs into a table.",
            )
        ids = (one.table.id for one in scans(plan.root) if one.table.id != source.id)
        return tuple(dict.fromkeys(ids))

    # --- where it writes

    def _check_names(self, plan: Plan) -> None:
        seen: set[str] = set()
        for name in plan.names:
            if name in seen:
                raise DuplicateColumn(
                    f"View {self.statement.name} has two columns {name}.",
                    hint="Give one of them another name with AS.",
                )
            seen.add(name)

    def _target(self, plan: Plan, view_id: str, database: str) -> tuple[Table, bool]:
        statement = self.statement
        if statement.target is None:
            if self.build_inner is None:
                raise NotSupportedError("Here a materialized view needs TO a table.")
            inner_name = f".inner_id.{view_id}"
            return self.build_inner(statement, _columns(plan), inner_name), True
        name = statement.target
        found = self.snapshot.find(name.database or self.database, name.name)
        if isinstance(found, Table):
            return found, False
        if found is None:
            raise UnknownTable(
                f"The target {name} of view {statement.name} does not exist.",
                hint="CREATE TABLE it first.", position=name.position,
            )  # fmt: skip
        raise QueryNotSupportedInMaterializedView(
            f"The target {name} of view {statement.name} is a view: it stores no rows.",
            hint="Write TO the table behind it.", position=name.position,
        )  # fmt: skip

    def _refuse_circle(self, name: str, source: Table, target: Table) -> None:
        start: tuple[str, ...] = (f"{target.database}.{target.name}",)
        waiting, seen = [(target.id, start)], set[str]()
        while waiting:
            table_id, path = waiting.pop()
            if table_id == source.id:
                first = f"{source.database}.{source.name}"
                raise TooDeepRecursion(
                    f"View {name} would close a circle: {' -> '.join((first, *path))}.",
                    hint="A table cannot receive what is made of its own rows; use another target.",
                )
            if table_id in seen:
                continue
            seen.add(table_id)
            for view in self.snapshot.views_on(table_id):
                found = self.snapshot.by_id(view.target_id)
                label = f"{found.database}.{found.name}" if found is not None else view.name
                waiting.append((view.target_id, (*path, label)))

    # --- the commit

    def _requirements(
        self, view: MaterializedView, target: Table, plan: Plan
    ) -> list[Requirement]:
        needed: dict[Requirement, None] = {
            DatabaseExists(view.database): None, NameIsFree(view.database, view.name): None,
        }  # fmt: skip
        for table_id in (view.source_id, *view.dimension_ids):
            found = self.snapshot.by_id(table_id)
            if isinstance(found, Table):
                needed[SchemaIs(table_id, found.version)] = None
        if not view.inner:
            needed[SchemaIs(target.id, target.version)] = None
            for table_id in self._downstream(target.id):
                views = (v for v in self.snapshot.views_on(table_id) if v.attached)
                needed[ViewsAre(table_id, tuple((v.id, v.version) for v in views))] = None
        return list(needed)

    def _downstream(self, table_id: str) -> Iterable[str]:
        """Tables below the target: the circle check holds while their views stay the same."""
        waiting, seen = [table_id], dict[str, None]()
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen[one] = None
                waiting += [view.target_id for view in self.snapshot.views_on(one)]
        return seen

    def _changes(self, view: MaterializedView, target: Table) -> list[Change]:
        return [PutObject(target), PutObject(view)] if view.inner else [PutObject(view)]


def _columns(plan: Plan) -> tuple[Column, ...]:
    return tuple(
        Column(number, name, data_type)
        for number, (name, data_type) in enumerate(zip(plan.names, plan.types, strict=True), 1)
    )


def _without_settings(query: nodes.Query) -> nodes.Query:
    """SETTINGS are frozen apart; FORMAT means nothing in a view."""
    if isinstance(query, nodes.Select | nodes.SetOperation):
        return replace(query, settings=(), format=None)
    return query

