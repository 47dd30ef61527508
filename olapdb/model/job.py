"""Jobs: what a SYSTEM … VIEW statement set out to do with a view, chunk by chunk, and how far it is.

Jobs live in the catalog beside leases: they tell of processes, not of data, so no snapshot has them
and no reader waits for them.  What a chunk became is written in the very commit that publishes it;
so a job that says "published" is never ahead of the data, nor behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

JobKind: TypeAlias = Literal["BACKFILL", "REPLAY", "RECONCILE", "ADOPT"]
"""A REBUILD or a POPULATE is the jobs of these kinds that it runs, all with its query id."""

JobState: TypeAlias = Literal["running", "done", "failed", "cancelled"]
"""As it is stored. Whoever shows a running job whose process has ended calls it dead."""

ChunkState: TypeAlias = Literal[
    "planned", "computed", "published", "compared", "failed", "already covered", "joined", "gone"
]
"""computed: its rows are there, invisible; published: a commit has made them visible; compared: a
reconciliation has used them; joined: a merge put its parts into another chunk's; gone:
its blocks are there no more."""


@dataclass(frozen=True, slots=True)
class JobChunk:
    """One chunk: parts of one partition of the source, `rows` and `bytes` (on disk) of it.

    `commit` is 0 until it is published; within a commit 0 means that very commit's number.
    `finished_ms` is 0 while it is only planned."""

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
class ViewJob:
    """`view` is the view's name when the job began, `executor` where its chunks are computed,
    `staged` whether a backfill publishes all of them at once."""

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
