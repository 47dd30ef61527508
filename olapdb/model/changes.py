"""A commit as data: requirements that must still hold, and changes that happen together.

`Catalog.apply(commit)` checks every requirement and makes every change in one transaction, or
raises CommitConflict with the violated requirement and makes none.  The rules that the requirements
enforce are numbered in docs/invariants.md.

An INSERT of one block into `s` with one view into `t`:

    Commit(
        requirements=(
            LeaseLive(lease), SchemaIs("s", 3), SchemaIs("t", 1), ViewsAre("s", (("v", 1),)),
        ),
        changes=(
            AddBlock(NewBlock("s", 0), rows=100), AddPart(source_part),
            AddBlock(NewBlock("t", 0), rows=7), AddPart(target_part),
            AddCoverage(CoverageRow("v", None, NewBlock("s", 0))),
        ),
    )
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from olapdb.model.job import JobChunk, JobState
from olapdb.model.named_collection import NamedCollection
from olapdb.model.part import BlockRange, NewBlock, Part
from olapdb.model.requirements import Requirement
from olapdb.model.schema import DatabaseEntry, SchemaObject
from olapdb.model.user_function import UserFunction
from olapdb.model.view_state import Check, CoverageRow, Invalidation, Retained
from olapdb.records import dataclass

# --- changes --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddBlock:
    """Assigns the table's next block number to `block`. Blocks of one table come in the order of
    `index`."""

    block: NewBlock
    rows: int
    kind: Literal["insert", "view", "backfill", "attach"] = "insert"


@dataclass(frozen=True, slots=True)
class AddPart:
    """Adds a part; `inline_rows` are the bytes of an inline part."""

    part: Part
    inline_rows: bytes | None = None


@dataclass(frozen=True, slots=True)
class RemoveParts:
    """Removes live parts; older snapshots still read them."""

    table_id: str
    part_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RaiseDataVersion:
    """Counts up the data version of a partition whose rows changed other than by INSERT."""

    table_id: str
    partition_id: str


@dataclass(frozen=True, slots=True)
class AddCoverage:
    """Adds blocks to a view's coverage."""

    row: CoverageRow


@dataclass(frozen=True, slots=True)
class RemoveCoverage:
    """Removes a view's coverage: some `blocks` by source partition, which become its gap, or, without
    any, all of it."""

    view_id: str
    blocks: tuple[tuple[str, tuple[BlockRange, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class CoverSource:
    """Replaces a view's coverage by all blocks that its source has at the commit: the view reads
    another source from now on, and a replay, not a backfill, makes its rows of older blocks."""

    view_id: str


@dataclass(frozen=True, slots=True)
class Invalidate:
    """Marks a slice of a view stale."""

    invalidation: Invalidation


@dataclass(frozen=True, slots=True)
class ClearInvalidations:
    """Removes the invalidations of the slice up to (and including) the snapshot that the repair
    read."""

    view_id: str
    target_partition: str | None
    up_to_commit: int


@dataclass(frozen=True, slots=True)
class Retain:
    """Records rows removed by retention. A row of the ledger for the same view, side and partition
    is extended: counts added, bounds widened, the worse verdict kept."""

    retained: Retained


@dataclass(frozen=True, slots=True)
class ReleaseRetained:
    """Unfreezes a slice of the view, or all (`target_partition` None); those recorded after
    `up_to_commit` stay."""

    view_id: str
    target_partition: str | None
    up_to_commit: int


@dataclass(frozen=True, slots=True)
class RecordCheck:
    """Stores a verdict of reconciliation."""

    check: Check


@dataclass(frozen=True, slots=True)
class RecordToken:
    """Stores the token of an INSERT."""

    table_id: str
    token: str


@dataclass(frozen=True, slots=True)
class NoteChunks:
    """Stores the state of a job's chunks; a published chunk with `commit` 0 gets this commit's
    number."""

    job_id: str
    chunks: tuple[JobChunk, ...]


@dataclass(frozen=True, slots=True)
class CloseJob:
    """Ends the job with this commit."""

    job_id: str
    state: JobState


@dataclass(frozen=True, slots=True)
class RecordOffset:
    """Stores the stream's `position`, that of the first row not in the table yet."""

    table_id: str
    stream: str
    position: int
    token: str = ""


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """Stores the keys that the INSERT accepted, as bytes in the order of its rows, and counts the
    rows that it dropped.

    Keys that left the window (the newest `window_rows`, the last `window_ms`, 0 for no time limit)
    are deleted. A changed `definition` deletes all older keys.
    """

    table_id: str
    definition: str
    keys: bytes
    dropped: int
    window_rows: int
    window_ms: int


@dataclass(frozen=True, slots=True)
class ForgetDeliveries:
    """Deletes the table's accepted keys, tokens and source offsets: after TRUNCATE the same rows
    may be delivered again."""

    table_id: str


@dataclass(frozen=True, slots=True)
class AddDatabase:
    """Creates a database."""

    database: DatabaseEntry


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """Drops an empty database."""

    name: str


@dataclass(frozen=True, slots=True)
class PutObject:
    """Creates the object, or replaces the one with the same id (ALTER, RENAME, DETACH).

    The stored object must still have the revision that `object` carries; otherwise RevisionIs
    conflicts, so that no concurrent change is overwritten and no dropped object comes back.
    """

    object: SchemaObject


@dataclass(frozen=True, slots=True)
class DropObject:
    """Drops an object with its parts, coverage, invalidations, checks and tokens. UndropTable can
    recover a `recoverable` table until vacuum purges its parts."""

    object_id: str
    recoverable: bool = True


@dataclass(frozen=True, slots=True)
class UndropTable:
    """Recovers a dropped table under its old name, with its parts and contributions. CommitConflict
    if vacuum has purged any of them."""

    table_id: str


@dataclass(frozen=True, slots=True)
class PutFunction:
    """Creates the function, in place of one with its name."""

    function: UserFunction


@dataclass(frozen=True, slots=True)
class RemoveFunction:
    """Drops the function with the id."""

    id: str


@dataclass(frozen=True, slots=True)
class PutCollection:
    """Creates the named collection, in place of one with its name."""

    collection: NamedCollection


@dataclass(frozen=True, slots=True)
class RemoveCollection:
    """Drops the named collection with the id."""

    id: str


Change: TypeAlias = (
    AddBlock
    | AddPart
    | RemoveParts
    | RaiseDataVersion
    | AddCoverage
    | RemoveCoverage
    | CoverSource
    | Invalidate
    | ClearInvalidations
    | RecordCheck
    | RecordToken
    | RecordOffset
    | RecordKeys
    | ForgetDeliveries
    | NoteChunks
    | CloseJob
    | AddDatabase
    | DropDatabase
    | PutObject
    | DropObject
    | UndropTable
    | Retain
    | ReleaseRetained
    | PutFunction
    | RemoveFunction
    | PutCollection
    | RemoveCollection
)


@dataclass(frozen=True, slots=True)
class Commit:
    """Requirements and changes of one transaction. `kind` and `statement` describe it in
    system.snapshots."""

    requirements: tuple[Requirement, ...]
    changes: tuple[Change, ...]
    kind: str
    query_id: str = ""
    statement: str = ""


@dataclass(frozen=True, slots=True)
class Committed:
    """The `number` of the commit, and the numbers assigned to its new blocks."""

    number: int
    blocks: tuple[tuple[NewBlock, int], ...] = ()
