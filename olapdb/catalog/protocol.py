"""The interface of a catalog, independent of the database that stores it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from olapdb.model.damage import Damage
from olapdb.model.job import JobChunk, JobEntry, JobState
from olapdb.model.keys import KeyBatch, KeyLedger
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass

if TYPE_CHECKING:
    from olapdb.model.changes import Commit, Committed
    from olapdb.model.requirements import Requirement
    from olapdb.model.view_state import SourceOffset

LeaseState: TypeAlias = Literal["live", "closed", "revoked"]


CATALOG_FILE = "catalog.sqlite"
"""The catalog's file in the warehouse's folder."""


@dataclass(frozen=True, slots=True)
class CopyFacts:
    """The warehouse of a copy, and the number of its newest commit."""

    warehouse_id: str
    number: int


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """One commit of the log, for system.snapshots."""

    number: int
    kind: str
    query_id: str
    statement: str
    time_ms: int
    process_id: int


@dataclass(frozen=True, slots=True)
class PartChange:
    """A part that `commit` added or, if `dropped`, removed."""

    part: Part
    dropped: bool
    commit: CommitInfo


@dataclass(frozen=True, slots=True)
class LeaseInfo:
    """A lease. `owner` is the registration of the process that opened it, see
    `catalog.sqlite.process_registry`."""

    id: str
    purpose: str
    owner: str
    process_id: int
    state: LeaseState
    opened_ms: int
    renewed_ms: int


@dataclass(frozen=True, slots=True)
class DroppedPart:
    """A part that is not live any more, but that older snapshots may read."""

    part: Part
    dropped_commit: int
    dropped_ms: int


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A dropped table with its last definition. `complete` is False once vacuum has purged any of
    its parts, after `old_parts_lifetime`."""

    table: Table
    dropped_commit: int
    dropped_ms: int
    complete: bool


