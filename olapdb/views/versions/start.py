"""The start of a rebuild: its request, and the commit that creates the new target and view.

The new view is the candidate. It is attached, so INSERTs fire it from that commit on; all older
blocks are its gap. A later run of a stopped rebuild finds the candidate and goes on.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import Literal, TypeAlias

from olapdb.commit.draft import CommitDraft, publish
from olapdb.commit.origin import CommitOrigin
from olapdb.commit.retry import ATTEMPTS_MAX, RetryPolicy, retry_commit
from olapdb.config import Settings
from olapdb.errors import BadArguments, Error, UnknownIdentifier
from olapdb.functions.base import Environment
from olapdb.model.changes import PutObject
from olapdb.model.requirements import (
    DatabaseExists,
    NameIsFree,
    Requirement,
    RevisionIs,
    SchemaIs,
    VersionsAre,
)
from olapdb.model.schema import Column, MaterializedView, Table
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.plan.nodes import Plan
from olapdb.records import dataclass
from olapdb.runtime.failpoints import failpoint
from olapdb.runtime.services import Services
from olapdb.sql import nodes
from olapdb.sql.parser import parse_query
from olapdb.views.definition.definition import (
    ProposedView,
    ViewDefinition,
    define,
    inherited_settings,
)
from olapdb.views.definition.drop_attach import versions_of
from olapdb.views.definition.kept_settings import QUERY_SETTINGS
from olapdb.views.jobs.executor import Executor
from olapdb.views.jobs.job import Progress, find_view, view_name
from olapdb.views.versions.reading import Reading
from olapdb.views.versions.rebuild_checks import refuse_rebuild, refuse_unprovable, refuse_version
from olapdb.views.versions.target_columns import columns_for
from olapdb.views.versions.versions import candidate_of, version_name

BuildTarget: TypeAlias = Callable[[Table, tuple[Column, ...], str], Table]
"""(the old target, the columns, the new name) -> the new target, not yet published."""


@dataclass(frozen=True, slots=True)
class RebuildRow:
    """A step of a rebuild, of the whole view or of one partition: of the source in "backfill", of
    the target in "replay" and "reconcile". `rows` are source rows in "backfill", rows of the new
    target after "replay", keys compared in "reconcile". "downstream" is a step of each
    materialized view that reads the target: `status` says which version it reads."""

    step: Literal[
        "start", "resume", "backfill", "replay", "reconcile", "swap", "downstream", "unchanged"
    ]
    view: str
    target: str
    partition: str
    rows: int
    status: str
    commit: int | None


@dataclass(frozen=True)
class RebuildRequest:
    """The request of one SYSTEM REBUILD VIEW statement. `query` None means the view's own query,
    `engine` "" that of the old target. `build_target` makes the new target."""

    origin: CommitOrigin
    view_id: str
    build_target: BuildTarget
    query: nodes.Query | None = None
    engine: str = ""
    reshaped: bool = False
    """Whether the statement describes the new target."""
    declares_columns: bool = False
    """Whether the statement lists the new target's columns."""
    comment: str | None = None
    """The new version's comment; None keeps the view's."""
    reading: Reading | None = None
    database: str = "default"
    executor: Executor | None = None
    progress: Progress | None = None
    named: Mapping[str, object] = field(default_factory=dict)
    """The settings of the statement itself. Without a query only these change the definition."""

    @property
    def discards_retained(self) -> bool:
        """Return whether the results of source rows that left by retention may be lost."""
        return Settings.of(self.origin.settings).boolean("discard_retained")

    @property
    def services(self) -> Services:
        """Return the database's services."""
        return self.origin.services

    @property
    def _redefines(self) -> bool:
        """Return whether the statement gives a query or settings that change the view's results."""
        return self.query is not None or not self.named.keys().isdisjoint(QUERY_SETTINGS)

    def begin(self) -> tuple[RebuildRow, str]:
        """Create the candidate, or find it ("resume"); return a row and the candidate's id. If the
        view already has the definition, return "unchanged" and the id "". Raises what CREATE raises
        for the query, and the errors of `refuse_version` and `refuse_rebuild`."""

        def attempt(snapshot: Snapshot) -> tuple[RebuildRow, str]:
            """Start or resume the rebuild; return its row and the candidate's id.

            The id is "" if the view already has the definition.
            """
            view = find_view(snapshot, self.view_id)
            refuse_version(snapshot, view)
            candidate = candidate_of(snapshot, view)
            if candidate is not None:
                return self._resume(snapshot, view, candidate), candidate.id
            if self._is_there(snapshot, view):
                row = row_of("unchanged", snapshot, view, "the view has this definition", None)
                return row, ""
            refuse_rebuild(snapshot, view, self.discards_retained)
            return self._start(snapshot, view)

        policy = RetryPolicy(
            "REBUILD VIEW", f"The tables of view changed {ATTEMPTS_MAX} times meanwhile."
        )
        return retry_commit(self.services, attempt, policy)

    def _defined(
        self, snapshot: Snapshot, view: MaterializedView, target: Callable[[Plan], Table]
    ) -> ViewDefinition:
        """Return the definition of the new version: the statement's query or the view's own, with
        the table that `target` makes."""
        name = view_name(view)
        if self.query is not None:
            settings = inherited_settings(view, self.origin.settings)
            proposed = ProposedView(
                name,
                self.query,
                target,
                self.database,
                self.services.zone,
                settings,
                position=self.query.position,
            )
        else:
            settings = inherited_settings(view, self.named)
            query = parse_query(view.query)
            proposed = ProposedView(name, query, target, view.database, view.zone, settings)
        return define(snapshot, proposed)

    def _means(self, snapshot: Snapshot, view: MaterializedView) -> bool:
        """Return whether the view already has the statement's definition."""
        target = target_of(snapshot, view)
        try:
            definition = self._defined(snapshot, view, lambda plan: target)
        except Error:
            return False
        return definition.applied_to(view) == view

    def _has_shape(self, snapshot: Snapshot, view: MaterializedView) -> bool:
        """Return whether the view's target has the engine and the keys that the statement
        describes."""
        old_target = target_of(snapshot, view)
        if not self.reshaped:
            return True
        described = self.build_target(old_target, old_target.columns, old_target.name)
        return _shape(described) == _shape(old_target) and (
            not self.declares_columns or _declared(described) == _declared(old_target)
        )

    def _is_there(self, snapshot: Snapshot, view: MaterializedView) -> bool:
        """Return whether the view already has the definition and the target that the statement
        describes. A statement that describes neither always rebuilds."""
        if not self._redefines and not self.reshaped:
            return False
        same = not self._redefines or self._means(snapshot, view)
        return same and self._has_shape(snapshot, view)

    def _resume(
        self, snapshot: Snapshot, view: MaterializedView, candidate: MaterializedView
    ) -> RebuildRow:
        """Return the row of a resumed rebuild. Raise BadArguments if the candidate has another
        query or target than the statement."""
        same = not self._redefines or self._means(snapshot, candidate)
        if not same or not self._has_shape(snapshot, candidate):
            difference = "target" if same else "query"
            raise BadArguments(
                f"A rebuild of {view_name(view)} with another {difference} is under way:"
                f" {candidate.query}",
                hint=f"SYSTEM REBUILD VIEW {view_name(view)} goes on with it; SYSTEM CANCEL REBUILD"
                f" VIEW {view_name(view)} gives it up.",
            )
        return row_of("resume", snapshot, candidate, "goes on", None)

    def _start(self, snapshot: Snapshot, view: MaterializedView) -> tuple[RebuildRow, str]:
        """Commit the new target and the candidate; return the row and the candidate's id."""
        view_id, generation = str(uuid.uuid4()), _next_generation(snapshot, view)
        old_target = target_of(snapshot, view)
        name = f".inner_id.{view_id}" if view.inner else version_name(old_target.name, generation)

        definition = self._defined(
            snapshot, view, partial(self._new_target, view, old_target, name)
        )
        refuse_unprovable(snapshot, view, definition)
        read_view_id, read_query = self._read_by(snapshot, old_target, definition.target)
        candidate = definition.applied_to(
            replace(
                view,
                comment=view.comment if self.comment is None else self.comment,
                read_view_id=read_view_id,
                read_query=read_query,
                id=view_id,
                name=version_name(view.name, generation),
                version=1,
                revision=0,
                attached=True,
                standing="candidate",
                stands_beside=view.id,
                generation=generation,
                created_ms=self.services.clock_ms(),
                first_block=snapshot.next_block(definition.source),
            )
        )
        versions = versions_of(snapshot, view)
        requirements: list[Requirement] = [
            self.origin.lease,
            RevisionIs(view.id, view.revision),
            VersionsAre(view.id, tuple(sorted(version.id for version in versions))),
            DatabaseExists(view.database),
            DatabaseExists(definition.target.database),
            SchemaIs(old_target.id, old_target.version),
            NameIsFree(candidate.database, candidate.name),
            NameIsFree(definition.target.database, name),
            *definition.requirements(snapshot),
        ]
        failpoint("rebuild.before_start")
        changes = (PutObject(definition.target), PutObject(candidate))
        commit = self.publish(CommitDraft(requirements, changes))
        failpoint("rebuild.started")
        target_name = f"{definition.target.database}.{definition.target.name}"
        row = RebuildRow("start", view_name(candidate), target_name, "", 0, "attached", commit)
        return row, view_id

    def _new_target(
        self, view: MaterializedView, old_target: Table, name: str, plan: Plan
    ) -> Table:
        """Return the candidate's target table `name` for the plan, with the request's engine and
        keys.

        Raises UnknownIdentifier if a key names a column that the query does not make.
        """
        environment = Environment(zone=self.services.zone, database=self.database)
        engine = self.engine or old_target.engine.name
        columns: tuple[Column, ...] = ()
        if not self.declares_columns:
            columns = columns_for(view, old_target, engine, plan, environment)
        try:
            return self.build_target(old_target, columns, name)
        except UnknownIdentifier as error:
            raise UnknownIdentifier(
                f"REBUILD VIEW {view_name(view)}: the keys of the new target name a column that"
                f" the new query does not make. {error.message}",
                hint="What is not given is as in the old target: SYSTEM REBUILD VIEW"
                f" {view_name(view)} PARTITION BY … ORDER BY (…) AS SELECT … gives it.",
            ) from error

    def _read_by(self, snapshot: Snapshot, old_target: Table, new_target: Table) -> tuple[str, str]:
        """Return the id and the new query of the plain view of REPLACE VIEW; ("", "") without it.
        Raises the errors of `Reading.resolved`."""
        if self.reading is None:
            return "", ""
        environment = Environment(zone=self.services.zone, database=self.database)
        view, query = self.reading.resolved(snapshot, old_target, new_target, environment)
        return view.id, query

    # --- the commit

    def publish(self, draft: CommitDraft) -> int:
        """Publish one commit of the rebuild; return its number."""
        return publish(draft, self.origin.of_kind("REBUILD VIEW")).number


