"""When an operator spills: it holds its share of the memory, or the query has no more for it."""

from __future__ import annotations

from typing import Literal

from olapdb.compute.context import ExecutionContext
from olapdb.compute.memory import MemoryAccount
from olapdb.config import Settings

Operation = Literal["group_by", "sort", "join", "distinct"]
"""The operations whose settings are max_bytes_before_external_… and its ratio."""


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
