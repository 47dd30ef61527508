"""Requirements of a commit: what must still hold when it is applied.

`Catalog.apply` checks them in the transaction of the commit and raises CommitConflict with the
first that does not hold.  The rules that they enforce are numbered in docs/invariants.md.
"""

from __future__ import annotations

from typing import TypeAlias

from olapdb.model.part import BlockRange
from olapdb.records import dataclass


@dataclass(frozen=True, slots=True)
class LeaseLive:
    """The writer's lease was not revoked (rule 13). Otherwise the commit raises Aborted: a lease
    never comes back, so a retry cannot help."""

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
    """The views on a table, attached or not, are exactly these (view id, definition version): those
    whose coverage of the removed rows the writer looked up (rules 4 and 6)."""

    table_id: str
    views: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class DimensionViewsAre:
    """The views that read the table as a dimension are exactly these (rule 4)."""

    table_id: str
    views: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class NothingCovered:
    """The view covers no block of any partition (rule 4)."""

    view_id: str


@dataclass(frozen=True, slots=True)
class SeenUpTo:
    """The view covers no block of its source after this one (rule 4), so the lookup of stale slices
    included all rows that it has seen."""

    view_id: str
    block: int


@dataclass(frozen=True, slots=True)
class PartsWithinRanges:
    """Each live part of the partition lies within one of the ranges or outside of all (rule 3): a
    merge may have joined a chunk's part with a later one."""

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
    """Only INSERTs and merges changed the source partition since this data version (rules 1, 3 and
    6)."""

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
    """The live parts of a partition with any block up to `up_to_block` are exactly these: a replay
    or a mutation replaces all the parts that it read (rule 6)."""

    table_id: str
    partition_id: str | None
    part_ids: tuple[str, ...]
    up_to_block: int | None = None


@dataclass(frozen=True, slots=True)
class NotCovered:
    """The view covers none of these blocks of the partition (rule 3)."""

    view_id: str
    partition_id: str
    blocks: tuple[BlockRange, ...]


@dataclass(frozen=True, slots=True)
class Covered:
    """The view covers some block of each range in the partition: its results of them were not
    removed from the target meanwhile (rule 6)."""

    view_id: str
    partition_id: str
    blocks: tuple[BlockRange, ...]


@dataclass(frozen=True, slots=True)
class CoverageCommon:
    """Each view on the table covers either all of these parts or none (rule 8)."""

    table_id: str
    part_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenIsNew:
    """No INSERT with this token was committed to the table (rule 12). Otherwise `apply` raises
    DuplicateInsert, which is no conflict."""

    table_id: str
    token: str


@dataclass(frozen=True, slots=True)
class OffsetIs:
    """The stream is at this position; None if the table has no position of it yet (rule 12)."""

    table_id: str
    stream: str
    position: int | None


@dataclass(frozen=True, slots=True)
class KeysAreNew:
    """The table accepted none of these keys after its first `seen` keys, and did not start a new
    `epoch` (rule 12). `keys`: see `olapdb.model.keys`, as bytes.

    The INSERT itself looked up the first `seen` keys; so concurrent INSERTs of other keys, however
    many, are no conflict.
    """

    table_id: str
    epoch: int
    seen: int
    keys: bytes


@dataclass(frozen=True, slots=True)
class NameIsFree:
    """No object of the database has the name."""

    database: str
    name: str


@dataclass(frozen=True, slots=True)
class RevisionIs:
    """The object is unchanged since it was read, even its name and comment (rule 10)."""

    object_id: str
    revision: int


@dataclass(frozen=True, slots=True)
class NoDependents:
    """No materialized view reads or writes the object, except the ids in `except_ids` (rule 10)."""

    object_id: str
    except_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoViewSince:
    """No view, plain or materialized, was created or changed after this commit, so a RENAME has
    rewritten the names in all views (rule 10)."""

    commit: int


@dataclass(frozen=True, slots=True)
class VersionsAre:
    """The versions beside a view, a candidate and a previous one, are exactly these (rule 10)."""

    view_id: str
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoGap:
    """The view covers every live row of its source (rule 2)."""

    view_id: str


@dataclass(frozen=True, slots=True)
class NothingStale:
    """No slice of the view is marked stale, and no block on which it failed is open (rule 4)."""

    view_id: str


@dataclass(frozen=True, slots=True)
class NoBypass:
    """One of these views made all rows of the table (rule 7)."""

    table_id: str
    view_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobRuns:
    """The job was not cancelled (rule 3): once a cancel has returned, the job publishes nothing
    more."""

    job_id: str


@dataclass(frozen=True, slots=True)
class DatabaseExists:
    """The database exists."""

    name: str


@dataclass(frozen=True, slots=True)
class DatabaseIsEmpty:
    """The database has no objects."""

    name: str


@dataclass(frozen=True, slots=True)
class FunctionIs:
    """The function of this name has this id; None: there is none (rule 10)."""

    database: str
    name: str
    id: str | None


@dataclass(frozen=True, slots=True)
class CollectionIs:
    """The named collection of this name has this id; None: there is none (rule 10)."""

    name: str
    id: str | None


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
    | FunctionIs
    | CollectionIs
)
