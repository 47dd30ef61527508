"""SYSTEM REBUILD VIEW: a new version of a view beside the old one, swapped in when it is proven.

    start       one commit: a new target and a new view (the candidate), attached; older blocks are
                its gap, INSERTs fire both versions from here on
    backfill    the gap, chunk by chunk, each its own commit
    replay      what became stale meanwhile
    reconcile   all of the new target with a recomputation; what differs stops the rebuild
    swap        one commit: the names change places, see `olapdb.views.versions`

Until the swap the view is as it was, whatever happens.  The state of a rebuild is the candidate and
its coverage, so it may be killed anywhere and run again: it goes on.  The swap requires that the
candidate is whole in its very commit: no gap, nothing stale, no rows by hand.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from olapdb.errors import (
    BadArguments,
    CommitConflict,
    CommitUnknown,
    Error,
    UnknownTable,
    ViewDiffers,
    ViewGap,
)  # fmt: skip
from olapdb.functions.base import Environment
from olapdb.model.changes import (
    Commit,
    DatabaseExists,
    DataVersionIs,
    LeaseLive,
    NameIsFree,
    NothingMissed,
    NothingStale,
    PutObject,
    Requirement,
    RevisionIs,
    SchemaIs,
    VersionsAre,
    ViewIs,
)  # fmt: skip
from olapdb.model.schema import Column, MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.nodes import Plan
from olapdb.sql import nodes
from olapdb.sql.parser import parse_query
from olapdb.transaction.points import reach
from olapdb.transaction.services import Services
from olapdb.views.backfill import backfill
from olapdb.views.change import drop_view, versions_of
from olapdb.views.coverage import gap
from olapdb.views.definition import Definition, define
from olapdb.views.executor import Executor
from olapdb.views.jobs import Progress, find_view, view_name
from olapdb.views.new_target import columns_for
from olapdb.views.rebuild_checks import (
    refuse_lost_rows,
    refuse_rebuild,
    refuse_unprovable,
    refuse_version,
)  # fmt: skip
from olapdb.views.reconcile import reconcile
from olapdb.views.replay import replay
from olapdb.views.verdicts import stale_slices
from olapdb.views.versions import (
    Exchange,
    candidate_of,
    target_of,
    version_name,
)  # fmt: skip

ROUNDS_MAX = 8
"""How often the candidate is made whole and compared anew, because its source changed meanwhile."""

SWAPS_MAX = 20
"""How often the names change places anew, because others changed names meanwhile."""

BuildTarget: TypeAlias = Callable[[Table, tuple[Column, ...], str], Table]
"""(the old target, the columns, the new name) -> the new target, which is not published."""


@dataclass(frozen=True, slots=True)
class RebuildRow:
    """A step of a rebuild: of the whole, or of one partition (of the source in "backfill", of the
    target in "replay" and "reconcile"). `rows` are source rows in "backfill", rows of the new
    target after "replay", keys compared in "reconcile"."""

    step: Literal["start", "resume", "backfill", "replay", "reconcile", "swap", "unchanged"]
    view: str
    target: str
    partition: str
    rows: int
    status: str
    commit: int | None


@dataclass(frozen=True)
class Rebuild:
    """One SYSTEM REBUILD VIEW statement. `query` None: the view's own; `engine` is that of the new
    target, "" for the old one's; `build_target` makes it."""

    services: Services
    view_id: str
    build_target: BuildTarget
    query: nodes.Query | None = None
    engine: str = ""
    reshaped: bool = False
    """Whether the statement describes the new target; it is then never what is there already."""
    database: str = "default"
    executor: Executor | None = None
    progress: Progress | None = None
    query_id: str = ""
    statement: str = ""
    settings: Mapping[str, object] | None = None
    stop: threading.Event | None = None

    def run(self) -> tuple[RebuildRow, ...]:
        """Builds, or goes on building, and swaps; a row for each step.

        Given the definition that the view has already, it does nothing.  Raises what CREATE raises
        for the query; ViewNotProvable, HaveDependentObjects, BypassRows, RetainedRows where a
        rebuild cannot be; ViewGap, ViewDiffers and what a chunk raises where it stops: the view is
        then as before, and the candidate stays for another run.
        """
        begun = self._begin()
        if begun.step == "unchanged":
            return (begun,)
        snapshot = self.services.catalog.snapshot()
        candidate = candidate_of(snapshot, find_view(snapshot, self.view_id))
        if candidate is None:
            raise self._cancelled()
        try:
            return (begun, *self._finish(candidate.id))
        except CommitUnknown:
            raise
        except Error as error:
            raise self._stopped(error) from error

    # --- start

    def _begin(self) -> RebuildRow:
        for _ in range(ROUNDS_MAX):
            snapshot = self.services.catalog.snapshot()
            view = find_view(snapshot, self.view_id)
            refuse_version(snapshot, view)
            candidate = candidate_of(snapshot, view)
            if candidate is not None:
                return self._resume(snapshot, view, candidate)
            if self._is_there(snapshot, view):
                return _row("unchanged", snapshot, view, "the view has this definition", None)
            refuse_rebuild(snapshot, view, self._discards_retained)
            try:
                return self._start(snapshot, view)
            except CommitConflict:
                continue
        raise CommitConflict(
            f"The tables of view changed {ROUNDS_MAX} times meanwhile.",
            hint="Nothing was changed; run it again.",
        )

    def _defined(
        self, snapshot: Snapshot, view: MaterializedView, target: Callable[[Plan], Table]
    ) -> Definition:
        name = view_name(view)
        if self.query is not None:
            return define(
                snapshot, name, self.query, target, database=self.database,
                zone=self.services.zone, session_settings=self.settings or {},
                position=self.query.position,
            )  # fmt: skip
        return define(
            snapshot, name, parse_query(view.query), target, database=view.database,
            zone=view.zone, session_settings=dict(view.settings),
        )  # fmt: skip

    def _means(self, snapshot: Snapshot, view: MaterializedView) -> bool:
        """Whether the statement's query is the view's already."""
        target = target_of(snapshot, view)
        try:
            wanted = self._defined(snapshot, view, lambda plan: target)
        except Error:
            return False
        return wanted.applied_to(view) == view

    def _is_there(self, snapshot: Snapshot, view: MaterializedView) -> bool:
        return self.query is not None and not self.reshaped and self._means(snapshot, view)

    def _resume(
        self, snapshot: Snapshot, view: MaterializedView, candidate: MaterializedView
    ) -> RebuildRow:
        if self.query is not None and not self._means(snapshot, candidate):
            raise BadArguments(
                f"A rebuild of {view_name(view)} with another query is under way:"
                f" {candidate.query}",
                hint=f"SYSTEM REBUILD VIEW {view_name(view)} goes on with it; SYSTEM CANCEL REBUILD"
                f" VIEW {view_name(view)} gives it up.",
            )
        return _row("resume", snapshot, candidate, "goes on", None)

    def _start(self, snapshot: Snapshot, view: MaterializedView) -> RebuildRow:
        view_id, generation = str(uuid.uuid4()), _next_generation(snapshot, view)
        old = target_of(snapshot, view)
        name = f".inner_id.{view_id}" if view.inner else version_name(old.name, generation)

        def target(plan: Plan) -> Table:
            environment = Environment(zone=self.services.zone, database=self.database)
            engine = self.engine or old.engine.name
            columns = columns_for(view, old, engine, plan, environment)
            return self.build_target(old, columns, name)

        definition = self._defined(snapshot, view, target)
        refuse_unprovable(snapshot, view, definition)
        candidate = definition.applied_to(
            replace(
                view, id=view_id, name=version_name(view.name, generation), version=1, revision=0,
                attached=True, standing="candidate", stands_beside=view.id, generation=generation,
                created_ms=self.services.clock_ms(),
                first_block=snapshot.next_block(definition.source),
            )
        )  # fmt: skip
        beside = versions_of(snapshot, view)
        requirements: list[Requirement] = [
            LeaseLive(self.services.lease_id), RevisionIs(view.id, view.revision),
            VersionsAre(view.id, tuple(sorted(one.id for one in beside))),
            DatabaseExists(view.database), DatabaseExists(definition.target.database),
            SchemaIs(old.id, old.version),
            NameIsFree(candidate.database, candidate.name),
            NameIsFree(definition.target.database, name), *definition.requirements(snapshot),
        ]  # fmt: skip
        reach("rebuild.before_start")
        done = self._apply(requirements, (PutObject(definition.target), PutObject(candidate)))
        reach("rebuild.started")
        target_name = f"{definition.target.database}.{definition.target.name}"
        return RebuildRow("start", view_name(candidate), target_name, "", 0, "attached", done)

    # --- make it whole, prove it, swap

    def _finish(self, candidate_id: str) -> list[RebuildRow]:
        rows: list[RebuildRow] = []
        for _ in range(ROUNDS_MAX):
            rows += self._fill(candidate_id)
            reach("rebuild.backfilled")
            rows += self._replay(candidate_id)
            before = self.services.catalog.snapshot()
            proven = self._prove(before, candidate_id)
            if proven is None:  # its source changed: once more
                continue
            rows += proven
            reach("rebuild.reconciled")
            swapped = self._swap_while_proven(before, candidate_id)
            if swapped is not None:
                return [*rows, swapped]
        raise CommitConflict(
            f"The source of the view changed {ROUNDS_MAX} times while it was rebuilt.",
            hint="Nothing was swapped.",
        )

    def _fill(self, candidate_id: str) -> list[RebuildRow]:
        """Until there is no gap: partitions may be attached to the source meanwhile."""
        rows: list[RebuildRow] = []
        for _ in range(ROUNDS_MAX):
            snapshot, view = self._candidate(candidate_id)
            if not gap(view, snapshot):
                break
            for one in backfill(
                self.services, candidate_id, executor=self.executor, progress=self.progress,
                query_id=self.query_id, statement=self.statement, settings=self.settings, stop=self.stop,
            ):  # fmt: skip
                if one.status == "failed":
                    raise ViewGap(f"A chunk of partition {one.partition} failed: {one.error}")
                rows.append(
                    _row(
                        "backfill", snapshot, view, one.status, one.commit, one.partition, one.rows
                    )
                )
        return rows

    def _replay(self, candidate_id: str) -> list[RebuildRow]:
        snapshot, view = self._candidate(candidate_id)
        if stale_slices(snapshot, view) == frozenset():
            return []
        return [
            _row("replay", snapshot, view, one.status, one.commit, one.partition, one.rows_after)
            for one in replay(
                self.services, candidate_id, stale=True, executor=self.executor,
                progress=self.progress, query_id=self.query_id, statement=self.statement,
                settings=self.settings, stop=self.stop,
            )
        ]  # fmt: skip

    def _prove(self, before: Snapshot, candidate_id: str) -> list[RebuildRow] | None:
        """A row for each partition, all equal; None where the source changed since the replay."""
        compared = reconcile(
            self.services, candidate_id, executor=self.executor, progress=self.progress,
            query_id=self.query_id, statement=self.statement, settings=self.settings,
            stop=self.stop,
        )  # fmt: skip
        now, view = self._candidate(candidate_id)
        different = [one for one in compared if one.verdict not in ("equal", "retained")]
        if not different:
            return [
                _row("reconcile", now, view, one.verdict, None, one.partition, one.keys_compared)
                for one in compared
            ]
        if any(now.invalidations(candidate_id)) or _data_versions(now, view) != _data_versions(
            before, view
        ):
            return None
        first = different[0]
        raise ViewDiffers(
            f"Partition {first.partition} of the new target is {first.verdict}:"
            f" {first.missing} keys missing, {first.extra} extra, {first.differing} differing"
            f" ({', '.join(first.examples[:3]) or '; '.join(first.causes) or 'no example'})."
        )

    def _swap_while_proven(self, before: Snapshot, candidate_id: str) -> RebuildRow | None:
        """Tries again where only names or other views came between; None where the comparison
        does not hold any more."""
        for _ in range(SWAPS_MAX):
            try:
                return self._swap(before, candidate_id)
            except CommitConflict:
                now, view = self._candidate(candidate_id)
                compared = before.by_id(candidate_id)
                moved = set(_data_versions(before, view)) - set(_data_versions(now, view))
                redefined = compared is None or compared.version != view.version
                if moved or redefined or gap(view, now) or now.invalidations(candidate_id):
                    return None
        return None

    def _swap(self, before: Snapshot, candidate_id: str) -> RebuildRow:
        """`before` was taken before the comparison: what it read is what is required."""
        snapshot, candidate = self._candidate(candidate_id)
        view = find_view(snapshot, self.view_id)
        if not self._discards_retained:
            refuse_lost_rows(snapshot, view, candidate)
        exchange = Exchange(snapshot, view, candidate)
        exchange.refuse()
        compared = before.by_id(candidate_id)
        assert isinstance(compared, MaterializedView)
        own: list[Requirement] = [
            LeaseLive(self.services.lease_id), ViewIs(candidate_id, compared.version),
            NothingMissed(candidate_id), NothingStale(candidate_id),
        ]  # fmt: skip
        own += [DataVersionIs(*one) for one in _data_versions(before, candidate)]
        requirements, changes = exchange.commit(own)
        reach("rebuild.before_swap")
        done = self._apply(requirements, changes)
        reach("rebuild.swapped")
        now = self.services.catalog.snapshot()
        found = now.by_id(candidate_id)
        shown = found if isinstance(found, MaterializedView) else candidate
        return _row("swap", now, shown, "swapped", done)

    # --- helpers

    @property
    def _discards_retained(self) -> bool:
        return bool((self.settings or {}).get("discard_retained", False))

    def _apply(self, requirements: Sequence[Requirement], changes: Sequence[object]) -> int:
        commit = Commit(
            tuple(requirements), tuple(changes), "REBUILD VIEW", self.query_id,  # type: ignore[arg-type]
            self.statement,
        )  # fmt: skip
        return self.services.catalog.apply(commit).number

    def _candidate(self, candidate_id: str) -> tuple[Snapshot, MaterializedView]:
        """The newest snapshot and the candidate there; raises where it was cancelled, or another
        run of the statement was faster."""
        snapshot = self.services.catalog.snapshot()
        found = snapshot.by_id(candidate_id)
        if not isinstance(found, MaterializedView) or found.standing != "candidate":
            raise self._cancelled()
        return snapshot, found

    def _cancelled(self) -> UnknownTable:
        return UnknownTable(
            "The version that was being built is there no more: the rebuild was cancelled, or"
            " finished by another statement."
        )

    def _stopped(self, error: Error) -> Error:
        """The same error, saying what is now and how to go on."""
        snapshot = self.services.catalog.snapshot()
        view = snapshot.by_id(self.view_id)
        if not isinstance(view, MaterializedView) or candidate_of(snapshot, view) is None:
            return error
        name = view_name(view)
        stopped = type(error)(
            f"{error.message} The rebuild of {name} stopped; {name} is as before.",
            hint=f"{error.hint} SYSTEM REBUILD VIEW {name} goes on, SYSTEM CANCEL REBUILD VIEW"
            f" {name} gives it up.".strip(),
        )
        if isinstance(error, CommitConflict) and isinstance(stopped, CommitConflict):
            stopped.requirement = error.requirement
        return stopped


