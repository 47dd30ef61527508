"""Join blocks into spans once no readable snapshot needs them individually.

A table's blocks grow with its INSERTs, its spans with the logarithm of its age.  Two neighbours are
joined when together they last no longer than an eighth of the younger one's age:

    age       1 s ... 1 min ... 1 h ... 1 day         a span of blocks that are a day old lasts
    spans     |||||||||  |  |  |    |     |           three hours at most

So the number of blocks in a range stays exact, and the time of its oldest block is known to an
eighth of its age.  Blocks on which a view failed keep their rows: the failure names their commit.
The newest block of a table keeps its row, from which the next number is counted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence

from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.writer import CatalogWriter
from olapdb.model.failpoint import FailpointObserver
from olapdb.model.part import BlockRange
from olapdb.records import dataclass

BLOCKS_KEPT_MAX = 1_000
"""Blocks of a table that may stay individual: vacuum does not write to a warehouse at rest."""
BLOCKS_A_STEP = 5_000
"""Blocks that one transaction joins: INSERTs wait for it."""
SHARE_OF_AGE = 8
SPAN_MS_MIN = 1_000


@dataclass(frozen=True, slots=True)
class BlockSpan:
    """Blocks `first`..`last` of a table, of commits `first_commit`..`last_commit`; `rows` is their
    sum."""

    first: int
    last: int
    first_commit: int
    last_commit: int
    rows: int
    oldest_ms: int
    newest_ms: int

    def count_in(self, blocks: BlockRange) -> int:
        """Return how many of its blocks lie in the range; a table's blocks have no gaps."""
        return max(0, min(self.last, blocks.last) - max(self.first, blocks.first) + 1)


def joined_spans(spans: Iterable[BlockSpan], now_ms: int) -> list[BlockSpan]:
    """Return the spans, given in the order of their blocks, with neighbours joined as the module
    says.

    >>> spans = [BlockSpan(n, n, n, n, 1, 100 * n, 100 * n) for n in (1, 2, 4)]
    >>> [(s.first, s.last) for s in joined_spans(spans, 10_000)]
    [(1, 2), (4, 4)]
    """
    joined: list[BlockSpan] = []
    for span in spans:
        joined.append(span)
        while len(joined) > 1 and _may_join(joined[-2], joined[-1], now_ms):
            younger, older = joined.pop(), joined.pop()
            joined.append(_joined_span(older, younger))
    return joined


def _may_join(older: BlockSpan, younger: BlockSpan, now_ms: int) -> bool:
    """Return whether two neighbours may become one span: no block between them, and together they
    last at most a share of their age (or SPAN_MS_MIN)."""
    if older.last + 1 != younger.first:
        return False  # a block between them keeps its row
    lasts_ms = max(older.newest_ms, younger.newest_ms) - min(older.oldest_ms, younger.oldest_ms)
    return lasts_ms <= max(SPAN_MS_MIN, (now_ms - younger.newest_ms) // SHARE_OF_AGE)


def _joined_span(older: BlockSpan, younger: BlockSpan) -> BlockSpan:
    """Return one span over both. The caller has checked by `_may_join` that they are adjacent."""
    return BlockSpan(
        older.first,
        younger.last,
        older.first_commit,
        younger.last_commit,
        older.rows + younger.rows,
        min(older.oldest_ms, younger.oldest_ms),
        max(older.newest_ms, younger.newest_ms),
    )


def spans_of(connection: sqlite3.Connection, table_id: str) -> list[BlockSpan]:
    """Return the stored spans of a table, in the order of their blocks."""
    return [BlockSpan(*row) for row in sql.spans_of(connection, of_table=table_id)]


def crowded_tables(connection: sqlite3.Connection, horizon: int) -> tuple[str, ...]:
    """Return the tables with more than `BLOCKS_KEPT_MAX` blocks of commits up to `horizon`."""
    counts = sql.block_counts_until(connection, up_to=horizon)
    return tuple(table_id for table_id, count in counts if count > BLOCKS_KEPT_MAX)


def compact_blocks(
    writer: CatalogWriter,
    tables: Iterable[str],
    horizon: int,
    clock_ms: Callable[[], int],
    failpoint: FailpointObserver,
) -> None:
    """Join the tables' blocks of commits up to `horizon`, step by step, each in a transaction.

    The mark `vacuumed_to` is `horizon` already, so no older snapshot is read any more.
    """
    for table_id in tables:
        after: int | None = 0
        while after is not None:
            with writer.housekeeping("vacuum") as connection:
                after = _compact_step(connection, table_id, horizon, after, clock_ms())
            failpoint("vacuum.blocks_compacted")


def _compact_step(
    connection: sqlite3.Connection, table_id: str, horizon: int, after: int, now_ms: int
) -> int | None:
    """Move the next blocks after the number `after` into spans, BLOCKS_A_STEP at most; blocks on
    which a view failed keep their rows. Return the last block that the step read, None if there are
    no more."""
    newest = sql.newest_block.value(connection, of_table=table_id) or 0
    cursor = sql.blocks_until(
        connection, of_table=table_id, up_to=horizon, before=newest, after=after
    )
    rows = cursor.fetchmany(BLOCKS_A_STEP)
    cursor.close()
    failures = {commit for (commit,) in sql.commits_of_failures(connection, up_to=horizon)}
    blocks = [row for row in rows if row[1] not in failures]
    before = spans_of(connection, table_id)
    alone = [BlockSpan(n, n, commit, commit, count, ms, ms) for n, commit, count, ms in blocks]
    spans = joined_spans(sorted((*before, *alone), key=lambda span: span.first), now_ms)
    if spans != before:
        sql.delete_spans(connection, of_table=table_id)
        for span in spans:
            sql.insert_span(
                connection,
                table_id=table_id,
                first_block=span.first,
                last_block=span.last,
                first_commit=span.first_commit,
                last_commit=span.last_commit,
                row_count=span.rows,
                oldest_ms=span.oldest_ms,
                newest_ms=span.newest_ms,
            )
    for first, last in _consecutive_ranges([number for number, *_ in blocks]):
        sql.delete_blocks(connection, of_table=table_id, first=first, last=last)
    return rows[-1][0] if len(rows) == BLOCKS_A_STEP else None


def _consecutive_ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of each stretch of consecutive numbers. The given numbers ascend."""
    first = 0
    for position, number in enumerate(numbers):
        if position + 1 == len(numbers) or numbers[position + 1] != number + 1:
            yield numbers[first], number
            first = position + 1
