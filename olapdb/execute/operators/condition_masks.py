"""Which rows of immutable parts a scan's conditions keep, remembered for the queries after.

A part never changes, so a condition without time, chance and subqueries keeps the same rows of it for ever. A
query that found them leaves a bit for each row in `PartCache.masks`; a later one with the same conditions
reads neither the columns that only they read nor row groups without such a row.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.config import Settings, tuning
from olapdb.execute.operators.part_scan import Piece, Task
from olapdb.execute.pruning.granule_selection import is_constant_for_parts
from olapdb.native.selection import kept_rows
from olapdb.plan.expressions import Expression, columns_of, walk
from olapdb.plan.nodes import Scan

_WORD_BITS = 64
_ENTRY_BYTES = 4096
"""What a mask takes beside its bits, counted as bytes: its key, with the conditions."""


class PartMask:
    """The rows of a part that conditions keep: a bit for each row, of the row groups that were read so far. For
    many threads.

    Row groups that are remembered begin at a multiple of 64 rows, so that none shares a word with another one."""

    def __init__(self, rows: int) -> None:
        self._words = np.zeros(-(-rows // _WORD_BITS), np.uint64)
        self._known: set[tuple[int, int]] = set()
        """The row groups whose bits are known: their first rows and their numbers of rows."""
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return about how many bytes of memory the mask takes."""
        return self._words.nbytes + _ENTRY_BYTES

    def knows(self, piece: Piece) -> bool:
        """Return whether the mask has the bits of all row groups of a piece."""
        with self._lock:
            return self._known.issuperset(zip(piece.offsets, piece.group_rows, strict=True))

    def rows(self, start: int, count: int) -> pa.BooleanArray:
        """Return the bits of `count` rows from `start` on, of row groups that are known, as a mask."""
        words = self._words[start // _WORD_BITS :]
        return pa.Array.from_buffers(pa.bool_(), count, [None, pa.py_buffer(words)])

    def remember(self, piece: Piece, mask: pa.BooleanArray) -> None:
        """Set the bits of a piece's rows from a mask without NULL, for later queries."""
        row = 0
        for start, rows in _stretches(piece):
            words = kept_rows(mask.slice(row, rows), rows)
            first = start // _WORD_BITS
            self._words[first : first + len(words)] = words
            row += rows
        with self._lock:
            self._known.update(zip(piece.offsets, piece.group_rows, strict=True))


class ConditionMasks:
    """The remembered masks of one scan's conditions. For many threads."""

    def __init__(
        self, node: Scan, conditions: Sequence[Expression], context: ExecutionContext
    ) -> None:
        self._cache = context.require_store().cache.masks
        self._key = _key(node, conditions, context)

    @property
    def may_know(self) -> bool:
        """Return whether masks can be kept: the conditions keep the same rows of a part in every query."""
        return self._key is not None

    def knows(self, task: Task) -> bool:
        """Return whether an earlier query has left the mask of all of a task's rows."""
        if self._key is None:
            return False
        for piece in task:
            mask = self._cache.get((self._key, piece.selection.reader.cache_path))
            if not isinstance(mask, PartMask) or not mask.knows(piece):
                return False
        return True

    def of_task(self, task: Task) -> pa.BooleanArray | None:
        """Return the mask of a task's rows; None if an earlier query has not left that of all of them."""
        if self._key is None:
            return None
        masks: list[pa.BooleanArray] = []
        for piece in task:
            mask = self._cache.get((self._key, piece.selection.reader.cache_path))
            if not isinstance(mask, PartMask) or not mask.knows(piece):
                return None
            masks += (mask.rows(start, rows) for start, rows in _stretches(piece))
        return masks[0] if len(masks) == 1 else pa.concat_arrays(masks)

    def remember(self, task: Task, mask: pa.BooleanArray) -> None:
        """Keep the mask of a task's rows, without NULL, for later queries."""
        if self._key is None:
            return
        row = 0
        for piece in task:
            if _may_be_remembered(piece):
                path = piece.selection.reader.cache_path
                key = (self._key, path)
                known = self._cache.get(key)
                if not isinstance(known, PartMask):
                    known = PartMask(sum(piece.selection.reader.group_rows))
                    self._cache.put_of((path,), key, known, known.nbytes)
                known.remember(piece, mask.slice(row, piece.rows))
            row += piece.rows


def _may_be_remembered(piece: Piece) -> bool:
    """Return whether a piece is of a file that is large enough, and each of its row groups has words of its own."""
    part = piece.selection.part
    return (
        not part.inline
        and part.rows >= tuning.REMEMBERED_ROWS_MIN
        and not any(start % _WORD_BITS for start in piece.offsets)
    )


def _stretches(piece: Piece) -> Iterator[tuple[int, int]]:
    """Yield the first row and the number of rows of row groups that follow each other in the part."""
    first = count = 0
    for start, rows in zip(piece.offsets, piece.group_rows, strict=True):
        if count and first + count != start:
            yield first, count
            count = 0
        first = first if count else start
        count += rows
    if count:
        yield first, count


def _key(
    node: Scan, conditions: Sequence[Expression], context: ExecutionContext
) -> Hashable | None:
    """Return a key for the masks of a part: the table, the conditions, and what else decides their answer for a row.
    None where no masks are to be kept: there are no conditions, one reads a subquery, the time or a virtual column, or
    the setting use_query_condition_cache is off."""
    table = node.table
    if not conditions or not Settings.of(context.settings).boolean("use_query_condition_cache"):
        return None
    if not all(is_constant_for_parts(e) for condition in conditions for e in walk(condition)):
        return None
    used = frozenset().union(*map(columns_of, conditions))
    stored = {u: (c, t) for u, c, t in node.predicate_columns}
    stored.update({u: (c, t) for (u, c), t in zip(node.columns, node.types, strict=True)})
    columns = []
    for unique in sorted(used):
        name, data_type = stored[unique]
        column = table.column(name)
        if column is None:
            return None
        columns.append((unique, column.id, data_type))
    zone = context.environment.zone
    return (*conditions, *columns, table.id, table.version, table.past, zone)
