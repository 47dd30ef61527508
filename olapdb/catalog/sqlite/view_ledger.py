"""The ledger of views in an open transaction: coverage, stale slices, frozen slices."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace

from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.retained_rows import (
    decode_retained,
    encode_retained,
    joined_entry,
    without_partition,
)
from olapdb.model.changes import ClearInvalidations, ReleaseRetained
from olapdb.model.encoding import dumps
from olapdb.model.part import BlockRange, overlaps_any, subtract_ranges, union_ranges
from olapdb.model.view_state import Invalidation, Retained


class ViewLedger:
    """A writer of the ledger's rows in the commit `number`."""

    def __init__(self, connection: sqlite3.Connection, number: int) -> None:
        self._connection = connection
        self._number = number

    def add_coverage(
        self, view_id: str, partition: str | None, blocks: BlockRange, *, grown: bool
    ) -> None:
        """Add blocks to the view's coverage. `partition` None: all partitions; `grown`: the blocks
        are new in this commit."""
        if partition is None and grown:
            # The common case, a trigger's block after its last one: the range grows in place.
            # An older snapshot reads no block from its own next one on, so it does not see this.
            extended = sql.extend_coverage(
                self._connection, of_view=view_id, before=blocks.first - 1, block=blocks.last
            )
            if extended.rowcount:
                return
            self._insert_coverage(view_id, None, blocks)
            return
        joined, replaced = [blocks], []
        for row_id, own, first, last in self._coverage_rows(view_id, partition):
            if own == partition and first <= blocks.last + 1 and blocks.first <= last + 1:
                joined.append(BlockRange(first, last))
                replaced.append(row_id)
        self._drop_coverage(replaced)
        for blocks_joined in union_ranges(joined):
            self._insert_coverage(view_id, partition, blocks_joined)

    def drop_coverage(self, view_id: str) -> None:
        """Remove the view's whole coverage."""
        self._drop_coverage([row_id for row_id, *_ in self._coverage_rows(view_id)])

    def remove_coverage(
        self, view_id: str, source_id: str, removed: Mapping[str, Sequence[BlockRange]]
    ) -> None:
        """Remove blocks, by source partition, from the view's coverage.

        Rows of all partitions (None) lose what any partition loses; each partition then gets back
        what it keeps: existing blocks never get a new partition.

            (all: 1..9) without a: 3..4, b: 4..5   ->   (all: 1..2, 6..9) (a: 5) (b: 3) (c: 3..5)
        """
        anywhere = union_ranges(blocks for ranges in removed.values() for blocks in ranges)
        in_all: list[BlockRange] = []
        for row_id, partition, first, last in self._coverage_rows(view_id):
            whole = BlockRange(first, last)
            leaving = anywhere if partition is None else union_ranges(removed.get(partition, ()))
            if not overlaps_any(leaving, whole):
                continue
            self._drop_coverage([row_id])
            remaining = subtract_ranges((whole,), leaving)
            for blocks in remaining:
                self._insert_coverage(view_id, partition, blocks)
            if partition is None:
                in_all += subtract_ranges((whole,), remaining)
        if not in_all:
            return
        for partition in sorted(self._partitions(source_id)):
            for blocks in subtract_ranges(in_all, removed.get(partition, ())):
                self._insert_coverage(view_id, partition, blocks)

    def retain(self, retained: Retained) -> None:
        """Record rows removed by retention; merge them with an existing row of the same view, side
        and partition."""
        joined = replace(retained, commit=self._number)
        for row_id, body in self._retained_rows(retained.view_id):
            existing = decode_retained(body)
            if (existing.side, existing.partition) == (retained.side, retained.partition):
                joined = joined_entry(existing, joined)
                self._drop_retained([row_id])
        self._insert_retained(joined)

    def release(self, change: ReleaseRetained) -> None:
        """Unfreeze the slices that were recorded up to the change's commit in its target partition
        (None: in all)."""
        for row_id, body in self._retained_rows(change.view_id):
            existing = decode_retained(body)
            if existing.commit > change.up_to_commit:
                continue
            remaining = without_partition(existing, change.target_partition)
            self._drop_retained([row_id])
            if remaining is not None:
                self._insert_retained(remaining)

    def drop_view(self, view_id: str) -> None:
        """End the view's coverage, invalidations, checks and retained rows with this commit.

        Older snapshots still read them."""
        self.drop_coverage(view_id)
        sql.clear_invalidations(
            self._connection, of_view=view_id, up_to=self._number, number=self._number
        )
        sql.clear_invalidations_of_slice(
            self._connection,
            of_view=view_id,
            up_to=self._number,
            of_partition="",
            number=self._number,
        )
        sql.drop_checks(self._connection, of_view=view_id, number=self._number)
        self._drop_retained([row_id for row_id, _ in self._retained_rows(view_id)])

    def _retained_rows(self, view_id: str) -> list[tuple[int, str]]:
        """Return (row id, JSON text) of the view's live retained rows."""
        return sql.retained_of(self._connection, of_view=view_id).fetchall()

    def _insert_retained(self, retained: Retained) -> None:
        """Write one retained row, created by this commit."""
        sql.insert_retained(
            self._connection,
            view_id=retained.view_id,
            side=retained.side,
            partition_id=retained.partition,
            body=encode_retained(retained),
            created_commit=self._number,
            dropped_commit=None,
        )

    def _drop_retained(self, row_ids: Sequence[int]) -> None:
        """Mark retained rows as dropped by this commit."""
        sql.drop_retained(self._connection, row_ids=json.dumps(row_ids), number=self._number)

    def _coverage_rows(
        self, view_id: str, partition: str | None = None
    ) -> list[tuple[int, str | None, int, int]]:
        """Return (row id, source partition or None for all, first block, last block) of the view's
        live coverage; with `partition` only the rows that tell about it."""
        if partition is None:
            rows = sql.coverage_at(self._connection, of_view=view_id, number=self._number)
        else:
            rows = sql.coverage_of_partition(
                self._connection, of_view=view_id, partition=partition, number=self._number
            )
        return rows.fetchall()

    def _partitions(self, table_id: str) -> set[str]:
        """Return the ids of partitions in which the table has live parts."""
        return {p for _, p, *_ in sql.live_parts_of(self._connection, of_table=table_id)}

    def _insert_coverage(self, view_id: str, partition: str | None, blocks: BlockRange) -> None:
        """Write one coverage row. `partition` None covers all partitions of the source."""
        sql.insert_coverage(
            self._connection,
            view_id=view_id,
            partition_id=partition,
            first_block=blocks.first,
            last_block=blocks.last,
            created_commit=self._number,
            dropped_commit=None,
        )

    def _drop_coverage(self, row_ids: Sequence[int]) -> None:
        """Mark coverage rows as dropped by this commit."""
        if row_ids:
            sql.drop_coverage(self._connection, row_ids=json.dumps(row_ids), number=self._number)

    def invalidate(self, invalidation: Invalidation) -> None:
        """Add an invalidation."""
        sql.insert_invalidation(
            self._connection,
            view_id=invalidation.view_id,
            target_partition=invalidation.target_partition,
            cause=invalidation.cause,
            statement=invalidation.statement,
            query_id=invalidation.query_id,
            row_count=invalidation.rows,
            since_ms=invalidation.since_ms,
            example_keys=dumps(list(invalidation.keys)),
            created_commit=self._number,
            dropped_commit=None,
        )

    def clear_invalidations(self, change: ClearInvalidations) -> None:
        """Close the invalidations of a target partition (None: of all) that were made up to the
        repair's snapshot."""
        if change.target_partition is None:
            sql.clear_invalidations(
                self._connection,
                of_view=change.view_id,
                up_to=change.up_to_commit,
                number=self._number,
            )
        else:
            sql.clear_invalidations_of_slice(
                self._connection,
                of_view=change.view_id,
                up_to=change.up_to_commit,
                of_partition=change.target_partition,
                number=self._number,
            )
