"""The catalog on SQLite: one file, or ":memory:".

A commit is one transaction of the file.  Writers take turns (see `writer`), readers never wait. The
process's cache of the newest commit (`HeadCache`) follows each commit by its differences.
"""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import TYPE_CHECKING

from olapdb import errors
from olapdb.catalog.protocol import CommitInfo, CopyFacts, DroppedPart, DroppedTable, PartChange
from olapdb.catalog.sqlite import jobs
from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.errors import catalog_error
from olapdb.catalog.sqlite.free_space import release_space
from olapdb.catalog.sqlite.garbage import due_history, purge_history, purge_parts
from olapdb.catalog.sqlite.head_cache import HeadCache
from olapdb.catalog.sqlite.lease_catalog import LeaseCatalog
from olapdb.catalog.sqlite.open import migrate
from olapdb.lazy import LazyModule, lazy_modules
from olapdb.model.damage import Damage
from olapdb.model.encoding import decode_part
from olapdb.model.job import JobChunk, JobEntry, JobState

if TYPE_CHECKING:
    from olapdb.catalog.sqlite import apply_changes, backup_copy, dropped_tables
    from olapdb.catalog.sqlite import requirements as checks
    from olapdb.model import changes
    from olapdb.model.requirements import Requirement
else:
    apply_changes, backup_copy, dropped_tables, checks = lazy_modules(
        "olapdb.catalog.sqlite", "apply_changes", "backup_copy", "dropped_tables", "requirements"
    )
    changes = LazyModule("olapdb.model.changes")


