"""A commit as data: requirements that must still hold, and changes that then happen together.

`Catalog.apply(commit)` checks every requirement and makes every change in one transaction, or
raises CommitConflict (which requirement, by value) and makes none.  The rules that the
requirements serve are numbered in docs/invariants.md, after the protocol of the design.

An INSERT of one block into `s` with one view into `t`:

    Commit(
        requirements=(LeaseLive(lease), SchemaIs("s", 3), SchemaIs("t", 1), ViewsAre("s", (("v", 1),))),
        changes=(
            AddBlock(NewBlock("s", 0), rows=100), AddPart(source_part),
            AddBlock(NewBlock("t", 0), rows=7), AddPart(target_part),
            AddCoverage(CoverageRow("v", None, NewBlock("s", 0))),
        ),
    )
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from olapdb.model.job import JobChunk, JobState
from olapdb.model.part import BlockRange, NewBlock, Part
from olapdb.model.schema import DatabaseEntry, SchemaObject
from olapdb.model.view_state import Check, CoverageRow, Invalidation, Retained

# --- requirements ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LeaseLive:
    """The writer's lease was not revoked (rule 13). Where it was, the commit is Aborted: a lease
    never comes back, so it is no conflict that a writer may try again."""

    lease_id: str


@dataclass(frozen=True, slots=True)
class SchemaIs:
    """The table exists and has this schema version."""

    table_id: str
    version: int


@dataclass(frozen=True, slots=True)
class ViewsAre:
    """The attached views on a source are exactly these (view id, definition version) (rule 1)."""

    source_id: str
    views: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ViewsOnTableAre:
    """The views on a table, attached or not, are exactly these (view id, definition version):
    who has been asked whether it saw the rows that leave (rules 4 and 6)."""

    table_id: str
    views: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class DimensionViewsAre:
    """The views that read the table beside their source are exactly these (rule 4)."""

    table_id: str
    views: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class NothingCovered:
    """The view has seen nothing of any partition (rule 4)."""

    view_id: str


@dataclass(frozen=True, slots=True)
class SeenUpTo:
    """The view has seen no block of its source after this one (rule 4): the rows among which stale
    slices were looked up are still all that it has seen."""

    view_id: str
    block: int


@dataclass(frozen=True, slots=True)
class PartsWithinRanges:
    """Each live part of the partition lies within the ranges or beside them (rule 3): a merge may
    have joined a chunk's part with one that came later."""

    table_id: str
    partition_id: str
    blocks: tuple[BlockRange, ...]


@dataclass(frozen=True, slots=True)
class ViewIs:
    """The view exists with this definition version (rules 3 and 6)."""

    view_id: str
    version: int


@dataclass(frozen=True, slots=True)
class DataVersionIs:
    """The source partition was not changed, but by INSERTs and merges (rules 1, 3 and 6)."""

    table_id: str
    partition_id: str
    version: int


@dataclass(frozen=True, slots=True)
class PartsLive:
    """These parts are still the live ones (merges, mutations, replays)."""

    table_id: str
    part_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartsOfPartitionAre:
    """The live parts of a partition with any block up to `up_to_block` are exactly these: what a
    replay or a mutation replaces is all that it read (rule 6)."""

    table_id: str
    partition_id: str | None
    part_ids: tuple[str, ...]
    up_to_block: int | None = None


@dataclass(frozen=True, slots=True)
class NotCovered:
    """The view has seen nothing of these blocks of the partition (rule 3)."""

    view_id: str
    partition_id: str
    blocks: tuple[BlockRange, ...]


@dataclass(frozen=True, slots=True)
class Covered:
    """The view has seen something of each of these blocks' ranges in the partition: what it made of
    them has not left its target whole meanwhile (rule 6)."""

    view_id: str
    partition_id: str
    blocks: tuple[BlockRange, ...]


@dataclass(frozen=True, slots=True)
class CoverageCommon:
    """For every view on the table these parts are all covered or all not (rule 8)."""

    table_id: str
    part_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenIsNew:
    """No INSERT with this token was committed to the table (rule 12). Its violation is not a
    conflict but a duplicate: `apply` raises DuplicateInsert."""

    table_id: str
    token: str


