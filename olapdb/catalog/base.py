"""What a catalog promises, whatever database it stands on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from olapdb.model.changes import Commit, Committed
from olapdb.model.part import Part
from olapdb.model.snapshot import Snapshot

LeaseState: TypeAlias = Literal["live", "closed", "revoked"]


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

    def apply(self, commit: Commit) -> Committed:
        """Checks all requirements and makes all changes, or makes none and raises:

        CommitConflict with `requirement` (which no longer holds), DuplicateInsert, CatalogBusy,
        NotEnoughSpace, ReadOnly: surely nothing was changed.  CommitUnknown: nobody knows.
        """
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

    def dropped_parts(self, before_ms: int, limit: int) -> tuple[DroppedPart, ...]:
        """Parts dropped before that time which no pinned snapshot has, the oldest first."""
        ...

    def forget_parts(self, parts: Sequence[DroppedPart]) -> tuple[str, ...]:
        """Removes the rows of dropped parts, after which older snapshots are too old; returns the
        paths that nothing refers to any more (their files may be deleted)."""
        ...

    def forget_history(self, before_ms: int, commits_max: int) -> None:
        """Removes what no pinned snapshot can see of dropped objects and coverage, and all but
        the newest `commits_max` entries of the log of commits."""
        ...

    def forget_leases(self, lease_ids: Sequence[str]) -> None:
        """Removes closed and revoked leases that no file is named after any more."""
        ...

    def referenced_paths(self) -> frozenset[str]:
        """Paths of all parts that the catalog knows, dropped ones too."""
        ...

    def commits(
        self, *, since: int = 0, up_to: int | None = None, limit: int | None = None
    ) -> Iterator[CommitInfo]:
        """The log, ascending; numbers since..up_to, both included; the newest `limit` of them."""
        ...

    def close(self) -> None:
        """Closes this process's leases and connections; idempotent."""
        ...
