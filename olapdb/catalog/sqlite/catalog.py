"""The catalog on SQLite: one file, or ":memory:".

A commit is one transaction of the file.  Writers take turns (see `writer`), readers never wait. The
process's cache of the newest commit (`HeadCache`) follows each commit by its differences.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict

from olapdb import errors
from olapdb.catalog.protocol import (
    CommitInfo,
    CopyFacts,
    DroppedPart,
    DroppedTable,
    LeaseInfo,
    PartChange,
)
from olapdb.catalog.read_retry import retry_read
from olapdb.catalog.sqlite import jobs
from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.apply_changes import CommitApplier
from olapdb.catalog.sqlite.backup_copy import copy_catalog, load_copy
from olapdb.catalog.sqlite.connections import MEMORY, Connections
from olapdb.catalog.sqlite.damaged_parts import DamagedParts
from olapdb.catalog.sqlite.deliveries import key_batches, key_ledger, oldest_key
from olapdb.catalog.sqlite.dropped_tables import list_dropped
from olapdb.catalog.sqlite.errors import catalog_error
from olapdb.catalog.sqlite.free_space import release_space
from olapdb.catalog.sqlite.garbage import due_history, purge_history, purge_parts
from olapdb.catalog.sqlite.head_cache import HeadCache
from olapdb.catalog.sqlite.open import migrate, open_or_create
from olapdb.catalog.sqlite.process_registry import Registration, living
from olapdb.catalog.sqlite.requirements import Current, check, check_all
from olapdb.catalog.sqlite.snapshot import SqliteSnapshot
from olapdb.catalog.sqlite.vacuum_mark import refuse_vacuumed
from olapdb.catalog.sqlite.writer import Writer
from olapdb.errors import Error as OlapdbError
from olapdb.model.changes import Commit, Committed
from olapdb.model.damage import Damage
from olapdb.model.encoding import decode_part
from olapdb.model.failpoint import Durability, FailpointObserver, ignore_failpoint
from olapdb.model.job import JobChunk, JobState, ViewJob
from olapdb.model.keys import KeyBatch, KeyLedger
from olapdb.model.part import Part
from olapdb.model.requirements import Requirement
from olapdb.model.view_state import SourceOffset

LOCK_TIMEOUT_MS = 30_000


class SqliteCatalog:
    """A catalog in SQLite: `olapdb.catalog.protocol.Catalog`, which documents the methods.

    `path` is the file, created if missing (unless `read_only`), or ":memory:". `sync_files` makes
    the names of staged files durable (`Store.sync`); it is called before every commit, so that no
    committed part can lose its file.  `clock_ms` and `failpoint` are for tests. Raises
    CannotOpenWarehouse for a file that is not a catalog, of a newer release, or on a network mount.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = MEMORY,
        *,
        durability: Durability = "full",
        read_only: bool = False,
        zone: str = "UTC",
        lock_timeout_ms: int = LOCK_TIMEOUT_MS,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        sync_files: Callable[[], None] = lambda: None,
        failpoint: FailpointObserver = ignore_failpoint,
    ) -> None:
        self.path = os.fspath(path)
        self._read_only = read_only
        self._clock_ms = clock_ms
        self._sync_files = sync_files
        self._failpoint = failpoint
        self.connections = Connections(self.path, durability, read_only)
        in_memory = self.connections.in_memory
        try:
            facts = open_or_create(self.connections, self.path, read_only, zone, clock_ms())
        except BaseException:
            self.connections.close()
            raise
        self._warehouse_id, self._zone = facts["warehouse_id"], facts["zone"]
        self._writer = Writer(
            self.connections,
            self.path,
            read_only=read_only,
            lock_timeout_ms=lock_timeout_ms,
            notice_fork=self._notice_fork,
        )
        self._registration = Registration(
            None if in_memory or read_only else f"{_without_extension(self.path)}.processes"
        )
        self._head = HeadCache(self)
        self._damaged = DamagedParts(self.connections, self._writer, read_only)
        self._own_leases: set[str] = set()
        self._closed = False

    def __repr__(self) -> str:
        return f"<catalog {self.path}>"

    @property
    def read_only(self) -> bool:
        return self._read_only

    @property
    def warehouse_id(self) -> str:
        return self._warehouse_id

    @property
    def zone(self) -> str:
        return self._zone

    # --- reading

    def snapshot(self, number: int | None = None) -> SqliteSnapshot:
        """Return the newest snapshot, or that of commit `number`. Raises BadArguments or
        SnapshotTooOld."""
        return retry_read(lambda: self._snapshot(number))

    def _snapshot(self, number: int | None = None) -> SqliteSnapshot:
        """Read snapshot `number` (None: the newest) once, without the retry of `snapshot`. Raise
        BadArguments for a number that does not exist, SnapshotTooOld if vacuum has purged it."""
        self._notice_fork()
        with self._reading_for_head() as connection:
            newest = int(sql.newest_commit.value(connection))
            if number is None or number == newest:
                return self._head.at(connection, newest).snapshot
            if not 1 <= number <= newest:
                raise errors.BadArguments(
                    f"There is no snapshot {number}.",
                    hint=f"system.snapshots lists those up to {newest}.",
                )
            refuse_vacuumed(connection, number)
            return SqliteSnapshot(self, number, self._head.schema_at(connection, number))

    def parts_at(self, table_id: str, number: int) -> tuple[Part, ...]:
        """Return the live parts of a table as of a commit; `Snapshot.parts` reads them here."""
        self._notice_fork()
        parts = self._head.known_parts(table_id, number)
        if parts is not None:
            return parts
        with self._reading_for_head() as connection:
            return self._head.load_parts(connection, table_id, number)

    @contextmanager
    def _reading_for_head(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection for reads that fill the head cache. If the read raises CatalogChanged,
        clear the cache and raise it again."""
        try:
            with self.connections.consistent() as connection:
                yield connection
        except errors.CatalogChanged:
            self._head.clear()
            raise

    def part_count_at(self, table_id: str, partition_id: str, number: int) -> int:
        """Return the number of live parts of a partition; for the newest commit without listing
        them."""
        count = self._head.known_count(table_id, partition_id, number)
        if count is not None:
            return count
        return sum(1 for p in self.parts_at(table_id, number) if p.partition_id == partition_id)

    def source_offsets(self, table_id: str, number: int | None = None) -> tuple[SourceOffset, ...]:
        """Return the positions of the table's streams at commit `number` (None: now), by stream."""
        self._notice_fork()
        with self.connections.consistent() as connection:
            at = int(sql.newest_commit.value(connection)) if number is None else number
            rows = sql.offsets_at(connection, of_table=table_id, number=at).fetchall()
        return tuple(SourceOffset(*row) for row in rows)

    def accepted_keys(
        self, table_id: str, epoch: int, since: int
    ) -> tuple[KeyLedger, tuple[KeyBatch, ...]]:
        """Return the table's key ledger and the keys from ordinal `since` on; all keys if the
        ledger's epoch is not `epoch`."""
        self._notice_fork()
        with self.connections.consistent() as connection:
            ledger = key_ledger(connection, table_id) or KeyLedger()
            since = max(since, ledger.oldest) if ledger.epoch == epoch else ledger.oldest
            if since == ledger.next:
                return ledger, ()
            return ledger, key_batches(connection, table_id, since)

    def has_deliveries(self, table_id: str) -> bool:
        """Return whether the table has keys, tokens or offsets that ForgetDeliveries would delete
        now."""
        self._notice_fork()
        with self.connections.reading() as connection:
            return sql.has_deliveries.value(connection, of_table=table_id) is not None

    def key_ledger(self, table_id: str) -> KeyLedger:
        """Return the table's key ledger; an empty one if the table never accepted a key."""
        self._notice_fork()
        with self.connections.reading() as connection:
            return key_ledger(connection, table_id) or KeyLedger()

    def oldest_key(self, table_id: str, cutoff_ms: int) -> tuple[int, int]:
        """Return (ordinal, time in ms) of the oldest key accepted after the cutoff; (the next
        ordinal, 0) if there is none."""
        self._notice_fork()
        with self.connections.consistent() as connection:
            ledger = key_ledger(connection, table_id) or KeyLedger()
            return oldest_key(connection, table_id, ledger.oldest, cutoff_ms, ledger.next)

    def accepted_key_bytes(self, table_id: str) -> int:
        """Return the bytes that the table's accepted deduplication keys occupy in the catalog; 0 if
        there are none."""
        self._notice_fork()
        with self.connections.reading() as connection:
            return int(sql.accepted_key_bytes.value(connection, of_table=table_id) or 0)

    # --- writing

    def apply(self, commit: Commit) -> Committed:
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
            return Committed(number, tuple(applier.blocks.items()))

    def _prepare(
        self, connection: sqlite3.Connection, commit: Commit, commit_id: str
    ) -> tuple[CommitApplier, int]:
        """Begin the transaction, check the requirements and make all changes, up to COMMIT, which
        the caller runs. Return the applier and the commit's number. If this raises, nothing was
        committed."""
        connection.execute("BEGIN IMMEDIATE")
        newest = int(sql.newest_commit.value(connection))
        current = Current(connection, newest, self._head.at(connection, newest).schema)
        check_all(current, commit.requirements)
        self._failpoint("catalog.checked")
        now_ms = self._clock_ms()
        applier = CommitApplier(current, newest + 1, now_ms, commit)
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
            current = Current(connection, newest, self._head.at(connection, newest).schema)
            for requirement in requirements:
                try:
                    check(current, requirement)
                except (errors.Aborted, errors.CommitConflict, errors.DuplicateInsert):
                    violated.append(requirement)
        return tuple(violated)

    # --- jobs of views

    def open_job(self, job: ViewJob, chunks: Sequence[JobChunk]) -> None:
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

    def jobs(self) -> tuple[ViewJob, ...]:
        self._notice_fork()
        with self.connections.reading() as connection:
            return jobs.all_jobs(connection)

    def job_chunks(self) -> tuple[tuple[str, JobChunk], ...]:
        self._notice_fork()
        with self.connections.reading() as connection:
            return jobs.all_chunks(connection)

    def living_leases(self) -> frozenset[str]:
        """Return the ids of the live leases whose process still runs; all live ones if the catalog
        is in memory."""
        live = [lease for lease in self.leases() if lease.state == "live"]
        if self.connections.in_memory:
            return frozenset(lease.id for lease in live)
        owners = living(
            f"{_without_extension(self.path)}.processes", {lease.owner for lease in live}
        )
        return frozenset(lease.id for lease in live if lease.owner in owners)

    # --- damage

    def damaged(self) -> tuple[Damage, ...]:
        """Return the parts that reads or checks found damaged; some may not be live any more."""
        self._notice_fork()
        return self._damaged.all()

    def record_damaged(self, damaged: Iterable[Damage]) -> None:
        """Add damaged parts to the list; in a warehouse open for reading only, for this process."""
        self._notice_fork()
        self._damaged.note(damaged)

    def clear_damaged(self, part_ids: Collection[str]) -> None:
        """Remove parts from the list of damaged ones."""
        self._notice_fork()
        self._damaged.forget(part_ids)

    # --- leases and pins

    def open_lease(self, purpose: str) -> str:
        """Record a live lease of this process; return its new id, 32 hexadecimal digits."""
        lease_id = uuid.uuid4().hex
        now_ms = self._clock_ms()
        with self._writer.housekeeping("open a lease") as connection:
            sql.insert_lease(
                connection,
                id=lease_id,
                purpose=purpose,
                owner=self._registration.ensure(),
                process_id=os.getpid(),
                state="live",
                opened_ms=now_ms,
                renewed_ms=now_ms,
            )
        self._own_leases.add(lease_id)
        return lease_id

    def renew_lease(self, lease_id: str) -> None:
        """Record now as the time when the lease's process was last alive. Do nothing if no such
        lease exists."""
        with self._writer.housekeeping("renew a lease") as connection:
            sql.renew_lease(connection, lease_id=lease_id, now_ms=self._clock_ms())

    def close_lease(self, lease_id: str) -> None:
        """End the lease; commits that require it fail from now on."""
        self._end_leases([lease_id], "closed")
        self._own_leases.discard(lease_id)

    def leases(self) -> tuple[LeaseInfo, ...]:
        self._notice_fork()
        with self.connections.reading() as connection:
            return tuple(LeaseInfo(*row) for row in sql.all_leases(connection))

    def revoke_dead_leases(self) -> tuple[str, ...]:
        """Revoke the live leases of processes that have ended; return their ids."""
        alive, _ = self._registration.living_and_lowest_pin()
        dead = [
            lease.id
            for lease in self.leases()
            if lease.state == "live" and lease.owner not in alive
        ]
        if dead:
            self._end_leases(dead, "revoked")
        return tuple(dead)

    def _end_leases(self, lease_ids: Sequence[str], state: str) -> None:
        """Set the state of leases to "closed" or "revoked"."""
        with self._writer.housekeeping("end a lease") as connection:
            sql.set_lease_state(connection, lease_ids=json.dumps(lease_ids), new_state=state)

    def pin(self, number: int) -> None:
        """Keep the snapshot's parts from vacuum until `unpin`. Raises SnapshotTooOld if vacuum has
        purged any."""
        self._notice_fork()
        self._registration.pin(number)
        # The pin is written, then the mark is read; vacuum writes the mark, then reads the pins.
        # So one of the two sees the other.
        try:
            with self.connections.reading() as connection:
                refuse_vacuumed(connection, number)
        except BaseException:
            self._registration.unpin(number)
            raise

    def unpin(self, number: int) -> None:
        """Remove one pin of the snapshot; do nothing after `close`."""
        if not self._closed:
            self._registration.unpin(number)

    @contextmanager
    def pinned(self, number: int | None = None) -> Iterator[SqliteSnapshot]:
        """Yield the snapshot of commit `number` (None: the newest), pinned inside the `with`."""
        snapshot = self._pin_newest() if number is None else self.snapshot(number)
        if number is not None:
            self.pin(number)
        try:
            yield snapshot
        finally:
            self.unpin(snapshot.number)

    def _pin_newest(self) -> SqliteSnapshot:
        """Pin and return the newest snapshot. If vacuum purges it before the pin is written, take
        the then newest one."""
        snapshot = self.snapshot()
        try:
            self.pin(snapshot.number)
        except errors.SnapshotTooOld:  # vacuum came between; the now newest snapshot is safe
            snapshot = self.snapshot()
            self.pin(snapshot.number)
        return snapshot

    def oldest_pin(self) -> int:
        """Return the smallest commit number that any process has pinned; the newest commit without
        pins."""
        newest = self.snapshot().number
        _, lowest = self._registration.living_and_lowest_pin()
        return min(lowest or newest, newest)

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
            return list_dropped(connection)

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
        return copy_catalog(self.connections, path)

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
            facts = load_copy(path, connection)
            migrate(connection)
            self._warehouse_id = facts.warehouse_id
            for lease in live:
                sql.insert_lease(connection, **asdict(lease))
            self._head = HeadCache(self)

    # --- life

    def close(self) -> None:
        """Close the catalog once: end this process's leases, unregister it and close its files."""
        if self._closed:
            return
        if not self._notice_fork() and self._own_leases:
            # If the catalog cannot be written, they stay as after a kill, and vacuum revokes them.
            with suppress(OlapdbError):
                self._end_leases(sorted(self._own_leases), "closed")
        self._closed = True
        self._registration.close()
        self._writer.close()
        self.connections.close()

    def _notice_fork(self) -> bool:
        """Replace all locks and files inherited from the parent, if this is the first call in a
        child process. Return whether it is."""
        if not self.connections.forked():
            return False
        self._writer.forget_inherited()
        self._head.renew_lock()
        self._registration.forget_inherited()
        self._own_leases = set()
        return True


def _without_extension(path: str) -> str:
    """Return the path without its file extension."""
    return os.path.splitext(path)[0]
