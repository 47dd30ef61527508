"""What a catalog promises, whatever database it stands on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from olapdb.model.changes import Commit, Committed, Requirement
from olapdb.model.damage import Damage
from olapdb.model.job import JobChunk, JobState, ViewJob
from olapdb.model.keys import KeyBatch, KeyLedger
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import SourceOffset

LeaseState: TypeAlias = Literal["live", "closed", "revoked"]


CATALOG_FILE = "catalog.sqlite"
"""In the warehouse's folder."""


@dataclass(frozen=True, slots=True)
class CopyFacts:
    """What a copy is of: its warehouse and its newest commit."""

    warehouse_id: str
    number: int


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """What one commit did, for system.snapshots."""

    number: int
    kind: str
    query_id: str
    statement: str
    time_ms: int
    process_id: int


@dataclass(frozen=True, slots=True)
class PartChange:
    """A part that `commit` made, or (`dropped`) took away."""

    part: Part
    dropped: bool
    commit: CommitInfo


@dataclass(frozen=True, slots=True)
class LeaseInfo:
    """`owner` is the registration of the process that opened it, see `catalog.processes`."""

    id: str
    purpose: str
    owner: str
    process_id: int
    state: LeaseState
    opened_ms: int
    renewed_ms: int


@dataclass(frozen=True, slots=True)
class DroppedPart:
    """A part that no new snapshot has, but that older ones may read."""

    part: Part
    dropped_commit: int
    dropped_ms: int


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A table as it was when it was dropped. `complete` tells whether all its parts are still
    there: vacuum forgets them when `old_parts_lifetime` is over."""

    table: Table
    dropped_commit: int
    dropped_ms: int
    complete: bool


class Catalog(Protocol):
    """Safe for many threads, and for several processes on one warehouse; survives a fork."""

    @property
    def read_only(self) -> bool: ...

    @property
    def warehouse_id(self) -> str:
        """Made with the warehouse, never changed."""
        ...

    @property
    def zone(self) -> str:
        """The warehouse's time zone, fixed when it was made."""
        ...

    def snapshot(self, number: int | None = None) -> Snapshot:
        """The newest, or that of a commit number; SnapshotTooOld where its parts were vacuumed,
        BadArguments where there was no such commit."""
        ...

    def turn(self, what: str) -> AbstractContextManager[None]:
        """Nobody else commits inside the `with`, of any process; the thread that has it does, as
        often as it likes. For seconds at most: others give up after `lock_acquire_timeout_ms`.
        Raises CatalogBusy when it does not come within that time; ReadOnly."""
        ...

    def give_up_turn(self) -> None:
        """For a thread whose statement an interrupt has ended: a turn that it has all the same
        (Ctrl-C may come between any two steps, those of leaving too) is given up."""
        ...

    def apply(self, commit: Commit) -> Committed:
        """Checks all requirements and makes all changes, or makes none and raises:

        CommitConflict with `requirement` (which no longer holds), Aborted where a lease that is
        required has ended (it never comes back: no retry helps), DuplicateInsert, CatalogBusy,
        NotEnoughSpace, ReadOnly: surely nothing was changed.  CommitUnknown: nobody knows.
        """
        ...

    # --- damage

    def damaged(self) -> tuple[Damage, ...]:
        """The parts that are known to be damaged; some may not be live any more."""
        ...

    def note_damaged(self, damaged: Iterable[Damage]) -> None:
        """Of a warehouse that is open for reading only just this process remembers them."""
        ...

    def forget_damaged(self, part_ids: Collection[str]) -> None:
        """They are sound again."""
        ...

    # --- deliveries

    def source_offsets(self, table_id: str, number: int | None = None) -> tuple[SourceOffset, ...]:
        """Where the table's streams stand at that commit (None: now), by their names."""
        ...

    def accepted_keys(
        self, table_id: str, epoch: int, since: int
    ) -> tuple[KeyLedger, tuple[KeyBatch, ...]]:
        """The ledger of the table's keys as of now, and the keys of the ordinals from `since` on;
        all that it holds where it is in another epoch than `epoch`."""
        ...

    def has_deliveries(self, table_id: str) -> bool:
        """Whether there is anything that ForgetDeliveries would forget, as of now."""
        ...

    def key_ledger(self, table_id: str) -> KeyLedger:
        """As of now; an empty one where the table never accepted a key."""
        ...

    def oldest_key(self, table_id: str, cutoff_ms: int) -> tuple[int, int]:
        """The ordinal of the oldest key held that was accepted after the cutoff, and when it was;
        (the next ordinal, 0) where there is none."""
        ...

    def held_key_bytes(self, table_id: str) -> int:
        """What the table's keys take in the catalog."""
        ...

    def violated(self, requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
        """Those that do not hold now, without changing anything: which of several pieces of work
        have to be done again."""
        ...

    # --- jobs of views, see `olapdb.model.job`

    def open_job(self, job: ViewJob, chunks: Sequence[JobChunk]) -> None:
        """Records a job that begins, with its plan, and forgets the oldest of too many."""
        ...

    def plan_job(self, job_id: str, chunks: Sequence[JobChunk]) -> None:
        """Replaces what of the plan is not published."""
        ...

    def note_job(self, job_id: str, chunks: Sequence[JobChunk]) -> None:
        """What became of these chunks, beside any commit: progress, failures."""
        ...

    def close_job(self, job_id: str, state: JobState, error: str = "") -> bool:
        """Ends a running job; False where it had ended before. From then on no commit that
        requires JobRuns is made."""
        ...

    def job_state(self, job_id: str) -> JobState | None: ...

    def jobs(self) -> tuple[ViewJob, ...]:
        """Oldest first."""
        ...

    def job_chunks(self) -> tuple[tuple[str, JobChunk], ...]:
        """(id of the job, chunk), by both."""
        ...

    def living_leases(self) -> frozenset[str]:
        """Leases whose process is there still."""
        ...

    # --- leases and pins

    def open_lease(self, purpose: str) -> str:
        """A lease of this process; its id is hexadecimal and goes into the names of files."""
        ...

    def renew_lease(self, lease_id: str) -> None: ...

    def close_lease(self, lease_id: str) -> None:
        """Nothing of it is under way any more; commits that require it fail from now on."""
        ...

    def leases(self) -> tuple[LeaseInfo, ...]: ...

    def revoke_dead_leases(self) -> tuple[str, ...]:
        """Revokes the leases of processes that have ended; the ids of those revoked."""
        ...

    def pin(self, number: int) -> None:
        """Keeps the parts of that snapshot from vacuum until `unpin`; counts. SnapshotTooOld
        where it is too late."""
        ...

    def unpin(self, number: int) -> None: ...

    def pinned(self, number: int | None = None) -> AbstractContextManager[Snapshot]:
        """A snapshot that is pinned inside the `with`."""
        ...

    def oldest_pin(self) -> int:
        """The smallest commit number that any process has pinned; the newest where none has."""
        ...

    # --- what vacuum and checks need

    def dropped_parts(
        self, until_ms: int, limit: int, until_of: Mapping[str, int] | None = None, after: int = 0
    ) -> tuple[DroppedPart, ...]:
        """Parts dropped up to that time, or up to `until_of` their table's id, which no pinned
        snapshot has, the oldest first; by the commit `after` and later ones."""
        ...

    def overdue_parts(self, until_ms: int, until_of: Mapping[str, int] | None = None) -> int:
        """How many parts `dropped_parts` would give, those of pinned snapshots too."""
        ...

    def dropped_tables(self) -> tuple[DroppedTable, ...]:
        """As of now, the longest gone first; those that vacuum has forgotten are not listed."""
        ...

    def forget_parts(self, parts: Sequence[DroppedPart]) -> tuple[str, ...]:
        """Removes the rows of dropped parts, after which older snapshots are too old; returns the
        paths that nothing refers to any more (their files may be deleted)."""
        ...

    def forget_history(self, until_ms: int, commits_max: int) -> None:
        """Removes what was dropped up to that time, objects, coverage and all that is kept of
        them, where no pinned snapshot can see it; joins old blocks into spans; and shortens the
        log to the newest `commits_max` commits and those after `until_ms`."""
        ...

    def give_back_space(self) -> int:
        """Cuts free space off the catalog's file and its log; returns how many pages."""
        ...

    def forget_leases(self, lease_ids: Sequence[str]) -> None:
        """Removes closed and revoked leases that no file is named after any more."""
        ...

    def referenced_paths(self) -> frozenset[str]:
        """Paths of all parts that the catalog knows, dropped ones too."""
        ...

    def part_changes(self, up_to: int, limit: int) -> tuple[PartChange, ...]:
        """The newest `limit` up to that commit, newest first; parts that vacuum has forgotten are
        in none."""
        ...

    def copy_to(self, path: str) -> CopyFacts:
        """Writes the newest commit's catalog, without history, to the new file `path`; durable.
        Whoever copies the parts too pins a snapshot before."""
        ...

    def refuse_used(self) -> None:
        """BadArguments where anything was committed since the warehouse was made."""
        ...

    def load_copy(self, path: str) -> None:
        """Takes over a copy's content, in a new warehouse only (`refuse_used`); all files of its
        parts are there."""
        ...

    def commits(
        self, *, since: int = 0, up_to: int | None = None, limit: int | None = None
    ) -> Iterator[CommitInfo]:
        """The log, ascending; numbers since..up_to, both included; the newest `limit` of them."""
        ...

    def close(self) -> None:
        """Closes this process's leases and connections; idempotent."""
        ...
