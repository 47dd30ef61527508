"""Performs the model's traces on the engine, statement by statement, step by step.

Each actor is a thread with a connection of its own.  It stops before each of its statements, before
each commit, and where a replay has recomputed but not yet chosen the parts to replace; a trace
gives the next actor.  After each step the ledger is compared with the rows, which name their
origin:

    t: (made 'v@1', id 'a1', seen 0)      row a1 of s, by definition v@1, with 0 rows in d
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.engine.layout import TableLayout, partition_id
from olapdb.errors import Error
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from olapdb.model.changes import Commit, Committed, RemoveCoverage
from olapdb.model.part import BlockRange
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.runtime.failpoints import watching
from olapdb.views.proof.coverage import is_bypass
from olapdb.views.proof.verdicts import check_is_current
from tests.protocol.explore import Program, Scenario
from tests.protocol.operations import Backfill, ChangeView, Delete, Insert, Merge, Truncate
from tests.protocol.planted import Fault
from tests.protocol.repairs import Read, Reconcile, Replay, Vacuum
from tests.protocol.swaps import Swap
from tests.protocol.turn import Operation

STEP_SECONDS_MAX = 60
STOPS = frozenset({"replay.before_commit", "vacuum.marked", "vacuum.revoked"})
Row = tuple[str, str, int, str]
"""The columns made, id, seen, partition."""

TABLES = (
    "CREATE TABLE s (id String, p String) ENGINE = MergeTree PARTITION BY p ORDER BY id",
    "CREATE TABLE d (id String, p String) ENGINE = MergeTree PARTITION BY p ORDER BY id",
    "CREATE TABLE t (made String, id String, seen UInt64, p String) ENGINE = MergeTree"
    " PARTITION BY p ORDER BY id",
    "CREATE TABLE u (made String, id String, seen UInt64, p String) ENGINE = MergeTree"
    " PARTITION BY p ORDER BY id",
)
PLAIN = "SELECT '{d}' AS made, s.id AS id, 0 AS seen, s.p AS p FROM s"
WITH_DIMENSION = """
    SELECT '{d}' AS made, s.id AS id, x.n AS seen,
           if(x.n % 2 = 0, s.p, if(s.p = 'a', 'b', 'a')) AS p
    FROM s CROSS JOIN (SELECT count() AS n FROM d) AS x
"""
INTO_DIMENSION = "SELECT s.id AS id, s.p AS p FROM s"
CHAINED = """
    SELECT '{d}' AS made, concat(t.made, '(', t.id, ', ', toString(t.seen), ')') AS id, 0 AS seen,
           t.p AS p
    FROM t
