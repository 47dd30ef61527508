"""`connection.views`: materialized views from Python, with the same operations as SQL.

    view = connection.views["daily_mv"]
    view.status().verdict                              # 'partial'
    for row in view.backfill(engine="spark", progress=print):
        ...

Each operation runs the SYSTEM … VIEW statement of its name and returns SQL's rows as the frozen
dataclasses of `olapdb.views`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from operator import index
from typing import TypeVar, cast

from olapdb.errors import BadArguments, InterfaceError, SyntaxError, UnknownTable
from olapdb.model.schema import MaterializedView, RefreshableView, SchemaObject
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import Invalidation
from olapdb.session import Session
from olapdb.sql.literals import quote_name, quote_string
from olapdb.sql.parser import parse_expression, parse_query, parse_table_name
from olapdb.views.jobs.adopt import AdoptRow
from olapdb.views.jobs.backfill_pass import BackfillRow
from olapdb.views.jobs.backfill_plan import PlanRow
from olapdb.views.jobs.job import ChunkEvent, find_view
from olapdb.views.jobs.job_listing import CancelRow, JobRow, view_jobs
from olapdb.views.jobs.replay_attempt import ReplayRow
from olapdb.views.proof.coverage import CoverageSlice, coverage_rows
from olapdb.views.proof.ledger_check import LedgerRow
from olapdb.views.proof.recompute import ReconcileRow
from olapdb.views.proof.status import ViewStatus, view_status
from olapdb.views.versions.rollback import RolledBack
from olapdb.views.versions.start import RebuildRow

COUNT_MAX = 2**63 - 1
"""The largest number of partitions that SAMPLE and OLDEST take."""
Progress = Callable[[ChunkEvent], None]
Other = TypeVar("Other")
Row = TypeVar("Row")


_SHOWN = 20
"""Names of views that the repr of all of them shows."""


class Views(Mapping[str, "ViewHandle"]):
    """The warehouse's materialized views by "name" (of the current database) or "database.name";
    quote special names in backquotes. Iterating yields full names, in order."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __repr__(self) -> str:
        try:
            names = list(self)
        except InterfaceError:
            return "<olapdb.Views: closed>"
        shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
        return f"<olapdb.Views: {shown}>"

    def __getitem__(self, name: str) -> ViewHandle:
        """Return a handle, which follows the view through RENAME. Raises UnknownTable.

        Also raises BadArguments."""
        if not isinstance(name, str):
            raise BadArguments(
                f"A view is found by its name, not by {name!r}.",
                hint='connection.views["daily_mv"], or "database.daily_mv"; list(connection.views).',
            )
        snapshot = self._session.snapshot()
        view = self._find(name, snapshot)
        if view is not None:
            return ViewHandle(self._session, view.id)
        item = self._item(name, snapshot)
        if isinstance(item, RefreshableView):
            raise UnknownTable(
                f"{item.database}.{item.name} is refreshed: it is no trigger, and has no coverage.",
                hint="system.view_refreshes shows its state; SYSTEM REFRESH VIEW refreshes it now.",
            )
        if item is not None:
            raise UnknownTable(
                f"{item.database}.{item.name} is not a materialized view.",
                hint=_existing_names(snapshot),
            )
        raise UnknownTable(f"There is no materialized view {name}.", hint=_existing_names(snapshot))

    def get(self, name: str, default: Other | None = None) -> ViewHandle | Other | None:  # type: ignore[override]
        """Return the handle of a view, or `default` (None if not given) if there is no such
        view."""
        if name not in self:
            return default
        return self[name]

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        try:
            return self._find(name, self._session.snapshot()) is not None
        except SyntaxError:
            return False

    def __iter__(self) -> Iterator[str]:
        return iter([_full_name(view) for view in _views(self._session.snapshot())])

    def __len__(self) -> int:
        return len(_views(self._session.snapshot()))

    def _item(self, name: str, snapshot: Snapshot) -> SchemaObject | None:
        """Return the table or view of this name, "name" or "database.name". None if there is
        none."""
        parsed = parse_table_name(name)
        return snapshot.find(parsed.database or self._session.database, parsed.name)

    def _find(self, name: str, snapshot: Snapshot) -> MaterializedView | None:
        """Return the materialized view of this name. None if there is none."""
        item = self._item(name, snapshot)
        return item if isinstance(item, MaterializedView) else None


