"""CREATE MATERIALIZED VIEW: freeze and check the definition, create the view, open its coverage.

One commit creates the view, its target, if that is an inner table or TO has an ENGINE, and the plain
view of READ VIEW. So a process that is killed leaves all of them or none. With POPULATE the plain
view comes with the last chunk of the backfill: nobody reads it before the history is there.

Coverage opens with the commit: triggers of later INSERTs write it, so every block that exists
already is the view's first gap (rule 2). POPULATE is a backfill of that gap before returning.

OR REPLACE drops the view of that name and creates the new one in the same commit: each INSERT fires
exactly one of them. The new view has a new identity (rule 10): its coverage starts empty, and in a
TO target the old view's rows are bypass rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from olapdb import errors
from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.commit.draft import CommitDraft, publish
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import ATTEMPTS_MAX, RetryPolicy, retry_commit
from olapdb.model.changes import PutObject
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.requirements import DatabaseExists, NameIsFree
from olapdb.model.schema import Column, Engine, MaterializedView, RefreshableView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.nodes import Plan
from olapdb.records import dataclass
from olapdb.sql import nodes
from olapdb.views.definition.column_compatibility import check_columns
from olapdb.views.definition.definition import ProposedView, columns_of_plan, define, draft
from olapdb.views.definition.drop_attach import (
    dependents,
    drop_draft,
    drop_view,
    rewrite_references,
    set_attached,
)
from olapdb.views.jobs.backfill import backfill, refuse_incomplete
from olapdb.views.jobs.backfill_pass import BackfillRow
from olapdb.views.jobs.executor import Executor
from olapdb.views.jobs.finishing import Finishing
from olapdb.views.jobs.job import Progress, readable_source
from olapdb.views.provability import Judgement, judge

__all__ = [
    "BuildInner",
    "CreatedView",
    "create_view",
    "dependents",
    "drop_view",
    "rewrite_references",
    "set_attached",
]

BuildInner: TypeAlias = Callable[[nodes.CreateMaterializedView, tuple[Column, ...], str], Table]
"""(statement, the query's columns, the table's name) -> the inner table or new target, by
statement.storage."""
DraftReadView: TypeAlias = Callable[[nodes.CreateMaterializedView, Snapshot], CommitDraft]
"""(statement, a snapshot in which its target exists) -> the draft of what READ VIEW creates."""


@dataclass(frozen=True, slots=True)
class CreatedView:
    """The result of CREATE. `created` is False if IF NOT EXISTS found the view."""

    view: MaterializedView
    target: Table
    created: bool
    warnings: tuple[str, ...] = ()
    backfilled: tuple[BackfillRow, ...] = ()


def create_view(
    origin: CommitOrigin,
    statement: nodes.CreateMaterializedView,
    *,
    database: str,
    build_inner: BuildInner | None = None,
    draft_read_view: DraftReadView | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> CreatedView:
    """Create the view, its new target or inner table, and the view of READ VIEW, in one commit.
    POPULATE then fills it, and the commit of its last chunk creates the view of READ VIEW.

    Raises what binding the query raises, TableAlreadyExists, UnknownTable and UnknownDatabase.
    Raises QueryNotSupportedInMaterializedView, ViewNotProvable, ThereIsNoColumn, DuplicateColumn,
    TypeMismatch or CannotConvertType if it cannot be a trigger into that target.
    """
    _refuse_clauses(statement)
    origin = origin.of_kind("CREATE MATERIALIZED VIEW")
    finishing = None if draft_read_view is None else Finishing(partial(draft_read_view, statement))
    policy = RetryPolicy(
        "CREATE MATERIALIZED VIEW",
        f"The tables of view {statement.name} changed {ATTEMPTS_MAX} times meanwhile.",
        "Nothing was created; run it again.",
    )
    attempt = partial(_create_once, origin, statement, database, build_inner, finishing)
    created = retry_commit(origin.services, attempt, policy)
    if not created.created or not statement.populate:
        return created
    if finishing is not None and statement.read_view is None:
        finishing = None
    chunks = backfill(
        origin, created.view.id, executor=executor, progress=progress, finishing=finishing
    )
    rows = tuple(chunks)
    refuse_incomplete(created.view, rows, origin.query_id)
    if finishing is not None and not finishing.done:  # the source was empty
        retry_commit(
            origin.services,
            lambda snapshot: publish(finishing.draft_once(snapshot), origin),
            policy,
        )
    return replace(created, backfilled=rows)


def _create_once(
    origin: CommitOrigin,
    statement: nodes.CreateMaterializedView,
    database: str,
    build_inner: BuildInner | None,
    finishing: Finishing | None,
    snapshot: Snapshot,
) -> CreatedView:
    """Create the view in one commit on this snapshot, or return the one that exists."""
    existing = snapshot.find(statement.name.database or database, statement.name.name)
    replaced = existing if statement.or_replace and isinstance(existing, MaterializedView) else None
    if existing is not None and replaced is None:
        _Draft(origin, snapshot, statement, database, build_inner, None).check()
        return _existing_view(snapshot, existing, statement)
    draft = _Draft(origin, snapshot, statement, database, build_inner, replaced)
    view, target, composed = draft.make()
    read_view = CommitDraft()
    if finishing is not None:
        read_view = finishing.draft(OverlaySnapshot.of(draft.remaining, target, view))
    if statement.populate:  # before anything is created
        readable_source(snapshot, view, "POPULATE")
    else:
        composed.merge(read_view)
    committed = publish(composed, origin)
    if finishing is not None:
        finishing.keep(read_view, (view.id, target.id), committed.number)
    warning = f"{view.database}.{view.name} cannot be proven: {view.unprovable}"
    return CreatedView(view, target, True, (warning,) if view.unprovable else ())


def judge_statement(
    origin: CommitOrigin,
    statement: nodes.CreateMaterializedView,
    *,
    database: str,
    build_inner: BuildInner | None = None,
) -> Judgement:
    """Return the judgement that CREATE would make of the definition, and create nothing. A
    definition that merges would corrupt gives a refused item, no error. Raises what binding the
    query raises, and UnknownTable."""
    _refuse_clauses(statement)
    drafting = _Draft(
        origin, origin.services.catalog.snapshot(), statement, database, build_inner, None
    )
    return drafting.judge()


def _refuse_clauses(statement: nodes.CreateMaterializedView) -> None:
    """Raise BadArguments for REFRESH."""
    if statement.refresh is not None:
        raise errors.BadArguments(
            "A view with REFRESH is no trigger, so there is nothing to prove of it: each refresh"
            " computes its rows anew.",
            hint="Leave REFRESH out to have the definition judged.",
            position=statement.position,
        )


def _existing_view(
    snapshot: Snapshot, item: object, statement: nodes.CreateMaterializedView
) -> CreatedView:
    """Return the existing view for IF NOT EXISTS, else raise TableAlreadyExists."""
    if statement.if_not_exists and isinstance(item, MaterializedView):
        target = snapshot.by_id(item.target_id)
        if isinstance(target, Table):
            return CreatedView(item, target, False)
    suffix = " and is no materialized view" if statement.or_replace else ""
    raise errors.TableAlreadyExists(
        f"{statement.name} exists already{suffix}.",
        hint="DROP it first, or choose another name.",
        position=statement.name.position,
    )


@dataclass(frozen=True)
class _Draft:
    """The drafting of a view at one snapshot; `replaced` is the view that OR REPLACE drops."""

    origin: CommitOrigin
    snapshot: Snapshot
    statement: nodes.CreateMaterializedView
    database: str
    build_inner: BuildInner | None
    replaced: MaterializedView | None

    @property
    def remaining(self) -> Snapshot:
        """Return the snapshot without the view that is replaced."""
        if self.replaced is None:
            return self.snapshot
        return OverlaySnapshot(self.snapshot, removed=frozenset((self.replaced.id,)))

    def make(self) -> tuple[MaterializedView, Table, CommitDraft]:
        """Return the view, its target, and the draft of the commit that creates them.

        Nothing is committed yet. The draft drops the replaced view, and creates the target only if
        it is an inner table or TO has an ENGINE. Raises UnsupportedMethod for a system database,
        UnknownDatabase, and what `define` raises."""
        statement = self.statement
        database = statement.name.database or self.database
        if database in SYSTEM_DATABASES:
            raise errors.UnsupportedMethod(
                f"The database {database} has system tables only.",
                hint="Name another database.",
                position=statement.name.position,
            )
        if database not in self.snapshot.databases:
            raise errors.UnknownDatabase(
                f"Database {database} does not exist.",
                hint=f"CREATE DATABASE {database} makes it.",
                position=statement.name.position,
            )
        composed = CommitDraft([DatabaseExists(database)])
        remaining = self.remaining
        if self.replaced is None:
            composed.require(NameIsFree(database, statement.name.name))
        else:
            composed.merge(drop_draft(self.snapshot, self.replaced))
        view_id = str(uuid.uuid4())
        definition = define(remaining, self._proposed(view_id))
        view = definition.applied_to(
            MaterializedView(
                id=view_id,
                database=database,
                name=statement.name.name,
                columns=(),
                query="",
                source_id="",
                target_id="",
                inner=statement.target is None,
                comment=statement.comment,
                created_ms=self.origin.now_ms(),
                first_block=self.snapshot.next_block(definition.source),
            )
        )
        if definition.new_target:
            target = definition.target
            composed.require(
                DatabaseExists(target.database), NameIsFree(target.database, target.name)
            )
            composed.change(PutObject(target))
        composed.change(PutObject(view))
        composed.require(*definition.requirements(remaining))
        return view, definition.target, composed

    def check(self) -> None:
        """Raise what ClickHouse raises before it looks whether the view's name is taken: errors of
        the query, of a target that does not exist, and of columns that the target does not have."""
        statement = self.statement
        proposed = self._proposed("checked")
        if statement.target is None or statement.storage is not None:
            draft(self.snapshot, replace(proposed, target=_table_of_query))
            return
        parts = draft(self.snapshot, proposed).parts
        check_columns(proposed.name, parts.plan, parts.target, (), self.snapshot, parts.environment)

    def judge(self) -> Judgement:
        """Return the judgement of the definition; refuse nothing."""
        return judge(draft(self.snapshot, self._proposed("explained")).parts)

    def _proposed(self, view_id: str) -> ProposedView:
        """Return the view that the statement proposes; `view_id` names its inner table."""
        statement = self.statement
        return ProposedView(
            f"{statement.name.database or self.database}.{statement.name.name}",
            statement.query,
            lambda plan: self._target(plan, view_id),
            self.database,
            self.origin.services.zone,
            dict(self.origin.settings),
            clauses=statement.settings,
            # Those of a new target may be more than the query's: they have defaults.
            declared=() if statement.target and statement.storage else statement.columns,
            position=statement.position,
        )

    def _refuse_refreshed(self, target: Table, name: nodes.TableName) -> None:
        """Raise BadArguments for the target of a refreshable view: each refresh would remove the
        trigger's rows."""
        for item in self.snapshot.objects():
            if isinstance(item, RefreshableView) and item.target_id == target.id:
                raise errors.BadArguments(
                    f"Table {target.database}.{target.name} is the target of the refreshable view"
                    f" {item.database}.{item.name}, which would remove the trigger's rows.",
                    hint="Give the view a table of its own.",
                    position=name.position,
                )

    def _target(self, plan: Plan, view_id: str) -> Table:
        """Return the table that TO names, a new one if an ENGINE is there; without TO, a new inner
        table named after `view_id`.

        Raises TableAlreadyExists for a new target whose name is taken, UnknownTable if there is no
        such table, QueryNotSupportedInMaterializedView if TO names a view, BadArguments for the
        target of a refreshable view, and NotSupportedError if no inner table can be built here."""
        statement = self.statement
        if statement.target is None:
            if self.build_inner is None:
                raise errors.NotSupportedError("Here a materialized view needs TO a table.")
            return self.build_inner(statement, columns_of_plan(plan), f".inner_id.{view_id}")
        name = statement.target
        target = self.snapshot.find(name.database or self.database, name.name)
        if statement.storage is not None and self.build_inner is not None:
            own = statement.name.database or self.database, statement.name.name
            if target is not None or own == (name.database or self.database, name.name):
                raise errors.TableAlreadyExists(
                    f"The target {name} of view {statement.name} exists already.",
                    hint="Leave its columns and ENGINE out to write to it, or DROP it first.",
                    position=name.position,
                )
            return self.build_inner(statement, columns_of_plan(plan), name.name)
        if isinstance(target, Table):
            self._refuse_refreshed(target, name)
            return target
        if target is None:
            raise errors.UnknownTable(
                f"The target {name} of view {statement.name} does not exist.",
                hint="CREATE TABLE it first.",
                position=name.position,
            )
        raise errors.QueryNotSupportedInMaterializedView(
            f"The target {name} of view {statement.name} is a view: it stores no rows.",
            hint="Write TO the table behind it.",
            position=name.position,
        )


def _table_of_query(plan: Plan) -> Table:
    """Return a table of the query's columns that stands for one that is not created."""
    return Table("", "", "", Engine("Null"), columns_of_plan(plan))