@dataclass(frozen=True, slots=True)
class OffsetIs:
    """The stream stands at this position, None where the table has none of it yet (rule 12)."""

    table_id: str
    stream: str
    position: int | None


@dataclass(frozen=True, slots=True)
class KeysAreNew:
    """The table accepted none of these keys after it had accepted `seen` of them, and forgot none
    of those that its INSERT saw (rule 12). `keys`: see `olapdb.model.keys`, as bytes.

    What was accepted before the INSERT itself looked up; so INSERTs of other keys, however many
    come in between, are no conflict."""

    table_id: str
    epoch: int
    seen: int
    keys: bytes


@dataclass(frozen=True, slots=True)
class NameIsFree:
    database: str
    name: str


@dataclass(frozen=True, slots=True)
class RevisionIs:
    """The object is what was read, to its name and comment: no commit has put it since (rule 10)."""

    object_id: str
    revision: int


@dataclass(frozen=True, slots=True)
class NoDependents:
    """No materialized view reads or writes the object, but those that go with it (rule 10)."""

    object_id: str
    but: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoViewSince:
    """No view, plain or materialized, was created or changed after this commit: whoever rewrites
    the names in views has seen them all (rule 10)."""

    commit: int


@dataclass(frozen=True, slots=True)
class VersionsAre:
    """The versions beside a view, one being built and one kept, are exactly these (rule 10)."""

    view_id: str
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoGap:
    """The view has seen every live row of its source (rule 2)."""

    view_id: str


@dataclass(frozen=True, slots=True)
class NothingStale:
    """No slice of the view is marked stale, and it failed on no block (rule 4)."""

    view_id: str


@dataclass(frozen=True, slots=True)
class NoBypass:
    """The table holds no rows that none of these views made (rule 7)."""

    table_id: str
    view_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobRuns:
    """Nobody has cancelled the job (rule 3): once a cancel has returned, nothing more of it is
    published."""

    job_id: str


@dataclass(frozen=True, slots=True)
class DatabaseExists:
    name: str


@dataclass(frozen=True, slots=True)
class DatabaseIsEmpty:
    name: str


Requirement: TypeAlias = (
    LeaseLive
    | SchemaIs
    | ViewsAre
    | ViewsOnTableAre
    | DimensionViewsAre
    | NothingCovered
    | SeenUpTo
    | PartsWithinRanges
    | ViewIs
    | DataVersionIs
    | PartsLive
    | PartsOfPartitionAre
    | NotCovered
    | Covered
    | CoverageCommon
    | TokenIsNew
    | OffsetIs
    | KeysAreNew
    | NameIsFree
    | RevisionIs
    | NoDependents
    | NoViewSince
    | VersionsAre
    | NoGap
    | NothingStale
    | NoBypass
    | JobRuns
    | DatabaseExists
    | DatabaseIsEmpty
)

# --- changes --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddBlock:
    """Takes the table's next block number for `block`. Blocks of one table in `index` order."""

    block: NewBlock
    rows: int
    kind: Literal["insert", "view", "backfill", "attach"] = "insert"


@dataclass(frozen=True, slots=True)
class AddPart:
    """`inline_rows` are the bytes of an inline part."""

    part: Part
    inline_rows: bytes | None = None


@dataclass(frozen=True, slots=True)
class RemoveParts:
    table_id: str
    part_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RaiseDataVersion:
    table_id: str
    partition_id: str


@dataclass(frozen=True, slots=True)
class AddCoverage:
    row: CoverageRow


@dataclass(frozen=True, slots=True)
class RemoveCoverage:
    """All that the view saw; `partition` None: everything. `blocks` (with a partition): just
    these of it, which are then its gap."""

    view_id: str
    partition: str | None = None
    blocks: tuple[BlockRange, ...] = ()


@dataclass(frozen=True, slots=True)
class Invalidate:
    invalidation: Invalidation


