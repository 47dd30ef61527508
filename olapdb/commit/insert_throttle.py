"""Throttles INSERTs into partitions with many parts, so that merges keep up: first a delay, then
an error. The limits and the error are ClickHouse's."""

from __future__ import annotations

import math
from collections.abc import Iterable

from olapdb.config import Settings
from olapdb.errors import TooManyParts
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot

DELAY_MS_MAX = 1_000
_DELAY_MS_MIN = 10


def insert_delay_ms(
    snapshot: Snapshot, table: Table, partition_ids: Iterable[str], settings: Settings
) -> int:
    """Return the milliseconds to wait before an INSERT into these partitions, mostly 0.

    The delay grows exponentially from `parts_to_delay_insert` parts in a partition to a second at
    `parts_to_throw_insert`, where TooManyParts is raised. A value of the statement's settings that
    is not 0 overrides the table's."""
    delay_at, throw_at = (
        settings.integer(name) or int(table.setting(name))
        for name in ("parts_to_delay_insert", "parts_to_throw_insert")
    )
    most = max(
        (snapshot.part_count(table.id, partition_id) for partition_id in set(partition_ids)),
        default=0,
    )
    if most >= throw_at:
        raise TooManyParts(
            f"Too many parts ({most}) in a partition of {table.database}.{table.name}: merges are"
            " slower than INSERTs.",
            hint="Insert fewer, larger blocks; OPTIMIZE TABLE merges now.",
        )
    if most < delay_at:
        return 0
    over = (most - delay_at + 1) / max(1, throw_at - delay_at)
    return min(DELAY_MS_MAX, max(_DELAY_MS_MIN, round(math.pow(DELAY_MS_MAX, over))))