class SqliteCatalog(LeaseCatalog):
    """A catalog in SQLite: `olapdb.catalog.protocol.Catalog`, which documents the methods.

    `path` is the file, created if missing (unless `read_only`), or ":memory:". `sync_files` makes
    the names of staged files durable (`Store.sync`); it is called before every commit, so that no
    committed part can lose its file.  `clock_ms` and `failpoint` are for tests. Raises
    CannotOpenWarehouse for a file that is not a catalog, of a newer release, or on a network mount.
    """

    # --- writing

    def apply(self, commit: changes.Commit) -> changes.Committed:
        """Check the commit's requirements and make its changes in one transaction, or raise and
        make none."""
        self._sync_files()
        with self._writer.writing(commit.kind) as connection:
            commit_id = uuid.uuid4().hex
            try:
                applier, number = self._prepare(connection, commit, commit_id)
            except sqlite3.Error as error:
                self._writer.rollback(connection)
                raise catalog_error(error, self.path) from error
            except BaseException:
                self._writer.rollback(connection)
                raise
            self._failpoint("catalog.before_commit")
            self._writer.commit(connection, commit_id, number)
            self._failpoint("catalog.committed")
            self._head.apply_own_commit(applier, number)
            return changes.Committed(number, tuple(applier.blocks.items()))

    def _prepare(
        self, connection: sqlite3.Connection, commit: changes.Commit, commit_id: str
    ) -> tuple[apply_changes.CommitApplier, int]:
        """Begin the transaction, check the requirements and make all changes, up to COMMIT, which
        the caller runs. Return the applier and the commit's number. If this raises, nothing was
        committed."""
        connection.execute("BEGIN IMMEDIATE")
        newest = int(sql.newest_commit.value(connection))
        current = checks.Current(connection, newest, self._head.at(connection, newest).schema)
        checks.check_all(current, commit.requirements)
        self._failpoint("catalog.checked")
        now_ms = self._clock_ms()
        applier = apply_changes.CommitApplier(current, newest + 1, now_ms, commit)
        applier.run()
        sql.insert_commit(
            connection,
            number=newest + 1,
            id=commit_id,
            kind=commit.kind,
            query_id=commit.query_id,
            statement=commit.statement,
            time_ms=now_ms,
            process_id=os.getpid(),
        )
        return applier, newest + 1

    def turn(self, purpose: str) -> AbstractContextManager[None]:
        """Hold the exclusive right to commit inside the `with`. Raises CatalogBusy or ReadOnly."""
        return self._writer.turn(purpose)

    def abandon_turn(self) -> None:
        """Release the turn of the calling thread, if it has one, after an interrupt."""
        self._writer.abandon_turn()

    def violated(self, requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
        """Return the requirements that do not hold now; change nothing."""
        self._notice_fork()
        violated: list[Requirement] = []
        with self.connections.consistent() as connection:
            newest = int(sql.newest_commit.value(connection))
            current = checks.Current(connection, newest, self._head.at(connection, newest).schema)
            for requirement in requirements:
                try:
                    checks.check(current, requirement)
                except (errors.Aborted, errors.CommitConflict, errors.DuplicateInsert):
                    violated.append(requirement)
        return tuple(violated)

    # --- jobs of views

    def open_job(self, job: JobEntry, chunks: Sequence[JobChunk]) -> None:
        """Record a new job and its chunks; delete the oldest of too many jobs."""
        with self._writer.housekeeping("open a job") as connection:
            jobs.open_job(connection, job, chunks)

    def plan_job(self, job_id: str, chunks: Sequence[JobChunk]) -> None:
        """Replace the planned chunks of a job; published ones stay."""
        with self._writer.housekeeping("plan a job") as connection:
            jobs.plan_job(connection, job_id, chunks)

    def record_progress(self, job_id: str, chunks: Sequence[JobChunk]) -> None:
        """Record the state of these chunks, outside of any commit."""
        with self._writer.housekeeping("note a job's progress") as connection:
            jobs.note_chunks(connection, job_id, chunks)

    def close_job(self, job_id: str, state: JobState, error: str = "") -> bool:
        """End a running job in this state; return False if it had ended before."""
        with self._writer.housekeeping("close a job") as connection:
            return jobs.close_job(connection, job_id, state, error, self._clock_ms())

    def job_state(self, job_id: str) -> JobState | None:
        """Return the job's state; None if the catalog has deleted the job."""
        self._notice_fork()
        with self.connections.reading() as connection:
            return jobs.job_state(connection, job_id)

    def jobs(self) -> tuple[JobEntry, ...]:
        """Return all recorded jobs of views, running and ended."""
        self._notice_fork()
        with self.connections.reading() as connection:
            return jobs.all_jobs(connection)

    def job_chunks(self) -> tuple[tuple[str, JobChunk], ...]:
        """Return (job id, chunk) of all chunks of the recorded jobs."""
        self._notice_fork()
        with self.connections.reading() as connection:
            return jobs.all_chunks(connection)

    # --- damage

    def record_damaged(self, damaged: Iterable[Damage]) -> None:
        """Add damaged parts to the list; in a warehouse open for reading only, for this process."""
        self._notice_fork()
        self._damaged.note(damaged)

    def clear_damaged(self, part_ids: Collection[str]) -> None:
        """Remove parts from the list of damaged ones."""
        self._notice_fork()
        self._damaged.forget(part_ids)

    # --- what vacuum and checks need

    def dropped_parts(
        self, until_ms: int, limit: int, until_of: Mapping[str, int] | None = None, after: int = 0
    ) -> tuple[DroppedPart, ...]:
        """Return up to `limit` parts that vacuum may purge, oldest first: dropped by commit `after`
        or later, until `until_ms` (or `until_of` their table), and in no pinned snapshot."""
        horizon = self.oldest_pin()
        with self.connections.reading() as connection:
            cursor = sql.dropped_parts(
                connection,
                after=after,
                up_to=self._newest_due_commit(connection, horizon, until_ms, until_of),
                until_ms=until_ms,
                until_of=json.dumps(until_of or {}),
            )
            rows = cursor.fetchmany(limit)
            cursor.close()
        return tuple(DroppedPart(decode_part(row[:-2]), row[-2], row[-1]) for row in rows)

    def overdue_parts(self, until_ms: int, until_of: Mapping[str, int] | None = None) -> int:
        """Return the number of dropped parts that vacuum could purge by their time if no snapshot
        were pinned."""
        self._notice_fork()
        with self.connections.reading() as connection:
            newest = int(sql.newest_commit.value(connection))
            return int(
                sql.overdue_parts.value(
                    connection,
                    up_to=self._newest_due_commit(connection, newest, until_ms, until_of),
                    until_ms=until_ms,
                    until_of=json.dumps(until_of or {}),
                )
            )

    @staticmethod
    def _newest_due_commit(
        connection: sqlite3.Connection,
        horizon: int,
        until_ms: int,
        until_of: Mapping[str, int] | None,
    ) -> int:
        """Return the newest commit, `horizon` at most, whose dropped parts vacuum may purge by
        their time. Drops of later commits need not be read."""
        latest_ms = max((until_ms, *(until_of or {}).values()))
        newest = sql.newest_commit_until.value(connection, until_ms=latest_ms)
        return min(horizon, int(newest or 0))

    def dropped_tables(self) -> tuple[DroppedTable, ...]:
        """Return the dropped tables that vacuum has not purged, the oldest drop first."""
        self._notice_fork()
        with self.connections.consistent() as connection:
            return dropped_tables.list_dropped(connection)

    def purge_parts(self, parts: Sequence[DroppedPart]) -> tuple[str, ...]:
        """Delete the rows of dropped parts; return the paths that no part refers to any more."""
        return purge_parts(self._writer, parts, self.oldest_pin, self._failpoint)

    def purge_history(self, until_ms: int, commits_max: int) -> None:
        """Delete history dropped until `until_ms` that no pin needs, and log entries except the
        newest `commits_max` and those after `until_ms`. Join old blocks into spans. Write nothing
        to an idle warehouse."""
        newest = self.snapshot().number
        with self.connections.reading() as connection:
            past = int(sql.newest_commit_until.value(connection, until_ms=until_ms) or 0)
        horizon = min(self.oldest_pin(), past)
        with self.connections.consistent() as connection:
            due = due_history(connection, horizon, newest - commits_max + 1)
        if due is not None:  # vacuum does not write to an idle warehouse
            purge_history(self._writer, due, self.oldest_pin, self._clock_ms, self._failpoint)

    def release_space(self) -> int:
        """Cut free pages off the catalog's file, shorten its log; return the number of pages
        cut."""
        return release_space(self._writer, self.connections, self.path, self._failpoint)

    def purge_leases(self, lease_ids: Sequence[str]) -> None:
        """Delete the rows of these leases unless they are live."""
        if lease_ids:
            with self._writer.housekeeping("vacuum") as connection:
                sql.purge_leases(connection, lease_ids=json.dumps(list(lease_ids)))

    def referenced_paths(self) -> frozenset[str]:
        """Return the file paths of all parts in the catalog, dropped ones included."""
        self._notice_fork()
        with self.connections.reading() as connection:
            return frozenset(path for (path,) in sql.all_paths(connection))

    def commits(
        self, *, since: int = 0, up_to: int | None = None, limit: int | None = None
    ) -> Iterator[CommitInfo]:
        """Return the log's entries, ascending, of the commits `since` to `up_to` (None: the
        newest), both included; of these the newest `limit` (None: all)."""
        self._notice_fork()
        last = up_to if up_to is not None else self.snapshot().number
        first = max(since, last - limit + 1) if limit is not None else since
        with self.connections.reading() as connection:
            rows = sql.list_commits(connection, since=first, up_to=last).fetchall()
        return iter([CommitInfo(*row) for row in rows])

    def part_changes(self, up_to: int, limit: int) -> tuple[PartChange, ...]:
        """Return the newest `limit` changes of parts until commit `up_to`, newest first. Their
        process id is 0."""
        self._notice_fork()
        with self.connections.reading() as connection:
            cursor = sql.part_history(connection, up_to=up_to)
            rows = cursor.fetchmany(limit)
            cursor.close()
        return tuple(
            PartChange(decode_part(part), bool(dropped), CommitInfo(*commit, process_id=0))
            for *part, dropped, number, kind, query_id, statement, time_ms in rows
            for commit in [(number, kind, query_id, statement, time_ms)]
        )

    # --- copies

    def copy_to(self, path: str) -> CopyFacts:
        """Write the newest commit's catalog, without history, to the new file `path`."""
        self._notice_fork()
        return backup_copy.copy_catalog(self.connections, path)

    def refuse_if_used(self) -> None:
        """Raise BadArguments if anything was committed since the warehouse was created."""
        newest = self.snapshot().number
        if newest > 1:
            raise errors.BadArguments(
                f"This warehouse has {newest - 1} commits already; RESTORE needs a new one.",
                hint="Connect to a new folder, and restore there.",
            )

    def load_copy(self, path: str) -> None:
        """Replace the content of this new warehouse by the copy at `path`; keep the live leases."""
        with self._writer.writing("restore") as connection:
            self.refuse_if_used()
            live = [lease for lease in self.leases() if lease.state == "live"]
            facts = backup_copy.load_copy(path, connection)
            migrate(connection)
            self._warehouse_id = facts.warehouse_id
            for lease in live:
                sql.insert_lease(connection, **asdict(lease))
            self._head = HeadCache(self)