"""


@dataclass
class Performer:
    """One actor: a thread that runs its statements and stops at each of its steps."""

    statements: Sequence[Operation]
    run: Performance
    connection: Connection
    stops: bool = True
    done: bool = False
    failure: BaseException | None = None
    _ready: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def start(self) -> None:
        """Start the thread; return at its first stop."""
        threading.Thread(target=self._work, daemon=True).start()
        self._wait()

    def advance(self) -> None:
        """Let the thread run to its next stop."""
        if not self.done:
            self._go.release()
            self._wait()

    def stop(self) -> None:
        """Stop in the middle of a statement. A statement about a view is a single step in the
        model and does not stop."""
        if self.stops:
            self._ready.release()
            self._go.acquire()

    def _wait(self) -> None:
        assert self._ready.acquire(timeout=STEP_SECONDS_MAX), "The engine hangs."

    def _work(self) -> None:
        self.run.current.actor = self
        try:
            for operation in self.statements:
                self.stops = True
                self.stop()
                self.stops = not isinstance(operation, ChangeView)
                self.run.perform(operation, self.connection)
        except BaseException as error:  # noqa: BLE001  # the test's own thread raises it
            self.failure = error
        finally:
            self.done = True
            self._ready.release()


class Performance:
    """A scenario on a warehouse in a folder; `problems` collects the violations that its steps
    show. A `fault` is planted after the history."""

    def __init__(self, folder: Path, scenario: Scenario, fault: Fault | None = None) -> None:
        self.folder, self.scenario, self.fault = str(folder), scenario, fault
        self.problems: list[str] = []
        self.current = threading.local()
        self.owed: set[tuple[str, int]] = set()
        self.acknowledged: set[str] = set()
        self.removed: set[str] = set()
        self._by_hand: Counter[Row] = Counter()
        self._definitions = 0
        self._counting = threading.Lock()

    def follow(self, schedule: Sequence[int]) -> None:
        """Perform the history, then the actors in the order of `schedule`, then all to their
        ends."""
        with ExitStack() as stack:
            self._checker = stack.enter_context(olapdb.connect(self.folder))
            for text in ("SYSTEM STOP MERGES", *TABLES):
                self._checker.execute(text)
            for operation in self.scenario.history:
                self.perform(operation, self._checker)
            if self.fault is not None:
                stack.enter_context(self.fault.planted(self._checker.database.services.catalog))
            stack.enter_context(self._stopping_commits())
            stack.enter_context(watching(self._reached))
            actors = [
                Performer(program, self, stack.enter_context(olapdb.connect(self.folder)))
                for program in self.scenario.programs
            ]
            for actor in actors:
                actor.start()
            for index in schedule:
                self._step(actors[index], index)
            for index, actor in enumerate(actors):
                while not actor.done:
                    self._step(actor, index)
            for actor in actors:
                if actor.failure is not None:
                    raise actor.failure
            services = self._checker.database.services
            self.problems += check_database(services.catalog, services.store)

    def _step(self, actor: Performer, index: int) -> None:
        actor.advance()
        told = [*found(self._checker), *self._missed(), *self._lost()]
        self.problems += [f"after a step of {index}: {one}" for one in told]

    # --- where actors stop

    @contextmanager
    def _stopping_commits(self) -> Iterator[None]:
        """Let the actors stop before each commit, and note the blocks that attached views must
        cover."""
        catalog = self._checker.database.services.catalog
        apply = catalog.apply

        def stopping(commit: Commit) -> Committed:
            self._reached("replay.before_commit")
            committed = apply(commit)
            self._note_owed(commit, committed)
            return committed

        catalog.apply = stopping  # type: ignore[method-assign]
        try:
            yield
        finally:
            catalog.apply = apply  # type: ignore[method-assign]

    def _note_owed(self, commit: Commit, committed: Committed) -> None:
        """Note the new blocks that an attached view must cover. Exempt are blocks of a replay,
        which may be its gap, and blocks of a target whose coverage was removed."""
        snapshot = self._checker.database.services.catalog.snapshot()
        gone = {change.view_id for change in commit.changes if isinstance(change, RemoveCoverage)}
        self.owed = {one for one in self.owed if one[0] not in gone}
        if commit.kind != "REPLAY":
            self.owed |= {
                (view.id, number)
                for block, number in committed.blocks
                for view in snapshot.views_on(block.table_id)
                if view.attached
            }

    def _missed(self) -> Iterator[str]:
        """Yield attached views that do not cover a block which they must cover."""
        snapshot = self._checker.database.services.catalog.snapshot()
        for view_id, number in sorted(self.owed):
            view = snapshot.by_id(view_id)
            if not isinstance(view, MaterializedView):
                continue
            coverage = snapshot.coverage(view_id)
            for part in snapshot.parts(view.source_id):
                block = BlockRange(number, number)
                there = part.rows and part.block_range.contains(block)
                if there and not coverage.covers(part.partition_id, block):
                    yield f"{view.name} was attached and missed block {number}"

    def _lost(self) -> Iterator[str]:
        """Yield acknowledged rows that are missing, deleted ones that exist, and bypass rows
        that disappeared without a statement that removes them."""
        there = {row[0] for row in self._checker.execute("SELECT id FROM s").fetchall()}
        if self.acknowledged - self.removed - there:
            yield f"rows are lost: {self.acknowledged - self.removed - there}"
        if self.removed & there:
            yield f"deleted rows are back: {self.removed & there}"
        operations = [o for program in self.scenario.programs for o in program]
        if any(isinstance(o, Truncate) or getattr(o, "discard_bypass", False) for o in operations):
            return
        snapshot = self._checker.database.services.catalog.snapshot()
        target = snapshot.find("default", "t")
        assert isinstance(target, Table)
        made, everything = _actual(self._checker, snapshot, target)
        if self._by_hand - (everything - made):
            yield f"rows of nobody are gone: {self._by_hand - (everything - made)}"
        self._by_hand = everything - made

    def _reached(self, stage: str) -> None:
        actor = getattr(self.current, "actor", None)
        if actor is not None and stage in STOPS:
            actor.stop()

    # --- statements

    def perform(self, operation: Operation, connection: Connection) -> None:
        """Run the operation. An error of the engine is an answer: the statement had nothing to
        do, or gave up."""
        try:
            if isinstance(operation, Vacuum):
                vacuum(connection.database.services, lifetime_seconds=0)
                return
            text = self._text(operation, connection)
            known = set(self.acknowledged)
            if text:
                self._run(connection, text)
            if isinstance(operation, Insert) and operation.table == "s":
                self.acknowledged |= set(operation.rows)
            if isinstance(operation, Delete):
                self.removed |= known & set(operation.rows)
        except Error:
            return

    def _run(self, connection: Connection, text: str) -> None:
        cursor = connection.execute(text)
        if cursor.description is not None:
            cursor.fetchall()

    def _text(self, operation: Operation, connection: Connection) -> str:
        match operation:
            case Insert(table, rows, token):
                assert not token
                hand = "'hand', '{0}', 0, '{1}'" if table == "t" else "'{0}', '{1}'"
                values = ", ".join(f"({hand.format(row, row[0])})" for row in rows)
                return f"INSERT INTO {table} VALUES {values}"
            case ChangeView():
                return self._change(operation, connection)
            case Delete(rows):
                return f"DELETE FROM s WHERE id IN ({', '.join(repr(r) for r in rows)})"
            case Truncate(table):
                return f"TRUNCATE TABLE {table}"
            case Backfill(name, partition):
                return f"SYSTEM BACKFILL VIEW {name} PARTITION '{partition}'"
            case Merge(table):
                return f"OPTIMIZE TABLE {table} FINAL"
            case Replay(table, slices, discard):
                which = f" PARTITION '{slices[0]}'" if slices else ""
                view = self._writer(connection, table)
                return f"SYSTEM REPLAY VIEW {view}{which}{' DISCARD BYPASS' if discard else ''}"
            case Reconcile(table):
                return f"SYSTEM RECONCILE VIEW {self._writer(connection, table)}"
            case Read():
                return "SELECT count() FROM s"
        raise AssertionError(f"No statement for {operation}.")

    def _change(self, operation: ChangeView, connection: Connection) -> str:
        if operation.kind not in ("CREATE", "MODIFY"):
            return f"{operation.kind} VIEW {operation.name}"
        head = f"CREATE MATERIALIZED VIEW {operation.name} TO {operation.target} AS"
        source, reads_dimension = operation.source, operation.reads_dimension
        if operation.kind == "MODIFY":
            snapshot = connection.database.services.catalog.snapshot()
            view = snapshot.find("default", operation.name)
            if not isinstance(view, MaterializedView):
                return ""
            found_source = snapshot.by_id(view.source_id)
            assert found_source is not None
            source, reads_dimension = found_source.name, bool(view.dimension_ids)
            head = f"ALTER TABLE {operation.name} MODIFY QUERY"
        with self._counting:
            self._definitions += 1
            definition = f"{operation.name}@{self._definitions}"
        query = CHAINED if source == "t" else PLAIN
        if operation.target == "d":
            query = INTO_DIMENSION
        query = WITH_DIMENSION if reads_dimension else query
        return f"{head} {query.format(d=definition)}"

    def _writer(self, connection: Connection, table: str) -> str:
        snapshot = connection.database.services.catalog.snapshot()
        target = snapshot.find("default", table)
        assert target is not None
        return next((v.name for v in snapshot.views_into(target.id)), "none")


# --- the invariants of the model, checked on the engine ------------------------------------------


def found(connection: Connection) -> Iterator[str]:
    """Yield violations of tests/protocol/invariants.py: rows against the ledger of the newest
    commit."""
    snapshot = connection.database.services.catalog.snapshot()
    doubled = connection.execute("SELECT id FROM s GROUP BY id HAVING count() > 1").fetchall()
    if doubled:
        yield f"source rows are doubled: {doubled}"
    for name in ("t", "u"):
        target = snapshot.find("default", name)
        assert isinstance(target, Table)
        views = snapshot.views_into(target.id)
        yield from _halves(snapshot, views)
        wanted = _expected(connection, snapshot, views)
        made, everything = _actual(connection, snapshot, target)
        for slice_ in ("a", "b"):
            should = {r: n for r, n in wanted.items() if r[3] == slice_}
            holds = {r: n for r, n in made.items() if r[3] == slice_}
            if should != holds and not _stale(snapshot, target, views, slice_):
                yield f"slice {slice_} of {name} holds {holds}, should {should}"
            full = {r: n for r, n in everything.items() if r[3] == slice_}
            if full != should and _proven(snapshot, target, views, slice_):
                yield f"slice {slice_} of {name} counts as proven, holds {full}, should {should}"


def _halves(snapshot: Snapshot, views: Sequence[MaterializedView]) -> Iterator[str]:
    """Yield views that cover a source part only in part."""
    for view in views:
        coverage = snapshot.coverage(view.id)
        for part in snapshot.parts(view.source_id):
            at = part.partition_id, part.block_range
            if part.rows and coverage.touches(*at) and not coverage.covers(*at):
                yield f"{view.name} has seen half of {part.name}"


def _expected(
    connection: Connection, snapshot: Snapshot, views: Sequence[MaterializedView]
) -> Counter[Row]:
    """Return the rows that the views must have written for the parts that they cover."""
    made: Counter[Row] = Counter()
    count = int(connection.execute("SELECT count() FROM d").fetchall()[0][0])
    for view in views:
        coverage = snapshot.coverage(view.id)
        seen_parts = {
            p.name
            for p in snapshot.parts(view.source_id)
            if p.rows and coverage.covers(p.partition_id, p.block_range)
        }
        found_name = re.search(r"'(\w+@\d+)'", view.query)
        assert found_name is not None
        definition = found_name.group(1)
        source = snapshot.by_id(view.source_id)
        assert source is not None
        columns = (
            "id, p" if source.name == "s" else "concat(made, '(', id, ', ', toString(seen), ')'), p"
        )
        query = f"SELECT {columns}, _part FROM {source.name}"
        seen = count if view.dimension_ids else 0
        for id_, p, part in connection.execute(query).fetchall():
            if part in seen_parts:
                slice_ = p if seen % 2 == 0 else {"a": "b", "b": "a"}[p]
                made[definition, id_, seen, slice_] += 1
    return made


def _actual(
    connection: Connection, snapshot: Snapshot, target: Table
) -> tuple[Counter[Row], Counter[Row]]:
    """Return the rows that the ledger attributes to views, and all rows."""
    ids = frozenset(v.id for v in snapshot.views_into(target.id))
    by_views = {p.name for p in snapshot.parts(target.id) if p.rows and not is_bypass(p, ids)}
    made: Counter[Row] = Counter()
    everything: Counter[Row] = Counter()
    query = f"SELECT made, id, seen, p, _part FROM {target.name}"
    for *row, part in connection.execute(query).fetchall():
        everything[tuple(row)] += 1
        if part in by_views:
            made[tuple(row)] += 1
    return made, everything


def _stale(
    snapshot: Snapshot, target: Table, views: Sequence[MaterializedView], slice_: str
) -> bool:
    named = _partition_ids(snapshot, target, slice_)
    return any(
        invalidation.target_partition is None or invalidation.target_partition in named
        for view in views
        for invalidation in snapshot.invalidations(view.id)
    )


def _proven(
    snapshot: Snapshot, target: Table, views: Sequence[MaterializedView], slice_: str
) -> bool:
    named = _partition_ids(snapshot, target, slice_)
    return any(
        check.verdict == "equal"
        and check.target_partition in named
        and check_is_current(check, view, snapshot)
        for view in views
        for check in snapshot.checks(view.id)
    )


def _partition_ids(snapshot: Snapshot, target: Table, slice_: str) -> frozenset[str]:
    """Return the id of the partition of a value, which is the same for all tables here."""
    types = [e.type for e in TableLayout(target).partition_expressions]
    return frozenset({partition_id([slice_], types)})


def performable(programs: Sequence[Program]) -> bool:
    """Return whether the engine has a statement for each operation. Swaps are the last step of a longer one:
    see tests/unit/views/test_rebuild_races.py."""
    return not any(
        (isinstance(one, Vacuum) and one.suspects)
        or isinstance(one, Swap)
        or (isinstance(one, ChangeView) and one.target == "n")
        or (isinstance(one, Insert) and (one.token or one.unknown))
        for program in programs
        for one in program
    )
