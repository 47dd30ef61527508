"""INSERT: commits every block and the rows of every view at once.

    admit rows that are new, stage block after block  ->  one commit
    on conflict: admit again and fire the changed views again, bounded

If a view fails, nothing is inserted.  `insert_writer` has the stages, and what happens where views,
targets or dimension tables change between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from olapdb.commit.origin import CommitOrigin
from olapdb.dml.delivery import Delivery, OffsetRanges
from olapdb.dml.insert_writer import DUPLICATE, InsertResult, InsertWriter, insert_table
from olapdb.ingest.deduplication_key import refuse_tasks
from olapdb.ingest.staged_insert import StagedInsert, join_staged
from olapdb.model.frozen import FrozenSnapshot, freeze
from olapdb.model.snapshot import Snapshot


def insert(
    origin: CommitOrigin,
    table_id: str,
    blocks: Iterable[pa.Table],
    *,
    token: str | None = None,
    offsets: OffsetRanges = (),
    snapshot: Snapshot | None = None,
    owns_blocks: bool = False,
) -> InsertResult:
    """Insert blocks (see `block.make_blocks`) and all rows of their views: all or nothing.

    Blocks are drawn one by one and staged, so memory is bounded by a block and the views' buffers,
    plus about 50 bytes a row with `deduplicate_by`. Where `token` was committed before, or the
    table already has `offsets`, nothing happens and `duplicate` is set. `owns_blocks` says that no
    caller may change the memory of the blocks, so that it need not be copied for the column cache.

    Raises OffsetHole if the offsets do not follow the table's, UnknownTable, TooManyParts, a
    view's error (naming the view), Aborted when the table was altered meanwhile, CommitConflict
    when concurrent commits kept changing the views, CommitUnknown.
    """
    snapshot = snapshot or origin.services.catalog.snapshot()
    table = insert_table(snapshot, table_id)
    delivery = Delivery.of(origin.services, table, token, offsets)
    if delivery.is_duplicate():
        return DUPLICATE
    writer = InsertWriter(origin.of_kind("INSERT"), delivery, owns_blocks=owns_blocks)
    with writer.pinned(snapshot, table.id):
        return writer.insert(table, blocks, snapshot)


def commit_staged(
    origin: CommitOrigin, staged: Sequence[StagedInsert], *, token: str | None = None
) -> InsertResult:
    """Commit once the rows that several tasks staged for one table under this process's lease.

    Where the table deduplicates, read the keys of the staged rows; restage blocks with an existing
    key.
    """
    if not staged:
        return InsertResult(0, 0, None)
    joined = join_staged(staged)
    snapshot = origin.services.catalog.snapshot()
    table = insert_table(snapshot, joined.table_id)
    delivery = Delivery.of(origin.services, table, token, ())
    writer = InsertWriter(origin.of_kind("INSERT"), delivery, owns_files=False)
    with writer.pinned(snapshot, joined.table_id):
        if delivery.admission is not None:
            joined = writer.admit_staged(joined, table, delivery.admission, snapshot)
        return writer.publish(joined, None, snapshot)


def snapshot_for_insert(snapshot: Snapshot, table_id: str) -> FrozenSnapshot:
    """Return the snapshot that a task without a catalog needs for `stage_insert` into the table.

    Raises NotSupportedError if rows that tasks stage cannot be deduplicated.
    """
    refuse_tasks(insert_table(snapshot, table_id))
    return freeze(snapshot, (table_id,))
