"""Jobs: the work of a SYSTEM … VIEW statement on a view, chunk by chunk, and its progress.

Jobs live in the catalog beside leases: they describe processes, not data, so they are in no
snapshot and no reader waits for them.  The commit that publishes a chunk also records that, so a
job's "published" always agrees with the data.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from olapdb.records import dataclass

JobKind: TypeAlias = Literal["BACKFILL", "REPLAY", "RECONCILE", "ADOPT"]
"""A REBUILD or a POPULATE runs several jobs of these kinds, all with its query id."""

JobState: TypeAlias = Literal["running", "done", "failed", "cancelled"]
"""The stored state. A running job whose process has ended is displayed as dead."""

ChunkState: TypeAlias = Literal[
    "planned", "computed", "published", "compared", "failed", "already covered", "joined", "gone"
]
"""computed: its rows are staged, invisible; published: a commit made them visible; compared: a
reconciliation used them; joined: a merge joined its parts with another chunk's; gone: its blocks
are not live any more."""


@dataclass(frozen=True, slots=True)
class JobChunk:
    """One chunk: parts of one partition of the source, with their `rows` and `bytes` on disk.

    `commit` is 0 until it is published; inside a commit 0 means that commit's own number.
    `finished_ms` is 0 while it is only planned.
    """

    chunk: int
    partition: str
    parts: int
    rows: int
    bytes: int
    state: ChunkState = "planned"
    target_rows: int = 0
    commit: int = 0
    elapsed_ms: int = 0
    finished_ms: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class JobEntry:
    """A job. `view` is the view's name when it began, `executor` where its chunks are computed,
    `staged` whether a backfill publishes all of them in one commit."""

    id: str
    view_id: str
    view: str
    kind: JobKind
    lease_id: str
    process_id: int
    query_id: str
    statement: str
    executor: str
    staged: bool
    started_ms: int
    state: JobState = "running"
    finished_ms: int = 0
    error: str = ""