@dataclass(frozen=True, slots=True)
class ClearInvalidations:
    """Those of the slice up to (and including) the snapshot that the repair read."""

    view_id: str
    target_partition: str | None
    up_to_commit: int


@dataclass(frozen=True, slots=True)
class Retain:
    """Rows left by retention: added to what the ledger has of the same view, side and partition
    (counts added, bounds widened, the worse verdict kept)."""

    retained: Retained


@dataclass(frozen=True, slots=True)
class ReleaseRetained:
    """These slices of the view are frozen no more; `target_partition` None: none is. What was
    recorded after `up_to_commit` stays."""

    view_id: str
    target_partition: str | None
    up_to_commit: int


@dataclass(frozen=True, slots=True)
class RecordCheck:
    check: Check


@dataclass(frozen=True, slots=True)
class RecordToken:
    table_id: str
    token: str


@dataclass(frozen=True, slots=True)
class NoteChunks:
    """What became of these chunks of a job; one whose `commit` is 0 and that is published, is so by
    this commit."""

    job_id: str
    chunks: tuple[JobChunk, ...]


@dataclass(frozen=True, slots=True)
class CloseJob:
    """The job ends with this commit."""

    job_id: str
    state: JobState


@dataclass(frozen=True, slots=True)
class RecordOffset:
    """The stream stands at `position` now: the first that is not in the table yet."""

    table_id: str
    stream: str
    position: int
    token: str = ""


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """Keys that the INSERT accepted, in the order of its rows, as bytes; rows that it dropped.
    Keys that left the window (its newest `window_rows`, its last `window_ms`, 0 for no limit of
    time) are forgotten. Another `definition` than the one before forgets all older keys."""

    table_id: str
    definition: str
    keys: bytes
    dropped: int
    window_rows: int
    window_ms: int


@dataclass(frozen=True, slots=True)
class ForgetDeliveries:
    """The table's accepted keys, tokens and source offsets: what it held is gone by TRUNCATE, and
    may be delivered again."""

    table_id: str


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    database: DatabaseEntry


@dataclass(frozen=True, slots=True)
class DropDatabase:
    name: str


@dataclass(frozen=True, slots=True)
class PutObject:
    """Creates the object, or replaces the one with the same id (ALTER, RENAME, DETACH), which must
    still have the revision that `object` carries; else a CommitConflict of `RevisionIs`, so that
    nothing is overwritten that another commit changed, and nothing dropped comes back."""

    object: SchemaObject


@dataclass(frozen=True, slots=True)
class DropObject:
    """With its parts, coverage, invalidations, checks and tokens. A table may come back (UndropTable)
    where it is `recoverable`, until vacuum has forgotten its parts."""

    object_id: str
    recoverable: bool = True


@dataclass(frozen=True, slots=True)
class UndropTable:
    """Brings a dropped table back under its old name, with its parts and what they were made of; a
    CommitConflict where vacuum has forgotten any of them."""

    table_id: str


Change: TypeAlias = (
    AddBlock
    | AddPart
    | RemoveParts
    | RaiseDataVersion
    | AddCoverage
    | RemoveCoverage
    | Invalidate
    | ClearInvalidations
    | RecordCheck
    | RecordToken
    | RecordOffset
    | RecordKeys
    | ForgetDeliveries
    | NoteChunks
    | CloseJob
    | CreateDatabase
    | DropDatabase
    | PutObject
    | DropObject
    | UndropTable
    | Retain
    | ReleaseRetained
)


@dataclass(frozen=True, slots=True)
class Commit:
    """`kind` and `statement` say in system.snapshots what the commit did."""

    requirements: tuple[Requirement, ...]
    changes: tuple[Change, ...]
    kind: str
    query_id: str = ""
    statement: str = ""


@dataclass(frozen=True, slots=True)
class Committed:
    """`number` of the commit; `blocks` the numbers that its new blocks got."""

    number: int
    blocks: tuple[tuple[NewBlock, int], ...] = ()