def _shape(table: Table) -> tuple[object, ...]:
    """Return the engine and the keys of a target."""
    return table.engine, table.sorting_key, table.primary_key, table.partition_key


def _declared(table: Table) -> tuple[object, ...]:
    """Return what a REBUILD may change of a target besides its engine and keys: columns, constraints,
    TTL, settings and sampling key."""
    columns = [
        (column.name, column.type, column.default_kind, column.default) for column in table.columns
    ]
    return columns, table.constraints, table.ttl, table.settings, table.sampling_key


def _next_generation(snapshot: Snapshot, view: MaterializedView) -> int:
    """Return the number of the next version: the first one for which both names are free."""
    target = target_of(snapshot, view)
    number = 1 + max(version.generation for version in (view, *versions_of(snapshot, view)))
    while (
        snapshot.find(view.database, version_name(view.name, number)) is not None
        or snapshot.find(target.database, version_name(target.name, number)) is not None
    ):
        number += 1
    return number


def row_of(
    step: str,
    snapshot: Snapshot,
    view: MaterializedView,
    status: str,
    commit: int | None,
    partition: str = "",
    rows: int = 0,
) -> RebuildRow:
    """Return the row of a step, with the names that the view and its target have in the
    snapshot."""
    target = target_of(snapshot, view)
    return RebuildRow(
        step,  # type: ignore[arg-type]
        view_name(view),
        f"{target.database}.{target.name}",
        partition,
        rows,
        status,
        commit,
    )