class ViewHandle:
    """One view, by identity: it survives RENAME; after DROP every call raises UnknownTable.

    `partition` is a partition's id, as rows and system tables show it: in `backfill` of the source,
    in `replay` and `reconcile` of the target.  `engine` is "in_process" or "spark" (None: the
    connection's setting); `progress` is called with a ChunkEvent when a chunk is planned, computed
    or published, in the thread of the call.
    """

    def __init__(self, session: Session, view_id: str) -> None:
        self._session = session
        self._view_id = view_id

    def __repr__(self) -> str:
        return f"<olapdb view {self.name}>"

    @property
    def name(self) -> str:
        """ "database.name", as of now."""
        return _full_name(self._view(self._session.snapshot()))

    def status(self) -> ViewStatus:
        """Return the view's health: the verdict, the numbers behind it, and the statement that
        repairs it."""
        snapshot = self._session.snapshot()
        return view_status(self._view(snapshot), snapshot)

    def coverage(self) -> tuple[CoverageSlice, ...]:
        """Return by source partition the rows that the view has seen and those that it has not."""
        snapshot = self._session.snapshot()
        return coverage_rows(self._view(snapshot), snapshot)

    def invalidations(self) -> tuple[Invalidation, ...]:
        """Return the slices that a change of the view's inputs made stale, and the statements that
        did."""
        snapshot = self._session.snapshot()
        return snapshot.invalidations(self._view(snapshot).id)

    def backfill(
        self,
        *,
        partition: str | None = None,
        staged: bool = False,
        discard_bypass: bool = False,
        engine: str | None = None,
        progress: Progress | None = None,
    ) -> tuple[BackfillRow, ...]:
        """Fill the gap, one commit a chunk, or (`staged`) all chunks in one final commit; ()
        without a gap.

        A failing chunk does not stop the others; then BackfillIncomplete names it and has all rows
        in its `rows`. `discard_bypass` first removes rows inserted into the target by hand, by a
        replay.
        """
        settings = {"backfill_staging": 1} if staged else {}
        clause = f"{_partition(partition)} {'DISCARD BYPASS' if discard_bypass else ''}".strip()
        return self._run(BackfillRow, "BACKFILL", clause, engine, progress, settings=settings)

    def backfill_plan(self, *, partition: str | None = None) -> tuple[PlanRow, ...]:
        """Return the chunks that `backfill` would compute now."""
        return self._run(PlanRow, "BACKFILL", f"{_partition(partition)} DRY RUN")

    def jobs(self) -> tuple[JobRow, ...]:
        """Return the jobs of the view in all processes, oldest first, chunk by chunk."""
        view = self._view(self._session.snapshot())
        return view_jobs(self._session.engine.services.catalog, view.id)

    def cancel(self, job: str | None = None) -> tuple[CancelRow, ...]:
        """Cancel the view's running jobs, or the one with that id, in any process: they publish
        nothing after this has returned."""
        return self._run(CancelRow, "CANCEL", "" if job is None else f"JOB {quote_string(job)}")

    def replay(
        self,
        *,
        partition: str | None = None,
        stale: bool = False,
        where: str | None = None,
        since: datetime.date | None = None,
        discard_bypass: bool = False,
        discard_retained: bool = False,
        engine: str | None = None,
        progress: Progress | None = None,
    ) -> tuple[ReplayRow, ...]:
        """Recompute part of the view and swap it in: one partition, the stale slices, those that a
        condition on the target's key (SQL, or a first date) touches, or everything.

        Results of rows removed by retention stay, unless `discard_retained`. Raises SyntaxError if
        `where` is more than one expression.
        """
        _one_of(
            partition=partition is not None,
            stale=stale,
            where=where is not None,
            since=since is not None,
        )
        clause = _partition(partition) or ("STALE" if stale else "")
        if where is not None:
            parse_expression(where)
            clause = f"WHERE ({where}\n)"  # a comment may end the condition
        if since is not None:
            clause = f"FROM '{since}'"
        discard = "DISCARD BYPASS" if discard_bypass else ""
        settings = {"discard_retained": 1} if discard_retained else None
        return self._run(
            ReplayRow, "REPLAY", f"{clause} {discard}", engine, progress, settings=settings
        )

    def reconcile(
        self,
        *,
        partition: str | None = None,
        sample: int | None = None,
        oldest: int | None = None,
        stale: bool = False,
        engine: str | None = None,
        progress: Progress | None = None,
    ) -> tuple[ReconcileRow, ...]:
        """Compare with a recomputation, and store the verdicts: one partition, `sample` of them at
        random, the `oldest` (never proven, or longest ago), the stale ones, or all."""
        _one_of(
            partition=partition is not None,
            sample=sample is not None,
            oldest=oldest is not None,
            stale=stale,
        )
        clause = _partition(partition)
        if sample is not None:
            clause = f"SAMPLE {_count('sample', sample)}"
        if oldest is not None:
            clause = f"OLDEST {_count('oldest', oldest)}"
        if stale:
            clause = "STALE"
        return self._run(ReconcileRow, "RECONCILE", clause, engine, progress)

    def check_ledger(self) -> tuple[LedgerRow, ...]:
        """Check that coverage and the contributions of the target's parts agree. Reads no rows and
        proves nothing."""
        return self._run(LedgerRow, "RECONCILE", "METADATA")

    def adopt(
        self, *, engine: str | None = None, progress: Progress | None = None
    ) -> tuple[AdoptRow, ...]:
        """Mark rows inserted into the target by hand as the view's own, if the target then equals a
        recomputation from all source rows. Otherwise raise BypassRows and change nothing."""
        return self._run(AdoptRow, "ADOPT", "", engine, progress)

    def modify(self, query: str) -> None:
        """Change the view's SELECT over the same source; old results are stale until
        `replay(stale=True)`. An identical SELECT changes nothing. Raises SyntaxError if `query` is
        more than one SELECT."""
        parse_query(query)
        self._session.execute(f"ALTER TABLE {self.name} MODIFY QUERY {query}").close()

    def rebuild(
        self,
        query: str | None = None,
        *,
        storage: str = "",
        engine: str | None = None,
        progress: Progress | None = None,
    ) -> tuple[RebuildRow, ...]:
        """Build a new version beside this one, prove it, and swap the two; a repeated call resumes.

        `query` None: the same SELECT into a new target; `storage` changes the target's storage
        ("ORDER BY (kind, day)"). The handle then refers to the new version. If that differs from a
        recomputation, this raises and swaps nothing. Raises SyntaxError if `query` is more than
        one SELECT.
        """
        if query is not None:
            parse_query(query)
        name = self._current_name()
        rows = self._run(
            RebuildRow, "REBUILD", storage, engine, progress, "" if query is None else f"AS {query}"
        )
        self._follow(name)
        return rows

    def cancel_rebuild(self) -> None:
        """Discard the version that `rebuild` is building. Raises BadArguments if there is none."""
        self._session.execute(f"SYSTEM CANCEL REBUILD VIEW {self.name}").close()

    def rollback(self) -> tuple[RolledBack, ...]:
        """Give the name back to the version that the last rebuild replaced, at once; the handle
        then refers to that."""
        name = self._current_name()
        rows = self._run(RolledBack, "ROLLBACK", "")
        self._follow(name)
        return rows

    def _current_name(self) -> tuple[str, str]:
        """Return the view's (database, name) now. Raise UnknownTable if it was dropped."""
        view = self._view(self._session.snapshot())
        return view.database, view.name

    def _follow(self, name: tuple[str, str]) -> None:
        """Switch this handle to the view that now has the name, if there is one: its
        replacement."""
        item = self._session.snapshot().find(*name)
        if isinstance(item, MaterializedView):
            self._view_id = item.id

    def _run(
        self,
        row: type[Row],
        operation: str,
        clauses: str,
        engine: str | None = None,
        progress: Progress | None = None,
        query: str = "",
        settings: Mapping[str, int] | None = None,
    ) -> tuple[Row, ...]:
        """Run the statement SYSTEM operation VIEW name clauses SETTINGS … query. Return its rows,
        which are of the class `row`."""
        setting_texts = [f"{name} = {value}" for name, value in (settings or {}).items()]
        setting_texts += [] if engine is None else [f"engine = {quote_string(engine)}"]
        settings_clause = f"SETTINGS {', '.join(setting_texts)}" if setting_texts else ""
        words = ("SYSTEM", operation, "VIEW", self.name, clauses.strip(), settings_clause, query)
        text = " ".join(word for word in words if word)
        return cast(tuple[Row, ...], self._session.run_on_view(text, progress=progress))

    def _view(self, snapshot: Snapshot) -> MaterializedView:
        """Return the view in the snapshot. Raise UnknownTable if it was dropped."""
        return find_view(snapshot, self._view_id)