def cancel_rebuild(
    services: Services, view_id: str, *, query_id: str = "", statement: str = ""
) -> None:
    """Drops the version that a REBUILD was making, with its target. BadArguments without one."""
    snapshot = services.catalog.snapshot()
    view = find_view(snapshot, view_id)
    candidate = view if view.standing == "candidate" else candidate_of(snapshot, view)
    if candidate is None:
        raise BadArguments(
            f"No rebuild of {view_name(view)} is under way.",
            hint="SYSTEM ROLLBACK VIEW undoes one that is finished.",
        )
    drop_view(services, candidate.id, query_id=query_id, statement=statement)


# --- facts ----------------------------------------------------------------------------------------


def _next_generation(snapshot: Snapshot, view: MaterializedView) -> int:
    """The number of the next version, whose names are free."""
    target = target_of(snapshot, view)
    number = 1 + max(one.generation for one in (view, *versions_of(snapshot, view)))
    while (
        snapshot.find(view.database, version_name(view.name, number)) is not None
        or snapshot.find(target.database, version_name(target.name, number)) is not None
    ):
        number += 1
    return number


def _data_versions(snapshot: Snapshot, view: MaterializedView) -> tuple[tuple[str, str, int], ...]:
    """Of the source's and the target's partitions, and of both as a whole."""
    return tuple(
        (table_id, partition, snapshot.data_version(table_id, partition))
        for table_id in (view.source_id, view.target_id)
        for partition in sorted({"", *(p.partition_id for p in snapshot.parts(table_id))})
    )


def _row(
    step: str, snapshot: Snapshot, view: MaterializedView, status: str, commit: int | None,
    partition: str = "", rows: int = 0,
) -> RebuildRow:  # fmt: skip
    target = target_of(snapshot, view)
    return RebuildRow(
        step, view_name(view), f"{target.database}.{target.name}", partition, rows,  # type: ignore[arg-type]
        status, commit,
    )  # fmt: skip