class Catalog(Protocol):
    """The source of truth about a warehouse. Safe for many threads and for several processes;
    survives a fork."""

    @property
    def read_only(self) -> bool:
        """Return whether the warehouse is open for reading only."""
        ...

    @property
    def warehouse_id(self) -> str:
        """The warehouse's id, created with it and never changed."""
        ...

    @property
    def zone(self) -> str:
        """The warehouse's time zone, fixed when it was created."""
        ...

    def snapshot(self, number: int | None = None) -> Snapshot:
        """Return the newest snapshot, or that of a commit number.

        Raises SnapshotTooOld if vacuum removed its parts, BadArguments if there was no such commit.
        """
        ...

    def turn(self, purpose: str) -> AbstractContextManager[None]:
        """Hold the right to commit inside the `with`: no other thread or process commits meanwhile.

        The thread that holds it may commit and may nest further turns. Hold it for seconds at most:
        other writers raise CatalogBusy after `lock_acquire_timeout_ms`. Raises CatalogBusy,
        ReadOnly.
        """
        ...

    def abandon_turn(self) -> None:
        """Release the turn of the calling thread, if it has one, after an interrupt ended its
        statement. Ctrl-C may come between any two steps, even while the turn is being released."""
        ...

    def apply(self, commit: Commit) -> Committed:
        """Check all requirements and make all changes in one transaction, or raise and make none.

        CommitConflict names in `requirement` the one that no longer holds. Aborted: a required
        lease has ended, so no retry helps. After these and DuplicateInsert, CatalogBusy,
        NotEnoughSpace and ReadOnly surely nothing was changed. CommitUnknown: the outcome cannot be
        determined.
        """
        ...

    # --- damage

    def damaged(self) -> tuple[Damage, ...]:
        """Return the parts that reads or checks found damaged; some may not be live any more."""
        ...

    def record_damaged(self, damaged: Iterable[Damage]) -> None:
        """Add damaged parts to the list. Of a warehouse open for reading only, just this process
        remembers them."""
        ...

    def clear_damaged(self, part_ids: Collection[str]) -> None:
        """Remove parts from the list: they are sound again."""
        ...

    # --- deliveries

    def source_offsets(self, table_id: str, number: int | None = None) -> tuple[SourceOffset, ...]:
        """Return the positions of the table's streams at a commit (None: now), ordered by
        stream."""
        ...

    def accepted_keys(
        self, table_id: str, epoch: int, since: int
    ) -> tuple[KeyLedger, tuple[KeyBatch, ...]]:
        """Return the current ledger of the table's keys, and the keys of the ordinals from `since`
        on. If the ledger's epoch differs from `epoch`, return all its keys."""
        ...

    def has_deliveries(self, table_id: str) -> bool:
        """Return whether the table has any keys, tokens or offsets that ForgetDeliveries would
        delete now."""
        ...

    def key_ledger(self, table_id: str) -> KeyLedger:
        """Return the current ledger; an empty one if the table never accepted a key."""
        ...

    def oldest_key(self, table_id: str, cutoff_ms: int) -> tuple[int, int]:
        """Return (ordinal, time in ms) of the oldest stored key that was accepted after the cutoff;
        (the next ordinal, 0) if there is none."""
        ...

    def accepted_key_bytes(self, table_id: str) -> int:
        """Return the bytes of the table's accepted keys in the catalog; 0 if there are none."""
        ...

    def violated(self, requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
        """Return the requirements that do not hold now, without changing anything.

        A commit of several pieces of work uses it after a conflict to find which pieces to repeat.
        """
        ...

    # --- jobs of views, see `olapdb.model.job`

    def open_job(self, job: JobEntry, chunks: Sequence[JobChunk]) -> None:
        """Record a new job with its plan, and delete the oldest of too many jobs."""
        ...

    def plan_job(self, job_id: str, chunks: Sequence[JobChunk]) -> None:
        """Replace the planned chunks of a job. Chunks that are published already stay."""
        ...

    def record_progress(self, job_id: str, chunks: Sequence[JobChunk]) -> None:
        """Record the state of chunks (progress, failures) outside of any commit."""
        ...

    def close_job(self, job_id: str, state: JobState, error: str = "") -> bool:
        """End a running job; return False if it had ended before. From then on a commit that
        requires JobRuns conflicts."""
        ...

    def job_state(self, job_id: str) -> JobState | None:
        """Return the job's state; None if the catalog has deleted the job."""
        ...

    def jobs(self) -> tuple[JobEntry, ...]:
        """Return all jobs, oldest first."""
        ...

    def job_chunks(self) -> tuple[tuple[str, JobChunk], ...]:
        """Return (job id, chunk) pairs, ordered by both."""
        ...

    def living_leases(self) -> frozenset[str]:
        """Return the ids of live leases whose process still runs."""
        ...

    # --- leases and pins

    def open_lease(self, purpose: str) -> str:
        """Open a lease of this process; return its id, hexadecimal and part of the names of staged
        files."""
        ...

    def renew_lease(self, lease_id: str) -> None:
        """Record now as the time when the lease's process was last alive."""
        ...

    def close_lease(self, lease_id: str) -> None:
        """Close a lease that has no work in progress; commits that require it fail from now on."""
        ...

    def leases(self) -> tuple[LeaseInfo, ...]:
        """Return all leases, closed and revoked ones included, ordered by the time of opening."""
        ...

    def revoke_dead_leases(self) -> tuple[str, ...]:
        """Revoke the leases of processes that have ended; return the ids of those revoked."""
        ...

    def pin(self, number: int) -> None:
        """Keep the parts of a snapshot from vacuum until `unpin`; pins are counted. Raises
        SnapshotTooOld if vacuum has purged any of them."""
        ...

    def unpin(self, number: int) -> None:
        """Remove one pin of the snapshot; its parts are safe from vacuum until the last pin is
        removed."""
        ...

    def pinned(self, number: int | None = None) -> AbstractContextManager[Snapshot]:
        """Yield a snapshot that is pinned inside the `with`: that of the commit `number`, None: the
        newest."""
        ...

    def oldest_pin(self) -> int:
        """Return the smallest commit number that any process has pinned; the newest commit without
        pins."""
        ...

    # --- what vacuum and checks need

    def dropped_parts(
        self, until_ms: int, limit: int, until_of: Mapping[str, int] | None = None, after: int = 0
    ) -> tuple[DroppedPart, ...]:
        """Return up to `limit` parts that vacuum may purge, oldest first: dropped until `until_ms`
        (or `until_of` their table's id), by commit `after` or later, and in no pinned snapshot."""
        ...

    def overdue_parts(self, until_ms: int, until_of: Mapping[str, int] | None = None) -> int:
        """Return the number of parts that `dropped_parts` would list if no snapshot were pinned."""
        ...

    def dropped_tables(self) -> tuple[DroppedTable, ...]:
        """Return the dropped tables that vacuum has not purged, the oldest drop first."""
        ...

    def purge_parts(self, parts: Sequence[DroppedPart]) -> tuple[str, ...]:
        """Delete the rows of dropped parts, after which older snapshots raise SnapshotTooOld.
        Return the paths that no part refers to any more: their files may be deleted."""
        ...

    def purge_history(self, until_ms: int, commits_max: int) -> None:
        """Delete objects, coverage and other rows that were dropped until `until_ms` and that no
        pinned snapshot sees; join old blocks into spans. Shorten the log to the newest
        `commits_max` commits and those after `until_ms`."""
        ...

    def release_space(self) -> int:
        """Cut free pages off the catalog's file and shorten its log; return the number of pages
        cut."""
        ...

    def purge_leases(self, lease_ids: Sequence[str]) -> None:
        """Delete closed and revoked leases. The caller has checked that no file bears their ids."""
        ...

    def referenced_paths(self) -> frozenset[str]:
        """Return the paths of all parts that the catalog has, dropped ones included."""
        ...

    def part_changes(self, up_to: int, limit: int) -> tuple[PartChange, ...]:
        """Return the newest `limit` changes until the commit `up_to`, newest first, without parts
        that vacuum purged."""
        ...

    def copy_to(self, path: str) -> CopyFacts:
        """Write the newest commit's catalog, without history, to the new file `path`; durable. To
        copy the parts too, pin a snapshot before."""
        ...

    def refuse_if_used(self) -> None:
        """Raise BadArguments if anything was committed since the warehouse was created."""
        ...

    def load_copy(self, path: str) -> None:
        """Replace the content of a new warehouse (`refuse_if_used`) by a copy's. All files of its
        parts must exist."""
        ...

    def commits(
        self, *, since: int = 0, up_to: int | None = None, limit: int | None = None
    ) -> Iterator[CommitInfo]:
        """Return entries of the log in ascending order: commits since..up_to (None: the newest),
        both included, of these the newest `limit` (None: all)."""
        ...

    def close(self) -> None:
        """Close this process's leases and connections; idempotent."""
        ...