def _views(snapshot: Snapshot) -> list[MaterializedView]:
    """Return the materialized views of all databases."""
    return list(snapshot.objects_of(MaterializedView))


def _full_name(view: MaterializedView) -> str:
    """Return "database.name", each quoted where needed."""
    return f"{quote_name(view.database)}.{quote_name(view.name)}"


def _existing_names(snapshot: Snapshot) -> str:
    """Return a hint that names at most 20 views."""
    names = [_full_name(view) for view in _views(snapshot)]
    return f"There are {', '.join(names[:20])}." if names else "There is none yet."


def _partition(partition: str | None) -> str:
    """Return the PARTITION ID clause, "" for None. Raise BadArguments if the partition is not a
    text."""
    if partition is None:
        return ""
    if not isinstance(partition, str):
        raise BadArguments(
            f"partition is the id of a partition, a text as in system.parts, not {partition!r}."
        )
    return f"PARTITION ID {quote_string(partition)}"


def _count(name: str, count: int) -> int:
    """Return a number of partitions. Raise BadArguments if it is not an integer from 1 on."""
    number = index(count) if hasattr(count, "__index__") and not isinstance(count, bool) else 0
    if not 0 < number <= COUNT_MAX:
        raise BadArguments(
            f"{name} is a number of partitions, an integer from 1 on, not {count!r}."
        )
    return number


def _one_of(**given: bool) -> None:
    """Raise BadArguments if more than one of the flags is true."""
    if sum(given.values()) > 1:
        raise BadArguments(f"Give one of {', '.join(given)}.")
