"""When an operator spills: it holds its share of the memory, or the query has no more for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pyarrow as pa

from olapdb.compute.batches import cut
from olapdb.compute.context import ExecutionContext
from olapdb.compute.memory import MemoryAccount
from olapdb.config import Settings

Operation = Literal["group_by", "sort", "join", "distinct"]
"""The operations whose settings are max_bytes_before_external_… and its ratio."""

PIECES_OF_MEMORY = 16
PIECE_BYTES_MIN = 1 << 16
"""Cut a batch into pieces that need at most this part of the memory, and no less than so many bytes."""


class SpillBudget:
    """The memory that one operator may hold before it spills.

    It is the smaller one of `max_bytes_before_external_…` and `max_bytes_ratio_before_external_…`
    of `max_memory_usage`; where both are 0 the operator never spills."""

    def __init__(
        self, operation: Operation, context: ExecutionContext, account: MemoryAccount
    ) -> None:
        settings = Settings.of(context.settings)
        limits = [
            settings.integer(f"max_bytes_before_external_{operation}"),
            int(
                settings.number(f"max_bytes_ratio_before_external_{operation}")
                * context.memory.limit_bytes
            ),
        ]
        self._held_bytes_max = min((limit for limit in limits if limit), default=0)
        self._account = account
        self.enabled = bool(self._held_bytes_max)

    def is_exceeded(self, held_bytes: int, needed_bytes: int) -> bool:
        """Return whether to spill: the operator holds `held_bytes` of rows or states, and needs
        `needed_bytes` in all to go on in memory."""
        if not self.enabled:
            return False
        return held_bytes > self._held_bytes_max or needed_bytes > self._account.available_bytes

    def pieces(self, batch: pa.RecordBatch, row_bytes: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield a batch in pieces that each take a small part of the memory, with `row_bytes` more for each row: the
        operator can then spill between them. It is one piece where the operator never spills."""
        if not self.enabled:
            yield batch
            return
        # A dictionary is not cut: the batches of a table share it.
        columns = (
            4 * len(c) if isinstance(c, pa.DictionaryArray) else c.nbytes for c in batch.columns
        )
        nbytes = sum(columns) + batch.num_rows * row_bytes
        piece_bytes = max(self._account.available_bytes // PIECES_OF_MEMORY, PIECE_BYTES_MIN)
        if nbytes <= piece_bytes:
            yield batch
        else:
            yield from cut(batch, max(batch.num_rows * piece_bytes // nbytes, 1))
