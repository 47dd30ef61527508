"""CREATE VIEW, and the plain view by which a new materialized view is read."""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import replace
from functools import partial

from olapdb.bind import bind_query
from olapdb.bind.added_filters import refuse_added_filters
from olapdb.bind.analysis import qualify
from olapdb.commit.draft import CommitDraft
from olapdb.config.limits import SYNTAX_LIMITS
from olapdb.errors import Error, TableAlreadyExists
from olapdb.model.changes import PutObject
from olapdb.model.overlay_snapshot import OverlaySnapshot
from olapdb.model.requirements import DatabaseExists, NameIsFree, RevisionIs
from olapdb.model.schema import Column, View
from olapdb.model.snapshot import Snapshot
from olapdb.plan.nodes import Plan
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.view_parameters import parameters_of
from olapdb.statements.context import StatementContext
from olapdb.statements.databases import require_own_database
from olapdb.statements.ddl.attempts import commit_schema_change, retry_on_conflict
from olapdb.statements.ddl.create import commit_object, object_to_replace, refuse_readers
from olapdb.statements.ddl.detached_tables import refuse_detached_name
from olapdb.statements.ddl.view_columns import listed_query
from olapdb.statements.ddl.view_parameters import named_objects, view_with_parameters
from olapdb.statements.query.syntax_limits import check_syntax
from olapdb.views.definition.replaced_view import followers_of


def create_view(statement: nodes.CreateView, context: StatementContext) -> Result:
    """Run CREATE VIEW: bind the SELECT once to learn the columns, and store it with qualified
    names."""
    refuse_added_filters(statement.query)
    return retry_on_conflict(context, partial(_create_view, statement, context))


def _create_view(
    statement: nodes.CreateView, context: StatementContext, snapshot: Snapshot
) -> Result:
    """Make one attempt of `create_view` at the snapshot."""
    database, name = context.locate(statement.name)
    require_own_database(database, snapshot, statement.name.position)
    if parameters_of(statement.query):
        existing = object_to_replace(statement.name, statement, context, snapshot)
        query = view_with_parameters(statement, context, snapshot)
        columns: tuple[Column, ...] = ()
        reads = named_objects(query, snapshot)
    else:  # an error of the query comes before one of the name
        query, columns, reads = _definition(statement, context, snapshot)
        existing = object_to_replace(statement.name, statement, context, snapshot)
    if existing is not None and statement.if_not_exists:
        return Result()
    view = _view(database, name, query, columns, statement.comment, context)
    if isinstance(existing, View) and (existing.query, existing.columns) == (
        view.query,
        view.columns,
    ):
        # Views on it are unaffected by the same definition, so they do not block the statement.
        updated_view = replace(existing, comment=view.comment)
        requirements = [RevisionIs(existing.id, existing.revision)]
        commit_schema_change(context, "CREATE VIEW", requirements, [PutObject(updated_view)])
        return Result()
    if isinstance(existing, View) and followers_of(existing, snapshot):
        # The view keeps its id, so that views over it which compute the same are unaffected.
        view = replace(
            view, id=existing.id, version=existing.version + 1, revision=existing.revision
        )
    if existing is not None:
        refuse_readers(existing, snapshot)
    if context.on_temporary:
        reads = ()  # of another catalog
    commit_object(view, existing, context, snapshot, reads=reads)
    return Result()


def _definition(
    statement: nodes.CreateView, context: StatementContext, snapshot: Snapshot
) -> tuple[nodes.Query, tuple[Column, ...], tuple[tuple[str, int], ...]]:
    """Return the qualified query of a view, its columns, and (id, revision) of the tables and views
    that it reads."""
    query = statement.query
    plan = _bound(query, context, snapshot)
    if statement.columns:
        query = listed_query(statement, dict(zip(plan.names, plan.types)))
        plan = _bound(query, context, snapshot)
    comments = {column.name: column.comment for column in statement.columns}
    columns = tuple(
        Column(number, column_name, data_type, comment=comments.get(column_name, ""))
        for number, (column_name, data_type) in enumerate(zip(plan.names, plan.types), 1)
    )
    kept = _with_kept_nulls(query, plan, context, snapshot)
    return qualify(kept, context.scope(snapshot)), columns, plan.tables


def _bound(query: nodes.Query, context: StatementContext, snapshot: Snapshot) -> Plan:
    """Return the plan of a view's query as it is written: its columns are known without rules."""
    if not context.settings.changed.keys().isdisjoint(SYNTAX_LIMITS):
        check_syntax(query, context.text, context.settings)
    return bind_query(query, replace(context.scope(snapshot), refuses_columns=True))


_KEEP_NULLS = "cast_keep_nullable"


def _with_kept_nulls(
    query: nodes.Query, plan: Plan, context: StatementContext, snapshot: Snapshot
) -> nodes.Query:
    """Return a view's query with `cast_keep_nullable` of its session, if the query depends on it.

    The setting decides the types of the columns that the view stores; another session's would give
    other columns. `plan` is the query's, bound with the session's settings."""
    if not plan.keeps_nulls:
        return query
    if not isinstance(query, nodes.Select | nodes.SetOperation):
        return query
    if any(setting.name == _KEEP_NULLS for setting in query.settings):
        return query
    default = replace(context, settings=context.settings.with_changes({_KEEP_NULLS: False}))
    with suppress(Error):  # CAST(NULL AS String) is an error without the setting
        if _bound(query, default, snapshot).root == plan.root:
            return query
    return replace(query, settings=(*query.settings, nodes.Setting(_KEEP_NULLS, 1)))


# --- the plain view that CREATE MATERIALIZED VIEW creates, too


def draft_read_view(
    statement: nodes.CreateMaterializedView, context: StatementContext, snapshot: Snapshot
) -> CommitDraft:
    """Return the draft of the plain view of READ VIEW; an empty one without that clause.

    In `snapshot` the target exists. Objects that only it has are of the same commit, so that nothing
    is required of them. Raises TableAlreadyExists if the name is taken, and what CREATE VIEW
    raises."""
    draft = CommitDraft()
    if statement.read_view is None or statement.read_query is None:
        return draft
    position = statement.read_view.position
    created = nodes.CreateView(statement.read_view, statement.read_query, position=position)
    refuse_added_filters(created.query)
    database, name = context.locate(created.name)
    require_own_database(database, snapshot, position)
    if snapshot.find(database, name) is not None:
        raise TableAlreadyExists(
            f"{database}.{name} of READ VIEW exists already.",
            hint="DROP it first, choose another name, or leave READ VIEW out.",
            position=position,
        )
    refuse_detached_name(database, name, snapshot, position)
    query, columns, reads = _definition(created, context, snapshot)
    draft.require(DatabaseExists(database), NameIsFree(database, name))
    committed = snapshot.base if isinstance(snapshot, OverlaySnapshot) else snapshot
    draft.require(*(RevisionIs(*read) for read in reads if committed.by_id(read[0]) is not None))
    draft.change(PutObject(_view(database, name, query, columns, "", context)))
    return draft


def _view(
    database: str,
    name: str,
    query: nodes.Query,
    columns: tuple[Column, ...],
    comment: str,
    context: StatementContext,
) -> View:
    """Return a new plain view."""
    return View(
        id=str(uuid.uuid4()),
        database=database,
        name=name,
        columns=columns,
        query=to_sql(query),
        comment=comment,
        created_ms=context.services.clock_ms(),
    )
